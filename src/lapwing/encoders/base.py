"""What every encoder offers: values for observations, and its parts as plain data for files."""

from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """A function from observations to ``dim`` components that can be taken apart into JSON and arrays."""

    kind: ClassVar[str]

    @property
    def dim(self) -> int:
        """How many components it gives."""
        ...

    def encode(self, observations: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """(n, ...) observations to (n, dim) values."""
        ...

    def config(self) -> dict[str, Any]:
        """What is needed besides the arrays, as JSON types."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers, by name."""
        ...

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder again, from what :meth:`config` and :meth:`arrays` gave."""
        ...
