"""Building a data set piece by piece, in memory or straight to disk."""

import math
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_path
from lapwing.data.trajectories import ARRAY_FILES, MANIFEST, Trajectories, check_finite, write_manifest
from lapwing.errors import LapwingError
from lapwing.storage.files import ArrayAppender, write_array
from lapwing.storage.folders import NewFolder

# A table is worth having if observations come at least this often on average.
MIN_REPEATS = 2.0
DECIDE_AFTER = 4096
MIN_DECIDABLE = 256
DIGEST_BYTES = 16
BLOCK_BYTES = 1 << 22


class ObservationTable:
    """Distinct observations in order of first appearance, looked up by their bytes, or a digest where those are many.

    So each is held once. A digest has 128 bits: that two observations ever share one need not be feared.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._ids: dict[bytes, int] = {}
        self._rows: list[NDArray[Any]] = []

    def __len__(self) -> int:
        """How many distinct observations there are."""
        return len(self._rows)

    def lookup(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """The number of each row, new ones added."""
        ids = np.empty(len(rows), dtype=np.int32)
        for block in row_blocks(rows.shape, rows.itemsize):
            # Adding zero turns -0.0 into 0.0: equal observations must have equal bytes.
            equal_by_bytes = np.ascontiguousarray(rows[block] + rows.dtype.type(0))
            ids[block] = [self._number(row) for row in equal_by_bytes]
        return ids

    def _number(self, row: NDArray[Any]) -> int:
        key = row.tobytes()
        if len(key) > DIGEST_BYTES:
            key = blake2b(key, digest_size=DIGEST_BYTES).digest()
        number = self._ids.get(key)
        if number is None:
            number = self._ids[key] = len(self._rows)
            self._rows.append(row.copy())
        return number

    def observations(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        """The observations with these numbers."""
        return np.stack([self._rows[number] for number in ids.tolist()])

    def array(self) -> NDArray[Any]:
        """The distinct observations as one array."""
        return np.stack(self._rows)


def row_blocks(shape: tuple[int, ...], itemsize: int) -> Iterator[slice]:
    """Slices of the first axis that hold a few megabytes each, at least one row."""
    step = max(1, BLOCK_BYTES // max(1, itemsize * math.prod(shape[1:])))
    return (slice(begin, begin + step) for begin in range(0, shape[0], step))


class Column:
    """A growing array: a list of blocks in memory, or an ``.npy`` file."""

    def __init__(self, path: Path | None) -> None:
        """Keep blocks in memory, or append to the file at ``path``."""
        self._path = path
        self._blocks: list[NDArray[Any]] = []
        self._appender: ArrayAppender | None = None

    def append(self, block: NDArray[Any]) -> None:
        """Add a block of rows."""
        if self._path is None:
            self._blocks.append(block)
            return
        if self._appender is None:
            self._appender = ArrayAppender(self._path, block.dtype, block.shape[1:])
        self._appender.append(block)

    def finish(self) -> NDArray[Any] | int:
        """The whole array (in memory), or the checksum of the finished file."""
        if self._path is None:
            return np.concatenate(self._blocks)
        if self._appender is None:
            raise LapwingError("nothing was collected; ask for at least one step")
        self._appender.close()
        return self._appender.checksum

    def abandon(self) -> None:
        """Close the file, if any, without finishing it."""
        if self._appender is not None:
            self._appender.abandon()


class TrajectoryBuilder:
    """Collects whole episodes into :class:`Trajectories`, in memory or in a folder larger than memory.

    Args:
        out: folder to write to as the data come in; None keeps them in memory.
        table: the complete table of observations where it is known beforehand; states are then given as ids.
        tabulate: without a known table, whether to look for repeated observations.
    """

    def __init__(self, out: str | Path | None = None, table: NDArray[Any] | None = None, tabulate: bool = True) -> None:
        """Nothing is written before the first episode comes in."""
        self._out = None if out is None else as_path(out, "the folder to write")
        self._new: NewFolder | None = None
        self._known = table
        self._table = ObservationTable() if table is None and tabulate else None
        self._lengths: list[NDArray[np.int64]] = []
        self._ends: list[NDArray[np.bool_]] = []
        self._states = 0

    def __enter__(self) -> Self:
        """Make a working folder beside the target, where there is one."""
        if self._out is not None:
            self._new = NewFolder(self._out, MANIFEST, ARRAY_FILES).__enter__()
        self._ids = Column(self._path("ids"))
        self._rows = Column(self._path("observations"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing half-written behind."""
        if self._new is not None:
            self._ids.abandon()
            self._rows.abandon()
            self._new.__exit__(kind, error, trace)

    def add(
        self,
        states: NDArray[Any],
        lengths: NDArray[np.int64],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
    ) -> None:
        """Add whole episodes: their states end to end (ids if the table is known), transitions in each, and endings."""
        self.add_states(states)
        self.close_episodes(lengths, terminated, truncated)

    def close_episodes(
        self, lengths: NDArray[np.int64], terminated: NDArray[np.bool_], truncated: NDArray[np.bool_]
    ) -> None:
        """Say where the states added so far belong: transitions in each episode, and how it ended."""
        self._lengths.append(np.asarray(lengths, dtype=np.int64))
        self._ends.append(np.stack([terminated, truncated]).astype(bool))

    def add_states(self, states: NDArray[Any]) -> None:
        """Add states in order of time, of an episode that may go on; :meth:`close_episodes` must follow."""
        if self._known is None:
            check_finite(states, first=self._states)
        self._states += len(states)
        if self._known is not None:
            self._ids.append(np.asarray(states, dtype=np.int32))
        elif self._table is not None:
            self._ids.append(self._table.lookup(states))
            if self._states >= DECIDE_AFTER and self._states < MIN_REPEATS * len(self._table):
                self._give_up_table()
        else:
            self._rows.append(states)

    def finish(self, metadata: dict[str, Any]) -> Trajectories:
        """The data set; on disk it takes its final place only now, and comes back memory-mapped."""
        if not self._lengths:
            raise LapwingError("nothing was collected; ask for at least one step")
        if self._table is not None and MIN_DECIDABLE <= self._states < MIN_REPEATS * len(self._table):
            self._give_up_table()
        lengths = np.concatenate(self._lengths)
        ends = np.concatenate(self._ends, axis=1)
        small = {"offsets": np.concatenate([[0], np.cumsum(lengths + 1)]).astype(np.int64)}
        small |= {"terminated": ends[0], "truncated": ends[1]}
        tabulated = self._known is not None or self._table is not None
        if tabulated:
            small["observations"] = self._known if self._known is not None else self._table.array()  # type: ignore[union-attr]
        large = "ids" if tabulated else "observations"
        column = self._ids if tabulated else self._rows
        if self._new is None:
            return Trajectories(**small, **{large: column.finish()}, metadata=metadata)  # type: ignore[arg-type]
        return self._finish_on_disk(self._new, small, {large: column.finish()}, metadata)

    def _finish_on_disk(
        self, new: NewFolder, small: dict[str, Any], checksums: dict[str, Any], metadata: dict[str, Any]
    ) -> Trajectories:
        for name, array in small.items():
            checksums[name] = write_array(new.content / f"{name}.npy", array)
        write_manifest(new.content, checksums, metadata)
        new.put_in_place()
        return Trajectories.load(new.path, mmap=True)

    def _give_up_table(self) -> None:
        """Observations hardly repeat: write them out as rows, and drop the table."""
        assert self._table is not None
        ids = self._ids.finish()
        path = self._path("ids")
        numbers: NDArray[np.int32] = np.load(path, mmap_mode="r") if path is not None else np.asarray(ids)
        table, self._table, self._ids = self._table, None, Column(None)
        row = table.observations(np.zeros(1, dtype=np.int32))
        for block in row_blocks((len(numbers), *row.shape[1:]), row.itemsize):
            self._rows.append(table.observations(numbers[block]))
        if path is not None:
            path.unlink()

    def _path(self, name: str) -> Path | None:
        return None if self._new is None else self._new.content / f"{name}.npy"
