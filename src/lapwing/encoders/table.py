# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The tabular setting: one free number for each state and component, indexed by integer ids."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lapwing.errors import ArgumentError


class Table(eqx.Module):
    """A trained table of values; the observations are the ids 0 .. states - 1."""

    values: Float[Array, "states dim"]

    def __call__(self, batch: Int[Array, " n"]) -> Float[Array, "n dim"]:
        """Rows of the table, (n, dim); ids are not checked."""
        return self.values[batch]


def table(observation_shape: Sequence[int], dim: int, *, key: Array, states: int) -> Table:
    """A table of standard normal entries (paper, Section "Theoretical results"): components start near mean square 1.

    Args:
        observation_shape: ``()``, because the observations are ids.
        dim: how many components.
        key: the source of the entries.
        states: how many states; learning sets it.

    Returns:
        A module from (n,) ids to (n, dim) values.
    """
    if tuple(observation_shape) or not 1 <= dim <= states:
        raise ArgumentError(f"a table of {states} states takes ids and has 1 to {states} components, not {dim}")
    return Table(jax.random.normal(key, (states, dim), dtype=jnp.float32))
