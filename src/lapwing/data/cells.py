"""Partitions of points into cells: k-means on a subsample, and the nearest cell of every point."""

import numpy as np
from numpy.typing import NDArray

POINTS_PER_CELL = 20
ROUNDS = 4
CHUNK_NUMBERS = 1 << 19


def k_means_centres(
    points: NDArray[np.floating],
    count: int,
    rng: np.random.Generator,
    *,
    points_per_cell: int = POINTS_PER_CELL,
    rounds: int = ROUNDS,
) -> NDArray[np.float32]:
    """Centres of cells by a few rounds of k-means on a subsample.

    Args:
        points: (n, k) finite numbers on comparable scales.
        count: how many cells to begin with; there are never more than distinct points in the subsample.
        rng: source of randomness.
        points_per_cell: size of the subsample.
        rounds: how often centres are moved.

    Returns:
        (m, k) centres, m <= count: cells that lose all their points are dropped.

    Example:
        >>> points = np.repeat([[0.0], [1.0]], 50, axis=0)
        >>> np.sort(k_means_centres(points, 8, np.random.default_rng(0)), axis=0)
        array([[0.],
               [1.]], dtype=float32)
    """
    wanted = min(len(points), points_per_cell * count)
    sample = np.asarray(points[np.sort(rng.choice(len(points), wanted, replace=False))], dtype=np.float32)
    starts = sample[rng.choice(len(sample), min(count, len(sample)), replace=False)]
    centres: NDArray[np.float32] = np.unique(starts, axis=0)
    for _ in range(rounds):
        labels = nearest_cells(sample, centres)
        sizes = np.bincount(labels, minlength=len(centres))
        sums = np.stack([np.bincount(labels, column, len(centres)) for column in sample.T], axis=1)
        centres = (sums[sizes > 0] / sizes[sizes > 0, None]).astype(np.float32)
    return centres


def nearest_cells(points: NDArray[np.floating], centres: NDArray[np.float32]) -> NDArray[np.int32]:
    """The nearest centre of each point.

    Args:
        points: (n, k).
        centres: (m, k).

    Returns:
        (n,) row numbers of ``centres``.
    """
    labels = np.empty(len(points), dtype=np.int32)
    half_squares = 0.5 * (centres**2).sum(axis=1)
    rows = max(1, CHUNK_NUMBERS // len(centres))
    for begin in range(0, len(points), rows):
        block = np.asarray(points[begin : begin + rows], dtype=np.float32)
        labels[begin : begin + rows] = np.argmin(half_squares - block @ centres.T, axis=1)
    return labels
