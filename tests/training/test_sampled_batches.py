"""Sampled batches: gaps, boundaries and energies of what is drawn, and the two ways to encode it."""

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
from lapwing.operators.lags import endless_gaps
from lapwing.training.batches import Batches
from lapwing.training.sampled_batches import Draw, sampled_batches

LENGTHS = np.array([6, 1, 0, 9, 4, 2, 9, 5])
DRAWS = 200_000


def ragged() -> Trajectories:
    """Episodes whose observations are the positions themselves, so that a drawn row says where it came from."""
    offsets = np.concatenate([[0], np.cumsum(LENGTHS + 1)])
    flags = np.ones(len(LENGTHS), dtype=bool)
    positions = np.arange(offsets[-1], dtype=np.float32)[:, None]
    return Trajectories(positions, offsets, ~flags, flags)


def drawn(batches: Batches, seed: int = 0) -> Draw:
    draw: Draw = jax.device_get(jax.jit(batches.draw)(jax.random.key(seed), batches.data))
    return draw


def fits(counts: NDArray[Any], chances: NDArray[np.float64]) -> bool:
    """Pearson's test at 1 in 10^4."""
    expected = chances / chances.sum() * counts.sum()
    assert expected.min() > 5
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic < float(chi2.ppf(1 - 1e-4, len(counts) - 1))


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("discounts", [[0.8], [0.3, 0.99]], ids=["one", "mixture"])
def test_gaps_come_as_often_as_reported(discounts: list[float], unbiased: bool) -> None:
    batches = sampled_batches(ragged(), endless_gaps(discounts), DRAWS, unbiased)
    draw = drawn(batches)
    counts = np.bincount(draw.end - draw.start, minlength=10)
    assert counts[0] == 0
    assert batches.gaps.weights is not None
    assert fits(counts[1:], batches.gaps.weights)


def test_a_wrong_report_would_be_noticed() -> None:
    draw = drawn(sampled_batches(ragged(), endless_gaps([0.8]), DRAWS))
    other = sampled_batches(ragged(), endless_gaps([0.82]), 8).gaps.weights
    assert other is not None
    assert not fits(np.bincount(draw.end - draw.start, minlength=10)[1:], other)


def test_unbiased_starts_are_uniform_among_those_where_the_gap_fits() -> None:
    draw = drawn(sampled_batches(ragged(), endless_gaps([0.9]), DRAWS, unbiased=True))
    left = np.concatenate([np.arange(length, -1, -1) for length in LENGTHS])
    for gap in (1, 4, 9):
        counts = np.bincount(draw.start[draw.end - draw.start == gap], minlength=44)
        assert not counts[left < gap].any()
        assert fits(counts[left >= gap], np.ones(int((left >= gap).sum())))


@pytest.mark.parametrize("unbiased", [False, True])
def test_pairs_never_cross_an_episode(unbiased: bool) -> None:
    data = ragged()
    draw = drawn(sampled_batches(data, endless_gaps([0.5, 0.999]), 20_000, unbiased))
    episode = np.repeat(np.arange(len(LENGTHS)), LENGTHS + 1)
    np.testing.assert_array_equal(episode[draw.start], episode[draw.end])
    assert (draw.end > draw.start).all()


def test_first_states_are_uniform_among_those_with_a_successor() -> None:
    counts = np.bincount(drawn(sampled_batches(ragged(), endless_gaps([0.9]), DRAWS)).start, minlength=44)
    last = np.cumsum(LENGTHS + 1) - 1
    assert not counts[last].any()
    assert fits(np.delete(counts, last), np.ones(44 - len(last)))


def test_constraint_batches_are_uniform_over_all_states_and_differ() -> None:
    draw = drawn(sampled_batches(ragged(), endless_gaps([0.9]), DRAWS))
    for rows in (draw.first, draw.second):
        assert fits(np.bincount(rows, minlength=44), np.ones(44))
    # Independent batches agree in one place of 44.
    assert np.mean(draw.first == draw.second) == pytest.approx(1 / 44, rel=0.1)


def test_a_draw_is_a_function_of_its_key() -> None:
    batches = sampled_batches(ragged(), endless_gaps([0.9]), 64)
    one, same, other = drawn(batches, 1), drawn(batches, 1), drawn(batches, 2)
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
    batches = sampled_batches(maze, endless_gaps(discounts), 400_000, unbiased, once=True)
    draw = batches.draw(jax.random.key(3), batches.data)
    found = batches.values(lambda observations: table, batches.data, draw)
    expected = batches.gaps.one_minus(1.0 - truth.mu[:5])
    np.testing.assert_allclose(found.energies, expected, rtol=0.03, atol=1e-6)
    gram = np.asarray(found.first).T @ np.asarray(found.first) / len(found.first)
    np.testing.assert_allclose(gram, np.eye(5), atol=0.03)


def test_truncation_biases_energies_and_the_unbiased_variant_does_not(maze: Trajectories) -> None:
    mu = lw.solve("GridMaze-9", 3).mu[1:3]
    wanted = endless_gaps([0.9])
    cut, whole = (sampled_batches(maze, wanted, 8, unbiased).gaps.one_minus(1.0 - mu) for unbiased in (False, True))
    endless = wanted.one_minus(1.0 - mu)
    assert (cut < 0.85 * endless).all()
    assert (whole > 0.9 * endless).all()


def loss_of(batches: Batches) -> Callable[[jax.Array], jax.Array]:
    objective = allo()
    draw = batches.draw(jax.random.key(5), batches.data)

    def loss(weights: jax.Array) -> jax.Array:
        values = batches.values(lambda rows: jnp.tanh(rows @ weights), batches.data, draw)
        return objective.loss(objective.init(3), values)[0]

    return loss


@pytest.mark.parametrize("unbiased", [False, True])
def test_encoding_once_and_row_by_row_give_the_same_loss_and_gradient(maze: Trajectories, unbiased: bool) -> None:
    weights = jax.random.normal(jax.random.key(0), (2, 3))
    once, by_row = (sampled_batches(maze, endless_gaps([0.9]), 128, unbiased, once=how) for how in (True, False))
    assert (once.rows, by_row.rows) == (13, 512)
    (loss_once, gradient_once), (loss_row, gradient_row) = (
        jax.jit(jax.value_and_grad(loss_of(batches)))(weights) for batches in (once, by_row)
    )
    assert float(loss_once) == pytest.approx(float(loss_row), rel=1e-5)
    np.testing.assert_allclose(gradient_once, gradient_row, rtol=1e-4, atol=1e-6)


def test_the_table_is_encoded_once_where_that_is_less_work(maze: Trajectories) -> None:
    assert sampled_batches(maze, endless_gaps([0.9]), 4).rows == 13
    assert sampled_batches(maze, endless_gaps([0.9]), 3).rows == 12
    assert sampled_batches(ragged(), endless_gaps([0.9]), 11).rows == 44
    assert sampled_batches(ragged(), endless_gaps([0.9]), 10).rows == 40
