"""Lags: maps of eigenvalues and their inverses, what episodes make of them, and f(P) as a matrix."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closed_forms import birth_death, room_eigenvalues
from lapwing.definitions import geometric, truncated
from lapwing.errors import ArgumentError
from lapwing.operators.lags import LagDistribution, geometric_lags, lags_inside_episodes, states_with_steps_left

RAGGED = np.array([3, 1, 0, 7, 4, 4, 12, 1])

discounts = st.lists(st.floats(0.05, 0.999), min_size=1, max_size=3)


def symmetric_chain(size: int) -> np.ndarray:
    """A reversible chain as a symmetric matrix, with the spectrum of a corridor."""
    return birth_death(size, 0.4, 0.4)


def weights_by_loop(discount: float, lengths: np.ndarray) -> np.ndarray:
    """The sampler of the paper spelt out: a start with a successor, then a geometric lag cut to its episode."""
    totals = np.zeros(int(lengths.max()))
    starts = 0
    for length in lengths:
        for position in range(length):
            left = length - position
            chances = np.array([discount ** (k - 1) for k in range(1, left + 1)])
            totals[:left] += chances / chances.sum()
            starts += 1
    return totals / starts


@given(discounts, st.floats(1e-9, 2.0))
def test_one_minus_mu_inverts_the_eigenvalues_of_geometric_lags(found: list[float], one_minus_mu: float) -> None:
    lags = geometric_lags(found)
    assert float(lags.one_minus_mu(lags.eigenvalues(one_minus_mu))) == pytest.approx(one_minus_mu, rel=1e-8)


@given(discounts, st.integers(1, 60), st.booleans(), st.floats(1e-9, 1.0))
def test_one_minus_mu_inverts_eigenvalues_inside_episodes(
    found: list[float], length: int, unbiased: bool, one_minus_mu: float
) -> None:
    lags = lags_inside_episodes(geometric_lags(found), np.array([length, 2]), unbiased)
    assert float(lags.one_minus_mu(lags.eigenvalues(one_minus_mu))) == pytest.approx(one_minus_mu, rel=1e-6)


@pytest.mark.parametrize("inside", [False, True])
def test_arrays_keep_their_shape_and_values_beyond_reach_are_clipped(inside: bool) -> None:
    lags = geometric_lags([0.9, 0.5])
    if inside:
        lags = lags_inside_episodes(lags, RAGGED, unbiased=False)
    values = lags.one_minus_mu(np.array([[-0.1, 0.0], [0.5, 7.0]]))
    assert values.shape == (2, 2)
    assert values[0].tolist() == [0.0, 0.0]
    assert values[1, 1] == (1.0 if inside else 2.0)
    assert lags.eigenvalues(np.zeros((2, 3))).shape == (2, 3)


def test_one_endless_discount_is_the_geometric_definition() -> None:
    mu = np.linspace(-1.0, 1.0, 41)
    np.testing.assert_allclose(geometric_lags([0.9]).eigenvalues(1.0 - mu), geometric(0.9).from_mu(mu), atol=1e-14)


def test_a_mixture_is_the_average_of_its_parts() -> None:
    x = np.linspace(0.0, 2.0, 31)
    parts = [geometric(g).from_mu(1.0 - x) for g in (0.9, 0.99, 0.999)]
    np.testing.assert_allclose(geometric_lags([0.9, 0.99, 0.999]).eigenvalues(x), np.mean(parts, axis=0), atol=1e-13)
    uneven = geometric_lags([0.9, 0.5], shares=[3.0, 1.0])
    expected = 0.75 * geometric(0.9).from_mu(1.0 - x) + 0.25 * geometric(0.5).from_mu(1.0 - x)
    np.testing.assert_allclose(uneven.eigenvalues(x), expected, atol=1e-14)


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_mixture_inside_episodes_is_the_average_of_its_parts(unbiased: bool) -> None:
    def weights(*found: float) -> np.ndarray:
        inside = lags_inside_episodes(geometric_lags(found), RAGGED, unbiased).weights
        assert inside is not None
        return inside

    np.testing.assert_allclose(weights(0.9, 0.99), (weights(0.9) + weights(0.99)) / 2.0, atol=1e-15)


@pytest.mark.parametrize(("discount", "length"), [(0.9, 50), (0.99, 7), (0.5, 1)])
def test_gaps_in_equal_episodes_are_the_truncated_definition(discount: float, length: int) -> None:
    inside = lags_inside_episodes(geometric_lags([discount]), np.full(4, length), unbiased=False)
    definition = truncated(discount, length)
    np.testing.assert_allclose(inside.weights, definition.lag_weights(), rtol=1e-12)
    mu = np.linspace(-0.9, 1.0, 20)
    np.testing.assert_allclose(inside.eigenvalues(1.0 - mu), definition.from_mu(mu), atol=1e-13)


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.999])
def test_gaps_in_ragged_episodes_are_those_of_the_sampler_spelt_out(discount: float) -> None:
    inside = lags_inside_episodes(geometric_lags([discount]), RAGGED, unbiased=False)
    np.testing.assert_allclose(inside.weights, weights_by_loop(discount, RAGGED), rtol=1e-10)


def test_unbiased_gaps_keep_the_geometric_shape_up_to_the_longest_episode() -> None:
    inside = lags_inside_episodes(geometric_lags([0.8]), RAGGED, unbiased=True)
    shape = 0.8 ** np.arange(12)
    np.testing.assert_allclose(inside.weights, shape / shape.sum(), rtol=1e-13)


@pytest.mark.parametrize("unbiased", [False, True])
def test_probabilities_sum_to_one(unbiased: bool) -> None:
    weights = lags_inside_episodes(geometric_lags([0.9, 0.999]), RAGGED, unbiased).weights
    assert weights is not None
    assert weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert (weights > 0).all()


def test_states_with_steps_left_are_counted() -> None:
    left = np.array(list(itertools.chain.from_iterable(range(1, length + 1) for length in RAGGED)))
    assert states_with_steps_left(RAGGED).tolist() == [int((left >= k).sum()) for k in range(1, 13)]


@pytest.mark.parametrize("inside", [False, True])
def test_small_eigenvalues_lose_no_digits(inside: bool) -> None:
    # To first order 1 - f(mu) is the mean lag times 1 - mu.
    lags, mean = geometric_lags([0.9]), 10.0
    if inside:
        lags = lags_inside_episodes(lags, RAGGED, unbiased=False)
        mean = float(lags.weights @ np.arange(1, 13))  # type: ignore[operator]
    assert float(lags.eigenvalues(1e-14)) == pytest.approx(mean * 1e-14, rel=1e-10)


def test_the_dense_operator_of_geometric_lags_is_the_resolvent() -> None:
    p, identity = symmetric_chain(9), np.eye(9)
    parts = [(1.0 - g) * p @ np.linalg.inv(identity - g * p) for g in (0.9, 0.999)]
    np.testing.assert_allclose(geometric_lags([0.9, 0.999]).dense(p), np.mean(parts, axis=0), atol=1e-12)


def test_the_dense_operator_of_finite_gaps_is_the_sum_of_powers() -> None:
    p = symmetric_chain(9)
    lags = lags_inside_episodes(geometric_lags([0.9]), RAGGED, unbiased=False)
    assert lags.weights is not None
    powers = sum(w * np.linalg.matrix_power(p, k) for k, w in enumerate(lags.weights, 1))
    np.testing.assert_allclose(lags.dense(p), powers, atol=1e-13)


def test_the_dense_operator_has_the_mapped_eigenvalues_even_below_zero() -> None:
    p = birth_death(8, 0.5, 0.5)
    assert np.linalg.eigvalsh(p).min() < -0.8
    for lags in (geometric_lags([0.7]), LagDistribution((0.7,), (1.0,), np.array([0.25, 0.5, 0.25]))):
        expected = np.sort(1.0 - lags.eigenvalues(1.0 - np.linalg.eigvalsh(p)))
        np.testing.assert_allclose(np.linalg.eigvalsh(lags.dense(p)), expected, atol=1e-13)


def test_a_rooms_eigenvalues_come_back_from_the_training_operator() -> None:
    one_minus_mu = room_eigenvalues(5, 4)
    lags = geometric_lags([0.9, 0.99, 0.999])
    np.testing.assert_allclose(lags.one_minus_mu(lags.eigenvalues(one_minus_mu)), one_minus_mu, atol=1e-10)


@pytest.mark.parametrize("wrong", [[], [1.0], [0.0], [0.9, -0.1], [float("nan")]])
def test_discounts_outside_the_open_unit_interval_are_refused(wrong: list[float]) -> None:
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        geometric_lags(wrong)


@pytest.mark.parametrize("shares", [[1.0], [1.0, 0.0], [1.0, -1.0]])
def test_a_mixture_needs_a_positive_share_for_each_discount(shares: list[float]) -> None:
    with pytest.raises(ArgumentError, match="share"):
        geometric_lags([0.9, 0.99], shares)


@pytest.mark.parametrize(
    "lags",
    [geometric_lags([0.9]), geometric_lags([0.5, 0.99]), lags_inside_episodes(geometric_lags([0.9]), RAGGED, False)],
)
def test_the_spectrum_ends_where_no_eigenvalue_lies_beyond(lags: LagDistribution) -> None:
    values = lags.eigenvalues(np.linspace(0.0, 2.0, 10_001))
    assert lags.largest_eigenvalue == pytest.approx(values.max(), abs=1e-3)
