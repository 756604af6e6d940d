"""Where runs are kept: one folder each, complete or not there; tables and figures are rebuilt from these alone."""

import csv
import importlib.metadata
import json
import math
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.errors import LapwingError
from lapwing.files import read_array, read_manifest, replaced_file, write_csv, write_json
from lapwing.studies.runs import Finished, Outcome, Results, Row, Run

FORMAT = "lapwing-study-run"
VERSION = 1
MANIFEST = "run.json"
METRICS = "metrics.csv"

DONE, FAILED, MISSING = "done", "failed", "missing"

# What the numbers may depend on.
LIBRARIES = ("lapwing", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy")


class RunStore:
    """The folder of a study's runs.

    A run's ``run.json`` is written last, so a run that was interrupted is not there and is simply made again.
    """

    def __init__(self, root: Path) -> None:
        """Name the folder; it is made when the first run is written."""
        self.root = root

    def folder(self, run: Run) -> Path:
        """Where a run is kept."""
        return self.root / run.key

    def status(self, run: Run) -> str:
        """``done``, ``failed`` or ``missing``."""
        path = self.folder(run) / MANIFEST
        return str(self._manifest(run).get("status")) if path.is_file() else MISSING

    def write(self, run: Run, outcome: Outcome, seconds: float) -> None:
        """Keep a finished run: arrays and metrics first, the manifest that makes them valid last."""
        folder = self.folder(run)
        content = {"numbers": outcome.numbers, "arrays": sorted(outcome.arrays), "seconds": seconds}
        try:
            json.dumps(content, allow_nan=False)
        except ValueError as error:
            raise LapwingError(f"the run gave numbers that are not finite ({error})") from error
        # What was there is no longer valid once its parts are replaced.
        (folder / MANIFEST).unlink(missing_ok=True)
        for name, array in outcome.arrays.items():
            with replaced_file(folder / f"{name}.npy") as temporary, temporary.open("wb") as stream:
                np.save(stream, np.ascontiguousarray(array), allow_pickle=False)
        if outcome.history:
            write_csv(folder / METRICS, outcome.history)
        write_json(folder / MANIFEST, {**_head(run, DONE), **content, "history": bool(outcome.history)})

    def write_failure(self, run: Run, error: str, seconds: float) -> None:
        """Keep the error of a run that failed."""
        write_json(self.folder(run) / MANIFEST, {**_head(run, FAILED), "error": error, "seconds": seconds})

    def error(self, run: Run) -> str:
        """Why a failed run failed."""
        return str(self._manifest(run).get("error", "unknown"))

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
        """A finished run."""
        manifest, folder = self._manifest(run), self.folder(run)
        if manifest.get("status") != DONE:
            raise LapwingError(f"the run in {folder} did not finish: {manifest.get('error', 'unknown')}")
        try:
            arrays = {str(name): read_array(folder / f"{Path(name).name}.npy") for name in manifest["arrays"]}
            history = _read_rows(folder / METRICS) if manifest["history"] else []
            if manifest["history"] and not history:
                raise ValueError(f"{METRICS} is empty")
            return Finished(run, Outcome(dict(manifest["numbers"]), history, arrays))
        except (KeyError, TypeError, ValueError, csv.Error) as error:
            if isinstance(error, LapwingError):
                raise
            raise LapwingError(f"{folder} is damaged ({error}); delete it, and the run is made again") from error

    def results(self, runs: list[Run]) -> Results:
        """All of the given runs that are finished."""
        return Results([self.read(run) for run in runs if self.status(run) == DONE])

    def _manifest(self, run: Run) -> dict[str, Any]:
        return read_manifest(self.folder(run) / MANIFEST, FORMAT, VERSION)


def versions() -> dict[str, str]:
    """What made the numbers: Python and the libraries."""
    found = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {"python": platform.python_version(), **found, "machine": platform.machine()}


def _head(run: Run, status: str) -> dict[str, Any]:
    order = {**run.order(), "origin": None if run.place is None else run.place.origin}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"format": FORMAT, "version": VERSION, "status": status, "run": order, "versions": versions(), "date": now}


def _read_rows(path: Path) -> list[Row]:
    try:
        with path.open(newline="") as stream:
            return [
                {name: math.nan if value == "" else float(value) for name, value in row.items()}
                for row in csv.DictReader(stream)
            ]
    except OSError as error:
        raise LapwingError(
            f"cannot read {path}: {error.strerror}; delete its folder, and the run is made again"
        ) from None
