"""The run folder: a representation, its spectrum and pictures, what it was made from, and how."""

import platform
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.data import TransitionCounts
from lapwing.data import audit as audited
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import ARRAY_FILES, Trajectories
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.definitions import one_step, successor
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import world_from_description
from lapwing.errors import ArgumentError, LapwingError, LapwingWarning
from lapwing.evaluation import Score
from lapwing.operators.operator import Operator
from lapwing.plots.figures import SCREEN, What, representation_figure, save_figure
from lapwing.plots.observation_maps import observations_figure
from lapwing.plots.time_series import MOST_STATES, sample_episodes
from lapwing.representation import LaplacianRepresentation
from lapwing.solving import solve
from lapwing.storage.files import write_array, write_csv, write_json
from lapwing.storage.folders import LOCK
from lapwing.storage.models import FORMAT, MANIFEST, NEXT_WEIGHTS, VERSION, WEIGHTS
from lapwing.storage.reading import read_manifest
from lapwing.storage.run_configuration import RUN_FILE, read_configuration
from lapwing.storage.schemas import learning_history

# What a run folder may hold besides the representation itself and run.json.
RUN_FILES = (
    "spectrum.csv", "config.json", "metrics.csv", "audit.json", "scores.json", "provenance.json", "observations.npy",
    *(f"{what}.{kind}" for what in ("curves", "spectrum", "eigenvectors") for kind in ("png", "pdf")), "report.html",
    "drift.png",
)  # fmt: skip
MODEL_FILES = (MANIFEST, WEIGHTS, NEXT_WEIGHTS)
# A folder in it with the representation that the model was compared with.
GROUND_TRUTH = "ground_truth"
# A folder in it with a few episodes of the data, at which components are shown over time.
EPISODES = "episodes"

PACKAGES = ("lapwing", "jax", "numpy", "scipy", "equinox", "optax")

# Per-state lists stay readable JSON; a longer table is summed up by the audit alone.
MAX_VISITS = 20_000
MAX_LENGTHS = 64
LENGTH_BINS = 30
VISIT_CELLS = 40
VISIT_BLOCK = 1 << 19
MAX_OBSERVATIONS = 4_000
MAX_OBSERVATION_BYTES = 8 << 20


def refuse_foreign(out: Path, besides: Collection[str] = ()) -> None:
    """Raise an error, before any work is done, if ``out`` is a file or holds something else than a run.

    Args:
        out: where a run is to be written.
        besides: names that the folder of an interrupted run may hold.
    """
    if out.exists() and not out.is_dir():
        raise ArgumentError(f"{out} is a file; choose a folder")
    present = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if (out / MANIFEST).exists():
        read_manifest(out / MANIFEST, FORMAT, VERSION)
    elif read_configuration(out) is None and present - {LOCK, *besides}:
        raise ArgumentError(f"{out} holds other files and no {MANIFEST}; choose an empty or new folder")


def write_run(
    model: LaplacianRepresentation,
    out: Path,
    *,
    data: Trajectories | TransitionCounts | Operator | None = None,
    audit: dict[str, Any] | None = None,
    truth: LaplacianRepresentation | None = None,
    baseline: LaplacianRepresentation | None = None,
    scores: Mapping[str, Score] | None = None,
    command: Sequence[str] | None = None,
) -> list[Path]:
    """Write a representation and everything that is shown about it.

    Args:
        model: what was solved or learned.
        out: the folder.
        data: what it was made from.
        audit: of the data, from :func:`audit_record`; made here if None. Counts of several parts have none.
        truth: the ground truth it was compared with, kept so that a report need not solve again.
        baseline: the tabular estimate from the same data, from :func:`tabular_baseline`.
        scores: against the ground truth, by ``learned`` and ``baseline``.
        command: the command line as typed.

    Returns:
        The files written, pictures last.
    """
    # A damaged description is better known before anything is written.
    world = world_from_description(model.metadata.get("world"))
    model.save(out)
    if truth is None:
        _remove_model(out / GROUND_TRUTH)
    else:
        truth.save(out / GROUND_TRUTH)
    written = [out / MANIFEST, out / WEIGHTS, write_csv(out / "spectrum.csv", spectrum_rows(model))]
    if audit is None and isinstance(data, Trajectories):
        audit = audit_record(data)
    data = data.sample if isinstance(data, TransitionCounts) else data
    config = model.metadata.get("config")
    records = {
        "config.json": {"preset": model.metadata.get("preset"), **config} if config is not None else None,
        "audit.json": audit,
        "scores.json": _scores_record(model, baseline, scores or {}),
        "provenance.json": _provenance_record(model, command),
    }
    for name, record in records.items():
        if record is not None:
            write_json(out / name, record)
            written.append(out / name)
    observations = _observations_to_keep(model, data)
    if observations is not None:
        write_array(out / "observations.npy", observations)
        written.append(out / "observations.npy")
    _remove_episodes(out / EPISODES)
    kept = sample_episodes(data, states=_states_to_keep(data)) if isinstance(data, Trajectories) else None
    if kept is not None:
        kept.save(out / EPISODES)
    history = model.metadata.get("history")
    if history:
        written.append(write_csv(out / "metrics.csv", learning_history(model.metadata)))
    picture = world is not None and world.field_points(2) is not None
    figures: dict[What, Any] = {"curves": history, "spectrum": model, "eigenvectors": picture}
    for what in (what for what, drawable in figures.items() if drawable):
        figure = representation_figure({out.name: model}, what, style=SCREEN)
        written.append(save_figure(figure, out / f"{what}.png"))
    drawn: Any = observations
    if isinstance(model.encoder, LookupEncoder):
        layout = RowFormat.from_metadata(model.metadata)
        drawn = model.encoder.observations if layout is None else layout.unpack(model.encoder.observations)
    elif observations is None and kept is not None and kept.keys:
        drawn = kept.observations
    if not picture and drawn is not None and model.dim > 1:
        figure = observations_figure(model, drawn, style=SCREEN)
        written.append(save_figure(figure, out / "eigenvectors.png"))
    # Files of an earlier run in this folder describe another model.
    for name in set(RUN_FILES) - {path.name for path in written}:
        (out / name).unlink(missing_ok=True)
    return written


