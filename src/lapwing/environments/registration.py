"""Gymnasium ids for every shipped world."""

from gymnasium.envs.registration import register, registry

from lapwing.environments.registry import SHIPPED_BOXES, SHIPPED_LAYOUTS


def register_worlds() -> None:
    """Register ``lapwing/NAME-v0`` for each shipped world, and ``lapwing/Grid-v0`` for a world of your own."""
    entries = {f"lapwing/{name}-v0": ("GridWorldEnv", {"world": name}) for name in SHIPPED_LAYOUTS}
    entries |= {f"lapwing/{name}-v0": ("BoxWorldEnv", {"world": name}) for name in SHIPPED_BOXES}
    entries["lapwing/Grid-v0"] = ("GridWorldEnv", {})
    for identifier, (class_name, kwargs) in entries.items():
        if identifier not in registry:
            register(id=identifier, entry_point=f"lapwing.environments.gym_worlds:{class_name}", kwargs=kwargs)
