"""An encoder whose components are products of other encoders' components: what a product world's solution is."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.encoders.encoder import Encoder
from lapwing.errors import ArgumentError, DamagedFileError

SUPPORT_POINTS = 1 << 14


class ProductEncoder:
    """Products of components of several encoders, each of which sees its own entries of an observation.

    Args:
        factors: the other encoders; each has a ``support`` of its own.
        widths: how many entries each of them takes.
        components: (dim, factors) which component of each factor is multiplied.
    """

    kind: ClassVar[str] = "product"

    def __init__(self, factors: Sequence[Encoder], widths: Sequence[int], components: NDArray[np.int64]) -> None:
        """Keep the parts."""
        self.factors = tuple(factors)
        self.widths = tuple(widths)
        self.components = components

    @property
    def dim(self) -> int:
        """How many components there are."""
        return len(self.components)

    def encode(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Products of the factors' values.

        Args:
            observations: (n, entries) vectors.

        Returns:
            (n, dim) values.
        """
        rows = np.asarray(observations)
        if rows.ndim != 2 or rows.shape[1] != sum(self.widths):
            raise ArgumentError(f"observations must have shape (n, {sum(self.widths)}), got {rows.shape}")
        values = np.ones((len(rows), self.dim))
        parts = np.split(rows, np.cumsum(self.widths)[:-1], axis=1)
        for factor, part, numbers in zip(self.factors, parts, self.components.T, strict=True):
            values *= np.asarray(factor.encode(part), dtype=np.float64)[:, numbers]
        return values

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over: points spread evenly over the product of the factors' distributions (Sobol).

        Returns:
            (16384, entries) points and (16384,) weights.
        """
        from scipy.stats import qmc

        shares = qmc.Sobol(len(self.factors), scramble=True, rng=np.random.default_rng(0)).random(SUPPORT_POINTS)
        parts = []
        for factor, share in zip(self.factors, shares.T, strict=True):
            points, weights = factor.support()  # type: ignore[attr-defined]
            numbers = np.searchsorted(np.cumsum(weights), share * weights.sum(), side="right")
            parts.append(points[np.minimum(numbers, len(points) - 1)])
        return np.concatenate(parts, axis=1), np.full(SUPPORT_POINTS, 1.0 / SUPPORT_POINTS)

    def config(self) -> dict[str, Any]:
        """The entries of each factor, and the factors without their arrays.

        Returns:
            A dictionary of JSON types.
        """
        factors = [{"kind": factor.kind, "config": factor.config()} for factor in self.factors]
        return {"widths": list(self.widths), "factors": factors}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers of the components, and the arrays of the factors.

        Returns:
            Arrays by name.
        """
        found = {"components": self.components}
        for number, factor in enumerate(self.factors):
            found |= {f"{number}.{name}": array for name, array in factor.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, factors: Sequence[Encoder], widths: Sequence[int], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that was saved.

        Args:
            factors: the factors, loaded.
            widths: how many entries each takes.
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        components = arrays.get("components")
        if components is None or components.dtype != np.int64 or components.ndim != 2 or not len(components):
            raise DamagedFileError("the components of this product are not whole numbers; the file is damaged")
        if not components.shape[1] == len(factors) == len(widths) > 0:
            raise DamagedFileError("the components of this product do not fit its factors; the file is damaged")
        if (components < 0).any() or (components >= [factor.dim for factor in factors]).any():
            raise DamagedFileError("this product refers to components that its factors lack; the file is damaged")
        return cls(factors, widths, components)
