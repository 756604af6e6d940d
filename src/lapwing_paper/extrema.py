"""Local maxima and minima of a function on the free cells of a grid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lapwing import GridWorld, Layout
from lapwing.errors import DataError

PLATEAU_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Extrema:
    """State numbers of the local maxima and minima, each in rising order."""

    maxima: list[int]
    minima: list[int]

    @property
    def count(self) -> int:
        """How many there are of both."""
        return len(self.maxima) + len(self.minima)


def local_extrema(
    layout: Layout, values: "ArrayLike", tolerance: float = PLATEAU_TOLERANCE, prominence: float = 0.0
) -> Extrema:
    """Local maxima and minima of a function on a grid, the sink states of options (paper, Figure 7).

    Neighbouring cells of equal values form a plateau, which counts once: it is a maximum if all cells around it are
    lower, and is named by its cell nearest to its centre. A function that is constant, on the whole grid or on an
    unconnected part of it, has no extrema there.

    Args:
        layout: whose free cells are the states.
        values: (states,) one per free cell, row by row.
        tolerance: neighbours count as equal if they differ by at most this share of the range of values; a
            function is constant if its range is at most this share of its largest absolute value.
        prominence: leave out extrema that stand out less than this share of the range: the climb from a maximum to a
            higher one leads down by its prominence at least (topological persistence).

    Returns:
        State numbers of the maxima and minima.

    Note:
        The paper does not say how it found its boxes; on a grid the neighbours are those of the four moves.

    Example:
        >>> layout = Layout.from_text("XXXXXXX\\nX.....X\\nXXXXXXX")
        >>> local_extrema(layout, [0.0, 2.0, 1.0, 3.0, 3.0])
        Extrema(maxima=[1, 3], minima=[0, 2])
    """
    heights = _checked(layout, values)
    spread = float(np.ptp(heights))
    if spread <= tolerance * float(np.abs(heights).max()):
        return Extrema([], [])
    targets = GridWorld(layout).successors
    here, there = np.repeat(np.arange(len(heights)), targets.shape[1]), targets.ravel()
    rise = heights[there] - heights[here]
    level = np.abs(rise) <= tolerance * spread
    joined = coo_array((level[level], (here[level], there[level])), shape=(len(heights), len(heights)))
    count, plateaus = connected_components(joined, directed=False)

    leaves = plateaus[here] != plateaus[there]
    has_higher, has_lower = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    has_higher[plateaus[here[leaves & (rise > 0)]]] = True
    has_lower[plateaus[here[leaves & (rise < 0)]]] = True
    # One that has neither fills its part of the grid: constant there, and no extremum.
    highest, lowest = has_lower & ~has_higher, has_higher & ~has_lower
    if prominence > 0:
        highest &= _stands_out(heights, targets, plateaus, prominence * spread)
        lowest &= _stands_out(-heights, targets, plateaus, prominence * spread)
    return Extrema(_representatives(layout, plateaus, highest), _representatives(layout, plateaus, lowest))


def _stands_out(
    heights: NDArray[np.float64], targets: NDArray[np.int32], plateaus: NDArray[np.int32], least: float
) -> NDArray[np.bool_]:
    """(plateaus,) whether each holds a peak of at least this prominence.

    The water falls from the top: every state that appears joins the islands beside it, and where two islands meet, the
    lower peak has shown how far it stands out.
    """
    island = np.full(len(heights), -1)
    prominences = np.zeros(len(heights))

    def peak_of(state: int) -> int:
        while island[state] != state:
            island[state] = island[island[state]]
            state = int(island[state])
        return state

    for state in np.argsort(-heights, kind="stable"):
        island[state] = state
        for neighbour in targets[state]:
            if island[neighbour] < 0 or neighbour == state:
                continue
            higher, lower = sorted((peak_of(int(state)), peak_of(int(neighbour))), key=lambda s: -heights[s])
            if higher != lower:
                prominences[lower] = heights[lower] - heights[state]
                island[lower] = higher
    roots = np.flatnonzero(island == np.arange(len(heights)))
    prominences[roots] = np.inf
    found = np.zeros(plateaus.max() + 1, dtype=bool)
    found[plateaus[prominences >= least]] = True
    return found


def _checked(layout: Layout, values: ArrayLike) -> NDArray[np.float64]:
    heights = np.asarray(values, dtype=np.float64)
    if heights.shape != (layout.num_cells,) or not np.isfinite(heights).all():
        raise DataError(
            f"values must be {layout.num_cells} finite numbers, one per free cell of {layout.name!r}; got shape "
            f"{heights.shape}"
        )
    return heights


def _representatives(layout: Layout, plateaus: NDArray[np.int32], chosen: NDArray[np.bool_]) -> list[int]:
    """For each chosen plateau its member nearest to its centroid, the first of equally near ones."""
    found = []
    for plateau in np.flatnonzero(chosen):
        members = np.flatnonzero(plateaus == plateau)
        cells = layout.cells[members]
        # Scaled by the number of members all is whole numbers, so that ties are ties.
        offsets = len(members) * cells - cells.sum(axis=0)
        found.append(int(members[np.argmin((offsets**2).sum(axis=1))]))
    return sorted(found)
