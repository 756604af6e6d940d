"""What the page says about one run, as plain data: tiles, spectrum, audit, provenance, and arrays to draw."""

import shlex
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lapwing.diagnostics.certificate import (
    DEGENERATE,
    LARGEST_ANGLE,
    LARGEST_GRAM_ERROR,
    TOO_FEW_DATA,
    TRUSTED,
    Certificate,
)
from lapwing.diagnostics.problems import Problem
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import World, world_from_description
from lapwing.errors import DataError, LapwingError, LapwingWarning
from lapwing.evaluation import score
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, group_degenerate
from lapwing.operators.lags import LagDistribution, geometric_lags, lags_inside_episodes
from lapwing.plots.fields import SMALLEST_LIMIT
from lapwing.plots.observation_arrays import Observations, array_to_draw, count_of, rows_of, values_at
from lapwing.plots.time_series import (
    MOST_COMPONENTS,
    boundaries,
    describe_sample,
    frames_in_time,
    sample_episodes,
    values_in_time,
)
from lapwing.report.charts import (
    BLUE,
    GREEN,
    ORANGE,
    PINK,
    Series,
    curve_charts,
    lengths_chart,
    spectrum_chart,
    time_chart,
    visits_chart,
)
from lapwing.report.component_cards import Cards, map_cards, observation_cards, png_of
from lapwing.report.explore_arrays import embedding_at, picture_arrays
from lapwing.report.stored_run import StoredRun
from lapwing.solving import solve
from lapwing.storage.schemas import ScoreRecord, is_number

Made = TypeVar("Made")

# More points make the page large and slow to open; it then shows spectrum, curves and certificate alone.
MAX_POINTS = 12_000
# Points times components that are drawn.
MAX_NUMBERS = 100_000
MAX_DRAWN = 60
PICTURED = 12
# States of the largest map that is drawn as an image.
MAX_PICTURED = 1_000_000
# Observations of a longer table that are drawn, spread over all, and frames over time: as many as fit on a phone.
SPREAD, FRAMES = 4_000, 6
# Resolution of the picture of a world whose states are not listed.
CELLS = 40
# float32 has no more.
SIGNIFICANT = 7
# A larger data set is not trusted on the word of a file: it would take memory.
MAX_EPISODES = 10_000_000
MAX_LENGTH = 10_000_000


@dataclass(frozen=True)
class Tile:
    """One number shown large; ``value`` is as in the files, ``text`` as shown."""

    title: str
    value: float | None
    text: str
    hint: str = ""
    name: str = ""


@dataclass(frozen=True)
class Component:
    """One row of the spectrum; None is what is not known.

    Attributes:
        number: from 1.
        companions: numbers of the components whose eigenvalue counts as the same, itself included.
        verdict: of the certificate.
        explanation: what the verdict means here.
        eigenvalue: in the run's definition.
        error: two standard errors of it.
        exact: the eigenvalue of the ground truth.
        baseline: the eigenvalue by counting the same data.
        dual: the objective's own estimate, mapped from the training operator.
        similarity: cosine of the principal angle to the true eigenspace.
        residual: ``|Lu - lambda u|``.
    """

    number: int
    companions: tuple[int, ...]
    verdict: str
    explanation: str
    eigenvalue: float
    error: float | None
    exact: float | None
    baseline: float | None
    dual: float | None
    similarity: float | None
    residual: float | None


