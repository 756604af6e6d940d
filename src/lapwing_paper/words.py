"""Studies: ``lapwing reproduce``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lapwing.cli.words.options import Flag, LayoutsFolder, option


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a table, figure or theorem of the paper, or a study of our own, with the paper's numbers beside ours.

    Example: lapwing reproduce theory --quick
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ""
    """What to reproduce; --list shows the names."""
    list: Flag = False
    """List everything that can be reproduced."""
    quick: Flag = False
    """Few seeds and steps, minutes on two cores. This is what happens unless --full is given."""
    full: Flag = False
    """The paper's seeds and steps."""
    seeds: Annotated[int | None, option("N", "the study's")] = None
    """How many seeds."""
    steps: Annotated[int | None, option("N", "the study's")] = None
    """Gradient steps."""
    worlds: Annotated[tuple[str, ...] | None, option("WORLD...", "the study's")] = None
    """Which worlds."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts, for the authors' own worlds."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("reproduction")
    """Folder of runs, tables and figures. Finished runs in it are not made again."""
    pages: Annotated[Path | None, option("DIR", "OUT/NAME")] = None
    """Write tables and figures here instead."""
    on: Annotated[str, tyro.conf.arg(metavar="{local,ray,ray://HOST:PORT}")] = "local"
    """Where runs are carried out."""
    workers: Annotated[int | None, option("N", "as many as cores")] = None
    """Runs at a time."""
    again: Flag = False
    """Make finished runs again."""
    resume: Flag = False
    """Complete the study that was begun in this folder, in its size: NAME and --out are enough. Failed runs are made
    again too."""
    rebuild: Flag = False
    """Make no run: tables and figures from the files that are there."""
    json: Flag = False
    """Print JSON instead of tables."""
