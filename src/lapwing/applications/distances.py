"""Distances in steps: commute and hitting times, diffusion and cover times, and how central states are.

For a reversible walk with stationary distribution rho, and components with E_rho[u^2] = 1, the hitting time is
``H(a, b) = psi(b) . (psi(b) - psi(a))`` with ``psi_i = u_i / sqrt(lambda_i)``, i >= 2. Adding ``H(b, a)`` gives the
commute time ``|psi(a) - psi(b)|^2``; its mean over starts drawn from rho is ``|psi(b)|^2``. All are exact with all
components, whatever rho; with fewer they are low-pass filtered. Functions of a model use this, and a model of directed
dynamics is one of ``(P + P*)/2``, a reversible walk of its own. Functions of an operator use P as it is.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eig
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu

from lapwing.checks import as_whole, shown
from lapwing.errors import ArgumentError, DataError
from lapwing.operators.operator import Operator, stationary_distribution
from lapwing.representation import LaplacianRepresentation

MAX_STATES = 4000
"""States up to which all pairs are computed: (n, n) matrices, and their dense factors."""

MAX_PAIRS = 100_000_000

LARGEST_CONDITION = 1e10
"""Of the matrix of eigenvectors: above it they hardly span the space, and hitting times from them are noise."""

CONSTANT_TOLERANCE = 0.1
"""Largest first eigenvalue of an exact model as a share of the second; that of a stationary rho is 0."""


class CoverTime(NamedTuple):
    """Steps until a walk has been in every state.

    Attributes:
        mean: over the walks.
        standard_error: of the mean.
    """

    mean: float
    standard_error: float


def commute_times(model: LaplacianRepresentation, a: "ArrayLike", b: "ArrayLike | None" = None) -> NDArray[np.float64]:
    """Expected steps from one state to another and back: ``|psi(a) - psi(b)|^2``.

    Args:
        model: exact or learned, connected, of at least two dimensions. With fewer components than states every
            commute time is too small.
        a: (n, ...) observations.
        b: (m, ...) observations; None for those of ``a``.

    Returns:
        (n, m) commute times in steps. Of directed dynamics those of the symmetrised walk, which are no smaller.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")       # a corridor of three cells
        >>> times = commute_times(lw.solve(world, dim=3), world.table())
        >>> times[0].round(6).tolist()              # 12 steps to the next cell and back: three cells, P = 1/4
        [0.0, 12.0, 24.0]
    """
    from scipy.spatial.distance import cdist

    here, there = _both_embedded(model, a, b)
    return np.asarray(cdist(here, there, "sqeuclidean"))


def reversible_hitting_times(
    model: LaplacianRepresentation, a: "ArrayLike", b: "ArrayLike | None" = None
) -> NDArray[np.float64]:
    """Expected steps from ``a`` until ``b`` is first reached: ``psi(b) . (psi(b) - psi(a))``.

    Args:
        model: exact or learned, connected, of at least two dimensions.
        a: (n, ...) observations, the starts.
        b: (m, ...) observations, the goals; None for those of ``a``.

    Returns:
        (n, m) hitting times in steps. Exact with all components for reversible dynamics; with fewer, some may be
        negative. Of directed dynamics those of the symmetrised walk: see :func:`hitting_times`.
    """
    here, there = _both_embedded(model, a, b)
    return np.asarray((there**2).sum(axis=1)[None, :] - here @ there.T)


def bottleneck_scores(model: LaplacianRepresentation, observations: "ArrayLike") -> NDArray[np.float64]:
    """How hard a state is to find: ``|psi|^2``, the mean hitting time from a random start; small means central.

    With few components this is a low-pass filter, in which doors between rooms stand out as the smallest values. With
    all components it is the hitting time itself, in which they hardly do.

    Args:
        model: exact or learned, connected, of at least two dimensions; few dimensions are best.
        observations: (n, ...) observations.

    Returns:
        (n,) scores in steps; ``argsort`` lists the most central states first.
    """
    _check_model(model)
    return np.asarray((_embedded(model, observations) ** 2).sum(axis=1))


def hitting_times(operator: Operator, dim: int | None = None) -> NDArray[np.float64]:
    """Expected steps from every state until every other is first reached, directed dynamics included.

    Args:
        operator: of at most 4,000 states, from :func:`lapwing.operator`; for experience of directed dynamics with
            ``directed=True``. Its rho is not used.
        dim: None for linear solves, which are exact. Otherwise from the ``dim`` leading pairs of left and right
            eigenvectors of P, those with the largest real part of mu; a complex pair is never split, and the pair of
            mu = 1 counts:
            ``H(i, j) = sum_{k >= 2} psi_k(j) (phi_k(j) - phi_k(i)) / ((1 - mu_k) pi(j))``.

    Returns:
        (n, n) hitting times, ``H[i, j]`` from i to j, 0 on the diagonal, and infinite where j is not reached with
        probability one. With a small ``dim`` some may be negative.

    Raises:
        DataError: too many states; with ``dim``, states that do not all reach one another, or eigenvectors that do not
            span the space.

    Example:
        >>> import lapwing as lw
        >>> hitting_times(lw.operator([[0.5, 0.5], [0.25, 0.75]])).round(6).tolist()
        [[0.0, 2.0], [4.0, 0.0]]
    """
    matrix = checked_matrix(operator)
    count = matrix.shape[0]
    if dim is None:
        return _solved_hitting_times(matrix) if _all_meet(matrix) else _goal_by_goal(matrix)
    whole = as_whole(dim)
    if whole is None or not 2 <= whole <= count:
        raise ArgumentError(f"dim must be a whole number from 2 to the number of states, {count}, got {shown(dim)}")
    if not _all_meet(matrix):
        raise DataError(
            "these states do not all reach one another, so some hitting times are infinite, which no eigenvectors "
            "give; take dim=None"
        )
    return _spectral_hitting_times(matrix, whole)


def mean_hitting_time(operator: Operator) -> float:
    """Expected steps from one random state to another (Machado et al., 2017): mean over goals, then over starts.

    Args:
        operator: of 2 to 4,000 states.

    Returns:
        The mean hitting time over all pairs of different states; infinite where they do not all reach one another.

    Example:
        >>> import lapwing as lw
        >>> round(mean_hitting_time(lw.operator("room:10x10")), 3)
        271.965
    """
    times = _times_between_several(operator)
    count = len(times)
    return float(times.sum() / (count * (count - 1)))


def largest_hitting_time(operator: Operator) -> float:
    """Mean over starts of the hitting time of the goal farthest away: what Jinnai et al. (2019) call cover time.

    Args:
        operator: of 2 to 4,000 states.

    Returns:
        The time; infinite where states do not all reach one another. :func:`walk_cover_time` is the true cover time.
    """
    return float(_times_between_several(operator).max(axis=1).mean())


def walk_cover_time(operator: Operator, walks: int = 1000, seed: int = 0, longest: int = 1_000_000) -> CoverTime:
    """Expected steps until a walk from a random state has been in every state, by simulation.

    Args:
        operator: of at least 2 and at most 4,000 states that all reach one another.
        walks: how many walks, at least 2.
        seed: of the walks.
        longest: steps after which a walk is given up.

    Returns:
        Mean and standard error.

    Raises:
        DataError: states that do not all reach one another, or a walk that took longer than ``longest``.
    """
    matrix = checked_matrix(operator)
    count, steps = as_whole(walks), as_whole(longest)
    if count is None or not 2 <= count <= MAX_PAIRS // matrix.shape[0]:
        most = MAX_PAIRS // matrix.shape[0]
        raise ArgumentError(f"walks must be a whole number from 2 to {most:,}, got {shown(walks)}")
    if steps is None or steps < 1:
        raise ArgumentError(f"longest must be a whole number of at least 1, got {shown(longest)}")
    whole_seed = as_whole(seed)
    if whole_seed is None or whole_seed < 0:
        raise ArgumentError(f"a seed is a whole number of at least 0, got {shown(seed)}")
    if not _all_meet(matrix):
        raise DataError("these states do not all reach one another, so that no walk covers them: the time is infinite")
    lengths = _walks_to_cover(matrix, count, np.random.default_rng(whole_seed), steps)
    return CoverTime(float(lengths.mean()), float(lengths.std(ddof=1) / np.sqrt(count)))


# --- a model ---------------------------------------------------------------------------------------------------------


def _check_model(model: LaplacianRepresentation) -> None:
    if not isinstance(model, LaplacianRepresentation):
        raise ArgumentError(f"a LaplacianRepresentation is needed, from solve, learn or load, got {shown(model)}")
    first, second = 1.0 - model.mu[0], 1.0 - model.mu[min(1, len(model.mu) - 1)]
    if model.exact and model.dim > 1 and abs(first) > CONSTANT_TOLERANCE * abs(second):
        raise ArgumentError(
            f"the first eigenvalue is {first:.3g}, not 0: rho is not stationary, the symmetrised operator is not a "
            "walk, and distances are not times; solve with rho=None"
        )


def _embedded(model: LaplacianRepresentation, observations: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(model.embedding(observations), dtype=np.float64)


def _both_embedded(
    model: LaplacianRepresentation, a: ArrayLike, b: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    _check_model(model)
    here = _embedded(model, a)
    there = here if b is None else _embedded(model, b)
    if len(here) * len(there) > MAX_PAIRS:
        raise ArgumentError(
            f"{len(here):,} times {len(there):,} distances do not fit; the limit is {MAX_PAIRS:,} at a time"
        )
    return here, there


# --- an operator -----------------------------------------------------------------------------------------------------


def checked_matrix(operator: Operator) -> csr_array:
    """The transition matrix of an operator that is small enough for all pairs of states.

    Args:
        operator: of at most 4,000 states.

    Returns:
        (n, n) matrix.
    """
    if not isinstance(operator, Operator):
        raise ArgumentError(f"an Operator is needed, from lapwing.operator(...), got {shown(operator)}")
    if operator.num_states > MAX_STATES:
        raise DataError(
            f"times between all of {operator.num_states:,} states do not fit; the limit is {MAX_STATES:,}: use "
            "commute_times of a model, which takes the states that you name"
        )
    return operator.matrix


def _times_between_several(operator: Operator) -> NDArray[np.float64]:
    times = hitting_times(operator)
    if len(times) < 2:
        raise DataError("there is one state only, and no time to another")
    return times


def _all_meet(matrix: csr_array) -> bool:
    return int(connected_components(matrix, directed=True, connection="strong")[0]) == 1


def _solved_hitting_times(matrix: csr_array) -> NDArray[np.float64]:
    """One inverse for all goals, where states all reach one another.

    With N_ij the expected visits of j from i before an anchor state is reached, and h its row sums, the hitting times
    of the anchor, ``H_ij = h_i - h_j + (N_jj - N_ij) / pi_j``. N is the inverse of an M-matrix and has no cancellation,
    unlike the fundamental matrix; the anchor must be a heavy state for that to stay so.
    """
    stationary = stationary_distribution(matrix)
    count, anchor = len(stationary), int(np.argmax(stationary))
    others = np.delete(np.arange(count), anchor)
    visits = np.zeros((count, count))
    visits[np.ix_(others, others)] = np.linalg.inv(np.eye(count - 1) - matrix.toarray()[np.ix_(others, others)])
    reached = visits.sum(axis=1)
    return reached[:, None] - reached[None, :] + (np.diag(visits)[None, :] - visits) / stationary[None, :]


def _goal_by_goal(matrix: csr_array) -> NDArray[np.float64]:
    """One linear solve per goal, over the states from which it is reached with probability one."""
    count = matrix.shape[0]
    times = np.full((count, count), np.inf)
    np.fill_diagonal(times, 0.0)
    backwards = csr_array(matrix.T)
    for goal in range(count):
        stays = np.ones(count)
        stays[goal] = 0.0
        lost = np.flatnonzero(~np.isfinite(dijkstra(backwards, indices=goal, unweighted=True)))
        sure = np.ones(count, dtype=bool)
        if len(lost):
            # Steps from the goal do not count: a walk that has reached it may get lost.
            leaving = csr_array(backwards @ diags_array(stays))
            leaving.eliminate_zeros()
            sure = ~np.isfinite(dijkstra(leaving, indices=lost, unweighted=True, min_only=True))
        sure[goal] = False
        rows = np.flatnonzero(sure)
        if len(rows):
            inside = (eye_array(len(rows)) - matrix[rows][:, rows]).tocsc()
            times[rows, goal] = splu(inside).solve(np.ones(len(rows)))
    return times


def _spectral_hitting_times(matrix: csr_array, dim: int) -> NDArray[np.float64]:
    stationary = stationary_distribution(matrix)
    root = np.sqrt(stationary)
    # Similar to P, with orthogonal eigenvectors where P is reversible, however uneven its weights.
    values, right = eig(root[:, None] * matrix.toarray() / root[None, :])
    order = np.argsort(-values.real, kind="stable")
    condition = np.linalg.cond(right)
    if not condition < LARGEST_CONDITION:
        raise DataError(
            f"the eigenvectors of these dynamics hardly span the space (condition {condition:.1e}); take dim=None"
        )
    left = np.linalg.inv(right)
    # LAPACK puts the two of a complex pair side by side, that with the positive imaginary part first.
    split = dim < len(order) and values[order[dim]] == values[order[dim - 1]].conj() != values[order[dim - 1]]
    chosen = order[1 : dim + 1 if split else dim]
    products = ((right[:, chosen] / (1.0 - values[chosen])) @ left[chosen]).real
    return np.diag(products)[None, :] / stationary[None, :] - products / np.outer(root, root)


def _walks_to_cover(matrix: csr_array, walks: int, rng: np.random.Generator, longest: int) -> NDArray[np.int64]:
    """(walks,) steps until each walk has been everywhere; all walks take a step at a time."""
    count = matrix.shape[0]
    row_of = np.repeat(np.arange(count), np.diff(matrix.indptr))
    before = np.concatenate([[0.0], np.cumsum(matrix.data)])
    # Rows of cumulative probabilities end to end, row r from r to r + 1: one search finds every walk's next state.
    edges = row_of + before[1:] - before[matrix.indptr[row_of]]
    first, last = matrix.indptr[:-1], matrix.indptr[1:] - 1
    states = rng.integers(count, size=walks)
    visited = np.zeros((walks, count), dtype=bool)
    visited[np.arange(walks), states] = True
    missing = np.full(walks, count - 1)
    lengths = np.zeros(walks, dtype=np.int64)
    active = np.flatnonzero(missing > 0)
    for step in range(1, longest + 1):
        if not len(active):
            return lengths
        here = states[active]
        found = np.searchsorted(edges, here + rng.random(len(active)), side="right")
        there = matrix.indices[np.clip(found, first[here], last[here])]
        states[active] = there
        missing[active] -= ~visited[active, there]
        visited[active, there] = True
        done = missing[active] == 0
        if done.any():
            lengths[active[done]] = step
            active = active[~done]
    if len(active):
        raise DataError(
            f"{len(active)} of {walks} walks had not been everywhere after {longest:,} steps; raise longest=, or take "
            "largest_hitting_time, which needs no walks"
        )
    return lengths
