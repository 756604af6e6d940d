"""Reading files as data: JSON, manifests, tables and plain arrays; other files are refused, and nothing is ever run.

Nothing is allocated because a file says so: what its header announces is compared with its size first.
"""

import csv
import json
import math
import mmap as mapping
import os
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from lapwing.errors import ArgumentError, DamagedFileError, DataError

CHECKED_BYTES = 1 << 26
MAX_MANIFEST_BYTES = 64 << 20
MAX_DEPTH = 64
# Enough for any seed, few enough that the number is still a float.
MAX_DIGITS = 100
MAX_AXES = 16
# Booleans, whole numbers and floats of at most eight bytes: what means the same on every machine.
NUMBER_KINDS = "biuf"
MAX_ITEM_BYTES = 8

FOREIGN = "the file is damaged or not one of ours"

Schema = TypeVar("Schema")


def size_of(path: Path) -> int:
    """Size of a plain file; anything else is refused, because a pipe or a device may never end.

    Args:
        path: the file.

    Returns:
        How many bytes it has.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
        raise DamagedFileError(f"cannot read {path}: it is {kind}, not a file")
    return status.st_size


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Read a plain file whole.

    Args:
        path: the file.
        limit: most bytes it may have; unless given, what fits into memory.

    Returns:
        Its content.
    """
    size, most = size_of(path), limit or memory_bytes()
    if size > most:
        raise DamagedFileError(f"{path} has {size:,} bytes, more than the {most:,} that it may have; {FOREIGN}")
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise DamagedFileError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error


