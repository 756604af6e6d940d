"""Plans in the representation: regions by k-means in psi, a graph between them, and a local planner (ALPS, 2026).

``psi_i = u_i / sqrt(lambda_i)`` turns commute times into distances, so near in psi means few steps, walls included. A
graph of regions gives the way to a goal far off, and a local planner the actions towards the next region: those after
which a simulator, or what was recorded from nearby, is nearest in psi.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from lapwing.applications.trust import check_model
from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.data.cells import k_means_centres, nearest_cells
from lapwing.data.trajectories import Trajectories
from lapwing.environments import World
from lapwing.errors import ArgumentError, DataError
from lapwing.representation import LaplacianRepresentation

CHUNK_ROWS = 1 << 16
# Regions are few and large: enough points and rounds for k-means to settle.
POINTS_PER_REGION = 1000
K_MEANS_ROUNDS = 30
# How much the mean distance of a sequence counts beside the smallest: of two that come as near, the sooner.
SOONER = 1e-3

Embed = Callable[[NDArray[Any]], NDArray[Any]]


class Simulator(Protocol):
    """What a local planner asks: steps from any state, many at a time, as every ``World`` makes them.

    Attributes:
        actions: how many actions there are, or the shape of an action with entries in [-1, 1].
    """

    @property
    def actions(self) -> int | tuple[int, ...]:
        """How many actions there are, or the shape of one."""
        ...

    def step(
        self, states: NDArray[Any], actions: NDArray[Any] | None, rng: np.random.Generator
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Make one step from each state.

        Args:
            states: (n, ...) states.
            actions: (n,) whole numbers or (n, ...) real ones.
            rng: source of randomness.

        Returns:
            (n, ...) next states, and the (n, ...) actions that were made.
        """
        ...

    def observe(self, states: NDArray[Any]) -> NDArray[Any]:
        """Observations of states.

        Args:
            states: (n, ...) states.

        Returns:
            (n, ...) observations.
        """
        ...


@dataclass(frozen=True, eq=False)
class RegionGraph:
    """Regions of the representation and the steps between them that were observed.

    Args:
        embed: from (n, ...) observations to (n, k) points.
        centres: (regions, k) the middle of each region.
        probabilities: (regions, regions) probability that a step which leaves a region leads to each other one, where
            it is not pruned.
    """

    embed: Embed
    centres: NDArray[np.float32]
    probabilities: csr_array

    def regions_of(self, observations: "ArrayLike") -> NDArray[np.int32]:
        """The region of each observation.

        Args:
            observations: (n, ...) of any numeric type.

        Returns:
            (n,) numbers of regions.
        """
        return nearest_cells(self.embed(np.asarray(observations)), self.centres)

    def next_regions(self, goals: NDArray[np.integer]) -> NDArray[np.int64]:
        """The region to go to next from every region, on the shortest way to each goal.

        The length of an edge is the distance of the two centres.

        Args:
            goals: (m,) numbers of regions.

        Returns:
            (m, regions) numbers of regions: the goal itself at the goal, -1 where no way was observed.
        """
        here, there = self.probabilities.nonzero()
        lengths = np.linalg.norm(self.centres[here] - self.centres[there], axis=1)
        # Backwards from the goal, so that its predecessors are the regions to go to next.
        backwards = csr_array((np.maximum(lengths, 1e-12), (there, here)), shape=self.probabilities.shape)
        distinct, places = np.unique(goals, return_inverse=True)
        found = dijkstra(backwards, indices=distinct, return_predecessors=True)[1].astype(np.int64)
        found[found < 0] = -1
        found[np.arange(len(distinct)), distinct] = distinct
        return found[places]

    def path(self, start: "ArrayLike", goal: "ArrayLike") -> list[int]:
        """The regions on the way from one observation to another.

        Args:
            start: one observation.
            goal: another.

        Returns:
            Numbers of regions, that of the start first.

        Raises:
            DataError: where no way was observed.
        """
        first, last = (int(self.regions_of(np.asarray(one)[None])[0]) for one in (start, goal))
        following = self.next_regions(np.array([last]))[0]
        found = [first]
        while found[-1] != last:
            if following[found[-1]] < 0:
                raise DataError(
                    f"no way from region {first} to region {last} was observed; collect more, or prune less"
                )
            found.append(int(following[found[-1]]))
        return found


