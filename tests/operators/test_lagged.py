"""Lagged covariances against sums written out, and eigenvalues read at two lags against exact ones."""

import itertools

import numpy as np
import pytest

import lapwing as lw
from lapwing.operators import lagged
from lapwing.operators.lagged import LaggedMoments, lag_pair, lagged_eigenvalues, lagged_moments


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
