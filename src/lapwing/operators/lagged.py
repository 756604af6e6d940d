"""Lagged covariances of functions along trajectories, and the eigenvalues they give free of fast modes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.operators.ritz import ritz_from_forms

CHUNK_STATES = 1 << 15
LONGEST_LAG = 8
# Directions of C(t0) below this share of the largest are noise, with which the problem would be ill-conditioned.
NOISE_SHARE = 1e-3
# Standard errors by which the covariance of a function with itself at the longer lag must exceed noise.
SIGNIFICANCE = 10.0
# Standard errors within which two estimates of an eigenvalue agree.
AGREEMENT = 2.0

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

    def without_constant(self) -> "LaggedMoments":
        """The moments of all functions but the first, which is 1, less their means over the same pairs.

        Returns:
            Symmetrised moments of m - 1 functions.
        """
        products = (self.products + self.products.transpose(0, 2, 1)) / 2.0
        means = products[:, 0, 1:]
        squares = means[:, :, None] * means[:, None, :]
        return LaggedMoments(products[:, 1:, 1:] - squares, self.grams[:, 1:, 1:] - squares)

    def of(self, functions: NDArray[np.bool_]) -> "LaggedMoments":
        """The moments of some of the functions.

        Args:
            functions: (m,) which.

        Returns:
            Moments of fewer functions.
        """
        return LaggedMoments(*(part[:, functions][:, :, functions] for part in self))


class LaggedSums(NamedTuple):
    """Sums over the pairs that begin in each of some blocks of the data, from which moments are made.

    Attributes:
        products: (blocks, lags, m, m).
        grams: (blocks, lags, m, m).
        pairs: (blocks, lags) how many.
    """

    products: NDArray[np.float64]
    grams: NDArray[np.float64]
    pairs: NDArray[np.int64]

    def moments(self, without: int | None = None) -> LaggedMoments:
        """Means over all blocks, or over all but one.

        Args:
            without: the block to leave out.

        Returns:
            The moments; NaN at a lag that no episode has.
        """
        kept = np.arange(len(self.pairs)) != (-1 if without is None else without)
        pairs = self.pairs[kept].sum(axis=0)[:, None, None]
        with np.errstate(invalid="ignore"):
            return LaggedMoments(self.products[kept].sum(axis=0) / pairs, self.grams[kept].sum(axis=0) / pairs)

    def block(self, number: int) -> LaggedMoments:
        """Means over one block.

        Args:
            number: of the block.

        Returns:
            The moments; NaN at a lag that no episode has.
        """
        one = slice(number, number + 1)
        return LaggedSums(self.products[one], self.grams[one], self.pairs[one]).moments()

    def only(self, lags: Sequence[int]) -> "LaggedSums":
        """The sums of some of the lags.

        Args:
            lags: their numbers, counted from 0.

        Returns:
            Fewer sums.
        """
        return LaggedSums(self.products[:, lags], self.grams[:, lags], self.pairs[:, lags])


def lagged_moments(values_at: ValuesAt, data: Trajectories, lags: Sequence[int]) -> LaggedMoments:
    """Lagged covariances over all the data, a chunk at a time.

    Args:
        values_at: from rows of ``data.observations`` to (n, m) values; asked once for each state and a few more.
        data: the trajectories.
        lags: each at least 0.

    Returns:
        The moments; NaN at a lag that no episode has.
    """
    return lagged_sums(values_at, data, lags).moments()


def lagged_sums(values_at: ValuesAt, data: Trajectories, lags: Sequence[int], blocks: int = 1) -> LaggedSums:
    """What :func:`lagged_moments` is made of, for consecutive blocks of the data each.

    Args:
        values_at: as in :func:`lagged_moments`.
        data: the trajectories.
        lags: each at least 0.
        blocks: how many.

    Returns:
        The sums; of fewer blocks where there are fewer states.
    """
    chunks = -(-data.num_states // (blocks * CHUNK_STATES))
    size = -(-data.num_states // (blocks * chunks))
    found: list[list[NDArray[Any]]] = []
    for number, begin in enumerate(range(0, data.num_states, size)):
        end = min(begin + size, data.num_states)
        positions = np.arange(begin, min(end + max(lags), data.num_states))
        values = np.asarray(values_at(data.rows(positions)), dtype=np.float64)
        left = data.steps_left(begin, end)
        sums = [_pair_sums(values, np.flatnonzero(left >= lag), lag) for lag in lags]
        part = [np.array([one[column] for one in sums]) for column in range(3)]
        if number % chunks:
            # In place: sums of hundreds of functions are large.
            for total, more in zip(found[-1], part, strict=True):
                np.add(total, more, out=total)
        else:
            found.append(part)
    return LaggedSums(*(np.stack(parts) for parts in zip(*found, strict=True)))


def _pair_sums(
    values: NDArray[np.float64], here: NDArray[np.int64], lag: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    before, after = values[here], values[here + lag]
    return before.T @ after, (before.T @ before + after.T @ after) / 2.0, len(here)


class EigenvalueEstimate(NamedTuple):
    """Eigenvalues estimated from data in one way.

    Attributes:
        mu: (m,) one-step eigenvalues, largest first; NaN where they are lost in noise.
        errors: (m,) their standard errors.
    """

    mu: NDArray[np.float64]
    errors: NDArray[np.float64]


def estimate_eigenvalues(sums: LaggedSums, pair: tuple[int, int], constant: bool) -> EigenvalueEstimate:
    """Eigenvalues at a pair of lags, with standard errors by the jackknife over blocks.

    Args:
        sums: of m functions at the lags of ``pair``; with t0 = 0, at the lag t alone.
        pair: (t0, t), as in :func:`lagged_eigenvalues`.
        constant: whether the first function is 1, whose eigenvalue is known.

    Returns:
        (m,) eigenvalues and errors.
    """
    dim, blocks = sums.products.shape[-1], len(sums.pairs)
    moments = [sums.moments(block) for block in (None, *range(blocks))]
    if constant:
        moments = [one.without_constant() for one in moments]
    if pair[0]:
        # In a function that has decayed, noise over noise would pass for the slowest of all eigenvalues.
        covariances = [np.diag(one.products[-1]) for one in moments]
        clear = covariances[0] > SIGNIFICANCE * _jackknife_errors(np.array(covariances[1:]))
        moments = [one.of(clear) for one in moments]
    found = np.full((1 + blocks, dim), np.nan)
    for row, one in zip(found, moments, strict=True):
        mu = lagged_eigenvalues(one, pair)
        row[: constant + len(mu)] = np.append(1.0, mu) if constant else mu
    errors = _jackknife_errors(found[1:])
    # What is lost where one block is left out is as good as lost.
    return EigenvalueEstimate(np.where(np.isfinite(errors), found[0], np.nan), errors)


def _jackknife_errors(without: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) standard errors from the (blocks, m) estimates that leave out one block each."""
    spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(spread * (1.0 - 1.0 / len(without))))


