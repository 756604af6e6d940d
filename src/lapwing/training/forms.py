"""Quadratic forms of learned components under the training operator: all that judging and refining them needs."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.data.trajectories import Trajectories
from lapwing.operators.lags import GapDistribution, fitting_starts, gaps_inside_episodes, states_by_room
from lapwing.operators.operator import Operator
from lapwing.training.exact_batches import DENSE_STATES, dense_operator, sparse_operator

Encode = Callable[[NDArray[Any]], NDArray[Any]]

WALKS = 1 << 18
WALK_BLOCK = 1 << 14
QUICK_WALKS = 1 << 16


class Forms(NamedTuple):
    """``<u_j, u_k>``, ``<u_j, f(P) u_k>``, ``<f(P) u_j, f(P) u_k>``, each (d, d), float64, and the first once more.

    The third gives residuals without a truth: ``|f(P)u - cu|^2 = square - 2 c cross + c^2 middle`` on the diagonals.
    ``middle`` is ``gram`` measured on the very states that ``square`` was, so that their noise cancels; it is the same
    where forms are exact.
    """

    gram: NDArray[np.float64]
    cross: NDArray[np.float64]
    square: NDArray[np.float64]
    middle: NDArray[np.float64]

    def rotated(self, matrix: NDArray[np.float64]) -> "Forms":
        """The forms of ``u @ matrix``."""
        return Forms(*(matrix.T @ form @ matrix for form in self))


class Judge(Protocol):
    """Measures the forms of an encoder on the data it was trained with."""

    gaps: GapDistribution
    walks: int | None
    """How many random walks the forms are averages over; None where they are exact."""

    def forms(self, encode: Encode, quick: bool = False) -> Forms:
        """The quadratic forms of the encoder's components; ``quick`` where a glance will do."""
        ...

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """(n, d) values by which signs are fixed."""
        ...


class TableJudge:
    """Exact forms over all states of an operator."""

    walks: int | None = None

    def __init__(self, operator: Operator, gaps: GapDistribution, matrix: NDArray[np.float64] | None = None) -> None:
        """Prepare f(P): dense for small tables (``matrix``, where known already), sparse powers for large ones."""
        self.operator = operator
        if operator.num_states <= DENSE_STATES:
            dense = dense_operator(operator, gaps) if matrix is None else matrix
            self.gaps = gaps
            self._apply: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda u: dense @ u
        else:
            self.gaps, sparse = sparse_operator(operator, gaps)
            weights = self.gaps.weights
            assert weights is not None
            self._apply = lambda u: _horner(sparse, weights, u)

    def forms(self, encode: Encode, quick: bool = False) -> Forms:
        """All states, each with its weight; there is no quicker way."""
        values = self.sample(encode)
        moved = self._apply(values)
        rho = self.operator.rho[:, None]
        gram, cross = values.T @ (rho * values), values.T @ (rho * moved)
        return Forms(gram, (cross + cross.T) / 2.0, moved.T @ (rho * moved), gram)

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """The values at all states."""
        return np.asarray(encode(self.operator.observations), dtype=np.float64)


class PairJudge:
    """Forms estimated from states some gaps apart, for observations that hardly repeat.

    Three states of an episode, a gap between each two, give all forms at once. f(P) applied twice needs no model: for
    reversible dynamics the past and the future of the middle state m are two independent draws from f(P)(m, .), so
    ``E[u(before) u(after)] = <f(P)u, f(P)u>``, and with the middle's own norm |f(P)u - cu|^2 is the mean of
    ``(u(before) - c u(m)) (u(after) - c u(m))``, which has little noise where c is near 1. Gaps are kept to a quarter
    of the longest episode, so that two of them fit and none is favoured by an end; this f is not the training
    operator's, but it has the same eigenvectors.
    """

    def __init__(self, data: Trajectories, gaps: GapDistribution, walks: int = WALKS, seed: int = 0) -> None:
        """Draw the states once, so that every judgement is of the same ones."""
        longest = int(data.lengths.max())
        self.gaps = gaps_inside_episodes(gaps, np.array([max(1, longest // 4)]), unbiased=True)
        self.walks: int | None = walks
        self._observations = data.observations
        self._walks = draw_walks(data, self.gaps, walks, min(longest, 2), np.random.default_rng(seed))

    def forms(self, encode: Encode, quick: bool = False) -> Forms:
        """Both ends of a gap count alike, so that every form is symmetric; a glance takes fewer walks."""
        count = min(QUICK_WALKS, self._walks.shape[1]) if quick else self._walks.shape[1]
        sums: Any = 0.0
        for begin in range(0, count, WALK_BLOCK):
            states = [self._values(encode, rows[begin : begin + WALK_BLOCK]) for rows in self._walks]
            sums = sums + np.array(_walk_moments(states))
        return Forms(*(sums / count))

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """The values at some states."""
        return self._values(encode, self._walks[0, :WALK_BLOCK])

    def _values(self, encode: Encode, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(encode(np.asarray(self._observations[rows])), dtype=np.float64)


def _walk_moments(states: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """Sums over walks of the four forms' terms; of walks of a single gap there is no square, and NaN says so."""
    first, last = states[0], states[-1]
    ends = first.T @ first + last.T @ last
    across = (first.T @ last + last.T @ first) / 2.0
    if len(states) == 2:
        return ends / 2.0, across, np.full_like(across, np.nan), ends / 2.0
    middle = states[1].T @ states[1]
    steps = states[1].T @ (first + last)
    return (ends + 2.0 * middle) / 4.0, (steps + steps.T) / 4.0, across, middle


def draw_walks(
    data: Trajectories, gaps: GapDistribution, count: int, legs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(legs + 1, count) rows of states ``legs`` independent gaps apart, each start uniform among those where they fit.

    Gaps are drawn first, so that none is favoured for being short; all of them together must fit the longest episode.
    """
    assert gaps.weights is not None
    by_room = states_by_room(np.asarray(data.offsets))[1]
    drawn = rng.choice(len(gaps.weights), size=(legs, count), p=gaps.weights) + 1
    fitting = fitting_starts(data.lengths)[drawn.sum(axis=0) - 1]
    start = by_room[(rng.random(count) * fitting).astype(np.int64)]
    positions = start + np.concatenate([np.zeros((1, count), dtype=np.int64), np.cumsum(drawn, axis=0)])
    return np.stack([data.rows(row) for row in positions])


def _horner(matrix: csr_array, weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros_like(values)
    for weight in weights[::-1]:
        total = matrix @ (total + weight * values)
    return total
