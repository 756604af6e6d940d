"""Statistics over seeds: the same as SciPy's and the paper's, and quiet where nothing can be said."""

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lapwing.errors import DataError
from lapwing_paper.seed_statistics import (
    aggregate,
    bootstrap_interval,
    confidence_band,
    holm,
    interquartile_mean,
    mean_and_std,
    welch,
    welch_from_summary,
)

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper"
LAST_DIGIT = 0.5e-4  # the paper prints four decimals

probabilities = st.floats(0.0, 1.0)
scores = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=20)


def published(observation: str) -> list[dict[str, Any]]:
    path = PAPER / f"cosine_{observation}.csv"
    if not path.is_file():
        pytest.skip(f"the paper's numbers are not at {path}")
    with path.open() as stream:
        return [{k: v if k == "environment" else float(v) for k, v in row.items()} for row in csv.DictReader(stream)]


def reachable_statistics(row: dict[str, Any], n1: int, n2: int) -> tuple[float, float]:
    """The least and the largest t of numbers that the paper would print as it printed these."""

    def statistic(towards: float) -> float:
        return welch_from_summary(
            row["allo_mean"] + towards * LAST_DIGIT,
            row["allo_std"] - towards * LAST_DIGIT,
            n1,
            row["ggdo_mean"] - towards * LAST_DIGIT,
            row["ggdo_std"] - towards * LAST_DIGIT,
            n2,
        ).statistic

    half_of_a_printed_unit = 0.5e-3
    return statistic(-1.0) - half_of_a_printed_unit, statistic(1.0) + half_of_a_printed_unit


def test_the_deviation_is_that_of_a_sample() -> None:
    values = [0.1, 0.5, 0.9, 0.4]
    found = mean_and_std(values)
    assert found.mean == pytest.approx(np.mean(values))
    assert found.std == pytest.approx(np.std(values, ddof=1))
    assert found.count == 4


def test_one_value_has_no_deviation_and_none_has_no_mean() -> None:
    one, none = mean_and_std([0.3]), mean_and_std([])
    assert (one.mean, one.count) == (0.3, 1)
    assert np.isnan(one.std)
    assert none.count == 0
    assert np.isnan([none.mean, none.std]).all()


def test_equal_values_have_no_deviation_at_all() -> None:
    found = mean_and_std([0.1] * 3)  # NumPy's deviation of these is 1.7e-17
    assert (found.mean, found.std) == (0.1, 0.0)


def test_welch_is_scipys() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.3, 1.0, 12), rng.normal(0.0, 2.0, 30)
    found = welch(first, second)
    wanted = stats.ttest_ind(first, second, equal_var=False, alternative="greater")
    assert found.statistic == pytest.approx(wanted.statistic)
    assert found.p_value == pytest.approx(wanted.pvalue)
    assert found.difference == pytest.approx(first.mean() - second.mean())
    assert found.standard_error == pytest.approx(np.sqrt(first.var(ddof=1) / 12 + second.var(ddof=1) / 30))


@given(scores, scores)
def test_welch_turns_its_sign_with_the_order(first: list[float], second: list[float]) -> None:
    one, other = welch(first, second), welch(second, first)
    np.testing.assert_allclose(
        [one.statistic, one.p_value, one.difference, one.standard_error],
        [-other.statistic, 1.0 - other.p_value, -other.difference, other.standard_error],
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("first", "second"), [([0.9], [0.5, 0.6]), ([0.9, 0.8], [0.5]), ([0.9], [0.5]), ([], [0.5, 0.6])]
)
def test_too_few_values_give_no_test(first: list[float], second: list[float]) -> None:
    found = welch(first, second)
    assert np.isnan([found.statistic, found.p_value, found.standard_error]).all()
    if first:
        assert found.difference == pytest.approx(np.mean(first) - np.mean(second))


def test_samples_that_do_not_vary_give_no_test_but_a_difference() -> None:
    found = welch([0.1] * 3, [0.3] * 5)
    assert np.isnan([found.statistic, found.p_value]).all()
    assert (found.difference, found.standard_error) == (pytest.approx(-0.2), 0.0)


def test_one_sample_that_does_not_vary_is_enough_for_a_test() -> None:
    found = welch([0.1] * 3, [0.3, 0.4, 0.5, 0.6])
    assert found.statistic == pytest.approx(stats.ttest_1samp([0.3, 0.4, 0.5, 0.6], 0.1).statistic * -1.0)


def test_the_papers_tests_on_coordinates_follow_from_its_means() -> None:
    for row in published("xy"):
        low, high = reachable_statistics(row, 60, 60)
        assert low <= row["t_statistic"] <= high, row["environment"]
        variances = np.array([row["allo_std"], row["ggdo_std"]]) ** 2
        degrees = 59 * variances.sum() ** 2 / (variances**2).sum()
        assert stats.t.sf(row["t_statistic"], degrees) == pytest.approx(row["p_value"], abs=1e-3)


def test_the_papers_tests_on_pixels_do_not_follow_from_the_sixty_seeds_of_its_table() -> None:
    # The caption of the table says 60 seeds, that of the figure beside it 50 to 60; the t statistics side with that.
    few = list(itertools.product(range(50, 61), repeat=2))
    unexplained = set()
    for row in published("pixels"):
        low, high = reachable_statistics(row, 60, 60)
        assert not low <= row["t_statistic"] <= high, row["environment"]
        ranges = [reachable_statistics(row, n1, n2) for n1, n2 in few]
        if not any(low <= row["t_statistic"] <= high for low, high in ranges):
            unexplained.add(row["environment"])
    assert unexplained == {"GridRoom-32"}  # and that by less than 0.0001 for 51 and 56 seeds