def memory_bytes() -> int:
    """Memory of this machine: no file that is read whole may be larger.

    Returns:
        How many bytes.
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 34


def read_record(path: Path) -> dict[str, Any]:
    """Read a JSON object: no NaN, no key twice, no long numbers, no unprintable text, no deep nesting.

    Args:
        path: the file, of at most 64 MiB.

    Returns:
        Its content; :func:`convert` checks the fields.
    """
    content = read_bytes(path, MAX_MANIFEST_BYTES)
    try:
        found = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_int=_bounded_integer,
            parse_float=_finite_number,
            parse_constant=_finite_number,
        )
        _check_tree(found)
    except (ValueError, RecursionError, MemoryError) as error:
        raise DamagedFileError(f"{path} is not readable JSON ({_short(error)}); {FOREIGN}") from error
    if not isinstance(found, dict):
        raise DamagedFileError(f"{path} holds a {type(found).__name__} instead of an object; {FOREIGN}")
    return found


def read_manifest(path: Path, format_name: str, newest: int) -> dict[str, Any]:
    """Read a JSON manifest of a known format and version.

    Args:
        path: the file.
        format_name: what its field ``format`` must say.
        newest: the largest ``version`` that can be read.

    Returns:
        Its content; :func:`convert` checks the other fields.
    """
    if not path.exists():
        raise ArgumentError(f"{path} does not exist; is {path.parent} really a {format_name} folder?")
    content = read_record(path)
    if content.get("format") != format_name:
        found = _short(repr(content.get("format")))
        raise DamagedFileError(f"{path} is not a {format_name} manifest (it says {found})")
    version = content.get("version")
    if type(version) is not int or not 1 <= version <= newest:
        found = _short(repr(version))
        raise DamagedFileError(f"{path} has format version {found}; this package reads 1 to {newest}. Update lapwing")
    return content


def convert(content: Any, schema: type[Schema], where: object) -> Schema:
    """Plain data from a file as the typed record of a schema.

    Args:
        content: what :func:`read_record` gave, or a part of it.
        schema: a msgspec Struct, or any type that msgspec knows.
        where: the file, and the place in it, for the message.

    Returns:
        An instance of the schema.

    Raises:
        DamagedFileError: a field that is missing, of another type or out of range; the message names it.

    Example:
        >>> convert({"kind": "mlp", "config": {}}, dict[str, object], "model.json")["kind"]
        'mlp'
    """
    try:
        return msgspec.convert(content, schema)
    except (msgspec.ValidationError, OverflowError) as error:
        raise DamagedFileError(f"{where}: {_short(error)}; {FOREIGN}") from error


def read_array(
    path: Path, *, mmap: bool = False, checksum: int | None = None, limit: int | None = None
) -> NDArray[Any]:
    """Read an ``.npy`` file that holds plain numbers; pickled objects, text and complex numbers are refused.

    Args:
        path: the file.
        mmap: leave the numbers on disk.
        checksum: :func:`crc32` of the array, to be compared; None to compare nothing.
        limit: most bytes the file may have; unless given, what fits into memory, and any number with ``mmap``.

    Returns:
        The array, in this machine's byte order.
    """
    size = size_of(path)
    most = limit or memory_bytes()
    if size > most and not (mmap and limit is None):
        raise DamagedFileError(
            f"cannot read {path}: its {size:,} bytes are more than the {most:,} that are read at once; "
            "memory-map it (mmap=True), or take fewer rows"
        )
    try:
        dtype = _checked_type(path, size)
        if mmap and not dtype.isnative:
            raise DamagedFileError("its numbers are in another machine's byte order; read it without memory mapping")
        array: NDArray[Any] = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except Exception as error:  # a damaged header fails inside NumPy in too many ways to list
        raise DamagedFileError(f"cannot read {path}: {_short(error)}; {FOREIGN}") from error
    if checksum is not None and crc32(array) != checksum:
        raise DamagedFileError(f"{path} is damaged: its checksum does not match the manifest; restore it from a copy")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def read_rows(path: Path) -> list[dict[str, float]]:
    """Read a CSV table of numbers with a header.

    Args:
        path: the file.

    Returns:
        One dictionary per row; an empty cell is NaN.
    """
    text = read_bytes(path, MAX_MANIFEST_BYTES)
    try:
        rows = list(csv.reader(text.decode("utf-8").splitlines(), strict=True))
        names = rows[0] if rows else []
        if len(set(names)) < len(names):
            raise ValueError("a column comes twice")
        numbers = [[math.nan if cell == "" else float(cell) for cell in row] for row in rows[1:]]
        return [dict(zip(names, row, strict=True)) for row in numbers]
    except (ValueError, csv.Error, MemoryError) as error:
        raise DamagedFileError(f"{path} is not a table of numbers ({_short(error)}); {FOREIGN}") from error


def forget_pages(array: NDArray[Any]) -> None:
    """Give back the memory of a mapped file that has been read; what is read again comes from the disk.

    Args:
        array: of any kind; only memory maps have such pages.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    if isinstance(owner, np.memmap) and owner.mode != "c" and hasattr(mapping, "MADV_DONTNEED"):
        owner._mmap.madvise(mapping.MADV_DONTNEED)  # type: ignore[attr-defined]


def crc32(array: NDArray[Any]) -> int:
    """Checksum of an array: its bytes in C order, then its type and shape.

    Args:
        array: of plain numbers.

    Returns:
        A CRC-32.
    """
    checksum, rows = 0, max(1, CHECKED_BYTES * len(array) // max(array.nbytes, 1)) if array.ndim else 1
    # In blocks, because what is mapped may be larger than memory.
    for begin in range(0, len(array) if array.ndim else 0, rows):
        checksum = crc32_of_bytes(array[begin : begin + rows], checksum)
        forget_pages(array)
    return crc32_of_header(array.dtype, array.shape, checksum if array.ndim else crc32_of_bytes(array))


def crc32_of_bytes(array: NDArray[Any], start: int = 0) -> int:
    """Checksum of an array's bytes in C order.

    Args:
        array: of plain numbers.
        start: the checksum of the rows before.

    Returns:
        A CRC-32.
    """
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, start)


def crc32_of_header(dtype: np.dtype[Any], shape: tuple[int, ...], start: int) -> int:
    """The checksum of bytes, continued with their type and shape.

    Args:
        dtype: type of the array.
        shape: shape of the array.
        start: :func:`crc32_of_bytes` of it.

    Returns:
        A CRC-32.
    """
    # A flipped bit in the header may change how sound bytes are read, e.g. their order.
    return zlib.crc32(f"{dtype.str} {shape}".encode(), start)


