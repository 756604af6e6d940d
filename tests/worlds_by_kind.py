"""The names of the shipped worlds, grids and boxes."""

from lapwing.environments import WORLDS, BoxWorld, GridWorld

GRIDS = tuple(name for name, make in WORLDS.items() if isinstance(make(), GridWorld))
BOXES = tuple(name for name, make in WORLDS.items() if isinstance(make(), BoxWorld))
