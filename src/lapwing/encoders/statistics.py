"""Statistics of observations that networks centre and scale their inputs by, and that are saved with them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import LapwingError

_BLOCK = 4096


class Statistics(NamedTuple):
    """What an input is shifted and divided by: ``(x - centre) / scale``.

    Attributes:
        centre: of the shape of one observation.
        scale: a single positive number, or one for each entry of an observation.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]


def no_statistics(observation_shape: tuple[int, ...]) -> Statistics:
    """Statistics that change nothing: the paper's raw coordinates."""
    return Statistics(np.zeros(observation_shape, dtype=np.float32), np.ones((), dtype=np.float32))


def image_statistics(observations: NDArray[np.generic], weights: NDArray[np.floating] | None = None) -> Statistics:
    """The mean image of the data and one overall deviation around it: without them pixels fail.

    All images of a world share their background, so an uncentred network sees little but a constant. One deviation for
    all pixels, because a pixel that hardly ever changes must not be blown up.

    Args:
        observations: (n, ...) of any numeric type.
        weights: (n,) how often each row occurs, where rows are unique observations; None counts each once.

    Example:
        >>> statistics = image_statistics(np.array([[[0, 4]], [[0, 8]]], dtype=np.uint8))
        >>> statistics.centre
        array([[0., 6.]], dtype=float32)
        >>> float(statistics.scale)
        1.4142135381698608
    """
    share = _shares(observations, weights)
    rows = observations.reshape(len(observations), -1)
    blocks = range(0, len(rows), _BLOCK)
    mean = sum(share[i : i + _BLOCK] @ rows[i : i + _BLOCK].astype(np.float64) for i in blocks)
    variance = sum(
        share[i : i + _BLOCK] @ np.mean((rows[i : i + _BLOCK].astype(np.float64) - mean) ** 2, axis=1) for i in blocks
    )
    deviation = float(np.sqrt(variance))
    # Images that are all the same differ from their mean by rounding only, which must not be blown up to 1.
    constant = deviation <= 1e-9 * float(np.max(np.abs(mean)))
    centre = np.reshape(mean, observations.shape[1:])
    return Statistics(centre.astype(np.float32), np.array(1.0 if constant else deviation, dtype=np.float32))


def range_statistics(observations: NDArray[np.generic]) -> Statistics:
    """The middle and the extent of the data along each entry, so that inputs fill [-0.5, 0.5].

    That is the range for which the scales of Fourier features are meant; entries that never change are left unscaled.

    Example:
        >>> range_statistics(np.array([[0.0, 5.0], [10.0, 5.0]]))
        Statistics(centre=array([5., 5.], dtype=float32), scale=array([10.,  1.], dtype=float32))
    """
    _shares(observations, None)
    low, high = observations.min(axis=0).astype(np.float64), observations.max(axis=0).astype(np.float64)
    extent = np.where(high > low, high - low, 1.0)
    return Statistics(((low + high) / 2).astype(np.float32), extent.astype(np.float32))


def _shares(observations: NDArray[np.generic], weights: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """(n,) the share of each row in the data, after checking that statistics can be taken at all."""
    if len(observations) == 0:
        raise LapwingError("statistics need at least one observation, got none")
    if np.issubdtype(observations.dtype, np.floating) and not np.isfinite(observations).all():
        raise LapwingError("observations hold NaN or infinity; clean the data before taking statistics")
    if weights is None:
        return np.full(len(observations), 1.0 / len(observations))
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (len(observations),) or share.min() < 0 or not share.sum() > 0:
        raise LapwingError(f"weights must be {len(observations)} numbers, none negative and not all zero")
    return share / share.sum()
