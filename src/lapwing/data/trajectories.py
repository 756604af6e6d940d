"""One container for all experience: episodes with true boundaries, repeated observations stored once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from lapwing.checks import as_path, as_whole, shown
from lapwing.errors import LapwingError
from lapwing.storage.files import write_array, write_json
from lapwing.storage.folders import replaced_directory
from lapwing.storage.reading import read_array, read_manifest
from lapwing.storage.records import Record

FORMAT = "lapwing-trajectories"
VERSION = 1
MANIFEST = "trajectories.json"
MODEL_MANIFEST = "model.json"
ARRAYS = ("observations", "offsets", "terminated", "truncated", "ids")
ARRAY_FILES = tuple(f"{name}.npy" for name in ARRAYS)
CHUNK_ROWS = 1 << 21


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Episodes of observations, laid end to end.

    Episode ``e`` is the states ``offsets[e]`` to ``offsets[e + 1] - 1``; a transition never crosses that boundary.

    Args:
        observations: with ``ids`` the table of distinct observations, else one row per state in order of time.
        offsets: (episodes + 1,) where each episode begins, and the end of the last.
        terminated: (episodes,) whether the environment itself ended the episode.
        truncated: (episodes,) whether it was cut off from outside (time limit, end of collection).
        ids: (states,) row of the table for each state, or None where observations hardly repeat.
        metadata: where the data came from, as JSON types.
    """

    observations: NDArray[Any]
    offsets: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ids: NDArray[np.int32] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse data that is empty, inconsistent or not finite."""
        for name in ARRAYS:
            part = getattr(self, name)
            if not isinstance(part, np.ndarray) and not (name == "ids" and part is None):
                raise LapwingError(f"{name} must be a NumPy array, got {type(part).__name__}; see lw.from_arrays")
            if part is not None and not part.dtype.isnative:
                object.__setattr__(self, name, part.astype(part.dtype.newbyteorder("=")))
        _check_numeric(self.observations)
        _check_boundaries(self)
        check_finite(self.observations)

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
        return tuple(self.observations.shape[1:])

    @property
    def has_table(self) -> bool:
        """Whether observations are a table of distinct ones that states refer to."""
        return self.ids is not None

    def rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of ``observations`` for each state position."""
        return positions if self.ids is None else self.ids[positions].astype(np.int64)

    def episode(self, number: int) -> NDArray[Any]:
        """The observations of one episode, in order of time."""
        whole = as_whole(number)
        if whole is None or not 0 <= whole < self.num_episodes:
            raise LapwingError(f"episodes are numbered 0 to {self.num_episodes - 1}, got {shown(number)}")
        positions = np.arange(self.offsets[whole], self.offsets[whole + 1])
        return np.asarray(self.observations[self.rows(positions)])

    def pair_positions(self, gap: int = 1, chunk: int = CHUNK_ROWS) -> Iterator[NDArray[np.int64]]:
        """Positions of all states that have a state ``gap`` steps later in their own episode, in chunks."""
        if not isinstance(gap, (int, np.integer)) or not 0 <= gap < 1 << 62:
            raise LapwingError(f"a gap between states is a whole number of at least 0, got {shown(gap)}")
        first = 0
        while first < self.num_episodes:
            last = int(np.searchsorted(self.offsets, self.offsets[first] + chunk, side="right")) - 1
            last = min(max(last, first + 1), self.num_episodes)
            bounds = self.offsets[first : last + 1]
            # A single episode may be longer than a chunk, or than memory.
            for begin in range(int(bounds[0]), int(bounds[-1]), chunk):
                end = min(begin + chunk, int(bounds[-1]))
                positions, inside = np.arange(begin, end), np.minimum(np.maximum(bounds, begin), end)
                yield positions[positions + gap < np.repeat(bounds[1:], np.diff(inside))]
            first = last

    def counts(self, gap: int = 1) -> csr_array:
        """(table, table) how often each observation was followed by each other one ``gap`` steps later."""
        if self.ids is None:
            raise LapwingError("counting needs observations that repeat; these hardly do, so there is no table of them")
        size = len(self.observations)
        total = csr_array((size, size), dtype=np.float64)
        for positions in self.pair_positions(gap):
            start, end = self.ids[positions], self.ids[positions + gap]
            total = total + coo_array((np.ones(len(start)), (start, end)), shape=(size, size)).tocsr()
        return total

    def visits(self) -> NDArray[np.int64]:
        """(table,) how often each observation of the table was seen."""
        if self.ids is None:
            raise LapwingError("visits need observations that repeat; these hardly do, so there is no table of them")
        seen = np.zeros(len(self.observations), dtype=np.int64)
        # In blocks, for bincount makes int64 of what it is given.
        for begin in range(0, len(self.ids), CHUNK_ROWS):
            seen += np.bincount(self.ids[begin : begin + CHUNK_ROWS], minlength=len(seen))
        return seen

    def save(self, path: str | Path) -> Path:
        """Write a folder of plain ``.npy`` files and a JSON manifest, all or nothing; no pickle."""
        target = as_path(path, "the folder to save to")
        with replaced_directory(target, MANIFEST, ARRAY_FILES) as folder:
            checksums = {name: write_array(folder / f"{name}.npy", array) for name, array in self._arrays().items()}
            write_manifest(folder, checksums, self.metadata)
        return target

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = False) -> "Trajectories":
        """Read what :meth:`save` wrote; with ``mmap`` the arrays stay on disk (and are not checksummed)."""
        folder = as_path(path, "the folder of trajectories")
        if (folder / MODEL_MANIFEST).is_file() and not (folder / MANIFEST).exists():
            raise LapwingError(f"{folder} holds a representation, not trajectories; read it with lapwing.load")
        manifest = Record(read_manifest(folder / MANIFEST, FORMAT, VERSION), str(folder / MANIFEST))
        metadata = manifest.record("metadata").content if manifest.has("metadata") else {}
        checksums = manifest.record("checksums")
        if {*checksums.content, "ids"} != set(ARRAYS):
            raise LapwingError(f"{folder / MANIFEST} does not list the arrays of a data set; it is damaged")
        arrays = {
            name: read_array(folder / f"{name}.npy", mmap=mmap, checksum=checksums.whole(name))
            for name in sorted(checksums.content)
        }
        try:
            return cls(**arrays, metadata=metadata)
        except LapwingError as error:
            raise LapwingError(f"{folder} holds no sound trajectories: {error}") from error

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {
            "observations": self.observations,
            "offsets": self.offsets,
            "terminated": self.terminated,
            "truncated": self.truncated,
        }
        return arrays if self.ids is None else {**arrays, "ids": self.ids}

    def __repr__(self) -> str:
        """One line: how much there is, and of what."""
        kind = f"{len(self.observations):,} distinct" if self.has_table else "not tabulated"
        return (
            f"Trajectories({self.num_transitions:,} transitions in {self.num_episodes:,} episodes, "
            f"observations {self.observation_shape} {self.observations.dtype}, {kind})"
        )


