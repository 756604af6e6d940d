"""What the page's explore section draws from: psi, eigenoptions, moves between states and rank correlations."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from lapwing.applications import eigenpurpose_options, likeliest_next_states
from lapwing.environments import World
from lapwing.errors import LapwingError
from lapwing.plots.observation_arrays import Observations, count_of, rows_of
from lapwing.representation import LaplacianRepresentation

Values = NDArray[np.float64]

# Beyond this many states, ranks of all distances take longer than the rest of the page.
MAX_RANKED = 2000
CHUNK = 2048
# How far below all others unknown states are put, in ranges of a component: at the options' discount of 0.9 the way
# through one then loses more than it can gain.
UNKNOWN_DEPTH = 20.0


def embedding_at(model: LaplacianRepresentation, points: Observations, values: Values) -> Values:
    """Psi at the points that the representation knows.

    Args:
        model: the representation.
        points: (n, ...) observations, by key where there are several.
        values: (n, dim) its components there, NaN where unknown.

    Returns:
        (n, dim - 1) values, NaN where unknown; (n, 0) where there is no psi: one component, or a world in parts.
    """
    rows = np.flatnonzero(~np.isnan(values).any(axis=1))
    found = np.full((count_of(points), model.dim - 1), np.nan)
    if not len(rows):
        return found
    try:
        for block in np.array_split(rows, -(-len(rows) // CHUNK)):
            found[block] = model.embedding(rows_of(points, block))  # type: ignore[arg-type]
    except LapwingError:
        return np.empty((count_of(points), 0))
    return found


def picture_arrays(
    world: World,
    cells: NDArray[np.int64],
    shape: tuple[int, int],
    reach: tuple[float, float] | None,
    sources: dict[str, Values],
    psi: Values,
) -> dict[str, Any]:
    """Arrays of a run whose world has a picture.

    Args:
        world: the world.
        cells: (n,) pixel of each state, row by row.
        shape: rows and columns of the picture.
        reach: how many pixels a step goes, down and across, where states are not listed.
        sources: (n, k) components by name, NaN where unknown; the run's own first.
        psi: (n, k - 1) or (n, 0) as :func:`embedding_at` gives it.

    Returns:
        JSON types: ``moves`` has the next states of each state (None with a reach); ``options`` by source, component
        (without the constant one) and sign the state to which each state's action leads, the state itself where the
        option ends, -1 where it is unknown; ``ranks`` for plain and scaled distances Spearman's correlation with
        steps, from each state to all others.
    """
    moves = _moves(world, cells, shape)
    following = [states.tolist() for states in np.split(moves.indices, moves.indptr[1:-1])] if reach is None else None
    options = {name: _option_successors(world, values[:, 1:], moves) for name, values in sources.items()}
    ranks: dict[str, list[float | None]] = {}
    if len(cells) <= MAX_RANKED:
        steps = _steps(moves, cells, shape[1], reach)
        ranks = {"plain": _rank_correlations(next(iter(sources.values())), steps)}
        ranks["scaled"] = _rank_correlations(psi, steps)
    return {"moves": following, "options": options, "ranks": ranks}


def _moves(world: World, cells: NDArray[np.int64], shape: tuple[int, int]) -> csr_array:
    """(n, n) which state may follow which: by the matrix of listed states, else neighbours in the picture."""
    matrix = world.transition_matrix() if world.num_states == len(cells) else None
    if matrix is not None:
        return csr_array(matrix)
    numbers = np.full((shape[0] + 2, shape[1] + 2), -1)
    rows, columns = np.divmod(cells, shape[1])
    numbers[rows + 1, columns + 1] = np.arange(len(cells))
    beside = [numbers[rows + 1 + down, columns + 1 + right] for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1))]
    here, there = np.tile(np.arange(len(cells)), 4), np.concatenate(beside)
    inside = there >= 0
    ways = (np.ones(int(inside.sum())), (here[inside], there[inside]))
    return csr_array(coo_array(ways, shape=(len(cells), len(cells))))


def _option_successors(world: World, values: Values, moves: csr_array) -> list[list[list[int]]]:
    """Where the option that climbs a component leads, then the one that descends, for each component.

    Exact where the world has the next states of each action, of which the likeliest is shown. Where it has none, an
    option goes to the neighbour with the largest value.
    """
    known = np.asarray(~np.isnan(values).any(axis=1))
    signed = np.stack([values, -values], axis=2).reshape(len(values), -1)
    lowest = signed[known].min(axis=0) - UNKNOWN_DEPTH * np.ptp(signed[known], axis=0)
    filled = np.where(known[:, None], signed, lowest)
    if world.num_states != len(values) or world.action_matrices() is None:
        nexts = _highest_neighbours(moves, filled)
    else:
        likeliest, own = likeliest_next_states(world), np.arange(len(values))
        options = eigenpurpose_options(world, filled, both_signs=False)
        columns = [np.where(one.actions < 0, own, likeliest[own, one.actions]) for one in options]
        nexts = np.stack(columns, axis=1) if columns else np.empty((len(values), 0), dtype=np.int64)
    nexts[~known] = -1
    pairs: list[list[list[int]]] = nexts.T.reshape(-1, 2, len(values)).tolist()
    return pairs


def _highest_neighbours(moves: csr_array, values: Values) -> NDArray[np.int64]:
    """(n, k) the neighbour with the largest value; the state itself where none is larger than its own."""
    ways = moves.tocoo()
    best, nexts = values.copy(), np.tile(np.arange(len(values))[:, None], values.shape[1])
    np.maximum.at(best, ways.row, values[ways.col])
    # Of equal ones the first, so written last.
    for here, there in zip(ways.row[::-1], ways.col[::-1], strict=True):
        highest = (values[there] == best[here]) & (best[here] > values[here])
        nexts[here, highest] = there
    return nexts


def _steps(moves: csr_array, cells: NDArray[np.int64], columns: int, reach: tuple[float, float] | None) -> Values:
    """(n, n) fewest steps; with a reach a step goes along both axes at once."""
    if reach is None:
        return np.asarray(shortest_path(moves, unweighted=True))
    places = np.stack(np.divmod(cells, columns), axis=1)
    apart = np.abs(places[:, None] - places) / reach
    return np.ceil(apart - 1e-9).max(axis=2)


def _rank_correlations(columns: Values, steps: Values) -> list[float | None]:
    """Spearman's correlation of distances with steps, from each state to all others; None where there is none."""
    known = np.flatnonzero(~np.isnan(columns).any(axis=1))
    found: list[float | None] = [None] * len(columns)
    if len(known) < 3 or not columns.shape[1]:
        return found
    others = ~np.eye(len(known), dtype=bool)
    distances = (cdist(columns[known], columns[known]), steps[np.ix_(known, known)])
    both = [part[others].reshape(len(known), -1) for part in distances]
    centred = [ranks - ranks.mean(axis=1, keepdims=True) for ranks in (rankdata(part, axis=1) for part in both)]
    norms = np.sqrt((centred[0] ** 2).sum(axis=1) * (centred[1] ** 2).sum(axis=1))
    products = (centred[0] * centred[1]).sum(axis=1)
    for state, product, norm in zip(known.tolist(), products, norms, strict=True):
        found[state] = round(float(product / norm), 5) if norm > 0 else None
    return found
