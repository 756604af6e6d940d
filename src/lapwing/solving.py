"""``operator`` and ``solve``: exact, from a world or a matrix, or tabular, from counted experience."""

import heapq
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from lapwing.checks import as_whole, shown
from lapwing.data.counting import TransitionCounts
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import Definition, as_definition, one_step
from lapwing.diagnostics.noise import sampling_angles, step_angles
from lapwing.diagnostics.problems import ProblemError, above_the_rank, one_state
from lapwing.encoders.cosine import CircleEncoder, CosineEncoder
from lapwing.encoders.interpolated import InterpolatedEncoder
from lapwing.encoders.leading import LeadingEncoder
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.product_encoder import ProductEncoder
from lapwing.environments import CircleClosedForm, ClosedForm, Discretisation, Hidden, Layout, World, make_world
from lapwing.errors import ArgumentError, LapwingWarning, UnknownNameError, did_you_mean
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, canonical_signs, column_signs, group_degenerate
from lapwing.operators.eigensolver import Eigenpairs, Say, lowest_mu, smallest_eigenpairs
from lapwing.operators.multilevel import Needed, graph_eigenpairs, grid_eigenpairs, is_open
from lapwing.operators.operator import (
    KNOWN_ROWS,
    Operator,
    operator_from_directed_counts,
    operator_from_discretisation,
    operator_from_matrix,
    operator_from_trajectories,
    operator_from_world,
)
from lapwing.operators.slepc import slepc_eigenpairs
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

EXTRA_PAIRS = 6
LOWEST_SINC = -0.2173  # no eigenvalue of a walk in a box is below it
MULTILEVEL = "multilevel"
ENGINES = ("auto", "scipy", MULTILEVEL, "slepc")
SCIPY_STATES = 2_000_000  # above which factors of the matrix outgrow a laptop's memory
MAX_PROCESSES = 4096
WIDE_ROWS = 50  # entries per row above which factors of the matrix would fill memory


def operator(
    source: Any,
    *,
    observation: str | None = None,
    slip: float | None = None,
    policy: "ArrayLike | None" = None,
    rho: "ArrayLike | str | None" = None,
    layouts: str | Path | None = None,
    directed: bool = False,
) -> Operator:
    """The one-step operator of a world, a row-stochastic matrix, or experience (counts).

    Args:
        source: a world's name, a layout, a world (of a continuous one its discretisation on a fine grid), a matrix,
            :class:`Trajectories`, or what :func:`lapwing.count` counted in the parts of a data set.
        observation: ``xy``, ``one_hot`` or ``pixels`` for grids.
        slip: probability that a random move replaces the chosen one, for grids.
        policy: (states, 4) probabilities of the moves, for grids.
        rho: weights of the inner product: None (stationary; for experience, as visited), ``"uniform"`` (the paper's),
            or one weight per state. For experience of reversible dynamics whose stationary distribution is known;
            see :func:`lapwing.operators.operator_from_trajectories`.
        layouts: folder of layout files.
        directed: for experience: count steps one way, so that directed dynamics stay directed; hitting times need
            this. Worlds and matrices are never symmetrised here.

    Returns:
        The operator with its weights and the observation of each state.

    Example:
        >>> operator("GridMaze-7").num_states
        11
    """
    if isinstance(source, (Trajectories, TransitionCounts)):
        source = source.packed() if isinstance(source, Trajectories) else source
        _refuse_options(source, observation=observation, slip=slip, policy=policy)
        if directed:
            _refuse_options(source, rho=rho)
            return operator_from_directed_counts(source)
        return operator_from_trajectories(source, rho)
    if isinstance(source, Operator):
        _refuse_options(source, observation=observation, slip=slip, policy=policy, rho=rho)
        return source
    source = _with_world(source, layouts, observation=observation, slip=slip, policy=policy)
    if isinstance(source, World):
        return operator_from_world(source, rho)
    if issparse(source) or isinstance(source, (np.ndarray, list, tuple)):
        return operator_from_matrix(source, rho)
    raise ArgumentError(
        f"cannot make an operator from {type(source).__name__}; give a world's name, a layout, a grid world, "
        "a row-stochastic matrix or trajectories"
    )