def region_graph(
    model: LaplacianRepresentation | Embed,
    data: Trajectories,
    regions: int = 16,
    *,
    kept: float = 0.95,
    seed: int = 0,
) -> RegionGraph:
    """Cut the representation into regions by k-means in psi and count the steps between them.

    Args:
        model: exact or learned, connected, of at least two dimensions; or any function from observations to points, to
            compare with.
        data: whose steps join regions; rare ones are pruned.
        regions: how many, at least 1; fewer where k-means leaves some empty.
        kept: of the steps that leave a region, the share to keep: the most frequent ones that together reach it.
        seed: of k-means.

    Returns:
        The graph.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-17", 20_000, seed=0)  # one folded corridor
        >>> graph = region_graph(lw.solve("GridMaze-17", dim=5), data, regions=5)
        >>> world = lw.make_world("GridMaze-17")
        >>> len(graph.path(world.table()[0], world.table()[-1]))
        5
    """
    count, share, whole_seed = as_whole(regions), as_real(kept), as_whole(seed)
    if not isinstance(data, Trajectories):
        raise ArgumentError(f"experience is needed, from lapwing.collect, got {shown(data)}")
    data.require_one_key()
    if count is None or not 1 <= count <= len(data.observations):
        raise ArgumentError(f"regions must be a number from 1 to {len(data.observations):,}, got {shown(regions)}")
    if share is None or not 0 < share <= 1:
        raise ArgumentError(f"kept must be above 0 and at most 1, got {shown(kept)}")
    if whole_seed is None or whole_seed < 0:
        raise ArgumentError(f"a seed is a whole number of at least 0, got {shown(seed)}")
    embed = _embedding_of(model)
    points = _all_points(embed, data)
    rng = np.random.default_rng(whole_seed)
    options = {"points_per_cell": POINTS_PER_REGION, "rounds": K_MEANS_ROUNDS}
    centres = k_means_centres(points, count, rng, **options)
    labels, size = nearest_cells(points, centres), len(centres)
    counts = np.zeros((size, size))
    for positions in data.pair_positions():
        here, there = labels[data.rows(positions)], labels[data.rows(positions + 1)]
        counts += np.bincount(here * size + there, minlength=size**2).reshape(size, size)
    np.fill_diagonal(counts, 0.0)
    return RegionGraph(embed, centres, _pruned(counts, share))


