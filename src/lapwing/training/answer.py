"""From a trained network to a representation: refine, read eigenvalues, put error bars and residuals beside them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.certificate import LARGEST_ANGLE, certify, ritz_angles
from lapwing.operators.clusters import canonical_signs
from lapwing.operators.lags import GapDistribution
from lapwing.operators.ritz import ritz_from_forms
from lapwing.training.forms import Encode, Forms
from lapwing.training.health import refuse_unreadable

RESAMPLES = 200
BOOTSTRAP_TRANSITIONS = 1 << 20
BOOTSTRAP_CHUNK = (1 << 15) - 1
RESAMPLE_BLOCK = 20
FEWEST_PARTS = 50


class Reading(NamedTuple):
    """What the forms say about components ``u @ matrix``.

    Attributes:
        matrix: (d, m) from the network's outputs to components of mean square one.
        mu: (m,) eigenvalues of the one-step operator.
        operator_values: (m,) ``1 - f(mu)``, the scale on which residuals and gaps are measured.
        residuals: (m,) ``|f(P)u - f(mu)u|``.
        angles: (m,) estimated sines of the angles to true eigenvectors.
        orthonormality_error: largest ``|<u_j, u_k> - delta_jk|``.
    """

    matrix: NDArray[np.float64]
    mu: NDArray[np.float64]
    operator_values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    angles: NDArray[np.float64]
    orthonormality_error: float


def read_forms(
    forms: Forms, gaps: GapDistribution, refine: bool, tolerance: float, *, complete: bool = False
) -> Reading:
    """Eigenvalues by the Rayleigh quotient of the training operator, mapped back to mu.

    Args:
        forms: of the network's outputs.
        gaps: the operator the forms were measured with.
        refine: rotate inside the span (Rayleigh-Ritz); else only scale each component to mean square one.
        tolerance: relative width within which eigenvalues count as one.
        complete: whether there are no more components than these, so that none can be missing.
    """
    refuse_unreadable(forms)
    norms = np.diag(forms.gram)
    if refine:
        matrix = ritz_from_forms(forms.gram, forms.cross).rotation
    else:
        matrix = np.diag(1.0 / np.sqrt(np.where(norms > 0, norms, 1.0)))
    turned = forms.rotated(matrix)
    quotients = np.diag(turned.cross)
    squares = np.diag(turned.square) - 2.0 * quotients**2 + quotients**2 * np.diag(turned.middle)
    error = float(np.abs(turned.gram - np.eye(len(quotients))).max())
    residuals = np.sqrt(np.maximum(squares, 0.0))
    values = merge_inseparable(1.0 - quotients, residuals) if refine else 1.0 - quotients
    mu = 1.0 - gaps.slowness(values)
    known = values if complete else np.append(values, gaps.end_of_spectrum)
    bounds = certify(1.0 - mu, residuals, error, tolerance, operator_eigenvalues=known).angle_bounds
    angles = np.fmin(bounds, ritz_angles(values, residuals, tolerance)) if refine else bounds
    return Reading(matrix, mu, values, residuals, angles, error)


def merge_inseparable(values: NDArray[np.float64], residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ascending Ritz values, those of neighbours closer than their own errors replaced by their mean.

    Repeated eigenvalues come out of training slightly apart. A Ritz value is off by at most about residual x sine of
    the angle; where two are no further apart than that, they may be one, and count as one. Components that have not
    converged themselves stay as they are.

    Args:
        values: (m,) ascending eigenvalues ``1 - f(mu)`` of the whole span, spare components included.
        residuals: (m,) of each.
    """
    distance = values[-1] - values
    sines = np.divide(residuals, distance, out=np.full_like(values, np.inf), where=distance > 0)
    settled = sines <= LARGEST_ANGLE
    errors = np.multiply(sines, residuals, out=np.zeros_like(values), where=settled)
    joined = settled[:-1] & settled[1:] & (np.diff(values) <= errors[:-1] + errors[1:])
    group = np.concatenate([[0], np.cumsum(~joined)])
    return (np.bincount(group, weights=values) / np.bincount(group))[group]


def unresolved_angles(reading: Reading, walks: int, tolerance: float) -> NDArray[np.float64]:
    """(m,) sines that residuals averaged over finitely many walks cannot see.

    A residual's square is a mean of products of two deviations, each of variance ``1 - c^2`` for a quotient c; two
    standard errors of it may be hidden, however small the estimate came out.
    """
    quotients = 1.0 - reading.operator_values
    hidden = np.sqrt(2.0 * np.maximum(1.0 - quotients**2, 0.0) / np.sqrt(walks))
    return ritz_angles(reading.operator_values, hidden, tolerance)


