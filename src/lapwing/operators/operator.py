"""One-step operators and the inner product they are symmetrised in."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array, diags_array, eye_array, issparse, sparray, spmatrix
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from lapwing.checks import as_reals, shown
from lapwing.data.counting import TransitionCounts
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import Definition
from lapwing.environments import Discretisation, World
from lapwing.errors import ArgumentError, DataError, LapwingError
from lapwing.storage.schemas import world_name

MAX_DENSE_STATES = 6000

KNOWN_ROWS = "known_rows"
"""In the metadata of an operator from data whose rows are known rather than counted."""

_LOST_IN_ROUNDING = (
    "some states are visited so rarely that their stationary weight is lost in rounding; "
    "pass rho='uniform' or your own weights"
)


@dataclass(frozen=True, eq=False, repr=False)
class Operator:
    """A row-stochastic matrix P on states, and the weights rho of the inner product <u, v> = E_rho[u v].

    Args:
        matrix: (n, n) sparse P.
        rho: (n,) positive weights that sum to one.
        observations: (n, ...) the observation of each state.
        exact: False where P was counted from data.
        metadata: where it came from, as JSON types.
        visits: (n,) steps counted from each state, where rho was given and not counted; else None.
    """

    matrix: csr_array
    rho: NDArray[np.float64]
    observations: NDArray[Any]
    exact: bool = True
    metadata: dict[str, Any] = field(default_factory=dict)
    visits: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        """One line: of what, how many states and transitions, and whether it is exact."""
        name = world_name(self.metadata, "?")
        size = f"{self.num_states:,} states, {self.matrix.nnz:,} transitions"
        return f"Operator({name}, {size}, {'exact' if self.exact else 'counted'})"

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return len(self.rho)

    def symmetrised(self) -> csr_array:
        """``D^1/2 (P + P*)/2 D^-1/2`` with the rho-adjoint ``P* = D^-1 P^T D``, ``D = diag(rho)``: symmetric.

        If v is its eigenvector then ``u = D^-1/2 v`` is one of (P + P*)/2, with E_rho[u^2] = |v|^2. For uniform rho
        this is the paper's (P + P^T)/2 (Section 2).
        """
        root = np.sqrt(self.rho)
        scaled = diags_array(root) @ self.matrix @ diags_array(1.0 / root)
        return csr_array((scaled + scaled.T) / 2.0)

    def largest_possible_mu(self) -> float:
        """A bound on the eigenvalues of :meth:`symmetrised`: 1 where rho is stationary, more where it is not."""
        # (P + P*)/2 is similar to it and non-negative, so its largest row sum bounds its eigenvalues.
        return (1.0 + float((self.matrix.T @ self.rho / self.rho).max())) / 2.0

    def num_components(self) -> int:
        """How many parts the states fall into that no step joins."""
        return int(connected_components(self.matrix, directed=False)[0])

    def is_reversible(self, tolerance: float = 1e-10) -> bool:
        """Whether ``rho_s P_ss' = rho_s' P_s's``: P is then its own adjoint, and nothing is lost by symmetrising.

        Args:
            tolerance: largest difference allowed, relative to the largest ``rho_s P_ss'``.

        Returns:
            Whether no difference is larger.
        """
        flow = diags_array(self.rho) @ self.matrix
        difference = np.abs((flow - flow.T).tocsr())
        return bool(difference.max() <= tolerance * np.abs(flow.tocsr()).max())


def operator_from_world(world: World, rho: "ArrayLike | str | None" = None) -> Operator:
    """The exact operator of a world under its own policy; where states cannot be listed, that of its discretisation.

    Args:
        world: with a table and a transition matrix, or with a discretisation.
        rho: None (stationary), ``"uniform"``, or (states,) weights.

    Returns:
        The operator.
    """
    behind = world.hidden()
    if behind is not None:
        built = operator_from_world(behind.world, rho)
        metadata = {**built.metadata, "world": world.describe()}
        return replace(built, observations=behind.see(built.observations), metadata=metadata)
    grid = world.discretisation()
    if grid is not None:
        return operator_from_discretisation(world, grid, rho)
    matrix, table = world.transition_matrix(), world.table()
    if matrix is None or table is None:
        raise DataError(f"{world.name} has no transition matrix; solve() knows its closed form, if it has one")
    return Operator(matrix, _weights(matrix, rho), table, exact=True, metadata={"world": world.describe()})


def operator_from_discretisation(world: World, grid: Discretisation, rho: ArrayLike | str | None = None) -> Operator:
    """The operator of a world on a fine grid.

    Args:
        world: the world.
        grid: its discretisation.
        rho: None (the grid's own weights), ``"uniform"``, or (points,) weights.

    Returns:
        The operator between grid points; its eigenvalues have the error of the grid.
    """
    weights = _weights(grid.matrix, grid.weights if rho is None else rho)
    metadata = {"world": world.describe(), "grid_points": len(weights)}
    return Operator(grid.matrix, weights, grid.observations, exact=True, metadata=metadata)


def operator_from_matrix(
    matrix: "ArrayLike | sparray | spmatrix",
    rho: "ArrayLike | str | None" = None,
    observations: "ArrayLike | None" = None,
) -> Operator:
    """An operator from a row-stochastic matrix.

    Args:
        matrix: (n, n), dense or sparse.
        rho: None (stationary), ``"uniform"``, or (n,) weights.
        observations: (n, ...) one per state; without them, states are known by their numbers.

    Returns:
        The operator.
    """
    checked = _checked_matrix(matrix)
    count = checked.shape[0]
    table = np.arange(count, dtype=np.int64)[:, None] if observations is None else np.asarray(observations)
    if table.ndim < 2 or len(table) != count:
        raise DataError(f"observations must have shape ({count}, ...), one per state, got {table.shape}")
    metadata = {"world": {"kind": "matrix", "name": f"matrix of {count} states"}}
    return Operator(checked, _weights(checked, rho), table, exact=True, metadata=metadata)


def operator_from_trajectories(
    data: "Trajectories | TransitionCounts", rho: "ArrayLike | str | None" = None
) -> Operator:
    """The tabular (counting) estimate: transitions counted both ways, over the states that were visited.

    With counts N the symmetrised flow is (N + N^T)/2; its row sums are rho, so P is reversible and keeps constants.
    Where every visit of a state lists the same next states (``collect(all_actions=True)`` in a world whose actions are
    deterministic), rows of P are known rather than counted, and rho is what P keeps: what is left of the data's noise
    are states that were never visited.

    Most of the noise in counts is that of visits: they fluctuate over whole rooms, which acts like a potential. Where
    the stationary distribution of reversible dynamics is known, ``rho`` takes this noise away: the flow between two
    states is then ``(N_ij + N_ji) / (N_i / rho_i + N_j / rho_j)``, and only single steps are noisy.

    Args:
        data: experience whose observations repeat.
        rho: None (as visited), or what P is known to keep: ``"uniform"`` over the states that were visited, as for a
            random walk on a grid, or one weight per row of ``data.observations``.

    Returns:
        The operator, not exact.
    """
    return operator_and_rows(data, rho)[0]


def operator_and_rows(
    data: "Trajectories | TransitionCounts", rho: "ArrayLike | str | None" = None
) -> tuple[Operator, NDArray[np.int64]]:
    """The tabular estimate, and the row of ``data.observations`` that each of its states is.

    Args:
        data: with a table of observations.
        rho: as for :func:`operator_from_trajectories`.

    Returns:
        The operator over the k states that have a transition, and (k,) rows of the table.
    """
    if rho is not None:
        return _counted_steps(data, rho)
    known = _known_rows(data)
    if known is not None:
        return known
    counts = data.counts()
    flow = csr_array((counts + counts.T) / 2.0)
    degree = np.asarray(flow.sum(axis=1)).ravel()
    seen = np.flatnonzero(degree > 0)
    flow = csr_array(flow[seen][:, seen])
    matrix = csr_array(diags_array(1.0 / degree[seen]) @ flow)
    metadata = {**data.metadata, "transitions": data.num_transitions, "episodes": data.num_episodes}
    observations = np.asarray(data.observations[seen])
    return Operator(matrix, degree[seen] / degree.sum(), observations, exact=False, metadata=metadata), seen


def operator_from_directed_counts(data: "Trajectories | TransitionCounts") -> Operator:
    """The tabular estimate of directed dynamics: transitions counted one way, not symmetrised.

    States that were left but never reached again, or reached but never left, have no place in an estimate of
    stationary dynamics: the operator is over the largest set of states, by transitions, that all reach one another.

    Args:
        data: experience whose observations repeat.

    Returns:
        The operator, not exact; ``metadata["states_left_out"]`` says how many visited states it does not hold.
    """
    counts = csr_array(data.counts(), dtype=np.float64)
    visits = np.asarray(counts.sum(axis=1)).ravel()
    labels = connected_components(counts, directed=True, connection="strong")[1]
    kept = np.flatnonzero(labels == np.argmax(np.bincount(labels, visits)))
    inside = csr_array(counts[kept][:, kept])
    sums = np.asarray(inside.sum(axis=1)).ravel()
    if not sums.min() > 0:
        raise DataError("no two states of these data reach one another; collect longer episodes")
    matrix = csr_array(diags_array(1.0 / sums) @ inside)
    visited = int(np.count_nonzero(np.asarray((counts + counts.T).sum(axis=1)).ravel()))
    metadata = {**data.metadata, "transitions": data.num_transitions, "episodes": data.num_episodes}
    metadata |= {"directed": True, "states_left_out": visited - len(kept)}
    observations = np.asarray(data.observations[kept])
    return Operator(matrix, stationary_distribution(matrix), observations, exact=False, metadata=metadata)


def _counted_steps(data: Trajectories | TransitionCounts, rho: ArrayLike | str) -> tuple[Operator, NDArray[np.int64]]:
    """The operator that keeps a known rho, and the row of the table that each of its states is."""
    if not data.has_table:
        raise DataError("a known rho needs observations that repeat, and these hardly do; leave rho out")
    counts = csr_array(data.counts(), dtype=np.float64)
    everywhere = _weights(counts, rho)
    seen = np.flatnonzero(np.asarray((counts + counts.T).sum(axis=1)).ravel() > 0)
    counts, weights = counts[seen][:, seen], everywhere[seen] / everywhere[seen].sum()
    visits = np.asarray(counts.sum(axis=1)).ravel()
    both = coo_array(counts + counts.T)
    here, there = both.coords
    apart = here != there
    here, there, moves = here[apart], there[apart], both.data[apart]
    flow = moves / ((visits / weights)[here] + (visits / weights)[there])
    # States that were hardly visited may come out with more flow than their weight has room for.
    room = np.minimum(1.0, weights / np.maximum(np.bincount(here, flow, len(seen)), 1e-300))
    flow *= np.minimum(room[here], room[there])
    stays = np.maximum(weights - np.bincount(here, flow, len(seen)), 0.0)
    joined = coo_array((flow, (here, there)), shape=(len(seen),) * 2).tocsr() + diags_array(stays)
    matrix = csr_array(diags_array(1.0 / weights) @ joined)
    metadata = {**data.metadata, "transitions": data.num_transitions, "episodes": data.num_episodes}
    observations = np.asarray(data.observations[seen])
    return Operator(matrix, weights, observations, exact=False, metadata=metadata, visits=visits), seen


def _known_rows(data: Trajectories | TransitionCounts) -> tuple[Operator, NDArray[np.int64]] | None:
    """The operator of states whose next states are the same at every visit; None where they are not, or not enough."""
    following = data.known_next_rows()
    if following is None:
        return None
    seen = np.flatnonzero(following[:, 0] >= 0)
    number = np.full(len(following), -1)
    number[seen] = np.arange(len(seen))
    ends = number[following[seen]]
    rows = np.repeat(np.arange(len(seen)), ends.shape[1])[ends.ravel() >= 0]
    counts = coo_array((np.ones(len(rows)), (rows, ends.ravel()[ends.ravel() >= 0])), shape=(len(seen),) * 2).tocsr()
    sums = np.asarray(counts.sum(axis=1)).ravel()
    if not sums.min() > 0:
        return None
    matrix = csr_array(diags_array(1.0 / sums) @ counts)
    try:
        rho = stationary_distribution(matrix)
    except DataError:
        # States that lead nowhere else, or parts that do not meet: counts have a distribution all the same.
        return None
    metadata = {**data.metadata, "transitions": data.num_transitions, "episodes": data.num_episodes, KNOWN_ROWS: True}
    return Operator(matrix, rho, np.asarray(data.observations[seen]), exact=False, metadata=metadata), seen


def laplacian(operator: Operator, definition: Definition) -> NDArray[np.float64]:
    """Dense ``I - f(P)`` symmetrised in the rho inner product: the definition itself, not a map of eigenvalues.

    For a reversible operator its eigenvalues are ``definition.from_mu(mu)``. Otherwise symmetrising and f do not
    commute, and this is what pairs of states sampled with those lags really give.

    Args:
        operator: of at most 6,000 states.
        definition: which f.

    Returns:
        (n, n) matrix.
    """
    if operator.num_states > MAX_DENSE_STATES:
        raise DataError(
            f"a dense Laplacian of {operator.num_states:,} states does not fit; the limit is {MAX_DENSE_STATES:,}"
        )
    p = operator.matrix.toarray()
    identity = np.eye(len(p))
    if definition.kind == "one_step":
        mixed = p
    elif definition.kind == "truncated":
        mixed, power = np.zeros_like(p), identity
        for weight in definition.lag_weights():
            power = power @ p
            mixed += weight * power
    else:
        assert definition.discount is not None
        resolvent = (1.0 - definition.discount) * np.linalg.inv(identity - definition.discount * p)
        mixed = resolvent if definition.kind == "successor" else p @ resolvent
    adjoint = mixed.T * operator.rho[None, :] / operator.rho[:, None]
    return identity - (mixed + adjoint) / 2.0


def stationary_distribution(matrix: csr_array) -> NDArray[np.float64]:
    """The distribution that P keeps, uniform where that is one; an error where it is not unique or has zeros.

    Args:
        matrix: (n, n) row-stochastic.

    Returns:
        (n,) positive weights that sum to one.
    """
    count = matrix.shape[0]
    if np.abs(np.asarray(matrix.sum(axis=0)).ravel() - 1.0).max() < 1e-10:
        return np.full(count, 1.0 / count)
    parts = int(connected_components(matrix, directed=True, connection="strong")[0])
    if parts > 1:
        raise DataError(
            f"these dynamics have no unique positive stationary distribution ({parts} classes of states that cannot "
            "all reach one another); pass rho='uniform' or your own weights"
        )
    balance = csr_array(eye_array(count) - matrix.T).tocsc()
    # One state's weight is fixed to 1 and the others follow; any one equation is redundant. It must be a heavy state,
    # which long discounted visits find: beside a light one the others drown in rounding.
    try:
        visits = splu((balance + 1e-10 * eye_array(count)).tocsc()).solve(np.ones(count))
        anchor = int(np.argmax(visits))
        others = np.delete(np.arange(count), anchor)
        weights = np.ones(count)
        inflow = -balance[others][:, [anchor]].toarray().ravel()
        weights[others] = splu(balance[others][:, others].tocsc()).solve(inflow)
    except RuntimeError:
        # A state that is left once in 1e17 steps is never left in float64, and there is nothing to divide by.
        raise DataError(_LOST_IN_ROUNDING) from None
    with np.errstate(all="ignore"):
        weights /= weights.sum()
    if not weights.min() > np.finfo(np.float64).tiny:
        raise DataError(_LOST_IN_ROUNDING)
    return weights


def _weights(matrix: csr_array, rho: ArrayLike | str | None) -> NDArray[np.float64]:
    count = matrix.shape[0]
    if rho is None:
        return stationary_distribution(matrix)
    if isinstance(rho, str):
        if rho != "uniform":
            raise ArgumentError(f"rho must be 'uniform', an array of weights or None (stationary), got {shown(rho)}")
        return np.full(count, 1.0 / count)
    weights = as_reals(rho)
    if weights is None or weights.shape != (count,) or not np.isfinite(weights).all() or (weights <= 0).any():
        raise ArgumentError(f"rho must be {count} positive finite weights, one per state")
    with np.errstate(over="ignore"):
        total = weights.sum()
    shares = weights / total
    if not shares.min() > np.finfo(np.float64).tiny:
        raise ArgumentError("rho spans too many orders of magnitude; drop the smallest weights")
    return shares


def _checked_matrix(matrix: ArrayLike | sparray | spmatrix) -> csr_array:
    checked = _as_csr(matrix)
    if checked.ndim != 2 or checked.shape[0] != checked.shape[1] or checked.shape[0] == 0:
        raise DataError(f"a transition matrix is square and not empty, got shape {checked.shape}")
    if not np.isfinite(checked.data).all() or (checked.data < 0).any():
        raise DataError("a transition matrix holds finite numbers of at least 0; this one does not")
    sums = np.asarray(checked.sum(axis=1)).ravel()
    wrong = np.abs(sums - 1.0) > 1e-6
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"row {row} of the transition matrix sums to {sums[row]:.6g}, not to 1 ({int(wrong.sum())} such row(s)); "
            "divide each row by its sum"
        )
    # A stored zero would pass for a step that joins two states.
    checked.eliminate_zeros()
    return csr_array(diags_array(1.0 / sums) @ checked)


def _check_indices(matrix: Any) -> None:
    """Refuse a sparse matrix with indices outside: SciPy's loops trust them and write wherever they point."""
    if hasattr(matrix, "check_format"):
        if (np.diff(matrix.indptr) < 0).any():
            raise ValueError("its index pointers do not grow")
        matrix.check_format(full_check=True)
    for places, size in zip(getattr(matrix, "coords", ()), matrix.shape, strict=False):
        if len(places) and not (places.min() >= 0 and places.max() < size):
            raise ValueError("its indices point outside")


def _as_csr(matrix: ArrayLike | sparray | spmatrix) -> csr_array:
    """Any matrix as a sparse one of float64, its own copy."""
    try:
        if isinstance(matrix, np.ma.MaskedArray):
            raise TypeError("it has masked entries; fill them first")
        # SciPy would read a tuple of rows as the parts of a sparse matrix.
        rows: Any = matrix if issparse(matrix) else np.asarray(matrix)
        if rows.dtype.kind not in "biufO":
            raise TypeError(f"it holds {rows.dtype}")
        if rows.ndim != 2:
            raise DataError(f"a transition matrix is square and not empty, got shape {rows.shape}")
        if issparse(rows):
            _check_indices(rows)
        return csr_array(rows, dtype=np.float64, copy=True)
    except LapwingError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"this is not a matrix of real numbers: {error}") from error
