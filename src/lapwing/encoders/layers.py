# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Parts of networks: constants, standardised inputs and dense layers, all on whole batches."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.data.trajectories import all_finite, row_blocks
from lapwing.encoders.plain import Elementwise, Layer, linear_layer
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean
from lapwing.storage.reading import forget_pages

_BLOCK = 4096
# Images that tell the mean image and the deviation around it well enough.
_ENOUGH_IMAGES = 1 << 16


class Constant(eqx.Module):
    """An array that belongs to a model but is never trained: call it for the array, without a gradient."""

    array: Array

    def __call__(self) -> Array:
        """The array; derivatives do not pass.

        Returns:
            The array that was given.
        """
        return jax.lax.stop_gradient(self.array)


def trainable_filter(module: Any) -> Any:
    """Which leaves of a module are trained: arrays of floats that are not inside a :class:`Constant`.

    Args:
        module: any pytree, a user's own module for example.

    Returns:
        A tree of booleans for ``equinox.partition``.

    Example:
        >>> import equinox as eqx
        >>> from lapwing.encoders import build_encoder
        >>> encoder = build_encoder("fourier", (2,), dim=3, key=jax.random.key(0))
        >>> trained, fixed = eqx.partition(encoder, trainable_filter(encoder))
        >>> trained.module.frequencies.array is None, fixed.module.frequencies.array.shape
        (True, (2, 128))
    """

    def mark(leaf: Any) -> Any:
        if isinstance(leaf, Constant):
            return jax.tree.map(lambda _: False, leaf)
        return eqx.is_inexact_array(leaf)

    return jax.tree.map(mark, module, is_leaf=lambda leaf: isinstance(leaf, Constant))


