"""The Laplacian representation of a reinforcement-learning environment, exact or from experience."""

import importlib
from typing import TYPE_CHECKING, Any

from lapwing.environments.registration import register_worlds

__version__ = "0.1.0"

# Each public name and the module it lives in. Loaded on first use, so that `lapwing --help` answers at once.
_HOMES = {
    "BoxWorld": "environments.box",
    "GridWorld": "environments.grid",
    "Layout": "environments.layouts",
    "make_world": "environments.registry",
    "world_names": "environments.registry",
    "perfect_maze": "environments.rules",
    "room": "environments.rules",
    "rooms": "environments.rules",
    "LapwingError": "errors",
}

__all__ = [
    "BoxWorld",
    "GridWorld",
    "LapwingError",
    "Layout",
    "make_world",
    "perfect_maze",
    "room",
    "rooms",
    "world_names",
]

if TYPE_CHECKING:
    from lapwing.environments.box import BoxWorld
    from lapwing.environments.grid import GridWorld
    from lapwing.environments.layouts import Layout
    from lapwing.environments.registry import make_world, world_names
    from lapwing.environments.rules import perfect_maze, room, rooms
    from lapwing.errors import LapwingError

register_worlds()


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'lapwing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"lapwing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, for completion."""
    return sorted(__all__)