def solve(
    source: Any,
    dim: int = 11,
    *,
    definition: "Definition | str | None" = None,
    observation: str | None = None,
    slip: float | None = None,
    policy: "ArrayLike | None" = None,
    rho: "ArrayLike | str | None" = None,
    layouts: str | Path | None = None,
    engine: str = "auto",
    say: "Say | None" = None,
) -> LaplacianRepresentation:
    """The exact Laplacian representation, which solves the paper's Eq. 1; of trajectories, the tabular estimate.

    Args:
        source: as for :func:`operator`, or a world whose closed form is known, as :class:`BoxWorld`. A continuous
            world without one, as :class:`ContinuousMaze`, is solved on a fine grid and interpolated.
        dim: how many eigenvectors.
        definition: in which Laplacian to give eigenvalues; one_step unless given.
        observation: see :func:`operator`, as for slip, policy, rho and layouts.
        slip: see :func:`operator`.
        policy: see :func:`operator`.
        rho: see :func:`operator`.
        layouts: see :func:`operator`.
        engine: ``"scipy"`` factorises the matrix and has residuals at rounding; ``"multilevel"`` coarsens the states,
            needs memory for a few blocks of vectors only and stops where residuals leave relative errors of 1e-7 in
            eigenvalues; ``"slepc"`` factorises in two processes under ``mpirun``,
            ``"slepc:8"`` in eight; ``"auto"`` is scipy up to two million states and multilevel beyond. A closed form
            needs no engine.
        say: called with a short message when a long stage begins.

    Returns:
        The representation; its last eigenvalue's whole cluster is kept with it.

    Example:
        >>> solve("GridMaze-7", dim=3).eigenvalues_in("successor(0.9)").round(4)
        array([0.    , 0.1833, 0.4622])
    """
    chosen = one_step() if definition is None else as_definition(definition)
    whole = as_whole(dim)
    if whole is None or whole < 1:
        raise ArgumentError(f"dim must be a whole number of at least 1, got {shown(dim)}")
    dim = whole
    chosen_engine = _checked_engine(engine)
    source = source.packed() if isinstance(source, Trajectories) else source
    source = _with_world(source, layouts, observation=observation, slip=slip, policy=policy)
    if isinstance(source, World):
        behind = source.hidden()
        if behind is not None:
            return _seen(source, behind, solve(behind.world, dim, definition=chosen, rho=rho, engine=engine, say=say))
        factors = source.product_of()
        if factors is not None:
            _refuse_options(source, rho=rho)
            return _from_factors(source, factors, dim, chosen, engine, say)
        found = source.closed_form(2 * dim + EXTRA_PAIRS)
        if found is not None:
            _refuse_options(source, rho=rho)
            return _from_closed_form(source, found, dim, chosen)
        grid = source.discretisation()
        if grid is not None:
            if chosen_engine.name not in ("auto", "scipy"):
                raise ArgumentError(
                    f"{source.name} is solved on a grid whose matrix has hundreds of entries in a row; the engine "
                    f"{chosen_engine.name} is for few, so use engine='scipy'"
                )
            return _from_discretisation(source, grid, dim, chosen, rho, say)
        cells = source.walked_cells()
        if cells is not None and (rho is None or (isinstance(rho, str) and rho == "uniform")):
            large = chosen_engine.name_for(int(np.count_nonzero(cells))) == MULTILEVEL
            if large and is_open(cells):
                return _from_cells(source, cells, dim, chosen, say)
    built = operator(source, rho=rho)
    _warn_if_disconnected(built.num_components(), built.metadata)
    # The noise of components is estimated from the first episodes; what was counted has kept those.
    data = source.sample if isinstance(source, TransitionCounts) else source
    return _from_operator(built, data if isinstance(data, Trajectories) else None, dim, chosen, chosen_engine, say)


