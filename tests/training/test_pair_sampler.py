"""Sampled batches: lags, boundaries and energies of what is drawn, and the two ways to encode it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.objectives import allo
from lapwing.operators.lags import geometric_lags, lags_inside_episodes
from lapwing.training.batches import PairSampler, Rows, pair_sampler

LENGTHS = np.array([6, 1, 0, 9, 4, 2, 9, 5])
DRAWS = 200_000


def ragged() -> Trajectories:
    """Episodes whose observations are the positions themselves, so that a drawn row says where it came from."""
    offsets = np.concatenate([[0], np.cumsum(LENGTHS + 1)])
    flags = np.ones(len(LENGTHS), dtype=bool)
    positions = np.arange(offsets[-1], dtype=np.float32)[:, None]
    return Trajectories(positions, offsets, ~flags, flags)


def drawn(sampler: PairSampler, seed: int = 0) -> Rows:
    draw: Rows = jax.device_get(jax.jit(lambda key: sampler.draw(key))(jax.random.key(seed)))
    return draw


def fits(counts: NDArray[Any], chances: NDArray[np.float64]) -> bool:
    """Pearson's test at 1 in 10^4."""
    expected = chances / chances.sum() * counts.sum()
    assert expected.min() > 5
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < float(chi2.ppf(1 - 1e-4, len(counts) - 1))


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("discounts", [[0.8], [0.3, 0.99]], ids=["one", "mixture"])
def test_lags_come_as_often_as_reported(discounts: list[float], unbiased: bool) -> None:
    draw = drawn(pair_sampler(ragged(), geometric_lags(discounts), DRAWS, unbiased))
    weights = lags_inside_episodes(geometric_lags(discounts), LENGTHS, unbiased).weights
    counts = np.bincount(draw.end - draw.start, minlength=10)
    assert counts[0] == 0
    assert weights is not None
    assert fits(counts[1:], weights)


def test_a_wrong_report_would_be_noticed() -> None:
    draw = drawn(pair_sampler(ragged(), geometric_lags([0.8]), DRAWS))
    other = lags_inside_episodes(geometric_lags([0.82]), LENGTHS, False).weights
    assert other is not None
    assert not fits(np.bincount(draw.end - draw.start, minlength=10)[1:], other)


def test_unbiased_starts_are_uniform_among_those_where_the_gap_fits() -> None:
    draw = drawn(pair_sampler(ragged(), geometric_lags([0.9]), DRAWS, unbiased=True))
    left = np.concatenate([np.arange(length, -1, -1) for length in LENGTHS])
    for lag in (1, 4, 9):
        counts = np.bincount(draw.start[draw.end - draw.start == lag], minlength=44)
        assert not counts[left < lag].any()
        assert fits(counts[left >= lag], np.ones(int((left >= lag).sum())))


@pytest.mark.parametrize("unbiased", [False, True])
def test_pairs_never_cross_an_episode(unbiased: bool) -> None:
    data = ragged()
    draw = drawn(pair_sampler(data, geometric_lags([0.5, 0.999]), 20_000, unbiased))
    episode = np.repeat(np.arange(len(LENGTHS)), LENGTHS + 1)
    np.testing.assert_array_equal(episode[draw.start], episode[draw.end])
    assert (draw.end > draw.start).all()


def test_first_states_are_uniform_among_those_with_a_successor() -> None:
    counts = np.bincount(drawn(pair_sampler(ragged(), geometric_lags([0.9]), DRAWS)).start, minlength=44)
    last = np.cumsum(LENGTHS + 1) - 1
    assert not counts[last].any()
    assert fits(np.delete(counts, last), np.ones(44 - len(last)))


def test_constraint_batches_are_uniform_over_all_states_and_differ() -> None:
    draw = drawn(pair_sampler(ragged(), geometric_lags([0.9]), DRAWS))
    for rows in (draw.first, draw.second):
        assert fits(np.bincount(rows, minlength=44), np.ones(44))
    # Independent batches agree in one place of 44.
    assert np.mean(draw.first == draw.second) == pytest.approx(1 / 44, rel=0.1)


def test_a_draw_is_a_function_of_its_key() -> None:
    sampler = pair_sampler(ragged(), geometric_lags([0.9]), 64)
    one, same, other = drawn(sampler, 1), drawn(sampler, 1), drawn(sampler, 2)
    assert all(np.array_equal(a, b) for a, b in zip(one[:2], same[:2], strict=True))
    assert not np.array_equal(one.start, other.start)


