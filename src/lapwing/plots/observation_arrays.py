"""Observations as arrays to draw: one key of several, the rows that are shown, frames as pictures."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.encoders.convolution import has_channels_first
from lapwing.encoders.networks import default_kind
from lapwing.errors import ArgumentError
from lapwing.plots.fields import field_values
from lapwing.representation import LaplacianRepresentation

# Images are encoded in blocks, so that those of a figure need not fit into memory as floats.
BLOCK = 1024

Observations = NDArray[Any] | Mapping[str, NDArray[Any]]


def as_observations(observations: "ArrayLike | Mapping[str, Any]") -> Observations:
    """Check what is given as observations.

    Args:
        observations: (n, ...) array, or a mapping of such arrays where observations have several keys.

    Returns:
        One array, or a dictionary of arrays of the same length.

    Raises:
        ArgumentError: if there is no row, or keys differ in how many they have.
    """
    if isinstance(observations, Mapping):
        parts = {str(key): np.asarray(part) for key, part in observations.items()}
        if not parts or len({len(part) if part.ndim else -1 for part in parts.values()}) > 1:
            raise ArgumentError("observations of several keys need at least one key, and as many rows of each")
        for part in parts.values():
            as_observations(part)
        return parts
    rows = np.asarray(observations)
    if rows.ndim < 2 or not len(rows):
        raise ArgumentError(f"observations are (n, ...) with at least one row, got shape {rows.shape}")
    return rows


def count_of(observations: Observations) -> int:
    """How many observations there are.

    Args:
        observations: one array, or one for each key.

    Returns:
        The number of rows.
    """
    return len(next(iter(observations.values())) if isinstance(observations, Mapping) else observations)


def rows_of(observations: Observations, rows: NDArray[Any]) -> Observations:
    """Some of the observations.

    Args:
        observations: one array, or one for each key.
        rows: (m,) numbers of rows, or (n,) whether each is taken.

    Returns:
        Those rows, of every key.
    """
    if isinstance(observations, Mapping):
        return {key: np.asarray(part[rows]) for key, part in observations.items()}
    return np.asarray(observations[rows])


def array_to_draw(observations: Observations) -> NDArray[Any]:
    """The array that stands for observations in a picture; components are still functions of all keys.

    Args:
        observations: one array, or one for each key.

    Returns:
        (n, ...) the array itself; of several keys the first that holds images, else the first of at least two numbers.

    Example:
        >>> keys = {"time": np.zeros((5, 1)), "place": np.zeros((5, 2)), "screen": np.zeros((5, 84, 84))}
        >>> array_to_draw(keys).shape
        (5, 84, 84)
    """
    if not isinstance(observations, Mapping):
        return observations
    parts = list(observations.values())
    vectors = [part for part in parts if part[0].size > 1]
    return next((part for part in parts if are_images(part)), (vectors or parts)[0])


def are_images(rows: NDArray[Any]) -> bool:
    """Whether observations are drawn as pictures, judging by their shape.

    Args:
        rows: (n, ...) observations.

    Returns:
        True for two long axes.
    """
    return default_kind(rows.shape[1:]) == "conv"


def values_at(model: LaplacianRepresentation, observations: Observations) -> NDArray[np.float64]:
    """Components at observations, in blocks.

    Args:
        model: the representation.
        observations: one array, or one for each key.

    Returns:
        (n, dim) components; NaN where a table does not know the observation.
    """
    count = count_of(observations)
    blocks = [np.arange(begin, min(begin + BLOCK, count)) for begin in range(0, count, BLOCK)]
    return np.concatenate([field_values(model, rows_of(observations, block)) for block in blocks])


def picture_of(image: NDArray[Any]) -> NDArray[Any]:
    """An image as (rows, columns) or (rows, columns, 3): its colours, or the newest frame of a stack.

    Args:
        image: with channels or stacked frames first or last, or neither.

    Returns:
        What is drawn of it.

    Example:
        >>> picture_of(np.zeros((4, 84, 84))).shape, picture_of(np.zeros((84, 84, 4))).shape
        ((84, 84), (84, 84))
    """
    if image.ndim == 4:
        image = image[-1]
    elif has_channels_first(image.shape):
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 2 or image.shape[-1] == 3:
        return image
    return image[..., -1]


def scaled(pictures: NDArray[Any], limits: tuple[float, float]) -> NDArray[np.float64]:
    """Pictures in shades from 0 to 1.

    Args:
        pictures: of any numeric type.
        limits: the numbers drawn black and white.

    Returns:
        The same shape.
    """
    low, high = limits
    return np.clip((pictures.astype(np.float64) - low) / max(high - low, 1e-12), 0.0, 1.0)
