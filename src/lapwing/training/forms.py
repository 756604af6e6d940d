"""Quadratic forms of learned components under the training operator: all that judging and refining them needs."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.batches.exact import DENSE_STATES, dense_operator, sparse_operator
from lapwing.batches.gaps import GapDistribution, gaps_inside_episodes
from lapwing.spectral.operators import Operator
from lapwing.trajectories.container import Trajectories

Encode = Callable[[NDArray[Any]], NDArray[Any]]

PAIRS = 1 << 18
PAIR_BLOCK = 1 << 14
MAX_REDRAWS = 1000


class Forms(NamedTuple):
    """``<u_j, u_k>``, ``<u_j, f(P) u_k>`` and ``<f(P) u_j, f(P) u_k>``, each (d, d), float64.

    The last gives residuals without a truth: for a unit u with Rayleigh quotient c, |f(P)u - cu|^2 is its diagonal
    less c^2.
    """

    gram: NDArray[np.float64]
    cross: NDArray[np.float64]
    square: NDArray[np.float64]

    def rotated(self, matrix: NDArray[np.float64]) -> "Forms":
        """The forms of ``u @ matrix``."""
        return Forms(*(matrix.T @ form @ matrix for form in self))


class Judge(Protocol):
    """Measures the forms of an encoder on the data it was trained with."""

    gaps: GapDistribution

    def forms(self, encode: Encode) -> Forms:
        """The quadratic forms of the encoder's components."""
        ...

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """(n, d) values by which signs are fixed."""
        ...


class TableJudge:
    """Exact forms over all states of an operator."""

    def __init__(self, operator: Operator, gaps: GapDistribution) -> None:
        """Prepare f(P): dense for small tables, sparse powers for large ones."""
        self.operator = operator
        if operator.num_states <= DENSE_STATES:
            matrix = dense_operator(operator, gaps)
            self.gaps = gaps
            self._apply: Callable[[NDArray[np.float64]], NDArray[np.float64]] = lambda u: matrix @ u
        else:
            self.gaps, sparse = sparse_operator(operator, gaps)
            weights = self.gaps.weights
            assert weights is not None
            self._apply = lambda u: _horner(sparse, weights, u)

    def forms(self, encode: Encode) -> Forms:
        """All states, each with its weight."""
        values = self.sample(encode)
        moved = self._apply(values)
        rho = self.operator.rho[:, None]
        cross = values.T @ (rho * moved)
        return Forms(values.T @ (rho * values), (cross + cross.T) / 2.0, moved.T @ (rho * moved))

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """The values at all states."""
        return np.asarray(encode(self.operator.observations), dtype=np.float64)


class PairJudge:
    """Forms estimated from pairs of states, for observations that hardly repeat.

    f(P) applied twice needs no model: for reversible dynamics <f(P)u, f(P)v> = <u, f(P)^2 v>, whose pairs are two gaps
    apart. Gaps are kept to a quarter of the longest episode, so that two of them fit and none is favoured by an end;
    this f is not the training operator's, but it has the same eigenvectors.
    """

    def __init__(self, data: Trajectories, gaps: GapDistribution, pairs: int = PAIRS, seed: int = 0) -> None:
        """Draw the pairs once, so that every judgement is of the same ones."""
        longest = int(data.lengths.max())
        self.gaps = gaps_inside_episodes(gaps, np.array([max(1, longest // 4)]), unbiased=True)
        self._observations = data.observations
        rng = np.random.default_rng(seed)
        self._one = draw_pairs_at_gaps(data, self.gaps, pairs, 1, rng)
        self._two = draw_pairs_at_gaps(data, self.gaps, pairs, 2, rng) if longest > 1 else None

    def forms(self, encode: Encode) -> Forms:
        """Both ends of a pair count alike, so that every form is symmetric."""
        gram, cross = self._moments(encode, self._one)
        square = np.full_like(cross, np.inf) if self._two is None else self._moments(encode, self._two)[1]
        return Forms(gram, cross, square)

    def sample(self, encode: Encode) -> NDArray[np.float64]:
        """The values at some states."""
        return np.asarray(encode(np.asarray(self._observations[self._one[0][:PAIR_BLOCK]])), dtype=np.float64)

    def _moments(
        self, encode: Encode, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram: Any = 0.0
        cross: Any = 0.0
        for begin in range(0, len(pairs[0]), PAIR_BLOCK):
            before, after = (
                np.asarray(encode(np.asarray(self._observations[rows[begin : begin + PAIR_BLOCK]])), dtype=np.float64)
                for rows in pairs
            )
            gram = gram + (before.T @ before + after.T @ after) / 2.0
            cross = cross + (before.T @ after + after.T @ before) / 2.0
        return gram / len(pairs[0]), cross / len(pairs[0])


def draw_pairs_at_gaps(
    data: Trajectories, gaps: GapDistribution, count: int, times: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of pairs whose gap is the sum of ``times`` draws, each start uniform among those where the gap fits."""
    assert gaps.weights is not None
    starts = np.concatenate(list(data.pair_positions(1)))
    ends = np.repeat(np.asarray(data.offsets[1:]), np.diff(data.offsets))
    choices = rng.choice(len(gaps.weights), size=(times, count), p=gaps.weights) + 1
    gap = np.minimum(choices.sum(axis=0), int(data.lengths.max()))
    chosen = starts[rng.integers(len(starts), size=count)]
    for _ in range(MAX_REDRAWS):
        misfit = np.flatnonzero(chosen + gap >= ends[chosen])
        if not len(misfit):
            break
        chosen[misfit] = starts[rng.integers(len(starts), size=len(misfit))]
    fits = chosen + gap < ends[chosen]
    return data.rows(chosen[fits]), data.rows((chosen + gap)[fits])


def _horner(matrix: csr_array, weights: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.zeros_like(values)
    for weight in weights[::-1]:
        total = matrix @ (total + weight * values)
    return total
