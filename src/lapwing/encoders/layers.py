# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""What networks are built from: constants, dense layers and fast strided convolutions, all on whole batches."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lapwing.encoders.statistics import Statistics, no_statistics
from lapwing.errors import LapwingError


class Constant(eqx.Module):
    """An array that belongs to a model but is never trained: call it for the array, without a gradient."""

    array: Array

    def __call__(self) -> Array:
        """The array; derivatives do not pass."""
        return jax.lax.stop_gradient(self.array)


def trainable_filter(module: Any) -> Any:
    """A tree of booleans for ``equinox.partition``: which leaves of a module are trained.

    Every floating-point array that is not inside a :class:`Constant`, so it serves users' own modules too.

    Example:
        >>> import equinox as eqx
        >>> from lapwing.encoders.registry import build_encoder
        >>> encoder = build_encoder("fourier", (2,), dim=3, key=jax.random.key(0))
        >>> trained, fixed = eqx.partition(encoder, trainable_filter(encoder))
        >>> trained.frequencies.array is None, fixed.frequencies.array.shape
        (True, (2, 128))
    """

    def mark(leaf: Any) -> Any:
        if isinstance(leaf, Constant):
            return jax.tree.map(lambda _: False, leaf)
        return eqx.is_inexact_array(leaf)

    return jax.tree.map(mark, module, is_leaf=lambda leaf: isinstance(leaf, Constant))


class Standardise(eqx.Module):
    """Shift and scale of the inputs by statistics of the data, which are part of the model; takes uint8 as well."""

    centre: Constant
    scale: Constant

    @classmethod
    def create(cls, observation_shape: tuple[int, ...], statistics: Statistics | None) -> Self:
        """From statistics of the data; None changes nothing."""
        given = no_statistics(observation_shape) if statistics is None else statistics
        centre, scale = np.asarray(given.centre, dtype=np.float32), np.asarray(given.scale, dtype=np.float32)
        if centre.shape != observation_shape or scale.shape not in ((), observation_shape):
            raise LapwingError(
                f"statistics of shapes {centre.shape} and {scale.shape} do not fit observations {observation_shape}"
            )
        if not (np.isfinite(centre).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise LapwingError("statistics must be finite, with positive scales")
        return cls(Constant(jnp.asarray(centre)), Constant(jnp.asarray(scale)))

    def __call__(self, batch: Array) -> Float[Array, "n ..."]:
        """(n, ...) observations of any type, centred and scaled."""
        return (batch.astype(self.centre.array.dtype) - self.centre()) / self.scale()


class Dense(eqx.Module):
    """``x W + b`` on rows."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __call__(self, rows: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        """One matrix product for the whole batch."""
        return rows @ self.weight + self.bias


def random_layers(sizes: Sequence[tuple[int, int]], *, key: Array) -> tuple[Dense, ...]:
    """Layers of the given (inputs, outputs), ReLU between them and none behind the last, from one key.

    Weights have variance 2 / inputs (1 / inputs in the last), which keeps the size of signals through ReLU. Biases have
    variance 1 / (3 inputs), not zero, so that kinks on raw coordinates do not all pass through the origin.
    """
    require_sizes("sizes of the layers", [size for pair in sizes for size in pair])
    return _random_layers(tuple(sizes), key)


@functools.partial(jax.jit, static_argnums=0)
def _random_layers(sizes: tuple[tuple[int, int], ...], key: Array) -> tuple[Dense, ...]:
    """One draw and one program for all layers: compiling a generator for each shape takes longer than the drawing."""
    draws = jax.random.normal(key, (sum((inputs + 1) * outputs for inputs, outputs in sizes),), dtype=jnp.float32)
    layers, start = [], 0
    for number, (inputs, outputs) in enumerate(sizes):
        gain = 1.0 if number == len(sizes) - 1 else 2.0
        block = draws[start : start + (inputs + 1) * outputs].reshape(inputs + 1, outputs)
        layers.append(Dense(math.sqrt(gain / inputs) * block[:-1], math.sqrt(1 / (3 * inputs)) * block[-1]))
        start += (inputs + 1) * outputs
    return tuple(layers)


class Perceptron(eqx.Module):
    """Dense layers with ReLU between them (paper: three hidden layers of 256)."""

    layers: tuple[Dense, ...]

    def __call__(self, rows: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        """(n, inputs) to (n, outputs)."""
        for layer in self.layers[:-1]:
            rows = jax.nn.relu(layer(rows))
        return self.layers[-1](rows)

    @property
    def hidden(self) -> list[int]:
        """Sizes of the hidden layers."""
        return [layer.bias.shape[-1] for layer in self.layers[:-1]]

    @property
    def outputs(self) -> int:
        """How many outputs the last layer has."""
        return self.layers[-1].bias.shape[-1]


def perceptron_sizes(inputs: int, hidden: Sequence[int], outputs: int) -> list[tuple[int, int]]:
    """(inputs, outputs) of each layer of a perceptron, for :func:`random_layers`."""
    sizes = [inputs, *hidden, outputs]
    return list(itertools.pairwise(sizes))


def strided_convolution(
    images: Float[Array, "n rows columns channels"], kernel: Dense
) -> Float[Array, "n rows2 columns2 outputs"]:
    """A 3x3 convolution of stride 2, padded by one pixel: rows and columns are halved, rounded up (paper, pixel study).

    As nine strided slices and one matrix product, which on CPU is 20 times faster than XLA's convolution. The
    kernel's weight is (9 * channels, outputs), its rows ordered by kernel row, kernel column, channel.
    """
    rows, columns = -(-images.shape[1] // 2), -(-images.shape[2] // 2)
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    slices = [padded[:, i : i + 2 * rows - 1 : 2, j : j + 2 * columns - 1 : 2] for i in range(3) for j in range(3)]
    return kernel(jnp.concatenate(slices, axis=-1))


def require_sizes(name: str, sizes: Sequence[int]) -> None:
    """Refuse layers of no or negative size."""
    if any(size < 1 for size in sizes):
        raise LapwingError(f"{name} must be positive whole numbers, got {list(sizes)}")
