# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A multi-layer perceptron on observations as they are: the paper's network for (x, y) coordinates."""

import math
from collections.abc import Sequence

import equinox as eqx
from jaxtyping import Array, Float

from lapwing.encoders.layers import Perceptron, Standardise, Statistics, perceptron_sizes, random_layers
from lapwing.encoders.plain import Layer, flattening, scaling_layer

PAPER_HIDDEN = (256, 256, 256)
"""Hidden layers of the paper's network (paper, Section "Experiments")."""


class MLPNetwork(eqx.Module):
    """Dense layers on flattened observations."""

    inputs: Standardise
    network: Perceptron

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        return self.network(self.inputs(batch).reshape(batch.shape[0], -1))

    def plain_layers(self) -> list[Layer]:
        """The network without JAX.

        Returns:
            Its layers, in order.
        """
        shape = self.inputs.centre.array.shape
        return [*scaling_layer(self.inputs), *flattening(shape), *self.network.plain_layers()]


def mlp(
    observation_shape: Sequence[int],
    dim: int,
    *,
    key: Array,
    statistics: Statistics | None = None,
    hidden: Sequence[int] = PAPER_HIDDEN,
    activation: str = "relu",
    outputs: str = "linear",
) -> MLPNetwork:
    """Dense layers on flattened observations (paper, Section "Experiments": three hidden layers of 256, ReLU).

    Args:
        observation_shape: shape of one observation.
        dim: how many components.
        key: the source of the weights.
        statistics: what inputs are centred and scaled by; None leaves them as they are.
        hidden: sizes of the hidden layers.
        activation: ``relu``, or ``silu`` for functions without kinks.
        outputs: ``linear``, or ``symlog`` for the symmetric logarithm of the last layer.

    Returns:
        A network from (n, *observation_shape) to (n, dim).
    """
    layers = random_layers(perceptron_sizes(math.prod(observation_shape), hidden, dim), key=key)
    return MLPNetwork(Standardise.create(observation_shape, statistics), Perceptron(layers, activation, outputs))
