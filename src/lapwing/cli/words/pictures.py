"""To look at: ``lapwing report`` and ``plot``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lapwing.cli.words.options import Flag, Runnable, option

Runs = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help_behavior_hint="(at least one)")
]


@dataclass(frozen=True)
class Report(Runnable):
    """Write one HTML page that shows a run, or that compares several; it opens without a network.

    Example: lapwing report demo --out demo.html
    """

    runs: Runs
    """Folders that `lapwing learn` or `lapwing solve` wrote."""
    out: Annotated[Path | None, option("FILE.html", "RUN/report.html, for several runs report.html")] = None
    """File to write."""
    json: Flag = False
    """Print JSON instead of where the page is."""


@dataclass(frozen=True)
class Plot(Runnable):
    """Draw a figure for a paper from one run or several: PDF, fonts sized for print, no titles.

    Example: lapwing plot demo --what eigenvectors --components 1-6 --out figure.pdf
    """

    runs: Runs
    """Folders that `lapwing learn` or `lapwing solve` wrote."""
    what: Literal["eigenvectors", "spectrum", "curves", "comparison"] = "eigenvectors"
    """Eigenvectors on the world (a row per run), one spectrum, one run's learning curves, or several runs compared."""
    components: Annotated[str | None, option("LIST", "all, of eigenvectors the first 12")] = None
    """Which components, such as 1-6 or 1,3,5-7."""
    out: Annotated[Path | None, option("FILE", "RUN/WHAT.pdf, for several runs WHAT.pdf")] = None
    """File to write; its ending chooses .pdf, .png or .svg."""
    width: Annotated[float, tyro.conf.arg(metavar="INCHES")] = 5.5
    """Of the figure: 5.5 fills a page of text, 3.25 one of two columns."""
    json: Flag = False
    """Print JSON instead of where the figure is."""
