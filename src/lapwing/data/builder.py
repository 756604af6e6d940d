"""Building a data set piece by piece, in memory or straight to disk."""

from collections.abc import Callable
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


class Reserved:
    """A growing array in memory of about known length: rows are copied once, into their final place.

    Args:
        rows: how many rows to reserve; further ones cost another copy of all.
        dtype: of the array; it widens where later rows need it.
        row_shape: shape of one row.
    """

    def __init__(self, rows: int, dtype: np.dtype[Any], row_shape: tuple[int, ...]) -> None:
        """Memory that is reserved and not written takes none."""
        self._rows, self._count = np.empty((rows, *row_shape), dtype), 0

    def append(self, rows: NDArray[Any]) -> None:
        """Add copies of rows at the end.

        Args:
            rows: (n, *row_shape).
        """
        count = self._count + len(rows)
        dtype = np.result_type(rows, self._rows)
        if count > len(self._rows) or dtype != self._rows.dtype:
            if rows.shape[1:] != self._rows.shape[1:]:
                raise DataError(f"rows changed their shape from {self._rows.shape[1:]} to {rows.shape[1:]} on the way")
            larger = np.empty((max(count + count // 4, len(self._rows)), *rows.shape[1:]), dtype)
            larger[: self._count] = self.whole()
            self._rows = larger
        self._rows[self._count : count] = rows
        self._count = count

    def whole(self) -> NDArray[Any]:
        """All rows so far; later ones do not change them."""
        return self._rows[: self._count]


Column = list[NDArray[Any]] | Reserved | ArrayAppender
"""A growing array: blocks in memory, memory reserved beforehand, or an ``.npy`` file."""


class TrajectoryBuilder:
    """Collects episodes into :class:`Trajectories`, in memory or in a folder larger than memory.

    In memory, :meth:`finish` may be called now and then while episodes come in: each call gives all data so far.

    Args:
        out: folder to write to as the data come in; None keeps them in memory.
        table: the complete table of observations where it is known beforehand; states are then given as ids.
        tabulate: without a known table, whether to look for repeated observations.
        encode: from states as they are given to observations, for states that are cheaper to look up than what is
            kept of them, such as numbers that become one-hot rows. Without it states are kept as they are.
        expected: about how many states will come, where that is known; in memory, rows are then copied when they are
            added, and the caller may use their memory again.

    Example:
        >>> with TrajectoryBuilder() as builder:
        ...     builder.add(np.zeros((3, 2)), np.array([2]), np.array([False]), np.array([True]))
        ...     builder.finish({}).num_transitions
        2
    """

    def __init__(
        self,
        out: str | Path | None = None,
        table: NDArray[Any] | None = None,
        tabulate: bool = True,
        encode: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        expected: int | None = None,
    ) -> None:
        """Nothing is written before the first episode comes in."""
        self._out = None if out is None else as_path(out, "the folder to write")
        self._new: NewFolder | None = None
        self._known, self._encode, self._expected = table, encode or np.asarray, expected
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
            begin = 0
            # In pieces, so that it is known early whether looking for repeated observations is worth the time.
            while self._table is not None and len(states) - begin > DECIDE_AFTER:
                self._add_rows(states[begin : begin + DECIDE_AFTER])
                begin += DECIDE_AFTER
            self._add_rows(states[begin:])
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
            self._append("observations", self._encode(states))

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
            small["observations"] = self._encode(self._table.array())
        if self._new is not None:
            checksums = {
                name: column.close() for name, column in self._columns.items() if isinstance(column, ArrayAppender)
            }
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
        row = self._encode(table.observations(np.zeros(1, dtype=np.int32)))
        for block in row_blocks((len(numbers), *row.shape[1:]), row.itemsize):
            self._append("observations", self._encode(table.observations(numbers[block])))
        if isinstance(ids, ArrayAppender):
            del numbers  # Windows does not remove a file that is mapped
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
            kind, shape = block.dtype, block.shape[1:]
            if self._new is not None:
                self._columns[name] = ArrayAppender(self._new.content / f"{name}.npy", kind, shape)
            else:
                self._columns[name] = [] if self._expected is None else Reserved(self._expected, kind, shape)
        self._columns[name].append(block)


def _whole(column: Column) -> NDArray[Any]:
    """The whole array; blocks in memory become one, so that they are joined once."""
    if isinstance(column, ArrayAppender):
        column.close()
        return np.load(column.path, mmap_mode="r")
    if isinstance(column, Reserved):
        return column.whole()
    column[:] = [np.concatenate(column)] if len(column) > 1 else column
    return column[0]