@dataclass(frozen=True, eq=False)
class DrawnField:
    """The points at which components are shown, and where each lies in the picture, if there is one.

    Attributes:
        points: (n, ...) observations.
        values: (n, dim) components of the run; NaN where a table does not know the observation.
        world: where there is one.
        cells: (n,) pixel of each point, row by row; None where the world has no picture.
        shape: rows and columns of the picture.
    """

    points: Observations
    values: NDArray[np.float64]
    world: World | None = None
    cells: NDArray[np.int64] | None = None
    shape: tuple[int, int] = (0, 0)

    @property
    def hidden_axes(self) -> bool:
        """Whether the world has more axes than its picture."""
        if self.world is None or self.world.hidden() is not None:
            return False
        return bool(self.world.field_reach(CELLS)) and array_to_draw(self.points).shape[1] > 2

    def place(self, point: int) -> str:
        """Where a point lies, as text."""
        if self.cells is None:
            return f"state {point}"
        row, column = divmod(int(self.cells[point]), self.shape[1])
        return f"row {row}, column {column}"


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The exact components beside a run's.

    Attributes:
        mu: (dim,) one-step eigenvalues.
        values: (n, dim) components at the run's points, rotated to the run's within each cluster of eigenvalues.
        clusters: component numbers from 0 that count as one eigenvalue.
        score: of the run.
    """

    mu: NDArray[np.float64]
    values: NDArray[np.float64]
    clusters: list[range]
    score: ScoreRecord


@dataclass(frozen=True, eq=False)
class RunContent:
    """Everything the page says about one run.

    Attributes:
        drawn: how many components are drawn, and used for distances.
        arrays: what the page's scripts draw from, as JSON types.
        figures: plotly figures by name.
        notes: what is left out or needs an explanation, by section.
        captions: descriptions of the pictures, by source and component.
        problems: why not to trust it, most serious first.
        cards: pictures of components that the page does not draw as maps of its own.
        episodes: which episodes components are shown along over time; empty where there are none.
    """

    run: StoredRun
    components: list[Component]
    tiles: list[Tile]
    drawn: int
    arrays: dict[str, Any]
    figures: dict[str, Any]
    notes: dict[str, list[str]]
    captions: dict[str, list[str]]
    facts: list[tuple[str, str]]
    config: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    command: str | None
    score: ScoreRecord | None
    problems: list[Problem]
    cards: Cards | None
    episodes: str

    @property
    def seconds(self) -> float | None:
        """How long it took to learn."""
        seconds = self.run.model.metadata.get("seconds")
        return float(seconds) if is_number(seconds) else None

    @property
    def has_picture(self) -> bool:
        """Whether components are drawn as maps."""
        return "cells" in self.arrays

    @property
    def has_points(self) -> bool:
        """Whether there are observations to evaluate components at."""
        return "values" in self.arrays

    @property
    def curves(self) -> list[str]:
        """Names of the figures of learning curves."""
        return [name for name, figure in self.figures.items() if "title" in figure]


def content_of(run: StoredRun) -> RunContent:
    """Collect all that a run's files tell.

    Args:
        run: the run.

    Returns:
        What the page shows.
    """
    model, notes = run.model, {name: list[str]() for name in ("eigenvectors", "time", "spectrum")}
    field = _or_note(notes["eigenvectors"], _field_of, run)
    exact = None if field is None else _or_note(notes["eigenvectors"], _ground_truth, run, field)
    duals = _or_note(notes["spectrum"], dual_eigenvalues, run)
    certificate = _or_note([], model.certificate)
    components = _components(run, exact, certificate, duals)
    drawn = 0 if field is None else min(model.dim, MAX_DRAWN, max(3, MAX_NUMBERS // count_of(field.points)))
    if field is not None and field.hidden_axes:
        notes["eigenvectors"].append("Only the first two axes of the world are drawn; the others are held fixed.")
    if 0 < drawn < model.dim:
        note = f"Of {model.dim} components the first {drawn} are drawn, and distances are measured in them."
        notes["eigenvectors"].append(note)
    figures: dict[str, Any] = {"spectrum": _spectrum_chart(run, components), **curve_charts([run])}
    if run.data.episode_lengths and (lengths := lengths_chart(run.data.episode_lengths)):
        figures["lengths"] = lengths
    if run.data.visits_of == "rows" and run.data.visits:
        figures["visits"] = visits_chart(run.data.visits)
    over_time = _or_note(notes["time"], _over_time, run)
    if over_time is not None:
        figures["time"] = over_time[0]
    return RunContent(
        run=run,
        components=components,
        tiles=_tiles(run, exact, certificate, components),
        drawn=drawn,
        arrays=_arrays(run, field, exact, drawn),
        figures=figures,
        notes=notes,
        captions=_captions(run, field, exact, drawn),
        facts=_facts(run),
        config=_pairs(model.metadata.get("config")),
        versions=_pairs(run.provenance.versions),
        command=shlex.join(run.provenance.command) if run.provenance.command else None,
        score=None if exact is None else exact.score,
        problems=model.problems(),
        cards=_or_note(notes["eigenvectors"], _cards, run, field),
        episodes="" if over_time is None else over_time[1],
    )


def _cards(run: StoredRun, field: DrawnField | None) -> Cards | None:
    """Components as images, where the page's scripts do not draw them as maps."""
    components = range(min(run.model.dim, 2), min(run.model.dim, PICTURED) + 1)
    if field is None:
        world = world_from_description(run.model.metadata.get("world"))
        if world is None or not 0 < (world.num_states or 0) <= MAX_PICTURED or world.field_points(2) is None:
            return None
        return map_cards(run.model, world, components)
    if field.cells is not None:
        return None
    known = np.isfinite(field.values).all(axis=1)
    return observation_cards(array_to_draw(field.points)[known], field.values[known], components)


