"""Worlds by name: those that ship with the package, a folder of layouts, rules written as names, and descriptions."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lapwing.checks import as_path, shown
from lapwing.environments.box import BoxWorld
from lapwing.environments.continuous import ContinuousMaze
from lapwing.environments.grid import GridWorld, ObservationMode
from lapwing.environments.layouts import (
    Layout,
    corridors,
    perfect_maze,
    require_tiles,
    room,
    rooms,
    symmetric_rooms,
)
from lapwing.environments.observation_wrappers import ImageObservations, NoisyObservations
from lapwing.environments.potential import PotentialWorld
from lapwing.environments.product import ProductWorld
from lapwing.environments.rotation import NoisyRotation
from lapwing.environments.world import World
from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean
from lapwing.storage.reading import convert
from lapwing.storage.schemas import (
    BoxDescription,
    ContinuousDescription,
    GridDescription,
    ImagesDescription,
    NoisyDescription,
    PotentialDescription,
    ProductDescription,
    RotationDescription,
)

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

_U = """\
XXXXXXX
X     X
X     X
XXXX  X
XXXX  X
X     X
X     X
X     X
XXXXXXX"""

# Corridors and small rooms with a way round above, one below, and dead ends.
_MEDIUM = """\
XXXXXXXX
X   X  X
X X    X
X XXXX X
X   X  X
XX XX XX
X      X
XXXXXXXX"""

# A spiral of corridors around a hall, open to the right, with a second way below.
_LARGE = """\
XXXXXXXXXXXXXX
X         X  X
X XXXXXXX X XX
X X     X    X
X X XXX XXXX X
X X X     X  X
X   X     X XX
XXX X        X
X   XXXX XXX X
X XXX    X   X
X       XX X X
XXXXXXXXXXXXXX"""

# The doors of the four rooms lead round clockwise.
_CLOCKWISE = ((3, 6, "right"), (7, 9, "down"), (10, 6, "left"), (6, 2, "up"))
# Outer corners lead to the middle of the opposite room, and nothing leads back.
_PORTALS = ((1, 1, "up", 9, 9), (1, 11, "right", 9, 3), (11, 11, "down", 3, 3), (11, 1, "left", 3, 9))

_L = """\
XXXX
X XX
X  X
XXXX"""

_T_7 = [[(3, 1), (3, 7)], [(1, 7), (5, 7)]]
_T_9 = [[(4, 1), (4, 7)], [(1, 7), (7, 7)]]
_CROSS_11 = [[(5, 1), (5, 9)], [(1, 5), (9, 5)]]
_FOLDED_17 = [[(1, 1), (15, 1), (15, 4), (1, 4), (1, 7), (15, 7), (15, 10), (1, 10), (1, 13), (15, 13), (15, 17)]]


def _grid(make: Callable[..., Layout], *arguments: Any, **options: Any) -> Callable[[], World]:
    return lambda: GridWorld(make(*arguments, **options))


def _directed(name: str, description: str, **options: Any) -> Callable[[], World]:
    return lambda: GridWorld(Layout.from_text(_FOUR_ROOMS, name, description), **options)


def _continuous(text: str, deviation: float, name: str, description: str) -> Callable[[], World]:
    return lambda: ContinuousMaze(Layout.from_text(text, name, description), deviation)


# One row adds a world: `lapwing worlds`, the Gymnasium ids and the contract tests read this table.
WORLDS: dict[str, Callable[[], World]] = {
    "GridRoom-1": _grid(room, 15, 15, "GridRoom-1"),
    "GridRoomSym-4": _grid(symmetric_rooms, 2, 2, 5, "GridRoomSym-4"),
    "GridMaze-7": _grid(corridors, (7, 9), _T_7, "GridMaze-7", "corridors in a T, 11 cells"),
    "GridMaze-9": _grid(corridors, (9, 9), _T_9, "GridMaze-9", "corridors in a T, 13 cells"),
    "GridMaze-11": _grid(corridors, (11, 11), _CROSS_11, "GridMaze-11", "a cross of 17 cells"),
    "GridMaze-17": _grid(corridors, (17, 19), _FOLDED_17, "GridMaze-17", "one folded corridor, own fold"),
    "FourRooms": _grid(Layout.from_text, _FOUR_ROOMS, "FourRooms", "the classic four rooms"),
    "WindyRooms": _directed("WindyRooms", "four rooms, wind 1/3 down", wind=1 / 3),
    "OneWayRooms": _directed("OneWayRooms", "four rooms, one-way doors", one_way=_CLOCKWISE),
    "PortalRooms": _directed("PortalRooms", "four rooms, portals in the corners", portals=_PORTALS),
    "Rooms-16": _grid(rooms, 4, 4, 4, seed=16, name="Rooms-16"),
    "Rooms-32": _grid(rooms, 8, 4, 4, seed=32, extra_doors=1, name="Rooms-32"),
    "Rooms-64": _grid(rooms, 8, 8, 4, seed=64, extra_doors=1, name="Rooms-64"),
    "Maze-19": _grid(perfect_maze, 9, 9, seed=19, name="Maze-19"),
    "Maze-26": _grid(perfect_maze, 13, 15, seed=26, name="Maze-26"),
    "Maze-32": _grid(perfect_maze, 16, 15, seed=32, name="Maze-32"),
    "UMaze": _continuous(_U, 0.4, "UMaze", "a U of three corridors"),
    "UMaze-29": lambda: NoisyObservations(WORLDS["UMaze"](), 27, 0.3),
    "UMaze-Pixels": lambda: ImageObservations(WORLDS["UMaze"]()),
    "MediumMaze": _continuous(_MEDIUM, 0.3, "MediumMaze", "corridors with two ways round and dead ends"),
    "LargeMaze": _continuous(_LARGE, 0.35, "LargeMaze", "a spiral of corridors around a hall"),
    "ContinuousFourRooms": _continuous(_FOUR_ROOMS, 0.4, "ContinuousFourRooms", "the classic four rooms"),
    "LShape": _continuous(_L, 0.08, "LShape", "three quadrants of a square"),
    "NoisyRotation": NoisyRotation,
    "DoubleWell": lambda: PotentialWorld("double_well", 0.02, "DoubleWell"),
    "FourWell": lambda: PotentialWorld("four_well", 0.01, "FourWell"),
    # Sides in ratio 1 : 0.8 : 0.65 so that no eigenvalue repeats.
    "Box-1": lambda: BoxWorld((1.0,), 0.05, "Box-1"),
    "Box-2": lambda: BoxWorld((1.0, 0.8), 0.1, "Box-2"),
    "Box-3": lambda: BoxWorld((1.0, 0.8, 0.65), 0.1, "Box-3"),
}

CONTINUOUS_PREFIX = "continuous:"
PRODUCT_PREFIX = "product:"
IMAGES_PREFIX = "images:"

_RULE = re.compile(r"(?P<rule>room|rooms|maze):(?P<sizes>\d{1,18}(?:x\d{1,18})*)(?::(?P<seed>\d{1,18}))?")


def register_world(name: str, factory: Callable[[], World]) -> None:
    """Add a world of your own to the table of names, and to Gymnasium where that is loaded.

    Args:
        name: how it is asked for.
        factory: makes the world; its description must stay the same from call to call.
    """
    WORLDS[name] = factory
    if "gymnasium" in sys.modules:
        from lapwing.environments.gymnasium_env import register_worlds

        register_worlds()


def world_names(layouts: str | Path | None = None) -> list[str]:
    """Every name that :func:`make_world` knows.

    Args:
        layouts: folder of layout files, or None for ``LAPWING_LAYOUTS``.

    Returns:
        The table's names first, then those of the layouts folder.
    """
    return [*WORLDS, *sorted(set(layout_files(layouts)) - set(WORLDS))]


def layout_files(layouts: str | Path | None = None) -> dict[str, Path]:
    """Layout files by name, from ``layouts`` or else the folder that ``LAPWING_LAYOUTS`` names.

    Args:
        layouts: folder of ``*.txt`` files; None for the variable.

    Returns:
        Paths by file name without its ending, sorted; empty where no folder is named.
    """
    source = layouts if layouts is not None else os.environ.get(LAYOUTS_VARIABLE) or None
    if source is None:
        return {}
    folder = as_path(source, "the folder of layouts")
    if not os.path.isdir(folder):
        named_by = "--layouts" if layouts is not None else LAYOUTS_VARIABLE
        raise ArgumentError(f"{named_by} names {folder}, which is not a folder; give a folder of *.txt layouts")
    return {path.stem: path for path in sorted(folder.glob("*.txt"))}


def make_world(
    name: str | Layout,
    *,
    observation: ObservationMode | None = None,
    slip: float | None = None,
    layouts: str | Path | None = None,
) -> World:
    """A world by name, or from a layout of your own.

    Args:
        name: a name of :func:`world_names`, a rule such as ``rooms:4x4x5:SEED``, the path of a ``.txt`` layout, or a
            :class:`Layout`. A file of the layouts folder goes before a shipped world of the same name.
        observation: ``xy``, ``one_hot`` or ``pixels`` for grids; None is ``xy``.
        slip: probability that a random move replaces the chosen one, for grids.
        layouts: folder of layout files, or None for ``LAPWING_LAYOUTS``.

    Returns:
        The world.

    Example:
        >>> make_world("GridRoom-1").num_states
        225
        >>> make_world("maze:10x15:3").summary()["size"]
        '21 x 31'
    """
    given = {"observation": observation, "slip": slip}
    options = {option: value for option, value in given.items() if value is not None}
    world = GridWorld(name) if isinstance(name, Layout) else _named_world(name, layouts)
    return world.with_options(**options)


def _named_world(name: str, layouts: str | Path | None) -> World:
    if not isinstance(name, str):
        raise ArgumentError(f"the name of a world is text, got {shown(name)}")
    files = layout_files(layouts)
    if name in files:
        return GridWorld(Layout.from_file(files[name]))
    if name in WORLDS:
        return WORLDS[name]()
    if name.startswith(PRODUCT_PREFIX):
        return ProductWorld(
            tuple(_named_world(factor, layouts) for factor in name.removeprefix(PRODUCT_PREFIX).split("*"))
        )
    if name.startswith(CONTINUOUS_PREFIX):
        inner = _named_world(name.removeprefix(CONTINUOUS_PREFIX), layouts)
        if not isinstance(inner, GridWorld):
            raise ArgumentError(f"{shown(name)}: {CONTINUOUS_PREFIX} goes before the name of a grid world or a layout")
        if inner.is_directed:
            raise ArgumentError(f"{shown(name)}: a continuous maze has no wind, one-way doors or portals")
        return ContinuousMaze(inner.layout, name=CONTINUOUS_PREFIX + inner.name)
    if name.startswith(IMAGES_PREFIX):
        size, _, inner_name = name.removeprefix(IMAGES_PREFIX).partition(":")
        if not re.fullmatch(r"\d{1,9}", size) or not inner_name:
            raise ArgumentError(f"{shown(name)}: write images:PIXELS:NAME, such as images:84:UMaze")
        return ImageObservations(_named_world(inner_name, layouts), int(size), name)
    if name.endswith(".txt"):
        return GridWorld(Layout.from_file(name))
    match = _RULE.fullmatch(name)
    if match:
        return GridWorld(_layout_by_rule(name, match))
    known = did_you_mean(name, [*WORLDS, *files])
    known = known if known.endswith("?") else f"{known}."
    raise UnknownNameError(
        f"unknown world {shown(name)}; {known} A rule (room:20x30, rooms:4x4x5:SEED, maze:10x15:SEED) "
        "or the path of a .txt layout works too, continuous:NAME for any of "
        "them as a continuous maze, images:84:NAME for a continuous world seen as images of 84 pixels, and "
        "product:NAME*NAME for worlds side by side"
    )


def world_from_description(description: Any) -> World | None:
    """The world that :meth:`World.describe` described.

    Args:
        description: from the metadata of a model or a data set.

    Returns:
        The world; None where it cannot be made, as for a Gymnasium environment.
    """
    if not isinstance(description, dict):
        return None
    kind, name = description.get("kind"), description.get("name")
    if kind == "box":
        box = convert(description, BoxDescription, "the description of a world")
        return BoxWorld(tuple(box.sides), box.step, box.name)
    if kind == "continuous":
        maze = convert(description, ContinuousDescription, "the description of a world")
        steps: Any = maze.steps
        return ContinuousMaze(Layout.from_text(maze.layout, maze.name), maze.deviation, steps, maze.name)
    if kind == "rotation":
        turning = convert(description, RotationDescription, "the description of a world")
        return NoisyRotation(turning.drift, turning.noise, turning.name)
    if kind == "potential":
        wells = convert(description, PotentialDescription, "the description of a world")
        return PotentialWorld(wells.potential, wells.time_step, wells.name)
    if kind == "product":
        product = convert(description, ProductDescription, "the description of a world")
        nested = any(factor.get("kind") == "product" for factor in product.factors)
        factors = [None if nested else _described_inner(factor) for factor in product.factors]
        return None if None in factors else ProductWorld(tuple(filter(None, factors)), product.name)
    if kind == "noisy":
        noisy = convert(description, NoisyDescription, "the description of a world")
        inner = _described_inner(noisy.world)
        return None if inner is None else NoisyObservations(inner, noisy.dimensions, noisy.deviation, noisy.name)
    if kind == "images":
        images = convert(description, ImagesDescription, "the description of a world")
        inner = _described_inner(images.world)
        return None if inner is None else ImageObservations(inner, images.size, images.name)
    if kind == "grid":
        grid = convert(description, GridDescription, "the description of a world")
        observation: Any = grid.observation
        policy: Any = grid.policy  # whose rows the world checks
        directed: dict[str, Any] = {"wind": grid.wind, "one_way": grid.one_way, "portals": grid.portals}
        return GridWorld(Layout.from_text(grid.layout, name=grid.name), observation, grid.slip, policy, **directed)
    # A world registered by its user has a kind of its own, and is known by its name.
    if isinstance(name, str) and name in WORLDS:
        world = WORLDS[name]()
        return world if world.describe() == description else None
    return None


def _described_inner(description: dict[str, Any]) -> World | None:
    """The world behind another; one wrapper does not stand behind another, however deep a file says."""
    return None if description.get("kind") in ("noisy", "images") else world_from_description(description)


def _layout_by_rule(name: str, match: re.Match[str]) -> Layout:
    rule, seed = match["rule"], int(match["seed"] or 0)
    sizes = [int(size) for size in match["sizes"].split("x")]
    wanted = {"room": (2,), "rooms": (2, 3), "maze": (2,)}[rule]
    if len(sizes) not in wanted:
        raise ArgumentError(f"{name!r}: {rule} takes {' or '.join(map(str, wanted))} sizes, got {len(sizes)}")
    size = sizes[2] if len(sizes) == 3 else {"room": 1, "rooms": 4, "maze": 1}[rule]
    height, width = (n + 2 if rule == "room" else n * (size + 1) + 1 for n in sizes[:2])
    require_tiles(repr(name), height, width)
    if rule == "room":
        if match["seed"]:
            raise ArgumentError(f"{name!r}: an empty room takes no seed")
        return room(sizes[0], sizes[1], name=name)
    if rule == "rooms":
        return rooms(sizes[0], sizes[1], size, seed=seed, name=name)
    return perfect_maze(sizes[0], sizes[1], seed=seed, name=name)
