"""The two files of a representation on disk, replaced together: a kill at any point leaves the old one or the new.

Two files cannot be replaced atomically, so the manifest decides: it holds the checksum of its weights. New weights are
written beside the old ones, then the manifest is replaced, then the new weights take the old ones' name. A reader
takes the weights whose checksum the manifest has, under either name.
"""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from lapwing.errors import ArgumentError, CannotWriteError, DamagedFileError, LapwingError
from lapwing.storage.files import sync_folder, write_bytes, write_json
from lapwing.storage.reading import check_numbers, convert, read_bytes, read_manifest
from lapwing.storage.schemas import ModelManifest

FORMAT = "lapwing-representation"
VERSION = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"
NEXT_WEIGHTS = "model.next.safetensors"


def write_model(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write or replace a model: first the weights, beside the old ones, then the manifest that makes them valid.

    Args:
        folder: created if need be.
        manifest: fields of :class:`lapwing.storage.schemas.ModelManifest` but the checksum.
        arrays: plain numbers by name; those of the encoder must be finite.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file; choose a folder")
    for name, array in arrays.items():
        check_numbers(array.dtype)
        if name.startswith("encoder.") and not np.isfinite(array).all():
            raise ArgumentError(f"this cannot be saved: {name} holds NaN or infinity; it has diverged")
    weights = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    _settle(folder)
    write_bytes(folder / NEXT_WEIGHTS, weights)
    try:
        head = {"format": FORMAT, "version": VERSION}
        write_json(folder / MANIFEST, head | manifest | {"checksum": zlib.crc32(weights)})
    except BaseException as error:
        (folder / NEXT_WEIGHTS).unlink(missing_ok=True)
        if isinstance(error, (TypeError, ValueError)) and not isinstance(error, LapwingError):
            raise ArgumentError(f"this cannot be saved ({error}): it has diverged or has odd metadata") from error
        raise
    _take_over(folder)


def read_model(folder: Path) -> tuple[ModelManifest, dict[str, NDArray[Any]]]:
    """Read the two files of a model; no code in them is run.

    Args:
        folder: where :func:`write_model` wrote.

    Returns:
        The manifest, and the arrays that belong to it.
    """
    if (folder / "trajectories.json").is_file() and not (folder / MANIFEST).exists():
        raise ArgumentError(f"{folder} holds trajectories, not a representation; read it with Trajectories.load")
    manifest = convert(read_manifest(folder / MANIFEST, FORMAT, VERSION), ModelManifest, folder / MANIFEST)
    path = folder / WEIGHTS
    present = [found for found in (path, folder / NEXT_WEIGHTS) if found.exists()]
    if not present:
        raise DamagedFileError(f"{path} does not exist, though {MANIFEST} does; copy the whole folder")
    for found in present:
        weights = read_bytes(found)
        if zlib.crc32(weights) == manifest.checksum:
            return manifest, read_tensors(found, weights)
    raise DamagedFileError(f"{path} is damaged or belongs to another {MANIFEST}: checksums differ")


def read_tensors(path: Path, content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file, plain numbers all.

    Args:
        path: the file, for the message.
        content: its bytes.

    Returns:
        Arrays by name.
    """
    try:
        arrays = safetensors.numpy.load(content)
        for array in arrays.values():
            check_numbers(array.dtype)
    except LapwingError as error:
        raise DamagedFileError(f"{path} is damaged: {error}") from None
    except Exception as error:  # a false header fails inside the library in too many ways to list
        raise DamagedFileError(f"{path} is not a safetensors file: {str(error)[:200]!r}") from error
    return arrays


def _settle(folder: Path) -> None:
    """Finish what an earlier writer began: weights that the manifest refers to must not be overwritten."""
    if not (folder / NEXT_WEIGHTS).is_file() or not (folder / MANIFEST).is_file():
        return
    try:
        checksum = read_manifest(folder / MANIFEST, FORMAT, VERSION).get("checksum")
        meant = zlib.crc32(read_bytes(folder / NEXT_WEIGHTS)) == checksum
    except LapwingError:
        return
    if meant:
        _take_over(folder)


def _take_over(folder: Path) -> None:
    try:
        (folder / NEXT_WEIGHTS).replace(folder / WEIGHTS)
    except OSError as error:
        raise CannotWriteError(
            f"cannot rename {folder / NEXT_WEIGHTS}: {error.strerror}; the model is complete and can be read as it is"
        ) from error
    sync_folder(folder)
