"""Gaps: maps of eigenvalues and their inverses, what episodes make of them, and f(P) as a matrix."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from closed_forms import birth_death, room_eigenvalues
from lapwing.definitions import geometric, truncated
from lapwing.errors import LapwingError
from lapwing.operators.lags import GapDistribution, endless_gaps, fitting_starts, gaps_inside_episodes

RAGGED = np.array([3, 1, 0, 7, 4, 4, 12, 1])

discounts = st.lists(st.floats(0.05, 0.999), min_size=1, max_size=3)


def symmetric_chain(size: int) -> np.ndarray:
    """A reversible chain as a symmetric matrix, with the spectrum of a corridor."""
    return birth_death(size, 0.4, 0.4)


def weights_by_loop(discount: float, lengths: np.ndarray) -> np.ndarray:
    """The sampler of the paper spelt out: a start with a successor, then a geometric gap cut to its episode."""
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
def test_slowness_undoes_one_minus_for_endless_gaps(found: list[float], slowness: float) -> None:
    gaps = endless_gaps(found)
    assert float(gaps.slowness(gaps.one_minus(slowness))) == pytest.approx(slowness, rel=1e-8)


@given(discounts, st.integers(1, 60), st.booleans(), st.floats(1e-9, 1.0))
def test_slowness_undoes_one_minus_inside_episodes(
    found: list[float], length: int, unbiased: bool, slowness: float
) -> None:
    gaps = gaps_inside_episodes(endless_gaps(found), np.array([length, 2]), unbiased)
    assert float(gaps.slowness(gaps.one_minus(slowness))) == pytest.approx(slowness, rel=1e-6)


@pytest.mark.parametrize("inside", [False, True])
def test_arrays_keep_their_shape_and_values_beyond_reach_are_clipped(inside: bool) -> None:
    gaps = endless_gaps([0.9, 0.5])
    if inside:
        gaps = gaps_inside_episodes(gaps, RAGGED, unbiased=False)
    values = gaps.slowness(np.array([[-0.1, 0.0], [0.5, 7.0]]))
    assert values.shape == (2, 2)
    assert values[0].tolist() == [0.0, 0.0]
    assert values[1, 1] == (1.0 if inside else 2.0)
    assert gaps.one_minus(np.zeros((2, 3))).shape == (2, 3)


def test_one_endless_discount_is_the_geometric_definition() -> None:
    mu = np.linspace(-1.0, 1.0, 41)
    np.testing.assert_allclose(endless_gaps([0.9]).one_minus(1.0 - mu), geometric(0.9).from_mu(mu), atol=1e-14)


def test_a_mixture_is_the_average_of_its_parts() -> None:
    x = np.linspace(0.0, 2.0, 31)
    parts = [geometric(g).from_mu(1.0 - x) for g in (0.9, 0.99, 0.999)]
    np.testing.assert_allclose(endless_gaps([0.9, 0.99, 0.999]).one_minus(x), np.mean(parts, axis=0), atol=1e-13)
    uneven = endless_gaps([0.9, 0.5], shares=[3.0, 1.0])
    expected = 0.75 * geometric(0.9).from_mu(1.0 - x) + 0.25 * geometric(0.5).from_mu(1.0 - x)
    np.testing.assert_allclose(uneven.one_minus(x), expected, atol=1e-14)


@pytest.mark.parametrize("unbiased", [False, True])
def test_a_mixture_inside_episodes_is_the_average_of_its_parts(unbiased: bool) -> None:
    def weights(*found: float) -> np.ndarray:
        inside = gaps_inside_episodes(endless_gaps(found), RAGGED, unbiased).weights
        assert inside is not None
        return inside

    np.testing.assert_allclose(weights(0.9, 0.99), (weights(0.9) + weights(0.99)) / 2.0, atol=1e-15)


@pytest.mark.parametrize(("discount", "length"), [(0.9, 50), (0.99, 7), (0.5, 1)])
def test_gaps_in_equal_episodes_are_the_truncated_definition(discount: float, length: int) -> None:
    inside = gaps_inside_episodes(endless_gaps([discount]), np.full(4, length), unbiased=False)
    definition = truncated(discount, length)
    np.testing.assert_allclose(inside.weights, definition.lag_weights(), rtol=1e-12)
    mu = np.linspace(-0.9, 1.0, 20)
    np.testing.assert_allclose(inside.one_minus(1.0 - mu), definition.from_mu(mu), atol=1e-13)


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.999])
def test_gaps_in_ragged_episodes_are_those_of_the_sampler_spelt_out(discount: float) -> None:
    inside = gaps_inside_episodes(endless_gaps([discount]), RAGGED, unbiased=False)
    np.testing.assert_allclose(inside.weights, weights_by_loop(discount, RAGGED), rtol=1e-10)


def test_unbiased_gaps_keep_the_geometric_shape_up_to_the_longest_episode() -> None:
    inside = gaps_inside_episodes(endless_gaps([0.8]), RAGGED, unbiased=True)
    shape = 0.8 ** np.arange(12)
    np.testing.assert_allclose(inside.weights, shape / shape.sum(), rtol=1e-13)


@pytest.mark.parametrize("unbiased", [False, True])
def test_probabilities_sum_to_one(unbiased: bool) -> None:
    weights = gaps_inside_episodes(endless_gaps([0.9, 0.999]), RAGGED, unbiased).weights
    assert weights is not None
    assert weights.sum() == pytest.approx(1.0, abs=1e-13)
    assert (weights > 0).all()


def test_fitting_starts_count_the_states_with_enough_steps_left() -> None:
    left = np.array(list(itertools.chain.from_iterable(range(1, length + 1) for length in RAGGED)))
    assert fitting_starts(RAGGED).tolist() == [int((left >= k).sum()) for k in range(1, 13)]


@pytest.mark.parametrize("inside", [False, True])
def test_small_eigenvalues_lose_no_digits(inside: bool) -> None:
    # To first order 1 - f(mu) is the mean gap times 1 - mu.
    gaps, mean = endless_gaps([0.9]), 10.0
    if inside:
        gaps = gaps_inside_episodes(gaps, RAGGED, unbiased=False)
        mean = float(gaps.weights @ np.arange(1, 13))  # type: ignore[operator]
    assert float(gaps.one_minus(1e-14)) == pytest.approx(mean * 1e-14, rel=1e-10)


def test_the_dense_operator_of_endless_gaps_is_the_resolvent() -> None:
    p, identity = symmetric_chain(9), np.eye(9)
    parts = [(1.0 - g) * p @ np.linalg.inv(identity - g * p) for g in (0.9, 0.999)]
    np.testing.assert_allclose(endless_gaps([0.9, 0.999]).dense(p), np.mean(parts, axis=0), atol=1e-12)


def test_the_dense_operator_of_finite_gaps_is_the_sum_of_powers() -> None:
    p = symmetric_chain(9)
    gaps = gaps_inside_episodes(endless_gaps([0.9]), RAGGED, unbiased=False)
    assert gaps.weights is not None
    powers = sum(w * np.linalg.matrix_power(p, k) for k, w in enumerate(gaps.weights, 1))
    np.testing.assert_allclose(gaps.dense(p), powers, atol=1e-13)


def test_the_dense_operator_has_the_mapped_eigenvalues_even_below_zero() -> None:
    p = birth_death(8, 0.5, 0.5)
    assert np.linalg.eigvalsh(p).min() < -0.8
    for gaps in (endless_gaps([0.7]), GapDistribution((0.7,), (1.0,), np.array([0.25, 0.5, 0.25]))):
        expected = np.sort(1.0 - gaps.one_minus(1.0 - np.linalg.eigvalsh(p)))
        np.testing.assert_allclose(np.linalg.eigvalsh(gaps.dense(p)), expected, atol=1e-13)


def test_a_rooms_eigenvalues_come_back_from_the_training_operator() -> None:
    slowness = room_eigenvalues(5, 4)
    gaps = endless_gaps([0.9, 0.99, 0.999])
    np.testing.assert_allclose(gaps.slowness(gaps.one_minus(slowness)), slowness, atol=1e-10)


@pytest.mark.parametrize("wrong", [[], [1.0], [0.0], [0.9, -0.1], [float("nan")]])
def test_discounts_outside_the_open_unit_interval_are_refused(wrong: list[float]) -> None:
    with pytest.raises(LapwingError, match="between 0 and 1"):
        endless_gaps(wrong)


@pytest.mark.parametrize("shares", [[1.0], [1.0, 0.0], [1.0, -1.0]])
def test_a_mixture_needs_a_positive_share_for_each_discount(shares: list[float]) -> None:
    with pytest.raises(LapwingError, match="share"):
        endless_gaps([0.9, 0.99], shares)


@pytest.mark.parametrize(
    "gaps", [endless_gaps([0.9]), endless_gaps([0.5, 0.99]), gaps_inside_episodes(endless_gaps([0.9]), RAGGED, False)]
)
def test_the_spectrum_ends_where_no_eigenvalue_lies_beyond(gaps: GapDistribution) -> None:
    values = gaps.one_minus(np.linspace(0.0, 2.0, 10_001))
    assert gaps.end_of_spectrum == pytest.approx(values.max(), abs=1e-3)