class Statistics(NamedTuple):
    """What an input is shifted and divided by: ``(x - centre) / scale``.

    Attributes:
        centre: of the shape of one observation.
        scale: a single positive number, or one for each entry of an observation.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]


def byte_statistics(observations: NDArray[np.generic]) -> Statistics | None:
    """What takes bytes to the interval from 0 to 1 (paper: pixels); nothing for other types.

    Args:
        observations: (n, ...) of any numeric type.

    Returns:
        A centre of zeros and the scale 255; None unless the observations are bytes.

    Example:
        >>> byte_statistics(np.zeros((1, 2, 2), dtype=np.uint8)).scale, byte_statistics(np.zeros((1, 2)))
        (array(255., dtype=float32), None)
    """
    if observations.dtype != np.uint8:
        return None
    return Statistics(np.zeros(observations.shape[1:], np.float32), np.array(np.iinfo(np.uint8).max, np.float32))


def image_statistics(observations: NDArray[np.generic], weights: NDArray[np.floating] | None = None) -> Statistics:
    """The mean image of the data and one overall deviation around it.

    All images of a world share their background, so an uncentred network sees little but a constant. One deviation for
    all pixels, because a pixel that hardly ever changes must not be amplified.

    Args:
        observations: (n, ...) of any numeric type; of very many, every k-th.
        weights: (n,) how often each row occurs, where rows are unique observations; None counts each once.

    Returns:
        A centre of the shape of one observation, and a scalar scale.

    Example:
        >>> statistics = image_statistics(np.array([[[0, 4]], [[0, 8]]], dtype=np.uint8))
        >>> statistics.centre
        array([[0., 6.]], dtype=float32)
        >>> float(statistics.scale)
        1.4142135381698608
    """
    every = -(-len(observations) // _ENOUGH_IMAGES) if len(observations) else 1
    observations, weights = observations[::every], None if weights is None else weights[::every]
    share = _shares(observations, weights)
    blocks = list(row_blocks(observations.shape, np.dtype(np.float64).itemsize))

    def images(block: slice) -> NDArray[np.float64]:
        found = observations[block].reshape(len(share[block]), -1).astype(np.float64)
        forget_pages(observations)
        return found

    mean = sum(share[block] @ images(block) for block in blocks)
    variance = sum(share[block] @ np.mean((images(block) - mean) ** 2, axis=1) for block in blocks)
    deviation = float(np.sqrt(variance))
    # Images that are all the same differ from their mean by rounding only, which must not be scaled up to 1.
    constant = deviation <= 1e-9 * float(np.max(np.abs(mean)))
    centre = np.reshape(mean, observations.shape[1:])
    return Statistics(centre.astype(np.float32), np.array(1.0 if constant else deviation, dtype=np.float32))


def range_statistics(observations: NDArray[np.generic], weights: NDArray[np.floating] | None = None) -> Statistics:
    """The middle and the extent of the data along each entry, so that inputs fill [-0.5, 0.5].

    Args:
        observations: (n, ...) of any numeric type.
        weights: not used; the range does not depend on them.

    Returns:
        Centre and scale of the shape of one observation; entries that never change are not scaled.

    Example:
        >>> range_statistics(np.array([[0.0, 5.0], [10.0, 5.0]]))
        Statistics(centre=array([5., 5.], dtype=float32), scale=array([10.,  1.], dtype=float32))
    """
    _shares(observations, None)
    low, high = observations.min(axis=0).astype(np.float64), observations.max(axis=0).astype(np.float64)
    extent = np.where(high > low, high - low, 1.0)
    return Statistics(((low + high) / 2).astype(np.float32), extent.astype(np.float32))


def vector_statistics(observations: NDArray[np.generic], weights: NDArray[np.floating] | None = None) -> Statistics:
    """The mean and the standard deviation of each entry, so that none outweighs another by its unit.

    Args:
        observations: (n, ...) of any numeric type.
        weights: (n,) how often each row occurs, where rows are unique observations; None counts each once.

    Returns:
        Centre and scale of the shape of one observation; entries that never change are not scaled.

    Example:
        >>> vector_statistics(np.array([[0.0, 5.0], [10.0, 5.0]]))
        Statistics(centre=array([5., 5.], dtype=float32), scale=array([5., 1.], dtype=float32))
    """
    share = _shares(observations, weights)
    rows = observations.reshape(len(observations), -1)
    blocks = range(0, len(rows), _BLOCK)
    mean = sum(share[i : i + _BLOCK] @ rows[i : i + _BLOCK].astype(np.float64) for i in blocks)
    squares = sum(share[i : i + _BLOCK] @ (rows[i : i + _BLOCK].astype(np.float64) - mean) ** 2 for i in blocks)
    # Rounding alone must not be scaled up to 1.
    changes = squares > (1e-7 * np.abs(mean)) ** 2
    deviation = np.sqrt(np.where(changes, squares, 1.0))
    shape = observations.shape[1:]
    return Statistics(np.reshape(mean, shape).astype(np.float32), np.reshape(deviation, shape).astype(np.float32))


def _shares(observations: NDArray[np.generic], weights: NDArray[np.floating] | None) -> NDArray[np.float64]:
    """(n,) the share of each row in the data, after checking that statistics can be taken at all."""
    if len(observations) == 0:
        raise DataError("statistics need at least one observation, got none")
    if not all_finite(observations):
        raise DataError("observations hold NaN or infinity; clean the data before taking statistics")
    if weights is None:
        return np.full(len(observations), 1.0 / len(observations))
    share = np.asarray(weights, dtype=np.float64)
    if share.shape != (len(observations),) or share.min() < 0 or not share.sum() > 0:
        raise ArgumentError(f"weights must be {len(observations)} numbers, none negative and not all zero")
    return share / share.sum()


class Standardise(eqx.Module):
    """Shift and scale of the inputs by statistics of the data, which are part of the model; takes uint8 as well."""

    centre: Constant
    scale: Constant

    @classmethod
    def create(cls, observation_shape: Sequence[int], statistics: Statistics | None) -> Self:
        """Standardise by statistics of the data.

        Args:
            observation_shape: shape of one observation.
            statistics: None changes nothing: the paper's raw coordinates.

        Returns:
            A module from (n, *observation_shape) to the same shape in float32.
        """
        shape = tuple(observation_shape)
        if statistics is None:
            return cls(Constant(jnp.zeros(shape, jnp.float32)), Constant(jnp.ones((), jnp.float32)))
        centre, scale = (np.asarray(part, dtype=np.float32) for part in statistics)
        if centre.shape != shape or scale.shape not in ((), shape):
            raise ArgumentError(
                f"statistics of shapes {centre.shape} and {scale.shape} do not fit observations {shape}"
            )
        if not (np.isfinite(centre).all() and np.isfinite(scale).all() and (scale > 0).all()):
            raise ArgumentError("statistics must be finite, with positive scales")
        return cls(Constant(jnp.asarray(centre)), Constant(jnp.asarray(scale)))

    def __call__(self, batch: Array) -> Float[Array, "n ..."]:
        """Observations of any numeric type, centred and scaled.

        Args:
            batch: (n, *observation_shape).

        Returns:
            (n, *observation_shape) in float32.
        """
        return (batch.astype(self.centre.array.dtype) - self.centre()) / self.scale()


class Dense(eqx.Module):
    """``x W + b`` on rows."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __call__(self, rows: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        """One matrix product for the whole batch.

        Args:
            rows: (n, inputs).

        Returns:
            (n, outputs).
        """
        return rows @ self.weight + self.bias


def random_layers(sizes: Sequence[tuple[int, int]], *, key: Array) -> tuple[Dense, ...]:
    """Layers with random weights, for ReLU between them and none behind the last.

    Weights have variance 2 / inputs (1 / inputs in the last), which keeps the size of signals through ReLU. Biases have
    variance 1 / (3 inputs), not zero, so that kinks on raw coordinates do not all pass through the origin.

    Args:
        sizes: (inputs, outputs) of each layer.
        key: the source of randomness.

    Returns:
        One layer per pair of sizes.
    """
    if any(size < 1 for pair in sizes for size in pair):
        raise ArgumentError(f"sizes of layers must be positive whole numbers, got {list(sizes)}")
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


ACTIVATIONS = {"relu": jax.nn.relu, "silu": jax.nn.silu}
"""Functions between layers, by name: ReLU is the paper's, SiLU has no kinks."""


