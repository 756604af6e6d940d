"""Sampling noise of eigenvectors: the angle by which finite data turn each, estimated without ground truth."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.data.trajectories import Trajectories
from lapwing.operators.clusters import group_degenerate
from lapwing.operators.operator import Operator

NOISE_TRANSITIONS = 1 << 18
CHUNK = 1 << 14
FEWEST_PARTS = 20
SHORTEST_PART = 10
# Products of two components, over all parts that are multiplied together: 32 MB.
PRODUCTS_AT_ONCE = 1 << 22


def sampling_angles(
    values_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    eigenvalues: NDArray[np.float64],
    data: Trajectories,
    tolerance: float,
    transitions: int | None = None,
) -> NDArray[np.float64]:
    """Root mean square sines of the angles by which noise in the data turns each component.

    To first order, noise mixes component i with j by ``<u_i, (dL - lambda_i dG) u_j> / (lambda_i - lambda_j)``, where
    dL and dG are the errors of the one-step energies and inner products. Episodes are independent, so the variance of
    their sum is the sum of their squares; few long ones are cut into parts, which are not quite. Data of fewer than
    ten parts tell nothing, and every sine is 1. Components that share a cluster need not be told apart and are left
    out, as are all that are not given.

    Args:
        values_at: from rows of ``data.observations`` to (n, d) values of orthonormal components.
        eigenvalues: (d,) ascending one-step eigenvalues.
        data: the experience they come from, of which the first 262,144 transitions are looked at.
        tolerance: relative width of clusters.
        transitions: that they come from, where ``data`` are the first of more.

    Returns:
        (d,) sines.
    """
    cuts = _parts(data)
    dim, count = len(eigenvalues), len(cuts) - 1
    if count < FEWEST_PARTS // 2:
        return np.ones(dim)
    squares, looked_at = np.zeros((dim, dim)), 0
    first = 0
    while first < count:
        last = max(first + 1, int(np.searchsorted(cuts, cuts[first] + CHUNK, side="right")) - 1)
        sums, steps = _part_squares(values_at, eigenvalues, data, cuts[first : last + 1])
        squares += sums
        looked_at += steps
        first = last
    # The variance of a mean over all transitions, from those that were looked at.
    total = data.num_transitions if transitions is None else transitions
    variances = squares * count / (count - 1.0) / (float(looked_at) * total)
    return np.sqrt((variances * _inverse_square_gaps(eigenvalues, tolerance)).sum(axis=1))


def step_variances(operator: Operator, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances of the one-step energies of components where rho is known, so that only counted steps are noisy.

    The flow between a and b is ``(N_ab + N_ba) / (q_a + q_b)`` with ``q = visits / rho``. Given the visits, steps are
    independent; to first order each adds its ``du_i du_j / (q_a + q_b)`` less the mean of that over the steps from a.

    Args:
        operator: with ``visits``, from ``operator_from_trajectories(data, rho=...)``.
        values: (n, d) components at its states.

    Returns:
        (d, d) variances of ``<u_i, L u_j>``.
    """
    assert operator.visits is not None
    steps = operator.matrix.tocoo()
    here, there = steps.coords
    apart = here != there
    here, there, chances = here[apart], there[apart], steps.data[apart]
    change = values[there] - values[here]
    change /= np.sqrt((operator.visits / operator.rho)[here] + (operator.visits / operator.rho)[there])[:, None]
    sums = csr_array((chances, here, np.arange(len(here) + 1)), shape=(len(here), operator.num_states)).T
    found = np.empty((values.shape[1],) * 2)
    for i in range(values.shape[1]):
        terms = change[:, [i]] * change
        found[i] = operator.visits @ (sums @ terms**2 - (sums @ terms) ** 2)
    return np.maximum(found, 0.0)


def step_angles(
    operator: Operator, values: NDArray[np.float64], eigenvalues: NDArray[np.float64], tolerance: float
) -> NDArray[np.float64]:
    """What :func:`sampling_angles` is for counted visits, for a known rho.

    Args:
        operator: with ``visits``.
        values: (n, d) orthonormal components at its states.
        eigenvalues: (d,) ascending one-step eigenvalues.
        tolerance: relative width of clusters.

    Returns:
        (d,) sines.
    """
    squares = step_variances(operator, values) * _inverse_square_gaps(eigenvalues, tolerance)
    return np.sqrt(squares.sum(axis=1))


