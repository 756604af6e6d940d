# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A multi-layer perceptron on observations as they are: the paper's network for (x, y) coordinates."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.encoders.layers import Perceptron, Standardise, perceptron_sizes, random_layers, require_sizes
from lapwing.encoders.parts import checked_observations, encode_in_chunks, named_arrays, rebuilt, saved_statistics
from lapwing.encoders.statistics import Statistics

PAPER_HIDDEN = (256, 256, 256)
"""Hidden layers of the paper's network (paper, Section "Experiments")."""


class MLPEncoder(eqx.Module):
    """Dense layers on flattened observations (paper, Section "Experiments": three hidden layers of 256, ReLU).

    Args of :meth:`create`:
        observation_shape: shape of one observation.
        dim: how many components.
        key: where the weights come from.
        hidden: sizes of the hidden layers.
        statistics: what inputs are centred and scaled by; None leaves them as they are.

    Example:
        >>> import jax
        >>> encoder = MLPEncoder.create((2,), dim=11, key=jax.random.key(0))
        >>> encoder.encode(np.zeros((5, 2))).shape
        (5, 11)
    """

    kind: ClassVar[str] = "mlp"
    inputs: Standardise
    network: Perceptron
    observation_shape: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        observation_shape: Sequence[int],
        dim: int,
        *,
        key: Array,
        hidden: Sequence[int] = PAPER_HIDDEN,
        statistics: Statistics | None = None,
    ) -> Self:
        """A network with random weights."""
        shape = tuple(observation_shape)
        require_sizes("the observation's shape", shape)
        layers = random_layers(perceptron_sizes(math.prod(shape), hidden, dim), key=key)
        return cls(Standardise.create(shape, statistics), Perceptron(layers), shape)

    @property
    def dim(self) -> int:
        """How many components it gives."""
        return self.network.outputs

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        return self.network(self.inputs(batch).reshape(batch.shape[0], -1))

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """NumPy observations to float32 values, compiled, chunk by chunk."""
        return encode_in_chunks(self, checked_observations(observations, self.observation_shape), self.dim)

    def config(self) -> dict[str, Any]:
        """Sizes."""
        return {"observation_shape": list(self.observation_shape), "dim": self.dim, "hidden": self.network.hidden}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights, biases and statistics."""
        return named_arrays(self)

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder again, bit for bit."""
        statistics = saved_statistics(arrays)
        return rebuilt(lambda key: cls.create(**config, key=key, statistics=statistics), arrays)
