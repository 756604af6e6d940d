"""What a run folder holds, read and checked: a missing file is None, a damaged one is an error that names it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from lapwing.data import Audit
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.data.trajectories import Trajectories
from lapwing.encoders.lookup import LookupEncoder
from lapwing.errors import ArgumentError, DamagedFileError
from lapwing.plots.observation_arrays import Observations
from lapwing.plots.time_series import sample_episodes
from lapwing.representation import LaplacianRepresentation, load
from lapwing.storage.reading import convert, read_array, read_record, read_rows
from lapwing.storage.run_configuration import EXPERIENCE
from lapwing.storage.schemas import DataRecord, Provenance, ScoresRecord, learning_history, world_name

# A run keeps at most 8 MiB of observations.
MAX_OBSERVATION_BYTES = 64 << 20

# Keys of version 0.1.
OLD_NAMES = {
    "counting": "baseline",
    "counting_eigenvalues": "baseline_eigenvalues",
    "mean_gap": "mean_lag",
    "mean_gap_untruncated": "mean_lag_untruncated",
}

Content = TypeVar("Content")


@dataclass(frozen=True, eq=False)
class StoredRun:
    """One run, from its files alone.

    Attributes:
        label: its name among others: that of its folder.
        model: the representation.
        history: rows of the learning curves; empty if it was not learned step by step.
        audit: of the data it was made from, if any.
        data: visits and episode lengths of those data.
        scores: against the ground truth, and the baseline's eigenvalues.
        provenance: command, versions, date.
        ground_truth: what it was compared with, if that was stored.
        observations: at which to show a network that has no table and no world with a picture.
        episodes: a few episodes of the data, or all that the run collected, on disk; None if it keeps none.
    """

    label: str
    model: LaplacianRepresentation
    history: list[dict[str, Any]]
    audit: Audit | None
    data: DataRecord
    scores: ScoresRecord
    provenance: Provenance
    ground_truth: LaplacianRepresentation | None = None
    observations: NDArray[Any] | None = None
    episodes: Trajectories | None = None

    @property
    def name(self) -> str:
        """The world's name, or the folder's where the world has none."""
        return world_name(self.model.metadata, self.label)

    @property
    def method(self) -> str:
        """How it was made: ``learned``, ``exact`` or ``counted``."""
        if self.model.metadata.get("method") == "learn":
            return "learned"
        return "exact" if self.model.exact else "counted"

    def observations_to_draw(self) -> Observations | None:
        """Observations at which components are shown where the world has no map.

        Returns:
            Those of a table, those kept for it, or those of the episodes that are kept; None if there are none.
        """
        if isinstance(self.model.encoder, LookupEncoder):
            return self.model.encoder.observations
        if self.observations is not None:
            return self.observations
        return None if self.episodes is None else sample_episodes(self.episodes).observations


def read_run(folder: Path, model: LaplacianRepresentation | None = None) -> StoredRun:
    """Read a run folder, or any folder of a saved representation.

    Args:
        folder: what ``lapwing learn``, ``lapwing solve`` or ``model.save`` wrote.
        model: the representation in it, if it is in memory; it is loaded if None.

    Returns:
        The run.

    Raises:
        DamagedFileError: if a file in it cannot be understood.
    """
    model = load(folder) if model is None else model
    observations = folder / "observations.npy"
    provenance = "provenance.json" if (folder / "provenance.json").exists() else "made.json"
    audit, data = _read_audit(folder / "audit.json")
    rows = folder / "metrics.csv"
    return StoredRun(
        label=folder.resolve().name,
        model=model,
        history=learning_history(model.metadata) or (read_rows(rows) if rows.exists() else []),
        audit=audit,
        data=data,
        scores=_read(folder / "scores.json", ScoresRecord) or ScoresRecord(),
        provenance=_read(folder / provenance, Provenance) or Provenance(),
        ground_truth=load(folder / "ground_truth") if (folder / "ground_truth").is_dir() else None,
        observations=_read_observations(observations) if observations.exists() else None,
        episodes=_read_episodes(folder),
    )


def read_runs(folders: Sequence[Path], models: Sequence[LaplacianRepresentation] | None = None) -> list[StoredRun]:
    """Read several runs and give them different labels.

    Args:
        folders: one run folder each.
        models: the representations in them, if they are in memory.

    Returns:
        The runs, in that order.
    """
    if not folders:
        raise ArgumentError("a report needs at least one run; name the folder that lapwing learn or solve wrote")
    given = [None] * len(folders) if models is None else models
    runs = [read_run(Path(folder), model) for folder, model in zip(folders, given, strict=True)]
    labels = [run.label for run in runs]
    if len(set(labels)) < len(labels):
        labels = [
            f"{Path(folder).resolve().parent.name}/{label}" for folder, label in zip(folders, labels, strict=True)
        ]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({number})" for number, label in enumerate(labels, start=1)]
    return [replace(run, label=label) for run, label in zip(runs, labels, strict=True)]


def _read(path: Path, kind: type[Content]) -> Content | None:
    if not path.exists():
        return None
    content = {OLD_NAMES.get(name, name): value for name, value in read_record(path).items()}
    return convert(content, kind, path)


def _read_audit(path: Path) -> tuple[Audit | None, DataRecord]:
    audit, data = _read(path, Audit), _read(path, DataRecord) or DataRecord()
    lengths = data.episode_lengths
    try:
        if audit is not None:
            audit.rows()  # fails where some of the facts about states are missing
            if min(audit.transitions, audit.episodes, audit.shortest, audit.longest) < 0:
                raise ValueError("negative numbers")
        if data.visits_of and (not data.visits or prod(data.visits_shape or [len(data.visits)]) != len(data.visits)):
            raise ValueError("visits of another number of states")
        if lengths is not None:
            places = (lengths.edges or [])[1:] if lengths.lengths is None else lengths.lengths
            if len(places) != len(lengths.counts):
                raise ValueError("as many episode lengths as counts are needed")
    except (TypeError, ValueError) as error:
        raise DamagedFileError(f"{path} does not fit together: {error}; the file is damaged") from error
    return audit, data


def _read_episodes(folder: Path) -> Trajectories | None:
    """The episodes that are kept to be drawn, or what a run of before they were kept had collected."""
    if (folder / "episodes" / DATA_MANIFEST).exists():
        return Trajectories.load(folder / "episodes")
    collected = folder / EXPERIENCE
    return Trajectories.load(collected, mmap=True) if (collected / DATA_MANIFEST).exists() else None


def _read_observations(path: Path) -> NDArray[Any]:
    found = read_array(path, limit=MAX_OBSERVATION_BYTES)
    if found.ndim < 2 or not len(found):
        raise DamagedFileError(f"{path} holds no observations: its shape is {found.shape}; the file is damaged")
    return found
