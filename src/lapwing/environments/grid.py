"""Grid worlds: one action table from which both the step and the transition matrix come."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.environments.layouts import Layout
from lapwing.environments.world import AGENT_COLOUR, FIELD_CELLS, FLOOR_COLOUR, WALL_COLOUR, World
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ObservationMode = Literal["xy", "one_hot", "pixels"]
OBSERVATION_MODES: tuple[str, ...] = get_args(ObservationMode)

# up, right, down, left, as (row, column): the only list of moves in the package.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
MOVE_NAMES = ("up", "right", "down", "left")
DOWN = MOVE_NAMES.index("down")
OPPOSITE = tuple(MOVES.index((-row, -column)) for row, column in MOVES)

OneWay = tuple[int, int, str]
Portal = tuple[int, int, str, int, int]

MAX_TABLE_BYTES = 2 << 30


@dataclass(frozen=True, eq=False, repr=False)
class GridWorld(World):
    """A grid of free cells with four moves; a blocked move stays where it is.

    Args:
        layout: which cells are free.
        observation: ``xy`` (row and column scaled as in the paper), ``one_hot`` or ``pixels`` (one per tile).
        slip: with this probability a move chosen uniformly at random replaces the intended one.
        policy: (states, 4) probabilities of the moves up, right, down, left; None is the uniform policy.
        wind: with this probability a move down replaces the one that would have been made.
        one_way: (row, column, move) of cells that cannot be entered against that move: ``(3, 6, "right")`` is a door
            to the right, which the move left does not enter.
        portals: (row, column, move, row, column): from the first cell this move leads to the second one.

    Example:
        >>> from lapwing.environments.layouts import room
        >>> world = GridWorld(room(2, 2))
        >>> world.transition_matrix().toarray()[0]     # a corner: two of the four moves are blocked
        array([0.5 , 0.25, 0.25, 0.  ])
    """

    layout: Layout
    observation: ObservationMode = "xy"
    slip: float = 0.0
    policy: NDArray[np.float64] | None = None
    wind: float = 0.0
    one_way: tuple[OneWay, ...] = ()
    portals: tuple[Portal, ...] = ()
    name: str = field(init=False)
    observation_shape: tuple[int, ...] = field(init=False)
    actions: int = field(init=False, default=len(MOVES))

    def __post_init__(self) -> None:
        """Check every option, so that a world which exists is a world which works."""
        if not isinstance(self.layout, Layout):
            raise LapwingError(f"a grid world is made from a layout, got {shown(self.layout)}")
        if not isinstance(self.observation, str) or self.observation not in OBSERVATION_MODES:
            named = shown(self.observation)
            raise UnknownNameError(f"unknown observation mode {named}; {did_you_mean(named, OBSERVATION_MODES)}")
        for option in ("slip", "wind"):
            probability = as_real(getattr(self, option))
            if probability is None or not 0.0 <= probability <= 1.0:
                raise LapwingError(f"{option} is a probability between 0 and 1, got {shown(getattr(self, option))}")
            object.__setattr__(self, option, probability)
        object.__setattr__(self, "one_way", _checked_places(self.one_way, "one_way", 1, self.layout))
        object.__setattr__(self, "portals", _checked_places(self.portals, "portals", 2, self.layout))
        if self.policy is not None:
            object.__setattr__(self, "policy", checked_policy(self.policy, self.num_states))
        shapes = {"xy": (2,), "one_hot": (self.num_states,), "pixels": (*self.layout.shape, 3)}
        object.__setattr__(self, "observation_shape", shapes[self.observation])
        object.__setattr__(self, "name", self.layout.name)

    def __repr__(self) -> str:
        """One line: its name, how many states, and what is not as usual."""
        given = {"slip": self.slip, "wind": self.wind, "one_way": self.one_way, "portals": self.portals}
        options = [f"{name}={value!r}" for name, value in given.items() if value]
        options += [] if self.policy is None else ["a policy of its own"]
        return f"GridWorld({', '.join([repr(self.name), f'{self.num_states:,} states', self.observation, *options])})"

    @property
    def num_states(self) -> int:
        """How many states there are: the free cells."""
        return self.layout.num_cells

    @cached_property
    def successors(self) -> NDArray[np.int32]:
        """(states, 4): where each move leads. The action table: everything that moves reads it."""
        rows, columns = self.layout.shape
        padded = np.full((rows + 2, columns + 2), -1, dtype=np.int32)
        padded[1:-1, 1:-1] = self.layout.index
        here = self.layout.cells + 1
        targets = np.stack([padded[here[:, 0] + dr, here[:, 1] + dc] for dr, dc in MOVES], axis=1)
        targets = np.where(targets >= 0, targets, np.arange(self.num_states, dtype=np.int32)[:, None])
        for row, column, name in self.one_way:
            move = MOVE_NAMES.index(name)
            beyond = padded[row + MOVES[move][0] + 1, column + MOVES[move][1] + 1]
            if beyond >= 0:
                targets[beyond, OPPOSITE[move]] = beyond
        for row, column, name, to_row, to_column in self.portals:
            targets[self.layout.index[row, column], MOVE_NAMES.index(name)] = self.layout.index[to_row, to_column]
        return targets

    @property
    def is_directed(self) -> bool:
        """Whether wind, one-way cells or portals make some steps easier than the steps back."""
        return self.wind > 0 or bool(self.one_way) or bool(self.portals)

    def move_probabilities(self) -> NDArray[np.float64]:
        """(states, 4): probability that each move is really made, policy, slip and wind together."""
        policy = np.full((self.num_states, len(MOVES)), 1.0 / len(MOVES)) if self.policy is None else self.policy
        made = (1.0 - self.slip) * policy + self.slip / len(MOVES)
        return made if self.wind == 0 else (1.0 - self.wind) * made + self.wind * np.eye(len(MOVES))[DOWN]

    def transition_matrix(self) -> "csr_array":
        """(states, states) row-stochastic matrix of the policy, sparse, float64 (paper, Section 2)."""
        from scipy.sparse import coo_array

        count = self.num_states
        rows = np.repeat(np.arange(count), len(MOVES))
        entries = (self.move_probabilities().ravel(), (rows, self.successors.ravel()))
        matrix = coo_array(entries, shape=(count, count)).tocsr()
        matrix.eliminate_zeros()
        return matrix

    def walked_cells(self) -> NDArray[np.bool_] | None:
        """The free cells under the uniform policy, which slips do not change; None with another policy, or directed."""
        return self.layout.free if self.policy is None and not self.is_directed else None

    def action_matrices(self) -> "tuple[csr_array, ...]":
        """(states, states) row-stochastic matrix of each move, slipping included; whatever the policy is."""
        from scipy.sparse import coo_array

        count = self.num_states
        rows = np.repeat(np.arange(count), len(MOVES))
        found = []
        for move in range(len(MOVES)):
            chances = np.full((count, len(MOVES)), self.slip / len(MOVES))
            chances[:, move] += 1.0 - self.slip
            matrix = coo_array((chances.ravel(), (rows, self.successors.ravel())), shape=(count, count)).tocsr()
            matrix.eliminate_zeros()
            found.append(matrix)
        return tuple(found)

    def table(self) -> NDArray[Any]:
        """The observations of all states: (states, 2), (states, states) or (states, H, W, 3)."""
        return self.observe(np.arange(self.num_states))

    def observe(self, states: "ArrayLike") -> NDArray[Any]:
        """The observations of some states, in this world's mode: float32, or uint8 for pixels.

        Args:
            states: (n,) state numbers.

        Returns:
            (n, ...) observations of shape ``observation_shape``.
        """
        indices = self._checked_states(states)
        _refuse_huge(indices.size * int(np.prod(self.observation_shape)) * (1 if self.observation == "pixels" else 4))
        if self.observation == "xy":
            return (self.layout.cells[indices] / np.array(self.layout.shape) - 0.5).astype(np.float32)
        if self.observation == "one_hot":
            table = np.zeros((indices.size, self.num_states), dtype=np.float32)
            table[np.arange(indices.size), indices] = 1.0
            return table
        images = np.broadcast_to(self.background, (indices.size, *self.background.shape)).copy()
        cells = self.layout.cells[indices]
        images[np.arange(indices.size), cells[:, 0], cells[:, 1]] = AGENT_COLOUR
        return images

    def _checked_states(self, states: ArrayLike) -> NDArray[np.integer[Any]]:
        """Numbers of states as an array; a negative one would count from the end."""
        try:
            indices = np.atleast_1d(np.asarray(states))
        except ValueError:
            indices = np.array([""])
        if not indices.size:
            return indices.astype(np.intp)
        if indices.dtype.kind not in "iu" or indices.min() < 0 or indices.max() >= self.num_states:
            raise LapwingError(f"states are whole numbers from 0 to {self.num_states - 1}, got {shown(states)}")
        return indices

    @cached_property
    def background(self) -> NDArray[np.uint8]:
        """(rows, columns, 3): the world without the agent, one pixel per tile."""
        return np.where(self.layout.free[..., None], FLOOR_COLOUR, WALL_COLOUR).astype(np.uint8)

    @property
    def observation_bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Smallest and largest entry of an observation."""
        return {"xy": (-0.5, 0.5), "one_hot": (0.0, 1.0), "pixels": (0, 255)}[self.observation]

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """(count,) states drawn uniformly.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count,) state numbers.
        """
        return rng.integers(self.num_states, size=count)

    def step(
        self, states: NDArray[Any], actions: "ArrayLike | None", rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """One move each; None draws moves from the policy, slips and wind included.

        Args:
            states: (n,) state numbers.
            actions: (n,) moves as numbers, or None.
            rng: source of randomness.

        Returns:
            (n,) next states, and the (n,) moves that were made, slips and wind included.
        """
        count = len(MOVES)
        if actions is not None:
            moves = self._checked_moves(actions, states.shape)
            if self.slip > 0:
                slips = rng.random(len(states)) < self.slip
                if slips.any():
                    moves = np.where(slips, rng.integers(count, size=len(states)), moves)
            if self.wind > 0:
                moves = np.where(rng.random(len(states)) < self.wind, DOWN, moves)
        elif self.policy is None and self.wind == 0:  # slipping changes nothing when all moves are equally likely
            moves = rng.integers(count, size=len(states), dtype=np.uint8)
        else:
            moves = (rng.random(len(states))[:, None] >= self._thresholds[states]).sum(axis=1)
        return self._targets[states * count + moves], moves

    @cached_property
    def _targets(self) -> NDArray[np.int64]:
        return self.successors.astype(np.int64).ravel()

    @cached_property
    def _thresholds(self) -> NDArray[np.float64]:
        return np.cumsum(self.move_probabilities(), axis=1)[:, :-1]

    def _checked_moves(self, actions: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
        moves = None if as_reals(actions) is None else np.asarray(actions)
        if moves is None or moves.shape != shape or not np.issubdtype(moves.dtype, np.integer):
            got = "something else" if moves is None else f"{moves.dtype} {moves.shape}"
            raise ArgumentError(f"the policy must give {shape[0]} whole numbers, one per observation, got {got}")
        if ((moves < 0) | (moves >= len(MOVES))).any():
            raise ArgumentError(f"the policy gave a move outside 0 to {len(MOVES) - 1} ({', '.join(MOVE_NAMES)})")
        return moves

    def describe(self) -> dict[str, Any]:
        """Layout, observation mode, slip, policy and what makes it directed, as JSON types."""
        directed = {
            "wind": self.wind,
            "one_way": [list(place) for place in self.one_way],
            "portals": [list(place) for place in self.portals],
        }
        return {
            "kind": "grid",
            "name": self.name,
            "layout": self.layout.to_text(),
            "observation": self.observation,
            "slip": self.slip,
            "policy": None if self.policy is None else self.policy.tolist(),
            # Left out where not used: descriptions are compared with those of files, and runs are known by them.
            **{name: value for name, value in directed.items() if value},
        }

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        rows, columns = self.layout.shape
        return {
            "size": f"{rows} x {columns}",
            "states": self.num_states,
            "parts": self.layout.num_components,
            "description": self.layout.description,
        }

    def with_options(self, **options: Any) -> Self:
        """The same layout with other options: ``observation``, ``slip``, ``policy``, ``wind`` and so on."""
        return replace(self, **options) if options else self

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[Any]:
        """The observations of all states.

        Args:
            cells: not used, because the states are listed.

        Returns:
            (states, ...) observations.
        """
        return self.table()

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """One pixel per tile, masked at walls.

        Args:
            values: (states,) one per state.

        Returns:
            (rows, columns) values of the layout's shape.
        """
        image = np.full(self.layout.shape, np.nan)
        image[self.layout.free] = values
        return np.ma.masked_array(image, mask=~self.layout.free)

    def field_extent(self) -> tuple[float, float, float, float]:
        """Pixel (row, column) is centred at its own numbers, as matplotlib has it."""
        rows, columns = self.layout.shape
        return -0.5, columns - 0.5, rows - 0.5, -0.5

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64] | None:
        """The cells of ``xy`` observations; None in the other modes.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of the picture's extent.
        """
        if self.observation != "xy":
            return None
        return (np.asarray(observations, dtype=np.float64) + 0.5) * np.array(self.layout.shape)

    def render(self, state: Any) -> NDArray[np.uint8]:
        """The world with the agent, enlarged to at least 256 pixels along its longer side.

        Args:
            state: its number.

        Returns:
            (height, width, 3) red, green and blue.
        """
        image = self.with_options(observation="pixels").observe([state])[0]
        scale = max(1, -(-256 // max(image.shape[:2])))
        return np.asarray(image.repeat(scale, axis=0).repeat(scale, axis=1))


def checked_policy(policy: "ArrayLike | Sequence[Sequence[float]]", num_states: int) -> NDArray[np.float64]:
    """A policy table as float64, or an error that names the first bad row.

    Args:
        policy: (n, moves) probabilities of the moves in each state.
        num_states: n.

    Returns:
        (n, moves) with rows that sum to 1 exactly.

    Raises:
        LapwingError: where the shape is wrong, or a row is not a distribution to within 1e-6.
    """
    table = as_reals(policy)
    if table is None:
        raise LapwingError(f"a policy table needs {len(MOVES)} numbers in each of {num_states} rows")
    if table.shape != (num_states, len(MOVES)):
        raise LapwingError(
            f"a policy table needs shape (states, moves) = ({num_states}, {len(MOVES)}), got {table.shape}; "
            f"columns are {', '.join(MOVE_NAMES)}"
        )
    if not np.isfinite(table).all() or (table < 0).any():
        row = int(np.argmax((~np.isfinite(table) | (table < 0)).any(axis=1)))
        raise LapwingError(f"policy row {row} has a negative or non-finite probability: {table[row].tolist()}")
    sums = table.sum(axis=1)
    wrong = np.abs(sums - 1.0) > 1e-6
    if wrong.any():
        row = int(np.argmax(wrong))
        raise LapwingError(
            f"policy row {row} sums to {sums[row]:.6g}, not to 1 ({int(wrong.sum())} such row(s)); "
            "divide each row by its sum"
        )
    return table / sums[:, None]


def _checked_places(places: Any, option: str, cells: int, layout: Layout) -> tuple[Any, ...]:
    """One-way cells or portals as tuples of plain types; every cell is free and every move known."""
    form = "(row, column, move)" if cells == 1 else "(row, column, move, row, column)"
    if not isinstance(places, Sequence) or isinstance(places, (str, bytes)):
        raise ArgumentError(f"{option} is a list of {form}, got {shown(places)}")
    checked = []
    for place in places:
        parts = list(place) if isinstance(place, Sequence) and not isinstance(place, (str, bytes)) else []
        if len(parts) != 1 + 2 * cells or not isinstance(parts[2], str):
            raise ArgumentError(f"{option} is a list of {form}, got {shown(place)} in it")
        if parts[2] not in MOVE_NAMES:
            raise UnknownNameError(f"{option}: unknown move {shown(parts[2])}; {did_you_mean(parts[2], MOVE_NAMES)}")
        for start in (0, 3)[:cells]:
            row, column = map(as_whole, parts[start : start + 2])
            inside = row in range(layout.shape[0]) and column in range(layout.shape[1])
            if not inside or not layout.free[row, column]:
                raise ArgumentError(f"{option}: {shown(tuple(parts[start : start + 2]))} is not a free cell")
            parts[start : start + 2] = row, column
        checked.append(tuple(parts))
    return tuple(checked)


def _refuse_huge(size: int) -> None:
    if size > MAX_TABLE_BYTES:
        raise LapwingError(
            f"these observations would take {size / 2**30:.1f} GiB; use observation='xy', or observe fewer states"
        )
