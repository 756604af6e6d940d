"""Encoders in closed form: the cosines of a reflecting walk in a box, and the waves of a walk on a circle."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.environments.box import MAX_DIMENSION, box_eigenfunctions
from lapwing.environments.rotation import circle_eigenfunctions
from lapwing.errors import ArgumentError, DamagedFileError

SUPPORT_POINTS = 1 << 14
CIRCLE_POINTS = 1 << 12


class CosineEncoder:
    """Products of cosines at coordinates scaled to [-0.5, 0.5], one row of mode numbers per component.

    Args:
        modes: (dim, axes) whole numbers, none negative.
    """

    kind: ClassVar[str] = "cosine"

    def __init__(self, modes: NDArray[np.int64]) -> None:
        """Keep the mode numbers."""
        self.modes = modes

    @property
    def dim(self) -> int:
        """How many components there are."""
        return len(self.modes)

    def encode(self, observations: "ArrayLike") -> NDArray[np.float64]:
        """Values of the cosines.

        Args:
            observations: (n, axes) coordinates.

        Returns:
            (n, dim) values, each component with mean square one over the box.
        """
        points = np.asarray(observations, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.modes.shape[1]:
            raise ArgumentError(f"observations must have shape (n, {self.modes.shape[1]}), got {points.shape}")
        return box_eigenfunctions(self.modes, points)

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over: points spread evenly over the box (a Sobol sequence), with equal weights.

        Returns:
            (16384, axes) points and (16384,) weights.
        """
        from scipy.stats import qmc

        points = qmc.Sobol(self.modes.shape[1], scramble=False).random(SUPPORT_POINTS)
        # Half a cell in, so that the first point is not a corner.
        shifted = points + 0.5 / SUPPORT_POINTS - 0.5
        return shifted.astype(np.float32), np.full(SUPPORT_POINTS, 1.0 / SUPPORT_POINTS)

    def config(self) -> dict[str, Any]:
        """Nothing besides the modes.

        Returns:
            An empty dictionary.
        """
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The mode numbers.

        Returns:
            Arrays by name.
        """
        return {"modes": self.modes}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that was saved.

        Args:
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        modes = arrays.get("modes")
        if modes is None or modes.ndim != 2 or not np.issubdtype(modes.dtype, np.integer) or (modes < 0).any():
            raise DamagedFileError("the mode numbers are not whole numbers from 0; the file is damaged")
        if not (modes.shape[0] and 1 <= modes.shape[1] <= MAX_DIMENSION):
            raise DamagedFileError(f"a box has 1 to {MAX_DIMENSION} axes, got modes of shape {modes.shape}; damaged")
        return cls(modes)


class CircleEncoder:
    """Waves cos(k theta) and sin(k theta) at points (cos theta, sin theta), one mode number per component.

    Args:
        modes: (dim, 1) whole numbers; see :func:`lapwing.environments.rotation.circle_eigenfunctions`.
    """

    kind: ClassVar[str] = "circle"

    def __init__(self, modes: NDArray[np.int64]) -> None:
        """Keep the mode numbers."""
        self.modes = modes

    @property
    def dim(self) -> int:
        """How many components there are."""
        return len(self.modes)

    def encode(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Values of the waves.

        Args:
            observations: (n, 2) points.

        Returns:
            (n, dim) values, each component with mean square one over the circle.
        """
        points = np.asarray(observations, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ArgumentError(f"observations must have shape (n, 2), got {points.shape}")
        return circle_eigenfunctions(self.modes, points)

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over: equally spaced angles, with equal weights.

        Returns:
            (4096, 2) points and (4096,) weights.
        """
        angles = 2.0 * np.pi * (np.arange(CIRCLE_POINTS) + 0.5) / CIRCLE_POINTS
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
        return points, np.full(CIRCLE_POINTS, 1.0 / CIRCLE_POINTS)

    def config(self) -> dict[str, Any]:
        """Nothing besides the modes.

        Returns:
            An empty dictionary.
        """
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The mode numbers.

        Returns:
            Arrays by name.
        """
        return {"modes": self.modes}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that was saved.

        Args:
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        modes = arrays.get("modes")
        if modes is None or modes.ndim != 2 or modes.shape[1] != 1 or not np.issubdtype(modes.dtype, np.integer):
            raise DamagedFileError("the mode numbers are not a column of whole numbers; the file is damaged")
        if not len(modes):
            raise DamagedFileError("there are no mode numbers; the file is damaged")
        return cls(modes)
