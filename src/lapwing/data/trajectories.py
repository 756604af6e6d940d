"""One container for all experience: episodes of named arrays, with repeated observations stored once."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array

from lapwing.checks import as_path, as_whole, shown
from lapwing.data.packing import RowFormat
from lapwing.errors import ArgumentError, DamagedFileError, DataError, LapwingError, UnknownNameError, did_you_mean
from lapwing.storage.files import write_array, write_json
from lapwing.storage.folders import replaced_directory
from lapwing.storage.reading import convert, forget_pages, read_array, read_manifest
from lapwing.storage.schemas import TrajectoriesManifest

FORMAT = "lapwing-trajectories"
VERSION = 2
MANIFEST = "trajectories.json"
MODEL_MANIFEST = "model.json"
MAX_KEYS = 64
# One array each, or one per key where observations have several.
KEYED = ("observations", "next_observations")
REQUIRED = ("observations", "offsets", "terminated", "truncated")
OF_TRANSITIONS = ("actions", "rewards", "next_observations", "next_ids")
OPTIONAL = ("ids", *OF_TRANSITIONS)
ARRAYS = REQUIRED + OPTIONAL
ARRAY_FILES = (
    *(f"{name}.npy" for name in ARRAYS),
    *(f"{name}.{number}.npy" for name in KEYED for number in range(MAX_KEYS)),
)
CHUNK_ROWS = 1 << 21
BLOCK_BYTES = 1 << 22

# A table is worth having if observations come at least this often on average.
MIN_REPEATS = 2.0
DECIDE_AFTER = 4096
MIN_DECIDABLE = 256
HASHES_KEPT = 1 << 16
PACKED_IN_MEMORY = 1 << 30
HASHED_BYTES = 1 << 17


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Episodes laid end to end.

    Episode ``e`` is the states ``offsets[e]`` to ``offsets[e + 1] - 1``; a transition never crosses that boundary.
    Only observations and boundaries are required. ``docs/data.md`` describes the files.

    Args:
        observations: with ``ids`` the table of distinct observations, else one row per state in order of time; a
            dictionary of such arrays where observations have several keys (see :meth:`select`).
        offsets: (episodes + 1,) where each episode begins, and the end of the last.
        terminated: (episodes,) whether the environment itself ended the episode.
        truncated: (episodes,) whether it was cut off from outside (time limit, end of collection).
        ids: (states,) row of the table for each state, or None where observations hardly repeat.
        actions: (transitions, ...) the action of each transition; see :meth:`transition_rows`.
        rewards: (transitions,) the reward of each transition.
        next_observations: (transitions, k, ...) k further next observations of each transition, drawn independently
            from the same state by the same policy, as a simulator that can be reset gives; by key where there are
            several.
        next_ids: (transitions, k) rows of the table of k equally likely next states of each transition, from a
            simulator that can be reset: what is counted at one step in place of the next state alone.
        metadata: where the data came from, as JSON types.
    """

    observations: NDArray[Any]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ids: NDArray[np.int32] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    actions: NDArray[Any] | None = None
    rewards: NDArray[Any] | None = None
    next_observations: NDArray[Any] | None = None
    next_ids: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        """Refuse data that is empty, inconsistent or not finite."""
        for name in ARRAYS:
            part = getattr(self, name)
            if isinstance(part, dict) and name in KEYED:
                part = {key: _native(f"{name}[{key!r}]", array) for key, array in part.items()}
                # One key is as good as none.
                part = next(iter(part.values())) if len(part) == 1 else part
            elif part is not None or name in REQUIRED:
                part = _native(name, part)
            object.__setattr__(self, name, part)
        _check_boundaries(self)
        _check_observations(self)
        _check_transitions(self)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the observations' keys; none where each observation is one array."""
        return tuple(self.observations) if isinstance(self.observations, dict) else ()

    @property
    def num_episodes(self) -> int:
        """How many episodes there are."""
        return len(self.offsets) - 1

    @property
    def num_states(self) -> int:
        """How many states were recorded, first and last ones included."""
        return int(self.offsets[-1])

    @property
    def num_transitions(self) -> int:
        """How many steps were recorded: states less one per episode."""
        return self.num_states - self.num_episodes

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """(episodes,) transitions in each episode."""
        return np.diff(self.offsets) - 1

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        self.require_one_key()
        return tuple(self.observations.shape[1:])

    @property
    def has_table(self) -> bool:
        """Whether observations are a table of distinct ones that states refer to."""
        return self.ids is not None

    def require_one_key(self) -> None:
        """Refuse observations of several keys, with an error that says how to choose one."""
        if self.keys:
            raise DataError(
                f"observations have several keys ({', '.join(self.keys)}); choose one, "
                f"data.select({self.keys[0]!r}), or join them, data.packed()"
            )

    def select(self, keys: "str | Sequence[str]") -> "Trajectories":
        """The same experience with the observations of some of the keys.

        Args:
            keys: one of :attr:`keys`, or several.

        Returns:
            Data of one key, tabulated if its observations repeat, or of several; actions and rewards are kept.
        """
        chosen = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in chosen:
            if key not in self.keys:
                raise UnknownNameError(
                    f"no key {shown(key)} in these observations; {did_you_mean(str(key), self.keys)}"
                )
        if not chosen:
            raise ArgumentError(f"choose at least one of the keys {', '.join(self.keys)}")
        further: Any = self.next_observations
        further = None if further is None else {key: further[key] for key in chosen}
        if len(chosen) > 1:
            parts: Any = {key: self.observations[key] for key in chosen}
            return replace(self, observations=parts, next_observations=further)
        rows, ids = self.observations[chosen[0]], self.ids
        found = None if ids is not None else tabulated(rows)
        rows, ids = (rows, ids) if found is None else found
        metadata = {**self.metadata, "key": chosen[0]}
        return replace(self, observations=rows, ids=ids, next_observations=further, metadata=metadata)

    def packed(self) -> "Trajectories":
        """The same experience with all keys of an observation in one row of bytes (:class:`RowFormat`).

        Learning, solving and auditing do this by themselves; a network of your own reads the rows with
        :func:`lapwing.encoders.unpack_entries`.

        Returns:
            Data of one array, tabulated if its rows repeat; its metadata list the entries. Of data that are large the
            rows are in a temporary file. Data of one array as they are.
        """
        if not self.keys:
            return self
        arrays: Any = self.observations
        layout = RowFormat.of(arrays)
        rows, ids = _packed_rows(layout, arrays), self.ids
        found = None if ids is not None else tabulated(rows)
        rows, ids = (rows, ids) if found is None else found
        further: Any = self.next_observations
        if further is not None:
            lengths = next(iter(further.values())).shape[:2]
            flat = {key: part.reshape(-1, *part.shape[2:]) for key, part in further.items()}
            further = layout.pack(flat).reshape(*lengths, -1)
        metadata = {**self.metadata, **layout.as_metadata()}
        return replace(self, observations=rows, ids=ids, next_observations=further, metadata=metadata)

    def numbers(self, rows: NDArray[np.integer[Any]] | slice) -> NDArray[np.float64]:
        """Observations as plain numbers, those of several entries side by side.

        Args:
            rows: of ``observations``, which are one array.

        Returns:
            (n, numbers).
        """
        chosen = np.asarray(self.observations[rows])
        layout = RowFormat.from_metadata(self.metadata)
        parts = [chosen] if layout is None else layout.unpack(chosen).values()
        return np.concatenate([part.reshape(len(chosen), -1).astype(np.float64) for part in parts], axis=1)

    def take(self, episodes: "ArrayLike") -> "Trajectories":
        """Some of the episodes, in the order given: to learn from some and evaluate on others.

        Args:
            episodes: (k,) their numbers, counted from 0, or a slice of ``range(num_episodes)``.

        Returns:
            New data; a table of observations stays whole.

        Example:
            >>> import lapwing as lw
            >>> data = lw.collect("GridMaze-7", 100, episode_length=10)
            >>> data.take(range(0, 10, 2)).num_episodes
            5
        """
        numbers = np.atleast_1d(np.asarray(episodes))
        if not (numbers.ndim == 1 and numbers.size and np.issubdtype(numbers.dtype, np.integer)):
            raise ArgumentError(f"episodes are a list of whole numbers, got {shown(episodes)}")
        if numbers.min() < 0 or numbers.max() >= self.num_episodes:
            raise ArgumentError(f"there are {self.num_episodes} episodes, numbered from 0; got {shown(episodes)}")
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.append(0, np.cumsum(lengths))
        positions = np.repeat(np.asarray(self.offsets[:-1])[numbers] - offsets[:-1], lengths) + np.arange(offsets[-1])
        inside = np.ones(len(positions), dtype=bool)
        inside[offsets[1:] - 1] = False
        steps = self.transition_rows(positions[inside])
        of_steps = {name: _rows_of(getattr(self, name), steps) for name in OF_TRANSITIONS}
        return replace(
            self,
            observations=self.observations if self.has_table else _rows_of(self.observations, positions),
            ids=None if self.ids is None else self.ids[positions],
            offsets=offsets,
            terminated=self.terminated[numbers],
            truncated=self.truncated[numbers],
            **of_steps,
        )

    def append(self, other: "Trajectories") -> "Trajectories":
        """The episodes of both, these first; neither is changed.

        Args:
            other: experience with the same keys, shapes and optional arrays. To add many small pieces, use a
                :class:`~lapwing.data.TrajectoryBuilder`, which copies nothing twice.

        Returns:
            New data, with the metadata of these; tabulated if both are.
        """
        for name in OF_TRANSITIONS:
            if (getattr(self, name) is None) != (getattr(other, name) is None):
                raise DataError(f"one of the two data sets has {name} and the other has not")
        if self.keys != other.keys:
            raise DataError(f"the two data sets have different keys: {self.keys} and {other.keys}")
        offsets = np.concatenate([self.offsets, other.offsets[1:] + self.num_states])
        names = ("terminated", "truncated", *OF_TRANSITIONS)
        joined = {name: _joined(getattr(self, name), getattr(other, name)) for name in names}
        if self.ids is not None and other.ids is not None and not self.keys:
            table, numbers = _joined_tables(self, other)
            rows = [(self.ids, other.ids), (self.next_ids, other.next_ids)]
            ids, next_ids = (None if a is None else np.concatenate([numbers[0][a], numbers[1][b]]) for a, b in rows)
            return replace(self, observations=table, offsets=offsets, **{**joined, "ids": ids, "next_ids": next_ids})
        observations = _joined(_in_time(self), _in_time(other))
        return replace(self, observations=observations, offsets=offsets, **{**joined, "ids": None, "next_ids": None})

    @staticmethod
    def concatenate(parts: "Sequence[Trajectories]") -> "Trajectories":
        """The episodes of several data sets, in the order given.

        Args:
            parts: at least one, with the same keys, shapes and optional arrays.

        Returns:
            New data, with the metadata of the first; tabulated if all are.
        """
        if not parts or not all(isinstance(part, Trajectories) for part in parts):
            raise ArgumentError(f"give a list of data sets, at least one; got {shown(parts)}")
        # Halves joined to wholes: each row is copied as often as the number can be halved, and not once for each part.
        if len(parts) == 1:
            return parts[0]
        middle = len(parts) // 2
        return Trajectories.concatenate(parts[:middle]).append(Trajectories.concatenate(parts[middle:]))

    def rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the row of ``observations`` for each of (n,) state positions.

        Args:
            positions: (n,) positions in the sequence of all states, episode after episode.

        Returns:
            (n,) row numbers; the positions themselves where there is no table.
        """
        return positions if self.ids is None else self.ids[positions].astype(np.int64)

    def transition_rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the transition that leaves each state is found in ``actions``, ``rewards`` and ``next_observations``.

        Args:
            positions: (n,) positions of states that are not the last of their episode.

        Returns:
            (n,) rows: the position less the number of episodes before it.
        """
        return positions - (np.searchsorted(self.offsets, positions, side="right") - 1)

    def episode(self, number: int) -> NDArray[Any]:
        """(length + 1, ...) the observations of one episode in order of time; by key where there are several.

        Args:
            number: of the episode, from 0.

        Returns:
            (length + 1, ...) observations, or a dictionary of such arrays.
        """
        whole = as_whole(number)
        if whole is None or not 0 <= whole < self.num_episodes:
            raise ArgumentError(f"episodes are numbered 0 to {self.num_episodes - 1}, got {shown(number)}")
        return _in_time(self, slice(self.offsets[whole], self.offsets[whole + 1]))

    def states(self) -> NDArray[Any]:
        """(states, ...) the observations of all states in order of time; by key where there are several."""
        return _in_time(self)

    def last_states(self) -> NDArray[np.bool_]:
        """(states,) whether each state is the last of its episode: what an online learner takes as ``episode_ends``."""
        found = np.zeros(self.num_states, dtype=bool)
        found[self.offsets[1:] - 1] = True
        return found

    def steps_left(self, begin: int, end: int) -> NDArray[np.int64]:
        """How many steps are left in the episode of each of some states.

        Args:
            begin: position of the first state.
            end: position after the last.

        Returns:
            (end - begin,) whole numbers; 0 at the last state of an episode.
        """
        positions = np.arange(begin, end)
        ends: NDArray[np.int64] = np.asarray(self.offsets)[np.searchsorted(self.offsets, positions, side="right")]
        return ends - 1 - positions

    def pair_positions(self, lag: int = 1, chunk: int = CHUNK_ROWS) -> Iterator[NDArray[np.int64]]:
        """Positions of all states that have a state ``lag`` steps later in their own episode, in chunks.

        Args:
            lag: how many steps later.
            chunk: how many states are looked at at once.

        Returns:
            Iterator over (n,) arrays of positions, in order.
        """
        if not isinstance(lag, (int, np.integer)) or not 0 <= lag < 1 << 62:
            raise ArgumentError(f"a lag between states is a whole number of at least 0, got {shown(lag)}")
        first = 0
        while first < self.num_episodes:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + chunk, side="right")) - 1
            last = min(max(last, first + 1), self.num_episodes)
            bounds = self.offsets[first : last + 1]
            # A single episode may be longer than a chunk, or than memory.
            for begin in range(int(bounds[0]), int(bounds[-1]), chunk):
                end = min(begin + chunk, int(bounds[-1]))
                positions, inside = np.arange(begin, end), np.minimum(np.maximum(bounds, begin), end)
                yield positions[positions + lag < np.repeat(bounds[1:], np.diff(inside))]
            first = last

    def counts(self, lag: int = 1) -> csr_array:
        """How often each observation was followed by each other one ``lag`` steps later.

        Args:
            lag: how many steps later. The counts of lag 1 are made once and kept.

        Returns:
            (table, table) sparse counts; do not change them.
        """
        return self._one_step_counts if lag == 1 else self._counted(lag)

    @cached_property
    def _one_step_counts(self) -> csr_array:
        return self._counted(1)

    def _counted(self, lag: int) -> csr_array:
        return csr_array(self.count_steps(lag) / float(self.branches if lag == 1 else 1))

    @property
    def branches(self) -> int:
        """How many next states of a transition are counted: those of ``next_ids``, else 1."""
        return 1 if self.next_ids is None else int(self.next_ids.shape[1])

    def count_steps(self, lag: int = 1) -> csr_array:
        """What :meth:`counts` is a share of: whole numbers, whose sums do not depend on their order.

        Args:
            lag: how many steps later.

        Returns:
            (table, table) sparse int64; at lag 1 each transition is counted :attr:`branches` times.
        """
        ids, size = self._required_ids("counting"), len(self.observations)
        total = csr_array((size, size), dtype=np.int64)
        for positions in self.pair_positions(lag):
            ends = self.next_rows(positions) if lag == 1 else self.rows(positions + lag)[:, None]
            pairs = (self.rows(positions)[:, None] * size + ends).ravel()
            # Sorted, equal pairs stand together; several times faster than a sparse matrix of all of them.
            pairs.sort()
            first = np.flatnonzero(np.append(True, pairs[1:] != pairs[:-1])) if len(pairs) else np.zeros(0, np.int64)
            times, places = np.diff(np.append(first, len(pairs))), np.divmod(pairs[first], size)
            total = total + coo_array((times, places), shape=(size, size)).tocsr()
            forget_pages(ids)
        return total

    def known_next_rows(self) -> NDArray[np.int64] | None:
        """The next states of each observation where every visit of it lists the same ones in ``next_ids``.

        Returns:
            (table, k) rows, -1 at observations that were never left; None where visits list different next states, or
            one each.
        """
        if self.branches < 2:
            return None
        found = np.full((len(self.observations), self.branches), -1, dtype=np.int64)
        for positions in self.pair_positions(1):
            starts, following = self.rows(positions), self.next_rows(positions)
            new = found[starts, 0] < 0
            found[starts[new]] = following[new]
            if not np.array_equal(found[starts], following):
                return None
        return found

    def next_rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of ``observations`` of the equally likely next states of states: one each, or those of ``next_ids``.

        Args:
            positions: (n,) positions of states that are not the last of their episode.

        Returns:
            (n, k) row numbers.
        """
        if self.next_ids is None:
            return self.rows(positions + 1)[:, None]
        return np.asarray(self.next_ids[self.transition_rows(positions)], dtype=np.int64)

    def visits(self) -> NDArray[np.int64]:
        """(table,) how often each observation of the table was seen."""
        ids = self._required_ids("visits")
        seen = np.zeros(len(self.observations), dtype=np.int64)
        # In blocks, because bincount makes int64 of what it is given.
        for begin in range(0, len(ids), CHUNK_ROWS):
            seen += np.bincount(ids[begin : begin + CHUNK_ROWS], minlength=len(seen))
        return seen

    def _required_ids(self, what: str) -> NDArray[np.int32]:
        self.require_one_key()
        if self.ids is None:
            raise DataError(f"{what} needs observations that repeat; these hardly do, so there is no table of them")
        return self.ids

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays by the name of their file; those of several keys are numbered, ``observations.0`` and so on."""
        found: dict[str, NDArray[Any]] = {}
        for name in ARRAYS:
            part = getattr(self, name)
            if isinstance(part, dict):
                found |= {f"{name}.{number}": array for number, array in enumerate(part.values())}
            elif part is not None:
                found[name] = part
        return found

    def save(self, path: str | Path) -> Path:
        """Write a folder of plain ``.npy`` files and a JSON manifest atomically; no pickle.

        Args:
            path: the folder, new, empty, or one of this kind.

        Returns:
            The folder.
        """
        target = as_path(path, "the folder to save to")
        with replaced_directory(target, MANIFEST, ARRAY_FILES) as folder:
            checksums = {name: write_array(folder / f"{name}.npy", array) for name, array in self.arrays().items()}
            write_manifest(folder, checksums, self.metadata, self.keys)
        return target

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = False, verify: bool | None = None) -> "Trajectories":
        """Read what :meth:`save` wrote, in this or an earlier version.

        Args:
            path: the folder.
            mmap: leave the arrays on disk, for data larger than memory.
            verify: whether to read everything once and compare it with its checksums; None does so unless ``mmap``.

        Returns:
            The data.
        """
        folder = as_path(path, "the folder of trajectories")
        if (folder / MODEL_MANIFEST).is_file() and not (folder / MANIFEST).exists():
            raise ArgumentError(f"{folder} holds a representation, not trajectories; read it with lapwing.load")
        content = read_manifest(folder / MANIFEST, FORMAT, VERSION)
        manifest = convert(content, TrajectoriesManifest, str(folder / MANIFEST))
        checksums, keys = manifest.checksums, manifest.keys
        names = {name: _file_names(name, keys) for name in ARRAYS}
        wanted = {file for name in REQUIRED for file in names[name]}
        known = wanted | {file for name in OPTIONAL for file in names[name]}
        if not wanted <= set(checksums) <= known or len(set(keys)) < len(keys) or len(keys) > MAX_KEYS:
            raise DamagedFileError(f"{folder / MANIFEST} does not list the arrays of a data set; it is damaged")
        compare = not mmap if verify is None else verify
        files = {
            name: read_array(folder / f"{name}.npy", mmap=mmap, checksum=checksums[name] if compare else None)
            for name in sorted(checksums)
        }
        parts: dict[str, Any] = {}
        for name in ARRAYS:
            found = [files[file] for file in names[name] if file in files]
            if len(found) == len(names[name]):
                parts[name] = dict(zip(keys, found, strict=True)) if keys and name in KEYED else found[0]
        try:
            return cls(**parts, metadata=manifest.metadata)
        except LapwingError as error:
            raise DamagedFileError(f"{folder} does not hold valid trajectories: {error}") from error

    def __repr__(self) -> str:
        """One line: how much there is, and of what."""
        if isinstance(self.observations, dict):
            shapes = ", ".join(f"{key} {array.shape[1:]}" for key, array in self.observations.items())
            what = f"observations {{{shapes}}}"
        else:
            kind = f"{len(self.observations):,} distinct" if self.has_table else "not tabulated"
            what = f"observations {self.observation_shape} {self.observations.dtype}, {kind}"
        also = [name for name in OF_TRANSITIONS if getattr(self, name) is not None]
        size = f"{self.num_transitions:,} transitions in {self.num_episodes:,} episodes"
        return f"Trajectories({', '.join([size, what, *also])})"


