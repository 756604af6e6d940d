"""Names to worlds: the worlds that ship with the package, a folder of layouts, and rules written as names."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from lapwing.checks import as_path, is_folder, shown
from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import GridWorld, ObservationMode
from lapwing.environments.layouts import Layout, require_tiles
from lapwing.environments.rules import corridors, perfect_maze, room, rooms, symmetric_rooms
from lapwing.errors import LapwingError, did_you_mean

World = GridWorld | BoxWorld

LAYOUTS_VARIABLE = "LAPWING_LAYOUTS"

# Sutton, Precup & Singh (1999), Figure 2.
_FOUR_ROOMS = """\
XXXXXXXXXXXXX
X     X     X
X     X     X
X           X
X     X     X
X     X     X
XX XXXX     X
X     XXX XXX
X     X     X
X     X     X
X           X
X     X     X
XXXXXXXXXXXXX"""

_T_7 = [[(3, 1), (3, 7)], [(1, 7), (5, 7)]]
_T_9 = [[(4, 1), (4, 7)], [(1, 7), (7, 7)]]
_CROSS_11 = [[(5, 1), (5, 9)], [(1, 5), (9, 5)]]
_FOLDED_17 = [[(1, 1), (15, 1), (15, 4), (1, 4), (1, 7), (15, 7), (15, 10), (1, 10), (1, 13), (15, 13), (15, 17)]]

SHIPPED_LAYOUTS: dict[str, Callable[[], Layout]] = {
    "GridRoom-1": lambda: room(15, 15, "GridRoom-1"),
    "GridRoomSym-4": lambda: symmetric_rooms(2, 2, 5, "GridRoomSym-4"),
    "GridMaze-7": lambda: corridors((7, 9), _T_7, "GridMaze-7", "corridors in a T, 11 cells"),
    "GridMaze-9": lambda: corridors((9, 9), _T_9, "GridMaze-9", "corridors in a T, 13 cells"),
    "GridMaze-11": lambda: corridors((11, 11), _CROSS_11, "GridMaze-11", "a cross of 17 cells"),
    "GridMaze-17": lambda: corridors((17, 19), _FOLDED_17, "GridMaze-17", "one folded corridor, own fold"),
    "FourRooms": lambda: Layout.from_text(_FOUR_ROOMS, "FourRooms", "the classic four rooms"),
    "Rooms-16": lambda: rooms(4, 4, 4, seed=16, name="Rooms-16"),
    "Rooms-32": lambda: rooms(8, 4, 4, seed=32, extra_doors=1, name="Rooms-32"),
    "Rooms-64": lambda: rooms(8, 8, 4, seed=64, extra_doors=1, name="Rooms-64"),
    "Maze-19": lambda: perfect_maze(9, 9, seed=19, name="Maze-19"),
    "Maze-26": lambda: perfect_maze(13, 15, seed=26, name="Maze-26"),
    "Maze-32": lambda: perfect_maze(16, 15, seed=32, name="Maze-32"),
}

SHIPPED_BOXES: dict[str, Callable[[], BoxWorld]] = {
    # Sides in ratio 1 : 0.8 : 0.65 so that no eigenvalue repeats.
    "Box-1": lambda: BoxWorld((1.0,), 0.05, "Box-1"),
    "Box-2": lambda: BoxWorld((1.0, 0.8), 0.1, "Box-2"),
    "Box-3": lambda: BoxWorld((1.0, 0.8, 0.65), 0.1, "Box-3"),
}

_RULE = re.compile(r"(?P<rule>room|rooms|maze):(?P<sizes>\d{1,18}(?:x\d{1,18})*)(?::(?P<seed>\d{1,18}))?")


def world_names(layouts: str | Path | None = None) -> list[str]:
    """Every name that :func:`make_world` knows: shipped ones first, then those of the layouts folder."""
    shipped = [*SHIPPED_LAYOUTS, *SHIPPED_BOXES]
    return shipped + sorted(set(layout_files(layouts)) - set(shipped))


def layout_files(layouts: str | Path | None = None) -> dict[str, Path]:
    """Layout files by name, from ``layouts`` or else the folder that ``LAPWING_LAYOUTS`` names."""
    source = layouts if layouts is not None else os.environ.get(LAYOUTS_VARIABLE) or None
    if source is None:
        return {}
    folder = as_path(source, "the folder of layouts")
    if not is_folder(folder):
        said_by = "--layouts" if layouts is not None else LAYOUTS_VARIABLE
        raise LapwingError(f"{said_by} names {folder}, which is not a folder; give a folder of *.txt layouts")
    return {path.stem: path for path in sorted(folder.glob("*.txt"))}


def make_layout(name: str, layouts: str | Path | None = None) -> Layout:
    """A layout by name: a file of the layouts folder, a shipped one, a rule, or the path of a text file."""
    if not isinstance(name, str):
        raise LapwingError(f"a layout's name is text, got {shown(name)}")
    files = layout_files(layouts)
    if name in files:
        return Layout.from_file(files[name])
    if name in SHIPPED_LAYOUTS:
        return SHIPPED_LAYOUTS[name]()
    if name.endswith(".txt"):
        return Layout.from_file(name)
    match = _RULE.fullmatch(name)
    if match:
        return _layout_by_rule(name, match)
    if name in SHIPPED_BOXES:
        raise LapwingError(f"{name} is a continuous box and has no layout; make_world({name!r}) makes it")
    known = did_you_mean(name, world_names(layouts))
    known = known if known.endswith("?") else f"{known}."
    raise LapwingError(
        f"unknown world {shown(name)}; {known} A rule (room:20x30, rooms:4x4x5:SEED, maze:10x15:SEED) "
        "or the path of a .txt layout works too"
    )


def make_world(
    name: str | Layout,
    *,
    observation: ObservationMode = "xy",
    slip: float = 0.0,
    layouts: str | Path | None = None,
) -> World:
    """A world by name, or from a layout of your own.

    Example:
        >>> make_world("GridRoom-1").num_states
        225
        >>> make_world("maze:10x15:3").layout.shape
        (21, 31)
    """
    if isinstance(name, str) and name in SHIPPED_BOXES and name not in layout_files(layouts):
        if observation != "xy" or slip:
            raise LapwingError(f"{name} is a continuous box: it has no slip, and its only observation is xy")
        return SHIPPED_BOXES[name]()
    layout = name if isinstance(name, Layout) else make_layout(name, layouts)
    return GridWorld(layout, observation=observation, slip=slip)


def _layout_by_rule(name: str, match: re.Match[str]) -> Layout:
    rule, seed = match["rule"], int(match["seed"] or 0)
    sizes = [int(size) for size in match["sizes"].split("x")]
    wanted = {"room": (2,), "rooms": (2, 3), "maze": (2,)}[rule]
    if len(sizes) not in wanted:
        raise LapwingError(f"{name!r}: {rule} takes {' or '.join(map(str, wanted))} sizes, got {len(sizes)}")
    size = sizes[2] if len(sizes) == 3 else {"room": 1, "rooms": 4, "maze": 1}[rule]
    height, width = (n + 2 if rule == "room" else n * (size + 1) + 1 for n in sizes[:2])
    require_tiles(repr(name), height, width)
    if rule == "room":
        if match["seed"]:
            raise LapwingError(f"{name!r}: an empty room takes no seed")
        return room(sizes[0], sizes[1], name=name)
    if rule == "rooms":
        return rooms(sizes[0], sizes[1], size, seed=seed, name=name)
    return perfect_maze(sizes[0], sizes[1], seed=seed, name=name)