def test_holm_of_a_worked_example() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04, times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and the last is lifted to 0.06.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_holm_leaves_out_what_is_not_known() -> None:
    np.testing.assert_allclose(holm([np.nan, 0.01, 0.04, np.nan]), [np.nan, 0.02, 0.04, np.nan])
    assert np.isnan(holm([np.nan])).all()
    assert holm([]).shape == (0,)


@given(st.lists(probabilities, min_size=1, max_size=20))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(raw: list[float]) -> None:
    adjusted = holm(raw)
    assert (adjusted >= raw).all()
    assert (adjusted <= 1.0).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()
    assert adjusted.min() == pytest.approx(min(1.0, len(raw) * min(raw)))


def test_the_bootstrap_of_many_values_is_near_the_normal_interval() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, 400)
    low, high = bootstrap_interval(values)
    half = 1.96 * values.std(ddof=1) / 20.0
    assert (low, high) == (pytest.approx(values.mean() - half, abs=0.03), pytest.approx(values.mean() + half, abs=0.03))
    assert bootstrap_interval(values) == (low, high)
    assert bootstrap_interval(values, seed=1) != (low, high)


def test_the_bootstrap_of_one_value_or_of_equal_values() -> None:
    assert np.isnan(bootstrap_interval([0.3])).all()
    assert bootstrap_interval([0.25] * 7) == (0.25, 0.25)
    assert bootstrap_interval([0.1] * 3) == (pytest.approx(0.1), pytest.approx(0.1))
    low, high = bootstrap_interval([0.1, 0.1, np.nextafter(0.1, 1)])
    assert (low, high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_the_interquartile_mean_ignores_outliers() -> None:
    assert interquartile_mean([0.0, 0.4, 0.6, 1.0]) == interquartile_mean([-1e9, 0.4, 0.6, 1e9]) == 0.5
    assert interquartile_mean([0.7]) == 0.7
    assert np.isnan(interquartile_mean([]))


def test_aggregates_of_a_small_example_are_those_of_every_possible_draw() -> None:
    worlds = {"b": [0.0, 1.0], "a": [0.2, 0.4, 0.9], "c": [0.5, 0.6]}
    draws = [
        dict(zip(worlds, drawn, strict=True))
        for drawn in itertools.product(*(itertools.product(runs, repeat=len(runs)) for runs in worlds.values()))
    ]
    means = [[np.mean(runs) for runs in draw.values()] for draw in draws]
    every_mean = [np.mean(row) for row in means]
    every_median = [np.median(row) for row in means]
    every_trimmed = [stats.trim_mean(list(itertools.chain(*draw.values())), 0.25) for draw in draws]
    found = aggregate(worlds, resamples=20000)
    assert found.mean.value == pytest.approx(np.mean([0.5, 0.5, 0.55]))
    assert found.median.value == pytest.approx(0.5)
    assert found.interquartile_mean.value == pytest.approx(np.mean(sorted([0.0, 1.0, 0.2, 0.4, 0.9, 0.5, 0.6])[1:-1]))
    for estimate, every in (
        (found.mean, every_mean),
        (found.median, every_median),
        (found.interquartile_mean, every_trimmed),
    ):
        np.testing.assert_allclose(estimate[1:], np.quantile(every, [0.025, 0.975]), atol=0.02)


def test_aggregates_depend_on_the_seed_but_not_on_the_order_of_worlds() -> None:
    rng = np.random.default_rng(2)
    worlds = {name: rng.random(size) for name, size in (("a", 4), ("b", 9), ("c", 5))}
    found = aggregate(worlds)
    assert found == aggregate(dict(reversed(worlds.items())))
    assert found.mean.low != aggregate(worlds, seed=1).mean.low
    for estimate in (found.mean, found.median, found.interquartile_mean):
        assert estimate.low <= estimate.value <= estimate.high


def test_a_single_run_leaves_aggregates_without_intervals() -> None:
    found = aggregate({"a": [0.5], "b": [0.7, 0.9]})
    assert found.mean.value == pytest.approx(0.65)
    assert np.isnan([found.mean.low, found.median.high, found.interquartile_mean.low]).all()


def test_the_band_is_students_interval_at_each_point() -> None:
    curves = np.random.default_rng(3).normal(size=(8, 5))
    mean, low, high = confidence_band(curves)
    for point in range(5):
        wanted = stats.ttest_1samp(curves[:, point], 0.0).confidence_interval(0.95)
        np.testing.assert_allclose([low[point], high[point]], [wanted.low, wanted.high])
    np.testing.assert_allclose(mean, curves.mean(axis=0))


def test_the_band_of_one_run_is_the_run() -> None:
    for line in confidence_band([[0.1, 0.2, 0.3]]):
        np.testing.assert_array_equal(line, [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    "call",
    [
        lambda: mean_and_std([0.1, np.nan]),
        lambda: mean_and_std([[0.1], [0.2]]),
        lambda: aggregate({}),
        lambda: aggregate({"a": [1.0], "b": []}),
        lambda: aggregate({"a": [1.0, np.inf]}),
        lambda: confidence_band([1.0, 2.0]),
        lambda: confidence_band([[1.0], [np.nan]]),
    ],
)
def test_numbers_that_are_not_finite_or_missing_are_refused(call: Any) -> None:
    with pytest.raises(DataError):
        call()