def symlog(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """The symmetric logarithm ``sign(x) log(1 + |x|)``: the identity near 0, and slow growth far from it.

    Args:
        values: any numbers.

    Returns:
        Numbers of the same shape.

    Example:
        >>> symlog(jnp.array([-math.e + 1, 0.0, math.e - 1]))
        Array([-1.,  0.,  1.], dtype=float32)
    """
    return jnp.sign(values) * jnp.log1p(jnp.abs(values))


OUTPUTS = {"linear": lambda values: values, "symlog": symlog}
"""Functions behind the last layer, by name: the paper has none; the symmetric logarithm holds large outputs back."""


class Perceptron(eqx.Module):
    """Dense layers with an activation between them (paper: three hidden layers of 256, ReLU)."""

    layers: tuple[Dense, ...]
    activation: str = eqx.field(static=True, default="relu")
    outputs: str = eqx.field(static=True, default="linear")

    def __check_init__(self) -> None:
        """Refuse unknown names of functions."""
        if self.activation not in ACTIVATIONS:
            raise UnknownNameError(f"no activation {self.activation!r}; {did_you_mean(self.activation, ACTIVATIONS)}")
        if self.outputs not in OUTPUTS:
            raise UnknownNameError(f"no outputs {self.outputs!r}; {did_you_mean(self.outputs, OUTPUTS)}")

    def __call__(self, rows: Float[Array, "n inputs"]) -> Float[Array, "n outputs"]:
        """The network's outputs.

        Args:
            rows: (n, inputs).

        Returns:
            (n, outputs).
        """
        for layer in self.layers[:-1]:
            rows = ACTIVATIONS[self.activation](layer(rows))
        return OUTPUTS[self.outputs](self.layers[-1](rows))

    def plain_layers(self) -> list[Layer]:
        """The layers without JAX.

        Returns:
            Linear layers and the functions between and behind them.
        """
        found: list[Layer] = []
        for layer in self.layers:
            found += [linear_layer(layer), Elementwise(self.activation)]
        found.pop()
        return found if self.outputs == "linear" else [*found, Elementwise(self.outputs)]


def perceptron_sizes(inputs: int, hidden: Sequence[int], outputs: int) -> list[tuple[int, int]]:
    """Sizes of the layers of a perceptron.

    Args:
        inputs: numbers per row.
        hidden: sizes of the hidden layers.
        outputs: components.

    Returns:
        (inputs, outputs) of each layer, for :func:`random_layers`.
    """
    return list(itertools.pairwise([inputs, *hidden, outputs]))
