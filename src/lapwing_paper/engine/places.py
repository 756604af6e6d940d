"""The paper's worlds in a study: the authors' layouts where a folder has them, our own in their place where not."""

from dataclasses import dataclass
from pathlib import Path

from lapwing.environments import WORLDS, World, layout_files, make_world
from lapwing.errors import LapwingError

# In the order of the number of states.
TWELVE_WORLDS = (
    "GridMaze-7",
    "GridMaze-9",
    "GridMaze-17",
    "GridRoomSym-4",
    "GridRoom-4",
    "GridMaze-19",
    "GridRoom-1",
    "GridRoom-16",
    "GridMaze-26",
    "GridMaze-32",
    "GridRoom-32",
    "GridRoom-64",
)

STAND_INS = {
    "GridMaze-19": "Maze-19",
    "GridMaze-26": "Maze-26",
    "GridMaze-32": "Maze-32",
    "GridRoom-4": "FourRooms",
    "GridRoom-16": "Rooms-16",
    "GridRoom-32": "Rooms-32",
    "GridRoom-64": "Rooms-64",
}

AUTHORS, SAME, STAND_IN, OTHER = "authors' layout", "own layout, same geometry", "own stand-in", "own choice"


@dataclass(frozen=True)
class Place:
    """A world of a study.

    Attributes:
        paper_name: what the paper calls it, or what the user asked for.
        world: the world itself.
        origin: whose layout it is.
    """

    paper_name: str
    world: World
    origin: str

    @property
    def label(self) -> str:
        """The name in tables: the paper's where the layout is the paper's or its equal, else our own."""
        return self.paper_name if self.origin in (AUTHORS, SAME) else self.world.name

    @property
    def is_the_papers(self) -> bool:
        """Whether the paper's numbers speak of this very world."""
        return self.origin in (AUTHORS, SAME)

    def description(self) -> dict[str, object]:
        """The world as plain data, from which another process makes it again."""
        return self.world.describe()


def place(name: str, layouts: Path | None) -> Place:
    """The world that stands for ``name`` in a study.

    Example:
        >>> place("GridRoom-16", None).label, place("GridRoom-1", None).label
        ('Rooms-16', 'GridRoom-1')
    """
    if name in layout_files(layouts):
        return Place(name, make_world(name, layouts=layouts), AUTHORS if _is_the_papers(name) else OTHER)
    if name in STAND_INS:
        return Place(name, make_world(STAND_INS[name]), STAND_IN)
    if name in WORLDS and _is_the_papers(name):
        return Place(name, make_world(name), SAME)
    paper_names = {own: theirs for theirs, own in STAND_INS.items()}
    if name in paper_names:
        return Place(paper_names[name], make_world(name), STAND_IN)
    return Place(name, make_world(name, layouts=layouts), OTHER)


def places(names: tuple[str, ...], layouts: Path | None) -> tuple[Place, ...]:
    """All of them; the same world twice is an error."""
    found = tuple(place(name, layouts) for name in names)
    labels = [one.label for one in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise LapwingError(f"{twice[0]} is named twice among the worlds; name each once")
    return found


def origins_note(found: tuple[Place, ...]) -> str:
    """One sentence that says whose layouts a study used."""
    by_origin: dict[str, list[str]] = {}
    for one in found:
        name = f"{one.label} for {one.paper_name}" if one.origin == STAND_IN else one.label
        by_origin.setdefault(one.origin, []).append(name)
    return "Layouts: " + "; ".join(f"{origin}: {', '.join(names)}" for origin, names in by_origin.items()) + "."


def _is_the_papers(name: str) -> bool:
    return name in TWELVE_WORLDS or name == "GridMaze-11"