@pytest.fixture(scope="module")
def maze() -> Trajectories:
    return lw.collect("GridMaze-9", steps=400_000, episode_length=30, seed=0)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("discounts", [[0.9], [0.5, 0.99]], ids=["one", "mixture"])
def test_energies_of_eigenvectors_are_the_eigenvalues_of_the_reported_gaps(
    maze: Trajectories, discounts: list[float], unbiased: bool
) -> None:
    truth = lw.solve("GridMaze-9", 5)
    table = jnp.asarray(truth.transform(maze.observations), dtype=jnp.float32)
    sampler = pair_sampler(maze, geometric_lags(discounts), 400_000, unbiased, encode_table=True)
    found = sampler.batch(sampler.draw(jax.random.key(3))).values(lambda observations: table)
    lags = lags_inside_episodes(geometric_lags(discounts), maze.lengths, unbiased)
    expected = lags.eigenvalues(1.0 - truth.mu[:5])
    np.testing.assert_allclose(found.energies(), expected, rtol=0.03, atol=1e-6)
    np.testing.assert_allclose(found.operator_products(), np.diag(1.0 - expected), atol=0.03)
    gram = np.asarray(found.first).T @ np.asarray(found.first) / len(found.first)
    np.testing.assert_allclose(gram, np.eye(5), atol=0.03)


def test_truncation_biases_energies_and_the_unbiased_variant_does_not(maze: Trajectories) -> None:
    mu = lw.solve("GridMaze-9", 3).mu[1:3]
    wanted = geometric_lags([0.9])
    cut, whole = (
        lags_inside_episodes(wanted, maze.lengths, unbiased).eigenvalues(1.0 - mu) for unbiased in (False, True)
    )
    infinite = wanted.eigenvalues(1.0 - mu)
    assert (cut < 0.85 * infinite).all()
    assert (whole > 0.9 * infinite).all()


def loss_of(sampler: PairSampler) -> Callable[[jax.Array], jax.Array]:
    objective = allo()
    batch = sampler.batch(sampler.draw(jax.random.key(5)))

    def loss(weights: jax.Array) -> jax.Array:
        values = batch.values(lambda rows: jnp.tanh(rows @ weights))
        return objective.loss(objective.init(3), values)[0]

    return loss


@pytest.mark.parametrize("unbiased", [False, True])
def test_encoding_once_and_row_by_row_give_the_same_loss_and_gradient(maze: Trajectories, unbiased: bool) -> None:
    weights = jax.random.normal(jax.random.key(0), (2, 3))
    once, by_row = (pair_sampler(maze, geometric_lags([0.9]), 128, unbiased, encode_table=how) for how in (True, False))
    (loss_once, gradient_once), (loss_row, gradient_row) = (
        jax.jit(jax.value_and_grad(loss_of(sampler)))(weights) for sampler in (once, by_row)
    )
    assert float(loss_once) == pytest.approx(float(loss_row), rel=1e-5)
    np.testing.assert_allclose(gradient_once, gradient_row, rtol=1e-4, atol=1e-6)


def test_the_table_is_encoded_once_where_that_is_less_work(maze: Trajectories) -> None:
    lags = geometric_lags([0.9])
    found = [pair_sampler(data, lags, size).encode_table for data, size in ((maze, 4), (maze, 3), (ragged(), 11))]
    assert found == [True, False, True]


def test_halves_of_the_pairs_serve_as_constraint_batches() -> None:
    sampler = pair_sampler(ragged(), geometric_lags([0.9]), 7, separate=False)
    draw = sampler.draw(jax.random.key(0))
    assert draw.first is None
    assert draw.second is None
    encoded = []

    def encode(rows: jax.Array) -> jax.Array:
        encoded.append(len(rows))
        return rows.astype(jnp.float32)

    values = sampler.batch(draw).values(encode)
    assert encoded == [14]
    here, there = np.asarray(values.here), np.asarray(values.there)
    np.testing.assert_array_equal(values.first, np.concatenate([here[:3], there[:3]]))
    np.testing.assert_array_equal(values.second, np.concatenate([here[3:], there[3:]]))


def test_a_single_pair_has_no_halves() -> None:
    assert pair_sampler(ragged(), geometric_lags([0.9]), 1, separate=False).draw(jax.random.key(0)).first is not None
