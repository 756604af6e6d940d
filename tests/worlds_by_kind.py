"""The names of the shipped worlds, those with a layout and those without."""

from lapwing.environments import WORLDS, GridWorld

GRIDS = tuple(name for name, make in WORLDS.items() if isinstance(make(), GridWorld))
BOXES = tuple(name for name in WORLDS if name not in GRIDS)
