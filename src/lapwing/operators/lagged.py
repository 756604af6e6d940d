"""Lagged covariances of functions along trajectories, and the eigenvalues they give free of fast modes."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.operators.ritz import ritz_from_forms

CHUNK_STATES = 1 << 15
LONGEST_LAG = 8
# Directions of C(t0) below this share of the largest are noise, with which the problem would be ill-conditioned.
NOISE_SHARE = 1e-3

ValuesAt = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""From rows of ``data.observations`` to (n, m) values of functions."""


class LaggedMoments(NamedTuple):
    """Means over all pairs of states ``lag`` steps apart in one episode.

    Attributes:
        products: (lags, m, m) ``C(k) = E[u(s_t) u(s_t+k)^T]``, not symmetrised.
        grams: (lags, m, m) ``E[u u^T]`` over both ends of the same pairs, so that noise common to both cancels.
    """

    products: NDArray[np.float64]
    grams: NDArray[np.float64]


def lagged_moments(values_at: ValuesAt, data: Trajectories, lags: Sequence[int]) -> LaggedMoments:
    """Lagged covariances over all the data, a chunk at a time.

    Args:
        values_at: from rows of ``data.observations`` to (n, m) values; asked once for each state and a few more.
        data: the trajectories.
        lags: each at least 0.

    Returns:
        The moments; NaN at a lag that no episode has.
    """
    totals = [_Sums(0.0, 0.0, 0) for _ in lags]
    for values, begin, end in _chunks(values_at, data, max(lags)):
        left = data.steps_left(begin, end)
        for number, lag in enumerate(lags):
            here = np.flatnonzero(left >= lag)
            totals[number] = totals[number].plus(values[here], values[here + lag])
    with np.errstate(invalid="ignore"):
        means = [(np.divide(one.products, one.pairs), np.divide(one.grams, one.pairs)) for one in totals]
    return LaggedMoments(np.array([mean[0] for mean in means]), np.array([mean[1] for mean in means]))


class _Sums(NamedTuple):
    products: NDArray[np.float64] | float
    grams: NDArray[np.float64] | float
    pairs: int

    def plus(self, before: NDArray[np.float64], after: NDArray[np.float64]) -> "_Sums":
        ends = (before.T @ before + after.T @ after) / 2.0
        return _Sums(self.products + before.T @ after, self.grams + ends, self.pairs + len(before))


def _chunks(values_at: ValuesAt, data: Trajectories, longest: int) -> Iterator[tuple[NDArray[np.float64], int, int]]:
    """Values at states ``begin`` to ``end`` and ``longest`` beyond, as far as there are any."""
    for begin in range(0, data.num_states, CHUNK_STATES):
        end = min(begin + CHUNK_STATES, data.num_states)
        positions = np.arange(begin, min(end + longest, data.num_states))
        yield np.asarray(values_at(data.rows(positions)), dtype=np.float64), begin, end


def lag_pair(lengths: NDArray[np.int64]) -> tuple[int, int]:
    """The lags (t0, t) at which eigenvalues are read: t0 long enough for noise to decay, t twice that.

    Args:
        lengths: (episodes,) transitions in each.

    Returns:
        (4, 8) where a typical transition lies in an episode of 32 steps or more, less in shorter ones, where few pairs
        would be left; (0, 1) in the shortest.
    """
    typical = float(np.average(lengths, weights=lengths))
    half = min(LONGEST_LAG, int(typical) // 4) // 2
    return (half, 2 * half) if half else (0, 1)


def lagged_eigenvalues(moments: LaggedMoments, pair: tuple[int, int]) -> NDArray[np.float64]:
    """One-step eigenvalues from ``C(t) v = w C(t0) v``, ``mu = w^(1 / (t - t0))`` (Luescher and Wolff, 1990).

    With t0 > 0, whatever the functions have in fast modes has decayed on both sides and cancels: roughness of a
    network, noise of observations. The Rayleigh quotient of one step counts it in full. Holds for reversible dynamics.

    Args:
        moments: of m functions at the lags of ``pair``; with t0 = 0, at the lag t alone.
        pair: (t0, t).

    Returns:
        (r,) eigenvalues mu in [0, 1], largest first; r < m where directions are lost in noise.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("Box-1", 20_000, seed=0)
        >>> rough = lambda rows: np.cos(np.pi * (data.observations[rows] + 0.5)) + np.sin(97 * data.observations[rows])
        >>> both = lagged_moments(rough, data, (1, 4, 8))
        >>> quotient = lagged_eigenvalues(LaggedMoments(both.products[:1], both.grams[:1]), (0, 1))
        >>> lagged = lagged_eigenvalues(LaggedMoments(both.products[1:], both.grams[1:]), (4, 8))
        >>> truth = lw.solve("Box-1", dim=2).mu[1]
        >>> bool(abs(lagged[0] - truth) < 0.002 < 0.1 < abs(quotient[0] - truth))
        True
    """
    first, last = pair
    base = (moments.products[0] + moments.products[0].T) / 2.0 if first else moments.grams[0]
    # What has decayed into noise by t0, down to a negative mean square, says nothing.
    kept = np.diag(base) > NOISE_SHARE * np.diag(moments.grams[0])
    if not kept.any():
        return np.zeros(0)
    found = ritz_from_forms(base[np.ix_(kept, kept)], moments.products[-1][np.ix_(kept, kept)], NOISE_SHARE).mu
    mu: NDArray[np.float64] = np.clip(found, 0.0, 1.0) ** (1.0 / (last - first))
    return mu
