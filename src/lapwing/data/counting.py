"""Counting transitions of data in several parts, on disk and over a cluster, in memory bounded by the states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from lapwing.checks import as_path, shown
from lapwing.data.packing import ENTRIES
from lapwing.data.trajectories import MIN_DECIDABLE, ObservationTable, Trajectories, row_blocks
from lapwing.errors import ArgumentError, DataError
from lapwing.ray_cluster import map_on_ray
from lapwing.storage.reading import forget_pages

# States of the first episodes that are kept: as many as the noise of components is estimated from, and a part more.
SAMPLE_STATES = 1 << 18
SAMPLE_MARGIN = 1 << 15

Shard = str | Path | Trajectories
"""A folder of trajectories, or trajectories."""


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """Transitions counted over all parts of a data set: what :func:`lapwing.operator` and :func:`lapwing.solve` take.

    Attributes:
        sample: the first episodes, at least 262,144 states where there are so many, with the table of all observations.
        steps: (table, table) sparse int64: how often each observation was followed by each other one.
        branches: how often each transition is counted in ``steps``: once for each of its ``next_ids``, else once.
        num_transitions: of all parts.
        num_episodes: of all parts.
        next_rows: as :meth:`Trajectories.known_next_rows` gives them for all parts.
    """

    sample: Trajectories
    steps: csr_array
    branches: int
    num_transitions: int
    num_episodes: int
    next_rows: NDArray[np.int64] | None

    @property
    def observations(self) -> NDArray[Any]:
        """(table, ...) the distinct observations."""
        return self.sample.observations

    @property
    def metadata(self) -> dict[str, Any]:
        """Those of the first part."""
        return self.sample.metadata

    @property
    def has_table(self) -> bool:
        """True: observations are always a table here."""
        return True

    def counts(self) -> csr_array:
        """How often each observation was followed by each other one, the same as :meth:`Trajectories.counts`.

        Returns:
            (table, table) sparse counts; do not change them.
        """
        return self._counts

    @cached_property
    def _counts(self) -> csr_array:
        return csr_array(self.steps / float(self.branches))

    def known_next_rows(self) -> NDArray[np.int64] | None:
        """What :attr:`next_rows` is."""
        return self.next_rows

    def __repr__(self) -> str:
        """One line: how much there is, and of what."""
        size = f"{self.num_transitions:,} transitions in {self.num_episodes:,} episodes"
        return f"TransitionCounts({size}, {len(self.observations):,} distinct observations, {self.steps.nnz:,} pairs)"


def count(shards: "Shard | Sequence[Shard]", *, on: str = "local") -> TransitionCounts:
    """Count the transitions of a data set in one or several parts, which are read from disk a block at a time.

    The counts are those of ``Trajectories.concatenate(parts).counts()``, to the last bit, in memory for the distinct
    observations and the pairs of them that occur, however many transitions there are. Each part is counted by itself
    and the counts are added, in this process or as tasks of a Ray cluster.

    Args:
        shards: folders that ``Trajectories.save`` or ``collect(out=)`` wrote, or trajectories; in the order of time.
            Each is compared with its checksums. Observations of parts too small to repeat may repeat in others.
        on: ``local``; ``ray`` for all cores of this machine; or ``ray://host:port`` for a cluster, all of whose
            machines must see the folders under the same names.

    Returns:
        The counts, for :func:`lapwing.operator` and :func:`lapwing.solve`.

    Raises:
        DataError: parts that do not fit together; the message names the part.
        DamagedFileError: a part that is damaged.

    Example:
        >>> import lapwing as lw
        >>> parts = [lw.collect("GridMaze-7", 5_000, seed=seed) for seed in (0, 1)]
        >>> counts = count(parts)
        >>> counts.num_transitions, lw.solve(counts, dim=3).dim
        (10000, 3)
    """
    parts = _checked_shards(shards)
    if on == "local":
        counted: Iterator[TransitionCounts] = map(count_shard, parts)
    elif on == "ray" or (isinstance(on, str) and on.startswith("ray://")):
        counted = map_on_ray(count_shard, parts, on)
    else:
        raise ArgumentError(f"transitions are counted on local, ray or ray://host:port; got {shown(on)}")
    total = _Total()
    for number, (part, found) in enumerate(zip(parts, counted, strict=True)):
        total.add(found, str(part) if isinstance(part, Path) else f"part {number}")
    return total.counts()


def count_shard(shard: Path | Trajectories) -> TransitionCounts:
    """The counts of one part, over its own table.

    Args:
        shard: a folder, or trajectories.

    Returns:
        Its counts; nothing in them lies on the disk.
    """
    data = shard if isinstance(shard, Trajectories) else Trajectories.load(shard, mmap=True, verify=True)
    data = data.packed()
    data = data if data.has_table else _with_table(data)
    return TransitionCounts(
        sample=_first_episodes(data),
        steps=data.count_steps(),
        branches=data.branches,
        num_transitions=data.num_transitions,
        num_episodes=data.num_episodes,
        next_rows=data.known_next_rows(),
    )


class _Total:
    """Sums of counts over one table of the observations of all parts, in the order of their first appearance."""

    def __init__(self) -> None:
        self._first: TransitionCounts | None = None
        self._table: NDArray[Any] | None = None
        self._lookup: ObservationTable | None = None
        self._steps: Any = None
        self._next: NDArray[np.int64] | None = None
        self._transitions = self._episodes = 0
        self._samples: list[tuple[Trajectories, NDArray[np.int64]]] = []

    def add(self, part: TransitionCounts, name: str) -> None:
        """Add the counts of the next part; ``name`` is for messages."""
        if self._first is None or self._table is None:
            self._first, self._table = part, part.observations
            self._steps, self._next = part.steps, part.next_rows
            numbers = np.arange(len(part.observations))
        else:
            self._check(part, self._first, name)
            numbers = self._numbers(part.observations)
            size = len(self._table)
            self._steps.resize((size, size))
            moved = part.steps.tocoo()
            places = (numbers[moved.coords[0]], numbers[moved.coords[1]])
            self._steps = self._steps + coo_array((moved.data, places), shape=(size, size)).tocsr()
            self._next = self._joined_next(part.next_rows, numbers)
        self._transitions += part.num_transitions
        self._episodes += part.num_episodes
        if sum(sample.num_states for sample, _ in self._samples) < SAMPLE_STATES:
            self._samples.append((part.sample, numbers))

    def counts(self) -> TransitionCounts:
        """The sum."""
        assert self._first is not None
        assert self._table is not None
        states = self._transitions + self._episodes
        if MIN_DECIDABLE <= states < 2 * len(self._table):
            raise DataError(
                f"counting needs observations that repeat; these {states:,} states have {len(self._table):,} distinct "
                "ones; learn from them instead (lapwing.learn)"
            )
        return TransitionCounts(
            sample=_joined_samples(self._samples, self._table),
            steps=self._steps,
            branches=self._first.branches,
            num_transitions=self._transitions,
            num_episodes=self._episodes,
            next_rows=self._next,
        )

    @staticmethod
    def _check(part: TransitionCounts, first: TransitionCounts, name: str) -> None:
        shapes = [one.sample.observation_shape for one in (part, first)]
        if shapes[0] != shapes[1] or part.metadata.get(ENTRIES) != first.metadata.get(ENTRIES):
            raise DataError(
                f"{name} has observations of shape {shapes[0]}, the parts before it {shapes[1]}: they are not parts of "
                "one data set"
            )
        if part.branches != first.branches:
            raise DataError(
                f"{name} lists {part.branches} next states of each transition (next_ids), the parts before it "
                f"{first.branches}: they are not parts of one data set"
            )

    def _numbers(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """The row in the table of each of these observations; new ones are added to it."""
        assert self._table is not None
        if self._table.dtype == rows.dtype and np.array_equal(self._table, rows):
            return np.arange(len(rows))
        common = np.result_type(self._table, rows)
        if self._lookup is None or common != self._table.dtype:
            self._lookup = ObservationTable()
            self._lookup.lookup(self._table.astype(common, copy=False))
            if len(self._lookup) < len(self._table):
                raise DataError("the table of the first part lists an observation twice; make it with lw.from_arrays")
        numbers = self._lookup.lookup(rows.astype(common, copy=False)).astype(np.int64)
        if len(self._lookup) > len(self._table) or common != self._table.dtype:
            self._table = self._lookup.array()
        return numbers

    def _joined_next(self, given: NDArray[np.int64] | None, numbers: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The next states of each observation, if those that both know are the same."""
        if self._next is None or given is None or self._table is None:
            return None
        moved = np.full((len(self._table), given.shape[1]), -1)
        left = given[:, 0] >= 0
        moved[numbers[left]] = numbers[given[left]]
        known = np.full_like(moved, -1)
        known[: len(self._next)] = self._next
        both = (known[:, 0] >= 0) & (moved[:, 0] >= 0)
        return np.where(known >= 0, known, moved) if np.array_equal(known[both], moved[both]) else None


