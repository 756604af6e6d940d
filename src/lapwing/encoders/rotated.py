"""An encoder followed by a matrix: the rotation, scaling and choice of components that ends learning."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from lapwing.encoders.base import Encoder
from lapwing.encoders.registry import NETWORK_ENCODERS
from lapwing.errors import LapwingError
from lapwing.storage.records import Record


class RotatedEncoder:
    """``inner(observations) @ matrix``.

    Args:
        inner: a learned encoder.
        matrix: (inner.dim, dim).
    """

    kind: ClassVar[str] = "rotated"

    def __init__(self, inner: Encoder, matrix: NDArray[np.float64]) -> None:
        """Keep both; the matrix in order of rows, as files hold it, for products round by the layout."""
        self.inner = inner
        self.matrix = np.ascontiguousarray(matrix)

    @property
    def dim(self) -> int:
        """How many components the matrix leaves."""
        return int(self.matrix.shape[1])

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """(n, ...) observations to (n, dim) values."""
        return np.asarray(self.inner.encode(observations), dtype=np.float64) @ self.matrix

    def config(self) -> dict[str, Any]:
        """The inner encoder's kind and configuration."""
        return {"inner": {"kind": self.inner.kind, "config": self.inner.config()}}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The matrix, and the inner encoder's arrays."""
        return {"matrix": self.matrix, **{f"inner.{name}": array for name, array in self.inner.arrays().items()}}

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder again, from what :meth:`config` and :meth:`arrays` gave."""
        parts = Record(config, "the encoder's configuration").record("inner")
        kind = parts.text("kind", longest=100)
        if kind not in NETWORK_ENCODERS:
            raise LapwingError(f"this representation uses a network of kind {kind!r}, unknown here; update lapwing")
        own = {name.removeprefix("inner."): array for name, array in arrays.items() if name.startswith("inner.")}
        inner = NETWORK_ENCODERS[kind].from_parts(parts.record("config").content, own)
        matrix = arrays.get("matrix")
        if matrix is None or matrix.dtype != np.float64:
            raise LapwingError("the rotation is missing or not of float64; the file is damaged")
        if matrix.ndim != 2 or matrix.shape[0] != inner.dim or not matrix.shape[1]:
            raise LapwingError(f"a rotation of shape {matrix.shape} does not fit {inner.dim} components")
        if not np.isfinite(matrix).all():
            raise LapwingError("the rotation holds NaN or infinity; the file is damaged")
        return cls(inner, matrix)