def _over_time(run: StoredRun) -> tuple[dict[str, Any], str] | None:
    """Components along the episodes that a run keeps, and which these are; None where it keeps none."""
    if run.episodes is None:
        return None
    sample = sample_episodes(run.episodes)
    values = values_in_time(run.model, sample)
    positions, frames = frames_in_time(sample, FRAMES)
    numbers = range(min(run.model.dim, 2), min(run.model.dim, MOST_COMPONENTS + 1) + 1)
    lines = [
        (f"u<sub>{number}</sub>, λ = {run.model.eigenvalues[number - 1]:.3g}", _rounded(values[:, number - 1], 4))
        for number in numbers
    ]
    pictures = list(zip(positions.tolist(), map(png_of, frames), strict=True))
    return time_chart(lines, sample.offsets.tolist(), boundaries(sample), pictures), describe_sample(sample)


def rotated_to(learned: NDArray[np.float64], exact: NDArray[np.float64], clusters: list[range]) -> NDArray[np.float64]:
    """Rotate exact components within each cluster to come as near to the learned ones as they can.

    The rotation is orthogonal Procrustes; for a simple eigenvalue it is the sign. No score changes: it makes pictures
    comparable.

    Args:
        learned: (n, d) components; NaN where unknown.
        exact: (n, m) exact ones, m >= d so that the last cluster is whole.
        clusters: which columns of ``exact`` share an eigenvalue.

    Returns:
        (n, d) rotated exact components.
    """
    known = np.nan_to_num(learned)
    rotated = np.empty_like(learned)
    for cluster in clusters:
        columns = slice(cluster.start, min(cluster.stop, learned.shape[1]))
        if columns.start < columns.stop:
            basis = exact[:, cluster.start : cluster.stop]
            left, _, right = np.linalg.svd(basis.T @ known[:, columns], full_matrices=False)
            rotated[:, columns] = basis @ (left @ right)
    return rotated


def dual_eigenvalues(run: StoredRun) -> NDArray[np.float64] | None:
    """One-step eigenvalues ``1 - mu`` from the dual variables, which hold those of the training operator.

    Args:
        run: the run.

    Returns:
        (dim,) eigenvalues; None if the run was not learned.

    Raises:
        DataError: why they are not known.
    """
    readings = run.model.metadata.get("eigenvalue_estimates", run.model.metadata.get("readings"))
    raw = (readings.get("dual") or readings.get("multiplier")) if isinstance(readings, dict) else None
    if run.method != "learned":
        return None
    if not raw:
        raise DataError("there is no dual estimate: the objective has no dual variables")
    try:
        if not isinstance(raw, list) or not all(is_number(value) for value in raw):
            raise DataError("it does not consist of numbers")
        return _training_lags(run).one_minus_mu(np.asarray(raw, dtype=np.float64))[: run.model.dim]
    except (TypeError, ValueError, KeyError) as error:
        raise DataError(f"the dual estimate is left out: the run does not tell how to convert it ({error})") from error


