"""Rules that make eigenvectors comparable: which eigenvalues count as one, and which sign a vector has."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

EXACT_TOLERANCE = 1e-6
LEARNED_TOLERANCE = 1e-3
DATA_TOLERANCE = 1e-2
ABSOLUTE_TOLERANCE = 1e-12


def group_degenerate(eigenvalues: "ArrayLike", tolerance: float) -> list[range]:
    """Group ascending one-step eigenvalues into clusters that span at most ``tolerance`` of their largest member.

    A cluster is measured from its first member, not link by link, so that a dense spectrum does not merge into one.

    Args:
        eigenvalues: (d,) one-step eigenvalues ``1 - mu``, ascending.
        tolerance: largest width of a cluster relative to its largest member.

    Returns:
        Ranges of indices that cover 0 to d - 1 in order; a simple eigenvalue is a range of length 1.

    Example:
        >>> group_degenerate([0.0, 0.1, 0.1, 0.3], 1e-6)
        [range(0, 1), range(1, 3), range(3, 4)]
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    clusters: list[range] = []
    start = 0
    for position, value in enumerate(values):
        # Written so that a NaN begins a cluster of its own.
        if position and not abs(value - values[start]) <= tolerance * abs(value) + ABSOLUTE_TOLERANCE:
            clusters.append(range(start, position))
            start = position
    return [*clusters, range(start, len(values))] if len(values) else []


def canonical_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn each column so that its entry of largest magnitude is positive; the first of equals decides.

    Args:
        vectors: (n, d) one vector per column.

    Returns:
        (n, d) the same vectors, some multiplied by -1.

    Example:
        >>> canonical_signs(np.array([[-2.0, 1.0], [1.0, -1.0]]))
        array([[ 2.,  1.],
               [-1., -1.]])
    """
    return vectors * column_signs(vectors)


def column_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sign of each column's entry of largest magnitude; the first of equals decides.

    Args:
        vectors: (n, d) columns.

    Returns:
        (d,) 1 or -1.
    """
    signs = np.ones(vectors.shape[1])
    for number, column in enumerate(vectors.T):
        magnitude = np.abs(column)
        # Entries equal up to rounding are equal: symmetric worlds have many.
        largest = magnitude >= magnitude.max() * (1.0 - 1e-6)
        signs[number] = -1.0 if column[np.argmax(largest)] < 0 else 1.0
    return signs
