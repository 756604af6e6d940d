"""Names to network encoders: build one by kind, and find the class to load by kind.

Bring your own network by wrapping it in :class:`lapwing.encoders.own.OwnEncoder`; to load it by kind as well, give
its class the methods of :class:`lapwing.encoders.base.Encoder` and add it to ``NETWORK_ENCODERS``.
"""

import inspect
from collections.abc import Sequence
from typing import Any

from jaxtyping import Array

from lapwing.encoders.base import Encoder
from lapwing.encoders.convolution import ConvolutionalEncoder
from lapwing.encoders.fourier import FourierEncoder
from lapwing.encoders.networks import MLPEncoder
from lapwing.encoders.own import OwnEncoder
from lapwing.encoders.table import TableEncoder
from lapwing.errors import LapwingError, did_you_mean

NetworkEncoder = TableEncoder | MLPEncoder | FourierEncoder | ConvolutionalEncoder | OwnEncoder

NETWORK_ENCODERS: dict[str, type[Encoder]] = {
    TableEncoder.kind: TableEncoder,
    MLPEncoder.kind: MLPEncoder,
    FourierEncoder.kind: FourierEncoder,
    ConvolutionalEncoder.kind: ConvolutionalEncoder,
    OwnEncoder.kind: OwnEncoder,
}
"""Classes by kind, for loading."""

_BUILDERS: dict[str, Any] = {
    MLPEncoder.kind: MLPEncoder.create,
    FourierEncoder.kind: FourierEncoder.create,
    ConvolutionalEncoder.kind: ConvolutionalEncoder.create,
}

LOW_DIMENSIONS = 8
"""Up to this many continuous inputs, random Fourier features cover the space well enough to be the default."""


def build_encoder(kind: str, observation_shape: Sequence[int], dim: int, key: Array, **options: Any) -> NetworkEncoder:
    """A fresh encoder by kind, its weights a function of ``key`` alone.

    Args:
        kind: ``table``, ``mlp``, ``fourier`` or ``conv``; :func:`default_kind` chooses by shape.
        observation_shape: shape of one observation; ``()`` for a table, whose observations are ids.
        dim: how many components.
        key: where random numbers come from.
        options: those of the kind's ``create``: ``statistics``, ``hidden``, ``scales``, ``features_per_scale``,
            ``channels``; for a table ``states``.

    Example:
        >>> import jax
        >>> build_encoder("fourier", (2,), 11, jax.random.key(0), scales=(3.0, 30.0)).dim
        11
        >>> build_encoder("table", (), 4, jax.random.key(0), states=20).values.shape
        (20, 4)
    """
    if kind == TableEncoder.kind:
        if tuple(observation_shape) or set(options) != {"states"}:
            raise LapwingError("a table is built with observation_shape=() and states=<how many>, and no other option")
        return TableEncoder.create(options["states"], dim, key=key)
    if kind not in _BUILDERS:
        raise LapwingError(f"no encoder {kind!r}; {did_you_mean(kind, [TableEncoder.kind, *_BUILDERS])}")
    build = _BUILDERS[kind]
    known = set(inspect.signature(build).parameters) - {"observation_shape", "dim", "key"}
    for name in options:
        if name not in known:
            raise LapwingError(f"encoder {kind!r} has no option {name!r}; {did_you_mean(name, known)}")
    encoder: NetworkEncoder = build(observation_shape, dim, key=key, **options)
    return encoder


def default_kind(observation_shape: Sequence[int]) -> str:
    """The kind that suits a shape: images ``conv``, a few continuous numbers ``fourier``, anything else ``mlp``.

    Example:
        >>> default_kind((41, 41, 3)), default_kind((2,)), default_kind((271,))
        ('conv', 'fourier', 'mlp')
    """
    shape = tuple(observation_shape)
    if len(shape) in (2, 3):
        return ConvolutionalEncoder.kind
    return FourierEncoder.kind if len(shape) == 1 and shape[0] <= LOW_DIMENSIONS else MLPEncoder.kind
