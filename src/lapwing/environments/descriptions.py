"""Worlds as plain data, so that a result file says which world it belongs to and can be drawn from itself alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import MAX_TILES, Layout
from lapwing.environments.registry import World
from lapwing.errors import LapwingError
from lapwing.storage.records import Record


def describe_world(world: World) -> dict[str, Any]:
    """What is needed to draw or make a world again, as JSON types."""
    if isinstance(world, BoxWorld):
        return {"kind": "box", "name": world.name, "sides": list(world.sides), "step": world.step}
    return {
        "kind": "grid",
        "name": world.name,
        "layout": world.layout.to_text(),
        "observation": world.observation,
        "slip": world.slip,
        "policy": None if world.policy is None else world.policy.tolist(),
    }


def world_from_description(description: Any) -> World | None:
    """The world that :func:`describe_world` described; None for anything else, such as a Gymnasium environment."""
    if not isinstance(description, dict) or description.get("kind") not in ("grid", "box"):
        return None
    told = Record(description, "the description of a world")
    name = told.text("name")
    if description["kind"] == "box":
        return BoxWorld(tuple(told.numbers("sides")), told.number("step"), name)
    layout = Layout.from_text(told.text("layout", longest=MAX_TILES), name=name)
    observation: Any = told.text("observation")
    return GridWorld(layout, observation, told.number("slip"), _policy(told))


def _policy(told: Record) -> NDArray[np.float64] | None:
    """The policy's table; which rows it must have, the world says."""
    if not told.has("policy"):
        return None
    try:
        return np.asarray(told.content["policy"], dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise LapwingError("the policy of a world is no table of numbers; the file is damaged") from error
