"""Worlds as plain data, so that a result file says which world it belongs to and can be drawn from itself alone."""

from typing import Any

import numpy as np

from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import Layout
from lapwing.environments.registry import World
from lapwing.errors import LapwingError


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


def world_from_description(description: dict[str, Any] | None) -> World | None:
    """The world that :func:`describe_world` described; None for anything else, such as a Gymnasium environment."""
    if not isinstance(description, dict) or description.get("kind") not in ("grid", "box"):
        return None
    try:
        if description["kind"] == "box":
            sides = tuple(float(side) for side in description["sides"])
            return BoxWorld(sides, float(description["step"]), str(description["name"]))
        layout = Layout.from_text(str(description["layout"]), name=str(description["name"]))
        policy = description.get("policy")
        table = None if policy is None else np.asarray(policy, dtype=np.float64)
        return GridWorld(layout, description["observation"], float(description["slip"]), table)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LapwingError):
            raise
        raise LapwingError(f"the description of a world in this file is damaged: {error}") from error