def _training_lags(run: StoredRun) -> LagDistribution:
    """The lags that the training operator was made of."""
    config = run.model.metadata["config"]
    infinite = geometric_lags(config["discounts"])
    if run.model.metadata.get("batches") == "exact":
        return infinite
    record = run.data.episode_lengths
    if record is None or record.lengths is None:
        raise DataError("the episode lengths are not kept")
    if sum(record.counts) > MAX_EPISODES or max(record.lengths, default=0) > MAX_LENGTH:
        raise DataError(f"it has more than {MAX_EPISODES:,} episodes, or of more than {MAX_LENGTH:,} transitions")
    lengths = np.repeat(np.asarray(record.lengths, dtype=np.int64), record.counts)
    return lags_inside_episodes(infinite, lengths[lengths > 0], unbiased=config["batches"] != "sampled")


def _or_note(notes: list[str], make: Callable[..., Made], *arguments: Any) -> Made | None:
    """What a function returns; None, and the reason as a note, where it cannot be had."""
    try:
        return make(*arguments)
    except LapwingError as error:
        text = str(error)
        notes.append(f"{text[:1].upper()}{text[1:]}.")
        return None


def _field_of(run: StoredRun) -> DrawnField:
    """Where components are shown, and their values there."""
    model, world = run.model, world_from_description(run.model.metadata.get("world"))
    if world is not None and (world.num_states or 0) > MAX_POINTS:
        raise DataError(f"{world.num_states:,} states are too many to explore on a page, which takes {MAX_POINTS:,}")
    drawn = None if world is None else world.field_points(CELLS)
    points = _points_of(run) if drawn is None else drawn
    if count_of(points) > MAX_POINTS:
        raise DataError(f"{len(points):,} observations are too many for a page: at most {MAX_POINTS:,} are drawn")
    values = values_at(model, points)
    if np.isnan(values).all() or (np.isnan(values).any() and not isinstance(model.encoder, LookupEncoder)):
        raise DataError(f"the components cannot be shown on {run.name}: they are NaN there")
    if world is None or drawn is None:
        return DrawnField(points, values, world)
    # The picture of the points' own numbers tells where each lies.
    numbers = np.ma.filled(world.field_image(np.arange(len(points), dtype=np.float64)), np.nan)
    (free,) = np.nonzero(~np.isnan(numbers.ravel()))
    return DrawnField(points, values, world, free[np.argsort(numbers.ravel()[free])], numbers.shape)


def _points_of(run: StoredRun) -> Observations:
    """Observations at which components are shown where the world has no map: a table, those kept, or of episodes."""
    points = run.observations_to_draw()
    if points is None:
        raise DataError(
            "the run keeps no observations at which to show components: its environment has no map, and it was "
            "written without its data. Spectrum, curves and certificate need none"
        )
    count = count_of(points)
    return points if count <= MAX_POINTS else rows_of(points, np.linspace(0, count - 1, SPREAD).astype(np.int64))


def _ground_truth(run: StoredRun, field: DrawnField) -> GroundTruth | None:
    """The ground truth for a run that has one."""
    if field.world is None:
        return None
    if run.method == "exact":
        raise DataError("these components are the ground truth itself")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapwingWarning)
            exact = run.ground_truth or solve(field.world, run.model.dim)
            found = run.scores.learned or msgspec.convert(score(run.model, exact).as_dict(), ScoreRecord)
        everywhere = np.asarray(exact.transform_all(field.points), dtype=np.float64)
    except LapwingError as error:
        raise DataError(f"there is no ground truth to compare with: {error}") from error
    clusters = group_degenerate(1.0 - exact.mu, EXACT_TOLERANCE if run.model.exact else DATA_TOLERANCE)
    return GroundTruth(exact.mu[: run.model.dim], rotated_to(field.values, everywhere, clusters), clusters, found)


