"""Directed dynamics are told from reversible ones by their observations alone."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.data.directedness import directedness


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Box-2", "UMaze", "LShape", "UMaze-29"])
@pytest.mark.parametrize("seed", range(3))
def test_reversible_worlds_are_not_called_directed(name: str, seed: int) -> None:
    data = lw.collect(name, 30_000, seed=seed)
    assert not directedness(data).is_directed
    assert not any("directed" in warning for warning in lw.audit(data).warnings)


def test_the_asymmetry_of_a_rotation_is_that_of_its_covariances() -> None:
    data = lw.collect("NoisyRotation", 50_000, seed=0)
    found = directedness(data)
    # E[x(s) x(s')^T] is exp(-0.3^2 / 2) times a rotation by 0.3 radians.
    decay = np.exp(-0.045)
    assert found.share == pytest.approx(decay * np.sin(0.3) / (1 - decay * np.cos(0.3)), rel=0.03)
    assert found.errors > 50
    assert any("the dynamics are directed" in warning for warning in lw.audit(data).warnings)


def test_of_many_numbers_random_sums_are_compared() -> None:
    rotation = lw.collect("NoisyRotation", 20_000, seed=0)
    noise = np.random.default_rng(0).normal(size=(rotation.num_states, 98)).astype(np.float32)
    wide = np.concatenate([30.0 * rotation.observations, noise], axis=1)
    lengths = np.diff(rotation.offsets)
    assert directedness(lw.from_arrays(wide, lengths=lengths)).is_directed
    assert not directedness(lw.from_arrays(noise, lengths=lengths)).is_directed


def test_too_few_steps_tell_nothing() -> None:
    data = lw.from_arrays(np.random.default_rng(0).normal(size=(4, 2)), lengths=[2, 2])
    assert not directedness(data).is_directed


def test_constant_and_collinear_entries_change_nothing() -> None:
    data = lw.collect("NoisyRotation", 20_000, seed=0)
    x = np.asarray(data.observations)
    more = np.concatenate([x, x[:, :1] + x[:, 1:], np.full((len(x), 1), 7.3, np.float32)], axis=1)
    plain, padded = (directedness(lw.from_arrays(rows, lengths=np.diff(data.offsets))) for rows in (x, more))
    assert padded.share == pytest.approx(plain.share, rel=1e-3)
    assert padded.is_directed
