"""Writing files atomically: JSON, tables and plain arrays are complete or not there."""

import csv
import errno
import io
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from lapwing.errors import ArgumentError, CannotWriteError, DataError
from lapwing.storage.reading import check_numbers, crc32, crc32_of_bytes, crc32_of_header

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A temporary file that takes the place of ``path`` on success and vanishes on failure.

    Args:
        path: the file to create or replace; its folder is created if need be.

    Returns:
        A context manager that gives the temporary path to write to.
    """
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; choose the name of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise CannotWriteError(f"cannot write to {path.parent}: {error.strerror}; choose another folder") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("r+b") as stream:  # Windows flushes only what is open for writing
            os.fsync(stream.fileno())
        # mkstemp makes files private; results are for sharing, as far as the umask allows.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise CannotWriteError(_cannot_write(path, error)) from error
    finally:
        with suppress(OSError):  # a disk that went away, or became read-only, keeps what it has
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a loss of power, where folders can be opened (not on Windows).

    Args:
        folder: the folder that the name is in.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _cannot_write(path: Path, error: OSError) -> str:
    advice = "free some space, or choose another folder" if error.errno in FULL else "choose another folder"
    return f"cannot write {path}: {error.strerror or error}; what was there before is untouched: {advice}"


def write_bytes(path: Path, content: bytes) -> Path:
    """Write bytes atomically.

    Args:
        path: the file to create or replace.
        content: the bytes.

    Returns:
        The path.
    """
    with replaced_file(path) as temporary:
        temporary.write_bytes(content)
    return path


def write_array(path: Path, array: NDArray[Any]) -> int:
    """Write an ``.npy`` file of plain numbers atomically.

    It is written through Python's own stream, because NumPy does not notice a disk that is full.

    Args:
        path: the file to create or replace.
        array: of numbers or booleans.

    Returns:
        Its checksum, :func:`lapwing.storage.reading.crc32`.
    """
    plain = np.asarray(array, order="C")
    check_numbers(plain.dtype)
    # In this machine's byte order, so that the file can be mapped.
    plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)
    head = io.BytesIO()
    npy_format.write_array_header_1_0(head, npy_format.header_data_from_array_1_0(plain))
    with replaced_file(path) as temporary, temporary.open("wb") as stream:
        stream.write(head.getvalue())
        stream.write(plain.reshape(-1).view(np.uint8).data)
    return crc32(plain)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON atomically.

    Args:
        path: the file to create or replace.
        content: of JSON types, without NaN; keys stay in order.
    """
    text = json.dumps(content, indent=2, allow_nan=False) + "\n"
    if "\\ud" in text:
        # Half a character, e.g. from a file name that is not UTF-8, which could not be printed when read.
        text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Rows as the text of a CSV table.

    Args:
        rows: a column that a row lacks is left empty there.

    Returns:
        The text, with a header.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=names, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def write_csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a CSV table atomically.

    Args:
        path: the file to create or replace.
        rows: a column that a row lacks is left empty there.

    Returns:
        The path.
    """
    return write_bytes(path, csv_text(rows).encode())


class ArrayAppender:
    """Writes an ``.npy`` file row by row without knowing how many rows will come.

    Args:
        path: the file to create.
        dtype: type of the array.
        row_shape: shape of one row.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any], row_shape: tuple[int, ...]) -> None:
        """Open the file and reserve its header."""
        self.path, self.dtype, self.row_shape = path, np.dtype(dtype), row_shape
        self.rows, self._crc = 0, 0
        with self._writing():
            self._stream = path.open("wb")
            self._write_header()

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows at the end.

        Args:
            rows: (n, *row_shape) of the file's type, which can no longer be changed.
        """
        if rows.dtype != self.dtype or rows.shape[1:] != self.row_shape:
            raise DataError(
                f"observations changed from {self.dtype} {self.row_shape} to {rows.dtype} {rows.shape[1:]} on the way"
            )
        block = np.ascontiguousarray(rows)
        with self._writing():
            self._stream.write(block.reshape(-1).view(np.uint8).data)
        self._crc = crc32_of_bytes(block, self._crc)
        self.rows += len(block)

    def close(self) -> int:
        """Write the final number of rows into the header and close; once closed, do nothing.

        Returns:
            :func:`crc32` of the array.
        """
        if not self._stream.closed:
            with self._writing():
                self._stream.seek(0)
                self._write_header()
                self._stream.flush()
                os.fsync(self._stream.fileno())
                self._stream.close()
        return crc32_of_header(self.dtype, (self.rows, *self.row_shape), self._crc)

    def abandon(self) -> None:
        """Close the file as it is, for a write that failed."""
        with suppress(OSError):  # what is left in the buffer does not fit either
            self._stream.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise CannotWriteError(_cannot_write(self.path, error)) from error

    def _write_header(self) -> None:
        # NumPy pads the header so that the first axis may grow in place (GROWTH_AXIS_MAX_DIGITS).
        empty = np.empty((0, *self.row_shape), self.dtype)
        header = npy_format.header_data_from_array_1_0(empty) | {"shape": (self.rows, *self.row_shape)}
        npy_format.write_array_header_1_0(self._stream, header)
