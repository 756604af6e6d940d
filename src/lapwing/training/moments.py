"""Second moments of learned components under the training operator: the input of read-out and refinement."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.data.trajectories import Trajectories
from lapwing.operators.lagged import ValuesAt
from lapwing.operators.lags import LagDistribution, lags_inside_episodes, states_by_steps_left, states_with_steps_left
from lapwing.operators.operator import Operator
from lapwing.training.batches import DENSE_STATES, dense_operator, sparse_operator

WALKS = 1 << 18
WALK_BLOCK = 1 << 14
QUICK_WALKS = 1 << 16


class Moments(NamedTuple):
    """``<u_j, u_k>``, ``<u_j, f(P) u_k>``, ``<f(P) u_j, f(P) u_k>``, each (d, d), float64, and the first once more.

    The third gives residuals without ground truth: ``|f(P)u - cu|^2 = square - 2 c cross + c^2 middle`` on the
    diagonals. ``middle`` is ``gram`` measured on the very states that ``square`` was, so that their noise cancels; it
    is the same where moments are exact.
    """

    gram: NDArray[np.float64]
    cross: NDArray[np.float64]
    square: NDArray[np.float64]
    middle: NDArray[np.float64]

    def rotated(self, matrix: NDArray[np.float64]) -> "Moments":
        """The moments of ``u @ matrix``.

        Args:
            matrix: (d, m).

        Returns:
            Moments of m components.
        """
        return Moments(*(matrix.T @ moment @ matrix for moment in self))


class MomentEstimator(Protocol):
    """Measures the moments of functions, a network's outputs, on the data that it was trained with."""

    lags: LagDistribution
    walks: int | None
    """How many random walks the moments are averages over; None where they are exact."""

    def moments(self, values_at: ValuesAt, quick: bool = False) -> Moments:
        """The second moments of the functions.

        Args:
            values_at: from rows of the observations to (n, d) values.
            quick: whether a rough estimate is enough.

        Returns:
            The moments.
        """
        ...

    def sample(self, values_at: ValuesAt) -> NDArray[np.float64]:
        """Values at some states, by which signs are fixed.

        Args:
            values_at: from rows of the observations to (n, d) values.

        Returns:
            (n, d) values.
        """
        ...


class TableMoments:
    """Exact moments over all states of an operator.

    Args:
        operator: the one-step operator.
        lags: with an infinite horizon.
        matrix: f(P) as :func:`lapwing.training.batches.dense_operator` gives it, where it is known already.

    Attributes:
        apply: from (n, d) values at all states to ``f(P)`` times them.
    """

    walks: int | None = None

    def __init__(self, operator: Operator, lags: LagDistribution, matrix: NDArray[np.float64] | None = None) -> None:
        """Prepare f(P): dense for small tables, sparse powers for large ones."""
        self.operator = operator
        if operator.num_states <= DENSE_STATES:
            dense = dense_operator(operator, lags) if matrix is None else matrix
            self.lags = lags
            self.apply: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda u: dense @ u
        else:
            self.lags, sparse = sparse_operator(operator, lags)
            weights = self.lags.weights
            assert weights is not None
            self.apply = lambda u: _horner(sparse, weights, u)

    def moments(self, values_at: ValuesAt, quick: bool = False) -> Moments:
        """Moments over all states, each with its weight; no faster way is known.

        Args:
            values_at: from numbers of states to (n, d) values.
            quick: makes no difference.

        Returns:
            Exact moments.
        """
        values = self.sample(values_at)
        moved = self.apply(values)
        rho = self.operator.rho[:, None]
        gram, cross = values.T @ (rho * values), values.T @ (rho * moved)
        return Moments(gram, (cross + cross.T) / 2.0, moved.T @ (rho * moved), gram)

    def sample(self, values_at: ValuesAt) -> NDArray[np.float64]:
        """The values at all states.

        Args:
            values_at: from numbers of states to (n, d) values.

        Returns:
            (n, d) values.
        """
        return np.asarray(values_at(np.arange(self.operator.num_states)), dtype=np.float64)


