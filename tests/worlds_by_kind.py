"""The names of the shipped worlds: grids, those of them that are directed, and boxes."""

from lapwing.environments import WORLDS, BoxWorld, GridWorld

GRIDS = tuple(name for name, make in WORLDS.items() if isinstance(make(), GridWorld))
DIRECTED = tuple(name for name in GRIDS if WORLDS[name]().is_directed)  # type: ignore[attr-defined]
BOXES = tuple(name for name, make in WORLDS.items() if isinstance(make(), BoxWorld))
