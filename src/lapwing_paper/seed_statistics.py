"""Statistics over seeds and over worlds: means with their spread, tests, intervals, aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from lapwing.errors import DataError

TRIMMED_AT_EACH_END = 0.25


@dataclass(frozen=True)
class MeanStd:
    """The mean of a sample, its sample standard deviation, and how many values there were."""

    mean: float
    std: float
    count: int


@dataclass(frozen=True)
class Welch:
    """What Welch's test says of two samples.

    Attributes:
        statistic: t; NaN where a sample has fewer than two values or neither varies.
        p_value: of t under Student's distribution, NaN where t is.
        difference: the first mean less the second.
        standard_error: of that difference, ``sqrt(s1^2 / n1 + s2^2 / n2)``.
    """

    statistic: float
    p_value: float
    difference: float
    standard_error: float


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval; these are NaN where no interval can be given."""

    value: float
    low: float
    high: float


class Aggregate(NamedTuple):
    """Scores of many worlds in three numbers, each with its interval."""

    mean: Estimate
    median: Estimate
    interquartile_mean: Estimate


def mean_and_std(values: "ArrayLike") -> MeanStd:
    """Mean and sample standard deviation, as the paper prints them (paper, Tables 1-3).

    The deviation of one value is NaN; of none, the mean is NaN too.

    Args:
        values: (n,) finite numbers.

    Returns:
        Mean, standard deviation with n - 1, and n.

    Example:
        >>> mean_and_std([1.0, 2.0, 3.0])
        MeanStd(mean=2.0, std=1.0, count=3)
    """
    sample = _sample(values)
    if len(sample) == 0:
        return MeanStd(float("nan"), float("nan"), 0)
    if np.ptp(sample) == 0.0:
        # Rounding in the mean would give equal values a tiny deviation, and a test on them an enormous t.
        return MeanStd(float(sample[0]), 0.0 if len(sample) > 1 else float("nan"), len(sample))
    return MeanStd(float(sample.mean()), float(sample.std(ddof=1)), len(sample))


def welch(first: "ArrayLike", second: "ArrayLike") -> Welch:
    """Welch's one-sided t test whether the first of two samples has the larger mean (paper, Tables 1 and 2).

    Its standard error is the error bar of the paper's differences (paper, Figures 4A, 9 and 10).

    Args:
        first: values of one method, one per seed.
        second: values of the other; the numbers of seeds may differ.

    Returns:
        The statistic, its one-sided p value, the difference of the means and its standard error.

    Example:
        >>> result = welch([0.98, 0.99, 1.00], [0.90, 0.94, 0.95])
        >>> round(result.statistic, 3), round(result.p_value, 3), round(result.difference, 2)
        (3.674, 0.023, 0.06)
    """
    one, two = mean_and_std(first), mean_and_std(second)
    return welch_from_summary(one.mean, one.std, one.count, two.mean, two.std, two.count)


def welch_from_summary(
    mean1: float,
    std1: float,
    n1: int,
    mean2: float,
    std2: float,
    n2: int,
) -> Welch:
    """Welch's one-sided t test from means, sample standard deviations and numbers of seeds (paper, Tables 1 and 2).

    Args:
        mean1: of the first sample.
        std1: of the first sample.
        n1: size of the first sample.
        mean2: of the second sample.
        std2: of the second sample.
        n2: size of the second sample.

    Returns:
        See :func:`welch`.

    Example:
        >>> result = welch_from_summary(0.9989, 0.0006, 60, 0.9936, 0.0185, 60)
        >>> round(result.statistic, 3), round(result.p_value, 3)
        (2.218, 0.015)
    """
    difference = float(mean1 - mean2)
    if min(n1, n2) < 2:
        return Welch(float("nan"), float("nan"), difference, float("nan"))
    standard_error = float(np.hypot(std1 / np.sqrt(n1), std2 / np.sqrt(n2)))
    if not standard_error > 0.0:
        return Welch(float("nan"), float("nan"), difference, standard_error)
    test = stats.ttest_ind_from_stats(mean1, std1, n1, mean2, std2, n2, equal_var=False, alternative="greater")
    return Welch(float(test.statistic), float(test.pvalue), difference, standard_error)