def _components(
    run: StoredRun, exact: GroundTruth | None, certificate: Certificate | None, duals: NDArray[np.float64] | None
) -> list[Component]:
    model = run.model
    counted = run.scores.baseline_eigenvalues
    columns: dict[str, Any] = {
        "error": None if model.mu_errors is None else 2.0 * model.error_bars_in(model.definition),
        "exact": None if exact is None else model.definition.from_mu(exact.mu),
        "baseline": counted.values if counted and counted.definition == str(model.definition) else None,
        "dual": None if duals is None else model.definition.from_mu(1.0 - duals),
        "similarity": None if exact is None else exact.score.subspace_cosines,
        "residual": None if certificate is None else certificate.residuals,
    }
    clusters = group_degenerate(1.0 - model.mu[: model.dim], model.tolerance) if exact is None else exact.clusters
    rows = []
    for i in range(model.dim):
        cluster = next((cluster for cluster in clusters if i in cluster), (i,))
        companions = tuple(j + 1 for j in cluster if j < model.dim)
        verdict, explanation = _verdict(certificate, i, companions)
        numbers = {name: _entry(column, i) for name, column in columns.items()}
        rows.append(Component(i + 1, companions, verdict, explanation, float(model.eigenvalues[i]), **numbers))
    return rows


def _verdict(certificate: Certificate | None, i: int, companions: tuple[int, ...]) -> tuple[str, str]:
    """The verdict, and what it means for this component."""
    if certificate is None:
        return "not certified", "this representation has no residuals to certify it by"
    verdict = certificate.verdicts[i]
    angle, noise = certificate.angle_bounds[i], certificate.data_angles[i]
    if verdict == TRUSTED:
        turned = f"; noise in the data may rotate it by {noise:.1g}" if noise > 0 else ""
        return verdict, f"within a sine of {angle:.1g} of an eigenvector{turned}"
    if verdict == DEGENERATE:
        others = ", ".join(map(str, companions)) if len(companions) > 1 else "its cluster"
        return verdict, f"its eigenvalue repeats: only the span of {others} is determined, and that is trusted"
    if verdict == TOO_FEW_DATA:
        return verdict, f"noise in the data may rotate it by a sine of {noise:.1g}: collect more data"
    if not certificate.orthonormality_error <= LARGEST_GRAM_ERROR:
        return verdict, f"components are not orthonormal (error {certificate.orthonormality_error:.1g})"
    if not angle <= LARGEST_ANGLE:
        size = f"a sine of {angle:.1g}" if angle < 1 else "any angle"
        return verdict, f"may be off by {size}: train longer"
    return verdict, "out of order: train longer"


def _spectrum_chart(run: StoredRun, components: list[Component]) -> dict[str, Any]:
    def column(name: str) -> list[float | None]:
        return [getattr(row, name) for row in components]

    # The others stand beside the run's own, which are drawn last.
    spectra = [
        Series("ground truth", column("exact"), (), ORANGE, "line-ew", 26),
        Series("baseline (counting)", column("baseline"), (), GREEN, "x-thin", 10, -0.16),
        Series("dual estimate", column("dual"), (), PINK, "triangle-up-open", 10, 0.16),
        Series(run.method, column("eigenvalue"), column("error"), BLUE),
    ]
    known = [one for one in spectra if any(value is not None for value in one.values)]
    return spectrum_chart(known, str(run.model.definition))


def _arrays(run: StoredRun, field: DrawnField | None, exact: GroundTruth | None, drawn: int) -> dict[str, Any]:
    """The numbers from which all pictures of a run are drawn."""
    arrays: dict[str, Any] = {"label": run.label, "name": run.name, "method": run.method}
    if field is None:
        return arrays
    shown = [part[:, :drawn] for part in (field.values, None if exact is None else exact.values) if part is not None]
    arrays |= {
        "count": count_of(field.points),
        "values": [_rounded(column) for column in shown[0].T],
        "exact": None if exact is None else [_rounded(column) for column in shown[1].T],
        "bounds": _rounded(np.max([np.nanmax(np.abs(part), axis=0, initial=SMALLEST_LIMIT) for part in shown], axis=0)),
    }
    psi = embedding_at(run.model, field.points, field.values)[:, : drawn - 1]
    arrays["psi"] = [_rounded(column) for column in psi.T]
    if field.world is None or field.cells is None:
        return arrays
    rows, columns = field.shape
    left, right, bottom, top = field.world.field_extent()
    arrays |= {
        "rows": rows,
        "columns": columns,
        "cells": field.cells.tolist(),
        # A strip of one cell is drawn wide enough to be seen.
        "ratio": abs((right - left) / (top - bottom)) if min(rows, columns) > 1 else 0.5,
        "reach": field.world.field_reach(CELLS),
    }
    sources = dict(zip(("values", "exact"), shown, strict=False))
    arrays |= picture_arrays(field.world, field.cells, field.shape, arrays["reach"], sources, psi)
    visits, shape = run.data.visits, run.data.visits_shape
    if visits and run.data.visits_of in ("states", "cells") and (shape or len(visits) == count_of(field.points)):
        arrays |= {"visits": visits, "visits_shape": shape}
    return arrays


