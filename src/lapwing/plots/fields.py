"""Worlds and functions on them: one number per state as colour, diverging around zero."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import WALL_COLOUR
from lapwing.environments.layouts import Layout
from lapwing.environments.registry import World
from lapwing.representation import LaplacianRepresentation

# Diverging, told apart by the colour-blind, white at zero.
DIVERGING = "RdBu_r"
WALL = tuple(channel / 255 for channel in WALL_COLOUR)
UNKNOWN = to_rgb("#b9b4a7")
BOX_RESOLUTION = 96
LONGEST_LABEL = 80


def draw_layout(ax: Axes, layout: Layout) -> Axes:
    """A layout in black and white, row 0 at the top."""
    ax.imshow(np.where(layout.free[..., None], (1.0, 1.0, 1.0), WALL), interpolation="nearest")
    return bare(ax)


def draw_grid_field(ax: Axes, layout: Layout, values: NDArray[np.float64], limit: float | None = None) -> AxesImage:
    """One number per free cell as colour; walls dark, cells without a number grey."""
    canvas = np.full(layout.shape, np.nan)
    canvas[layout.free] = values
    backdrop = np.where(layout.free[..., None], UNKNOWN, WALL)
    ax.imshow(backdrop, interpolation="nearest")
    bound = limit or _bound(values)
    image = ax.imshow(canvas, cmap=DIVERGING, vmin=-bound, vmax=bound, interpolation="nearest")
    bare(ax)
    return image


def draw_box_field(ax: Axes, world: BoxWorld, values: NDArray[np.float64], limit: float | None = None) -> AxesImage:
    """Numbers on :func:`box_points` as a heat map, first axis downwards."""
    bound = limit or _bound(values)
    width = world.sides[1] if world.dimension > 1 else 0.15 * world.sides[0]
    columns = BOX_RESOLUTION if world.dimension > 1 else 1
    extent = (0.0, width, world.sides[0], 0.0)
    image = ax.imshow(
        values.reshape(BOX_RESOLUTION, columns), cmap=DIVERGING, vmin=-bound, vmax=bound, extent=extent, aspect="equal"
    )
    bare(ax)
    return image


def box_points(world: BoxWorld) -> NDArray[np.float32]:
    """Scaled coordinates of a raster over the first two axes, the others in the lower quarter of the box.

    Not in the middle: there every cosine with an odd number vanishes.
    """
    ticks = (np.arange(BOX_RESOLUTION) + 0.5) / BOX_RESOLUTION - 0.5
    axes = [ticks] * min(world.dimension, 2) + [np.array([-0.25])] * max(world.dimension - 2, 0)
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([coordinate.ravel() for coordinate in mesh], axis=1).astype(np.float32)


def draw_component(ax: Axes, model: LaplacianRepresentation, world: World, values: NDArray[np.float64]) -> AxesImage:
    """One component of a representation on its world, with the values from :func:`values_on_world`."""
    if isinstance(world, BoxWorld):
        return draw_box_field(ax, world, values)
    return draw_grid_field(ax, world.layout, values)


def values_on_world(model: LaplacianRepresentation, world: World) -> NDArray[np.float64]:
    """(n, dim) components at every place that can be drawn; NaN where a table does not know it."""
    points: NDArray[Any] = box_points(world) if isinstance(world, BoxWorld) else world.observations()
    numbers_of = getattr(model.encoder, "numbers_of", None)
    if numbers_of is None:
        return np.asarray(model.transform(points), dtype=np.float64)
    numbers = numbers_of(points)
    table: NDArray[np.float64] = model.encoder.values  # type: ignore[attr-defined]
    return np.where(numbers[:, None] >= 0, table[numbers, : model.dim], np.nan)


def label(name: str) -> str:
    """A name from a file or a folder as words on a figure: short, in one line, and never taken for a formula."""
    return "".join(c if c.isprintable() else " " for c in name[:LONGEST_LABEL]).replace("$", r"\$")


def bare(ax: Axes) -> Axes:
    """Take ticks and frame away."""
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _bound(values: NDArray[np.float64]) -> float:
    # Components have mean square one; the floor keeps the constant one from being all dark.
    return max(float(np.nanmax(np.abs(values), initial=0.0)), 2.0)