def holm(p_values: "ArrayLike") -> NDArray[np.float64]:
    """P values adjusted for their number by Holm's step-down method.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none falls below one before it. NaN stays NaN
    and does not count among the m.

    Args:
        p_values: (m,) p values.

    Returns:
        (m,) adjusted p values.

    Example:
        >>> holm([0.01, 0.04, 0.03]).round(3)
        array([0.03, 0.06, 0.06])
    """
    raw = np.atleast_1d(np.asarray(p_values, dtype=np.float64))
    known = np.flatnonzero(~np.isnan(raw))
    order = known[np.argsort(raw[known], kind="stable")]
    adjusted = np.full(raw.shape, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(raw[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted


def bootstrap_interval(values: "ArrayLike", resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean of a sample; (NaN, NaN) for fewer than two values.

    Args:
        values: (n,) the sample.
        resamples: how many samples to draw from it.
        seed: of those draws.

    Returns:
        The ends of the interval.

    Example:
        >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0])
        >>> 1.0 < low < 2.5 < high < 4.0
        True
    """
    sample = _sample(values)
    if len(sample) < 2:
        return float("nan"), float("nan")
    if np.ptp(sample) == 0.0:
        return float(sample[0]), float(sample[0])
    interval = stats.bootstrap(
        (sample,),
        np.mean,
        n_resamples=resamples,
        method="percentile",
        # The older name of the argument: every SciPy that we allow knows it.
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    return float(interval.low), float(interval.high)


def interquartile_mean(values: "ArrayLike") -> float:
    """The mean without the lowest and the highest quarter of the values (Agarwal et al., 2021); NaN for none.

    Args:
        values: (n,) finite numbers.

    Returns:
        The trimmed mean.

    Example:
        >>> interquartile_mean([0.0, 1.0, 2.0, 1000.0])
        1.5
    """
    sample = _sample(values)
    return float(stats.trim_mean(sample, TRIMMED_AT_EACH_END)) if len(sample) else float("nan")


def aggregate(scores: "Mapping[str, ArrayLike]", seed: int = 0, resamples: int = 2000) -> Aggregate:
    """Scores of many worlds in three numbers with 95 % intervals (Agarwal et al., 2021).

    The mean and the median are over worlds, each world counting by the mean of its runs; the interquartile mean is
    over all runs together, so that a world with more runs counts for more. The intervals come from a stratified
    bootstrap: runs are drawn anew within each world, the worlds are kept. Where some world has a single run nothing
    is known of its spread, and the intervals are NaN.

    Args:
        scores: (runs,) scores by the name of the world; the numbers of runs may differ.
        seed: of the bootstrap.
        resamples: how many it draws.

    Returns:
        Mean, median and interquartile mean, each with its interval.

    Example:
        >>> summary = aggregate({"GridRoom-1": [0.9, 1.0], "GridMaze-7": [0.5, 0.7]})
        >>> [round(value, 3) for value in summary.mean]
        [0.775, 0.7, 0.85]
    """
    # Sorted, so that the draws do not depend on the order in which worlds were run.
    samples = [_sample(scores[world]) for world in sorted(scores)]
    if not samples or min(map(len, samples)) == 0:
        raise DataError("every world needs a score to aggregate")
    values = _aggregates([sample[None] for sample in samples])[:, 0]
    if min(map(len, samples)) < 2:
        low = high = np.full(len(values), np.nan)
    else:
        rng = np.random.default_rng(seed)
        drawn = [sample[rng.integers(len(sample), size=(resamples, len(sample)))] for sample in samples]
        low, high = np.quantile(_aggregates(drawn), [0.025, 0.975], axis=1)
    return Aggregate(*(Estimate(*map(float, ends)) for ends in zip(values, low, high, strict=True)))


def confidence_band(
    curves: "ArrayLike", level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean curve and its Student's t interval, the paper's shaded region (paper, Figures 1, 3 and 8).

    Args:
        curves: (runs, points).
        level: how often such intervals hold the true mean, point by point.

    Returns:
        (points,) mean, lower and upper end; all three are the same for a single run.

    Example:
        >>> mean, low, high = confidence_band([[0.0, 1.0], [0.0, 3.0]])
        >>> mean, (high - mean).round(2)
        (array([0., 2.]), array([ 0.  , 12.71]))
    """
    table = np.asarray(curves, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0 or not np.isfinite(table).all():
        raise DataError(f"curves must be finite numbers of shape (runs, points), at least one run; got {table.shape}")
    runs = len(table)
    mean = table.mean(axis=0)
    if runs == 1:
        return mean, mean.copy(), mean.copy()
    half = stats.t.ppf(0.5 + level / 2.0, runs - 1) * table.std(axis=0, ddof=1) / np.sqrt(runs)
    return mean, mean - half, mean + half


def _aggregates(samples: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """(3, draws): mean, median and interquartile mean of worlds given as (draws, runs) each."""
    means = np.stack([sample.mean(axis=1) for sample in samples], axis=1)
    pooled = np.concatenate(samples, axis=1)
    trimmed = stats.trim_mean(pooled, TRIMMED_AT_EACH_END, axis=1)
    return np.stack([means.mean(axis=1), np.median(means, axis=1), trimmed])


def _sample(values: ArrayLike) -> NDArray[np.float64]:
    sample = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if sample.ndim != 1 or not np.isfinite(sample).all():
        raise DataError("a sample is a flat list of finite numbers: leave failed runs out, and report that you did")
    return sample
