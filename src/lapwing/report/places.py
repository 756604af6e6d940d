"""Where a representation is looked at: the cells of a grid, a raster over a box, or the observations a run kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments.box import BoxWorld
from lapwing.environments.descriptions import world_from_description
from lapwing.environments.registry import World
from lapwing.errors import LapwingError
from lapwing.report.sources import Run
from lapwing.representation import LaplacianRepresentation

# More places make the page slow to open and large; it then shows spectrum, curves and certificate alone.
MAX_PLACES = 12_000
BOX_CELLS = 40
CHUNK = 2048


@dataclass(frozen=True, eq=False)
class Places:
    """Places to evaluate components at, and how they lie.

    Attributes:
        kind: ``grid``, ``box`` or ``table``; the last has no picture.
        points: (n, ...) an observation for each.
        world: where there is one.
        shape: rows and columns of the picture.
        cells: (n,) which pixel of the picture each place is, row by row.
    """

    kind: str
    points: NDArray[Any]
    world: World | None = None
    shape: tuple[int, int] | None = None
    cells: NDArray[np.int64] | None = None

    def as_data(self) -> dict[str, Any]:
        """What the page needs to draw them, as JSON types."""
        found: dict[str, Any] = {"kind": self.kind, "count": len(self.points)}
        if self.shape is not None and self.cells is not None:
            found |= {"rows": self.shape[0], "columns": self.shape[1], "cells": self.cells.tolist()}
        if isinstance(self.world, BoxWorld):
            # A step goes along both axes at once, along each by at most this many cells.
            down, across = [BOX_CELLS * self.world.step / side for side in (*self.world.sides, *self.world.sides)][:2]
            found["reach"] = [down, across]
        return found


def places_of(run: Run) -> tuple[Places | None, str | None]:
    """Where to look at a run's components; None and the reason in words where there is nothing to look at."""
    world = world_from_description(run.model.metadata.get("world"))
    if isinstance(world, BoxWorld):
        shape = (BOX_CELLS if world.dimension > 1 else 1, BOX_CELLS)
        return Places("box", box_raster(world), world, shape, np.arange(shape[0] * shape[1])), _slice_note(world)
    if world is not None:
        if world.num_states > MAX_PLACES:
            return None, f"{world.num_states:,} states are too many for a page: at most {MAX_PLACES:,} are drawn."
        rows, columns = world.layout.cells.T
        width = world.layout.shape[1]
        return Places("grid", world.observations(), world, world.layout.shape, rows * width + columns), None
    if isinstance(run.model.encoder, LookupEncoder):
        points: NDArray[Any] | None = run.model.encoder.observations
    else:
        points = run.observations
    if points is None:
        return None, (
            "The run keeps no observations to look at: it belongs to no grid or box and was written without its data. "
            "Spectrum, curves and certificate need none."
        )
    if len(points) > MAX_PLACES:
        return None, f"{len(points):,} observations are too many for a page: at most {MAX_PLACES:,} are drawn."
    return Places("table", points), None


def box_raster(world: BoxWorld) -> NDArray[np.float32]:
    """Scaled coordinates of cells over the first two axes, the others in the lower quarter of the box.

    Not in the middle: there every cosine with an odd number vanishes.
    """
    ticks = (np.arange(BOX_CELLS) + 0.5) / BOX_CELLS - 0.5
    axes = [ticks] * min(world.dimension, 2) + [np.array([-0.25])] * max(world.dimension - 2, 0)
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([coordinate.ravel() for coordinate in mesh], axis=1).astype(np.float32)


def values_at(model: LaplacianRepresentation, points: NDArray[Any]) -> NDArray[np.float64]:
    """(n, dim) components at these observations; NaN where a table does not know one."""
    encoder = model.encoder
    if isinstance(encoder, LookupEncoder):
        numbers = encoder.numbers_of(points)
        if (numbers < 0).all():
            raise LapwingError("its table knows none of these observations")
        return np.where(numbers[:, None] >= 0, encoder.values[numbers, : model.dim], np.nan)
    chunks = [model.transform(points[start : start + CHUNK]) for start in range(0, len(points), CHUNK)]
    values = np.concatenate(chunks).astype(np.float64)
    if not np.isfinite(values).all():
        raise LapwingError("the representation gives NaN or infinity on some states; it has diverged")
    return values


def _slice_note(world: BoxWorld) -> str | None:
    if world.dimension <= 2:
        return None
    return f"Of the box's {world.dimension} axes the first two are drawn, the others held at a quarter of their side."
