"""Grid worlds: one action table from which both the step and the transition matrix come."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from lapwing.checks import as_real, as_reals, shown
from lapwing.environments.layouts import Layout
from lapwing.errors import LapwingError, did_you_mean

ObservationMode = Literal["xy", "one_hot", "pixels"]
OBSERVATION_MODES: tuple[str, ...] = get_args(ObservationMode)

# up, right, down, left, as (row, column): the only list of moves in the package.
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
MOVE_NAMES = ("up", "right", "down", "left")

WALL_COLOUR = (40, 44, 52)
FLOOR_COLOUR = (236, 236, 230)
AGENT_COLOUR = (214, 64, 48)

MAX_TABLE_BYTES = 2 << 30


@dataclass(frozen=True, eq=False)
class GridWorld:
    """A grid of free cells with four moves; a blocked move stays where it is.

    Args:
        layout: which cells are free.
        observation: ``xy`` (row and column scaled as in the paper), ``one_hot`` or ``pixels`` (one per tile).
        slip: with this probability a move chosen uniformly at random replaces the intended one.
        policy: (states, 4) probabilities of the moves up, right, down, left; None is the uniform policy.

    Example:
        >>> from lapwing.environments.rules import room
        >>> world = GridWorld(room(2, 2))
        >>> world.transition_matrix().toarray()[0]     # a corner: two of the four moves are blocked
        array([0.5 , 0.25, 0.25, 0.  ])
    """

    layout: Layout
    observation: ObservationMode = "xy"
    slip: float = 0.0
    policy: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        """Check every option, so that a world which exists is a world which works."""
        if not isinstance(self.layout, Layout):
            raise LapwingError(f"a grid world is made from a layout, got {shown(self.layout)}")
        if not isinstance(self.observation, str) or self.observation not in OBSERVATION_MODES:
            named = shown(self.observation)
            raise LapwingError(f"unknown observation mode {named}; {did_you_mean(named, OBSERVATION_MODES)}")
        slip = as_real(self.slip)
        if slip is None or not 0.0 <= slip <= 1.0:
            raise LapwingError(f"slip is a probability between 0 and 1, got {shown(self.slip)}")
        object.__setattr__(self, "slip", slip)
        if self.policy is not None:
            object.__setattr__(self, "policy", checked_policy(self.policy, self.num_states))

    @property
    def name(self) -> str:
        """The layout's name."""
        return self.layout.name

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
        return np.where(targets >= 0, targets, np.arange(self.num_states, dtype=np.int32)[:, None])

    def move_probabilities(self) -> NDArray[np.float64]:
        """(states, 4): probability that each move is really made, policy and slip together."""
        policy = np.full((self.num_states, len(MOVES)), 1.0 / len(MOVES)) if self.policy is None else self.policy
        return (1.0 - self.slip) * policy + self.slip / len(MOVES)

    def transition_matrix(self) -> csr_array:
        """(states, states) row-stochastic matrix of the policy, sparse, float64 (paper, Section 2)."""
        count = self.num_states
        rows = np.repeat(np.arange(count), len(MOVES))
        entries = (self.move_probabilities().ravel(), (rows, self.successors.ravel()))
        matrix = coo_array(entries, shape=(count, count)).tocsr()
        matrix.eliminate_zeros()
        return matrix

    def observations(self) -> NDArray[Any]:
        """The table of all observations, one row per state: (states, 2), (states, states) or (states, H, W, 3)."""
        return self.observe(np.arange(self.num_states))

    def observe(self, states: ArrayLike) -> NDArray[Any]:
        """The observations of some states, in this world's mode: float32, or uint8 for pixels."""
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

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        shapes = {"xy": (2,), "one_hot": (self.num_states,), "pixels": (*self.layout.shape, 3)}
        return shapes[self.observation]

    @cached_property
    def background(self) -> NDArray[np.uint8]:
        """(rows, columns, 3): the world without the agent, one pixel per tile."""
        return np.where(self.layout.free[..., None], FLOOR_COLOUR, WALL_COLOUR).astype(np.uint8)

    def with_options(self, **changes: Any) -> "GridWorld":
        """The same layout with other options."""
        return replace(self, **changes)


def checked_policy(policy: ArrayLike | Sequence[Sequence[float]], num_states: int) -> NDArray[np.float64]:
    """A policy table as float64, or an error that names the first bad row."""
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


def _refuse_huge(size: int) -> None:
    if size > MAX_TABLE_BYTES:
        raise LapwingError(
            f"these observations would take {size / 2**30:.1f} GiB; use observation='xy', or observe fewer states"
        )
