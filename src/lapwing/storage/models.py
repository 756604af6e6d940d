"""The two files of a representation on disk, replaced together: a kill at any point leaves the old one or the new.

Two files cannot change in one stroke, so the manifest decides: it holds the checksum of its weights. New weights are
written beside the old ones, then the manifest is replaced, then the new weights take the old ones' name. Whoever reads
takes the weights that the manifest means, under either name.
"""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from lapwing.errors import LapwingError
from lapwing.storage.files import sync_folder, write_bytes, write_json
from lapwing.storage.reading import check_numbers, read_bytes, read_manifest
from lapwing.storage.records import Record

FORMAT = "lapwing-representation"
VERSION = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"
NEXT_WEIGHTS = "model.next.safetensors"


def write_model(folder: Path, manifest: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write or replace a model: first the weights, beside the old ones, then the manifest that makes them valid."""
    if folder.exists() and not folder.is_dir():
        raise LapwingError(f"{folder} is a file; choose a folder")
    for name, array in arrays.items():
        check_numbers(array.dtype)
        if name.startswith("encoder.") and not np.isfinite(array).all():
            raise LapwingError(f"this cannot be saved: {name} holds NaN or infinity; it has diverged")
    weights = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    _settle(folder)
    write_bytes(folder / NEXT_WEIGHTS, weights)
    try:
        head = {"format": FORMAT, "version": VERSION}
        write_json(folder / MANIFEST, head | manifest | {"checksum": zlib.crc32(weights)})
    except BaseException as error:
        (folder / NEXT_WEIGHTS).unlink(missing_ok=True)
        if isinstance(error, (TypeError, ValueError)) and not isinstance(error, LapwingError):
            raise LapwingError(f"this cannot be saved ({error}): it has diverged or has odd metadata") from error
        raise
    _take_over(folder)


def read_model(folder: Path) -> tuple[Record, dict[str, NDArray[Any]]]:
    """The manifest of a model and the arrays that belong to it; no code in the files is run."""
    manifest = Record(read_manifest(folder / MANIFEST, FORMAT, VERSION), str(folder / MANIFEST))
    checksum = manifest.whole("checksum")
    path = folder / WEIGHTS
    if not path.exists() and not (folder / NEXT_WEIGHTS).exists():
        raise LapwingError(f"{path} does not exist, though {MANIFEST} does; copy the whole folder")
    for found in (path, folder / NEXT_WEIGHTS):
        if found.exists():
            weights = read_bytes(found)
            if zlib.crc32(weights) == checksum:
                return manifest, read_tensors(found, weights)
    raise LapwingError(f"{path} is damaged or belongs to another {MANIFEST}: checksums differ")


def read_tensors(path: Path, content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays in the bytes of a safetensors file, plain numbers all; the path is for the message."""
    try:
        arrays = safetensors.numpy.load(content)
        for array in arrays.values():
            check_numbers(array.dtype)
    except LapwingError as error:
        raise LapwingError(f"{path} is damaged: {error}") from None
    except Exception as error:  # a lying head fails in the library's depths in too many ways to list
        raise LapwingError(f"{path} is not a safetensors file: {str(error)[:200]!r}") from error
    return arrays


def _settle(folder: Path) -> None:
    """Finish what an earlier writer began: weights that the manifest means must not be written over."""
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
        raise LapwingError(
            f"cannot rename {folder / NEXT_WEIGHTS}: {error.strerror}; the model is whole and can be read as it is"
        ) from error
    sync_folder(folder)