@dataclass(frozen=True, eq=False)
class Planner:
    """Actions towards goals: over a graph of regions, and inside it by search.

    The target is the centre of the next region on the way, or the goal itself where it lies in the same region or the
    next; without a graph it is always the goal. With a simulator the search is the cross-entropy method: sequences of
    actions are drawn, tried, and drawn again around the best, and the first action of the best is made; a sequence is
    as good as it comes near to the target, by distance in the embedding. With experience in its place the sequences
    are those recorded from the nearest observations, and one of those that ended nearest to the target is followed.

    Args:
        model: exact or learned, connected, of at least two dimensions; or any function from observations to points.
        simulator: a ``World`` or anything that can make steps from any state; or experience with actions, from
            ``collect(..., record="actions")``, whose observations are vectors.
        graph: from :func:`region_graph`, or None.
        horizon: length of a sequence.
        samples: how many sequences are tried.
        elites: the best ones: the next are drawn around them, or one of them is followed.
        rounds: how often sequences are drawn.
        seed: of the draws.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("GridMaze-9")
        >>> planner = Planner(lw.solve(world, dim=5), world, horizon=2, samples=16, elites=4)
        >>> planner.travel(world, [0], [12], most_steps=50).reached.tolist()
        [True]
    """

    model: LaplacianRepresentation | Embed
    simulator: Simulator | Trajectories
    graph: RegionGraph | None = None
    horizon: int = 5
    samples: int = 64
    elites: int = 8
    rounds: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be planned with."""
        for name, least in (("horizon", 1), ("samples", 1), ("elites", 1), ("rounds", 1), ("seed", 0)):
            whole = as_whole(getattr(self, name))
            if whole is None or whole < least:
                got = shown(getattr(self, name))
                raise ArgumentError(f"{name} must be a whole number of at least {least}, got {got}")
            object.__setattr__(self, name, whole)
        if self.elites > self.samples:
            raise ArgumentError(f"of {self.samples} samples no {self.elites} can be the best; take fewer elites")
        _ = self._embed  # refuses what is not a model
        if self.graph is not None and not isinstance(self.graph, RegionGraph):
            raise ArgumentError(f"graph must be None or come from region_graph, got {shown(self.graph)}")
        if isinstance(self.simulator, Trajectories):
            _ = self._recorded  # refuses data without actions
        elif not all(hasattr(self.simulator, name) for name in ("step", "observe", "actions")):
            raise ArgumentError(
                f"a simulator has step, observe and actions, as a World has; got {shown(self.simulator)}"
            )

    @cached_property
    def _embed(self) -> Embed:
        return _embedding_of(self.model)

    @cached_property
    def _recorded(self) -> "_Recorded":
        return _Recorded(self._embed, self.simulator, self.horizon)  # type: ignore[arg-type]

    def targets(self, observations: "ArrayLike", goals: "ArrayLike") -> NDArray[np.float32]:
        """Where to go from each observation on the way to its goal, in the embedding.

        Args:
            observations: (n, ...) where to go from.
            goals: (n, ...) observations to go to.

        Returns:
            (n, k) points.
        """
        aims = np.asarray(self._embed(np.asarray(goals)), dtype=np.float32)
        if self.graph is None:
            return aims
        here, there = self.graph.regions_of(observations), self.graph.regions_of(goals)
        following = self.graph.next_regions(there)[np.arange(len(here)), here]
        # Where no way was observed, straight on is the best guess.
        on_the_way = (following != there) & (following >= 0)
        aims[on_the_way] = self.graph.centres[following[on_the_way]]
        return aims

    def actions(self, states: NDArray[Any], goals: "ArrayLike", rng: np.random.Generator) -> NDArray[Any]:
        """The next action from each state towards its goal.

        Args:
            states: (n, ...) states of the simulator; observations where there is experience in its place.
            goals: (n, ...) observations.
            rng: source of randomness.

        Returns:
            (n,) numbers of actions, or (n, ...) real ones.
        """
        if isinstance(self.simulator, Trajectories):
            return self._recorded.follow(states, self.targets(states, goals), self.samples, self.elites, rng)
        targets = self.targets(self.simulator.observe(states), goals)
        drawn = _Numbered(self, len(states)) if isinstance(self.simulator.actions, int) else _Real(self, len(states))
        for _ in range(self.rounds):
            tried: NDArray[Any] = drawn.sample(rng)
            costs = self._costs(states, tried, targets, rng)
            best = np.argsort(costs, axis=1, kind="stable")[:, : self.elites]
            drawn.move(np.take_along_axis(tried, best.reshape(*best.shape, *[1] * (tried.ndim - 2)), axis=1))
        first: NDArray[Any] = tried[np.arange(len(states)), best[:, 0], 0]
        return first

    def travel(
        self,
        world: Simulator,
        starts: "ArrayLike",
        goals: "ArrayLike",
        *,
        radius: float = 0.0,
        most_steps: int = 100,
    ) -> "Journey":
        """Go from starts to goals in a world, planning anew at each step.

        Args:
            world: whose steps are made.
            starts: (n, ...) its states.
            goals: (n, ...) its states.
            radius: a goal is reached where its observation is at most so far, by Euclidean distance.
            most_steps: after which a journey is given up.

        Returns:
            The journeys.
        """
        most, near = as_whole(most_steps), as_real(radius)
        if most is None or most < 1:
            raise ArgumentError(f"most_steps must be a whole number of at least 1, got {shown(most_steps)}")
        if near is None or not near >= 0:
            raise ArgumentError(f"radius must be a number of at least 0, got {shown(radius)}")
        states, ends = np.array(starts), np.asarray(goals)
        if states.ndim < 1 or states.shape != ends.shape or not len(states):
            raise ArgumentError(f"starts of shape {states.shape} and goals of shape {ends.shape} do not pair up")
        rng = np.random.default_rng(self.seed)
        aims = np.asarray(world.observe(ends))
        seen, steps = [np.asarray(world.observe(states))], np.zeros(len(states), dtype=np.int64)
        going = np.flatnonzero(_apart(seen[0], aims) > near)
        while len(going) and len(seen) <= most:
            given = seen[-1] if isinstance(self.simulator, Trajectories) else states
            moves = self.actions(given[going], aims[going], rng)
            states[going] = world.step(states[going], moves, rng)[0]
            steps[going] += 1
            seen.append(np.asarray(world.observe(states)))
            going = going[_apart(seen[-1][going], aims[going]) > near]
        reached = np.ones(len(states), dtype=bool)
        reached[going] = False
        return Journey(np.stack(seen), reached, steps)

    def _costs(
        self, states: NDArray[Any], tried: NDArray[Any], targets: NDArray[np.float32], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """(n, samples) costs of (n, samples, horizon, ...) actions."""
        assert not isinstance(self.simulator, Trajectories)
        moving, aims = (np.repeat(rows, self.samples, axis=0) for rows in (states, targets))
        nearest, total = np.full(len(moving), np.inf), np.zeros(len(moving))
        for time in range(self.horizon):
            moving = self.simulator.step(moving, tried[:, :, time].reshape(len(moving), *tried.shape[3:]), rng)[0]
            apart = ((self._embedded_states(moving) - aims) ** 2).sum(axis=1)
            nearest, total = np.minimum(nearest, apart), total + apart
        return (nearest + SOONER * total / self.horizon).reshape(len(states), self.samples)

    def _embedded_states(self, states: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """(n, k) points of states; where they are listed, each was embedded once."""
        assert not isinstance(self.simulator, Trajectories)
        if self._embedded_table is not None:
            return self._embedded_table[states]
        return self._embed(self.simulator.observe(states))

    @cached_property
    def _embedded_table(self) -> NDArray[np.floating[Any]] | None:
        table = self.simulator.table() if isinstance(self.simulator, World) else None
        return None if table is None else self._embed(table)


class Journey(NamedTuple):
    """Where planning led.

    Attributes:
        observations: (steps + 1, n, ...) those of every journey; after a goal was reached they stay the same.
        reached: (n,) whether the goal was.
        steps: (n,) how many were made.
    """

    observations: NDArray[Any]
    reached: NDArray[np.bool_]
    steps: NDArray[np.int64]


class _Recorded:
    """Where the steps that followed each recorded observation led, and the nearest ones of an observation."""

    def __init__(self, embed: Embed, data: Trajectories, horizon: int) -> None:
        if data.actions is None:
            raise DataError("these data have no actions; collect them with record='actions'")
        made = np.asarray(data.actions)
        if len(data.observation_shape) != 1:
            raise DataError(
                f"nearest observations are found among vectors; these are of shape {data.observation_shape}: give a "
                "simulator"
            )
        positions = np.concatenate(list(data.pair_positions()))
        ahead = np.minimum(horizon, data.steps_left(0, data.num_states)[positions])
        points = _all_points(embed, data)
        # Numbered actions may come as arrays of one entry.
        self.made = made[:, 0] if made.dtype.kind in "iu" and made.shape[1:] == (1,) else made
        self.ends = points[data.rows(positions + ahead)]
        starts = np.asarray(data.observations, dtype=np.float64)[data.rows(positions)]
        self.scale = np.maximum(starts.std(axis=0), np.finfo(np.float32).tiny)
        self.tree = cKDTree(starts / self.scale)

    def follow(
        self,
        observations: NDArray[Any],
        targets: NDArray[np.float32],
        samples: int,
        elites: int,
        rng: np.random.Generator,
    ) -> NDArray[Any]:
        """The first actions of recorded sequences that began near and ended near the targets."""
        if np.shape(observations)[1:] != self.scale.shape:
            raise ArgumentError(f"observations of shape (n, {len(self.scale)}) were recorded, got {observations.shape}")
        count = min(samples, self.tree.n)
        near = self.tree.query(np.asarray(observations, dtype=np.float64) / self.scale, k=np.arange(1, count + 1))[1]
        missed = ((self.ends[near] - targets[:, None]) ** 2).sum(axis=2)
        best = np.argsort(missed, axis=1, kind="stable")[:, :elites]
        # At random among the best: a move that a wall stops would be chosen for ever.
        chosen = best[np.arange(len(best)), rng.integers(best.shape[1], size=len(best))]
        return np.asarray(self.made[near[np.arange(len(near)), chosen]])


class _Numbered:
    """Sequences of numbered actions, drawn from a table of probabilities for each state and time."""

    def __init__(self, planner: Planner, count: int) -> None:
        self.shape = (count, planner.samples, planner.horizon)
        kinds = int(planner.simulator.actions)  # type: ignore[arg-type]
        self.probabilities = np.full((count, planner.horizon, kinds), 1.0 / kinds)

    def sample(self, rng: np.random.Generator) -> NDArray[np.int64]:
        limits = self.probabilities.cumsum(axis=2)[:, None]
        return np.minimum((rng.random((*self.shape, 1)) > limits).sum(axis=3), limits.shape[3] - 1)

    def move(self, elites: NDArray[np.int64]) -> None:
        kinds = np.arange(self.probabilities.shape[2])
        self.probabilities = (elites[..., None] == kinds).mean(axis=1)


class _Real:
    """Sequences of real actions in [-1, 1], drawn from a normal distribution for each state, time and entry."""

    def __init__(self, planner: Planner, count: int) -> None:
        shape = (count, planner.horizon, *planner.simulator.actions)  # type: ignore[misc]
        self.samples, self.mean, self.spread = planner.samples, np.zeros(shape), np.full(shape, 0.5)

    def sample(self, rng: np.random.Generator) -> NDArray[np.float64]:
        noise = rng.standard_normal((len(self.mean), self.samples, *self.mean.shape[1:]))
        return np.clip(self.mean[:, None] + self.spread[:, None] * noise, -1.0, 1.0)

    def move(self, elites: NDArray[np.float64]) -> None:
        self.mean, self.spread = elites.mean(axis=1), elites.std(axis=1)


def _embedding_of(model: LaplacianRepresentation | Embed) -> Embed:
    """psi of a representation, or a function of observations, with its values checked."""
    if isinstance(model, LaplacianRepresentation):
        check_model(model, 2)
        return model.embedding
    if not callable(model):
        raise ArgumentError(f"a LaplacianRepresentation or a function of observations is needed, got {shown(model)}")

    def checked(observations: NDArray[Any]) -> NDArray[Any]:
        found = as_reals(model(observations))
        if found is None or found.ndim != 2 or len(found) != len(observations) or not np.isfinite(found).all():
            raise ArgumentError(
                f"the function must map (n, ...) observations to (n, k) finite numbers, got {shown(found)}"
            )
        return found

    return checked


def _all_points(embed: Embed, data: Trajectories) -> NDArray[np.float32]:
    """(rows, k) points of all observations, some rows at a time."""
    begins = range(0, len(data.observations), CHUNK_ROWS)
    return np.concatenate([np.asarray(embed(data.observations[i : i + CHUNK_ROWS]), np.float32) for i in begins])


def _pruned(counts: NDArray[np.float64], kept: float) -> csr_array:
    """Row-wise shares, without the rarest that are not needed to reach ``kept``."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    order = np.argsort(-shares, axis=1, kind="stable")
    before = np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1) - np.take_along_axis(shares, order, axis=1)
    keep = np.zeros(shares.shape, dtype=bool)
    np.put_along_axis(keep, order, before < kept, axis=1)
    return csr_array(np.where(keep, shares, 0.0))


def _apart(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.float64]:
    """(n,) Euclidean distances between (n, ...) observations."""
    difference = (np.asarray(one, dtype=np.float64) - other).reshape(len(one), -1)
    return np.asarray(np.linalg.norm(difference, axis=1))
