"""Worlds: grids from rules or text layouts, continuous ones, and their names. Gymnasium is loaded on demand only."""

from lapwing.environments.box import BoxWorld, box_eigenfunctions
from lapwing.environments.continuous import ContinuousMaze
from lapwing.environments.grid import MOVE_NAMES, MOVES, GridWorld
from lapwing.environments.layouts import Layout, corridors, perfect_maze, room, rooms, symmetric_rooms
from lapwing.environments.observation_wrappers import ImageObservations, NoisyObservations
from lapwing.environments.potential import PotentialWorld
from lapwing.environments.product import ProductWorld
from lapwing.environments.registry import (
    LAYOUTS_VARIABLE,
    WORLDS,
    layout_files,
    make_world,
    register_world,
    world_from_description,
    world_names,
)
from lapwing.environments.rotation import NoisyRotation, circle_eigenfunctions
from lapwing.environments.world import (
    AGENT_COLOUR,
    FLOOR_COLOUR,
    WALL_COLOUR,
    CircleClosedForm,
    ClosedForm,
    Discretisation,
    Hidden,
    World,
)

__all__ = [
    "AGENT_COLOUR",
    "FLOOR_COLOUR",
    "LAYOUTS_VARIABLE",
    "MOVES",
    "MOVE_NAMES",
    "WALL_COLOUR",
    "WORLDS",
    "BoxWorld",
    "CircleClosedForm",
    "ClosedForm",
    "ContinuousMaze",
    "Discretisation",
    "GridWorld",
    "Hidden",
    "ImageObservations",
    "Layout",
    "NoisyObservations",
    "NoisyRotation",
    "PotentialWorld",
    "ProductWorld",
    "World",
    "box_eigenfunctions",
    "circle_eigenfunctions",
    "corridors",
    "layout_files",
    "make_world",
    "perfect_maze",
    "register_world",
    "room",
    "rooms",
    "symmetric_rooms",
    "world_from_description",
    "world_names",
]