def _from_operator(
    built: Operator, data: Trajectories | None, dim: int, definition: Definition, engine: "_Engine", say: Say | None
) -> LaplacianRepresentation:
    """Eigenvectors as a table over the states of an operator; ``data`` are those that it was counted from."""
    if data is not None and built.num_states < 2:
        raise ProblemError(one_state())
    pairs, kept = _pairs_with_whole_cluster(built, dim, engine, say)
    everything = pairs.vectors / np.sqrt(built.rho)[:, None]
    pairs = pairs._replace(vectors=everything)
    everything *= column_signs(everything)
    noise = None
    if data is not None:
        numbers = LookupEncoder(built.observations, everything, built.rho).numbers_of(np.asarray(data.observations))
        noise = np.zeros(kept)
        if built.visits is not None:
            noise = step_angles(built, everything, pairs.values, DATA_TOLERANCE)[:kept]
        elif not built.metadata.get(KNOWN_ROWS):
            total = built.metadata["transitions"]
            sines = sampling_angles(lambda rows: everything[numbers[rows]], pairs.values, data, DATA_TOLERANCE, total)
            noise = sines[:kept]
    values = everything[:, :kept]
    gram = values.T @ (values * built.rho[:, None])
    return LaplacianRepresentation(
        encoder=LookupEncoder(built.observations, values, built.rho),
        mu=1.0 - pairs.values[:kept],
        dim=dim,
        definition=definition,
        exact=built.exact,
        residuals=pairs.residuals[:kept],
        data_angles=noise,
        orthonormality_error=float(np.abs(gram - np.eye(kept)).max()),
        next_mu=float(1.0 - pairs.values[kept]) if kept < len(pairs.values) else None,
        metadata={**built.metadata, "method": "solve", "reversible": built.is_reversible()},
    )


class _Engine(NamedTuple):
    """Which solver, and in how many processes where it has several."""

    name: str
    processes: int

    def name_for(self, size: int) -> str:
        """The solver for so many states."""
        if self.name != "auto":
            return self.name
        return "scipy" if size <= SCIPY_STATES else MULTILEVEL


def _checked_engine(engine: str) -> _Engine:
    """An engine by its name, or an error that offers the nearest."""
    name, colon, number = engine.partition(":") if isinstance(engine, str) else ("", "", "")
    if name not in ENGINES:
        raise UnknownNameError(f"unknown engine {shown(engine)}; {did_you_mean(str(name), ENGINES)}")
    if not colon:
        return _Engine(name, 2)
    if name != "slepc" or not (number.isascii() and number.isdigit() and 1 <= int(number[:9]) <= MAX_PROCESSES):
        raise ArgumentError(
            f"engine {shown(engine)}: only slepc takes a number of processes, 1 to {MAX_PROCESSES:,}, as in slepc:2"
        )
    return _Engine(name, int(number))


def _from_cells(
    world: World, cells: NDArray[np.bool_], dim: int, definition: Definition, say: Say | None
) -> LaplacianRepresentation:
    """The uniform walk on a grid, solved without its matrix."""
    metadata = {"world": world.describe(), "method": "solve", "engine": MULTILEVEL, "reversible": True}
    size = int(np.count_nonzero(cells))
    _warn_if_disconnected(world.summary()["parts"], metadata)
    pairs, kept = _with_whole_cluster(size, dim, lambda count, needed: grid_eigenpairs(cells, count, needed, say))
    eigenvalues, residuals, values = pairs.values, pairs.residuals, pairs.vectors[:, :kept].copy()
    del pairs
    values *= column_signs(values) * np.sqrt(size)
    return LaplacianRepresentation(
        encoder=LookupEncoder(np.asarray(world.table()), values, np.full(size, 1.0 / size)),
        mu=1.0 - eigenvalues[:kept],
        dim=dim,
        definition=definition,
        exact=True,
        residuals=residuals[:kept],
        orthonormality_error=float(np.abs(values.T @ values / size - np.eye(kept)).max()),
        next_mu=float(1.0 - eigenvalues[kept]) if kept < len(eigenvalues) else None,
        metadata=metadata,
    )