class WalkMoments:
    """Moments estimated from states some lags apart, for observations that hardly repeat.

    Three states of an episode, a lag between each two, give all moments at once. f(P) applied twice needs no model: for
    reversible dynamics the past and the future of the middle state m are two independent draws from f(P)(m, .), so
    ``E[u(before) u(after)] = <f(P)u, f(P)u>``, and with the middle's own norm |f(P)u - cu|^2 is the mean of
    ``(u(before) - c u(m)) (u(after) - c u(m))``, which has little noise where c is near 1. Lags are kept to a quarter
    of the longest episode, so that two of them fit and none is favoured by an end; this f is not the training
    operator's, but it has the same eigenvectors.

    Args:
        data: the experience.
        lags: with an infinite horizon.
        walks: how many to draw.
        quick_walks: how many are enough for a rough estimate.
        seed: of the drawing.
    """

    def __init__(
        self,
        data: Trajectories,
        lags: LagDistribution,
        walks: int = WALKS,
        quick_walks: int = QUICK_WALKS,
        seed: int = 0,
    ) -> None:
        """Draw the states once, so that every estimate is over the same ones."""
        longest = int(data.lengths.max())
        self.lags = lags_inside_episodes(lags, np.array([max(1, longest // 4)]), unbiased=True)
        self.walks: int | None = walks
        self._quick_walks = min(quick_walks, walks)
        self._walks = draw_walks(data, self.lags, walks, min(longest, 2), np.random.default_rng(seed))

    def moments(self, values_at: ValuesAt, quick: bool = False) -> Moments:
        """Moments over the walks; both ends of a lag count alike, so that every moment is symmetric.

        Args:
            values_at: from rows of the data's observations to (n, d) values.
            quick: take fewer walks.

        Returns:
            Estimated moments.
        """
        count = self._quick_walks if quick else self._walks.shape[1]
        sums: Any = 0.0
        for begin in range(0, count, WALK_BLOCK):
            states = [values_at(rows[begin : min(begin + WALK_BLOCK, count)]) for rows in self._walks]
            sums = sums + np.array(_sums_over_walks(states))
        return Moments(*(sums / count))

    def sample(self, values_at: ValuesAt) -> NDArray[np.float64]:
        """The values at some states.

        Args:
            values_at: from rows of the data's observations to (n, d) values.

        Returns:
            (n, d) values.
        """
        return np.asarray(values_at(self._walks[0, :WALK_BLOCK]), dtype=np.float64)


def _sums_over_walks(states: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], ...]:
    """Sums over walks of the four moments' terms; walks of a single lag have no square, which is NaN then."""
    first, last = states[0], states[-1]
    ends = first.T @ first + last.T @ last
    across = (first.T @ last + last.T @ first) / 2.0
    if len(states) == 2:
        return ends / 2.0, across, np.full_like(across, np.nan), ends / 2.0
    middle = states[1].T @ states[1]
    steps = states[1].T @ (first + last)
    return (ends + 2.0 * middle) / 4.0, (steps + steps.T) / 4.0, across, middle


def draw_walks(
    data: Trajectories, lags: LagDistribution, count: int, legs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Rows of states some independent lags apart, each start uniform among those where they fit.

    Lags are drawn first, so that none is favoured for being short; all of them together must fit the longest episode.

    Args:
        data: the experience.
        lags: with weights.
        count: how many walks.
        legs: lags per walk.
        rng: random numbers.

    Returns:
        (legs + 1, count) rows of ``data.observations``.
    """
    assert lags.weights is not None
    by_steps_left = states_by_steps_left(np.asarray(data.offsets))[1]
    drawn = rng.choice(len(lags.weights), size=(legs, count), p=lags.weights) + 1
    fitting = states_with_steps_left(data.lengths)[drawn.sum(axis=0) - 1]
    start = by_steps_left[(rng.random(count) * fitting).astype(np.int64)]
    positions = start + np.concatenate([np.zeros((1, count), dtype=np.int64), np.cumsum(drawn, axis=0)])
    return np.stack([data.rows(row) for row in positions])


def _horner(matrix: csr_array, weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros_like(values)
    for weight in weights[::-1]:
        total = matrix @ (total + weight * values)
    return total
