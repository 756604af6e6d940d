"""Pictures of components for a page that does not draw them as maps: images without text, which the page describes."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

from lapwing.environments import World
from lapwing.plots.fields import DIVERGING, SMALLEST_LIMIT, WALL, field_values
from lapwing.plots.observation_arrays import are_images
from lapwing.plots.observation_maps import (
    GROUND,
    Points,
    difference_limit,
    distinct_rows,
    draw_points,
    extremes_of,
    points_of,
)
from lapwing.representation import LaplacianRepresentation

# Inches and dots per inch of a scatter: sharp on a screen of two dots per pixel.
PANEL, DOTS = (2.6, 2.2), 150
MAP_LEGEND = "Blue is below zero, red above."


@dataclass(frozen=True)
class Picture:
    """One image.

    Attributes:
        png: in base64.
        caption: written below it.
        alternative: a description for those who do not see it.
        wide: how many pictures stand side by side in it.
    """

    png: str
    caption: str
    alternative: str
    wide: int = 1


@dataclass(frozen=True)
class Cards:
    """Pictures of several components.

    Attributes:
        legend: what they all show.
        pictures: by the number of the component.
        strips: whether these are strips of images, which need the whole width.
    """

    legend: str
    pictures: dict[int, list[Picture]]
    strips: bool = False


def observation_cards(rows: NDArray[Any], values: NDArray[np.float64], components: Sequence[int]) -> Cards:
    """Components at observations: points over two of their numbers, or images at both ends.

    Args:
        rows: (n, ...) observations.
        values: (n, dim) components there, all known.
        components: which, counted from 1.

    Returns:
        One picture per component of vectors, five of images.
    """
    if are_images(rows):
        return _filmstrips(rows, values, components)
    points = points_of(rows, values)
    what = f"{points.names[0]} across, {_range(points.across)}"
    if points.up is not None:
        what += f", {points.names[1]} up, {_range(points.up)}; blue is below zero, red above"
    pictures = {number: [_scatter(points, values[:, number - 1], number)] for number in components}
    return Cards(f"{len(rows):,} observations: {what}.", pictures)


def map_cards(model: LaplacianRepresentation, world: World, components: Sequence[int]) -> Cards:
    """Components on a map that is too large to be drawn by the page's scripts.

    Args:
        model: the representation.
        world: with a picture.
        components: which, counted from 1.

    Returns:
        One picture per component.
    """
    values = field_values(model, np.asarray(world.field_points()))
    pictures = {}
    for number in components:
        image = world.field_image(values[:, number - 1])
        limit = max(float(np.nanmax(np.abs(values[:, number - 1]), initial=0.0)), SMALLEST_LIMIT)
        colours = matplotlib.colormaps[DIVERGING](np.ma.filled(image, 0.0) / (2.0 * limit) + 0.5)[..., :3]
        colours[np.ma.getmaskarray(image)] = WALL
        pictures[number] = [Picture(_png(colours), "", f"Component {number} on {world.name}")]
    return Cards(MAP_LEGEND, pictures)


def png_of(picture: NDArray[np.float64]) -> str:
    """A picture as a PNG.

    Args:
        picture: (rows, columns) or (rows, columns, 3 or 4), shades from 0 to 1.

    Returns:
        The file in base64.
    """
    return _png(picture if picture.ndim == 3 else np.repeat(picture[..., None], 3, axis=-1))


def _filmstrips(rows: NDArray[Any], values: NDArray[np.float64], components: Sequence[int]) -> Cards:
    first = distinct_rows(rows)
    rows, values = rows[first], values[first]
    pictures = {}
    for number in components:
        found = extremes_of(rows, values[:, number - 1])
        limit = difference_limit(found.difference)
        difference = matplotlib.colormaps[DIVERGING](found.difference / (2.0 * limit) + 0.5)[..., :3]
        ends = [("lowest", found.lowest, found.lowest_values), ("highest", found.highest, found.highest_values)]
        parts = [
            Picture(
                png_of(_strip(frames)),
                f"{name}: {numbers[0]:.3g} to {numbers[-1]:.3g}",
                f"Images at which component {number} is {name}",
                len(frames),
            )
            for name, frames, numbers in ends
        ]
        parts += [
            Picture(png_of(found.low_mean), "low tenth", f"Mean of the lowest tenth of component {number}"),
            Picture(png_of(found.high_mean), "high tenth", f"Mean of the highest tenth of component {number}"),
            Picture(_png(difference), "difference", f"Where the highest tenth of component {number} is brighter"),
        ]
        pictures[number] = parts
    legend = (
        f"Of {len(rows):,} different images those at which each component is smallest and largest, the means of its "
        "lowest and highest tenth, and their difference: where images are brighter (red) or darker (blue) at the high "
        "end. Of stacked frames the newest is drawn."
    )
    return Cards(legend, pictures, strips=True)


def _strip(frames: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Frames side by side, with a transparent gap between them."""
    colours = [frame if frame.ndim == 3 else np.repeat(frame[..., None], 3, axis=-1) for frame in frames]
    opaque = [np.concatenate([frame, np.ones((*frame.shape[:2], 1))], axis=-1) for frame in colours]
    gap = np.zeros((opaque[0].shape[0], max(opaque[0].shape[1] // 25, 1), 4))
    return np.concatenate([part for frame in opaque for part in (frame, gap)][:-1], axis=1)


def _scatter(points: Points, column: NDArray[np.float64], number: int) -> Picture:
    figure = Figure(figsize=PANEL, facecolor=GROUND)
    ax = figure.add_axes((0.03, 0.03, 0.94, 0.94))
    draw_points(ax, points, column)
    caption = ""
    if points.up is None:
        ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=0)
        caption = f"component up, {_range(column)}"
    ax.axis("off")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DOTS, metadata={"Software": None})
    png = base64.b64encode(stream.getvalue()).decode()
    across = f"{points.names[0]} and {points.names[1]}" if points.up is not None else points.names[0]
    return Picture(png, caption, f"Component {number} over {across}, {_range(column)}")


def _range(numbers: NDArray[Any]) -> str:
    return f"from {numbers.min():.3g} to {numbers.max():.3g}"


def _png(colours: NDArray[np.float64]) -> str:
    stream = io.BytesIO()
    whole = (np.clip(colours, 0.0, 1.0) * 255).round().astype(np.uint8)
    imsave(stream, whole, format="png", metadata={"Software": None})  # type: ignore[dict-item]
    return base64.b64encode(stream.getvalue()).decode()