def _seen(world: World, behind: Hidden, truth: LaplacianRepresentation) -> LaplacianRepresentation:
    """The ground truth of the world behind as a function of what is seen."""
    points, weights = truth.encoder.support()  # type: ignore[attr-defined]
    metadata = {**truth.metadata, "world": world.describe()}
    if behind.columns is not None:
        return replace(
            truth, encoder=LeadingEncoder(behind.columns, truth.encoder, behind.see(points), weights), metadata=metadata
        )
    # What is drawn is known too, though it does not count in a score.
    drawn = behind.world.field_points()
    if drawn is not None:
        points, weights = np.concatenate([points, drawn]), np.append(weights, np.zeros(len(drawn)))
    seen = behind.see(points)
    # States that look the same are one row of the table.
    rows: dict[bytes, int] = {}
    numbers = np.array([rows.setdefault(image.tobytes(), len(rows)) for image in seen])
    first = np.unique(numbers, return_index=True)[1]
    merged = np.zeros(len(rows))
    np.add.at(merged, numbers, weights)
    values = np.asarray(truth.transform_all(points[first]), dtype=np.float64)
    return replace(truth, encoder=LookupEncoder(seen[first], values, merged), metadata=metadata)


def _from_factors(
    world: World, factors: tuple[World, ...], dim: int, definition: Definition, engine: str, say: Say | None
) -> LaplacianRepresentation:
    """Products of the factors' eigenpairs, the largest found by a heap; the product's states are never listed."""
    count = 2 * dim + EXTRA_PAIRS
    operators, solved = zip(*(_solved_factor(factor, count, engine, say) for factor in factors), strict=True)
    found, ranks = _largest_products([truth.mu for truth in solved], count)
    lowest = sorted(map(_lowest_mu, operators, solved))
    # Two negative eigenvalues have a positive product; mostly it is too small to matter.
    if lowest[0] * lowest[1] > found[-1] and lowest[1] < 0:
        solved = tuple(_with_negative_end(*parts, count, say) for parts in zip(operators, solved, strict=True))
        found, ranks = _largest_products([truth.mu for truth in solved], count)
    if dim > len(found):
        raise ProblemError(above_the_rank(dim, len(found), "positive eigenvalues"))
    ends = [_end_of_cluster(1.0 - found, dim, tolerance) for tolerance in (EXACT_TOLERANCE, DATA_TOLERANCE)]
    kept = max((end for end in ends if end < len(found)), default=dim)
    widths = [factor.observation_shape[0] for factor in factors]
    return LaplacianRepresentation(
        encoder=ProductEncoder([truth.encoder for truth in solved], widths, ranks[:kept]),
        mu=found[:kept],
        dim=dim,
        definition=definition,
        exact=True,
        residuals=np.full(kept, sum(float(np.max(truth.residuals)) for truth in solved if truth.residuals is not None)),
        orthonormality_error=sum(truth.orthonormality_error or 0.0 for truth in solved),
        next_mu=float(found[kept]) if kept < len(found) else None,
        metadata={"world": world.describe(), "method": "product", "reversible": True},
    )


def _solved_factor(
    world: World, count: int, engine: str, say: Say | None
) -> tuple[Operator | None, LaplacianRepresentation]:
    """The largest eigenvalues of one factor, as many as a product of that many may need; None for a closed form."""
    known, grid = world.closed_form(count), world.discretisation()
    built = None
    if known is not None:
        truth = solve(world, min(count, len(known.mu)), say=say)
    elif grid is not None:
        built = operator_from_discretisation(world, grid)
        truth = _from_discretisation(world, grid, min(count, built.num_states), one_step(), None, say)
    else:
        built = operator(world)
        truth = solve(built, min(count, built.num_states), engine=engine, say=say)
    if not truth.metadata.get("reversible"):
        raise ArgumentError(f"{world.name} is directed; the spectrum of a product is known where no factor is directed")
    return built, truth


def _lowest_mu(built: Operator | None, truth: LaplacianRepresentation) -> float:
    """A lower bound of the eigenvalues of a factor that its solution does not hold."""
    if built is None:
        return LOWEST_SINC
    return 0.0 if truth.encoder.dim == built.num_states else lowest_mu(built.symmetrised())


