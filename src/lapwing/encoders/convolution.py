# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Two strided convolutions in front of the perceptron: the paper's network for pixels, with centred inputs."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
from jaxtyping import Array, Float

from lapwing.encoders.layers import (
    Dense,
    Perceptron,
    Standardise,
    perceptron_sizes,
    random_layers,
    require_sizes,
    strided_convolution,
)
from lapwing.encoders.networks import PAPER_HIDDEN
from lapwing.encoders.standardised import StandardisedNetwork
from lapwing.encoders.statistics import Statistics
from lapwing.errors import LapwingError


class ConvolutionalEncoder(StandardisedNetwork):
    """3x3 convolutions of stride 2, then the perceptron (paper, Appendix "Average cosine similarity": pixels).

    Images are (rows, columns) or (rows, columns, channels), of any numeric type, uint8 included.

    Args of :meth:`create`:
        observation_shape: shape of one image.
        dim: how many components.
        key: where the weights come from.
        channels: outputs of each convolution.
        hidden: sizes of the hidden layers behind them.
        statistics: what images are centred and scaled by; give :func:`image_statistics` of the data, without which
            pixels fail.

    Note:
        The paper does not state its padding and channels. Images are padded by one pixel, so that 7 x 9 ones survive.

    Example:
        >>> import numpy as np
        >>> encoder = ConvolutionalEncoder.create((7, 9, 3), dim=11, key=jax.random.key(0))
        >>> encoder.encode(np.zeros((5, 7, 9, 3), dtype=np.uint8)).shape
        (5, 11)
    """

    kind: ClassVar[str] = "conv"
    kernels: tuple[Dense, ...]

    @classmethod
    def create(
        cls,
        observation_shape: Sequence[int],
        dim: int,
        *,
        key: Array,
        channels: Sequence[int] = (16, 16),
        hidden: Sequence[int] = PAPER_HIDDEN,
        statistics: Statistics | None = None,
    ) -> Self:
        """A network with random weights."""
        shape = tuple(observation_shape)
        if len(shape) not in (2, 3):
            raise LapwingError(f"images are (rows, columns) or (rows, columns, channels), got {shape}; try kind 'mlp'")
        depths = [1 if len(shape) == 2 else shape[2], *channels]
        require_sizes("the image's shape and the channels", [*shape, *depths])
        kernels = [(9 * a, b) for a, b in itertools.pairwise(depths)]
        pixels = math.prod(-(-side // 2 ** len(kernels)) for side in shape[:2])
        layers = random_layers([*kernels, *perceptron_sizes(pixels * depths[-1], hidden, dim)], key=key)
        front, behind = layers[: len(kernels)], layers[len(kernels) :]
        return cls(Standardise.create(shape, statistics), Perceptron(behind), shape, front)

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        images = self.inputs(batch)
        images = images[..., None] if images.ndim == 3 else images
        for kernel in self.kernels:
            images = jax.nn.relu(strided_convolution(images, kernel))
        return self.network(images.reshape(batch.shape[0], -1))

    def config(self) -> dict[str, Any]:
        """Sizes."""
        return {
            "observation_shape": list(self.observation_shape),
            "dim": self.dim,
            "channels": [kernel.bias.shape[-1] for kernel in self.kernels],
            "hidden": self.network.hidden,
        }