def tabular_baseline(data: Trajectories | Operator, dim: int) -> LaplacianRepresentation | None:
    """The tabular (counting) estimate from data: what learning from the same data is compared with.

    Args:
        data: what was learned from.
        dim: how many components.

    Returns:
        The representation; None where observations do not repeat or counting does not work.
    """
    if not (isinstance(data, Trajectories) and data.has_table):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapwingWarning)
            return solve(data, dim)
    except LapwingError:
        return None


def seed_folders(folder: Path) -> list[Path]:
    """The runs of several seeds that were learned together.

    Args:
        folder: their common folder.

    Returns:
        Folders in the order of their seeds; none of a single run.
    """
    found = [path for path in folder.glob("seed-*") if re.fullmatch(r"seed-\d{1,10}", path.name)]
    return sorted((path for path in found if (path / MANIFEST).is_file()), key=lambda path: int(path.name[5:]))


def sweep(folder: Path) -> None:
    """Remove temporary files of a process that was killed while it wrote a run.

    Args:
        folder: the run folder, which must be locked.
    """
    for place in (folder, *seed_folders(folder)):
        for name in (RUN_FILE, *MODEL_FILES, *RUN_FILES):
            for temporary in (*place.glob(f".{name}.????????"), *place.glob(f"{GROUND_TRUTH}/.{name}.????????")):
                temporary.unlink(missing_ok=True)


def clear_run(folder: Path) -> None:
    """Remove the files of a run, if the folder holds one; anything else in it stays.

    Args:
        folder: a run folder.
    """
    if not (folder / MANIFEST).is_file():
        return
    for name in RUN_FILES:
        (folder / name).unlink(missing_ok=True)
    _remove_model(folder / GROUND_TRUTH)
    _remove_episodes(folder / EPISODES)
    _remove_model(folder)


def _remove_model(folder: Path) -> None:
    if (folder / MANIFEST).is_file() and not folder.is_symlink():
        for name in MODEL_FILES:
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # there is more in it
            folder.rmdir()


def _remove_episodes(folder: Path) -> None:
    if (folder / DATA_MANIFEST).is_file() and not folder.is_symlink():
        for name in (DATA_MANIFEST, *ARRAY_FILES):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # there is more in it
            folder.rmdir()


def spectrum_rows(model: LaplacianRepresentation) -> list[dict[str, Any]]:
    """The spectrum as a table.

    Args:
        model: the representation.

    Returns:
        One row per component: eigenvalues (with error bars where they come from data), residual and verdict.
    """
    certificate = model.certificate()
    columns: dict[str, Any] = {}
    for definition in dict.fromkeys([model.definition, one_step(), successor(0.9)]):
        columns[str(definition)] = model.eigenvalues_in(definition)
        if model.mu_errors is not None:
            columns[f"+- {definition}"] = model.error_bars_in(definition)
    columns["residual"] = certificate.residuals
    rows = [{name: float(column[number]) for name, column in columns.items()} for number in range(model.dim)]
    verdicts = certificate.verdicts
    return [{"component": i + 1, **row, "verdict": verdicts[i]} for i, row in enumerate(rows)]


