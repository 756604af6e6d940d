"""What several commands share: names of worlds and files on the command line, values as cells of a table."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.data.collect import Source
from lapwing.errors import LapwingError

GYMNASIUM_PREFIX = "gym:"


def collection_source(world: str) -> tuple[Source, str]:
    """What to collect from and its label: a world's name as it is, or a Gymnasium environment made."""
    if not world.startswith(GYMNASIUM_PREFIX):
        return world, world
    import gymnasium

    name = world.removeprefix(GYMNASIUM_PREFIX)
    try:
        return gymnasium.make(name), name
    except (gymnasium.error.Error, ImportError) as error:
        raise LapwingError(f"Gymnasium cannot make {name!r}: {error}") from error


def file_name(label: str) -> str:
    """A label as the part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", Path(label).stem if label.endswith(".txt") else label).strip("_.")


def plain(value: Any) -> str:
    """A value as a cell of a table."""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.2e}"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return "-" if value is None else str(value)
