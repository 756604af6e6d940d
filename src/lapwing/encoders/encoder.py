"""The interface of encoders: values for observations, and their parts as plain data for files."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Encoder(Protocol):
    """A function from observations to ``dim`` components that can be taken apart into JSON and arrays."""

    @property
    def kind(self) -> str:
        """The name under which files know it."""
        ...

    @property
    def dim(self) -> int:
        """How many components it gives."""
        ...

    def encode(self, observations: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """Components of observations.

        Args:
            observations: (n, ...) of any numeric type.

        Returns:
            (n, dim) values.
        """
        ...

    def config(self) -> dict[str, Any]:
        """What is needed besides the arrays to build it again.

        Returns:
            A dictionary of JSON types.
        """
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers that are saved.

        Returns:
            Arrays by name.
        """
        ...
