"""Lags between the states of a pair: geometric or mixed, infinite-horizon or inside episodes, and their f(P)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from lapwing.errors import ArgumentError, DataError

NEGLIGIBLE_PROBABILITY = 1e-18


@dataclass(frozen=True, eq=False)
class LagDistribution:
    """Probabilities of lags k >= 1, hence the operator ``f(P) = E[P^k]`` that training sees.

    Every f(P) shares the eigenvectors of P; its eigenvalues are ``f(mu)``, a rising function on [0, 1], so eigenvalues
    measured with f(P) lead back to mu and from there to any definition.

    Args:
        discounts: of the geometric distributions that are mixed.
        shares: of each in the mixture, summing to one.
        weights: (K,) probability of the lags 1 to K where they are finite; None for an infinite horizon.
    """

    discounts: tuple[float, ...]
    shares: tuple[float, ...]
    weights: NDArray[np.float64] | None = None

    def eigenvalues(self, one_minus_mu: "ArrayLike") -> NDArray[np.float64]:
        """``1 - f(mu)`` from ``1 - mu``, without loss of digits for small ones.

        Args:
            one_minus_mu: (...) eigenvalues of ``I - P``.

        Returns:
            (...) eigenvalues of ``I - f(P)``.
        """
        x = np.asarray(one_minus_mu, dtype=np.float64)
        if self.weights is None:
            pairs = zip(self.discounts, self.shares, strict=True)
            return sum((share * x / (1.0 - g + g * x) for g, share in pairs), start=np.zeros_like(x))
        lags = np.arange(1, len(self.weights) + 1)
        with np.errstate(divide="ignore"):
            logs = np.log1p(-np.minimum(x, 1.0))[..., None]
        powers = np.where(x[..., None] < 1.0, -np.expm1(lags * logs), 1.0 - (1.0 - x[..., None]) ** lags)
        return powers @ self.weights

    @property
    def largest_eigenvalue(self) -> float:
        """The largest that ``1 - f(mu)`` can be, for any mu from -1 to 1."""
        return float(self.eigenvalues(np.linspace(1.0, 2.0, 65)).max())

    def one_minus_mu(self, eigenvalues: "ArrayLike") -> NDArray[np.float64]:
        """``1 - mu`` from ``1 - f(mu)``: the inverse of :meth:`eigenvalues`, clipped to what f can reach.

        Args:
            eigenvalues: (...) eigenvalues of ``I - f(P)``.

        Returns:
            (...) eigenvalues of ``I - P``.
        """
        values = np.asarray(eigenvalues, dtype=np.float64)
        highest = 1.0 if self.weights is not None else 2.0
        top = float(self.eigenvalues(highest))
        flat = [
            0.0 if value <= 0.0 else highest if value >= top
            else float(brentq(lambda x, v=value: float(self.eigenvalues(x)) - v, 0.0, highest, xtol=1e-16, rtol=1e-13))
            for value in values.ravel()
        ]  # fmt: skip
        return np.array(flat).reshape(values.shape)

    def dense(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """f applied to a dense symmetric matrix: resolvents with an infinite horizon, else through its eigenvalues.

        Args:
            matrix: (n, n) symmetric.

        Returns:
            (n, n) symmetric.
        """
        if self.weights is not None:
            values, vectors = np.linalg.eigh(matrix)
            return (vectors * (1.0 - self.eigenvalues(1.0 - values))) @ vectors.T
        identity = np.eye(len(matrix))
        pairs = zip(self.discounts, self.shares, strict=True)
        # (1 - g) P (I - gP)^-1, and I - gP is positive definite.
        parts = [share * (1.0 - g) * cho_solve(cho_factor(identity - g * matrix), matrix) for g, share in pairs]
        total = np.sum(parts, axis=0)
        return (total + total.T) / 2.0

    def cut(self, tail: float, longest: int) -> "LagDistribution":
        """Infinite-horizon lags cut to finitely many and renormalised.

        Args:
            tail: probability that may be cut off.
            longest: lag at which to cut at the latest.

        Returns:
            A distribution with ``weights``.
        """
        lags = np.arange(1, longest + 1)
        shares = zip(self.discounts, self.shares, strict=True)
        weights = np.asarray(sum(share * (1.0 - g) * g ** (lags - 1.0) for g, share in shares))
        kept = weights[: int(np.searchsorted(np.cumsum(weights), 1.0 - tail)) + 1]
        return LagDistribution(self.discounts, self.shares, kept / kept.sum())


def geometric_lags(discounts: Sequence[float], shares: Sequence[float] | None = None) -> LagDistribution:
    """Geometric lags with an infinite horizon, of one discount or of a mixture of several.

    Args:
        discounts: each strictly between 0 and 1.
        shares: of each discount in the mixture; equal unless given.

    Returns:
        The distribution.

    Example:
        >>> geometric_lags([0.9]).eigenvalues(0.5).round(4)      # geometric(0.9)
        np.float64(0.9091)
    """
    checked = tuple(float(discount) for discount in discounts)
    if not checked or not all(0.0 < discount < 1.0 for discount in checked):
        raise ArgumentError(f"discounts lie strictly between 0 and 1, at least one of them; got {list(discounts)}")
    weights = np.full(len(checked), 1.0) if shares is None else np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(checked),) or (weights <= 0).any():
        raise ArgumentError(f"a mixture needs one positive share per discount, got {shares}")
    return LagDistribution(checked, tuple((weights / weights.sum()).tolist()))


def lags_inside_episodes(lags: LagDistribution, lengths: NDArray[np.int64], unbiased: bool) -> LagDistribution:
    """The distribution of geometric lags when pairs are drawn inside episodes of these lengths.

    Args:
        lags: the wanted distribution, with an infinite horizon.
        lengths: (episodes,) transitions in each.
        unbiased: False renormalises each lag to what is left of its episode (the paper's sampler), which favours short
            lags near the end; True keeps the geometric shape up to the longest episode, by drawing the lag first.

    Returns:
        A distribution with ``weights``.
    """
    at_least = states_with_steps_left(lengths)
    # Beyond the longest lag a geometric one has no probability left that a float would notice.
    longest = int(np.ceil(np.log(NEGLIGIBLE_PROBABILITY) / np.log(max(lags.discounts))))
    cut = min(len(at_least), longest)
    numbers = np.arange(1, cut + 1)
    exactly = at_least[:cut] - np.append(at_least[1:], 0)[:cut]
    beyond = at_least[cut] / at_least[0] if cut < len(at_least) else 0.0
    total = np.zeros(cut)
    for discount, share in zip(lags.discounts, lags.shares, strict=True):
        shape = (1.0 - discount) * discount ** (numbers - 1.0)
        if unbiased:
            total += share * shape / shape.sum()
        else:
            scale = exactly / (1.0 - discount**numbers) / at_least[0]
            total += share * shape * (np.cumsum(scale[::-1])[::-1] + beyond)
    return LagDistribution(lags.discounts, lags.shares, total)


def states_with_steps_left(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many states have at least k steps left in their episode, for k = 1, 2, ...

    Args:
        lengths: (episodes,) transitions in each.

    Returns:
        (longest,) counts.

    Example:
        >>> states_with_steps_left(np.array([1, 3]))
        array([4, 2, 1])
    """
    histogram = np.bincount(lengths)
    # An episode of T transitions has one state with exactly k steps left for each k <= T.
    with_k_left = np.cumsum(histogram[::-1])[::-1][1:]
    return np.cumsum(with_k_left[::-1])[::-1]


def states_by_steps_left(offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Steps left in each state's episode, and the states' positions, those with most steps left first.

    Args:
        offsets: (episodes + 1,) where episodes begin among the states.

    Returns:
        (states,) steps left, in four bytes each because there are as many as states; (states,) positions.

    Example:
        >>> left, order = states_by_steps_left(np.array([0, 2, 5]))
        >>> left, order
        (array([1, 0, 2, 1, 0], dtype=int32), array([2, 0, 3, 1, 4]))
    """
    if offsets[-1] > np.iinfo(np.int32).max:
        raise DataError(f"{offsets[-1]:,} states are more than can be sampled from; the limit is 2**31 - 1")
    left = np.repeat(np.asarray(offsets[1:], dtype=np.int32), np.diff(offsets))
    left -= np.arange(1, len(left) + 1, dtype=np.int32)
    return left, np.argsort(-left, kind="stable")
