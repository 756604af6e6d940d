"""The runs of a study: what each one is, what it gives, and the folder in which finished runs are kept."""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from lapwing.errors import DamagedFileError, DataError, LapwingError
from lapwing.storage import read_array, read_bytes, read_manifest, write_bytes, write_json
from lapwing_paper.study_worlds import StudyWorld

FORMAT = "lapwing-study-run"
VERSION = 2
MANIFEST = "run.json"
DIGEST = "sha256:"

DONE, FAILED, DAMAGED, MISSING = "done", "failed", "damaged", "missing"

# What the numbers may depend on.
LIBRARIES = ("lapwing", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


@dataclass(frozen=True)
class StudyRun:
    """One run: the same task, world, settings and seed are the same run, whichever study contains it.

    Attributes:
        method: its label in tables, e.g. ``ALLO (paper)``; not part of its identity.
        world: the environment; None for tasks without one.
        seed: of everything random in it.
        settings: JSON types that the task reads.
        task: a name in :data:`lapwing_paper.tasks.TASKS`.
    """

    method: str
    world: StudyWorld | None
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    task: str = "learn"

    @property
    def world_label(self) -> str:
        """The world's name in tables."""
        return self.world.label if self.world is not None else "-"

    def specification(self) -> dict[str, Any]:
        """All that a worker needs, as JSON types."""
        world = None if self.world is None else self.world.world.describe()
        return {"task": self.task, "world": world, "seed": self.seed, "settings": dict(self.settings)}

    @property
    def key(self) -> str:
        """The name of its folder: readable, and different for different runs."""
        text = json.dumps(self.specification(), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        parts = [self.task, *([] if self.world is None else [self.world.world.name]), f"seed{self.seed}", digest]
        return "-".join("".join(c if c.isalnum() or c in ".-" else "_" for c in part) for part in parts)

    def __str__(self) -> str:
        """Method, world and seed, for messages."""
        return f"{self.method}, {self.world_label}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a task returns, small enough to send between machines.

    Attributes:
        numbers: final numbers, as JSON types.
        history: one row of numbers per report.
        components: (states, d) the learned components on all states, if the task learns any.
    """

    numbers: dict[str, Any]
    history: list[dict[str, float]] = field(default_factory=list)
    components: NDArray[np.float32] | None = None


def checked(outcome: Any) -> Outcome:
    """An outcome as it will be read from its files: JSON types, rows and arrays of finite numbers; else an error.

    Args:
        outcome: what a task returned.

    Returns:
        The same with plain lists, dictionaries and contiguous arrays.
    """
    if not isinstance(outcome, Outcome):
        raise DataError(f"the run returned {type(outcome).__name__}, not an Outcome")
    try:
        numbers = json.loads(json.dumps(outcome.numbers, allow_nan=False))
        # A report lacks a column where the quantity was not defined.
        rows = [{str(name): float(value) for name, value in row.items()} for row in outcome.history]
        history = [{name: value for name, value in row.items() if np.isfinite(value)} for row in rows]
        components = None if outcome.components is None else np.ascontiguousarray(outcome.components)
        finite = components is None or bool(np.isfinite(components).all())
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"the run returned something that is not a finite number ({error})") from error
    if not finite:
        raise DataError("the run returned components that are not finite")
    return Outcome(numbers, history, components)


class RunRecord(msgspec.Struct):
    """The contents of ``run.json``; ``components`` is the name of an ``.npy`` file and ends with its checksum."""

    status: Literal["done", "failed"]
    run: dict[str, Any]
    versions: dict[str, str]
    date: str
    seconds: float
    error: str = ""
    numbers: dict[str, Any] = {}
    history: list[dict[str, float]] = []
    components: str | None = None


@dataclass(frozen=True)
class Finished:
    """A run, its outcome as read from its files, and the record of when and with what it was made."""

    run: StudyRun
    outcome: Outcome
    record: RunRecord | None = None

    @property
    def numbers(self) -> dict[str, Any]:
        """Final numbers."""
        return self.outcome.numbers


class Entry(NamedTuple):
    """The state of a run on disk: ``error`` is why it failed or what is damaged, ``finished`` is set if it is done."""

    status: str
    error: str = ""
    finished: Finished | None = None


class RunStore:
    """The folder of a study's runs.

    A run's ``run.json`` is written last and atomically, and holds a checksum of itself and of the components: a run
    that was interrupted is not there and is simply repeated, and so is one whose files have changed since.
    """

    def __init__(self, root: Path) -> None:
        """Name the folder; it is made when the first run is written."""
        self.root = root

    def folder(self, run: StudyRun) -> Path:
        """Where a run is kept."""
        return self.root / run.key

    def look(self, run: StudyRun) -> Entry:
        """The state of a run: every file of it is read and compared with its checksum."""
        try:
            if not (self.folder(run) / MANIFEST).is_file():
                return Entry(MISSING)
            record = self._record(run)
            if record.status == FAILED:
                return Entry(FAILED, record.error)
            components = None if record.components is None else self._components(self.folder(run) / record.components)
            return Entry(DONE, "", Finished(run, Outcome(record.numbers, record.history, components), record))
        except (LapwingError, OSError) as error:
            return Entry(DAMAGED, self.without_folder(str(error)))

    def read(self, run: StudyRun) -> Finished:
        """A finished run; an error if it is missing, failed or damaged."""
        entry = self.look(run)
        if entry.finished is None:
            raise DamagedFileError(f"the run in {self.folder(run)} is {entry.status}: {entry.error}")
        return entry.finished

    def results(self, runs: list[StudyRun]) -> "Results":
        """All of the given runs that are finished."""
        return Results([entry.finished for entry in map(self.look, runs) if entry.finished is not None])

    def write(self, run: StudyRun, outcome: Outcome, seconds: float) -> None:
        """Keep a finished run; if that fails, what was there before is still there."""
        folder, outcome = self.folder(run), checked(outcome)
        name = None
        try:
            if outcome.components is not None:
                stream = io.BytesIO()
                np.save(stream, outcome.components, allow_pickle=False)
                # The name contains the checksum, so that old components are not overwritten before the record is.
                name = f"components-{checksum(stream.getvalue())}.npy"
                write_bytes(folder / name, stream.getvalue())
            content = {"numbers": outcome.numbers, "history": outcome.history, "components": name}
            self._write_record(run, DONE, seconds, content)
        finally:
            self._remove_leftovers(run)

    def write_failure(self, run: StudyRun, error: str, seconds: float) -> None:
        """Keep the error of a run that failed."""
        self._write_record(run, FAILED, seconds, {"error": error})
        self._remove_leftovers(run)

    def without_folder(self, message: str) -> str:
        """A message that names files relative to this folder, so that it is the same on every machine."""
        return message.replace(f"{self.root}{os.sep}", "")

    def _write_record(self, run: StudyRun, status: str, seconds: float, content: dict[str, Any]) -> None:
        record = {
            "format": FORMAT,
            "version": VERSION,
            "status": status,
            "run": {**without_layout(run.specification()), "origin": None if run.world is None else run.world.origin},
            "versions": versions(),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": seconds,
            **content,
        }
        write_json(self.folder(run) / MANIFEST, {**record, "checksum": record_checksum(record)})

    def _record(self, run: StudyRun) -> RunRecord:
        path = self.folder(run) / MANIFEST
        content = read_manifest(path, FORMAT, VERSION)
        if content.pop("checksum", None) != record_checksum(content):
            raise DamagedFileError(f"{path} is damaged: it was changed after it was written")
        try:
            record = msgspec.convert(content, RunRecord)
        except msgspec.ValidationError as error:
            raise DamagedFileError(f"{path} is damaged: {error}") from error
        specification = json.loads(json.dumps(without_layout(run.specification())))
        if without_layout({name: record.run.get(name) for name in specification}) != specification:
            raise DamagedFileError(f"{path} is damaged: it describes another run")
        if record.components is not None and Path(record.components).name != record.components:
            raise DamagedFileError(f"{path} is damaged: it names a file outside its folder")
        return record

    def _components(self, path: Path) -> NDArray[np.float32]:
        if path.name != f"components-{checksum(read_bytes(path))}.npy":
            raise DamagedFileError(f"{path} is damaged: its checksum is not that in its name")
        return read_array(path)

    def _remove_leftovers(self, run: StudyRun) -> None:
        """Remove the temporary files of a killed process, and components that the record does not name."""
        folder, kept = self.folder(run), None
        with suppress(LapwingError, OSError):
            kept = self._record(run).components
        for path in folder.glob("*"):
            if path.name.startswith((f".{MANIFEST}.", ".components-", "components-")) and path.name != kept:
                path.unlink(missing_ok=True)
        with suppress(OSError):  # unless it is empty, because nothing could be written
            folder.rmdir()


class Results:
    """The finished runs of a study, selected by world and method, in the order of the plan."""

    def __init__(self, finished: list[Finished]) -> None:
        """Keep them."""
        self.finished = finished

    def select(self, world: str | None = None, method: str | None = None) -> list[Finished]:
        """Those of a world and of a method, all seeds."""
        return [
            one
            for one in self.finished
            if (world is None or one.run.world_label == world) and (method is None or one.run.method == method)
        ]

    def first_components(self, world: str, method: str) -> Finished | None:
        """The first of them that has components; runs whose network collapsed have none."""
        return next((one for one in self.select(world, method) if one.outcome.components is not None), None)

    def values(self, name: str, world: str | None = None, method: str | None = None) -> NDArray[np.float64]:
        """One final number of each of them that has it, (runs,) or (runs, d); None inside a list is NaN."""
        rows = [one.numbers.get(name) for one in self.select(world, method)]
        return np.array([row for row in rows if row is not None], dtype=np.float64)

    def curves(self, name: str, world: str, method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(points,) steps and (runs, points) values of a column of the histories, up to the end of the shortest."""
        histories = [one.outcome.history for one in self.select(world, method) if one.outcome.history]
        if not histories:
            return np.zeros(0), np.zeros((0, 0))
        points = min(len(history) for history in histories)
        steps = np.array([row["step"] for row in histories[0][:points]])
        return steps, np.array([[row.get(name, np.nan) for row in history[:points]] for history in histories])


def without_layout(specification: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run's specification: of a layout only its digest, because it may not be ours to publish.

    Args:
        specification: of a run, as a worker needs it or as it was kept.

    Returns:
        The same with ``sha256:`` and 64 digits in the place of the layout's text.
    """
    world = specification.get("world")
    if not isinstance(world, dict) or not isinstance(text := world.get("layout"), str) or text.startswith(DIGEST):
        return specification
    digest = DIGEST + hashlib.sha256(text.encode()).hexdigest()
    return {**specification, "world": {**world, "layout": digest}}


def versions() -> dict[str, str]:
    """What made the numbers: Python, the libraries and the kind of machine.

    Returns:
        Versions by name.
    """
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), **found, "machine": platform.machine()}


def checksum(content: bytes) -> str:
    """The checksum of a file.

    Args:
        content: of the file.

    Returns:
        16 hexadecimal digits.
    """
    return hashlib.sha256(content).hexdigest()[:16]


def record_checksum(record: dict[str, Any]) -> str:
    """Checksum of the content of a record, independent of its layout.

    Args:
        record: the content of ``run.json`` without its checksum.

    Returns:
        16 hexadecimal digits.
    """
    return checksum(json.dumps(record, sort_keys=True).encode())
