"""One self-contained HTML page for a run, or for several compared; it needs no network."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from lapwing import __version__
from lapwing.errors import ArgumentError
from lapwing.report.charts import compared_spectra, curve_charts, spectrum_chart
from lapwing.report.content import RunContent, content_of
from lapwing.report.stored_run import read_runs
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.files import write_bytes

MAX_RUNS = 24


def write_report(runs: Sequence[Path], out: Path, *, models: Sequence[LaplacianRepresentation] | None = None) -> Path:
    """Write one page for one run, or a comparison of several, from their files.

    Args:
        runs: folders that ``lapwing learn`` or ``lapwing solve`` wrote.
        out: the page, e.g. ``report.html``; if it is a folder, ``report.html`` in it.
        models: the representations in these folders, if they are in memory; they are loaded if None.

    Returns:
        The path of the page.

    Raises:
        ArgumentError: if there is no run, or too many.
        DamagedFileError: if a file of a run cannot be understood; then nothing is written.
    """
    folders = [Path(run) for run in runs]
    if len(folders) > MAX_RUNS:
        raise ArgumentError(f"{len(folders)} runs are too many for one page; compare at most {MAX_RUNS}")
    page = out / "report.html" if out.is_dir() else out
    text = render([content_of(run) for run in read_runs(folders, models)])
    # The name of a folder may not be UTF-8.
    return write_bytes(page, text.encode("utf-8", errors="replace"))


def render(contents: Sequence[RunContent]) -> str:
    """The page as text.

    Args:
        contents: what it says of each run.

    Returns:
        A whole HTML document.
    """
    several = len(contents) > 1
    names = list(dict.fromkeys(content.run.name for content in contents))
    figures = _compared_figures(contents) if several else contents[0].figures
    template = environment().get_template("comparison.html" if several else "run.html")
    return template.render(
        title=", ".join(names) + (f": {len(contents)} runs" if several else ""),
        contents=contents,
        content=contents[0],
        definitions=list(dict.fromkeys(str(content.run.model.definition) for content in contents)),
        differing=_differing(contents),
        data_sets=_data_sets(contents),
        figures=figures,
        data=as_script({"runs": [content.arrays for content in contents], "figures": figures}),
        plotly=Markup(get_plotlyjs()),
        styles=_resource("page.css"),
        scripts=[_resource(name) for name in ("drawing.js", "explore.js", "page.js")],
        version=__version__,
    )


def as_script(data: Any) -> Markup:
    """JSON that is safe inside a script element: no character in it can end the element or begin another.

    Args:
        data: JSON types without NaN.

    Returns:
        Text that templates insert without escaping it again.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


@cache
def environment() -> Environment:
    """The templates; everything that is put into them is escaped unless marked as safe.

    Returns:
        A Jinja environment in which an undefined name is an error.
    """
    options: dict[str, Any] = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True}
    templates = Environment(loader=PackageLoader("lapwing.report"), lstrip_blocks=True, **options)
    templates.filters |= {"number": _number, "exactly": _exactly}
    return templates


def _resource(name: str) -> Markup:
    return Markup(files("lapwing.report").joinpath("templates", name).read_text(encoding="utf-8"))


def _number(value: float | None, digits: int = 4, places: int | None = None) -> str:
    """A number to read, by significant digits or by decimal places; a dash if None."""
    if value is None:
        return "–"
    if places is not None:
        return f"{value:.{places}f}"
    # Rounding of a solver, not an eigenvalue.
    return f"{0.0 if abs(value) < 1e-12 else value:.{digits}g}"


def _exactly(value: float | None) -> str:
    """A number as it is in the files, for programs that read the page."""
    return "" if value is None else repr(float(value))


def _compared_figures(contents: Sequence[RunContent]) -> dict[str, Any]:
    """Spectra of each definition, and learning curves with one line per run."""
    by_definition: dict[str, list[tuple[str, list[float], list[float | None]]]] = {}
    for content in contents:
        values, errors = [row.eigenvalue for row in content.components], [row.error for row in content.components]
        by_definition.setdefault(str(content.run.model.definition), []).append((content.run.label, values, errors))
    figures = {
        f"spectrum-{number}": spectrum_chart(compared_spectra(spectra), definition)
        for number, (definition, spectra) in enumerate(by_definition.items())
    }
    return figures | curve_charts([content.run for content in contents])


def _data_sets(contents: Sequence[RunContent]) -> list[tuple[str, int]]:
    """Each data set once: the runs that were made from it, and the number of the first of them."""
    members: dict[str, list[int]] = {}
    for number, content in enumerate(contents):
        members.setdefault(repr((content.run.audit, content.run.data)), []).append(number)
    return [(", ".join(contents[i].run.label for i in runs), runs[0]) for runs in members.values()]


def _differing(contents: Sequence[RunContent]) -> list[tuple[str, list[str]]]:
    """Options and facts in which the runs differ, each with one entry per run."""
    tables = [dict(content.facts) | dict(content.config) for content in contents]
    names = dict.fromkeys(name for table in tables for name in table)
    rows = [(name, [table.get(name, "–") for table in tables]) for name in names]
    return [(name, row) for name, row in rows if len(set(row)) > 1]
