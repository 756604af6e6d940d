# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A perceptron on random Fourier features of several scales: the default for low-dimensional continuous input."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.encoders.layers import (
    Constant,
    Perceptron,
    Standardise,
    Statistics,
    perceptron_sizes,
    random_layers,
    range_statistics,
)
from lapwing.encoders.mlp import PAPER_HIDDEN
from lapwing.encoders.plain import FourierFeatures, Layer, flattening, scaling_layer
from lapwing.errors import ArgumentError

DEFAULT_SCALES = (3.0, 10.0, 30.0, 60.0)
"""Radians per unit of input, for inputs in [-0.5, 0.5]: from one slow wave to a tenth of the world."""

FEATURE_RANGE = 0.51
"""Inputs within plus or minus this are left as they are; others are scaled to [-0.5, 0.5]."""


def random_frequencies(
    inputs: int, scales: Sequence[float], features_per_scale: int, *, key: Array
) -> Float[Array, "inputs features"]:
    """Angular frequencies, normal with standard deviation ``scale`` in each input.

    Args:
        inputs: numbers per observation.
        scales: standard deviations, in radians per unit of input.
        features_per_scale: how many frequencies for each scale.
        key: the source of randomness.

    Returns:
        (inputs, len(scales) * features_per_scale).

    Example:
        >>> random_frequencies(2, (3.0, 30.0), 16, key=jax.random.key(0)).shape
        (2, 32)
    """
    if features_per_scale < 1 or not scales or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise ArgumentError(
            f"Fourier features need positive scales and at least one feature each, got {list(scales)} "
            f"and {features_per_scale}"
        )
    deviations = jnp.repeat(jnp.asarray(scales, dtype=jnp.float32), features_per_scale)
    return deviations * jax.random.normal(key, (inputs, deviations.shape[0]), dtype=jnp.float32)


def fourier_features(
    points: Float[Array, "n inputs"], frequencies: Float[Array, "inputs features"]
) -> Float[Array, "n features2"]:
    """``sqrt(2) [sin(x w), cos(x w)]``: twice as many numbers as frequencies, each of mean square 1.

    There is no factor of 2 pi: a scale is a standard deviation in radians per unit. Inner products of features, over
    their number, estimate ``exp(-scale^2 |x - y|^2 / 2)``, averaged over the scales.

    Args:
        points: (n, inputs).
        frequencies: (inputs, features) angular frequencies.

    Returns:
        (n, 2 * features), sines first.
    """
    phases = points @ frequencies
    return jnp.sqrt(2.0) * jnp.concatenate([jnp.sin(phases), jnp.cos(phases)], axis=-1)


class FourierNetwork(eqx.Module):
    """Dense layers on random Fourier features; the frequencies are drawn once and never trained."""

    inputs: Standardise
    network: Perceptron
    frequencies: Constant

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        points = self.inputs(batch).reshape(batch.shape[0], -1)
        return self.network(fourier_features(points, self.frequencies()))

    def plain_layers(self) -> list[Layer]:
        """The network without JAX.

        Returns:
            Its layers, in order.
        """
        shape, features = self.inputs.centre.array.shape, FourierFeatures(np.asarray(self.frequencies.array))
        return [*scaling_layer(self.inputs), *flattening(shape), features, *self.network.plain_layers()]


def fourier(
    observation_shape: Sequence[int],
    dim: int,
    *,
    key: Array,
    statistics: Statistics | None = None,
    hidden: Sequence[int] = PAPER_HIDDEN,
    scales: Sequence[float] = DEFAULT_SCALES,
    features_per_scale: int = 32,
    activation: str = "relu",
    outputs: str = "linear",
) -> FourierNetwork:
    """Dense layers on random Fourier features: raw coordinates starve a network of high frequencies.

    Several scales at once, so that none has to be tuned.

    Args:
        observation_shape: shape of one observation.
        dim: how many components.
        key: the source of frequencies and weights.
        statistics: what inputs are centred and scaled by. None leaves them as they are, which suits inputs in
            [-0.5, 0.5].
        hidden: sizes of the hidden layers.
        scales: standard deviations of the angular frequencies, in radians per unit of (centred, scaled) input.
        features_per_scale: frequencies per scale; each gives a sine and a cosine.
        activation: ``relu``, or ``silu`` for functions without kinks.
        outputs: ``linear``, or ``symlog`` for the symmetric logarithm of the last layer.

    Returns:
        A network from (n, *observation_shape) to (n, dim).
    """
    key_frequencies, key_network = jax.random.split(key)
    frequencies = random_frequencies(math.prod(observation_shape), scales, features_per_scale, key=key_frequencies)
    layers = random_layers(perceptron_sizes(2 * frequencies.shape[1], hidden, dim), key=key_network)
    inputs = Standardise.create(observation_shape, statistics)
    return FourierNetwork(inputs, Perceptron(layers, activation, outputs), Constant(frequencies))


def fourier_statistics(observations: NDArray[Any], weights: NDArray[Any] | None = None) -> Statistics | None:
    """What inputs are scaled by: the range of the data, unless they lie in [-0.5, 0.5] already.

    Args:
        observations: (n, ...) of any numeric type.
        weights: not used.

    Returns:
        :func:`range_statistics`, or None where scaling is not needed.
    """
    inside = observations.min() >= -FEATURE_RANGE and observations.max() <= FEATURE_RANGE
    return None if inside else range_statistics(observations)
