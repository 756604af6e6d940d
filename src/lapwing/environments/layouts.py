"""Layouts: which cells of a rectangle are free. Read from text, or made by rule: rooms, corridors, mazes."""

import itertools
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_path, as_whole, shown
from lapwing.errors import LapwingError
from lapwing.storage.reading import read_bytes

WALL_CHARACTERS = "X#"
FREE_CHARACTERS = " ."

MAX_TILES = 30_000_000
"""Tiles of a canvas, walls included: about three times the largest world that the multilevel engine was measured on."""

MAX_FILE_BYTES = 4 * MAX_TILES

Edges = NDArray[np.int64]
"""(edges, 4): row and column of both ends."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        """One line: its name and size; :meth:`to_text` has its cells."""
        return f"Layout({self.name!r}, {self.shape[0]} x {self.shape[1]}, {self.num_cells:,} free cells)"

    @classmethod
    def from_text(cls, text: str, name: str = "layout", description: str = "") -> "Layout":
        """Read a layout from text: ``X`` or ``#`` is wall, space or ``.`` is free, one line per row.

        Args:
            text: rows of equal length.
            name: of the layout.
            description: one line for ``lapwing worlds``.

        Returns:
            The layout.

        Raises:
            LapwingError: for an unknown character or rows of different lengths; it names the place.
        """
        if not isinstance(text, str):
            raise LapwingError(f"a layout is read from text of X and spaces, got {shown(text)}")
        require_tiles(f"layout {shown(name)}", len(text), 1)
        rows = text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n").split("\n")
        width = len(rows[0])
        for row, line in enumerate(rows):
            if unknown := re.search(f"[^{WALL_CHARACTERS}{FREE_CHARACTERS}]", line):
                raise LapwingError(
                    f"layout {name!r}, row {row}, column {unknown.start()}: unknown character {unknown[0]!r}; "
                    "use X or # for wall, a space or a dot for free"
                )
            if len(line) != width:
                raise LapwingError(
                    f"layout {name!r} is ragged: row {row} ends at column {len(line)}, row 0 at column {width}; "
                    "make all rows equally long (an editor may have cut spaces at the line's end: use dots)"
                )
        letters = np.frombuffer("".join(rows).encode("ascii"), dtype=np.uint8)
        free = np.isin(letters, [ord(character) for character in FREE_CHARACTERS])
        return cls(name, free.reshape(len(rows), width), description)

    @classmethod
    def from_file(cls, path: str | Path) -> "Layout":
        """Read a layout from a text file; its name is the file's without the ending.

        Args:
            path: of a UTF-8 text file.

        Returns:
            The layout.
        """
        path = as_path(path, "a layout file")
        try:
            text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
        except UnicodeDecodeError as error:
            raise LapwingError(f"{path} is not a text file; a layout is plain text of X and spaces") from error
        return cls.from_text(text, name=path.stem, description=f"from {path.name}")

    def to_text(self) -> str:
        """The layout as text, one line per row, that :meth:`from_text` reads back."""
        rows, columns = self.shape
        letters = np.full((rows, columns + 1), ord("\n"), dtype=np.uint8)
        letters[:, :-1] = np.where(self.free, ord(" "), ord("X"))
        return letters.tobytes()[:-1].decode("ascii")

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
        from scipy import ndimage

        return int(ndimage.label(self.free)[1])


def require_tiles(label: str, rows: int, columns: int) -> None:
    """Refuse a canvas larger than any that could be worked with, before memory is asked for it.

    Args:
        label: name of the layout in the message.
        rows: tiles down, walls included.
        columns: tiles across, walls included.

    Raises:
        LapwingError: above ``MAX_TILES`` tiles.
    """
    if rows * columns > MAX_TILES:
        raise LapwingError(f"{label} would have more than {MAX_TILES:,} tiles; choose a smaller world")


def room(rows: int, columns: int, name: str | None = None) -> Layout:
    """One empty room of ``rows`` x ``columns`` free cells inside a wall.

    Args:
        rows: free cells down.
        columns: free cells across.
        name: of the layout; None for ``room:ROWSxCOLUMNS``.

    Returns:
        A layout of (rows + 2) x (columns + 2) tiles.

    Example:
        >>> room(5, 6).num_cells
        30
    """
    rows, columns = _checked_sizes(rows=rows, columns=columns)
    require_tiles("this room", rows + 2, columns + 2)
    free = np.zeros((rows + 2, columns + 2), dtype=bool)
    free[1:-1, 1:-1] = True
    return Layout(name or f"room:{rows}x{columns}", free, f"one empty {rows}x{columns} room")


def rooms(
    room_rows: int, room_columns: int, size: int = 4, seed: int = 0, extra_doors: int = 0, name: str | None = None
) -> Layout:
    """A block of square rooms joined at random by a spanning tree of doors, plus ``extra_doors``.

    Args:
        room_rows: rooms down.
        room_columns: rooms across.
        size: cells along each side of a room.
        seed: of the spanning tree and of the places of doors.
        extra_doors: doors besides those of the tree; they make loops.
        name: of the layout; None for the name under which :func:`make_world` makes it.

    Returns:
        A connected layout.

    Example:
        >>> rooms(4, 4, size=4).num_cells       # 16 rooms of 16 cells and 15 doors
        271
    """
    room_rows, room_columns, size = _checked_block(room_rows, room_columns, size)
    rng = _seeded(seed)
    tree, others = _random_spanning_tree(room_rows, room_columns, rng)
    doors = as_whole(extra_doors)
    if doors is None or not 0 <= doors <= len(others):
        raise LapwingError(f"extra_doors must be between 0 and {len(others)} for these rooms, got {shown(extra_doors)}")
    free = _block_of_rooms(room_rows, room_columns, size)
    edges = np.concatenate([tree, others[:doors]])
    _open_doors(free, edges, size, rng.integers(size, size=len(edges)))
    label = name or f"rooms:{room_rows}x{room_columns}x{size}:{seed}"
    return Layout(label, free, f"{room_rows}x{room_columns} rooms of {size}x{size}, random doors")


def symmetric_rooms(room_rows: int, room_columns: int, size: int = 5, name: str | None = None) -> Layout:
    """A block of square rooms with a door in the middle of each shared wall.

    Args:
        room_rows: rooms down.
        room_columns: rooms across.
        size: cells along each side of a room.
        name: of the layout; None for the name under which :func:`make_world` makes it.

    Returns:
        A layout whose symmetries give repeated eigenvalues.
    """
    room_rows, room_columns, size = _checked_block(room_rows, room_columns, size)
    free = _block_of_rooms(room_rows, room_columns, size)
    edges = _grid_edges(room_rows, room_columns)
    _open_doors(free, edges, size, np.full(len(edges), size // 2))
    label = name or f"symmetric-rooms:{room_rows}x{room_columns}x{size}"
    return Layout(label, free, f"{room_rows}x{room_columns} rooms of {size}x{size}, doors in the middle")


def perfect_maze(rows: int, columns: int, seed: int = 0, name: str | None = None) -> Layout:
    """A maze with exactly one path between any two cells: ``rows`` x ``columns`` junctions, corridors between.

    Args:
        rows: junctions down.
        columns: junctions across.
        seed: of the spanning tree.
        name: of the layout; None for the name under which :func:`make_world` makes it.

    Returns:
        A layout of (2 rows + 1) x (2 columns + 1) tiles.

    Example:
        >>> perfect_maze(9, 9).shape            # walls included
        (19, 19)
    """
    rows, columns, _ = _checked_block(rows, columns, 1, ("rows", "columns"))
    tree, _ = _random_spanning_tree(rows, columns, _seeded(seed))
    free = _block_of_rooms(rows, columns, 1)
    _open_doors(free, tree, 1, np.zeros(len(tree), dtype=np.int64))
    return Layout(name or f"maze:{rows}x{columns}:{seed}", free, f"perfect maze of {rows}x{columns} junctions")


def corridors(shape: tuple[int, int], corners: list[list[tuple[int, int]]], name: str, description: str = "") -> Layout:
    """Straight corridors one cell wide on a walled canvas, each along its list of (row, column) corners.

    Args:
        shape: tiles (down, across) of the canvas, walls included.
        corners: one list of (row, column) tiles per corridor; neighbours in a list share a row or a column.
        name: of the layout.
        description: one line for ``lapwing worlds``.

    Returns:
        The layout.
    """
    height, width = _checked_sizes(rows=shape[0], columns=shape[1])
    require_tiles(f"layout {shown(name)}", height, width)
    free = np.zeros((height, width), dtype=bool)
    for path in corners:
        for (row0, column0), (row1, column1) in itertools.pairwise(path):
            rows = slice(min(row0, row1), max(row0, row1) + 1)
            free[rows, min(column0, column1) : max(column0, column1) + 1] = True
    return Layout(name, free, description)


def _checked_sizes(**sizes: int) -> list[int]:
    """Sizes as plain whole numbers above 0."""
    checked = []
    for label, value in sizes.items():
        whole = as_whole(value)
        if whole is None or whole < 1:
            raise LapwingError(f"{label} must be at least 1, got {shown(value)}; give a whole number")
        checked.append(whole)
    return checked


def _checked_block(
    rows: int, columns: int, size: int, names: tuple[str, str] = ("room_rows", "room_columns")
) -> tuple[int, int, int]:
    """Sizes of a block of rooms that has a canvas of bearable size."""
    height, width, side = _checked_sizes(**{names[0]: rows, names[1]: columns, "size": size})
    require_tiles("this block of rooms or junctions", height * (side + 1) + 1, width * (side + 1) + 1)
    return height, width, side


def _seeded(seed: int) -> np.random.Generator:
    whole = as_whole(seed)
    if whole is None or whole < 0:
        raise LapwingError(f"a seed is a whole number of at least 0, got {shown(seed)}")
    return np.random.default_rng(whole)


def _grid_edges(rows: int, columns: int) -> Edges:
    """Neighbouring pairs of a grid: all horizontal ones, then all vertical ones, row by row."""
    here = np.moveaxis(np.indices((rows, columns), dtype=np.int64), 0, -1)
    across = np.concatenate([here[:, :-1], here[:, 1:]], axis=-1)
    down = np.concatenate([here[:-1], here[1:]], axis=-1)
    return np.concatenate([across.reshape(-1, 4), down.reshape(-1, 4)])


def _random_spanning_tree(rows: int, columns: int, rng: np.random.Generator) -> tuple[Edges, Edges]:
    """Split a grid's edges into a random spanning tree and the others, these in random order."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    edges = _grid_edges(rows, columns)
    if not len(edges):
        return edges, edges
    # SciPy before 1.17.1 wants indices of 32 bits here.
    starts, ends = ((edges[:, place] * columns + edges[:, place + 1]).astype(np.int32) for place in (0, 2))
    # Distinct positive weights make the minimum spanning tree unique, hence the same on every machine.
    weights = 1.0 + rng.permutation(len(edges))
    count = rows * columns
    tree = minimum_spanning_tree(coo_array((weights, (starts, ends)), shape=(count, count)).tocsr())
    order = np.argsort(weights)
    chosen = np.zeros(len(edges), dtype=bool)
    chosen[np.rint(tree.data).astype(np.int64) - 1] = True
    return edges[order[chosen]], edges[order[~chosen]]


def _block_of_rooms(room_rows: int, room_columns: int, size: int) -> NDArray[np.bool_]:
    pitch = size + 1
    free = np.ones((room_rows * pitch + 1, room_columns * pitch + 1), dtype=bool)
    free[::pitch, :] = False
    free[:, ::pitch] = False
    return free


def _open_doors(free: NDArray[np.bool_], edges: Edges, size: int, offsets: NDArray[np.int64]) -> None:
    """One free tile in the wall between the two rooms of each edge, ``offset`` tiles along it."""
    pitch = size + 1
    row0, column0, row1, column1 = edges.T
    beside = row0 == row1
    rows = np.where(beside, row0 * pitch + 1 + offsets, row1 * pitch)
    columns = np.where(beside, column1 * pitch, column0 * pitch + 1 + offsets)
    free[rows, columns] = True
