"""What is on the page about one run, as plain data: tiles, spectrum, audit, how it was made, and arrays to draw."""

import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.data.audit import Audit
from lapwing.diagnostics.problems import Problem
from lapwing.errors import LapwingError
from lapwing.report.charts import curve_figures, lengths_figure, spectrum_figure, visits_figure
from lapwing.report.places import Places, places_of, values_at
from lapwing.report.records import audit_from
from lapwing.report.sources import Run
from lapwing.report.spectrum import Component, components_of
from lapwing.report.truth import Truth, truth_of
from lapwing.storage.records import Record, is_number

# States times components that are drawn; more would make the page large.
MAX_NUMBERS = 100_000
MAX_DRAWN = 60
# Enough to tell which of two neighbouring states lies higher, for greedy arrows; float32 has no more.
SIGNIFICANT = 7
FLOOR = 2.0


@dataclass(frozen=True)
class Tile:
    """One number worth showing large; ``value`` is as in the files, ``text`` as shown."""

    title: str
    value: float | None
    text: str
    hint: str = ""
    name: str = ""


@dataclass(frozen=True, eq=False)
class RunContent:
    """Everything the page says about one run.

    Attributes:
        drawn: how many components are drawn, and used for distances.
        arrays: what page.js draws from, as JSON types.
        figures: plotly figures of numbers, by name.
        notes: what is left out or needs a word, by section.
        problems: why not to trust it, most serious first.
    """

    run: Run
    components: list[Component]
    tiles: list[Tile]
    drawn: int
    arrays: dict[str, Any]
    figures: dict[str, Any]
    notes: dict[str, list[str]]
    captions: dict[str, list[str]]
    audit: Audit | None
    facts: list[tuple[str, str]]
    config: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    command: str | None
    score: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def has_picture(self) -> bool:
        """Whether the world can be drawn."""
        return self.arrays.get("kind") in ("grid", "box")

    @property
    def seconds(self) -> float | None:
        """How long it took to learn."""
        seconds = self.run.model.metadata.get("seconds")
        return float(seconds) if is_number(seconds) else None

    @property
    def has_places(self) -> bool:
        """Whether there is anything to evaluate components on."""
        return bool(self.arrays.get("values"))

    @property
    def curves(self) -> list[str]:
        """Names of the figures of learning curves."""
        return [name for name in self.figures if name not in ("spectrum", "visits", "lengths")]


def content_of(run: Run) -> RunContent:
    """Put together all that a run's files tell."""
    places, place_note = places_of(run)
    values = None
    if places is not None:
        try:
            values = values_at(run.model, places.points)
        except LapwingError as error:
            places, place_note = None, f"The components cannot be shown on {run.name}: {error}."
    truth, truth_note = truth_of(run, places, values)
    components, remarks = components_of(run, truth)
    drawn = _drawn(run.model.dim, places)
    record = audit_of(run)
    figures: dict[str, Any] = {"spectrum": spectrum_figure(components, str(run.model.definition), run.method)}
    figures |= curve_figures(run) | _audit_figures(run)
    cut = f"Of {run.model.dim} components the first {drawn} are drawn, and distances are measured in them."
    notes = {
        "eigenvectors": [note for note in (place_note, truth_note, cut if drawn < run.model.dim else None) if note],
        "spectrum": remarks,
    }
    return RunContent(
        run=run,
        components=components,
        tiles=_tiles(run, truth, components),
        drawn=drawn,
        arrays=_arrays(run, places, values, truth, drawn),
        figures=figures,
        notes=notes,
        captions=_captions(run, places, values, truth, drawn),
        audit=record,
        facts=_facts(run),
        config=_pairs(run.model.metadata.get("config")),
        versions=_pairs((run.made or {}).get("versions")),
        command=_command(run),
        score={} if truth is None else truth.score,
        problems=run.model.problems(),
    )


def audit_of(run: Run) -> Audit | None:
    """The audit from its file."""
    return None if run.audit is None else audit_from(Record(run.audit, f"audit.json of {run.label}"))


def rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Numbers to seven significant digits, NaN as None."""
    return [None if not np.isfinite(value) else float(f"{value:.{SIGNIFICANT}g}") for value in values]


def _drawn(dim: int, places: Places | None) -> int:
    if places is None:
        return 0
    return min(dim, MAX_DRAWN, max(3, MAX_NUMBERS // len(places.points)))


def _arrays(
    run: Run, places: Places | None, values: NDArray[np.float64] | None, truth: Truth | None, drawn: int
) -> dict[str, Any]:
    """One block of numbers per run, from which all its pictures are drawn."""
    found: dict[str, Any] = {"label": run.label, "name": run.name, "method": run.method}
    if places is None or values is None:
        return found
    exact = None if truth is None else truth.values[:, :drawn]
    sizes = [np.nanmax(np.abs(part[:, :drawn]), axis=0, initial=FLOOR) for part in (values, exact) if part is not None]
    found |= places.as_data()
    found["values"] = [rounded(column) for column in values.T[:drawn]]
    found["exact"] = None if exact is None else [rounded(column) for column in exact.T]
    # Components have mean square one; the floor keeps the constant one from being all dark.
    found["bounds"] = rounded(np.max(sizes, axis=0))
    found["slowness"] = [float(f"{max(value, 0.0):.8g}") for value in (1.0 - run.model.mu[:drawn])]
    record = run.audit or {}
    shape = record.get("visits_shape")
    wanted = int(np.prod(shape)) if shape else len(places.points)
    if record.get("visits_of") in ("states", "cells") and places.shape and len(record["visits"]) == wanted:
        found |= {"visits": record["visits"], "visits_shape": shape}
    return found


def _audit_figures(run: Run) -> dict[str, Any]:
    figures = {}
    record = run.audit or {}
    lengths = lengths_figure(record.get("episode_lengths") or {})
    if lengths is not None:
        figures["lengths"] = lengths
    if record.get("visits_of") == "rows":
        figures["visits"] = visits_figure(record["visits"])
    return figures


def _tiles(run: Run, truth: Truth | None, components: list[Component]) -> list[Tile]:
    tiles = []
    if truth is not None:
        counted = (run.scores or {}).get("baseline") or {}
        beside = f"counting the same data: {counted['subspace_cosine']:.4f}" if "subspace_cosine" in counted else ""
        found = truth.score
        cosine, paper = float(found["subspace_cosine"]), float(found["cosine"])
        error = float(found["mean_eigenvalue_error"])
        tiles.append(Tile("subspace similarity", cosine, f"{cosine:.4f}", beside, "subspace_cosine"))
        tiles.append(Tile("cosine, the paper's", paper, f"{paper:.4f}", "component by component", "cosine"))
        tiles.append(
            Tile("mean eigenvalue error", error, f"{error:.2%}", f"in {found['definition']}", "mean_eigenvalue_error")
        )
    if any(row.residual is not None for row in components):
        expected = run.model.certificate().expected_cosine
        tiles.append(Tile("expected cosine", expected, f"{expected:.4f}", "judged without a truth", "expected_cosine"))
    verdicts = Counter(row.verdict for row in components)
    (word, count), *others = verdicts.most_common()
    rest = ", ".join(f"{number} {other}" for other, number in others)
    tiles.append(Tile("components", None, f"{count} {word}", rest or f"of {len(components)}"))
    seconds, steps = run.model.metadata.get("seconds"), run.model.metadata.get("steps")
    if is_number(seconds):
        words = f"{steps:,} steps" if type(steps) is int else ""
        tiles.append(Tile("learned in", float(seconds), f"{seconds:.1f} s", words, "seconds"))
    return tiles


def _captions(
    run: Run, places: Places | None, values: NDArray[np.float64] | None, truth: Truth | None, drawn: int
) -> dict[str, list[str]]:
    """In words what each picture of a component shows, for those who do not see it."""
    if places is None or values is None:
        return {}
    named = {run.method: values} | ({} if truth is None else {"exact": truth.values})
    return {
        name: [
            f"{name} eigenvector {i + 1} on {run.name}: lowest {np.nanmin(part[:, i]):.2f} at "
            f"{_whereabouts(places, int(np.nanargmin(part[:, i])))}, highest {np.nanmax(part[:, i]):.2f} at "
            f"{_whereabouts(places, int(np.nanargmax(part[:, i])))}"
            for i in range(drawn)
        ]
        for name, part in named.items()
    }


def _whereabouts(places: Places, number: int) -> str:
    if places.shape is None or places.cells is None:
        return f"state {number}"
    row, column = divmod(int(places.cells[number]), places.shape[1])
    return f"row {row}, column {column}"


def _facts(run: Run) -> list[tuple[str, str]]:
    """How it was made, as (what, how much)."""
    metadata, made = run.model.metadata, run.made or {}
    chosen = [
        ("made", made.get("date")),
        ("method", metadata.get("method")),
        ("objective", metadata.get("objective")),
        ("encoder", metadata.get("encoder")),
        ("batches", metadata.get("batches")),
        ("preset", metadata.get("preset")),
        ("seed", metadata.get("seed")),
        ("steps", metadata.get("steps")),
        ("seconds", f"{metadata['seconds']:.1f}" if is_number(metadata.get("seconds")) else None),
        ("transitions", metadata.get("transitions")),
        ("episodes", metadata.get("episodes")),
        ("policy", metadata.get("policy") if isinstance(metadata.get("policy"), str) else None),
    ]
    return [(name, f"{value:,}" if type(value) is int else str(value)) for name, value in chosen if value is not None]


def _pairs(record: Any) -> list[tuple[str, str]]:
    if not isinstance(record, dict):
        return []
    return [(str(name), ", ".join(map(str, v)) if isinstance(v, list) else str(v)) for name, v in record.items()]


def _command(run: Run) -> str | None:
    words = (run.made or {}).get("command")
    return shlex.join(str(word) for word in words) if isinstance(words, list) and words else None
