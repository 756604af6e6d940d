# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Networks that users bring: any callable from a batch of observations to a batch of components."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from lapwing.encoders.parts import checked_observations, encode_in_chunks, named_arrays, with_named_arrays
from lapwing.errors import LapwingError


class OwnEncoder(eqx.Module):
    """A user's own module as an encoder: anything that maps (n, *observation_shape) arrays to (n, dim) ones.

    Every floating-point array in it is trained, except inside a :class:`lapwing.encoders.layers.Constant`. A module for
    single rows becomes one for batches by ``jax.vmap``. Files hold arrays and no code, so to load a model again
    hand :meth:`restored` a module of the same structure; or give your class ``kind``, ``config``, ``arrays`` and
    ``from_parts`` as :class:`lapwing.encoders.base.Encoder` asks, and put it into ``NETWORK_ENCODERS``.

    Example:
        >>> import equinox as eqx
        >>> class Rows(eqx.Module):
        ...     net: eqx.nn.MLP
        ...     def __call__(self, batch):
        ...         return jax.vmap(self.net)(batch)
        >>> mine = Rows(eqx.nn.MLP(2, 3, 16, 2, key=jax.random.key(0)))
        >>> encoder = OwnEncoder.create(mine, observation_shape=(2,))
        >>> encoder.dim, encoder.encode(np.zeros((4, 2))).shape
        (3, (4, 3))
    """

    kind: ClassVar[str] = "own"
    module: Callable[[Array], Array]
    observation_shape: tuple[int, ...] = eqx.field(static=True)
    dim: int = eqx.field(static=True)

    @classmethod
    def create(cls, module: Callable[[Array], Array], observation_shape: Sequence[int]) -> Self:
        """Wrap a module after trying it on the shape of two observations."""
        shape = tuple(observation_shape)
        batch = jax.ShapeDtypeStruct((2, *shape), np.float32)  # type: ignore[no-untyped-call]
        try:
            out = eqx.filter_eval_shape(module, batch)
        except Exception as error:
            raise LapwingError(f"the module failed on a batch of shape {(2, *shape)}: {error}") from error
        if getattr(out, "ndim", None) != 2 or out.shape[0] != 2:
            raise LapwingError(
                f"the module must map (n, {', '.join(map(str, shape))}) to (n, dim); "
                f"for 2 rows it gave {getattr(out, 'shape', type(out).__name__)}"
            )
        return cls(module, shape, out.shape[1])

    def __call__(self, batch: Array) -> Float[Array, "n dim"]:
        """(n, *observation_shape) to (n, dim)."""
        return self.module(batch)

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """NumPy observations to float32 values, compiled, chunk by chunk."""
        return encode_in_chunks(self, checked_observations(observations, self.observation_shape), self.dim)

    def config(self) -> dict[str, Any]:
        """Sizes, and the name of the module for the reader."""
        return {
            "observation_shape": list(self.observation_shape),
            "dim": self.dim,
            "module": type(self.module).__qualname__,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array of the module by its path."""
        return named_arrays(self)

    def restored(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """The same structure with saved arrays."""
        return with_named_arrays(self, arrays)

    @classmethod
    def from_parts(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Refused: a file holds no code, so the structure has to come from the user."""
        name = str(config.get("module", "unknown"))[:100]
        raise LapwingError(
            f"this model was trained with a module of your own, {name}, and files hold no "
            "code; build the module, then OwnEncoder.create(module, observation_shape).restored(arrays)"
        )
