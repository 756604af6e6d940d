"""What the runs of the studies of distances do: compare embeddings with path lengths, and hitting times with solves."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

from lapwing import LaplacianRepresentation, Operator, collect, learn, operator, solve
from lapwing.applications import commute_times, hitting_times, reversible_hitting_times
from lapwing.errors import DataError
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

Times = NDArray[np.float64]


def compare_distances(specification: dict[str, Any]) -> Outcome:
    """How far distances in the embedding agree with commute times and with path lengths.

    Settings: ``dim``; ``transitions`` of data, or 0 for the exact representation; ``steps`` of learning.

    Args:
        specification: of the run.

    Returns:
        Spearman correlations with the path length and shares of stuck pairs, plain and scaled; of exact ones the
        largest relative error of full-dimensional commute times too, of learned ones the numbers of counting.
    """
    settings, world = specification["settings"], world_of_run(specification)
    dim, exact = int(settings["dim"]), operator(world)
    paths = np.asarray(shortest_path(exact.matrix, unweighted=True))
    if not settings["transitions"]:
        full = commute_times(solve(exact, exact.num_states), exact.observations)
        times = goal_by_goal(exact)
        numbers = {"identity_error": relative_error(full, times + times.T), "states": exact.num_states}
        return Outcome(numbers | _agreement(solve(exact, dim), exact, paths))
    data = collect(world, int(settings["transitions"]), seed=int(specification["seed"]))
    model = learn(data, dim=dim, steps=int(settings["steps"]), seed=int(specification["seed"]))
    counted = _agreement(solve(data, dim), exact, paths)
    numbers = _agreement(model, exact, paths) | {f"counting_{name}": value for name, value in counted.items()}
    return Outcome(numbers | {"states": exact.num_states})


def compare_hitting_times(specification: dict[str, Any]) -> Outcome:
    """How far hitting times from few eigenvectors agree with the true ones.

    Settings: ``dims``; ``transitions`` of data to count, or 0 for the exact dynamics.

    Args:
        specification: of the run.

    Returns:
        For each dimension the Spearman correlations with the true hitting time of the directed formula, of the
        symmetrised walk's hitting times and of its commute times; of exact ones the error at full rank too.
    """
    settings, world = specification["settings"], world_of_run(specification)
    exact = operator(world)
    true = goal_by_goal(exact)
    used = exact
    numbers: dict[str, Any] = {"states": exact.num_states, "reversible": float(exact.is_reversible())}
    if settings["transitions"]:
        data = collect(world, int(settings["transitions"]), seed=int(specification["seed"]))
        used = operator(data, directed=True)
        if used.num_states < exact.num_states:
            raise DataError("some states were never visited; take more transitions")
    else:
        numbers["full_rank_error"] = relative_error(hitting_times(exact, exact.num_states), true)
        numbers["solve_error"] = relative_error(hitting_times(exact), true)
    apart = ~np.eye(exact.num_states, dtype=bool)
    for dim in settings["dims"]:
        most = min(int(dim), exact.num_states)
        model = solve(used, most)
        found = {
            "directed": hitting_times(used, most)[_order(used, exact)],
            "symmetrised_hitting": reversible_hitting_times(model, exact.observations),
            "symmetrised": commute_times(model, exact.observations),
        }
        numbers |= {f"{name}_{dim}": _spearman(values[apart], true[apart]) for name, values in found.items()}
    return Outcome(numbers)


def goal_by_goal(dynamics: Operator) -> Times:
    """Hitting times by one dense linear solve per goal: their definition, independent of the package's way.

    Args:
        dynamics: of n states that all reach one another.

    Returns:
        (n, n) expected steps from row to column.
    """
    matrix = dynamics.matrix.toarray()
    count = len(matrix)
    times = np.zeros((count, count))
    for goal in range(count):
        rows = np.delete(np.arange(count), goal)
        times[rows, goal] = np.linalg.solve(np.eye(count - 1) - matrix[np.ix_(rows, rows)], np.ones(count - 1))
    return times


def relative_error(found: Times, wanted: Times) -> float:
    """The largest relative difference; where the right value is 0, the absolute one.

    Args:
        found: (n, n) times.
        wanted: (n, n) times.

    Returns:
        The largest over all pairs.
    """
    return float((np.abs(found - wanted) / np.where(wanted > 0, wanted, 1.0)).max())


def stuck_share(distances: Times, dynamics: Operator) -> float:
    """Share of pairs of a state and a goal in which no neighbour is nearer to the goal than the state itself.

    Args:
        distances: (n, n) between states.
        dynamics: whose steps lead to neighbours.

    Returns:
        The share of all pairs of different states.
    """
    neighbours = dynamics.matrix.toarray() > 0
    count = len(neighbours)
    best = np.stack([distances[row].min(axis=0) for row in neighbours])
    stuck = (best >= distances * (1.0 - 1e-12)) & ~np.eye(count, dtype=bool)
    return float(stuck.sum() / (count * (count - 1)))


def _agreement(model: LaplacianRepresentation, exact: Operator, paths: Times) -> dict[str, float]:
    pairs = np.triu_indices(exact.num_states, 1)
    numbers = {}
    for name, scaled in (("plain", False), ("psi", True)):
        values = np.asarray(model.embedding(exact.observations, scaled), dtype=np.float64)
        apart = np.linalg.norm(values[:, None] - values[None, :], axis=2)
        numbers[f"{name}_spearman"] = _spearman(apart[pairs], paths[pairs])
        numbers[f"{name}_stuck"] = stuck_share(apart, exact)
    return numbers


def _order(used: Operator, exact: Operator) -> Any:
    """Which rows and columns of a table of ``used`` are the states of ``exact``: data number states as they come."""
    rows = {observation.tobytes(): row for row, observation in enumerate(used.observations)}
    numbers = [rows[observation.tobytes()] for observation in exact.observations]
    return np.ix_(numbers, numbers)


def _spearman(found: Times, wanted: Times) -> float:
    return float(spearmanr(found, wanted).statistic)
