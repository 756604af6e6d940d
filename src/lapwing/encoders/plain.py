"""Networks as plain layers: NumPy evaluates them without JAX, and files for other libraries are made from them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from lapwing.errors import ArgumentError

Values = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scaling:
    """``(x - centre) / scale``.

    Attributes:
        centre: of the shape of one observation.
        scale: a single number, or one for each entry.
    """

    centre: Values
    scale: Values

    def __call__(self, values: Values) -> Values:
        """(n, ...) to the same shape."""
        return (values - self.centre) / self.scale


@dataclass(frozen=True)
class Rearrangement:
    """Axes in another order, then in another shape.

    Attributes:
        axes: the new order of all axes; the first stays first.
        shape: of one row afterwards.
    """

    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def __call__(self, values: Values) -> Values:
        """(n, ...) to (n, *shape)."""
        return values.transpose(self.axes).reshape(len(values), *self.shape)


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """``sqrt(2) [sin(x w), cos(x w)]``.

    Attributes:
        frequencies: (inputs, features).
    """

    frequencies: Values

    def __call__(self, values: Values) -> Values:
        """(n, inputs) to (n, 2 * features), sines first."""
        phases = values @ self.frequencies
        return np.float32(np.sqrt(2.0)) * np.concatenate([np.sin(phases), np.cos(phases)], axis=1)


@dataclass(frozen=True, eq=False)
class Linear:
    """``x W + b``.

    Attributes:
        weight: (inputs, outputs).
        bias: (outputs,).
    """

    weight: Values
    bias: Values

    def __call__(self, values: Values) -> Values:
        """(n, inputs) to (n, outputs)."""
        return values @ self.weight + self.bias


@dataclass(frozen=True, eq=False)
class Convolution:
    """A convolution of images whose channels come first, padded with zeros.

    Attributes:
        weight: (outputs, channels, side, side).
        bias: (outputs,).
        stride: pixels between two places of the kernel.
        padding: pixels added at the top, left, bottom and right.
    """

    weight: Values
    bias: Values
    stride: int
    padding: tuple[int, int, int, int]

    def __call__(self, values: Values) -> Values:
        """(n, channels, rows, columns) to (n, outputs, rows2, columns2)."""
        top, left, bottom, right = self.padding
        padded = np.pad(values, ((0, 0), (0, 0), (top, bottom), (left, right)))
        windows = sliding_window_view(padded, self.weight.shape[2:], axis=(2, 3))[:, :, :: self.stride, :: self.stride]
        products = np.tensordot(windows, self.weight, axes=([1, 4, 5], [1, 2, 3]))
        return np.moveaxis(products + self.bias, -1, 1)


def _relu(values: Values) -> Values:
    return np.maximum(values, 0)


def _silu(values: Values) -> Values:
    return values * (0.5 * (1 + np.tanh(0.5 * values)))  # the logistic function, without overflow


def _symlog(values: Values) -> Values:
    return np.sign(values) * np.log1p(np.abs(values))


FUNCTIONS = {"relu": _relu, "silu": _silu, "symlog": _symlog}


@dataclass(frozen=True)
class Elementwise:
    """A function of each number.

    Attributes:
        name: a key of :data:`FUNCTIONS`.
    """

    name: str

    def __call__(self, values: Values) -> Values:
        """(n, ...) to the same shape."""
        return FUNCTIONS[self.name](values)


Layer = Scaling | Rearrangement | FourierFeatures | Linear | Convolution | Elementwise


@dataclass(frozen=True, eq=False)
class PlainNetwork:
    """A network as plain layers.

    Attributes:
        observation_shape: shape of one observation.
        dim: how many components it gives.
        layers: in order.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("room:3x3", 300, seed=0)
        >>> model = lw.learn(data, dim=2, steps=4, refine="none", seed=0)
        >>> plain = plain_network(model.encoder, model.dim)
        >>> bool(np.allclose(plain(data.observations[:5]), model.transform(data.observations[:5]), atol=1e-4))
        True
    """

    observation_shape: tuple[int, ...]
    dim: int
    layers: tuple[Layer, ...]

    def __call__(self, observations: NDArray[Any]) -> Values:
        """Components of observations.

        Args:
            observations: (n, *observation_shape) numbers.

        Returns:
            (n, dim).
        """
        given = np.asarray(observations)
        check_shape(given, self.observation_shape)
        values = checked_numbers(given).astype(np.float32, copy=False)
        for layer in self.layers:
            values = layer(values)
        return values


def check_shape(observations: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Refuse observations of another shape than a network takes.

    Args:
        observations: of any shape.
        shape: of one observation.
    """
    if observations.shape[1:] != shape or observations.ndim == 0:
        wanted = ", ".join(map(str, shape))
        raise ArgumentError(f"this encoder takes (n, {wanted}) observations, got shape {observations.shape}")


