"""Targets against exact solutions and plain loops; draws against their weights."""

import jax
import numpy as np
import pytest

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.training import fitting
from lapwing.training.fitting import Targets, cell_targets, fit_source, of_neighbours, table_draws, table_targets


@pytest.fixture(scope="module")
def walk() -> Trajectories:
    return lw.collect("Box-1", 60_000, episode_length=60, seed=0)


def cosines(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.abs((found * wanted).sum(axis=0)) / np.linalg.norm(found, axis=0) / np.linalg.norm(wanted, axis=0)


def test_targets_of_a_table_are_its_eigenvectors_without_the_constant_one() -> None:
    operator, truth = lw.operator("GridMaze-7"), lw.solve("GridMaze-7", dim=4)
    targets = table_targets(operator, 3)
    np.testing.assert_allclose(targets.mu, truth.mu[1:], atol=1e-9)
    found = targets.at(np.arange(operator.num_states))
    assert cosines(found, truth.transform(operator.observations)[:, 1:]).min() > 0.9999
    np.testing.assert_allclose(operator.rho @ found**2, 1.0, rtol=1e-4)


def test_targets_of_cells_are_near_the_closed_form(walk: Trajectories) -> None:
    truth = lw.solve("Box-1", dim=4)
    values = truth.transform(walk.observations).astype(np.float32)
    targets = cell_targets(values, walk, 4, 3, 4, np.random.default_rng(0))
    assert len(targets.labels) == 4
    assert cosines(targets.at(np.arange(walk.num_states)), values[:, 1:]).min() > 0.98
    np.testing.assert_allclose(1.0 - targets.mu, truth.eigenvalues[1:], rtol=0.15)


def test_noise_in_the_representation_is_noticed_and_counted_at_a_longer_lag(walk: Trajectories) -> None:
    values = lw.solve("Box-1", dim=4).transform(walk.observations)
    noise = np.random.default_rng(1).standard_normal(values.shape)
    assert fitting._diffusion_points(values.astype(np.float32), walk, 4, 5)[1] == 1
    assert fitting._diffusion_points((values + 0.4 * noise).astype(np.float32), walk, 4, 5)[1] == 5


def test_fewer_cells_than_targets_leave_zeros() -> None:
    data = lw.from_arrays(np.random.default_rng(0).random((40, 2)), lengths=[20, 20])
    targets = cell_targets(np.asarray(data.observations, dtype=np.float32), data, 3, 60, 1, np.random.default_rng(0))
    assert np.isfinite(targets.tables).all()
    assert targets.at(np.arange(40)).shape == (40, 60)


def test_targets_of_neighbours_are_means_inside_the_episode(walk: Trajectories) -> None:
    data = walk.take([0, 1])
    labels = np.random.default_rng(0).integers(0, 5, (2, data.num_states)).astype(np.int32)
    targets = Targets(labels, np.random.default_rng(1).standard_normal((2, 5, 3)).astype(np.float32), np.zeros(3))
    own, found = targets.at(np.arange(data.num_states)), of_neighbours(targets, data)
    expected = np.empty_like(own)
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        for state in range(begin, end):
            before = own[state - 1] if state > begin else own[state + 1]
            after = own[state + 1] if state + 1 < end else own[state - 1]
            expected[state] = (before + after) / 2.0
    np.testing.assert_allclose(found.at(np.arange(data.num_states)), expected, atol=1e-6)


def test_rows_of_a_table_are_drawn_by_their_weights() -> None:
    weights = np.array([0.5, 0.0, 0.3, 0.2])
    shares = np.bincount(table_draws(weights), minlength=4) / fitting.TABLE_DRAWS
    np.testing.assert_allclose(shares, weights, atol=1e-6)


def test_a_batch_has_the_targets_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    targets = Targets(
        rng.integers(0, 4, (3, 30)).astype(np.int32), rng.random((3, 4, 2)).astype(np.float32), np.zeros(2)
    )
    source = fit_source(np.arange(30.0)[:, None], targets, 32)
    batch = source.batch(source.draw(jax.random.key(0)))
    assert batch.observations.shape == (32, 1)
    np.testing.assert_allclose(batch.targets, targets.at(np.asarray(batch.observations[:, 0], dtype=int)), rtol=1e-6)
