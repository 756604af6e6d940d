"""Lagged covariances against sums written out, and eigenvalues estimated at two lags against exact ones."""

import itertools

import numpy as np
import pytest

import lapwing as lw
from lapwing.operators import lagged
from lapwing.operators.lagged import (
    EigenvalueEstimate,
    LaggedMoments,
    consistent_estimate,
    estimate_eigenvalues,
    lag_pair,
    lagged_eigenvalues,
    lagged_moments,
    lagged_sums,
)


def test_moments_are_the_sums_over_pairs_inside_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Chunks shorter than an episode: pairs across their ends must not be lost.
    monkeypatch.setattr(lagged, "CHUNK_STATES", 7)
    rng = np.random.default_rng(0)
    lengths = [1, 9, 4, 17]
    values = rng.normal(size=(sum(lengths) + len(lengths), 3))
    data = lw.from_arrays(values, lengths=[length + 1 for length in lengths])
    found = lagged_moments(lambda rows: data.observations[rows], data, (0, 2, 5))
    offsets = np.asarray(data.offsets)
    for number, lag in enumerate((0, 2, 5)):
        pairs = [
            (values[t], values[t + lag]) for begin, end in itertools.pairwise(offsets) for t in range(begin, end - lag)
        ]
        np.testing.assert_allclose(found.products[number], np.mean([np.outer(a, b) for a, b in pairs], axis=0))
        both = np.mean([(np.outer(a, a) + np.outer(b, b)) / 2 for a, b in pairs], axis=0)
        np.testing.assert_allclose(found.grams[number], both)


@pytest.mark.parametrize("pair", [(0, 1), (2, 4), (4, 8)])
def test_exact_moments_of_rough_functions_give_exact_eigenvalues_at_two_lags_only(pair: tuple[int, int]) -> None:
    operator = lw.operator("GridRoom-1")
    truth = np.linalg.eigh(operator.matrix.toarray())
    mu, vectors = truth[0][::-1], truth[1][:, ::-1]
    # Each function has a little of a fast mode of its own.
    fast = np.argsort(np.abs(mu))[:4]
    rough = vectors[:, :4] + 0.5 * vectors[:, fast]
    power = {lag: vectors @ np.diag(mu**lag) @ vectors.T for lag in pair}
    products = np.array([rough.T @ power[lag] @ rough for lag in pair if lag])
    found = lagged_eigenvalues(LaggedMoments(products, np.array([rough.T @ rough] * len(products))), pair)
    error = np.abs(found - mu[:4]).max()
    assert (error < 1e-6) if pair[0] else (error > 0.05)


@pytest.mark.parametrize(
    ("lengths", "pair"), [([50] * 9, (4, 8)), ([12], (1, 2)), ([3, 3], (0, 1)), ([1, 900], (4, 8))]
)
def test_lags_suit_the_length_of_episodes(lengths: list[int], pair: tuple[int, int]) -> None:
    assert lag_pair(np.array(lengths)) == pair


