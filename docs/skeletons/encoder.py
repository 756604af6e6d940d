"""A new encoder: copy this file, rename the two names, and add the row at the end (inside the package: to ENCODERS)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from lapwing.encoders import ENCODERS, EncoderKind


class WaveNetwork(eqx.Module):
    """From (n, *observation_shape) to (n, dim). Arrays are trained; keep those that are not in a `Constant`."""

    weight: jax.Array
    shift: jax.Array | None
    activation: str = eqx.field(static=True)
    gain: float = eqx.field(static=True)

    def __call__(self, batch: jax.Array) -> jax.Array:
        """Components of a batch."""
        function = {"sin": jnp.sin, "tanh": jnp.tanh}[self.activation]
        return self.gain * function(batch @ self.weight + (0.0 if self.shift is None else self.shift))


def wave(
    observation_shape: Sequence[int],
    dim: int,
    *,
    key: jax.Array,
    gain: float = 1.0,
    activation: str = "sin",
    shifted: bool = True,
    scales: dict[str, list[Any]] | None = None,
) -> WaveNetwork:
    """One layer of waves.

    The first three arguments are given by lapwing. The others are the encoder's options: plain data of any kind, with
    defaults; Python, configuration files and the command line take them from this signature, and they are saved.

    Args:
        observation_shape: shape of one observation.
        dim: how many components.
        key: the source of randomness.
        gain: size of the outputs.
        activation: ``sin`` or ``tanh``.
        shifted: whether waves have a phase.
        scales: size of the frequencies, under ``weight``.

    Returns:
        A network from (n, *observation_shape) to (n, dim). Use jax.numpy to make its arrays: a model is loaded by
        tracing this function, so that nothing is allocated before shapes are compared with those of the file.
    """
    scale = 1.0 if scales is None else scales["weight"][0]
    weight = scale * jax.random.normal(key, (observation_shape[0], dim))
    return WaveNetwork(weight, jnp.zeros(dim) if shifted else None, activation, gain)


ENCODERS["wave"] = EncoderKind(wave)
