# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Strided convolutions in front of the perceptron: the paper's network for pixels, with centred inputs.

Large images are cut into patches first, each embedded by one matrix, as in vision transformers.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lapwing.devices import images_at_once
from lapwing.encoders.layers import (
    ACTIVATIONS,
    Dense,
    Perceptron,
    Standardise,
    Statistics,
    perceptron_sizes,
    random_layers,
)
from lapwing.encoders.mlp import PAPER_HIDDEN
from lapwing.encoders.plain import Convolution, Elementwise, Layer, Rearrangement, scaling_layer
from lapwing.errors import ArgumentError

# Channels of grey images, colours, and four stacked frames; and a side that only frames have.
COMMON_CHANNELS = (1, 3, 4)
SMALLEST_FRAME = 16
# Images with a longer side are cut into at most so many patches along it, each of which becomes so many numbers.
LARGEST_WHOLE, PATCHES, PATCH_CHANNELS = 48, 24, 32


def strided_convolution(
    images: Float[Array, "n rows columns channels"], kernel: Dense
) -> Float[Array, "n rows2 columns2 outputs"]:
    """A 3x3 convolution of stride 2, padded by one pixel: rows and columns are halved, rounded up (paper, pixel study).

    As nine strided slices and one matrix product, which on CPU is 20 times faster than XLA's convolution. The
    kernel's weight is (9 * channels, outputs), its rows ordered by kernel row, kernel column, channel.

    Args:
        images: (n, rows, columns, channels).
        kernel: weight and bias.

    Returns:
        (n, ceil(rows / 2), ceil(columns / 2), outputs).
    """
    rows, columns = -(-images.shape[1] // 2), -(-images.shape[2] // 2)
    padded = jnp.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    slices = [padded[:, i : i + 2 * rows - 1 : 2, j : j + 2 * columns - 1 : 2] for i in range(3) for j in range(3)]
    return kernel(jnp.concatenate(slices, axis=-1))


def has_channels_first(observation_shape: Sequence[int]) -> bool:
    """Whether an image has its channels, or stacked frames, before its rows and columns, judging by its shape.

    Args:
        observation_shape: shape of one image.

    Returns:
        True for three axes of which the first is shortest and as short as channels are.

    Example:
        >>> has_channels_first((4, 84, 84)), has_channels_first((84, 84, 4)), has_channels_first((7, 9, 20))
        (True, False, False)
    """
    if len(observation_shape) != 3:
        return False
    first, shortest = observation_shape[0], min(observation_shape[1:])
    return first < shortest and (first in COMMON_CHANNELS or 2 * first <= shortest >= SMALLEST_FRAME)


def as_channels_last(images: Float[Array, "n ..."], channels_first: bool) -> Float[Array, "n rows columns channels"]:
    """Images in any of the usual layouts as (n, rows, columns, channels).

    Args:
        images: (n, rows, columns), (n, rows, columns, channels), (n, channels, rows, columns), or stacked frames
            (n, frames, rows, columns, channels).
        channels_first: whether the second axis of four are the channels.

    Returns:
        Frames of a stack become channels.
    """
    if images.ndim == 3:
        return images[..., None]
    if images.ndim == 5:
        images = jnp.moveaxis(images, 1, -2)
        return images.reshape(*images.shape[:3], -1)
    return jnp.moveaxis(images, 1, -1) if channels_first else images


def patch_side(observation_shape: Sequence[int]) -> int:
    """The side of patches that suits images of a size: none up to 48 pixels, then at most 24 along the longer side.

    Args:
        observation_shape: shape of one image.

    Returns:
        Pixels; 1 for none.

    Example:
        >>> patch_side((41, 41, 3)), patch_side((84, 84)), patch_side((210, 160, 3))
        (1, 4, 9)
    """
    longest = max(observation_shape)
    return 1 if longest <= LARGEST_WHOLE else -(-longest // PATCHES)


def as_patches(images: Float[Array, "n rows columns channels"], side: int) -> Float[Array, "n rows2 columns2 inputs"]:
    """Images cut into square patches, padded with zeros where the last ones are not whole.

    Args:
        images: (n, rows, columns, channels).
        side: of a patch, in pixels.

    Returns:
        (n, ceil(rows / side), ceil(columns / side), side * side * channels).
    """
    n, rows, columns, channels = images.shape
    padded = jnp.pad(images, ((0, 0), (0, -rows % side), (0, -columns % side), (0, 0)))
    cut = padded.reshape(n, -(-rows // side), side, -(-columns // side), side, channels)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, cut.shape[1], cut.shape[3], -1)


def in_blocks(network: Callable[[Array], Array], batch: Array) -> Array:
    """A network's outputs on a large batch, on a CPU block after block, so that a block's layers stay in its cache.

    Derivatives compute each block's layers again rather than keep them. Blocks take every k-th row, so that a batch
    laid over several devices stays where it is.

    Args:
        network: from (n, ...) to (n, dim).
        batch: (n, ...).

    Returns:
        (n, dim).
    """
    most = images_at_once()
    if most is None or len(batch) <= most:
        return network(batch)
    count = -(-len(batch) // most)
    size = -(-len(batch) // count)
    padded = jnp.pad(batch, ((0, size * count - len(batch)), *((0, 0),) * (batch.ndim - 1)))
    blocks = jnp.swapaxes(padded.reshape(size, count, *batch.shape[1:]), 0, 1)
    outputs = jax.lax.map(jax.checkpoint(lambda block: network(block)), blocks)
    return jnp.swapaxes(outputs, 0, 1).reshape(size * count, -1)[: len(batch)]


class ConvolutionalNetwork(eqx.Module):
    """Patches, if any, then 3x3 convolutions of stride 2, then the perceptron."""

    inputs: Standardise
    network: Perceptron
    kernels: tuple[Dense, ...]
    embedding: Dense | None = None
    patch: int = eqx.field(static=True, default=1)
    channels_first: bool = eqx.field(static=True, default=False)

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        return in_blocks(self._outputs, batch)

    def _outputs(self, batch: Array) -> Float[Array, "n dim"]:
        activation = ACTIVATIONS[self.network.activation]
        images = as_channels_last(self.inputs(batch), self.channels_first)
        if self.embedding is not None:
            images = activation(self.embedding(as_patches(images, self.patch)))
        for kernel in self.kernels:
            images = activation(strided_convolution(images, kernel))
        return self.network(images.reshape(batch.shape[0], -1))

    def plain_layers(self) -> list[Layer]:
        """The network without JAX, on images whose channels come first, as other libraries have them.

        Returns:
            Its layers, in order.
        """
        shape, activation = self.inputs.centre.array.shape, Elementwise(self.network.activation)
        to_channels_first = _channels_first_layout(shape, self.channels_first)
        channels, rows, columns = to_channels_first.shape
        found: list[Layer] = [*scaling_layer(self.inputs), to_channels_first]
        if self.embedding is not None:
            padding = (0, 0, -rows % self.patch, -columns % self.patch)
            found += [_convolution(self.embedding, channels, self.patch, self.patch, padding), activation]
            channels, rows, columns = self.embedding.weight.shape[1], -(-rows // self.patch), -(-columns // self.patch)
        for kernel in self.kernels:
            found += [_convolution(kernel, channels, 3, 2, (1, 1, 1, 1)), activation]
            channels, rows, columns = kernel.weight.shape[1], -(-rows // 2), -(-columns // 2)
        flat = Rearrangement((0, 2, 3, 1), (rows * columns * channels,))
        return [*found, flat, *self.network.plain_layers()]


def _channels_first_layout(shape: tuple[int, ...], channels_first: bool) -> Rearrangement:
    """From images in any of the usual layouts to (channels, rows, columns), frames of a stack as channels."""
    if len(shape) == 2:
        return Rearrangement((0, 1, 2), (1, *shape))
    if len(shape) == 4:
        frames, rows, columns, depth = shape
        return Rearrangement((0, 1, 4, 2, 3), (frames * depth, rows, columns))
    if channels_first:
        return Rearrangement((0, 1, 2, 3), shape)
    rows, columns, depth = shape
    return Rearrangement((0, 3, 1, 2), (depth, rows, columns))


def _convolution(
    kernel: Dense, channels: int, side: int, stride: int, padding: tuple[int, int, int, int]
) -> Convolution:
    """A kernel whose rows are ordered by kernel row, kernel column and channel."""
    weight = np.asarray(kernel.weight).reshape(side, side, channels, -1).transpose(3, 2, 0, 1)
    return Convolution(np.ascontiguousarray(weight), np.asarray(kernel.bias), stride, padding)


def conv(
    observation_shape: Sequence[int],
    dim: int,
    *,
    key: Array,
    statistics: Statistics | None = None,
    channels: Sequence[int] = (16, 16),
    hidden: Sequence[int] = PAPER_HIDDEN,
    centre: bool = True,
    activation: str = "relu",
    outputs: str = "linear",
    channels_first: bool | None = None,
    patch: int = 1,
) -> ConvolutionalNetwork:
    """3x3 convolutions of stride 2, then the perceptron (paper, Appendix "Average cosine similarity": pixels).

    Args:
        observation_shape: shape of one image: (rows, columns), (rows, columns, channels), (channels, rows, columns),
            or a stack of frames (frames, rows, columns, channels).
        dim: how many components.
        key: the source of the weights.
        statistics: what images are centred and scaled by, :func:`lapwing.encoders.layers.image_statistics` of the data.
        channels: outputs of each convolution.
        hidden: sizes of the hidden layers behind them.
        centre: whether to use the statistics.
        activation: ``relu``, or ``silu`` for functions without kinks.
        outputs: ``linear``, or ``symlog`` for the symmetric logarithm of the last layer.
        channels_first: whether the first of three axes are the channels; None to judge by the shape.
        patch: side of the square patches, in pixels, that large images are cut into and that are embedded by one
            matrix before the convolutions; 1 for none, as in the paper. :func:`patch_side` suits a size.

    Returns:
        A network from (n, *observation_shape) images of any numeric type, uint8 included, to (n, dim).

    Note:
        The paper does not state its padding and channels. Images are padded by one pixel, so that 7 x 9 ones survive.
    """
    if len(observation_shape) not in (2, 3, 4):
        raise ArgumentError(
            f"images are (rows, columns) or (rows, columns, channels), got {tuple(observation_shape)}; try kind 'mlp'"
        )
    first = has_channels_first(observation_shape) if channels_first is None else channels_first
    if first and len(observation_shape) != 3:
        raise ArgumentError(f"channels_first is for images of three axes, got {tuple(observation_shape)}")
    blank = jnp.zeros((1, *observation_shape), jnp.float32)
    _, rows, columns, depth = jax.eval_shape(lambda images: as_channels_last(images, first), blank).shape
    if patch < 1:
        raise ArgumentError(f"patch is the side of the patches in pixels, at least 1; got {patch}")
    embedding = [(patch * patch * depth, PATCH_CHANNELS)] if patch > 1 else []
    depths = [PATCH_CHANNELS if embedding else depth, *channels]
    kernels = [*embedding, *((9 * a, b) for a, b in itertools.pairwise(depths))]
    pixels = math.prod(-(-side // (patch * 2 ** len(channels))) for side in (rows, columns))
    layers = random_layers([*kernels, *perceptron_sizes(pixels * depths[-1], hidden, dim)], key=key)
    inputs = Standardise.create(observation_shape, statistics if centre else None)
    return ConvolutionalNetwork(
        inputs,
        Perceptron(layers[len(kernels) :], activation, outputs),
        layers[len(embedding) : len(kernels)],
        layers[0] if embedding else None,
        patch,
        first,
    )
