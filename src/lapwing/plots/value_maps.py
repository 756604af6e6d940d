"""Numbers at the states of a world, or at any observations, as maps side by side: distances, potentials, regions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lapwing.environments import World
from lapwing.errors import ArgumentError
from lapwing.plots.fields import draw_world, field_places, proportion
from lapwing.plots.figures import PRINT, NotebookFigure, Style

SEQUENTIAL = "viridis_r"
REGIONS = "tab20"
START, GOAL, WAY = "#D55E00", "#F0E442", "#1a1a1a"
POINT_SIZE = 6.0


@dataclass(frozen=True, eq=False)
class Marks:
    """What is drawn above a map.

    Args:
        start: (2,) a place, down and across, or None.
        goal: (2,) a place, or None.
        ways: (n, 2) places each, drawn as lines.
    """

    start: NDArray[np.float64] | None = None
    goal: NDArray[np.float64] | None = None
    ways: Sequence[NDArray[np.float64]] = ()


def value_maps(
    where: World | NDArray[Any],
    maps: Mapping[str, NDArray[Any]],
    marks: Marks | None = None,
    *,
    regions: Sequence[str] = (),
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw numbers on a world, or at places of your own, one panel for each.

    Args:
        where: a world with a picture, or (n, 2) places of observations, down and across.
        maps: (n,) numbers by title: at the world's ``field_points()``, or one per place; NaN is left out.
        marks: drawn in every panel.
        regions: titles of panels whose numbers are those of regions, which get a colour each and no scale.
        width: in inches; 2.6 for each panel if None.
        style: ``PRINT`` or ``SCREEN``, or one of your own.

    Returns:
        The figure; :func:`save_figure` writes it.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:3x3")
        >>> figure = value_maps(world, {"row": world.table()[:, 0]})
        >>> [ax.get_title() for ax in figure.axes][:1]
        ['row']
    """
    if not maps:
        raise ArgumentError("there is nothing to draw; give at least one map")
    places = field_places(where) if isinstance(where, World) else np.asarray(where, dtype=np.float64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise ArgumentError(f"places must be of shape (n, 2), got {places.shape}")
    tall = proportion(where) if isinstance(where, World) else _proportion(places)
    wide = 2.6 * len(maps) if width is None else width
    with matplotlib.rc_context(dict(style.settings)):  # type: ignore[arg-type]
        figure = NotebookFigure(figsize=(wide, wide / len(maps) * min(max(tall, 0.5), 2.0) + 0.5), layout="constrained")
        for ax, (title, values) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps.items(), strict=True):
            numbers = np.asarray(values, dtype=np.float64)
            if numbers.shape != (len(places),):
                raise ArgumentError(f"{title!r} must be {len(places)} numbers, one for each point, got {numbers.shape}")
            _draw_map(figure, ax, where, places, numbers, title in regions)
            _draw_marks(ax, marks or Marks())
            ax.set_title(title)
        figure.draw_without_rendering()
    return figure


def _draw_map(
    figure: Figure, ax: Axes, where: Any, places: NDArray[Any], numbers: NDArray[Any], are_regions: bool
) -> None:
    known = np.isfinite(numbers)
    limits: dict[str, Any] = {"vmin": -0.5, "vmax": 19.5} if are_regions else {}
    shown = np.where(known, numbers % 20, np.nan) if are_regions else numbers
    colours = REGIONS if are_regions else SEQUENTIAL
    if isinstance(where, World):
        draw_world(ax, where)
        image: Any = ax.imshow(
            where.field_image(shown), cmap=colours, extent=where.field_extent(), interpolation="nearest", **limits
        )
    else:
        down, across = places[known].T
        image = ax.scatter(across, down, c=shown[known], cmap=colours, s=POINT_SIZE, linewidths=0, **limits)
        ax.set_aspect("equal", adjustable="datalim")
    if not are_regions:
        figure.colorbar(image, ax=ax, shrink=0.8)


def _draw_marks(ax: Axes, marks: Marks) -> None:
    for way in marks.ways:
        ax.plot(way[:, 1], way[:, 0], color=WAY, linewidth=1.4, marker=".", markersize=4)
    for place, colour, symbol in ((marks.start, START, "o"), (marks.goal, GOAL, "*")):
        if place is not None:
            size = 70 if symbol == "o" else 140
            ax.scatter([place[1]], [place[0]], s=size, marker=symbol, color=colour, edgecolors=WAY, zorder=5)


def _proportion(places: NDArray[np.float64]) -> float:
    down, across = np.ptp(places, axis=0)
    return float(down / across) if across > 0 else 1.0
