# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A perceptron on random Fourier features of several scales: the default for low-dimensional continuous input."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.encoders.layers import Constant, Perceptron, Standardise, perceptron_sizes, random_layers, require_sizes
from lapwing.encoders.networks import PAPER_HIDDEN
from lapwing.encoders.standardised import StandardisedNetwork
from lapwing.encoders.statistics import Statistics
from lapwing.errors import LapwingError

DEFAULT_SCALES = (3.0, 10.0, 30.0, 60.0)
"""Radians per unit of input, for inputs in [-0.5, 0.5]: from one slow wave to a tenth of the world."""


def random_frequencies(
    inputs: int, scales: Sequence[float], features_per_scale: int, *, key: Array
) -> Float[Array, "inputs features"]:
    """Angular frequencies, normal with standard deviation ``scale`` in each input, ``features_per_scale`` per scale.

    Example:
        >>> random_frequencies(2, (3.0, 30.0), 16, key=jax.random.key(0)).shape
        (2, 32)
    """
    require_sizes("inputs and features", [inputs, features_per_scale])
    if not scales or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise LapwingError(f"scales of Fourier features must be positive numbers, got {list(scales)}")
    deviations = jnp.repeat(jnp.asarray(scales, dtype=jnp.float32), features_per_scale)
    return deviations * jax.random.normal(key, (inputs, deviations.shape[0]), dtype=jnp.float32)


def fourier_features(
    points: Float[Array, "n inputs"], frequencies: Float[Array, "inputs features"]
) -> Float[Array, "n features2"]:
    """``sqrt(2) [sin(x w), cos(x w)]``: twice as many numbers as frequencies, each of mean square 1.

    There is no factor of 2 pi: a scale is a standard deviation in radians per unit. Inner products of features, over
    their number, estimate ``exp(-scale^2 |x - y|^2 / 2)``, averaged over the scales.
    """
    phases = points @ frequencies
    return jnp.sqrt(2.0) * jnp.concatenate([jnp.sin(phases), jnp.cos(phases)], axis=-1)


class FourierEncoder(StandardisedNetwork):
    """Dense layers on random Fourier features: raw coordinates starve a network of high frequencies.

    The frequencies are drawn once, never trained, and saved with the model. Several scales at once, so that none has to
    be tuned.

    Args of :meth:`create`:
        observation_shape: shape of one observation.
        dim: how many components.
        key: where frequencies and weights come from.
        hidden: sizes of the hidden layers.
        scales: standard deviations of the angular frequencies, in radians per unit of (centred, scaled) input.
        features_per_scale: frequencies per scale; each gives a sine and a cosine.
        statistics: what inputs are centred and scaled by. None leaves them as they are, which suits inputs in
            [-0.5, 0.5]; :func:`range_statistics` brings others there.

    Example:
        >>> import numpy as np
        >>> encoder = FourierEncoder.create((2,), dim=11, key=jax.random.key(0))
        >>> encoder.encode(np.zeros((5, 2))).shape
        (5, 11)
    """

    kind: ClassVar[str] = "fourier"
    frequencies: Constant
    scales: tuple[float, ...] = eqx.field(static=True)

    @classmethod
    def create(
        cls,
        observation_shape: Sequence[int],
        dim: int,
        *,
        key: Array,
        hidden: Sequence[int] = PAPER_HIDDEN,
        scales: Sequence[float] = DEFAULT_SCALES,
        features_per_scale: int = 32,
        statistics: Statistics | None = None,
    ) -> Self:
        """A network with random frequencies and weights."""
        shape = tuple(observation_shape)
        require_sizes("the observation's shape", shape)
        key_frequencies, key_network = jax.random.split(key)
        frequencies = random_frequencies(math.prod(shape), scales, features_per_scale, key=key_frequencies)
        layers = random_layers(perceptron_sizes(2 * frequencies.shape[1], hidden, dim), key=key_network)
        inputs = Standardise.create(shape, statistics)
        return cls(inputs, Perceptron(layers), shape, Constant(frequencies), tuple(scales))

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        points = self.inputs(batch).reshape(batch.shape[0], -1)
        return self.network(fourier_features(points, self.frequencies()))

    def config(self) -> dict[str, Any]:
        """Sizes and scales."""
        return {
            "observation_shape": list(self.observation_shape),
            "dim": self.dim,
            "hidden": self.network.hidden,
            "scales": list(self.scales),
            "features_per_scale": self.frequencies.array.shape[-1] // len(self.scales),
        }