def checked_numbers(given: NDArray[Any]) -> NDArray[Any]:
    """Observations as networks take them; an error where they are not finite numbers.

    Args:
        given: (n, ...) of any type.

    Returns:
        uint8 as it is, ids of a table as int32, other numbers as float32.
    """
    if given.dtype == np.uint8:
        return given
    if given.ndim == 1 and np.issubdtype(given.dtype, np.integer):
        return given.astype(np.int32)
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == np.bool_):
        raise ArgumentError(f"observations must be numbers, got {given.dtype}")
    rows = given.astype(np.float32, copy=False)
    if not np.isfinite(rows).all():
        raise ArgumentError("observations hold NaN, infinity, or numbers too large for float32")
    return rows


def plain_network(encoder: Any, dim: int) -> PlainNetwork:
    """The plain layers of a network, up to its first components.

    The rotation that ends learning becomes part of the last linear layer, computed in float64.

    Args:
        encoder: a network that has a method ``plain_layers``, rotated or not.
        dim: how many components to keep.

    Returns:
        The network.

    Raises:
        ArgumentError: where the encoder is not such a network.
    """
    matrix = np.eye(encoder.dim)
    inner = encoder
    if encoder.kind == "rotated":
        inner, matrix = encoder.inner, encoder.matrix
    module: Any = getattr(inner, "module", None)
    if not hasattr(module, "plain_layers"):
        raise ArgumentError(_not_plain(inner))
    layers = list(module.plain_layers())
    offset = np.zeros(matrix.shape[1]) if len(matrix) == inner.dim else matrix[0]
    turned = matrix[-inner.dim :, :dim]
    weight, bias = turned, offset[:dim]
    if isinstance(layers[-1], Linear):
        last = layers.pop()
        weight, bias = last.weight.astype(np.float64) @ turned, last.bias.astype(np.float64) @ turned + bias
    layers.append(Linear(weight.astype(np.float32), bias.astype(np.float32)))
    return PlainNetwork(tuple(inner.observation_shape), dim, tuple(layers))


def _not_plain(encoder: Any) -> str:
    known = "networks of kind mlp, fourier and conv can be written as plain layers"
    if encoder.kind == "own":
        return (
            f"{known}; this one is your own: give its class a method plain_layers() that returns the layers of "
            "lapwing.encoders.plain, or convert model.apply with a tool of JAX"
        )
    if hasattr(encoder, "module"):
        return f"{known}; this one is of kind {encoder.kind!r}"
    return (
        f"{known}; this representation is a table or a closed form (encoder {encoder.kind!r}): learn a network from "
        "experience, or take its numbers from model.transform"
    )


def linear_layer(dense: Any) -> Linear:
    """A dense layer as NumPy arrays.

    Args:
        dense: has a weight (inputs, outputs) and a bias.

    Returns:
        The layer.
    """
    return Linear(np.asarray(dense.weight), np.asarray(dense.bias))


def scaling_layer(inputs: Any) -> list[Layer]:
    """The scaling of inputs; nothing where they are left as they are.

    Args:
        inputs: a :class:`lapwing.encoders.Standardise`.

    Returns:
        One layer or none.
    """
    centre, scale = np.asarray(inputs.centre.array), np.asarray(inputs.scale.array)
    return [Scaling(centre, scale)] if centre.any() or (scale != 1).any() else []


def flattening(shape: Sequence[int]) -> list[Layer]:
    """Observations as rows of numbers; nothing where they are.

    Args:
        shape: of one observation.

    Returns:
        One layer or none.
    """
    if len(shape) == 1:
        return []
    return [Rearrangement(tuple(range(len(shape) + 1)), (math.prod(shape),))]
