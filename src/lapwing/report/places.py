"""Where a representation is looked at: the cells of a grid, a raster over a box, or the observations a run kept."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import World, world_from_description
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
        if self.kind == "box" and self.world is not None:
            # A step goes along both axes at once, along each by at most this many cells.
            found["reach"] = list(self.world.field_reach(BOX_CELLS) or (1.0, 1.0))
        return found


def places_of(run: Run) -> tuple[Places | None, str | None]:
    """Where to look at a run's components; None and the reason in words where there is nothing to look at."""
    world = world_from_description(run.model.metadata.get("world"))
    if world is not None and (world.num_states or 0) > MAX_PLACES:
        return None, f"{world.num_states:,} states are too many for a page: at most {MAX_PLACES:,} are drawn."
    field = None if world is None else world.field_points(BOX_CELLS)
    if world is not None and field is not None:
        numbers = world.field_image(np.arange(len(field), dtype=np.float64))
        if world.num_states is None and numbers.shape[1] == 1:
            numbers = numbers.T  # a strip lies better on a page than it stands
        cells = np.empty(len(field), dtype=np.int64)
        cells[numbers.compressed().astype(np.int64)] = np.flatnonzero(~np.ma.getmaskarray(numbers))
        kind = "grid" if world.num_states is not None else "box"
        rows, columns = numbers.shape
        return Places(kind, field, world, (rows, columns), cells), _slice_note(world)
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


def _slice_note(world: World) -> str | None:
    axes = world.summary().get("axes", 2)
    if axes <= 2:
        return None
    return f"Of the box's {axes} axes the first two are drawn, the others held at a quarter of their side."