def with_canonical_signs(reading: Reading, sample: NDArray[np.float64]) -> Reading:
    """The same components, each turned so that its entry of largest magnitude in the sample is positive."""
    values = sample @ reading.matrix
    turned = canonical_signs(values)
    place = np.argmax(np.abs(values), axis=0), np.arange(values.shape[1])
    signs = np.where(turned[place] * values[place] < 0, -1.0, 1.0)
    return reading._replace(matrix=reading.matrix * signs)


def bootstrap_errors(
    encode: Encode, matrix: NDArray[np.float64], mu: NDArray[np.float64], data: Trajectories, seed: int
) -> NDArray[np.float64]:
    """(m,) standard errors of mu from resampling whole episodes, or long parts of them where there are few.

    To first order a change of the data moves an eigenvalue by its own quadratic form, so the components are held fixed
    and their one-step energies per episode resampled; the relative error carries over to mu's slowness ``1 - mu``.
    """
    energies, norms, transitions = _sums_over_parts(encode, matrix, data)
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(0, RESAMPLES, RESAMPLE_BLOCK):
        weights = rng.poisson(1.0, size=(RESAMPLE_BLOCK, len(energies))).astype(np.float64)
        samples.append((weights @ energies) / np.maximum(weights @ norms, 1e-300))
    spread = np.concatenate(samples).std(axis=0, ddof=1)
    # Fewer steps were looked at than there are: their noise shrinks with the square root of the number.
    spread *= np.sqrt(transitions / data.num_transitions)
    centre = energies.sum(axis=0) / np.maximum(norms.sum(axis=0), 1e-300)
    slowness = np.maximum(1.0 - mu, 0.0)
    return np.where(centre > 1e-12, spread * slowness / np.maximum(centre, 1e-12), 0.0)


def _sums_over_parts(
    encode: Encode, matrix: NDArray[np.float64], data: Trajectories
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """(parts, m) one-step energies and squared norms of each episode, up to about a million steps; how many those are.

    Where there are few episodes, long ones are cut into parts: one alone could not be resampled.
    """
    count = int(np.searchsorted(data.offsets[1:], BOOTSTRAP_TRANSITIONS)) + 1
    count = min(count, data.num_episodes)
    offsets = np.array(data.offsets[: count + 1])
    # Of an endless last episode no more than the rest may have.
    offsets[-1] = min(offsets[-1], offsets[-2] + BOOTSTRAP_TRANSITIONS)
    parts = offsets[:-1]
    if count < FEWEST_PARTS:
        parts = np.union1d(parts, np.arange(0, offsets[-1], max(1, offsets[-1] // FEWEST_PARTS)))
    values_at = _values_at(encode, matrix, data)
    bounds = np.append(parts, offsets[-1])
    sums: list[NDArray[np.float64]] = []
    first = 0
    while first < len(parts):
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + BOOTSTRAP_CHUNK, side="right")) - 1)
        sums.append(_sums_of(values_at, offsets, bounds[first : last + 1]))
        first = last
    energies, norms = np.concatenate(sums, axis=1)
    return energies, norms, int(offsets[-1]) - count


def _values_at(
    encode: Encode, matrix: NDArray[np.float64], data: Trajectories
) -> Callable[[NDArray[np.int64]], NDArray[np.float64]]:
    """A function from positions of states to (n, m) components; a table is encoded once."""
    if data.has_table:
        table: NDArray[Any] = np.asarray(encode(np.asarray(data.observations)), dtype=np.float64) @ matrix
        return lambda positions: table[data.rows(positions)]
    return lambda positions: np.asarray(encode(np.asarray(data.observations[positions])), dtype=np.float64) @ matrix


def _sums_of(
    values_at: Callable[[NDArray[np.int64]], NDArray[np.float64]],
    offsets: NDArray[np.int64],
    bounds: NDArray[np.int64],
) -> NDArray[np.float64]:
    """(2, parts, m) energies and squared norms of the parts between the bounds."""
    begin, end = int(bounds[0]), int(bounds[-1])
    # One state more than the parts have: a step leads out of a part that is cut inside an episode.
    values = values_at(np.minimum(np.arange(begin, end + 1), offsets[-1] - 1))
    before, after = values[:-1], values[1:]
    steps = 0.5 * (after - before) ** 2
    squares = 0.5 * (after**2 + before**2)
    # The last state of each episode stands for no step, but keeps its row.
    ends = offsets[1:] - 1
    closing = ends[np.searchsorted(ends, begin) : np.searchsorted(ends, end)] - begin
    steps[closing] = 0.0
    squares[closing] = 0.0
    starts = bounds[:-1] - begin
    return np.stack([np.add.reduceat(steps, starts), np.add.reduceat(squares, starts)])