class ObservationTable:
    """Distinct observations in order of first appearance, each held once; looked up by a hash, and then compared."""

    def __init__(self) -> None:
        """Start empty."""
        self._ids: dict[int, int] = {}
        self._same_hash: dict[bytes, int] = {}
        self._rows: list[NDArray[Any]] = []

    def __len__(self) -> int:
        """How many distinct observations there are."""
        return len(self._rows)

    def lookup(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """(n,) the number of each row, new ones added."""
        ids = np.empty(len(rows), dtype=np.int32)
        for block in row_blocks(rows.shape, rows.itemsize):
            plain = equal_by_bytes(rows[block])
            # Equal rows have equal hashes, so that only one of each is looked up; rows that share a hash by chance
            # are told apart by comparing them.
            hashes, firsts, groups = np.unique(row_hashes(plain), return_index=True, return_inverse=True)
            alike = firsts[groups]
            repeats, apart = np.flatnonzero(alike != np.arange(len(plain))), []
            for part in row_blocks((len(repeats), *plain.shape[1:]), plain.itemsize, HASHED_BYTES):
                again = repeats[part]
                same = (plain[again] == plain[alike[again]]).reshape(len(again), -1).all(axis=1)
                apart.append(again[~same])
            # In the order in which rows stand, so that numbers do not depend on where blocks or parts of data end.
            others = np.concatenate(apart) if apart else repeats
            keys, numbers = hashes[groups], np.empty(len(plain), dtype=np.int32)
            for row in np.sort(np.concatenate([firsts, others])).tolist():
                numbers[row] = self._number(plain[row], int(keys[row]))
            found = numbers[alike]
            found[others] = numbers[others]
            ids[block] = found
        return ids

    def _number(self, row: NDArray[Any], key: int) -> int:
        number = self._ids.get(key)
        if number is not None and not (self._rows[number] == row).all():
            # Another observation has the same hash.
            key_of_its_own = row.tobytes()
            number = self._same_hash.get(key_of_its_own)
            if number is None:
                number = self._same_hash[key_of_its_own] = self._added(row)
        if number is None:
            number = self._ids[key] = self._added(row)
        return number

    def _added(self, row: NDArray[Any]) -> int:
        self._rows.append(row.copy())
        return len(self._rows) - 1

    def observations(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        """(n, ...) the observations with these numbers."""
        return np.stack([self._rows[number] for number in ids.tolist()])

    def array(self) -> NDArray[Any]:
        """(table, ...) the distinct observations as one array."""
        return np.stack(self._rows)

    def hardly_repeats(self, states: int, at_least: int) -> bool:
        """Whether so many states, if there are enough of them to tell, had too few repeats for a table."""
        return at_least <= states < MIN_REPEATS * len(self)


def row_blocks(shape: tuple[int, ...], itemsize: int, block_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices of the first axis that hold a few megabytes each, at least one row.

    Args:
        shape: of the whole array.
        itemsize: bytes of one number.
        block_bytes: that a slice holds at most, unless a row has more.

    Returns:
        The slices, in order; together they cover ``shape[0]`` rows.
    """
    step = max(1, block_bytes // max(1, itemsize * math.prod(shape[1:])))
    return (slice(begin, begin + step) for begin in range(0, shape[0], step))


def all_finite(observations: NDArray[Any]) -> bool:
    """Whether there is neither NaN nor infinity, a few megabytes at a time.

    Args:
        observations: (n, ...) of any numeric type, in memory or on disk.

    Returns:
        True for whole numbers.
    """
    if not np.issubdtype(observations.dtype, np.inexact):
        return True
    blocks = row_blocks(observations.shape, observations.itemsize)
    return all(bool(np.isfinite(observations[block]).all()) for block in blocks)


def write_manifest(
    folder: Path, checksums: dict[str, int], metadata: dict[str, Any], keys: tuple[str, ...] = ()
) -> None:
    """Write the manifest of a data set whose arrays are in ``folder``.

    Args:
        folder: that holds the arrays.
        checksums: of the array files, by name of the array.
        metadata: of the data set, JSON types.
        keys: of the observations; empty where they are one array.
    """
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, "checksums": checksums, "metadata": metadata}
    write_json(folder / MANIFEST, content | ({"keys": list(keys)} if keys else {}))


def check_finite(observations: NDArray[Any], first: int = 0, what: str = "observation") -> None:
    """Refuse NaN and infinity; ``first`` is the number of the first row, for the message.

    Args:
        observations: (n, ...) of any numeric type; only floating-point ones are looked at.
        first: number of the first row.
        what: name of a row in the message.

    Raises:
        DataError: where a value is not finite; it names the row.
    """
    if not np.issubdtype(observations.dtype, np.inexact):
        return
    for block in row_blocks(observations.shape, observations.itemsize):
        good = np.isfinite(observations[block]).all(axis=tuple(range(1, observations.ndim)))
        forget_pages(observations)
        if not good.all():
            row = first + block.start + int(np.argmin(good))
            raise DataError(f"{what} {row} holds NaN or infinity; remove or repair it before learning")


def _file_names(name: str, keys: list[str]) -> list[str]:
    return [f"{name}.{number}" for number in range(len(keys))] if keys and name in KEYED else [name]


def _native(name: str, part: Any) -> NDArray[Any]:
    if not isinstance(part, np.ndarray):
        raise ArgumentError(f"{name} must be a NumPy array, got {type(part).__name__}; see lw.from_arrays")
    return part if part.dtype.isnative else part.astype(part.dtype.newbyteorder("="))


def _by_key(part: Any) -> dict[str, NDArray[Any]]:
    return part if isinstance(part, dict) else {"": part}


def _check_observations(data: Trajectories) -> None:
    if len(_by_key(data.observations)) == 0 or len(data.keys) > MAX_KEYS:
        raise DataError(f"observations must have 1 to {MAX_KEYS} keys, got {len(data.keys)}")
    if not all(isinstance(key, str) for key in data.keys):
        raise DataError(f"the keys of observations must be text, got {shown(data.keys)}")
    for rows in _by_key(data.observations).values():
        plain = np.issubdtype(rows.dtype, np.number) and not np.iscomplexobj(rows)
        if rows.ndim < 2 or not plain:
            raise DataError(f"observations must be numbers of shape (n, ...), got {rows.dtype} of shape {rows.shape}")
        if data.ids is None and len(rows) != data.num_states:
            raise DataError(f"{data.num_states} states need as many observations, got {len(rows)}")
        if data.ids is not None and _extremes(data.ids)[1] >= len(rows):
            raise DataError(f"ids point outside the table of {len(rows)} observations")
        check_finite(rows)


def _check_boundaries(data: Trajectories) -> None:
    offsets, ids = data.offsets, data.ids
    if offsets.ndim != 1 or len(offsets) < 2 or not np.issubdtype(offsets.dtype, np.integer):
        raise DataError("the data set is empty: it has no episode; collect at least one step")
    if offsets[0] != 0 or (offsets[1:] <= offsets[:-1]).any():
        raise DataError("episode offsets must start at 0 and grow; each episode needs at least one state")
    states = int(offsets[-1])
    if states == len(offsets) - 1:
        raise DataError("the data set is empty: no episode has a transition; collect at least one step")
    if ids is not None:
        if ids.shape != (states,) or not np.issubdtype(ids.dtype, np.integer):
            raise DataError(f"ids must be {states} whole numbers, one per state, got {ids.dtype} {ids.shape}")
        if _extremes(ids)[0] < 0:
            raise DataError("ids must be at least 0")
    for label, flags in (("terminated", data.terminated), ("truncated", data.truncated)):
        if flags.shape != (len(offsets) - 1,) or flags.dtype != np.bool_:
            raise DataError(f"{label} must be one boolean per episode ({len(offsets) - 1}), got {flags.shape}")


def _extremes(array: NDArray[np.integer[Any]]) -> tuple[int, int]:
    """The smallest and the largest number, a block at a time, because what is mapped may be larger than memory."""
    least, largest = [], []
    for block in row_blocks(array.shape, array.itemsize):
        least.append(int(array[block].min()))
        largest.append(int(array[block].max()))
        forget_pages(array)
    return min(least), max(largest)


def _check_transitions(data: Trajectories) -> None:
    count, shapes = data.num_transitions, {key: rows.shape[1:] for key, rows in _by_key(data.observations).items()}
    for name, most_axes in (("actions", math.inf), ("rewards", 1)):
        part = getattr(data, name)
        if part is None:
            continue
        if not 1 <= part.ndim <= most_axes or len(part) != count or part.dtype.kind not in "biuf":
            raise DataError(f"{name} must be numbers, one per transition ({count}), got {part.dtype} {part.shape}")
        check_finite(part, what=name[:-1])
    if data.next_ids is not None:
        part = data.next_ids
        if data.ids is None:
            raise DataError("next_ids are rows of a table of observations, and these have none")
        if part.ndim != 2 or part.shape[0] != count or part.shape[1] < 1 or part.dtype.kind not in "iu":
            raise DataError(f"next_ids must be whole numbers of shape ({count}, k), got {part.dtype} {part.shape}")
        least, largest = _extremes(part)
        if least < 0 or largest >= len(data.observations):
            raise DataError(f"next_ids must be rows of the table, 0 to {len(data.observations) - 1}")
    if data.next_observations is None:
        return
    further = _by_key(data.next_observations)
    if list(further) != list(shapes) or len({part.shape[1:2] for part in further.values()}) > 1:
        raise DataError("next_observations must have the keys of observations, and equally many of each")
    for key, part in further.items():
        shape = (count, *part.shape[1:2], *shapes[key])
        if part.shape != shape or part.ndim < 3 or part.shape[1] < 1 or part.dtype.kind not in "iuf":
            raise DataError(f"next_observations must have shape ({count}, k, *{shapes[key]}), got {part.shape}")
        check_finite(part, what="next observation")


def _packed_rows(layout: RowFormat, arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """All rows, packed a few megabytes at a time; in a temporary file where they are many."""
    shape = len(next(iter(arrays.values()))), layout.row.itemsize
    if math.prod(shape) <= PACKED_IN_MEMORY:
        rows = np.empty(shape, dtype=np.uint8)
    else:
        with TemporaryFile() as file:
            rows = np.memmap(file, np.uint8, "w+", shape=shape)
    for block in row_blocks(shape, 1):
        layout.pack({key: array[block] for key, array in arrays.items()}, rows[block])
    return rows


def tabulated(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]] | None:
    """The table of distinct rows and the number of each row, decided on all of them.

    Args:
        rows: (n, ...) observations; they may lie on a disk.

    Returns:
        (table, ...) distinct rows and (n,) numbers; None where rows hardly repeat.
    """
    if len(rows) >= MIN_DECIDABLE:
        seen, distinct = _repetition(rows)
        if seen < MIN_REPEATS * distinct:
            return None
    table = ObservationTable()
    ids = table.lookup(rows)
    return table.array(), ids


def equal_by_bytes(rows: NDArray[Any]) -> NDArray[Any]:
    """(n, ...) the same rows, contiguous; equal rows have equal bytes, since adding zero turns -0.0 into 0.0.

    Args:
        rows: (n, ...) of any numeric type.

    Returns:
        (n, ...) rows for :func:`row_hashes`.
    """
    return np.ascontiguousarray(rows + rows.dtype.type(0) if rows.dtype.kind == "f" else rows)


def row_hashes(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """(n,) hashes of contiguous rows by their bytes, in pieces that fit into a processor's cache.

    Args:
        rows: (n, ...) contiguous.

    Returns:
        (n,) numbers of 64 bits.
    """
    content = rows.reshape(len(rows), math.prod(rows.shape[1:])).view(np.uint8)
    width = -(-content.shape[1] // 8)
    factors = _odd_numbers(width)
    hashes = np.empty(len(rows), dtype=np.uint64)
    for block in row_blocks(content.shape, 1, HASHED_BYTES):
        part = content[block]
        if part.shape[1] % 8:
            part = np.pad(part, ((0, 0), (0, -part.shape[1] % 8)))
        words = part.view(np.uint64)
        # Numbers such as 1.0 and 2.0 differ in their highest bits only, which a product would push out.
        mixed = words >> np.uint64(32)
        mixed ^= words
        # Whole numbers do not overflow in a product of matrices: they wrap, as a hash should.
        hashes[block] = mixed @ factors
    return hashes


@lru_cache(maxsize=4)
def _odd_numbers(count: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**64 - 1, count, dtype=np.uint64) | np.uint64(1)


def _repetition(rows: NDArray[Any]) -> tuple[int, int]:
    """How many rows there are and how many distinct ones, among those whose hash falls into one of several buckets.

    All repeats of a row share its hash, so a bucket tells about all the data in little memory, however many there are.
    """
    buckets = np.uint64(1 + len(rows) // HASHES_KEPT)
    kept: list[NDArray[np.uint64]] = []
    for block in row_blocks(rows.shape, rows.itemsize, HASHED_BYTES):
        hashes = row_hashes(equal_by_bytes(rows[block]))
        kept.append(hashes[(hashes >> np.uint64(20)) % buckets == 0])
    chosen = np.concatenate(kept)
    return len(chosen), len(np.unique(chosen))


def _in_time(data: Trajectories, states: slice = slice(None)) -> Any:
    """Observations in order of time, by key where there are several."""
    rows = states if data.ids is None else data.ids[states]
    if isinstance(data.observations, dict):
        return {key: np.asarray(array[rows]) for key, array in data.observations.items()}
    return np.asarray(data.observations[rows])


def _rows_of(array: Any, rows: NDArray[np.int64]) -> Any:
    if array is None:
        return None
    return {key: part[rows] for key, part in array.items()} if isinstance(array, dict) else array[rows]


def _joined(first: Any, second: Any) -> Any:
    if first is None:
        return None
    if isinstance(first, dict):
        return {key: _joined(first[key], second[key]) for key in first}
    if first.shape[1:] != second.shape[1:]:
        raise DataError(f"the two data sets have arrays of different shapes: {first.shape[1:]} and {second.shape[1:]}")
    return np.concatenate([first, second])


def _joined_tables(
    first: Trajectories, second: Trajectories
) -> tuple[NDArray[Any], tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """One table of the observations of both, and the row in it of each row of either."""
    if np.array_equal(first.observations, second.observations):
        same = np.arange(len(first.observations), dtype=np.int32)
        return first.observations, (same, same)
    table = ObservationTable()
    numbers = table.lookup(_joined(first.observations, second.observations))
    split = len(first.observations)
    return table.array(), (numbers[:split], numbers[split:])
