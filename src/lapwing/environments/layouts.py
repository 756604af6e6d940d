"""Layouts: which cells of a rectangle are free. From text, and back to text."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from lapwing.checks import as_path, shown
from lapwing.errors import LapwingError
from lapwing.storage.reading import read_bytes

WALL_CHARACTERS = "X#"
FREE_CHARACTERS = " ."

MAX_TILES = 10_000_000
"""Tiles of a canvas, walls included: about ten times the largest world that is solved in a minute."""

MAX_FILE_BYTES = 4 * MAX_TILES


@dataclass(frozen=True, eq=False)
class Layout:
    """A rectangle of free cells and walls; cells are numbered row by row over the free ones.

    Example:
        >>> layout = Layout.from_text("XXXX\\nX  X\\nXXXX", name="corridor")
        >>> layout.shape, layout.num_cells
        ((3, 4), 2)
    """

    name: str
    free: NDArray[np.bool_]
    description: str = ""

    def __post_init__(self) -> None:
        """Refuse a layout in which nothing can stand."""
        free = np.asarray(self.free)
        if free.ndim != 2 or free.dtype != np.bool_:
            raise LapwingError(
                f"layout {self.name!r}: needs a two-dimensional array of booleans (True is free), "
                f"got {free.ndim} dimension(s) of {free.dtype}"
            )
        require_tiles(f"layout {shown(self.name)}", *free.shape)
        object.__setattr__(self, "free", free)
        if not self.free.any():
            raise LapwingError(
                f"layout {self.name!r} has no free cell; mark free cells with a space or a dot, walls with X or #"
            )

    @classmethod
    def from_text(cls, text: str, name: str = "layout", description: str = "") -> "Layout":
        """Read a layout from text: ``X`` or ``#`` is wall, space or ``.`` is free, one line per row."""
        if not isinstance(text, str):
            raise LapwingError(f"a layout is read from text of X and spaces, got {shown(text)}")
        require_tiles(f"layout {shown(name)}", len(text), 1)
        rows = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n").split("\n")
        width = len(rows[0])
        for row, line in enumerate(rows):
            for column, character in enumerate(line):
                if character not in WALL_CHARACTERS + FREE_CHARACTERS:
                    raise LapwingError(
                        f"layout {name!r}, row {row}, column {column}: unknown character {character!r}; "
                        "use X or # for wall, a space or a dot for free"
                    )
            if len(line) != width:
                raise LapwingError(
                    f"layout {name!r} is ragged: row {row} ends at column {len(line)}, row 0 at column {width}; "
                    "make all rows equally long (an editor may have cut spaces at the line's end: use dots)"
                )
        free = np.array([[character in FREE_CHARACTERS for character in line] for line in rows], dtype=bool)
        return cls(name, free.reshape(len(rows), width), description)

    @classmethod
    def from_file(cls, path: str | Path) -> "Layout":
        """Read a layout from a text file; its name is the file's without the ending."""
        path = as_path(path, "a layout file")
        try:
            text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise LapwingError(f"{path} is not a text file; a layout is plain text of X and spaces") from error
        return cls.from_text(text, name=path.stem, description=f"from {path.name}")

    def to_text(self) -> str:
        """The layout as text, one line per row, that :meth:`from_text` reads back."""
        return "\n".join("".join(" " if cell else "X" for cell in row) for row in self.free)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas, walls included."""
        rows, columns = self.free.shape
        return rows, columns

    @cached_property
    def num_cells(self) -> int:
        """How many cells are free."""
        return int(self.free.sum())

    @cached_property
    def cells(self) -> NDArray[np.intp]:
        """(num_cells, 2): row and column of each free cell."""
        return np.argwhere(self.free)

    @cached_property
    def index(self) -> NDArray[np.intp]:
        """(rows, columns): the number of each free cell, -1 at walls."""
        index = np.full(self.shape, -1, dtype=np.intp)
        index[self.free] = np.arange(self.num_cells)
        return index

    @cached_property
    def num_components(self) -> int:
        """How many separate regions the free cells form; 1 when all is connected."""
        return int(ndimage.label(self.free)[1])


def require_tiles(label: str, rows: int, columns: int) -> None:
    """Refuse a canvas larger than any that could be worked with, before memory is asked for it."""
    if rows * columns > MAX_TILES:
        raise LapwingError(f"{label} would have more than {MAX_TILES:,} tiles; choose a smaller world")
