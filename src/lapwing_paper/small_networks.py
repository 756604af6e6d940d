"""Fully connected networks with rectified units, for agents."""

from itertools import pairwise

import jax
import numpy as np
from jax import Array

Network = list[tuple[Array, Array]]
"""Weights and biases of each layer."""


def new_network(sizes: tuple[int, ...], key: Array) -> Network:
    """Weights and biases drawn uniformly within one over the root of a layer's inputs.

    Args:
        sizes: inputs, units of each hidden layer, outputs.
        key: source of randomness.

    Returns:
        The layers.
    """
    layers = []
    for (inputs, outputs), one in zip(pairwise(sizes), jax.random.split(key, len(sizes) - 1), strict=True):
        drawn = jax.random.uniform(one, (inputs + 1, outputs), minval=-1.0, maxval=1.0) / np.sqrt(inputs)
        layers.append((drawn[:-1], drawn[-1]))
    return layers


def apply_network(network: Network, inputs: Array) -> Array:
    """The outputs of a network; its last layer is linear.

    Args:
        network: its layers.
        inputs: (n, inputs) rows.

    Returns:
        (n, outputs) values.
    """
    values = inputs
    for weights, biases in network[:-1]:
        values = jax.nn.relu(values @ weights + biases)
    weights, biases = network[-1]
    return values @ weights + biases
