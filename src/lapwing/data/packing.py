"""Several arrays per observation, such as an image and a vector, as one row of bytes each.

Counting, lookup, streaming and batches then handle one array, whatever an observation is made of.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.errors import ArgumentError, DamagedFileError

ENTRIES = "entries"
"""Where metadata list the entries of packed observations."""

MOST_ENTRIES = 64
LARGEST_ROW = 1 << 28


class RowEntry(NamedTuple):
    """One array of an observation.

    Attributes:
        key: its name.
        dtype: ``uint8`` or ``float32``.
        shape: of one observation's.
    """

    key: str
    dtype: str
    shape: tuple[int, ...]


class RowFormat(NamedTuple):
    """Which bytes of a row belong to which entry.

    Attributes:
        entries: in the order of their bytes.

    Example:
        >>> arrays = {"image": np.zeros((5, 4, 4), np.uint8), "speed": np.ones((5, 2))}
        >>> layout = RowFormat.of(arrays)
        >>> packed = layout.pack(arrays)
        >>> packed.shape, packed.dtype, layout.unpack(packed)["speed"].dtype
        ((5, 24), dtype('uint8'), dtype('float32'))
    """

    entries: tuple[RowEntry, ...]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The format of some observations: bytes stay bytes, all other numbers become float32.

        Args:
            arrays: (n, ...) by key.

        Returns:
            The format.
        """
        kinds = {key: "uint8" if rows.dtype == np.uint8 else "float32" for key, rows in arrays.items()}
        return cls(tuple(RowEntry(key, kinds[key], tuple(rows.shape[1:])) for key, rows in arrays.items()))

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any]) -> "RowFormat | None":
        """The format that data or a model were packed with.

        Args:
            metadata: of either, from a file perhaps.

        Returns:
            The format; None where observations are one array.

        Raises:
            DamagedFileError: if what is listed is not a format.
        """
        listed = metadata.get(ENTRIES)
        if listed is None:
            return None
        try:
            found = tuple(RowEntry(str(key), str(dtype), tuple(map(int, shape))) for key, dtype, shape in listed)
            sizes = [size for entry in found for size in entry.shape]
            sound = 0 < len(found) <= MOST_ENTRIES and all(entry.dtype in ("uint8", "float32") for entry in found)
            if not sound or min(sizes, default=1) < 0 or np.prod(sizes, dtype=np.float64) > LARGEST_ROW:
                raise ValueError("no such entries")
        except (TypeError, ValueError, OverflowError) as error:
            raise DamagedFileError(f"the entries of observations are not valid: {shown(listed)}") from error
        return cls(found)

    def as_metadata(self) -> dict[str, Any]:
        """The format as JSON types.

        Returns:
            What :meth:`from_metadata` reads.
        """
        return {ENTRIES: [[entry.key, entry.dtype, list(entry.shape)] for entry in self.entries]}

    @property
    def row(self) -> np.dtype[np.void]:
        """The type of one row, with a field for each entry."""
        return np.dtype([(f"{number}", entry.dtype, entry.shape) for number, entry in enumerate(self.entries)])

    def pack(self, arrays: Mapping[str, Any], out: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """Rows of bytes.

        Args:
            arrays: (n, ...) by key; others than those of the format are ignored.
            out: (n, bytes) to write to.

        Returns:
            (n, bytes).
        """
        missing = [entry.key for entry in self.entries if entry.key not in arrays]
        if missing:
            raise ArgumentError(f"observations need the keys {', '.join(e.key for e in self.entries)}; no {missing[0]}")
        parts = [np.asarray(arrays[entry.key]) for entry in self.entries]
        counts = {len(part) if part.ndim else 0 for part in parts}
        for entry, part in zip(self.entries, parts, strict=True):
            if part.shape[1:] != entry.shape or len(counts) > 1 or not part.ndim:
                wanted = "(n, " + ", ".join(map(str, entry.shape)) + ")"
                raise ArgumentError(f"observations[{entry.key!r}] must have shape {wanted}, got {part.shape}")
        rows = np.empty(counts.pop(), dtype=self.row) if out is None else out.view(self.row)[:, 0]
        for number, (entry, part) in enumerate(zip(self.entries, parts, strict=True)):
            # Adding zero turns -0.0 into 0.0: equal observations must have equal bytes.
            rows[f"{number}"] = part if entry.dtype == "uint8" else part.astype(np.float32) + np.float32(0)
        return rows.view(np.uint8).reshape(len(rows), -1)

    def unpack(self, packed: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """The arrays that were packed.

        Args:
            packed: (n, bytes).

        Returns:
            (n, ...) by key.
        """
        rows = np.ascontiguousarray(packed).view(self.row)[:, 0]
        return {entry.key: rows[f"{number}"] for number, entry in enumerate(self.entries)}
