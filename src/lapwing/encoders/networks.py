# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A multi-layer perceptron on observations as they are: the paper's network for (x, y) coordinates."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from jaxtyping import Array, Float

from lapwing.encoders.layers import Perceptron, Standardise, perceptron_sizes, random_layers, require_sizes
from lapwing.encoders.standardised import StandardisedNetwork
from lapwing.encoders.statistics import Statistics

PAPER_HIDDEN = (256, 256, 256)
"""Hidden layers of the paper's network (paper, Section "Experiments")."""


class MLPEncoder(StandardisedNetwork):
    """Dense layers on flattened observations (paper, Section "Experiments": three hidden layers of 256, ReLU).

    Args of :meth:`create`:
        observation_shape: shape of one observation.
        dim: how many components.
        key: where the weights come from.
        hidden: sizes of the hidden layers.
        statistics: what inputs are centred and scaled by; None leaves them as they are.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> encoder = MLPEncoder.create((2,), dim=11, key=jax.random.key(0))
        >>> encoder.encode(np.zeros((5, 2))).shape
        (5, 11)
    """

    kind: ClassVar[str] = "mlp"

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

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        return self.network(self.inputs(batch).reshape(batch.shape[0], -1))

    def config(self) -> dict[str, Any]:
        """Sizes."""
        return {"observation_shape": list(self.observation_shape), "dim": self.dim, "hidden": self.network.hidden}
