# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""A network of several inputs, such as an image and a vector: one trunk for each, joined by the perceptron."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.data.packing import ENTRIES, RowEntry, RowFormat
from lapwing.encoders.convolution import conv, patch_side
from lapwing.encoders.fourier import DEFAULT_SCALES, fourier
from lapwing.encoders.layers import (
    ACTIVATIONS,
    Perceptron,
    Standardise,
    Statistics,
    perceptron_sizes,
    random_layers,
)
from lapwing.encoders.mlp import PAPER_HIDDEN, mlp
from lapwing.errors import ArgumentError

# Outputs of each trunk, and the hidden layer in it.
FEATURES, TRUNK_HIDDEN = 128, (256,)
# Observations that tell means and ranges well enough.
ENOUGH_ROWS = 1 << 14


def unpack_entries(batch: Array, entries: Sequence[Sequence[Any]]) -> dict[str, Array]:
    """The arrays of packed observations, inside JAX.

    Args:
        batch: (n, bytes) rows, from :meth:`lapwing.data.Trajectories.packed`.
        entries: key, type and shape of each, as ``metadata["entries"]`` lists them.

    Returns:
        (n, ...) by key, in float32.
    """
    found, begin, rows = {}, 0, batch.astype(jnp.uint8)
    for key, dtype, shape in entries:
        width = math.prod(shape) * np.dtype(dtype).itemsize
        part = rows[:, begin : begin + width]
        if dtype == "float32":
            part = jax.lax.bitcast_convert_type(part.reshape(len(batch), -1, 4), jnp.float32)
        found[str(key)] = part.astype(jnp.float32).reshape(len(batch), *shape)
        begin += width
    return found


class NetworkOfSeveralInputs(eqx.Module):
    """A trunk for each entry of packed observations, then the perceptron on all of their features."""

    inputs: Standardise
    network: Perceptron
    trunks: tuple[Any, ...]
    entries: tuple[RowEntry, ...] = eqx.field(static=True)

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, bytes) to (n, dim)."""
        parts = unpack_entries(batch, self.entries)
        numbers = self.inputs(jnp.concatenate([part.reshape(len(batch), -1) for part in parts.values()], axis=1))
        ends = np.cumsum([math.prod(entry.shape) for entry in self.entries])[:-1]
        split = zip(self.trunks, jnp.split(numbers, ends, axis=1), self.entries, strict=True)
        features = [trunk(part.reshape(len(batch), *entry.shape)) for trunk, part, entry in split]
        return self.network(ACTIVATIONS[self.network.activation](jnp.concatenate(features, axis=1)))


def several(
    observation_shape: Sequence[int],
    dim: int,
    *,
    key: Array,
    entries: Sequence[Sequence[Any]],
    kinds: Sequence[str],
    statistics: Statistics | None = None,
    hidden: Sequence[int] = PAPER_HIDDEN,
    activation: str = "relu",
    outputs: str = "linear",
    scales: Sequence[float] = DEFAULT_SCALES,
) -> NetworkOfSeveralInputs:
    """A trunk of its own for each entry of an observation, and dense layers on the features of all.

    Args:
        observation_shape: (bytes,) of packed observations.
        dim: how many components.
        key: the source of the weights.
        entries: key, type and shape of each entry, as ``metadata["entries"]`` of packed data lists them.
        kinds: of the trunks: ``conv``, ``fourier`` or ``mlp`` for each entry.
        statistics: of all numbers of an observation, from :func:`several_statistics`.
        hidden: sizes of the hidden layers behind the trunks.
        activation: ``relu``, or ``silu`` for functions without kinks.
        outputs: ``linear``, or ``symlog`` for the symmetric logarithm of the last layer.
        scales: of trunks of Fourier features, as for :func:`lapwing.encoders.fourier.fourier`.

    Returns:
        A network from (n, bytes) to (n, dim).
    """
    layout = RowFormat.from_metadata({ENTRIES: entries})
    if layout is None or tuple(observation_shape) != (layout.row.itemsize,) or len(kinds) != len(layout.entries):
        raise ArgumentError(f"entries {entries} and trunks {kinds} do not fit rows of {observation_shape} bytes")
    *keys, last = jax.random.split(key, len(kinds) + 1)
    trunks: list[Any] = []
    for entry, kind, own in zip(layout.entries, kinds, keys, strict=True):
        common: dict[str, Any] = {"key": own, "hidden": TRUNK_HIDDEN, "activation": activation}
        if kind == "conv":
            trunks.append(conv(entry.shape, FEATURES, patch=patch_side(entry.shape), **common))
        elif kind == "fourier":
            trunks.append(fourier(entry.shape, FEATURES, scales=scales, **common))
        else:
            trunks.append(mlp(entry.shape, FEATURES, **common))
    numbers = sum(math.prod(entry.shape) for entry in layout.entries)
    layers = random_layers(perceptron_sizes(FEATURES * len(trunks), hidden, dim), key=last)
    inputs = Standardise.create((numbers,), statistics)
    return NetworkOfSeveralInputs(inputs, Perceptron(layers, activation, outputs), tuple(trunks), layout.entries)


def several_statistics(
    packed: NDArray[np.uint8],
    weights: NDArray[Any] | None,
    layout: RowFormat,
    measures: Sequence[Callable[[NDArray[Any], NDArray[Any] | None], Statistics | None]],
) -> Statistics:
    """Centres and scales of all numbers of packed observations, each entry's as its own kind of network takes them.

    Args:
        packed: (n, bytes) rows; of many, some spread over all are taken.
        weights: (n,) how often each occurs; None counts each once.
        layout: of the rows.
        measures: of each entry, from (m, ...) values and weights to statistics.

    Returns:
        (numbers,) centres and scales.
    """
    chosen = np.unique(np.linspace(0, len(packed) - 1, min(len(packed), ENOUGH_ROWS)).astype(np.int64))
    arrays = layout.unpack(np.asarray(packed[chosen]))
    share = None if weights is None else weights[chosen]
    centres, scales = [], []
    for measure, entry in zip(measures, layout.entries, strict=True):
        found = measure(arrays[entry.key], share)
        centre, scale = (np.zeros(entry.shape), np.ones(())) if found is None else found
        centres.append(np.reshape(centre, -1))
        scales.append(np.broadcast_to(scale, entry.shape).reshape(-1))
    return Statistics(*(np.concatenate(parts).astype(np.float32) for parts in (centres, scales)))
