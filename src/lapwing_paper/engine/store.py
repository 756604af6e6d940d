"""Where runs are kept: one folder each, complete or not there; tables and figures are rebuilt from these alone."""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import LapwingError
from lapwing.storage.files import csv_text, replaced_file, write_json
from lapwing.storage.reading import read_array, read_bytes, read_manifest, read_rows
from lapwing_paper.engine.runs import Finished, Outcome, Results, Run, checked

FORMAT = "lapwing-study-run"
VERSION = 1
MANIFEST = "run.json"
METRICS = "metrics.csv"

DONE, FAILED, DAMAGED, MISSING = "done", "failed", "damaged", "missing"

# What the numbers may depend on.
LIBRARIES = ("lapwing", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


class Entry(NamedTuple):
    """What is there of a run: ``error`` is why it failed or what is damaged, ``finished`` is for runs that are done."""

    status: str
    error: str = ""
    finished: Finished | None = None


class RunStore:
    """The folder of a study's runs.

    A run's ``run.json`` takes its name last and holds checksums of all the rest: a run that was interrupted is not
    there and is simply made again, and so is one whose files have changed since.
    """

    def __init__(self, root: Path) -> None:
        """Name the folder; it is made when the first run is written."""
        self.root = root

    def folder(self, run: Run) -> Path:
        """Where a run is kept."""
        return self.root / run.key

    def look(self, run: Run) -> Entry:
        """What is there of a run, every file of it read and compared with its checksum."""
        try:
            if not (self.folder(run) / MANIFEST).is_file():
                return Entry(MISSING)
            manifest = self._manifest(run)
            if manifest.get("status") == FAILED:
                return Entry(FAILED, str(manifest.get("error", "unknown")))
            return Entry(DONE, finished=self.read(run))
        except (LapwingError, OSError) as error:
            return Entry(DAMAGED, self.without_folder(str(error)))

    def status(self, run: Run) -> str:
        """``done``, ``failed``, ``damaged`` or ``missing``."""
        return self.look(run).status

    def write(self, run: Run, outcome: Outcome, seconds: float) -> None:
        """Keep a finished run; if that fails, what was there before is still there."""
        folder, outcome = self.folder(run), checked(outcome)
        files = {f"{name}.npy": _array_bytes(array) for name, array in outcome.arrays.items()}
        if outcome.history:
            files[METRICS] = csv_text(outcome.history).encode()
        content = {
            **_head(run, DONE),
            "numbers": outcome.numbers,
            "arrays": sorted(outcome.arrays),
            "seconds": seconds,
            "history": bool(outcome.history),
            "checksums": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        }
        manifest = json.dumps({**content, "digest": _digest(content)}, indent=2, allow_nan=False) + "\n"
        try:
            self._sweep(folder)
            with ExitStack() as stack:
                # What is begun first takes its name last.
                for name, data in {MANIFEST: manifest.encode(), **files}.items():
                    _write_through(stack.enter_context(replaced_file(folder / name)), data)
                # All of it is on the disk: from here on only names change, and the old parts are not the new ones'.
                (folder / MANIFEST).unlink(missing_ok=True)
        finally:
            with suppress(OSError):  # unless it is empty, because nothing could be written
                folder.rmdir()

    def write_failure(self, run: Run, error: str, seconds: float) -> None:
        """Keep the error of a run that failed."""
        content = {**_head(run, FAILED), "error": error, "seconds": seconds}
        write_json(self.folder(run) / MANIFEST, {**content, "digest": _digest(content)})

    def seconds(self, run: Run) -> float:
        """How long a run took."""
        return float(self._manifest(run).get("seconds", 0.0))

    def date(self, run: Run) -> str:
        """When a run ended, as ISO text."""
        return str(self._manifest(run).get("date", ""))

    def versions(self, run: Run) -> dict[str, str]:
        """What a run was made with."""
        return dict(self._manifest(run).get("versions", {}))

    def read(self, run: Run) -> Finished:
        """A finished run, compared with its checksums."""
        manifest, folder = self._manifest(run), self.folder(run)
        if manifest.get("status") != DONE:
            raise LapwingError(f"the run in {folder} did not finish: {manifest.get('error', 'unknown')}")
        try:
            for name, checksum in dict(manifest.get("checksums", {})).items():
                _compare(folder / Path(name).name, checksum)
            arrays = {str(name): read_array(folder / f"{Path(name).name}.npy") for name in manifest["arrays"]}
            history = read_rows(folder / METRICS) if manifest["history"] else []
            if manifest["history"] and not history:
                raise ValueError(f"{METRICS} is empty")
            # Whoever writes about the run reads these later on.
            float(manifest["seconds"]), str(manifest["date"]), dict(manifest["versions"])
            return Finished(run, checked(Outcome(dict(manifest["numbers"]), history, arrays)))
        except (KeyError, TypeError, ValueError, OSError) as error:
            if isinstance(error, LapwingError) and str(folder) in str(error):
                raise
            raise LapwingError(f"{folder} is damaged ({error}); delete it, and the run is made again") from error

    def results(self, runs: list[Run]) -> Results:
        """All of the given runs that are finished."""
        return Results([entry.finished for entry in map(self.look, runs) if entry.finished is not None])

    def without_folder(self, words: str) -> str:
        """Words that name files by where they are in this folder: where that is differs between machines."""
        return words.replace(f"{self.root}{os.sep}", "")

    def _manifest(self, run: Run) -> dict[str, Any]:
        path = self.folder(run) / MANIFEST
        manifest = read_manifest(path, FORMAT, VERSION)
        told = manifest.get("run")
        # Runs written before there were digests have none, and no checksums either.
        digest = manifest.pop("digest", None)
        known = digest is not None or "checksums" in manifest
        if known and digest != _digest(manifest):
            raise LapwingError(f"{path} is damaged: it was changed after it was written; the run must be made again")
        order = json.loads(json.dumps(run.order()))
        if not isinstance(told, dict) or {name: told.get(name) for name in order} != order:
            raise LapwingError(f"{path} is damaged: it tells of another run; the run must be made again")
        return manifest

    def _sweep(self, folder: Path) -> None:
        """Remove what a process that was killed in the middle of writing left here."""
        for name in (MANIFEST, METRICS, "*.npy"):
            for temporary in folder.glob(f".{name}.*"):
                temporary.unlink(missing_ok=True)


def versions() -> dict[str, str]:
    """What made the numbers: Python and the libraries."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), **found, "machine": platform.machine()}


def _head(run: Run, status: str) -> dict[str, Any]:
    order = {**run.order(), "origin": None if run.place is None else run.place.origin}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "version": VERSION, "status": status, "run": order, "versions": versions(), "date": now}


def _digest(manifest: dict[str, Any]) -> str:
    """Checksum of what a manifest says, however it is laid out."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _array_bytes(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _write_through(path: Path, content: bytes) -> None:
    """Write to the disk itself: one that is full says so here, and not when the file gets its name."""
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _compare(path: Path, checksum: object) -> None:
    try:
        found = hashlib.sha256(read_bytes(path)).hexdigest()
    except LapwingError as error:
        raise LapwingError(f"{error}; the run must be made again") from error
    if found != checksum:
        raise LapwingError(f"{path} is damaged: its checksum is not that of {MANIFEST}; the run must be made again")