def check_numbers(dtype: np.dtype[Any]) -> None:
    """Refuse arrays of anything but plain numbers.

    Args:
        dtype: type of the array.
    """
    if dtype.kind not in NUMBER_KINDS or dtype.itemsize > MAX_ITEM_BYTES:
        raise DataError(f"it holds {_short(dtype)}, not plain numbers")


class ArchivedArray:
    """One array of an ``.npz`` file, whose rows are read in order without holding them all.

    Args:
        archive: the opened file.
        member: of the array.

    Attributes:
        shape: of the whole array.
        dtype: of its numbers.
    """

    def __init__(self, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
        """Read the header."""
        self.path, self._stream = f"{archive.filename}: {member.filename}", archive.open(member)
        try:
            self.shape, self.dtype, by_columns = _read_header(self._stream)
            announced = self._stream.tell() + math.prod(self.shape) * self.dtype.itemsize
            if by_columns or not self.shape:
                raise DamagedFileError("its rows are not stored one after another")
            if announced != member.file_size:
                raise DamagedFileError(f"its header announces {announced:,} bytes, and there are {member.file_size:,}")
        except Exception as error:  # a damaged header fails inside NumPy in too many ways to list
            raise DamagedFileError(f"cannot read {self.path}: {_short(error)}; {FOREIGN}") from error

    def read(self, count: int) -> NDArray[Any]:
        """The next rows.

        Args:
            count: how many; no more than are left.

        Returns:
            (count, ...) in this machine's byte order.
        """
        wanted = count * math.prod(self.shape[1:]) * self.dtype.itemsize
        try:
            content = self._stream.read(wanted)
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise DamagedFileError(f"cannot read {self.path}: {_short(error)}; download or copy it again") from error
        if len(content) != wanted:
            raise DamagedFileError(f"cannot read {self.path}: it ends too early; download or copy it again")
        rows = np.frombuffer(content, self.dtype).reshape(count, *self.shape[1:])
        return rows if rows.dtype.isnative else rows.astype(rows.dtype.newbyteorder("="))


@contextmanager
def open_archive(path: Path) -> Iterator[dict[str, ArchivedArray]]:
    """The arrays of an ``.npz`` file by name, to be read in order of rows; pickled objects are refused.

    Args:
        path: the file, compressed or not.

    Returns:
        A context with the arrays; each can be read once.
    """
    size_of(path)
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DamagedFileError(f"{path} is not an .npz file ({_short(error)}); {FOREIGN}") from error
    with archive:
        members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
        yield {one.filename.removesuffix(".npy"): ArchivedArray(archive, one) for one in members}


def _read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape, type and whether columns come first, of an array of plain numbers in the ``.npy`` format."""
    version = npy_format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise DamagedFileError(f"it is an array file of version {version}, which does not hold plain numbers")
    read_header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, by_columns, dtype = read_header(stream)
    check_numbers(dtype)
    if len(shape) > MAX_AXES or any(length < 0 for length in shape):
        raise DamagedFileError(f"its shape {_short(shape)} is not possible")
    return shape, dtype, by_columns


def _checked_type(path: Path, size: int) -> np.dtype[Any]:
    """The type of an ``.npy`` file's numbers, if its header agrees with the bytes that follow."""
    with path.open("rb") as stream:
        shape, dtype, _ = _read_header(stream)
        found = size - stream.tell()
    announced = math.prod(shape) * dtype.itemsize
    if announced != found:
        raise DamagedFileError(f"its header announces {_short(announced)} bytes of numbers, and {found:,} follow")
    return dtype


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _bounded_integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite_number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{_short(text)} is not a finite number")
    return number


def _check_tree(content: Any) -> None:
    """Refuse what would fail later, in writing or in drawing: deep nesting, and halves of characters."""
    level: Collection[Any] = [content]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str):
                item.encode("utf-8")
        level = below
        if not level:
            return
    raise ValueError(f"nested more than {MAX_DEPTH} deep")


def _short(value: object, length: int = 100) -> str:
    """Text from a file in one line of bounded length and without control characters."""
    text = "".join(character if character.isprintable() else " " for character in str(value)[: 2 * length])
    return text if len(text) <= length else f"{text[:length]}..."