def _parts(data: Trajectories) -> NDArray[np.int64]:
    """Where parts of the data begin, and the end of the last: episodes, the long ones cut.

    The terms of all parts together add up to nothing, because that is the eigenvalue equation: a few parts alone would
    look as if there were no noise at all.
    """
    offsets = np.asarray(data.offsets)
    used = int(np.searchsorted(offsets, NOISE_TRANSITIONS)) if offsets[-1] > NOISE_TRANSITIONS else len(offsets) - 1
    bounds = offsets[: max(used, 1) + 1]
    longest = max(SHORTEST_PART, min(CHUNK, int(min(bounds[-1], NOISE_TRANSITIONS)) // FEWEST_PARTS))
    long = np.flatnonzero(np.diff(bounds) > longest)
    inner = [np.arange(bounds[number], bounds[number + 1], longest) for number in long]
    cuts = np.unique(np.concatenate([bounds, *inner]))
    return cuts[: int(np.searchsorted(cuts, NOISE_TRANSITIONS + CHUNK)) + 1]


def _part_squares(
    values_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    eigenvalues: NDArray[np.float64],
    data: Trajectories,
    cuts: NDArray[np.int64],
) -> tuple[NDArray[np.float64], int]:
    """(d, d) squares, summed over parts, of each part's energy of i and j less lambda_i times their product; steps."""
    positions = np.arange(cuts[0], cuts[-1])
    ends = np.asarray(data.offsets[1:]) - 1
    # The last state of an episode stands for no step; it is paired with itself and left out.
    inside = ~np.isin(positions, ends[np.searchsorted(ends, cuts[0]) : np.searchsorted(ends, cuts[-1])])
    before = values_at(data.rows(positions)) * inside[:, None]
    # Several next states of a transition are averaged, as counting does.
    following = data.next_rows(positions[inside]).T
    all_after = [_placed(values_at(rows), inside) for rows in following]
    squares = np.zeros((len(eigenvalues), len(eigenvalues)))
    for rows in _rows_of_parts(np.diff(cuts), max(1, PRODUCTS_AT_ONCE // squares.size)):
        here = _padded(before, rows)
        terms = np.zeros((len(rows), *squares.shape))
        for after in all_after:
            there = _padded(after, rows)
            products = _grams(here) + _grams(there)
            terms += 0.5 * (_grams(there - here) - eigenvalues[:, None] * products)
        squares += ((terms / len(all_after)) ** 2).sum(axis=0)
    return squares, int(inside.sum())


def _rows_of_parts(lengths: NDArray[np.int64], most: int) -> Iterator[NDArray[np.int64]]:
    """(parts, longest) rows of parts of a similar length, at most so many of them together; -1 beyond their ends."""
    starts = np.cumsum(lengths) - lengths
    sizes = np.ceil(np.log2(lengths))
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        steps = np.arange(lengths[alike].max())
        for some in np.array_split(alike, -(-len(alike) // most)):
            yield np.where(steps < lengths[some, None], starts[some, None] + steps, -1)


def _padded(values: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """(parts, longest, d) values at rows of (n, d), 0 where there is no row."""
    return values[rows] * (rows >= 0)[:, :, None]


def _grams(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(parts, d, d) inner products over the rows of each part."""
    return np.asarray(values.transpose(0, 2, 1) @ values)


def _placed(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values at the rows that are inside, 0 at the others."""
    found = np.zeros((len(inside), values.shape[1]))
    found[inside] = values
    return found


def _inverse_square_gaps(eigenvalues: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """(d, d) ``1 / (lambda_i - lambda_j)^2``, zero inside a cluster."""
    label = np.empty(len(eigenvalues), dtype=int)
    for number, cluster in enumerate(group_degenerate(eigenvalues, tolerance)):
        label[list(cluster)] = number
    apart = label[:, None] != label[None, :]
    gaps = eigenvalues[:, None] - eigenvalues[None, :]
    return np.where(apart, 1.0 / np.where(apart & (gaps != 0), gaps, 1.0) ** 2, 0.0)