def _with_negative_end(
    built: Operator | None, truth: LaplacianRepresentation, count: int, say: Say | None
) -> LaplacianRepresentation:
    """The solution of a factor with its most negative eigenvalues added."""
    if built is None:
        raise ArgumentError(
            f"so many components of a product with {world_name(truth.metadata, 'this world')} need its negative "
            "eigenvalues, which are not known; ask for fewer components"
        )
    some = min(count, built.num_states - truth.encoder.dim)
    if some < 1:
        return truth
    wide = built.matrix.nnz > WIDE_ROWS * built.num_states
    pairs = smallest_eigenpairs(csr_array(-built.symmetrised()), some, say, factorise=not wide)
    negative = pairs.values < 1.0
    encoder: Any = copy(truth.encoder)
    vectors = canonical_signs(pairs.vectors[:, negative] / np.sqrt(built.rho)[:, None])
    encoder.values = np.concatenate([encoder.values, vectors], axis=1)
    assert truth.residuals is not None
    return replace(
        truth,
        encoder=encoder,
        mu=np.concatenate([truth.mu, pairs.values[negative] - 1.0]),
        residuals=np.concatenate([truth.residuals, pairs.residuals[negative]]),
    )


def _largest_products(factors: list[NDArray[np.float64]], count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The ``count`` largest positive products of one number of each list.

    Returns:
        (found,) products, largest first, and (found, lists) the place of each number in its list.
    """
    orders = [np.argsort(-np.abs(mu), kind="stable") for mu in factors]
    factors = [mu[order] for mu, order in zip(factors, orders, strict=True)]
    start = (0,) * len(factors)
    heap, seen = [(-1.0, start)], {start}
    kept: list[tuple[float, tuple[int, ...]]] = []
    while heap and (len(kept) < count or -heap[0][0] > kept[count - 1][0] - 2e-12):
        _, ranks = heapq.heappop(heap)
        value = float(np.prod([mu[rank] for mu, rank in zip(factors, ranks, strict=True)]))
        if value > 0:
            kept.append((value, ranks))
        for number, mu in enumerate(factors):
            child = (*ranks[:number], ranks[number] + 1, *ranks[number + 1 :])
            if child[number] < len(mu) and child not in seen:
                seen.add(child)
                magnitude = np.prod([abs(mu[rank]) for mu, rank in zip(factors, child, strict=True)])
                heapq.heappush(heap, (-float(magnitude), child))
    # Equal products in the order of their places, so that the result does not hang on rounding.
    kept = sorted(kept, key=lambda pair: (-round(pair[0], 12), pair[1]))[:count]
    places = np.array([ranks for _, ranks in kept], dtype=np.int64)
    numbers = np.stack([order[places[:, number]] for number, order in enumerate(orders)], axis=1)
    return np.array([value for value, _ in kept]), numbers


def _from_discretisation(
    world: World, grid: Discretisation, dim: int, definition: Definition, rho: Any, say: Say | None
) -> LaplacianRepresentation:
    """Eigenvectors on a fine grid, interpolated between its points."""
    built = operator_from_discretisation(world, grid, rho)
    _warn_if_disconnected(built.num_components(), built.metadata)
    pairs, kept = _pairs_with_whole_cluster(built, dim, _Engine("scipy", 1), say, factorise=False)
    values = canonical_signs(pairs.vectors / np.sqrt(built.rho)[:, None])[:, :kept]
    gram = values.T @ (values * built.rho[:, None])
    return LaplacianRepresentation(
        encoder=InterpolatedEncoder(values, built.rho, grid.numbers, grid.origin, grid.spacing),
        mu=1.0 - pairs.values[:kept],
        dim=dim,
        definition=definition,
        exact=True,
        residuals=pairs.residuals[:kept],
        orthonormality_error=float(np.abs(gram - np.eye(kept)).max()),
        next_mu=float(1.0 - pairs.values[kept]) if kept < len(pairs.values) else None,
        metadata={**built.metadata, "method": "discretised", "reversible": built.is_reversible()},
    )


def _pairs_with_whole_cluster(
    built: Operator, dim: int, engine: _Engine, say: Say | None, factorise: bool = True
) -> tuple[Eigenpairs, int]:
    """Eigenpairs up to the end of the cluster that ``dim`` may cut, and how many those are."""
    name = engine.name_for(built.num_states)
    largest_mu = built.largest_possible_mu()
    if name == MULTILEVEL:
        return _with_whole_cluster(
            built.num_states,
            dim,
            lambda count, needed: graph_eigenpairs(built.matrix, built.rho, count, needed, say, largest_mu=largest_mu),
        )
    symmetric = built.symmetrised()
    if name == "slepc":
        return _with_whole_cluster(
            built.num_states,
            dim,
            lambda count, _: slepc_eigenpairs(symmetric, count, engine.processes, say, largest_mu=largest_mu),
        )
    return _with_whole_cluster(
        built.num_states,
        dim,
        lambda count, _: smallest_eigenpairs(symmetric, count, say, largest_mu=largest_mu, factorise=factorise),
    )


def _with_whole_cluster(size: int, dim: int, find: Callable[[int, Needed], Eigenpairs]) -> tuple[Eigenpairs, int]:
    """What ``find`` finds, asked for more pairs until the cluster of number ``dim`` ends among them."""
    if dim > size:
        raise ProblemError(above_the_rank(dim, size, "states"))

    def needed(eigenvalues: NDArray[np.float64]) -> int:
        return max(_end_of_cluster(eigenvalues, dim, tolerance) for tolerance in (EXACT_TOLERANCE, DATA_TOLERANCE))

    count = min(size, dim + EXTRA_PAIRS)
    while True:
        pairs = find(count, needed)
        end = needed(pairs.values)
        if end < count or count == size:
            return pairs, end
        count = min(size, 2 * count)


def _end_of_cluster(eigenvalues: NDArray[np.float64], dim: int, tolerance: float) -> int:
    """One past the last member of the cluster that component number ``dim`` is in."""
    return next(cluster.stop for cluster in group_degenerate(eigenvalues, tolerance) if dim - 1 in cluster)


def _warn_if_disconnected(parts: int, metadata: dict[str, Any]) -> None:
    if parts > 1:
        name = world_name(metadata, "this world")
        warnings.warn(
            f"{name} falls into {parts} unconnected parts: eigenvalue 0 appears {parts} times, "
            "and its eigenvectors are constant on each part",
            LapwingWarning,
            stacklevel=3,
        )


def _from_closed_form(world: World, found: ClosedForm, dim: int, definition: Definition) -> LaplacianRepresentation:
    """The closed form: products of cosines (paper, Appendix "Abstract setting"), or waves on a circle."""
    if dim > len(found.mu):
        raise ProblemError(above_the_rank(dim, len(found.mu), "positive eigenvalues"))
    circle = isinstance(found, CircleClosedForm)
    # Infinitely many eigenvalues crowd at 1: a cluster that does not end here is completed no further than ``dim``.
    ends = [_end_of_cluster(1.0 - found.mu, dim, tolerance) for tolerance in (EXACT_TOLERANCE, DATA_TOLERANCE)]
    kept = max((end for end in ends if end < len(found.mu)), default=dim)
    return LaplacianRepresentation(
        encoder=(CircleEncoder if circle else CosineEncoder)(found.modes[:kept]),
        mu=found.mu[:kept],
        dim=dim,
        definition=definition,
        exact=True,
        residuals=np.zeros(kept),
        orthonormality_error=0.0,
        next_mu=float(found.mu[kept]) if kept < len(found.mu) else None,
        metadata={"world": world.describe(), "method": "closed form", "reversible": not circle},
    )


def _with_world(source: Any, layouts: str | Path | None, **options: Any) -> Any:
    """The world that a name or a layout stands for, with its options; anything else as it is, and without options."""
    source = make_world(source, layouts=layouts) if isinstance(source, (str, Layout)) else source
    if isinstance(source, World):
        return source.with_options(**{name: value for name, value in options.items() if value is not None})
    _refuse_options(source, **options)
    return source


def _refuse_options(source: Any, **options: Any) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ArgumentError(f"{', '.join(given)} cannot be changed for {type(source).__name__}; they are for worlds")
