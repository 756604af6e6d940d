"""Worlds and data: ``lapwing worlds``, ``collect`` and ``audit``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from lapwing.cli.words.options import Flag, LayoutsFolder, Observation, PolicyFile, Runnable, Slip, option


@dataclass(frozen=True)
class Worlds(Runnable):
    """List the worlds, shipped and in a layouts folder, with a small picture each if asked.

    Example: lapwing worlds --pictures
    """

    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    pictures: Flag = False
    """Draw each world in the terminal."""
    out: Annotated[Path | None, option("FILE", "none")] = None
    """Write a sheet of pictures to this .png, .pdf or .svg file."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Collect(Runnable):
    """Collect experience into a folder.

    Example: lapwing collect Rooms-16 --steps 1000000 --out data
    """

    world: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")]
    """A world's name, a rule (maze:10x15:3), a .txt layout, or gym:ID for a Gymnasium environment."""
    steps: int = 1_000_000
    """How many transitions."""
    episode_length: Annotated[str | None, option("N|LOW-HIGH", "50, or a Gymnasium environment's own ends")] = None
    """Transitions per episode, 50 or a range 20-80."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    policy: PolicyFile = None
    """Table (states, 4) of move probabilities, in a grid."""
    seed: int = 0
    """The same seed gives the same data."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, option("DIR", "runs/collect-WORLD")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Audit(Runnable):
    """Look a data set over: coverage, components, episode ends, asymmetry, hidden resets.

    Example: lapwing audit data
    """

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Folder that `lapwing collect` or Trajectories.save wrote."""
    discount: float = 0.9
    """Discount of the gaps that training would draw."""
    json: Flag = False
    """Print JSON instead of a table."""
