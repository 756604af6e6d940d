"""Files that are never half-written and never run code: atomic replacement, manifests, plain arrays."""

import csv
import errno
import io
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from lapwing.errors import CannotWriteError, LapwingError

MAX_MANIFEST_BYTES = 64 << 20

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place on success and vanishes on failure."""
    if path.is_dir():
        raise LapwingError(f"{path} is a folder; choose the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise CannotWriteError(f"cannot write to {path.parent}: {error.strerror}; choose another folder") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        # mkstemp makes files private; results are for sharing, as far as the umask allows.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CannotWriteError(_cannot_write(path, error)) from error
    finally:
        with suppress(OSError):  # a disk that went away, or became read-only, keeps what it has
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder outlive a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _cannot_write(path: Path, error: OSError) -> str:
    advice = "free some space, or choose another folder" if error.errno in FULL else "choose another folder"
    return f"cannot write {path}: {error.strerror or error}; what was there before is untouched: {advice}"


@contextmanager
def replaced_directory(path: Path, marker: str, members: Collection[str]) -> Iterator[Path]:
    """A temporary folder that takes the place of ``path`` on success and vanishes on failure.

    An existing ``path`` is replaced only if it is empty, or holds ``marker`` and beside it nothing but
    ``members``: nobody's other files are lost.
    """
    path = path.resolve()
    temporary = working_directory(path, marker, members)
    try:
        yield temporary
        temporary.chmod(0o755)
        if path.is_dir():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            try:
                path.replace(old)
                temporary.replace(path)
            except OSError:
                if path.exists():
                    old.rmdir()
                else:
                    old.replace(path)
                raise
            shutil.rmtree(old)
        else:
            temporary.replace(path)
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)


def working_directory(path: Path, marker: str, members: Collection[str]) -> Path:
    """A new temporary folder beside ``path``, or an error if ``path`` must not be replaced."""
    path = path.resolve()
    try:
        if path.exists() and not path.is_dir():
            raise LapwingError(f"{path} is a file; choose a folder")
        present = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        if present and marker not in present:
            raise LapwingError(f"{path} holds other files and no {marker}; choose an empty or new folder")
        if foreign := sorted(present - {marker, *members}):
            raise LapwingError(f"{path} holds other files ({foreign[0]}), which would be lost; choose another folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise LapwingError(f"cannot write to {path.parent}: {error.strerror}; choose another folder") from error


def write_bytes(path: Path, content: bytes) -> Path:
    """Write bytes atomically."""
    with replaced_file(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON atomically, keys in the given order, no NaN."""
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV; a column that a row lacks is left empty there."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=names, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows as CSV atomically; a column that a row lacks is left empty there."""
    return write_bytes(path, csv_text(rows).encode())


def read_manifest(path: Path, format_name: str, newest: int) -> dict[str, Any]:
    """Read a JSON manifest and check that it is of the right format and of a known version."""
    if not path.is_file():
        raise LapwingError(f"{path} does not exist; is {path.parent} really a {format_name} folder?")
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise LapwingError(f"{path} is larger than any manifest of this package; it is not one of ours")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise LapwingError(f"{path} is not readable JSON ({error}); the file is damaged or not one of ours") from error
    if not isinstance(content, dict) or content.get("format") != format_name:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise LapwingError(f"{path} is not a {format_name} manifest (it says {found!r})")
    version = content.get("version")
    if not isinstance(version, int) or not 1 <= version <= newest:
        raise LapwingError(f"{path} has format version {version!r}; this package reads 1 to {newest}. Update lapwing")
    return content


def read_array(path: Path, *, mmap: bool = False, checksum: int | None = None) -> NDArray[Any]:
    """Read an ``.npy`` file that holds plain numbers; pickled objects are refused."""
    try:
        if mmap:
            return npy_format.open_memmap(path, mode="r")
        with path.open("rb") as stream:
            array: NDArray[Any] = npy_format.read_array(stream, allow_pickle=False)
    except Exception as error:  # a damaged header fails in NumPy's depths in too many ways to list
        raise LapwingError(f"cannot read {path}: {error}; the file is missing, damaged or not one of ours") from error
    if checksum is not None and crc32(array) != checksum:
        raise LapwingError(f"{path} is damaged: its checksum does not match the manifest; restore it from a copy")
    return array


def crc32(array: NDArray[Any]) -> int:
    """Checksum of an array: its bytes in C order, then its type and shape."""
    return _crc32_of_header(array.dtype, array.shape, _crc32_of_bytes(array))


def _crc32_of_bytes(array: NDArray[Any], start: int = 0) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, start)


def _crc32_of_header(dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> int:
    # A flipped bit in the header may change how sound bytes are read, e.g. their order.
    return zlib.crc32(f"{dtype.str} {shape}".encode(), start)


class ArrayAppender:
    """Writes an ``.npy`` file row by row without knowing how many rows will come."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row_shape: tuple[int, ...]) -> None:
        """Open the file and reserve its header."""
        self.path, self.dtype, self.row_shape = path, np.dtype(dtype), row_shape
        self.rows, self._crc = 0, 0
        self._stream = path.open("wb")
        self._write_header()

    @property
    def checksum(self) -> int:
        """:func:`crc32` of the array as it is now."""
        return _crc32_of_header(self.dtype, (self.rows, *self.row_shape), self._crc)

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end; they must be of the file's type and shape, for it is too late to change them."""
        if rows.dtype != self.dtype or rows.shape[1:] != self.row_shape:
            raise LapwingError(
                f"observations changed from {self.dtype} {self.row_shape} to {rows.dtype} {rows.shape[1:]} on the way"
            )
        block = np.ascontiguousarray(rows)
        self._stream.write(block.reshape(-1).view(np.uint8).data)
        self._crc = _crc32_of_bytes(block, self._crc)
        self.rows += len(block)

    def close(self) -> None:
        """Write the final number of rows into the header and close."""
        self._stream.seek(0)
        self._write_header()
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()

    def abandon(self) -> None:
        """Close the file as it is, for a write that failed."""
        self._stream.close()

    def _write_header(self) -> None:
        # NumPy pads the header so that the first axis may grow in place (GROWTH_AXIS_MAX_DIGITS).
        npy_format.write_array_header_1_0(
            self._stream,
            {
                "descr": npy_format.dtype_to_descr(self.dtype),
                "fortran_order": False,
                "shape": (self.rows, *self.row_shape),
            },
        )
