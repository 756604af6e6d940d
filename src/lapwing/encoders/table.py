# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The tabular setting: one free number for each state and component, indexed by integer ids."""

from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import NDArray

from lapwing.encoders.layers import require_sizes
from lapwing.encoders.parts import encode_in_chunks, named_arrays, rebuilt
from lapwing.errors import LapwingError


class TableEncoder(eqx.Module):
    """A trained table of values; the observations are the ids 0 .. states - 1 (paper, Section "Theoretical results").

    Example:
        >>> encoder = TableEncoder.create(states=5, dim=2, key=jax.random.key(0))
        >>> encoder(jnp.array([4, 0, 4])).shape
        (3, 2)
    """

    kind: ClassVar[str] = "table"
    values: Float[Array, "states dim"]

    @classmethod
    def create(cls, states: int, dim: int, *, key: Array) -> Self:
        """Standard normal entries, so that components start with a mean square near 1."""
        require_sizes("states and components of a table", [states, dim])
        if dim > states:
            raise LapwingError(f"a table of {states} states has at most {states} components, asked for {dim}")
        return cls(jax.random.normal(key, (states, dim), dtype=jnp.float32))

    @property
    def dim(self) -> int:
        """How many components it gives."""
        return int(self.values.shape[-1])

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation: a bare id."""
        return ()

    def __call__(self, batch: Int[Array, " n"]) -> Float[Array, "n dim"]:
        """Rows of the table; ids are not checked here, see :meth:`encode`."""
        return self.values[batch]

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """(n,) integer ids to (n, dim) values; ids outside the table are refused."""
        ids = np.asarray(observations)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise LapwingError(f"a table takes (n,) integer ids, got {ids.dtype} of shape {ids.shape}")
        states = self.values.shape[0]
        if ids.size and (ids.min() < 0 or ids.max() >= states):
            raise LapwingError(f"ids must lie in 0 .. {states - 1}, got {ids.min()} .. {ids.max()}")
        return encode_in_chunks(self, ids.astype(np.int32), self.dim)

    def config(self) -> dict[str, Any]:
        """Sizes."""
        return {"states": int(self.values.shape[0]), "dim": self.dim}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The table."""
        return named_arrays(self)

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder again, bit for bit."""
        return rebuilt(lambda key: cls.create(**config, key=key), config, arrays)
