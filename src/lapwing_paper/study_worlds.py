"""The paper's environments in a study: the authors' layouts if a folder has them, otherwise our own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing import GridWorld, make_world
from lapwing.environments import World, corridors, layout_files, world_from_description
from lapwing.errors import ArgumentError, DataError

# In the order of the number of states.
TWELVE_WORLDS = (
    "GridMaze-7", "GridMaze-9", "GridMaze-17", "GridRoomSym-4", "GridRoom-4", "GridMaze-19",
    "GridRoom-1", "GridRoom-16", "GridMaze-26", "GridMaze-32", "GridRoom-32", "GridRoom-64",
)  # fmt: skip
PAPER_WORLDS = (*TWELVE_WORLDS, "GridMaze-11")

STAND_INS = {
    "GridMaze-19": "Maze-19",
    "GridMaze-26": "Maze-26",
    "GridMaze-32": "Maze-32",
    "GridRoom-4": "FourRooms",
    "GridRoom-16": "Rooms-16",
    "GridRoom-32": "Rooms-32",
    "GridRoom-64": "Rooms-64",
}

# Worlds of the papers on distances and options: those whose geometry follows from a rule, and stand-ins for the others.
_I_MAZE = ((17, 5), [[(1, 1), (1, 3)], [(1, 2), (15, 2)], [(15, 1), (15, 3)]], "I-Maze")
DOMAINS: dict[str, Callable[[], World]] = {
    "room:9x9": lambda: make_world("room:9x9"),
    "room:10x10": lambda: make_world("room:10x10"),
    "I-Maze": lambda: GridWorld(corridors(*_I_MAZE)),
    "FourRoom-104": lambda: make_world("FourRooms"),
}
DOMAIN_STAND_INS = {"HardMaze": "rooms:3x3x4:3", "TwoRoom": "rooms:1x2x10:0"}

AUTHORS, SAME, STAND_IN, OTHER = "authors' layout", "own layout, same geometry", "own stand-in", "own choice"


@dataclass(frozen=True)
class StudyWorld:
    """An environment of a study.

    Attributes:
        paper_name: the paper's name for it, or the name that the user gave.
        world: the environment.
        origin: whose layout it is.
    """

    paper_name: str
    world: World
    origin: str

    @property
    def label(self) -> str:
        """The name in tables: the paper's where the geometry is the paper's, else our own."""
        return self.paper_name if self.is_the_papers else self.world.name

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper's numbers are about this very environment."""
        return self.origin in (AUTHORS, SAME)


def study_world(name: str, layouts: Path | None) -> StudyWorld:
    """The environment that represents ``name`` in a study.

    Args:
        name: one of the paper's names, or any name that :func:`lapwing.make_world` knows.
        layouts: folder of the authors' layouts.

    Returns:
        The environment, with its name in the paper and the origin of its layout.

    Example:
        >>> study_world("GridRoom-16", None).label, study_world("GridRoom-1", None).label
        ('Rooms-16', 'GridRoom-1')
    """
    theirs = name in PAPER_WORLDS or name in DOMAINS or name in DOMAIN_STAND_INS
    if name in layout_files(layouts):
        return StudyWorld(name, make_world(name, layouts=layouts), AUTHORS if theirs else OTHER)
    if name in DOMAINS:
        return StudyWorld(name, DOMAINS[name](), SAME)
    if own := (STAND_INS | DOMAIN_STAND_INS).get(name):
        return StudyWorld(name, make_world(own), STAND_IN)
    if name in PAPER_WORLDS:
        return StudyWorld(name, make_world(name), SAME)
    paper_names = {own: theirs for theirs, own in STAND_INS.items()}
    if name in paper_names:
        return StudyWorld(paper_names[name], make_world(name), STAND_IN)
    return StudyWorld(name, make_world(name, layouts=layouts), OTHER)


def study_worlds(names: tuple[str, ...], layouts: Path | None) -> tuple[StudyWorld, ...]:
    """All of them, see :func:`study_world`; the same environment twice is an error.

    Args:
        names: see :func:`study_world`.
        layouts: folder of the authors' layouts.

    Returns:
        The worlds in the order of their names.
    """
    found = tuple(study_world(name, layouts) for name in names)
    labels = [one.label for one in found]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ArgumentError(f"{twice[0]} is named twice among the worlds; name each once")
    return found


def world_of_run(specification: dict[str, Any]) -> World:
    """The world that a run's specification describes.

    Args:
        specification: of the run.

    Returns:
        The world.
    """
    world = world_from_description(specification["world"])
    if world is None:
        raise DataError("a run needs a world")
    return world


def origins_note(found: tuple[StudyWorld, ...]) -> str:
    """One sentence that states whose layouts a study used.

    Args:
        found: the worlds of a study.

    Returns:
        A sentence for the notes of a table.
    """
    by_origin: dict[str, list[str]] = {}
    for one in found:
        name = f"{one.label} for {one.paper_name}" if one.origin == STAND_IN else one.label
        by_origin.setdefault(one.origin, []).append(name)
    return "Layouts: " + "; ".join(f"{origin}: {', '.join(names)}" for origin, names in by_origin.items()) + "."
