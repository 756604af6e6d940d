"""Building a data set piece by piece, in memory or straight to disk."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_path
from lapwing.data.trajectories import (
    ARRAY_FILES,
    DECIDE_AFTER,
    MANIFEST,
    MIN_DECIDABLE,
    ObservationTable,
    Trajectories,
    check_finite,
    row_blocks,
    tabulated,
    write_manifest,
)
from lapwing.errors import DataError
from lapwing.storage.files import ArrayAppender, write_array
from lapwing.storage.folders import NewFolder

NOTHING = "nothing was collected; ask for at least one step"


Column = list[NDArray[Any]] | ArrayAppender
"""A growing array: blocks in memory, or an ``.npy`` file."""


class TrajectoryBuilder:
    """Collects episodes into :class:`Trajectories`, in memory or in a folder larger than memory.

    In memory, :meth:`finish` may be called now and then while episodes come in: each call gives all data so far.

    Args:
        out: folder to write to as the data come in; None keeps them in memory.
        table: the complete table of observations where it is known beforehand; states are then given as ids.
        tabulate: without a known table, whether to look for repeated observations.

    Example:
        >>> with TrajectoryBuilder() as builder:
        ...     builder.add(np.zeros((3, 2)), np.array([2]), np.array([False]), np.array([True]))
        ...     builder.finish({}).num_transitions
        2
    """

    def __init__(self, out: str | Path | None = None, table: NDArray[Any] | None = None, tabulate: bool = True) -> None:
        """Nothing is written before the first episode comes in."""
        self._out = None if out is None else as_path(out, "the folder to write")
        self._new: NewFolder | None = None
        self._known = table
        self._table = ObservationTable() if table is None and tabulate else None
        self._columns: dict[str, Column] = {}
        self._keys: tuple[str, ...] = ()
        self._lengths: list[NDArray[np.int64]] = []
        self._ends: list[NDArray[np.bool_]] = []
        self._states = 0

    def __enter__(self) -> Self:
        """Make a working folder beside the target, where there is one."""
        if self._out is not None:
            self._new = NewFolder(self._out, MANIFEST, ARRAY_FILES).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing half-written behind."""
        if self._new is not None:
            for column in self._columns.values():
                if isinstance(column, ArrayAppender):
                    column.abandon()
            self._new.__exit__(kind, error, trace)

    def add(
        self,
        states: Any,
        lengths: NDArray[np.int64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        **transitions: Any,
    ) -> None:
        """Add whole episodes.

        Args:
            states: (states, ...) their observations end to end, by key where there are several; ids if the table is
                known.
            lengths: (episodes,) transitions in each.
            terminated: (episodes,) whether the environment ended it.
            truncated: (episodes,) whether it was cut off.
            transitions: ``actions``, ``rewards`` and ``next_observations``, one row per transition; the same ones in
                every call.
        """
        self.add_states(states, **transitions)
        self.close_episodes(lengths, terminated, truncated)

    def add_states(self, states: Any, **transitions: Any) -> None:
        """Add states in order of time, of an episode that may continue; :meth:`close_episodes` must follow.

        Args:
            states: (n, ...) observations, a dictionary of them by key, or (n,) ids where the table is known.
            transitions: as in :meth:`add`.
        """
        if isinstance(states, dict):
            self._keys, self._table = tuple(states), None
            for number, rows in enumerate(states.values()):
                check_finite(rows, first=self._states)
                self._append(f"observations.{number}", rows)
            self._states += len(rows)
        else:
            self._add_rows(states)
        for name, part in transitions.items():
            if isinstance(part, dict):
                for number, rows in enumerate(part.values()):
                    self._append(f"{name}.{number}", rows)
            elif part is not None:
                self._append(name, part)

    def _add_rows(self, states: NDArray[Any]) -> None:
        if self._known is None:
            check_finite(states, first=self._states)
        self._states += len(states)
        if self._known is not None:
            self._append("ids", np.asarray(states, dtype=np.int32))
        elif self._table is not None:
            self._append("ids", self._table.lookup(states))
            if self._table.hardly_repeats(self._states, DECIDE_AFTER):
                self._give_up_table()
        else:
            self._append("observations", states)

    def close_episodes(
        self, lengths: NDArray[np.int64], terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]
    ) -> None:
        """Give the boundaries of the states added so far: transitions in each episode, and how it ended.

        Args:
            lengths: (episodes,) transitions in each episode; an episode of k transitions has k + 1 states.
            terminated: (episodes,) true where the environment ended the episode.
            truncated: (episodes,) true where it was cut off from outside.
        """
        self._lengths.append(np.asarray(lengths, dtype=np.int64))
        self._ends.append(np.stack([terminated, truncated]).astype(bool))

    def finish(self, metadata: dict[str, Any]) -> Trajectories:
        """The data set; on disk it takes its final place only now, and comes back memory-mapped.

        Args:
            metadata: where the data came from, as JSON types.

        Returns:
            All episodes added so far.
        """
        if not self._lengths:
            raise DataError(NOTHING)
        if self._table is not None and self._table.hardly_repeats(self._states, MIN_DECIDABLE):
            self._give_up_table()
        elif "observations" in self._columns and self._states >= MIN_DECIDABLE:
            self._tabulate_after_all()
        lengths = np.concatenate(self._lengths)
        ends = np.concatenate(self._ends, axis=1)
        small: dict[str, Any] = {"offsets": np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)}
        small |= {"terminated": ends[0], "truncated": ends[1]}
        if self._known is not None:
            small["observations"] = self._known
        elif self._table is not None:
            small["observations"] = self._table.array()
        if self._new is not None:
            checksums = {name: column.close() for name, column in self._columns.items() if not isinstance(column, list)}
            checksums |= {name: write_array(self._new.content / f"{name}.npy", array) for name, array in small.items()}
            write_manifest(self._new.content, checksums, metadata, self._keys)
            self._new.put_in_place()
            return Trajectories.load(self._new.path, mmap=True)
        for name, column in self._columns.items():
            stem, _, number = name.partition(".")
            if number:
                small.setdefault(stem, {})[self._keys[int(number)]] = _whole(column)
            else:
                small[name] = _whole(column)
        return Trajectories(**small, metadata=metadata)

    def _give_up_table(self) -> None:
        """Observations hardly repeat: write them out as rows, and drop the table."""
        assert self._table is not None
        table, self._table, ids = self._table, None, self._columns.pop("ids")
        numbers = _whole(ids)
        row = table.observations(np.zeros(1, dtype=np.int32))
        for block in row_blocks((len(numbers), *row.shape[1:]), row.itemsize):
            self._append("observations", table.observations(numbers[block]))
        if isinstance(ids, ArrayAppender):
            ids.path.unlink()

    def _tabulate_after_all(self) -> None:
        """The beginning hardly repeated, but all the data may."""
        column = self._columns["observations"]
        found = tabulated(_whole(column))
        if found is not None:
            self._known, ids = found
            self._columns.pop("observations")
            if isinstance(column, ArrayAppender):
                column.path.unlink()
            self._append("ids", ids)

    def _append(self, name: str, block: NDArray[Any]) -> None:
        if name not in self._columns:
            new = self._new
            kind, shape = block.dtype, block.shape[1:]
            self._columns[name] = [] if new is None else ArrayAppender(new.content / f"{name}.npy", kind, shape)
        self._columns[name].append(block)


def _whole(column: Column) -> NDArray[Any]:
    """The whole array; blocks in memory become one, so that they are joined once."""
    if isinstance(column, ArrayAppender):
        column.close()
        return np.load(column.path, mmap_mode="r")
    column[:] = [np.concatenate(column)] if len(column) > 1 else column
    return column[0]
