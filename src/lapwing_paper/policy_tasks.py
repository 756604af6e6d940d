"""What the runs of the studies of policies do: project rewards and follow the policies, and plan in mazes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from lapwing import LaplacianRepresentation, collect, learn, score, solve
from lapwing.applications import (
    Planner,
    greedy_actions,
    likeliest_next_states,
    optimal_action_values,
    region_graph,
    reward_weights,
    successor_features,
)
from lapwing.environments import ContinuousMaze, World
from lapwing.errors import DataError
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

DISCOUNT = 0.95
MOST_STEPS = 200
# Of a journey in a maze: when the goal counts as reached, in cells, and how many steps it may take.
RADIUS = 0.5
MOST_MOVES = 100
POINTS_PER_CELL = 4
# The shortest way must be so long, in cells, for a ratio of lengths to mean something.
SHORTEST = 2.0

Array = NDArray[np.float64]


def reach_goals(specification: dict[str, Any]) -> Outcome:
    """How many pairs of a start and a goal are connected by policies for projected rewards.

    Settings: ``dims``; ``transitions`` of data, or 0 for the exact representation; ``steps`` of learning.

    Args:
        specification: of the run.

    Returns:
        By number of components the share of pairs that reach the goal, with the optimal policy of the projection and
        by successor features; of learned ones the share with counted components too.
    """
    world, settings, seed = world_of_run(specification), specification["settings"], int(specification["seed"])
    states = np.asarray(world.table())
    dims = [int(dim) for dim in settings["dims"] if dim <= len(states)]
    if not settings["transitions"]:
        uniform = np.full(len(states), 1.0 / len(states))
        found = {"optimal": _reached(solve(world, max(dims)), world, states, uniform, dims, with_bound=True)}
        found["successor"] = _reached_by_features(solve(world, max(dims)), world, dims)
        return Outcome(found)
    data = collect(world, int(settings["transitions"]), seed=seed)
    if len(data.observations) < len(states):
        raise DataError("some states were never visited; take more transitions")
    shares = data.visits() / data.num_states
    model = learn(data, dim=max(dims), steps=int(settings["steps"]) or None, seed=seed)
    return Outcome(
        {
            "optimal": _reached(model, world, data.observations, shares, dims),
            "counted": _reached(solve(data, max(dims)), world, data.observations, shares, dims),
            "cosine": score(model, solve(world, max(dims))).subspace_cosine,
        }
    )


def plan_in_maze(specification: dict[str, Any]) -> Outcome:
    """How often, and how straight, a goal in a continuous maze is reached by planning.

    Settings: ``embedding`` (``learned``, ``exact`` or ``coordinates``); ``dim``; ``regions``, a list of numbers, 1
    being none; ``pairs`` of starts and goals; ``transitions``, and ``steps`` of learning.

    Args:
        specification: of the run.

    Returns:
        By local planner and number of regions: whether each goal was reached, and the lengths of ways that were, as
        multiples of the shortest.
    """
    world, settings, seed = world_of_run(specification), specification["settings"], int(specification["seed"])
    if not isinstance(world, ContinuousMaze):
        raise DataError("planning is measured in continuous mazes")
    data = collect(world, int(settings["transitions"]), seed=seed, record="actions")
    numbers: dict[str, Any] = {}
    embedding: Any = lambda seen: np.asarray(seen, dtype=np.float64)  # noqa: E731
    if settings["embedding"] != "coordinates":
        exact = solve(world, int(settings["dim"]))
        embedding = exact
        if settings["embedding"] == "learned":
            embedding = learn(data, dim=exact.dim, steps=int(settings["steps"]) or None, seed=seed)
            numbers["cosine"] = score(embedding, exact).subspace_cosine
    rng = np.random.default_rng(1_000 + seed)
    starts, goals = (world.reset(int(settings["pairs"]), rng) for _ in range(2))
    shortest = shortest_ways(world, starts, goals)
    middle = np.zeros((1, 2), dtype=np.float32)
    radius = RADIUS / float(np.abs(np.diff(world.picture_places(np.concatenate([middle, middle + 1]))[:, 0]))[0])
    for regions in settings["regions"]:
        graph = None if regions == 1 else region_graph(embedding, data, int(regions), seed=seed)
        for kind, simulator in (("simulator", world), ("recorded", data)):
            planner = Planner(embedding, simulator, graph, seed=seed, **settings[kind])
            made = planner.travel(world, starts, goals, radius=radius, most_steps=MOST_MOVES)
            places = np.stack([world.picture_places(seen) for seen in made.observations])
            lengths = np.linalg.norm(np.diff(places, axis=0), axis=2).sum(axis=0)
            counted = made.reached & (shortest > SHORTEST)
            numbers[f"{kind}-{regions}"] = {
                "reached": made.reached.astype(int).tolist(),
                "ratios": ((lengths[counted] + RADIUS) / shortest[counted]).round(4).tolist(),
            }
    return Outcome(numbers)


def shortest_ways(world: ContinuousMaze, starts: Array, goals: Array) -> Array:
    """Lengths of shortest ways around walls, from a fine grid with straight edges in many directions.

    Args:
        world: the maze.
        starts: (n, 2) points in cells.
        goals: (n, 2) points in cells.

    Returns:
        (n,) lengths in cells.
    """
    grid = world.discretisation(POINTS_PER_CELL)
    places = world.picture_places(grid.observations)
    here, there = grid.matrix.nonzero()
    apart = np.linalg.norm(places[here] - places[there], axis=1)
    edges = csr_array((apart[apart > 0], (here[apart > 0], there[apart > 0])), shape=grid.matrix.shape)
    first, last = (cKDTree(places).query(points)[1] for points in (starts, goals))
    return np.asarray(dijkstra(edges, indices=first)[np.arange(len(first)), last])


def _reached(
    model: LaplacianRepresentation,
    world: World,
    observations: NDArray[Any],
    shares: Array,
    dims: list[int],
    with_bound: bool = False,
) -> dict[str, Any]:
    """Shares of pairs by number of components; with exact ones also the largest loss as a share of its bound."""
    states = np.asarray(world.table())
    is_goal = (observations[:, None] == states[None]).reshape(len(observations), len(states), -1).all(axis=2)
    weights = reward_weights(model, observations, is_goal.astype(np.float64), shares)
    components = np.asarray(model.transform(states), dtype=np.float64)
    found: dict[str, Any] = {}
    for dim in dims:
        rewards = components[:, :dim] @ weights[:dim]
        actions = greedy_actions(optimal_action_values(world, rewards, DISCOUNT))
        found[str(dim)] = _share(world, actions)
        if with_bound:
            error = np.abs(rewards - np.eye(len(states))).max(axis=0)
            found[f"bound {dim}"] = float((_loss(world, actions) / (2 * error / (1 - DISCOUNT))).max())
    return found


def _reached_by_features(model: LaplacianRepresentation, world: World, dims: list[int]) -> dict[str, Any]:
    """Shares of pairs with generalised policy improvement over the policies of the components."""
    states = np.asarray(world.table())
    weights = reward_weights(model, states, np.eye(len(states)))
    features = successor_features(model, world, DISCOUNT)
    found = {}
    for dim in dims:
        # Of the first components alone: their policies, and their entries.
        kept = type(features)(features.features[: 2 * (dim - 1), :, :, :dim], DISCOUNT)
        found[str(dim)] = _share(world, greedy_actions(kept.action_values(weights[:dim])))
    return found


def _share(world: World, actions: NDArray[np.int64]) -> float:
    """The share of pairs of different states in which the policy of the goal (columns) reaches it."""
    places = likeliest_next_states(world)
    count = len(places)
    goals = np.arange(count)[None, :]
    here = np.repeat(np.arange(count)[:, None], count, axis=1)
    reached = here == goals
    for _ in range(MOST_STEPS):
        here = np.where(reached, here, places[here, actions[here, goals]])
        reached |= here == goals
    return float((reached.sum() - count) / (count * (count - 1)))


def _loss(world: World, actions: NDArray[np.int64]) -> Array:
    """(goals,) the largest loss in value of the policy of each goal, for the reward of the goal itself."""
    places = likeliest_next_states(world)
    count = len(places)
    best = optimal_action_values(world, np.eye(count), DISCOUNT).max(axis=1)
    losses = np.empty(count)
    for goal in range(count):
        following = places[np.arange(count), actions[:, goal]]
        walk = np.zeros((count, count))
        walk[np.arange(count), following] = 1.0
        values = np.linalg.solve(np.eye(count) - DISCOUNT * walk, (following == goal).astype(np.float64))
        losses[goal] = (best[:, goal] - values).max()
    return losses
