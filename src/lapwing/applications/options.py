"""Options from a representation or the state graph, and how fast a random walk over options explores.

An option has a set of states where it may start, a policy, and a probability of ending in each state (Sutton, Precup &
Singh, 1999). Options here are exact: the world's states are listed, and the next states of every action are known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eig
from scipy.sparse import coo_array, csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components, shortest_path

from lapwing.applications.distances import CoverTime, checked_matrix
from lapwing.applications.trust import warn_of_untrusted
from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import World
from lapwing.errors import ArgumentError, DataError
from lapwing.operators import Operator
from lapwing.operators.clusters import canonical_signs
from lapwing.operators.eigensolver import smallest_eigenpairs
from lapwing.representation import LaplacianRepresentation

# Values closer than this share of the function's own size count as equal: actions tie, and no value is above zero.
TIE_TOLERANCE = 1e-9
VALUE_TOLERANCE = 1e-13
# Every goal needs a dense system of its own, and every option a dense matrix.
MAX_STATES = 2_000
MAX_MATRIX_BYTES = 2 << 30
GOAL_CHUNK_BYTES = 1 << 27
MAX_WALKS = 10**6


@dataclass(frozen=True, eq=False)
class Option:
    """An option over the listed states of a world: where it may start, what it does, and where it ends.

    The three methods are those of BaRL-SimpleOptions. An option makes at least one step before it may end.

    Args:
        name: for tables and pictures.
        observations: (n, ...) the observation of each state, as ``world.table()``.
        initiation_set: (n,) whether it may start in each state.
        actions: (n,) the action in each state; -1 where the option never acts.
        termination_probabilities: (n,) the probability of ending on arrival in each state.

    Example:
        >>> from lapwing import make_world
        >>> world = make_world("room:1x3")
        >>> right, _ = point_options(world, [(0, 2)])
        >>> [right.initiation(seen) for seen in world.table()], right.termination(world.table()[2])
        ([True, False, False], 1.0)
    """

    name: str
    observations: NDArray[np.generic]
    initiation_set: NDArray[np.bool_]
    actions: NDArray[np.int64]
    termination_probabilities: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        count = len(self.observations)
        given = (self.initiation_set, self.actions, self.termination_probabilities)
        if any(np.shape(array) != (count,) for array in given):
            raise ArgumentError(f"option {shown(self.name)}: each array needs one entry for each of {count} states")
        ending = np.asarray(self.termination_probabilities)
        if not ((ending >= 0) & (ending <= 1)).all():
            raise ArgumentError(f"option {shown(self.name)}: the probabilities of ending must be between 0 and 1")
        if ((np.asarray(self.actions) < 0) & ((ending < 1) | np.asarray(self.initiation_set))).any():
            raise ArgumentError(f"option {shown(self.name)} needs an action wherever it may start or go on")

    def initiation(self, observation: "ArrayLike") -> bool:
        """Whether the option may start.

        Args:
            observation: of one state.

        Returns:
            True where it may.
        """
        return bool(self.initiation_set[self._state(observation)])

    def policy(self, observation: "ArrayLike") -> int:
        """The action that the option takes.

        Args:
            observation: of one state.

        Returns:
            The number of an action.

        Raises:
            ArgumentError: where the option always ends and cannot start, so that it has no action.
        """
        state = self._state(observation)
        if self.actions[state] < 0:
            raise ArgumentError(f"option {self.name} ends in state {state} and has no action there")
        return int(self.actions[state])

    def termination(self, observation: "ArrayLike") -> float:
        """The probability that the option ends on arrival.

        Args:
            observation: of one state.

        Returns:
            A probability.
        """
        return float(self.termination_probabilities[self._state(observation)])

    @cached_property
    def _lookup(self) -> LookupEncoder:
        count = len(self.observations)
        return LookupEncoder(self.observations, np.empty((count, 0)), np.full(count, 1.0 / count))

    def _state(self, observation: "ArrayLike") -> int:
        number = int(self._lookup.numbers_of(np.asarray(observation)[None])[0])
        if number < 0:
            raise ArgumentError(f"option {self.name} does not know the observation {shown(observation)}")
        return number


# --- making options ------------------------------------------------------------------------------------------------


def eigenoptions(
    model: LaplacianRepresentation,
    world: World,
    components: Sequence[int] | None = None,
    *,
    discount: float = 0.9,
    both_signs: bool = True,
) -> list[Option]:
    """The eigenoptions of a representation (Machado, Bellemare & Bowling, 2017; from learned components, 2018).

    Each follows the optimal policy for the eigenpurpose ``r(s, s') = u_i(s') - u_i(s)`` and ends where no action has a
    positive value. The successor form has the same components in the same order wherever dynamics are reversible; for
    directed dynamics see :func:`successor_components`.

    Args:
        model: exact or learned; it is evaluated at the world's observations.
        world: with listed states, discrete actions and known dynamics.
        components: which, counted from 1; all but the constant first one unless given.
        discount: of the eigenpurpose's return.
        both_signs: whether ``-u_i`` gives an option too, since the sign of an eigenvector is arbitrary.

    Returns:
        The options of the components in the order given, each followed by that of its negation.

    Warns:
        UntrustedWarning: where the certificate says that a component has not converged or has too few data.

    Note:
        Where an eigenvalue repeats, the components of its space are one basis of many, and so are their options.

    Example:
        >>> from lapwing import make_world, solve
        >>> [option.name for option in eigenoptions(solve("GridMaze-7", dim=3), make_world("GridMaze-7"))]
        ['u2', '-u2', 'u3', '-u3']
    """
    chosen = checked_components(model, components)
    exact_dynamics(world)
    values = np.asarray(model.transform(_observations(world)), dtype=np.float64)[:, np.subtract(chosen, 1)]
    warn_of_untrusted(model, chosen, "options of components that are not trusted may lead elsewhere")
    names = [f"u{number}" for number in chosen]
    return eigenpurpose_options(world, values, names=names, discount=discount, both_signs=both_signs)


def eigenpurpose_options(
    world: World,
    values: "ArrayLike",
    *,
    names: Sequence[str] | None = None,
    discount: float = 0.9,
    both_signs: bool = True,
    seed: int | None = None,
) -> list[Option]:
    """Options that climb functions of the state as eigenoptions climb components, see :func:`eigenoptions`.

    Args:
        world: with listed states, discrete actions and known dynamics.
        values: (n, k) one function per column.
        names: of the k functions.
        discount: of the eigenpurpose's return, at least 0 and below 1.
        both_signs: whether the negation of each function gives an option too.
        seed: for drawing one of equally good actions at random in each state; the first one unless given.

    Returns:
        The options, the initiation set of each being the states where it does not end. One that ends everywhere, as
        that of a constant function, has an empty initiation set.

    Raises:
        ArgumentError: values that do not fit the world or are not finite, or a discount out of range.
    """
    matrices = exact_dynamics(world)
    given, gamma = as_reals(values), checked_discount(discount)
    count = matrices[0].shape[0]
    if given is None or given.ndim != 2 or given.shape[0] != count or not np.isfinite(given).all():
        raise ArgumentError(f"values must be finite numbers of shape ({count}, k), got {shown(values)}")
    titles = [f"u{number + 1}" for number in range(given.shape[1])] if names is None else list(names)
    if len(titles) != given.shape[1]:
        raise ArgumentError(f"{len(titles)} names do not fit {given.shape[1]} functions")
    given, titles = with_negations(given, titles) if both_signs else (given, titles)
    actions, ending = climbing_policies(matrices, given, gamma, None if seed is None else checked_seed(seed))
    return options_of_policies(titles, _observations(world), actions, ending)


def successor_components(operator: Operator, count: int, discount: float = 0.9) -> NDArray[np.float64]:
    """Functions for eigenoptions in the successor form: eigenvectors of ``(I - discount P)^-1`` (Machado et al., 2018).

    A representation holds the components of the symmetrised walk, which are the same functions where dynamics are
    reversible. Where they are directed (one-way doors, portals) these are others, and so are their options.

    Args:
        operator: of at most 4,000 states, from :func:`lapwing.operator`; for experience with ``directed=True``.
        count: how many functions, without the constant one.
        discount: of the successor representation; it decides their order alone.

    Returns:
        (n, count) right eigenvectors by decreasing modulus of their eigenvalue, each of mean square one over states. A
        complex pair gives two functions, its real and its imaginary part.

    Example:
        >>> import lapwing as lw
        >>> values = successor_components(lw.operator("OneWayRooms"), 4)
        >>> options = eigenpurpose_options(lw.make_world("OneWayRooms"), values)
        >>> len(options)
        8
    """
    matrix, gamma, whole = checked_matrix(operator), checked_discount(discount), as_whole(count)
    if whole is None or not 1 <= whole < matrix.shape[0]:
        raise ArgumentError(f"count must be a whole number from 1 to {matrix.shape[0] - 1}, got {shown(count)}")
    mu, vectors = eig(matrix.toarray())
    # Of a complex pair the one above the real axis stands for both; the first eigenvector is constant.
    distances = np.abs(1.0 - gamma * mu)
    order = [number for number in np.argsort(distances, kind="stable") if mu[number].imag >= 0][1:]
    both = [part for number in order for part in (vectors[:, number].real, vectors[:, number].imag)]
    found = np.stack([part for part in both if part.any()][:whole], axis=1)
    return canonical_signs(found / np.sqrt(np.mean(found**2, axis=0)))


def point_options(world: World, pairs: Sequence[tuple[int, int]]) -> list[Option]:
    """Options that lead from one state to another by a shortest path, and back (Jinnai et al., 2019).

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        pairs: numbers of states.

    Returns:
        Two options for each pair: there, and back.
    """
    matrices = exact_dynamics(world)
    _require_connected(world, matrices)
    count = matrices[0].shape[0]
    found = []
    for one, other in pairs:
        ends = [_checked_state(state, count) for state in (one, other)]
        if ends[0] == ends[1]:
            raise ArgumentError(f"a point option leads from one state to another, got {ends[0]} twice")
        for start, goal in (ends, ends[::-1]):
            starts = np.arange(count) == start
            found.append(_shortest_path_option(world, matrices, f"{start} to {goal}", starts, goal))
    return found


def covering_options(world: World, count: int) -> list[Option]:
    """Point options between the ends of the Fiedler vector, one pair after another (Jinnai et al., 2019).

    Each pair joins the largest and the smallest entry of the second eigenvector of the combinatorial Laplacian, and is
    an edge of the graph from which the next pair is found.

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        count: how many options: an even number, because each edge is walked both ways.

    Returns:
        The options, the two of an edge next to one another.

    Note:
        Where the second eigenvalue repeats, as in a square room, several sets of options are equally right.

    Example:
        >>> from lapwing import make_world
        >>> [option.name for option in covering_options(make_world("room:1x4"), 2)]
        ['0 to 3', '3 to 0']
    """
    whole = as_whole(count)
    if whole is None or whole < 2 or whole % 2:
        raise ArgumentError(f"the number of covering options is even and at least 2, got {shown(count)}")
    _require_connected(world, exact_dynamics(world))
    graph = state_graph(world)
    if graph.shape[0] < 3:
        raise DataError(f"{world.name} has no two states that are not neighbours; there is nothing to cover")
    pairs = []
    for _ in range(whole // 2):
        fiedler = _laplacian_pairs(graph, 2)[1][:, 1]
        rounding = TIE_TOLERANCE * np.abs(fiedler).max()
        top, bottom = (int(np.argmax(turned >= turned.max() - rounding)) for turned in (fiedler, -fiedler))
        pairs.append((top, bottom))
        graph = _with_edges(graph, [top], [bottom])
    return point_options(world, pairs)


def diffusion_options(world: World, time: int) -> list[Option]:
    """Options to the states that a lazy random walk leaves most slowly (Bar, Talmon & Meir, 2020).

    They lead by shortest paths, from everywhere, to the local maxima of ``f_t(s) = |p_t(. | s) - pi|^2``: how far the
    lazy walk on the state graph is from its stationary distribution ``time`` steps after it began in s. Neighbours of
    equal values are one plateau, which gives one option.

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        time: t; fewer options are found for longer times.

    Returns:
        One option per local maximum, in order of their states; none where all states are alike, as on a ring.

    Example:
        >>> from lapwing import make_world
        >>> [option.name for option in diffusion_options(make_world("room:1x4"), 2)]
        ['to 0', 'to 3']
    """
    whole = as_whole(time)
    if whole is None or whole < 1:
        raise ArgumentError(f"time must be a whole number of at least 1, got {shown(time)}")
    matrices = exact_dynamics(world)
    _require_connected(world, matrices)
    graph = state_graph(world)
    goals = _local_maxima(graph, _distance_to_equilibrium(graph, whole))
    everywhere = np.arange(graph.shape[0])
    return [_shortest_path_option(world, matrices, f"to {goal}", everywhere != goal, goal) for goal in goals]


# --- the graph of states -------------------------------------------------------------------------------------------


def exact_dynamics(world: World) -> tuple[csr_array, ...]:
    """The transition matrix of each action, or an error that says what the world lacks.

    Args:
        world: with listed states, discrete actions and known dynamics.

    Returns:
        (n, n) row-stochastic matrices, one per action.
    """
    if not isinstance(world, World):
        raise ArgumentError(f"exact dynamics need a world, such as make_world('FourRooms'), got {shown(world)}")
    if not isinstance(world.actions, int):
        raise ArgumentError(f"{world.name} has real-valued actions; options and exact policies need discrete ones")
    matrices = world.action_matrices()
    if matrices is None or world.table() is None:
        raise ArgumentError(
            f"{world.name} does not list its states and the next states of each action, which exact options and "
            "policies need"
        )
    return matrices


def likeliest_next_states(world: World) -> NDArray[np.int64]:
    """The most likely next state of each action.

    Args:
        world: with listed states, discrete actions and known dynamics.

    Returns:
        (n, actions) numbers of states.
    """
    return np.stack([np.asarray(matrix.argmax(axis=1)).ravel() for matrix in exact_dynamics(world)], axis=1)


def state_graph(world: World) -> csr_array:
    """The undirected graph of states: joined where an action may lead from one to the other, without self-loops.

    Args:
        world: with listed states, discrete actions and known dynamics.

    Returns:
        (n, n) symmetric adjacency matrix of zeros and ones.
    """
    here, there = _all_moves(exact_dynamics(world)).nonzero()
    empty = csr_array((world.num_states, world.num_states), dtype=np.float64)
    return _with_edges(empty, here, there)


def algebraic_connectivity(world: World, options: Sequence[Option] = ()) -> float:
    """The second eigenvalue of the combinatorial Laplacian ``D - A`` of the state graph, with options as edges.

    An option joins every state where it may start to those where it may then end. The larger the eigenvalue, the
    smaller the bound on the cover time of a random walk (Jinnai et al., 2019).

    Args:
        world: with listed states, discrete actions and known dynamics.
        options: over the states of that world.

    Returns:
        The eigenvalue; zero where the graph is not connected.
    """
    graph, moves = state_graph(world), _dense(exact_dynamics(world))
    if graph.shape[0] < 2:
        raise DataError(f"{world.name} has one state; a graph needs two for a second eigenvalue")
    for option in _checked_options(world, options):
        walk = _OptionWalk.of(option, moves)
        starts, ends = np.nonzero((walk.exits > TIE_TOLERANCE) & option.initiation_set[:, None])
        graph = _with_edges(graph, starts, ends)
    return float(_laplacian_pairs(graph, 2)[0][1])


# --- random walks over options -------------------------------------------------------------------------------------


def diffusion_time(
    world: World, options: Sequence[Option] = (), count_termination: bool = False, *, bumps: bool = True
) -> float:
    """The expected number of steps between two states of a random walk over actions and options (Machado et al., 2017).

    For actions alone it is ``n / (n - 1) * sum_i 1 / lambda_i`` over the eigenvalues of I - P above zero.

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        options: over the states of that world.
        count_termination: whether the end of an option costs a step of its own, as in the authors' code.
        bumps: see :func:`expected_steps`.

    Returns:
        The mean of :func:`expected_steps` over all starts other than the goal, then over all goals.

    Example:
        >>> from lapwing import make_world
        >>> round(diffusion_time(make_world("room:10x10")), 3)
        271.965
    """
    steps = expected_steps(world, options, count_termination=count_termination, bumps=bumps)
    return float(steps.sum() / (len(steps) * (len(steps) - 1)))


def expected_steps(
    world: World,
    options: Sequence[Option] = (),
    *,
    count_termination: bool = False,
    as_edges: bool = False,
    bumps: bool = True,
) -> NDArray[np.float64]:
    """The expected number of steps from each state to each goal of a random walk over actions and options.

    The walk chooses uniformly among the actions and the options that may start where it is, and follows an option to
    its end. The goal is reached on first arrival, also inside an option. Exact, by linear systems.

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        options: over the states of that world.
        count_termination: whether the end of an option costs a step of its own, as in the authors' code.
        as_edges: whether an option is one step, as an edge of a graph is, and visits only the state where it ends.
        bumps: whether the walk chooses actions that certainly stay where they are.

    Returns:
        (n, n) expected steps, starts in rows, goals in columns; zero on the diagonal.

    Note:
        One matrix serves all goals: making a goal absorbing inside an option takes away what would have followed the
        first arrival there, which is the option's own walk from the goal.
    """
    if count_termination and as_edges:
        raise ArgumentError(
            "an option that is an edge has no step for its end; leave out count_termination or as_edges"
        )
    matrices = exact_dynamics(world)
    _require_connected(world, matrices)
    chosen = _checked_options(world, options)
    size = matrices[0].shape[0]
    _refuse_large(world, size, len(chosen))
    available, dense = _available_actions(matrices, bumps), _dense(matrices)
    choices = available.sum(axis=0)
    moves = np.einsum("as,ast->st", available, dense)
    costs = np.repeat(choices[:, None], size, axis=1)
    after_goal, exits = np.zeros((len(chosen), size, size)), np.zeros((len(chosen), size, size))
    for number, option in enumerate(chosen):
        walk = _OptionWalk.of(option, dense)
        starts = option.initiation_set.astype(np.float64)[:, None]
        choices = choices + starts[:, 0]
        moves = moves + starts * walk.exits
        costs += starts * (1.0 if as_edges else walk.duration_to(count_termination))
        if not as_edges:
            exits[number], after_goal[number] = walk.exits, starts * walk.continuations
    return _absorbing_times(moves, choices, costs, after_goal, exits)


def cover_time(
    world: World,
    options: Sequence[Option] = (),
    walks: int = 1000,
    seed: int = 0,
    *,
    as_edges: bool = False,
    bumps: bool = True,
) -> CoverTime:
    """The number of steps until a random walk over actions and options has visited every state, by simulation.

    Args:
        world: with listed states, discrete actions and known dynamics; every state must be reachable from every other.
        options: over the states of that world.
        walks: how many, each from a state drawn uniformly.
        seed: of the simulation.
        as_edges: see :func:`expected_steps`.
        bumps: see :func:`expected_steps`.

    Returns:
        Mean and standard error.

    Example:
        >>> from lapwing import make_world
        >>> cover_time(make_world("room:1x2"), walks=4, bumps=False).mean
        1.0
    """
    matrices = exact_dynamics(world)
    _require_connected(world, matrices)
    chosen = _checked_options(world, options)
    whole = as_whole(walks)
    if whole is None or not 2 <= whole <= MAX_WALKS:
        raise ArgumentError(f"walks must be a whole number from 2 to {MAX_WALKS:,}, got {shown(walks)}")
    root = checked_seed(seed)
    for option in chosen:
        # One that never ends would be walked for ever.
        _require_an_end(option, _policy_matrix(option, matrices))
    steps = _simulated_cover(world, _available_actions(matrices, bumps), chosen, whole, root, as_edges)
    return CoverTime(float(steps.mean()), float(steps.std(ddof=1) / np.sqrt(whole)))


class _OptionWalk(NamedTuple):
    """What becomes of an option, by the state where it starts (rows).

    Attributes:
        exits: (n, n) probability of ending in each state.
        continuations: (n, n) probability of arriving in each state and going on from there.
        duration: (n,) expected moves.
    """

    exits: NDArray[np.float64]
    continuations: NDArray[np.float64]
    duration: NDArray[np.float64]

    @classmethod
    def of(cls, option: Option, moves: NDArray[np.float64]) -> "_OptionWalk":
        """Arrivals at each state are ``(I - M (1 - beta))^-1 M``, where M is the option's policy and beta ends it."""
        acts = option.actions >= 0
        size = len(option.actions)
        steps = np.where(acts[:, None], moves[option.actions, np.arange(size)], 0.0)
        _require_an_end(option, steps)
        going_on = 1.0 - option.termination_probabilities
        system = np.eye(size) - steps * going_on
        solved = np.asarray(np.linalg.solve(system, np.column_stack([steps, acts])), dtype=np.float64)
        arrivals, duration = solved[:, :-1], solved[:, -1]
        first = arrivals / (1.0 + going_on * arrivals.diagonal())
        return cls(arrivals * option.termination_probabilities, first * going_on, duration)

    def duration_to(self, count_termination: bool) -> NDArray[np.float64]:
        """(n, n) expected steps until the option ends or the goal (columns) is reached."""
        steps = self.duration[:, None] - self.continuations * self.duration
        if count_termination:
            ends = self.exits.sum(axis=1)
            elsewhere = ends[:, None] - self.exits
            steps = steps + elsewhere - self.continuations * elsewhere.diagonal()
        return steps


