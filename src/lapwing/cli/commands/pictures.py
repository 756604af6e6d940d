"""To look at: ``lapwing report`` and ``plot``."""

import re
from collections.abc import Sequence
from pathlib import Path

from lapwing.cli import terminal
from lapwing.cli.words.pictures import Plot, Report
from lapwing.errors import LapwingError
from lapwing.report.run_folder import seed_folders
from lapwing.representation import LaplacianRepresentation, load
from lapwing.storage.models import MANIFEST


def run_report(words: Report) -> None:
    """Write the page of one run, or of several compared."""
    runs = _checked_runs(words.runs)
    out = words.out or (words.runs[0] / "report.html" if len(words.runs) == 1 else Path("report.html"))
    if not out.is_dir() and out.suffix.lower() not in (".html", ".htm"):
        raise LapwingError(f"{out}: a report is an .html file")
    from lapwing.report import write_report

    with terminal.spinner("writing the page"):
        page = write_report(runs, out)
    if words.json:
        terminal.print_json({"report": str(page), "runs": [str(run) for run in runs]})
        return
    print(f"wrote {page}")
    print(f"Open it in a browser: {page.resolve().as_uri()}")


def run_plot(words: Plot) -> None:
    """Draw a figure for a paper."""
    runs = _checked_runs(words.runs)
    components = None if words.components is None else component_numbers(words.components)
    out = words.out or (words.runs[0] if len(words.runs) == 1 else Path()) / f"{words.what}.pdf"
    from lapwing.plots import representation_figure, save_figure

    with terminal.spinner("drawing"):
        figure = representation_figure(_named_models(runs), words.what, components, width=words.width)
        save_figure(figure, out, dpi=300)
    width, height = (round(float(inches), 2) for inches in figure.get_size_inches())
    if words.json:
        terminal.print_json({"figure": str(out), "what": words.what, "width": width, "height": height})
        return
    print(f"wrote {out} ({width:g} x {height:g} inches)")


def component_numbers(text: str) -> list[int]:
    """Component numbers from words such as ``1-6`` or ``1,3,5-7``.

    Example:
        >>> component_numbers("1,3,5-7")
        [1, 3, 5, 6, 7]
    """
    numbers: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
        if match is None:
            raise LapwingError(f"--components is a list such as 1-6 or 1,3,5-7, got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise LapwingError(f"--components {part.strip()} runs backwards; write {last}-{first}")
        numbers += range(first, last + 1)
    return list(dict.fromkeys(numbers))


def _checked_runs(named: Sequence[Path]) -> list[Path]:
    """The folders, each of which holds a representation and is named once; one of several seeds stands for all."""
    if not named:
        raise LapwingError("say which run: the folder that `lapwing learn` or `lapwing solve` wrote")
    runs = [run for one in named for run in seed_folders(one) or [one]]
    for run in runs:
        if not run.is_dir():
            raise LapwingError(f"there is no run folder {run}; `lapwing learn` and `lapwing solve` write them")
        if not (run / MANIFEST).is_file():
            raise LapwingError(f"{run} is not a run folder: it holds no {MANIFEST}")
    resolved = [run.resolve() for run in runs]
    if len(set(resolved)) < len(runs):
        raise LapwingError("the same run is named twice")
    return runs


def _named_models(runs: Sequence[Path]) -> dict[str, LaplacianRepresentation]:
    """Representations by the names of their folders, or by their paths where those are the same."""
    names = [run.resolve().name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run) for run in runs]
    return {name: load(run) for name, run in zip(names, runs, strict=True)}
