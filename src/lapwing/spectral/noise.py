"""What finite data do to eigenvectors: the angle by which sampling noise turns each, estimated without a truth."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.spectral.clusters import group_degenerate
from lapwing.trajectories.container import Trajectories

NOISE_TRANSITIONS = 1 << 18
CHUNK = 1 << 14


def sampling_angles(
    values_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    eigenvalues: NDArray[np.float64],
    data: Trajectories,
    tolerance: float,
) -> NDArray[np.float64]:
    """(d,) root mean square sines of the angles by which noise in the data turns each component.

    To first order, noise mixes component i with j by ``<u_i, (dL - lambda_i dG) u_j> / (lambda_i - lambda_j)``, where
    dL and dG are the errors of the one-step energies and inner products. Episodes are independent, so the variance of
    their sum is the sum of their squares. Components that share a cluster need not be told apart and are left out, as
    are all that are not given.

    Args:
        values_at: from rows of ``data.observations`` to (n, d) values of orthonormal components.
        eigenvalues: (d,) ascending one-step eigenvalues.
        data: the experience they come from.
        tolerance: relative width of clusters.
    """
    dim = len(eigenvalues)
    squares, transitions = np.zeros((dim, dim)), 0
    first = 0
    offsets = np.asarray(data.offsets)
    while first < data.num_episodes and transitions < NOISE_TRANSITIONS:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1)
        last = min(last, data.num_episodes)
        terms, steps = _episode_terms(values_at, eigenvalues, data, first, last)
        squares += (terms**2).sum(axis=0)
        transitions += steps
        first = last
    # The variance of a mean over all transitions, from those that were looked at.
    variances = squares / (float(transitions) * data.num_transitions)
    return np.sqrt((variances * _inverse_square_gaps(eigenvalues, tolerance)).sum(axis=1))


def _episode_terms(
    values_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    eigenvalues: NDArray[np.float64],
    data: Trajectories,
    first: int,
    last: int,
) -> tuple[NDArray[np.float64], int]:
    """(episodes, d, d) sums over each episode of the energy of i and j less lambda_i times their product; steps."""
    offsets = np.asarray(data.offsets[first : last + 1])
    values = values_at(data.rows(np.arange(offsets[0], offsets[-1])))
    inside = np.ones(len(values), dtype=bool)
    inside[offsets[1:] - offsets[0] - 1] = False
    # The last state of each episode, the very last included, stands for no step, but keeps its row.
    before, after = values, np.roll(values, -1, axis=0)
    change = (after - before) * inside[:, None]
    before, after = before * inside[:, None], after * inside[:, None]
    terms: Any = 0.5 * change[:, :, None] * change[:, None, :]
    products = 0.5 * (before[:, :, None] * before[:, None, :] + after[:, :, None] * after[:, None, :])
    terms = terms - eigenvalues[None, :, None] * products
    return np.add.reduceat(terms, offsets[:-1] - offsets[0], axis=0), int(inside.sum())


def _inverse_square_gaps(eigenvalues: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """(d, d) ``1 / (lambda_i - lambda_j)^2``, zero inside a cluster."""
    label = np.empty(len(eigenvalues), dtype=int)
    for number, cluster in enumerate(group_degenerate(eigenvalues, tolerance)):
        label[list(cluster)] = number
    apart = label[:, None] != label[None, :]
    gaps = eigenvalues[:, None] - eigenvalues[None, :]
    return np.where(apart, 1.0 / np.where(apart & (gaps != 0), gaps, 1.0) ** 2, 0.0)
