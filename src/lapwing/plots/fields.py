"""Functions on a world as images: one number per drawn point, diverging around zero."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from lapwing.data.packing import RowFormat
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import World
from lapwing.errors import ArgumentError
from lapwing.representation import LaplacianRepresentation

# Diverging, white at zero, distinguishable with colour-blindness.
DIVERGING = "RdBu_r"
WALL = (40 / 255, 44 / 255, 52 / 255)
UNKNOWN = (185 / 255, 180 / 255, 167 / 255)
FREE = (1.0, 1.0, 1.0)
# Components have mean square one; a scale of at least this keeps the constant one from being all dark.
SMALLEST_LIMIT = 2.0


def draw_field(ax: Axes, world: World, values: NDArray[Any], limit: float | None = None) -> AxesImage:
    """Draw a function on a world as colours: blue below zero, white at zero, red above.

    Args:
        ax: the axes to draw on; ticks and frame are removed.
        world: the world, which says where each value lies.
        values: (n,) numbers at the world's ``field_points()``; NaN (unknown) is drawn grey, walls are dark.
        limit: the number with the darkest colour; the largest magnitude, and at least 2, if None.

    Returns:
        The image, as ``ax.imshow`` returns it.
    """
    _draw_background(ax, world, len(values), UNKNOWN)
    limit = limit or max(float(np.nanmax(np.abs(values), initial=0.0)), SMALLEST_LIMIT)
    image = world.field_image(values)
    return ax.imshow(
        image, cmap=DIVERGING, vmin=-limit, vmax=limit, extent=world.field_extent(), interpolation="nearest"
    )


def draw_world(ax: Axes, world: World) -> AxesImage:
    """Draw the shape of a world: white where a state may be, dark where there is a wall.

    Args:
        ax: the axes to draw on; ticks are removed.
        world: the world.

    Returns:
        The image, as ``ax.imshow`` returns it.
    """
    points = world.field_points()
    if points is None:
        raise ArgumentError(f"{world.name} has no picture")
    image = _draw_background(ax, world, len(points), FREE)
    # A world without walls has a border.
    ax.spines[:].set(visible=True, color=WALL, linewidth=2)
    return image


def field_values(
    model: LaplacianRepresentation, points: NDArray[Any] | Mapping[str, NDArray[Any]]
) -> NDArray[np.float64]:
    """Evaluate the components at observations, some of which a table of states may not know.

    Args:
        model: the representation.
        points: (n, ...) observations, such as a world's ``field_points()``; a dictionary where they have several keys.

    Returns:
        (n, dim) components; NaN at observations that a table does not contain.
    """
    if not isinstance(model.encoder, LookupEncoder):
        return np.asarray(model.transform(points), dtype=np.float64)
    layout = RowFormat.from_metadata(model.metadata)
    rows: Any = layout.pack(points) if layout is not None and isinstance(points, Mapping) else points
    numbers = model.encoder.numbers_of(rows)
    return np.where(numbers[:, None] >= 0, model.encoder.values[numbers, : model.dim], np.nan)


def field_places(world: World) -> NDArray[np.float64]:
    """Where the points at which a function is drawn lie in the picture.

    Args:
        world: that has a picture.

    Returns:
        (n, 2) places of its ``field_points()``, down and across, in the units of ``field_extent()``.
    """
    points = world.field_points()
    if points is None:
        raise ArgumentError(f"{world.name} has no picture")
    numbers = world.field_image(np.arange(len(points), dtype=np.float64)).filled(-1.0)
    left, right, bottom, top = world.field_extent()
    sizes = (bottom - top) / numbers.shape[0], (right - left) / numbers.shape[1]
    places = np.empty((len(points), 2))
    places[numbers[numbers >= 0].astype(np.int64)] = (np.argwhere(numbers >= 0) + 0.5) * sizes + (top, left)
    return places


def proportion(world: World) -> float:
    """Height of a world's picture for a width of one.

    Args:
        world: that has a picture.

    Returns:
        Height divided by width.
    """
    left, right, bottom, top = world.field_extent()
    return abs(top - bottom) / abs(right - left)


def _draw_background(ax: Axes, world: World, count: int, free: tuple[float, float, float]) -> AxesImage:
    is_wall = np.ma.getmaskarray(world.field_image(np.zeros(count)))
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
    colours = np.where(is_wall[..., None], WALL, free)
    return ax.imshow(colours, extent=world.field_extent(), interpolation="nearest")
