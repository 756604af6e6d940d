"""Worlds as Gymnasium environments, reward-free and without an end of their own, and their Gymnasium ids."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import register, registry
from numpy.typing import NDArray

from lapwing.environments.grid import ObservationMode
from lapwing.environments.layouts import Layout
from lapwing.environments.registry import WORLDS, make_world
from lapwing.environments.world import World
from lapwing.errors import ArgumentError


class WorldEnv(gymnasium.Env[NDArray[Any], Any]):
    """Any world for Gymnasium: restarts as the world draws them, reward 0; ``info["state"]`` is the state.

    Args:
        world: a name that :func:`lapwing.make_world` knows, a :class:`Layout`, or a world.
        observation: ``xy``, ``one_hot`` or ``pixels`` for grids; None keeps what the world has.
        slip: probability that a uniformly random move replaces the chosen one, for grids; None as above.
        layouts: folder of layout files, or None for ``LAPWING_LAYOUTS``.
        render_mode: ``rgb_array`` or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own convention

    def __init__(
        self,
        world: str | Layout | World = "GridRoom-1",
        observation: ObservationMode | None = None,
        slip: float | None = None,
        layouts: str | Path | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Build the world and its spaces."""
        made = world if isinstance(world, World) else make_world(world, layouts=layouts)
        given = {"observation": observation, "slip": slip}
        self.world = made.with_options(**{option: value for option, value in given.items() if value is not None})
        if render_mode not in (None, "rgb_array"):
            raise ArgumentError(f"unknown render_mode {render_mode!r}; use 'rgb_array' or leave it out")
        self.render_mode = render_mode
        actions, (low, high) = self.world.actions, self.world.observation_bounds
        self.action_space: spaces.Space[Any] = (
            spaces.Discrete(actions) if isinstance(actions, int) else spaces.Box(-1.0, 1.0, actions, np.float32)
        )
        self._state = self.world.reset(1, np.random.default_rng(0))
        dtype: Any = self.world.observe(self._state).dtype
        self.observation_space = spaces.Box(low, high, self.world.observation_shape, dtype)

    @property
    def state(self) -> Any:
        """The present state: a plain number where states are numbered."""
        state = self._state[0]
        return int(state) if isinstance(state, np.integer) else state

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start in a state that the world draws, or in ``options["state"]``."""
        super().reset(seed=seed)
        state = (options or {}).get("state")
        if state is None:
            self._state = self.world.reset(1, self.np_random)
            return self._observe(), {"state": self.state}
        start = np.asarray(state)
        count = self.world.num_states
        whole = np.issubdtype(start.dtype, np.integer)
        if start.shape != self._state.shape[1:] or (count is not None and not (whole and 0 <= start < count)):
            wanted = (
                f"an array of shape {self._state.shape[1:]}" if count is None else f"a number from 0 to {count - 1}"
            )
            raise ArgumentError(f"options['state'] must be {wanted}, got {state!r}")
        self._state = start[None].astype(self._state.dtype)
        return self._observe(), {"state": self.state}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """One step of the world."""
        if not self.action_space.contains(action):
            raise ArgumentError(f"the action must be in {self.action_space}, got {action!r}")
        self._state, _ = self.world.step(self._state, np.asarray(action)[None], self.np_random)
        return self._observe(), 0.0, False, False, {"state": self.state}

    def render(self) -> NDArray[np.uint8] | None:
        """A picture of the present state, if the world has one."""
        return None if self.render_mode is None else self.world.render(self.state)

    def _observe(self) -> NDArray[Any]:
        return np.asarray(self.world.observe(self._state)[0])


def register_worlds() -> None:
    """Register ``lapwing/NAME-v0`` for each world of the table, and ``lapwing/Grid-v0`` for a world of your own."""
    entries: dict[str, dict[str, Any]] = {f"lapwing/{name}-v0": {"world": name} for name in WORLDS}
    for identifier, kwargs in (entries | {"lapwing/Grid-v0": {}}).items():
        if identifier not in registry:
            register(id=identifier, entry_point="lapwing.environments.gymnasium_env:WorldEnv", kwargs=kwargs)
