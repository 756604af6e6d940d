"""An encoder of the first entries of observations: the ground truth of a world that shows noise besides."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.encoders.encoder import Encoder
from lapwing.errors import ArgumentError, DamagedFileError


class LeadingEncoder:
    """Another encoder's values at the first ``columns`` entries of each observation; the others are ignored.

    Args:
        columns: how many entries the other encoder takes.
        inner: the other encoder.
        points: (m, entries) observations that a score sums over.
        weights: (m,) their weights, summing to one.
    """

    kind: ClassVar[str] = "leading"

    def __init__(self, columns: int, inner: Encoder, points: NDArray[Any], weights: NDArray[np.float64]) -> None:
        """Keep the parts."""
        self.columns = columns
        self.inner = inner
        self.points = points
        self.weights = weights

    @property
    def dim(self) -> int:
        """How many components there are."""
        return self.inner.dim

    def encode(self, observations: ArrayLike) -> NDArray[np.floating[Any]]:
        """Values of the other encoder.

        Args:
            observations: (n, entries) vectors.

        Returns:
            (n, dim) values.
        """
        rows = np.asarray(observations)
        if rows.ndim != 2 or rows.shape[1] != self.points.shape[1]:
            raise ArgumentError(f"observations must have shape (n, {self.points.shape[1]}), got {rows.shape}")
        return self.inner.encode(rows[:, : self.columns])

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over.

        Returns:
            (m, entries) observations and (m,) weights.
        """
        return self.points, self.weights

    def config(self) -> dict[str, Any]:
        """The number of entries, and the other encoder without its arrays.

        Returns:
            A dictionary of JSON types.
        """
        return {"columns": self.columns, "inner": {"kind": self.inner.kind, "config": self.inner.config()}}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Points, weights, and the arrays of the other encoder.

        Returns:
            Arrays by name.
        """
        inside = {f"inner.{name}": array for name, array in self.inner.arrays().items()}
        return inside | {"points": self.points, "weights": self.weights}

    @classmethod
    def from_arrays(cls, columns: int, inner: Encoder, arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that was saved.

        Args:
            columns: how many entries the other encoder takes.
            inner: the other encoder, loaded.
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        points, weights = arrays.get("points"), arrays.get("weights")
        if points is None or weights is None or points.ndim != 2 or not 0 < columns <= points.shape[1]:
            raise DamagedFileError("the points of this encoder do not fit its entries; the file is damaged")
        if weights.shape != (len(points),) or weights.dtype != np.float64 or (weights < 0).any():
            raise DamagedFileError("the weights of this encoder do not fit its points; the file is damaged")
        if not abs(weights.sum() - 1.0) < 1e-6:
            raise DamagedFileError("the weights of this encoder are not a distribution; the file is damaged")
        return cls(columns, inner, points, weights)
