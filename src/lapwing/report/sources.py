"""What a run directory holds, read back; what is missing is None, what is damaged is an error that names the file."""

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lapwing.errors import LapwingError
from lapwing.files import MAX_MANIFEST_BYTES, read_array
from lapwing.representation import LaplacianRepresentation, load


@dataclass(frozen=True, eq=False)
class Run:
    """One run, from its files alone.

    Attributes:
        label: what to call it among others: the name of its folder.
        model: the representation.
        history: rows of the learning curves, none if it was not learned step by step.
        audit: of the data it was made from.
        scores: against a truth, and the counting estimate.
        made: command, versions, date.
        observations: to show a network on, where neither the model nor its world has any.
    """

    label: str
    model: LaplacianRepresentation
    history: list[dict[str, Any]]
    audit: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None
    made: dict[str, Any] | None = None
    observations: NDArray[Any] | None = None

    @property
    def name(self) -> str:
        """The world's name, or the folder's where there is no world with one."""
        world = self.model.metadata.get("world")
        return str(world["name"]) if isinstance(world, dict) and world.get("name") else self.label

    @property
    def method(self) -> str:
        """In one word how it was made: ``learned``, ``exact`` or ``counted``."""
        if self.model.metadata.get("method") == "learn":
            return "learned"
        return "exact" if self.model.exact else "counted"


def read_run(folder: Path) -> Run:
    """Read a run directory that ``write_run`` wrote, or any folder of a saved representation."""
    model = load(folder)
    array = folder / "observations.npy"
    return Run(
        label=folder.resolve().name,
        model=model,
        history=_history(model, folder / "metrics.csv"),
        audit=_record(folder / "audit.json"),
        scores=_record(folder / "scores.json"),
        made=_record(folder / "made.json"),
        observations=read_array(array) if array.is_file() else None,
    )


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Several runs, with labels that tell them apart."""
    if not folders:
        raise LapwingError("a report needs at least one run; name the folder that lapwing learn or solve wrote")
    runs = [read_run(Path(folder)) for folder in folders]
    labels = [run.label for run in runs]
    if len(set(labels)) == len(labels):
        return runs
    parents = [f"{Path(folder).resolve().parent.name}/{run.label}" for folder, run in zip(folders, runs, strict=True)]
    if len(set(parents)) < len(parents):
        parents = [f"{label} ({number})" for number, label in enumerate(parents, start=1)]
    return [replace(run, label=label) for run, label in zip(runs, parents, strict=True)]


def _record(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise LapwingError(f"{path} is larger than any file of this package; it is not one of ours")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LapwingError(f"{path} is not readable JSON ({error}); the file is damaged") from error
    if not isinstance(content, dict):
        raise LapwingError(f"{path} holds no record but {type(content).__name__}; the file is damaged")
    return content


def _history(model: LaplacianRepresentation, path: Path) -> list[dict[str, Any]]:
    """Rows of numbers by step: the model's own, or those of the table beside it."""
    own = model.metadata.get("history")
    if isinstance(own, list) and own:
        return [row for row in own if isinstance(row, dict)]
    if not path.is_file():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            return [{name: float(text) for name, text in row.items()} for row in csv.DictReader(stream)]
    except (ValueError, TypeError, OSError) as error:
        raise LapwingError(f"{path} is not a table of numbers ({error}); the file is damaged") from error