def consistent_estimate(estimates: Sequence[EigenvalueEstimate]) -> EigenvalueEstimate:
    """For each component the first estimate that agrees with the last in which it is not lost in noise.

    Short lags have little noise, long ones little bias. An estimate whose distance from that of the longest lags is no
    more than the latter's noise explains is taken; the distance is a part of its error.

    Args:
        estimates: from the shortest lags to the longest.

    Returns:
        (m,) eigenvalues, largest first, and errors.
    """
    mu, errors = estimates[-1].mu.copy(), estimates[-1].errors.copy()
    longest = EigenvalueEstimate(mu.copy(), errors.copy())
    for one in reversed(estimates[:-1]):
        lost = ~np.isfinite(longest.mu)
        longest = EigenvalueEstimate(*(np.where(lost, new, old) for new, old in zip(one, longest, strict=True)))
        distance = np.abs(one.mu - longest.mu)
        agrees = distance <= AGREEMENT * longest.errors
        mu = np.where(lost | agrees, one.mu, mu)
        errors = np.where(lost | agrees, np.hypot(one.errors, distance), errors)
    order = np.argsort(-np.where(np.isfinite(mu), mu, -np.inf), kind="stable")
    return EigenvalueEstimate(mu[order], errors[order])


def lag_pair(lengths: NDArray[np.int64]) -> tuple[int, int]:
    """The lags (t0, t) at which eigenvalues are estimated: t0 long enough for noise to decay, t twice that.

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
