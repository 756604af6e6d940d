"""What a run directory holds, read back; what is missing is None, what is damaged is an error that names the file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from lapwing.errors import LapwingError
from lapwing.report.records import check_audit, check_made, check_scores
from lapwing.representation import LaplacianRepresentation, load
from lapwing.storage.reading import read_array, read_record, read_rows
from lapwing.storage.records import Record, learning_history, world_name

# A run keeps at most 8 MiB of them.
MAX_OBSERVATION_BYTES = 64 << 20


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
        ground_truth: what it was compared with, so that nothing is solved again.
        observations: to show a network on, where neither the model nor its world has any.
    """

    label: str
    model: LaplacianRepresentation
    history: list[dict[str, Any]]
    audit: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None
    made: dict[str, Any] | None = None
    ground_truth: LaplacianRepresentation | None = None
    observations: NDArray[Any] | None = None

    @property
    def name(self) -> str:
        """The world's name, or the folder's where there is no world with one."""
        return world_name(self.model.metadata, self.label)

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
        audit=_record(folder / "audit.json", check_audit),
        scores=_record(folder / "scores.json", check_scores),
        made=_record(folder / "provenance.json", check_made),
        ground_truth=load(folder / "ground_truth") if (folder / "ground_truth").is_dir() else None,
        observations=_observations(array) if array.exists() else None,
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


def _observations(path: Path) -> NDArray[Any]:
    found = read_array(path, limit=MAX_OBSERVATION_BYTES)
    if found.ndim < 2 or not len(found):
        raise LapwingError(f"{path} holds no observations: its shape is {found.shape}; the file is damaged")
    return found


def _record(path: Path, check: Callable[[Record], None]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    content = read_record(path)
    check(Record(content, str(path)))
    return content


def _history(model: LaplacianRepresentation, path: Path) -> list[dict[str, Any]]:
    """Rows of numbers by step: the model's own, or those of the table beside it."""
    return learning_history(model.metadata) or (read_rows(path) if path.exists() else [])