def audit_record(data: Trajectories) -> dict[str, Any]:
    """The audit of a data set, how often each state was visited, and how long episodes were.

    Args:
        data: the data set.

    Returns:
        JSON types. ``visits`` goes with ``visits_of``: "states" of a grid world, "cells" of a raster over a box's first
        two axes (of shape ``visits_shape``), "rows" of the table of observations; both are None where nothing can be
        counted.
    """
    name, (places, counts) = "lengths", np.unique(data.lengths, return_counts=True)
    if len(places) > MAX_LENGTHS:
        name, (counts, places) = "edges", np.histogram(data.lengths, bins=LENGTH_BINS)
    episode_lengths = {name: places.tolist(), "counts": counts.tolist()}
    return {**audited(data).as_dict(), "episode_lengths": episode_lengths, **_visits(data)}


def _scores_record(
    model: LaplacianRepresentation, baseline: LaplacianRepresentation | None, scores: Mapping[str, Score]
) -> dict[str, Any] | None:
    """Scores by ``learned`` and ``baseline``, and the baseline's eigenvalues in the model's definition."""
    record: dict[str, Any] = {name: found.as_dict() for name, found in scores.items()}
    if baseline is not None:
        values = baseline.eigenvalues_in(model.definition).tolist()
        record["baseline_eigenvalues"] = {"definition": str(model.definition), "values": values}
    return record or None


def _provenance_record(model: LaplacianRepresentation, command: Sequence[str] | None) -> dict[str, Any]:
    """The command as typed, versions, the date, and the model's own seed and time."""
    return {
        "command": None if command is None else list(command),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
        **{name: model.metadata.get(name) for name in ("seconds", "steps", "seed", "preset")},
    }


def _visits(data: Trajectories) -> dict[str, Any]:
    world = world_from_description(data.metadata.get("world"))
    listed = None if world is None else world.table()
    if world is not None and world.field_reach() is not None and data.observations.ndim == 2:
        axes = min(data.observations.shape[1], 2)
        seen = None if data.ids is None else data.visits()
        found = _cell_counts(data.observations[:, :axes], seen)
        shape = [VISIT_CELLS if axes > 1 else 1, VISIT_CELLS]
        return {"visits_of": "cells", "visits_shape": shape, "visits": found.ravel().tolist()}
    if not data.has_table or len(data.observations) > MAX_VISITS:
        return {"visits_of": None, "visits": None}
    visits = data.visits()
    if listed is None:
        return {"visits_of": "rows", "visits": visits.tolist()}
    # The table holds what was seen, in the order it was seen; the world counts its own states.
    lookup = LookupEncoder(np.asarray(data.observations), np.zeros((len(visits), 1)), visits / visits.sum())
    numbers = lookup.numbers_of(listed)
    return {"visits_of": "states", "visits": np.where(numbers >= 0, visits[numbers], 0).tolist()}


def _cell_counts(points: NDArray[Any], seen: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """How many points of the unit box lie in each cell, each counted as often as it was seen; in blocks."""
    total = np.zeros((VISIT_CELLS,) * points.shape[1], dtype=np.int64)
    for begin in range(0, len(points), VISIT_BLOCK):
        block = slice(begin, begin + VISIT_BLOCK)
        rows = np.asarray(points[block], dtype=np.float64)
        weights = None if seen is None else seen[block]
        limits = [(-0.5, 0.5)] * points.shape[1]
        total += np.histogramdd(rows, bins=VISIT_CELLS, range=limits, weights=weights)[0].astype(np.int64)
    return total


def _observations_to_keep(model: LaplacianRepresentation, data: Trajectories | Operator | None) -> NDArray[Any] | None:
    """Observations to show a network on, spread over the data; None where the model or its world has its own."""
    world = world_from_description(model.metadata.get("world"))
    has_own = isinstance(model.encoder, LookupEncoder) or (world is not None and world.field_points(2) is not None)
    # Observations of several keys are shown at the episodes that are kept.
    if data is None or has_own or isinstance(data.observations, dict):
        return None
    observations = data.observations
    wanted = min(len(observations), MAX_OBSERVATIONS, _rows_within_limit(observations))
    rows = np.linspace(0, len(observations) - 1, wanted).astype(np.int64)
    return np.asarray(observations[rows])


def _states_to_keep(data: Trajectories) -> int:
    parts = data.observations.values() if isinstance(data.observations, dict) else [data.observations]
    return min(MOST_STATES, *(_rows_within_limit(part) for part in parts))


def _rows_within_limit(observations: NDArray[Any]) -> int:
    return max(1, MAX_OBSERVATION_BYTES // max(1, observations[:1].nbytes))
