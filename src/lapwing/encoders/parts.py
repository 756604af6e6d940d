"""What network encoders share besides layers: arrays by name for files, and encoding NumPy rows chunk by chunk."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import NDArray

from lapwing.encoders.statistics import Statistics
from lapwing.errors import LapwingError

CHUNK_ROWS = 4096
"""Rows encoded at once: large enough for full speed, small enough for images of any number."""

Module = TypeVar("Module")


def named_arrays(module: Any) -> dict[str, NDArray[Any]]:
    """Every array of a module by its path, such as ``network.layers.0.weight``."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(module, eqx.is_array))
    return {_name(path): np.asarray(leaf) for path, leaf in leaves}


def with_named_arrays(template: Module, arrays: dict[str, NDArray[Any]]) -> Module:
    """A module of the template's structure that holds ``arrays``; refused unless names and shapes all fit.

    The template may be one of shapes only, as ``equinox.filter_eval_shape`` gives.
    """
    holes, rest = eqx.partition(template, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))
    leaves, structure = jax.tree_util.tree_flatten_with_path(holes)
    names = [_name(path) for path, _ in leaves]
    if set(names) != set(arrays):
        lacking, extra = sorted(set(names) - set(arrays)), sorted(set(arrays) - set(names))
        raise LapwingError(f"the arrays are not those of this encoder: missing {lacking}, unknown {extra}")
    for name, (_, leaf) in zip(names, leaves, strict=True):
        found = arrays[name]
        if found.shape != leaf.shape or found.dtype != leaf.dtype:
            raise LapwingError(
                f"array {name} is {found.dtype} {found.shape}, but this encoder needs {leaf.dtype} {leaf.shape}"
            )
    filled = jax.tree.unflatten(structure, [jnp.asarray(arrays[name]) for name in names])
    return eqx.combine(filled, rest)


def rebuilt(create: Callable[[Array], Module], config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Module:
    """What ``create(key)`` makes, with saved arrays in place of random ones; nothing random is computed.

    A configuration from a file is believed only as far as its arrays bear it out, so that no size in it can ask for
    more memory than the file has bytes.
    """
    _check_sizes(config, arrays)
    try:
        template: Module = eqx.filter_eval_shape(create, jax.random.key(0))
    except LapwingError:
        raise
    except Exception as error:  # wrong names, types or sizes fail in JAX's depths in too many ways to list
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise LapwingError(f"the encoder's configuration does not fit its kind: {reason}") from error
    return with_named_arrays(template, arrays)


def _check_sizes(config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    if not arrays:
        raise LapwingError("the encoder's arrays are missing; the file is damaged")
    most = sum(array.size for array in arrays.values())
    numbers = 0
    for name, value in config.items():
        for size in value if isinstance(value, list) else [value]:
            numbers += 1
            if name != "scales" and (type(size) is not int or not 0 < size <= most):
                raise LapwingError(
                    f"the encoder's configuration says {name[:80]!r} is {str(value)[:80]}, "
                    f"and its arrays hold {most:,} numbers; the file is damaged"
                )
    if numbers > most:
        raise LapwingError("the encoder's configuration is longer than its arrays; the file is damaged")


def saved_statistics(arrays: dict[str, NDArray[Any]]) -> Statistics:
    """The statistics among an encoder's arrays, which decide the shape of its scale."""
    centre, scale = arrays.get("inputs.centre.array"), arrays.get("inputs.scale.array")
    if centre is None or scale is None:
        raise LapwingError("the encoder lacks the statistics of its inputs; the file is damaged")
    return Statistics(centre, scale)


def encode_in_chunks(module: Any, observations: NDArray[Any], dim: int) -> NDArray[np.float32]:
    """(n, ...) NumPy observations to (n, dim) float32 values, compiled, a chunk of rows at a time.

    Chunks are padded to a power of two, so that a handful of programs serve any number of rows.
    """
    values = np.empty((len(observations), dim), dtype=np.float32)
    for start in range(0, len(observations), CHUNK_ROWS):
        rows = observations[start : start + CHUNK_ROWS]
        size = min(CHUNK_ROWS, 1 << (len(rows) - 1).bit_length())
        padded = np.concatenate([rows, np.broadcast_to(rows[:1], (size - len(rows), *rows.shape[1:]))])
        values[start : start + len(rows)] = np.asarray(_apply(module, padded))[: len(rows)]
    return values


def checked_observations(observations: NDArray[Any], observation_shape: tuple[int, ...]) -> NDArray[Any]:
    """Observations as uint8 or float32 arrays, refused where the shape is wrong or numbers are not finite."""
    given = np.asarray(observations)
    if given.shape[1:] != observation_shape or given.ndim == 0:
        raise LapwingError(
            f"this encoder takes (n, {', '.join(map(str, observation_shape))}) observations, got shape {given.shape}"
        )
    if given.dtype == np.uint8:
        return given
    if not (np.issubdtype(given.dtype, np.number) or given.dtype == np.bool_):
        raise LapwingError(f"observations must be numbers, got {given.dtype}")
    rows = given.astype(np.float32)
    if not np.isfinite(rows).all():
        raise LapwingError("observations hold NaN, infinity, or numbers too large for float32")
    return rows


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


@eqx.filter_jit
def _apply(module: Any, batch: Any) -> Any:
    return module(batch)