def _absorbing_times(
    moves: NDArray[np.float64],
    choices: NDArray[np.float64],
    costs: NDArray[np.float64],
    after_goal: NDArray[np.float64],
    exits: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Expected costs until each state is reached, a batch of goals at a time.

    Args:
        moves: (n, n) sum over choices of the probabilities of where each ends.
        choices: (n,) how many there are.
        costs: (n, n) sum over choices of the expected steps, by goal.
        after_goal: (k, n, n) probability that option k arrives at the goal (last axis) and would go on.
        exits: (k, n, n) where option k ends.
    """
    size = len(moves)
    times = np.zeros((size, size))
    chunk = max(1, GOAL_CHUNK_BYTES // (8 * size**2))
    for goals in np.array_split(np.arange(size), -(-size // chunk)):
        lost = np.einsum("ksg,kge->gse", after_goal[:, :, goals], exits[:, goals], optimize=True)
        systems = np.eye(size) - (moves - lost) / choices[:, None]
        sides = (costs / choices[:, None])[:, goals].T.copy()
        places = np.arange(len(goals))
        # The goal is absorbing: its row and column are those of the identity, its time zero.
        systems[places, goals], systems[places, :, goals] = 0.0, 0.0
        systems[places, goals, goals] = 1.0
        sides[places, goals] = 0.0
        times[:, goals] = np.linalg.solve(systems, sides[..., None])[..., 0].T
    return times


def _simulated_cover(
    world: World, available: NDArray[np.float64], options: list[Option], walks: int, seed: int, as_edges: bool
) -> NDArray[np.int64]:
    """(walks,) steps until every state was visited."""
    rng = np.random.default_rng(seed)
    size, primitive = available.shape[1], len(available)
    starts = [option.initiation_set.astype(np.float64) for option in options]
    order, number = _choice_table(np.stack([*available, *starts]))
    actions = np.stack([option.actions for option in options]) if options else np.empty((0, size), dtype=np.int64)
    ending = np.stack([one.termination_probabilities for one in options]) if options else np.empty((0, size))
    states, current = rng.integers(size, size=walks), np.full(walks, -1)
    steps, left = np.zeros(walks, dtype=np.int64), np.full(walks, size - 1)
    seen = np.zeros((walks, size), dtype=bool)
    seen[np.arange(walks), states] = True
    walking = np.flatnonzero(left)
    while len(walking):
        here, doing = states[walking], current[walking]
        drawn = order[here, (rng.random(len(here)) * number[here]).astype(np.int64)]
        chooses = doing < 0
        choice = np.where(chooses, drawn, doing + primitive)
        doing = choice - primitive
        inside = doing >= 0
        moves = choice.copy()
        moves[inside] = actions[doing[inside], here[inside]]
        there = np.asarray(world.step(here, moves, rng)[0])
        ends = ~inside
        ends[inside] = rng.random(int(inside.sum())) < ending[doing[inside], there[inside]]
        states[walking], current[walking] = there, np.where(ends, -1, doing)
        steps[walking] += chooses if as_edges else 1
        visits = walking[ends] if as_edges else walking
        left[visits] -= ~seen[visits, states[visits]]
        seen[visits, states[visits]] = True
        walking = walking[left[walking] > 0]
    return steps


def _choice_table(available: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, choices) the numbers of the choices in each state, those that there are first; and (n,) how many."""
    return np.argsort(-available, axis=0, kind="stable").T, available.sum(axis=0).astype(np.int64)


# --- policies and maxima -------------------------------------------------------------------------------------------


def climbing_policies(
    matrices: tuple[csr_array, ...], values: NDArray[np.float64], discount: float, seed: int | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Optimal actions for the eigenpurposes of several functions, with ending as an alternative of value 0.

    Args:
        matrices: (n, n) of each action.
        values: (n, k) one function per column.
        discount: of the return.
        seed: for drawing one of equally good actions; None for the first.

    Returns:
        (n, k) numbers of actions, and (n, k) whether no action has a positive value.
    """
    scale = np.abs(values).max(axis=0, initial=np.finfo(np.float64).tiny)
    scaled = values / scale
    rewards = np.stack([matrix @ scaled for matrix in matrices]) - scaled
    best = np.zeros_like(scaled)
    change = np.inf
    while change > VALUE_TOLERANCE:
        returns = rewards + discount * np.stack([matrix @ best for matrix in matrices])
        better = np.maximum(returns.max(axis=0), 0.0)
        change, best = float(np.abs(better - best).max(initial=0.0)), better
    highest = returns.max(axis=0)
    tied = returns >= highest - TIE_TOLERANCE
    order = tied if seed is None else tied * (1.0 + np.random.default_rng(seed).random(tied.shape))
    return order.argmax(axis=0), highest <= TIE_TOLERANCE


def with_negations(values: NDArray[np.float64], names: list[str]) -> tuple[NDArray[np.float64], list[str]]:
    """Functions of the state, each followed by its negation.

    Args:
        values: (n, k) one function per column.
        names: of the k functions.

    Returns:
        (n, 2 k) values, and 2 k names.
    """
    both = np.stack([values, -values], axis=2).reshape(len(values), -1)
    return both, [signed for name in names for signed in (name, f"-{name}")]


def options_of_policies(
    names: list[str],
    observations: NDArray[np.generic],
    actions: NDArray[np.int64],
    ending: NDArray[np.bool_],
) -> list[Option]:
    """Options that may start wherever they do not end.

    Args:
        names: of the k options.
        observations: (n, ...) the observation of each state.
        actions: (n, k) numbers of actions.
        ending: (n, k) whether each option ends.

    Returns:
        The options.
    """
    return [
        Option(name, observations, ~ends, np.where(ends, -1, moves), ends.astype(np.float64))
        for name, moves, ends in zip(names, actions.T, ending.T, strict=True)
    ]


def _shortest_path_option(
    world: World, matrices: tuple[csr_array, ...], name: str, starts: NDArray[np.bool_], goal: int
) -> Option:
    """The option that ends in ``goal`` and takes the action after which the goal is nearest, on average."""
    distances = shortest_path(_all_moves(matrices).T, unweighted=True, indices=goal)
    actions = np.stack([matrix @ distances for matrix in matrices]).round(9).argmin(axis=0)
    ends = np.arange(len(distances)) == goal
    return Option(name, _observations(world), starts, np.where(ends, -1, actions), ends.astype(np.float64))


def _distance_to_equilibrium(graph: csr_array, time: int) -> NDArray[np.float64]:
    """(n,) squared distance of the lazy walk from its stationary distribution, by start."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    lazy = csr_array((eye_array(len(degrees)) + diags_array(1.0 / degrees) @ graph) / 2.0)
    after = np.eye(len(degrees))
    for _ in range(time):
        after = lazy @ after
    return np.asarray(((after - degrees / degrees.sum()) ** 2).sum(axis=1))


def _local_maxima(graph: csr_array, values: NDArray[np.float64]) -> list[int]:
    """The first state of every plateau that no neighbour exceeds; a constant function has none."""
    here, there = graph.nonzero()
    equal = np.abs(values[here] - values[there]) <= TIE_TOLERANCE * np.abs(values).max()
    joined = coo_array((np.ones(int(equal.sum())), (here[equal], there[equal])), shape=graph.shape)
    plateaus = connected_components(joined, directed=False)[1]
    exceeded = np.full(plateaus.max() + 1, plateaus.max() == 0)
    exceeded[plateaus[here[~equal & (values[there] > values[here])]]] = True
    first = np.unique(plateaus, return_index=True)[1]
    return sorted(int(state) for state in first[~exceeded])


# --- graphs and dynamics -------------------------------------------------------------------------------------------


def _with_edges(graph: csr_array, here: "ArrayLike", there: "ArrayLike") -> csr_array:
    """The graph with edges added in both directions; an edge that is there stays one edge, and self-loops are none."""
    known_here, known_there = graph.nonzero()
    one, other = np.append(known_here, here), np.append(known_there, there)
    apart = one != other
    one, other = np.append(one[apart], other[apart]), np.append(other[apart], one[apart])
    joined = coo_array((np.ones(len(one)), (one, other)), shape=graph.shape).tocsr()
    joined.data[:] = 1.0
    return joined


def _laplacian_pairs(graph: csr_array, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(count,) smallest eigenvalues of ``D - A`` and (n, count) eigenvectors."""
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    pairs = smallest_eigenpairs(csr_array(eye_array(len(degrees)) - diags_array(degrees) + graph), count)
    return pairs.values, canonical_signs(pairs.vectors)


def _all_moves(matrices: tuple[csr_array, ...]) -> csr_array:
    """(n, n) sum of the matrices of all actions."""
    return csr_array(sum(matrices[1:], start=matrices[0]))


def _dense(matrices: tuple[csr_array, ...]) -> NDArray[np.float64]:
    """(actions, n, n) the same matrices as one array."""
    return np.stack([matrix.toarray() for matrix in matrices])


def _policy_matrix(option: Option, matrices: tuple[csr_array, ...]) -> csr_array:
    """(n, n) where the option's action leads; rows of zeros where it has none."""
    chosen = [diags_array((option.actions == action).astype(np.float64)) for action in range(len(matrices))]
    return csr_array(_all_moves(tuple(csr_array(rows @ one) for rows, one in zip(chosen, matrices, strict=True))))


def _available_actions(matrices: tuple[csr_array, ...], bumps: bool) -> NDArray[np.float64]:
    """(actions, n) one where the walk may choose the action; without bumps, where it may lead elsewhere."""
    stays = np.stack([matrix.diagonal() for matrix in matrices])
    return np.ones_like(stays) if bumps else (stays < 1.0 - TIE_TOLERANCE).astype(np.float64)


# --- checks at the border ------------------------------------------------------------------------------------------


def _observations(world: World) -> NDArray[np.generic]:
    return np.asarray(world.table())


def _require_connected(world: World, matrices: tuple[csr_array, ...]) -> None:
    parts = int(connected_components(_all_moves(matrices), directed=True, connection="strong")[0])
    if parts > 1:
        raise DataError(
            f"{world.name} has {parts} parts that cannot all reach one another, so some times between states are "
            "infinite; take one part as a world of its own"
        )
    if matrices[0].shape[0] < 2:
        raise DataError(f"{world.name} has one state, and no other to go to")


def _require_an_end(option: Option, steps: NDArray[np.float64] | csr_array) -> None:
    """Refuse an option with a state where it acts and from which it cannot end; ``steps`` is its (n, n) policy."""
    can_end = np.zeros(len(option.actions), dtype=bool)
    ends = option.termination_probabilities > 0
    while True:
        more = np.asarray(steps @ (ends | can_end).astype(np.float64)) > 0
        if (more == can_end).all():
            break
        can_end = more
    stuck = ~can_end & (option.actions >= 0)
    if stuck.any():
        raise ArgumentError(f"option {option.name} never ends from state {int(np.argmax(stuck))}")


def _refuse_large(world: World, size: int, options: int) -> None:
    if size > MAX_STATES or 16 * options * size**2 > MAX_MATRIX_BYTES:
        raise ArgumentError(
            f"{world.name} has {size:,} states and {options} options: too many for exact times between all states "
            f"(at most {MAX_STATES:,} states, and 2 GiB of matrices); cover_time simulates"
        )


def _checked_options(world: World, options: Sequence[Option]) -> list[Option]:
    observations = _observations(world)
    found = list(options)
    for option in found:
        if not isinstance(option, Option):
            raise ArgumentError(f"options must be Option objects, got {shown(option)}")
        if not np.array_equal(option.observations, observations):
            raise ArgumentError(f"option {option.name} is over the states of another world than {world.name}")
        if not isinstance(world.actions, int) or option.actions.max(initial=-1) >= world.actions:
            raise ArgumentError(f"option {option.name} takes an action that {world.name} does not have")
    return found


def checked_seed(seed: int) -> int:
    """A seed as a whole number, or an error.

    Args:
        seed: at least 0.

    Returns:
        The number.
    """
    whole = as_whole(seed)
    if whole is None or whole < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0, got {shown(seed)}")
    return whole


def checked_discount(discount: float) -> float:
    """A discount as a number, or an error.

    Args:
        discount: at least 0 and below 1.

    Returns:
        The number.
    """
    gamma = as_real(discount)
    if gamma is None or not 0.0 <= gamma < 1.0:
        raise ArgumentError(f"discount must be at least 0 and below 1, got {shown(discount)}")
    return gamma


def _checked_state(state: int, count: int) -> int:
    whole = as_whole(state)
    if whole is None or not 0 <= whole < count:
        raise ArgumentError(f"states are whole numbers from 0 to {count - 1}, got {shown(state)}")
    return whole


def checked_components(model: LaplacianRepresentation, components: Sequence[int] | None) -> list[int]:
    """Which components give options, or an error.

    Args:
        model: of at least two dimensions.
        components: counted from 1; None for all but the constant first one.

    Returns:
        Their numbers.
    """
    if not isinstance(model, LaplacianRepresentation):
        raise ArgumentError(f"eigenoptions need a LaplacianRepresentation, got {shown(model)}")
    if model.dim < 2:
        raise ArgumentError("this representation has only its constant component, which gives no option; use dim >= 2")
    chosen = list(range(2, model.dim + 1)) if components is None else [as_whole(number) for number in components]
    if not chosen or any(number is None or not 2 <= number <= model.dim for number in chosen):
        raise ArgumentError(
            f"components are numbers from 2 to {model.dim} (1 is constant and gives no option), got {shown(components)}"
        )
    return [number for number in chosen if number is not None]