def test_sums_by_blocks_add_up_to_the_moments_of_all() -> None:
    data = lw.collect("Box-1", 3_000, episode_length=7, seed=0)
    values = np.random.default_rng(0).standard_normal((data.num_states, 3))
    whole, blocks = (
        lagged_moments(lambda rows: values[rows], data, (1, 2)),
        lagged_sums(lambda rows: values[rows], data, (1, 2), blocks=13),
    )
    assert len(blocks.pairs) == 13
    for found, expected in zip(blocks.moments(), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    fewer = lagged_moments(lambda rows: values[rows], data, (2,))
    np.testing.assert_allclose(blocks.only([1]).moments().products, fewer.products, atol=1e-12)
    left_out = blocks.moments(without=0).products[0] * (blocks.pairs.sum(axis=0) - blocks.pairs[0])[0]
    np.testing.assert_allclose(left_out + blocks.products[0, 0], blocks.products[:, 0].sum(axis=0), atol=1e-9)


def test_a_constant_function_is_taken_out_of_the_others() -> None:
    data = lw.collect("Box-1", 3_000, seed=0)
    values = np.random.default_rng(0).standard_normal((data.num_states, 2)) + 5.0
    both = np.column_stack([np.ones(len(values)), values])
    found = lagged_moments(lambda rows: both[rows], data, (1,)).without_constant()
    positions = np.concatenate(list(data.pair_positions(1)))
    ends = np.concatenate([values[positions], values[positions + 1]])
    np.testing.assert_allclose(found.grams[0], np.cov(ends.T, bias=True), atol=1e-9)
    assert np.abs(found.products[0]).max() < 0.2


def test_errors_of_estimates_are_those_of_repeated_data() -> None:
    truth = lw.solve("Box-1", dim=3)
    estimates = []
    for seed in range(24):
        data = lw.collect("Box-1", 8_000, episode_length=40, seed=seed)
        sums = lagged_sums(lambda rows, data=data: truth.transform(data.observations[rows]), data, (2, 4), blocks=20)
        estimates.append(estimate_eigenvalues(sums, (2, 4), constant=True))
    spread = np.std([one.mu[1:] for one in estimates], axis=0)
    bars = np.mean([one.errors[1:] for one in estimates], axis=0)
    np.testing.assert_array_equal([one.mu[0] for one in estimates], 1.0)
    assert (np.abs(np.log(bars / spread)) < 0.5).all()


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_components_that_have_decayed_are_lost_and_never_rank_among_the_slow(seed: int) -> None:
    truth = lw.solve("FourWell", dim=11)
    data = lw.collect("FourWell", 100_000, seed=seed)
    values = truth.transform(data.observations)
    sums = lagged_sums(lambda rows: values[rows], data, (4, 8), blocks=40)
    found = estimate_eigenvalues(sums, (4, 8), constant=True)
    # The fifth has fallen to 0.0014 of its mean square after 8 steps, below the noise of 100,000.
    np.testing.assert_array_equal(np.isfinite(found.mu), [True] * 4 + [False] * 7)
    np.testing.assert_allclose(1.0 - found.mu[1:4], 1.0 - truth.mu[1:4], rtol=0.1)
    assert (np.abs(found.mu - truth.mu)[1:4] < 3.0 * found.errors[1:4]).all()


def test_a_component_lost_at_long_lags_is_compared_with_the_longest_that_it_has() -> None:
    short = EigenvalueEstimate(np.array([1.0, 0.50, 0.30]), np.array([0.0, 0.001, 0.001]))
    middle = EigenvalueEstimate(np.array([1.0, 0.51, 0.20]), np.array([0.0, 0.01, 0.01]))
    long = EigenvalueEstimate(np.array([1.0, np.nan, np.nan]), np.array([0.0, np.nan, np.nan]))
    found = consistent_estimate([short, middle, long])
    np.testing.assert_allclose(found.mu, [1.0, 0.50, 0.20])
    np.testing.assert_allclose(found.errors, [0.0, np.hypot(0.001, 0.01), 0.01])


def test_the_shortest_lags_that_agree_with_the_longest_are_taken() -> None:
    short = EigenvalueEstimate(np.array([1.0, 0.90, 0.70, np.nan]), np.full(4, 0.001))
    long = EigenvalueEstimate(np.array([1.0, 0.91, 0.80, np.nan]), np.array([0.0, 0.02, 0.02, np.nan]))
    middle = EigenvalueEstimate(np.array([1.0, 0.905, 0.79, 0.5]), np.full(4, 0.004))
    found = consistent_estimate([short, middle, long])
    np.testing.assert_allclose(found.mu, [1.0, 0.90, 0.79, 0.5])
    np.testing.assert_allclose(found.errors[1:], [np.hypot(0.001, 0.01), np.hypot(0.004, 0.01), 0.004])
