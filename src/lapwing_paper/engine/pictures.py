"""Figures of a study as plain data: what is drawn, not how; :mod:`lapwing_paper.figures` draws it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lapwing.environments import World

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A curve with a band around it."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    highlighted: bool = False


@dataclass(frozen=True)
class Curves:
    """A panel of curves; ``log_x`` for axes that span decades."""

    title: str
    lines: tuple[Line, ...]
    log_x: bool = False


@dataclass(frozen=True)
class Bars:
    """A panel of bars with error bars; those that are not ``solid`` are drawn pale (not significant)."""

    title: str
    labels: tuple[str, ...]
    values: Numbers
    errors: Numbers | None = None
    solid: tuple[bool, ...] | None = None


@dataclass(frozen=True)
class Field:
    """A panel that shows one number per state of a world, with states marked."""

    title: str
    world: World
    values: Numbers
    maxima: tuple[int, ...] = ()
    minima: tuple[int, ...] = ()


Panel = Curves | Bars | Field


@dataclass(frozen=True)
class Picture:
    """A figure: panels in rows of ``columns``, with common labels of the axes.

    Attributes:
        name: file stem.
        title: above it all; says if it is a quick version.
        description: what is to be seen, in words, for those who cannot see it.
    """

    name: str
    title: str
    panels: tuple[Panel, ...]
    columns: int
    x_label: str = ""
    y_label: str = ""
    description: str = ""
    y_limits: tuple[float, float] | None = field(default=None)
