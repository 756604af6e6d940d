"""The Laplacian representation of a reinforcement-learning environment, exact or from experience."""

import importlib
from typing import TYPE_CHECKING, Any

from lapwing.environments.registration import register_worlds

__version__ = "0.1.0"

__all__ = [
    "BoxWorld",
    "GridWorld",
    "LaplacianRepresentation",
    "LapwingError",
    "LapwingWarning",
    "Layout",
    "Learner",
    "Operator",
    "Trajectories",
    "allo",
    "audit",
    "collect",
    "counting_score",
    "from_arrays",
    "from_minari",
    "gdo",
    "geometric",
    "ggdo",
    "learn",
    "load",
    "make_world",
    "one_step",
    "operator",
    "perfect_maze",
    "rayleigh_ritz",
    "room",
    "rooms",
    "score",
    "solve",
    "successor",
    "truncated",
    "world_names",
]

# The module each public name lives in. Loaded on first use, so that `lapwing --help` answers at once.
_HOMES = {
    "BoxWorld": "environments.box",
    "GridWorld": "environments.grid",
    "LaplacianRepresentation": "representation",
    "LapwingError": "errors",
    "LapwingWarning": "errors",
    "Layout": "environments.layouts",
    "Learner": "training.learner",
    "Operator": "operators.operator",
    "Trajectories": "data.trajectories",
    "allo": "objectives",
    "audit": "data.audit",
    "collect": "data.collect",
    "counting_score": "evaluation.score",
    "from_arrays": "data.sources",
    "from_minari": "data.sources",
    "gdo": "objectives",
    "geometric": "definitions",
    "ggdo": "objectives",
    "learn": "training.learner",
    "load": "representation",
    "make_world": "environments.registry",
    "one_step": "definitions",
    "operator": "solving",
    "perfect_maze": "environments.rules",
    "rayleigh_ritz": "operators.ritz",
    "room": "environments.rules",
    "rooms": "environments.rules",
    "score": "evaluation.score",
    "solve": "solving",
    "successor": "definitions",
    "truncated": "definitions",
    "world_names": "environments.registry",
}

if TYPE_CHECKING:
    from lapwing.data.audit import audit
    from lapwing.data.collect import collect
    from lapwing.data.sources import from_arrays, from_minari
    from lapwing.data.trajectories import Trajectories
    from lapwing.definitions import geometric, one_step, successor, truncated
    from lapwing.environments.box import BoxWorld
    from lapwing.environments.grid import GridWorld
    from lapwing.environments.layouts import Layout
    from lapwing.environments.registry import make_world, world_names
    from lapwing.environments.rules import perfect_maze, room, rooms
    from lapwing.errors import LapwingError, LapwingWarning
    from lapwing.evaluation.score import counting_score, score
    from lapwing.objectives import allo, gdo, ggdo
    from lapwing.operators.operator import Operator
    from lapwing.operators.ritz import rayleigh_ritz
    from lapwing.representation import LaplacianRepresentation, load
    from lapwing.solving import operator, solve
    from lapwing.training.learner import Learner, learn

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
