"""Steps of one or several environments, kept in order of time and cut into episodes a block at a time."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.data.builder import TrajectoryBuilder
from lapwing.errors import DataError

# From here on another copy of a row costs more than another call of the builder.
LARGE_ROW_BYTES = 1 << 10

Rows = dict[str, NDArray[Any]]
"""A batch of rows by key; the key is empty where an observation is one array."""


class EpisodeRecorder:
    """Takes one state of every environment per call, and hands episodes to a builder when they have ended.

    States stand in buffers (slots, environments, ...), one slot per call: recording a step costs one copy whatever the
    number of environments. A full block is cut into episodes by a few operations on whole arrays. Episodes come to the
    builder in the order in which they end, whatever the size of a block.

    The open episode of a single environment goes to the builder in pieces, because it may never end. Of several
    environments the open ones wait, since the builder takes one episode after the other.

    Args:
        builder: takes the episodes; it must copy what it is given, since the buffers are used again.
        encode: from a batch of recorded observations by key to the rows that the builder takes.
        first: the observations that the episodes begin with, by key: those of one environment, or batches.
        environments: how many a batch holds; None where observations are those of one environment, without a batch.
        slots: how many steps a block holds.
    """

    def __init__(
        self,
        builder: TrajectoryBuilder,
        encode: Callable[[Mapping[str, NDArray[Any]]], Rows],
        first: Mapping[str, Any],
        environments: int | None,
        slots: int,
    ) -> None:
        """Begin an episode in every environment."""
        self._builder, self._encode, self._slots = builder, encode, slots
        self._count = environments or 1
        self._batched = environments is not None
        self._states = {key: _Column(slots, part) for key, part in first.items()}
        self._transitions: dict[str, _Column] = {}
        shape = (slots, self._count)
        self._present, self._first = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
        self._terminated, self._truncated = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        # States of the open episodes from earlier blocks: how many, and where they wait, their rows.
        self._waiting = np.zeros(self._count, dtype=np.int64)
        self._pieces: list[list[tuple[Rows, Rows]]] = [[] for _ in range(self._count)]
        self._slot = 0
        self.begin(first)

    def begin(self, observations: Mapping[str, Any], which: NDArray[np.bool_] | None = None) -> None:
        """Begin episodes.

        Args:
            observations: by key, of all environments.
            which: (environments,) where an episode begins; everywhere unless given.
        """
        slot = self._add(observations)
        self._first[slot] = True
        if which is not None:
            self._first[slot] = self._present[slot] = which

    def extend(self, observations: Mapping[str, Any], transitions: Mapping[str, Any]) -> int:
        """Record a step of all environments.

        Args:
            observations: what is seen after the step, by key.
            transitions: rows of the step by name, such as its actions; the same names in every call.

        Returns:
            The slot of the step, to say more of it before the next one is recorded.
        """
        slot = self._add(observations)
        for name, part in transitions.items():
            if name not in self._transitions:
                self._transitions[name] = _Column(self._slots, part)
            self._transitions[name].put(slot, part)
        return slot

    def restarted(self, slot: int, which: NDArray[np.bool_]) -> None:
        """Say that the step only reset some environments: what they show begins an episode.

        Args:
            slot: of the step.
            which: (environments,).
        """
        self._first[slot] = which

    def leave_out(self, slot: int, which: NDArray[np.bool_]) -> None:
        """Leave some environments out of a step.

        Args:
            slot: of the step.
            which: (environments,).
        """
        self._present[slot] &= ~which

    def ended(self, slot: int, terminated: Any, truncated: Any) -> None:
        """Say where a step ended an episode.

        Args:
            slot: of the step.
            terminated: (environments,) where the environment ended it.
            truncated: (environments,) where it was cut off.
        """
        self._terminated[slot], self._truncated[slot] = terminated, truncated

    def replace(self, slot: int, index: int, observation: Mapping[str, Any]) -> None:
        """Put another observation in the place of one of a batch.

        Args:
            slot: of the step.
            index: of the environment.
            observation: of this environment, by key.
        """
        for key, column in self._states.items():
            column.rows[slot, index] = observation[key]

    def close(self) -> None:
        """Hand over all that is left; open episodes are cut here, and those of a single state are left out."""
        self._flush()
        for environment, states in enumerate(self._waiting.tolist()):
            if states < 2:
                continue
            for observations, transitions in self._pieces[environment]:
                self._hand_over(observations, transitions)
            self._builder.close_episodes(np.array([states - 1]), np.array([False]), np.array([True]))

    def _add(self, observations: Mapping[str, Any]) -> int:
        slot = self._slot
        if slot == self._slots:
            self._flush()
            slot = 0
        for key, column in self._states.items():
            column.put(slot, observations[key])
        self._slot = slot + 1
        return slot

    def _hand_over(self, observations: Rows, transitions: Rows) -> None:
        rows = self._encode(observations)
        self._builder.add_states(rows.get("", rows), **transitions)

    def _flush(self) -> None:
        if self._slot == 0:
            return
        slots = slice(self._slot)
        # Cells in order of environments, and of time within each.
        cells = np.flatnonzero(self._present[slots].T)
        environments, times = np.divmod(cells, self._slot)
        cells = times * self._count + environments
        first = self._first[slots].reshape(-1)[cells]
        starts = np.flatnonzero(first | (np.diff(environments, prepend=-1) != 0))
        sizes = np.diff(starts, append=len(cells))
        lasts = cells[starts + sizes - 1]
        terminated, truncated = (flags[slots].reshape(-1)[lasts] for flags in (self._terminated, self._truncated))
        # A step that only reset an environment ends nothing.
        over = (terminated | truncated) & ((sizes > 1) | ~first[starts])
        if self._count == 1:
            self._hand_over_all(cells, ~first)
        # Cells ascend with time and then with environments, which is the order of the ends.
        order = np.flatnonzero(over)
        order = order[np.argsort(lasts[order])]
        owners = environments[starts]
        goes_on = ~first[starts]
        waiting = np.where(goes_on, self._waiting[owners], 0)
        if len(order):
            if self._count > 1:
                self._hand_over_finished(order, owners, goes_on, starts, sizes, cells, first)
            self._builder.close_episodes((waiting + sizes - 1)[order], terminated[order], truncated[order])
        last = np.flatnonzero(np.diff(owners, append=-1))  # of each environment
        self._waiting[owners[last]] = np.where(over[last], 0, (waiting + sizes)[last])
        for piece in last[over[last] | ~goes_on[last]].tolist():
            self._pieces[owners[piece]] = []
        if self._count > 1:
            for piece in last[~over[last]].tolist():
                part = slice(starts[piece], starts[piece] + sizes[piece])
                self._pieces[owners[piece]].append(self._taken(cells[part], ~first[part]))
        self._slot = 0
        self._present[slots] = True
        for flags in (self._first, self._terminated, self._truncated):
            flags[slots] = False

    def _hand_over_all(self, cells: NDArray[np.int64], moved: NDArray[np.bool_]) -> None:
        """Hand over all states of the only environment, which are in order: without a copy where none is left out."""
        if len(cells) == self._slot:
            observations = {key: column.flat(self._batched)[: self._slot] for key, column in self._states.items()}
            transitions = {
                name: column.flat(self._batched)[: self._slot][moved] for name, column in self._transitions.items()
            }
        else:
            observations, transitions = self._taken(cells, moved)
        self._hand_over(observations, transitions)

    def _hand_over_finished(
        self,
        order: NDArray[np.int64],
        owners: NDArray[np.int64],
        goes_on: NDArray[np.bool_],
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        cells: NDArray[np.int64],
        first: NDArray[np.bool_],
    ) -> None:
        """Hand over the pieces with which episodes end, in the given order, after what waits of each."""
        ends = np.cumsum(sizes[order])
        places = np.arange(ends[-1]) + np.repeat(starts[order] - ends + sizes[order], sizes[order])
        parts: list[tuple[Rows, Rows]] = []
        begin = 0
        for number in np.flatnonzero(goes_on[order] & (self._waiting[owners[order]] > 0)).tolist():
            end = int(ends[number] - sizes[order[number]])
            if end > begin:
                parts.append(self._taken(cells[places[begin:end]], ~first[places[begin:end]]))
            parts += self._pieces[owners[order[number]]]
            begin = end
        parts.append(self._taken(cells[places[begin:]], ~first[places[begin:]]))
        if sum(column.row_bytes for column in self._states.values()) >= LARGE_ROW_BYTES * self._count:
            for observations, transitions in parts:
                self._hand_over(observations, transitions)
            return
        observations, transitions = (
            {key: np.concatenate([part[side][key] for part in parts]) for key in parts[0][side]} for side in (0, 1)
        )
        self._hand_over(observations, transitions)

    def _taken(self, cells: NDArray[np.int64], moved: NDArray[np.bool_]) -> tuple[Rows, Rows]:
        """Copies of states, and of the transitions that led to those of them that do not begin an episode."""
        observations = {key: column.flat(self._batched)[cells] for key, column in self._states.items()}
        steps = cells[moved]
        return observations, {name: column.flat(self._batched)[steps] for name, column in self._transitions.items()}


class _Column:
    """A buffer of rows of one kind, which all have the shape of the first; its type widens where a row needs it."""

    def __init__(self, slots: int, example: Any) -> None:
        array = np.asarray(example)
        self._shape = array.shape
        self.rows = np.empty((slots, *array.shape), dtype=array.dtype)

    def put(self, slot: int, row: Any) -> None:
        array = np.asarray(row)
        if array.dtype is not self.rows.dtype or array.shape != self._shape:
            array = self._fitted(array)
        self.rows[slot] = array

    def _fitted(self, array: NDArray[Any]) -> NDArray[Any]:
        if array.shape != self._shape:
            raise DataError(f"the environment gave an array of shape {array.shape} after others of shape {self._shape}")
        if array.dtype.kind not in "biuf":
            raise DataError(f"the environment gave {array.dtype} where numbers are expected; wrap it so that they are")
        common = np.result_type(array, self.rows)
        if common != self.rows.dtype:
            self.rows = self.rows.astype(common)
        return array

    @property
    def row_bytes(self) -> int:
        """Bytes of the rows of one slot."""
        return self.rows[0].nbytes

    def flat(self, batched: bool) -> NDArray[Any]:
        """(slots * environments, ...) all rows."""
        return self.rows.reshape(-1, *self._shape[1:]) if batched else self.rows
