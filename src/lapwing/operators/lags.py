"""Gaps between the states of a pair: one discount or a mixture, endless or inside episodes, and what f(P) they make."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from lapwing.errors import LapwingError

LEAST_CHANCE = 1e-18


@dataclass(frozen=True, eq=False)
class GapDistribution:
    """Probabilities of gaps k >= 1, hence the operator ``f(P) = E[P^k]`` that training sees.

    Every f(P) shares the eigenvectors of P; its eigenvalues are ``f(mu)``, a rising function on [0, 1], so eigenvalues
    measured with f(P) lead back to mu and from there to any definition.

    Args:
        discounts: of the geometric distributions that are mixed.
        shares: of each in the mixture, summing to one.
        weights: (K,) probability of the gaps 1 to K where they are finite; None for endless episodes.
    """

    discounts: tuple[float, ...]
    shares: tuple[float, ...]
    weights: NDArray[np.float64] | None = None

    def one_minus(self, slowness: ArrayLike) -> NDArray[np.float64]:
        """``1 - f(mu)`` from ``1 - mu``, without loss of digits for small ones."""
        x = np.asarray(slowness, dtype=np.float64)
        if self.weights is None:
            pairs = zip(self.discounts, self.shares, strict=True)
            return sum((share * x / (1.0 - g + g * x) for g, share in pairs), start=np.zeros_like(x))
        gaps = np.arange(1, len(self.weights) + 1)
        with np.errstate(divide="ignore"):
            logs = np.log1p(-np.minimum(x, 1.0))[..., None]
        powers = np.where(x[..., None] < 1.0, -np.expm1(gaps * logs), 1.0 - (1.0 - x[..., None]) ** gaps)
        return powers @ self.weights

    @property
    def end_of_spectrum(self) -> float:
        """The largest that ``1 - f(mu)`` can be, for any mu from -1 to 1."""
        return float(self.one_minus(np.linspace(1.0, 2.0, 65)).max())

    def slowness(self, eigenvalues: ArrayLike) -> NDArray[np.float64]:
        """``1 - mu`` from ``1 - f(mu)``: the inverse of :meth:`one_minus`, clipped to what f can reach."""
        values = np.asarray(eigenvalues, dtype=np.float64)
        highest = 1.0 if self.weights is not None else 2.0
        top = float(self.one_minus(highest))
        flat = [
            0.0 if value <= 0.0 else highest if value >= top
            else float(brentq(lambda x, v=value: float(self.one_minus(x)) - v, 0.0, highest, xtol=1e-16, rtol=1e-13))
            for value in values.ravel()
        ]  # fmt: skip
        return np.array(flat).reshape(values.shape)

    def dense(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """f applied to a dense symmetric matrix: resolvents where gaps are endless, else through its eigenvalues."""
        if self.weights is not None:
            values, vectors = np.linalg.eigh(matrix)
            return (vectors * (1.0 - self.one_minus(1.0 - values))) @ vectors.T
        identity = np.eye(len(matrix))
        pairs = zip(self.discounts, self.shares, strict=True)
        # (1 - g) P (I - gP)^-1, and I - gP is positive definite.
        parts = [share * (1.0 - g) * cho_solve(cho_factor(identity - g * matrix), matrix) for g, share in pairs]
        total = np.sum(parts, axis=0)
        return (total + total.T) / 2.0


def endless_gaps(discounts: Sequence[float], shares: Sequence[float] | None = None) -> GapDistribution:
    """Geometric gaps in endless episodes, one discount or an equal mixture of several.

    Example:
        >>> endless_gaps([0.9]).one_minus(0.5).round(4)      # geometric(0.9)
        np.float64(0.9091)
    """
    checked = tuple(float(discount) for discount in discounts)
    if not checked or not all(0.0 < discount < 1.0 for discount in checked):
        raise LapwingError(f"discounts lie strictly between 0 and 1, at least one of them; got {list(discounts)}")
    weights = np.full(len(checked), 1.0) if shares is None else np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(checked),) or (weights <= 0).any():
        raise LapwingError(f"a mixture needs one positive share per discount, got {shares}")
    return GapDistribution(checked, tuple((weights / weights.sum()).tolist()))


def gaps_inside_episodes(gaps: GapDistribution, lengths: NDArray[np.int64], unbiased: bool) -> GapDistribution:
    """What becomes of geometric gaps when pairs are drawn inside episodes of these lengths.

    Args:
        gaps: the wanted, endless distribution.
        lengths: (episodes,) transitions in each.
        unbiased: False renormalises each gap to what is left of its episode (the paper's sampler), which favours short
            gaps near the end; True keeps the geometric shape up to the longest episode, by drawing the gap first.
    """
    # at_least[k - 1]: how many states have k or more steps left in their episode.
    at_least = fitting_starts(lengths)
    cut = min(len(at_least), _longest_gap(max(gaps.discounts)))
    numbers = np.arange(1, cut + 1)
    exactly = at_least[:cut] - np.append(at_least[1:], 0)[:cut]
    beyond = at_least[cut] / at_least[0] if cut < len(at_least) else 0.0
    total = np.zeros(cut)
    for discount, share in zip(gaps.discounts, gaps.shares, strict=True):
        shape = (1.0 - discount) * discount ** (numbers - 1.0)
        if unbiased:
            total += share * shape / shape.sum()
        else:
            scale = exactly / (1.0 - discount**numbers) / at_least[0]
            total += share * shape * (np.cumsum(scale[::-1])[::-1] + beyond)
    return GapDistribution(gaps.discounts, gaps.shares, total)


def _longest_gap(discount: float) -> int:
    """Where a geometric gap has no chance left that a float would notice: in an endless episode none is longer."""
    return int(np.ceil(np.log(LEAST_CHANCE) / np.log(discount)))


def fitting_starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """(longest,) how many states have at least k steps left in their episode, for k = 1, 2, ...

    Example:
        >>> fitting_starts(np.array([1, 3]))
        array([4, 2, 1])
    """
    histogram = np.bincount(lengths)
    # An episode of T transitions has one state with exactly k steps left for each k <= T.
    with_k_left = np.cumsum(histogram[::-1])[::-1][1:]
    return np.cumsum(with_k_left[::-1])[::-1]


def states_by_room(offsets: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """(states,) steps left in each state's episode, and the states' positions, those with most steps left first.

    Numbers of four bytes as far as can be: there are as many as states.

    Example:
        >>> left, order = states_by_room(np.array([0, 2, 5]))
        >>> left, order
        (array([1, 0, 2, 1, 0], dtype=int32), array([2, 0, 3, 1, 4]))
    """
    if offsets[-1] > np.iinfo(np.int32).max:
        raise LapwingError(f"{offsets[-1]:,} states are more than can be sampled from; the limit is 2**31 - 1")
    left = np.repeat(np.asarray(offsets[1:], dtype=np.int32), np.diff(offsets))
    left -= np.arange(1, len(left) + 1, dtype=np.int32)
    return left, np.argsort(-left, kind="stable")