def _tiles(
    run: StoredRun, exact: GroundTruth | None, certificate: Certificate | None, components: list[Component]
) -> list[Tile]:
    tiles = []
    if exact is not None:
        found, counted = exact.score, run.scores.baseline
        hint = f"baseline (counting): {counted.subspace_cosine:.4f}" if counted else ""
        error = found.mean_eigenvalue_error
        tiles += [
            Tile("subspace similarity", found.subspace_cosine, f"{found.subspace_cosine:.4f}", hint, "subspace_cosine"),
            Tile("the paper's cosine", found.cosine, f"{found.cosine:.4f}", "component by component", "cosine"),
            Tile("mean eigenvalue error", error, f"{error:.2%}", f"in {found.definition}", "mean_eigenvalue_error"),
        ]
    if certificate is not None:
        expected = certificate.expected_cosine
        hint = "estimated without a ground truth"
        tiles.append(Tile("expected cosine", expected, f"{expected:.4f}", hint, "expected_cosine"))
    (verdict, count), *others = Counter(row.verdict for row in components).most_common()
    rest = ", ".join(f"{number} {other}" for other, number in others)
    tiles.append(Tile("components", None, f"{count} {verdict}", rest or f"of {len(components)}"))
    seconds, steps = run.model.metadata.get("seconds"), run.model.metadata.get("steps")
    if is_number(seconds):
        hint = f"{steps:,} steps" if type(steps) is int else ""
        tiles.append(Tile("learned in", float(seconds), f"{seconds:.1f} s", hint, "seconds"))
    return tiles


def _captions(run: StoredRun, field: DrawnField | None, exact: GroundTruth | None, drawn: int) -> dict[str, list[str]]:
    """A description of each picture of a component, for those who do not see it."""
    if field is None:
        return {}
    sources = {run.method: field.values} | ({} if exact is None else {"exact": exact.values})
    captions: dict[str, list[str]] = {name: [] for name in sources}
    for name, part in sources.items():
        for number, column in enumerate(part.T[:drawn], start=1):
            ends = {"lowest": int(np.nanargmin(column)), "highest": int(np.nanargmax(column))}
            where = ", ".join(f"{end} {column[point]:.2f} at {field.place(point)}" for end, point in ends.items())
            captions[name].append(f"{name} eigenvector {number} on {run.name}: {where}")
    return captions


def _facts(run: StoredRun) -> list[tuple[str, str]]:
    """How it was made, as (what, how much)."""
    metadata = run.model.metadata
    names = ("method", "objective", "encoder", "batches", "preset", "seed", "steps", "transitions", "episodes")
    chosen = {"date": run.provenance.date} | {name: metadata.get(name) for name in names}
    chosen["seconds"] = f"{metadata['seconds']:.1f}" if is_number(metadata.get("seconds")) else None
    chosen["policy"] = metadata.get("policy") if isinstance(metadata.get("policy"), str) else None
    known = {name: value for name, value in chosen.items() if value is not None}
    return [(name, f"{value:,}" if type(value) is int else str(value)) for name, value in known.items()]


def _pairs(record: Any) -> list[tuple[str, str]]:
    if not isinstance(record, dict):
        return []
    return [(str(name), ", ".join(map(str, v)) if isinstance(v, list) else str(v)) for name, v in record.items()]


def _entry(column: Any, i: int) -> float | None:
    """One number of a column that may be missing or too short."""
    if column is None or i >= len(column) or column[i] is None or not np.isfinite(column[i]):
        return None
    return float(column[i])


def _rounded(values: NDArray[np.float64], digits: int = SIGNIFICANT) -> list[float | None]:
    return [None if not np.isfinite(value) else float(f"{value:.{digits}g}") for value in values]