def write_manifest(folder: Path, checksums: dict[str, int], metadata: dict[str, Any]) -> None:
    """Write the manifest of a data set whose arrays are in ``folder``."""
    content = {"format": FORMAT, "version": VERSION, "checksums": checksums, "metadata": metadata}
    write_json(folder / MANIFEST, content)


def _check_boundaries(data: Trajectories) -> None:
    offsets, ids = data.offsets, data.ids
    if offsets.ndim != 1 or len(offsets) < 2 or not np.issubdtype(offsets.dtype, np.integer):
        raise LapwingError("the data set is empty: it has no episode; collect at least one step")
    if offsets[0] != 0 or (offsets[1:] <= offsets[:-1]).any():
        raise LapwingError("episode offsets must start at 0 and grow; each episode needs at least one state")
    states = int(offsets[-1])
    if states == len(offsets) - 1:
        raise LapwingError("the data set is empty: no episode has a transition; collect at least one step")
    if ids is None and len(data.observations) != states:
        raise LapwingError(f"{states} states need as many observations, got {len(data.observations)}")
    if ids is not None:
        if ids.shape != (states,) or not np.issubdtype(ids.dtype, np.integer):
            raise LapwingError(f"ids must be {states} whole numbers, one per state, got {ids.dtype} {ids.shape}")
        if int(ids.min()) < 0 or int(ids.max()) >= len(data.observations):
            raise LapwingError(f"ids point outside the table of {len(data.observations)} observations")
    for label, flags in (("terminated", data.terminated), ("truncated", data.truncated)):
        if flags.shape != (len(offsets) - 1,) or flags.dtype != np.bool_:
            raise LapwingError(f"{label} must be one boolean per episode ({len(offsets) - 1}), got {flags.shape}")


def _check_numeric(observations: NDArray[Any]) -> None:
    plain = np.issubdtype(observations.dtype, np.number) and not np.iscomplexobj(observations)
    if observations.ndim < 2 or not plain:
        raise LapwingError(
            f"observations must be numbers of shape (n, ...), got {observations.dtype} of shape {observations.shape}"
        )


def check_finite(observations: NDArray[Any], first: int = 0) -> None:
    """Refuse NaN and infinity; ``first`` is the number of the first row, for the message."""
    if not np.issubdtype(observations.dtype, np.inexact):
        return
    step = max(1, CHUNK_ROWS // max(1, int(np.prod(observations.shape[1:]))))
    for begin in range(0, len(observations), step):
        bad = ~np.isfinite(observations[begin : begin + step]).reshape(len(observations[begin : begin + step]), -1)
        if bad.any():
            row = first + begin + int(np.argmax(bad.any(axis=1)))
            raise LapwingError(f"observation {row} holds NaN or infinity; remove or repair it before learning")
