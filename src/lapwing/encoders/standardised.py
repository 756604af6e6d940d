# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""What the built-in networks share: standardised inputs, a perceptron at the end, and their way into files and back."""

from abc import abstractmethod
from typing import Any, Self

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.encoders.layers import Perceptron, Standardise
from lapwing.encoders.parts import checked_observations, encode_in_chunks, named_arrays, rebuilt, saved_statistics


class StandardisedNetwork(eqx.Module):
    """An encoder that centres and scales its inputs and ends in a perceptron; subclasses say what comes between.

    A subclass adds its fields, ``create(observation_shape, dim, *, key, statistics, ..)``, ``__call__`` and ``config``:
    the arguments of its ``create``.
    """

    inputs: Standardise
    network: Perceptron
    observation_shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """How many components it gives."""
        return self.network.outputs

    @abstractmethod
    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """NumPy observations to float32 values, compiled, chunk by chunk."""
        return encode_in_chunks(self, checked_observations(observations, self.observation_shape), self.dim)

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """The arguments of ``create`` besides the key and the statistics, as JSON types."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, biases, statistics, and what else is an array."""
        return named_arrays(self)

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder again, bit for bit."""
        statistics = saved_statistics(arrays)
        create: Any = cls.create  # type: ignore[attr-defined]  # every subclass has one, each with its own options
        rebuilt_encoder: Self = rebuilt(lambda key: create(**config, key=key, statistics=statistics), config, arrays)
        return rebuilt_encoder
