"""Checkpoints: arrays and a JSON record in one file that is complete or absent, with its checksum in its name."""

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lapwing.errors import ArgumentError, DamagedFileError, LapwingError, LapwingWarning
from lapwing.storage.files import write_bytes
from lapwing.storage.folders import locked
from lapwing.storage.reading import read_bytes

FORMAT = "lapwing-checkpoint"
VERSION = 2
KEPT = 2
DAMAGED = "damaged-"
MAX_BYTES = 8 << 30
NAME = re.compile(r"step-(\d{10})-([0-9a-f]{32})\.safetensors")

Arrays = dict[str, NDArray[Any]]
Tree = TypeVar("Tree")
Content = TypeVar("Content")


@contextmanager
def checkpoint_folder(folder: Path, read_only: bool = False) -> Iterator[None]:
    """Hold a folder for checkpoints: locked against other processes, half-written files removed.

    Args:
        folder: made if need be; an error if it holds anything but checkpoints.
        read_only: neither lock nor change it, because another process of the same run does.

    Yields:
        Nothing; the folder is released when the block ends.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; checkpoints need a folder")
    foreign = [path.name for path in folder.glob("*") if not path.name.startswith((".", "step-", "seed-", DAMAGED))]
    if foreign:
        raise ArgumentError(f"{folder} holds other files ({foreign[0]}); give checkpoints a folder of their own")
    if read_only:
        yield
        return
    with locked(folder):
        for path in folder.glob(".step-*"):
            path.unlink(missing_ok=True)
        yield


def write_checkpoint(folder: Path, step: int, arrays: Arrays, record: dict[str, Any]) -> Path:
    """Write a checkpoint atomically and delete all but the last two.

    Args:
        folder: where to.
        step: by which checkpoints are ordered.
        arrays: by name.
        record: JSON types.

    Returns:
        The file written.
    """
    header = {"format": FORMAT, "version": str(VERSION), "step": str(step), "record": json.dumps(record)}
    content = save(arrays, metadata=header)
    # Ten digits, so that names sort like steps.
    path = write_bytes(folder / f"step-{step:010d}-{_digest(content)}.safetensors", content)
    for old in [one for one in checkpoint_files(folder) if one != path][KEPT - 1 :]:
        old.unlink(missing_ok=True)
    return path


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder by name, the newest first; their content is not checked.

    Args:
        folder: where they are; it may be absent.

    Returns:
        Paths.
    """
    return sorted((path for path in folder.glob("step-*") if NAME.fullmatch(path.name)), reverse=True)


def newest_checkpoint(folder: Path, restore: Callable[[Path, Arrays, dict[str, Any]], Content]) -> Content | None:
    """The last sound checkpoint; damaged ones are set aside with a warning.

    Args:
        folder: where they are.
        restore: ``(path, arrays, record) -> content``; a :class:`DamagedFileError` from it, too, means damage.

    Returns:
        What ``restore`` makes of the newest that is sound; None if there is none.
    """
    found = checkpoint_files(folder)
    for number, path in enumerate(found, start=1):
        try:
            return restore(path, *read_checkpoint(path))
        except DamagedFileError as error:
            last = number == len(found)
            instead = "it was the last, so learning starts over" if last else "the one before it is used"
            warnings.warn(f"{error}; {instead}", LapwingWarning, stacklevel=3)
            # Out of the way: among the last two it would take the place of a sound one.
            with suppress(OSError):
                path.rename(path.with_name(f"{DAMAGED}{path.name}"))
    return None


def read_checkpoint(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read one checkpoint; no code in it is run.

    Args:
        path: of the file.

    Returns:
        Arrays by name, and the record.

    Raises:
        DamagedFileError: if it is torn, changed, renamed or not a checkpoint.
    """
    match = NAME.fullmatch(path.name)
    try:
        if match is None:
            raise DamagedFileError(f"{path} is not a checkpoint of this package")
        content = read_bytes(path, MAX_BYTES)
        if _digest(content) != match[2]:
            raise DamagedFileError(f"{path} is damaged: its checksum is not the one in its name")
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__", {})
        if header.get("format") != FORMAT:
            raise DamagedFileError(f"{path} is not a checkpoint of this package")
        if header.get("version") != str(VERSION):
            raise LapwingError(
                f"{path} has format version {header.get('version')!r}; this package reads {VERSION}. "
                "Resume with the version that wrote it, or choose another folder"
            )
        if int(header["step"]) != int(match[1]):
            raise DamagedFileError(f"{path} was renamed: it is of step {header['step']}")
        record = json.loads(header["record"])
        if not isinstance(record, dict):
            raise DamagedFileError(f"{path} holds no record")
        return load(content), record
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        if isinstance(error, LapwingError):
            raise
        raise DamagedFileError(f"{path} cannot be read ({error})") from error


def tree_arrays(tree: Any) -> Arrays:
    """Every array of a pytree by its path; random keys as plain numbers.

    Args:
        tree: of JAX or NumPy arrays.

    Returns:
        Arrays by name.
    """
    return {name: np.asarray(_plain(leaf)) for name, leaf in _named_leaves(tree)}


def filled_tree(template: Tree, arrays: Arrays) -> Tree:
    """A pytree whose arrays are replaced by stored ones.

    Args:
        template: what :func:`tree_arrays` was given, or one like it.
        arrays: by name, of the template's shapes and types, all finite.

    Returns:
        A tree of the template's structure.

    Raises:
        ValueError: if a shape or type differs, or a number is not finite; KeyError if an array is missing.
    """
    leaves = []
    for name, leaf in _named_leaves(template):
        array, wanted = arrays[name], _plain(leaf)
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {wanted.dtype} {wanted.shape}")
        if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
        # A copy of its own: the file's bytes are one block, which a compiled step must not reuse.
        ready = jnp.array(array)
        leaves.append(jax.random.wrap_key_data(ready) if _is_key(leaf) else ready)
    filled: Tree = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return filled


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]]


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