def _checked_shards(shards: Any) -> list[Path | Trajectories]:
    """The parts as a list, each folder named once."""
    listed = [shards] if isinstance(shards, (str, Path, Trajectories)) else shards
    if not isinstance(listed, Sequence) or not listed:
        raise ArgumentError(f"give the folders of a data set, at least one; got {shown(shards)}")
    parts = [one if isinstance(one, Trajectories) else as_path(one, "a folder of trajectories") for one in listed]
    folders = [one.resolve() for one in parts if isinstance(one, Path)]
    twice = {one for one in folders if folders.count(one) > 1} if len(set(folders)) < len(folders) else set()
    if twice:
        raise ArgumentError(f"{min(twice)} is named twice, and its transitions would count twice")
    return parts


def _with_table(data: Trajectories) -> Trajectories:
    """Data whose observations were stored in order of time, with a table of them; the ids go to a temporary file."""
    table = ObservationTable()
    with TemporaryFile() as file:
        ids = np.memmap(file, np.int32, "w+", shape=(data.num_states,))
    for block in row_blocks(data.observations.shape, data.observations.itemsize):
        ids[block] = table.lookup(np.asarray(data.observations[block]))
        forget_pages(data.observations)
    return replace(data, observations=table.array(), ids=ids)


def _first_episodes(data: Trajectories) -> Trajectories:
    """The first episodes in memory, of a very long one the beginning, without what is not counted."""
    count = min(int(np.searchsorted(data.offsets, SAMPLE_STATES)), data.num_episodes)
    offsets = np.array(data.offsets[: count + 1])
    terminated, truncated = np.array(data.terminated[:count]), np.array(data.truncated[:count])
    if offsets[-1] > SAMPLE_STATES + SAMPLE_MARGIN:
        offsets[-1], terminated[-1], truncated[-1] = SAMPLE_STATES + SAMPLE_MARGIN, False, True
    states, steps = int(offsets[-1]), int(offsets[-1]) - count
    assert data.ids is not None
    return Trajectories(
        observations=np.array(data.observations),
        offsets=offsets,
        terminated=terminated,
        truncated=truncated,
        ids=np.array(data.ids[:states]),
        next_ids=None if data.next_ids is None else np.array(data.next_ids[:steps]),
        metadata=data.metadata,
    )


def _joined_samples(samples: list[tuple[Trajectories, NDArray[np.int64]]], table: NDArray[Any]) -> Trajectories:
    """The samples one after another, with rows of one table."""
    ends = np.cumsum([sample.num_states for sample, _ in samples])
    starts = [sample.offsets[1:] + before for (sample, _), before in zip(samples, [0, *ends[:-1]], strict=True)]

    def joined(name: str) -> Any:
        parts = [getattr(sample, name) for sample, _ in samples]
        return None if parts[0] is None else np.concatenate(parts)

    def numbered(name: str) -> Any:
        parts = [(getattr(sample, name), numbers) for sample, numbers in samples]
        return (
            None if parts[0][0] is None else np.concatenate([numbers[ids] for ids, numbers in parts]).astype(np.int32)
        )

    return Trajectories(
        observations=table,
        offsets=np.concatenate([[0], *starts]),
        terminated=joined("terminated"),
        truncated=joined("truncated"),
        ids=numbered("ids"),
        next_ids=numbered("next_ids"),
        metadata=samples[0][0].metadata,
    )
