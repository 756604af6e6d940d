"""The worlds as Gymnasium environments, reward-free and without an end of their own."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import AGENT_COLOUR, MOVES, GridWorld, ObservationMode
from lapwing.environments.layouts import Layout
from lapwing.environments.registry import make_world
from lapwing.errors import LapwingError


class GridWorldEnv(gymnasium.Env[NDArray[Any], np.int64]):
    """A grid world for Gymnasium: four moves, uniform restarts, reward 0; ``info["state"]`` is the state's number.

    Args:
        world: a name that :func:`lapwing.make_world` knows, a :class:`Layout`, or a :class:`GridWorld`.
        observation: ``xy``, ``one_hot`` or ``pixels``; None is ``xy``, or what a given :class:`GridWorld` has.
        slip: probability that a uniformly random move replaces the chosen one; None as for ``observation``.
        layouts: folder of layout files, or None for ``LAPWING_LAYOUTS``.
        render_mode: ``rgb_array`` or None.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own convention

    def __init__(
        self,
        world: str | Layout | GridWorld = "GridRoom-1",
        observation: ObservationMode | None = None,
        slip: float | None = None,
        layouts: str | Path | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Build the world and its spaces."""
        made = world if isinstance(world, GridWorld) else make_world(world, layouts=layouts)
        if not isinstance(made, GridWorld):
            raise LapwingError(
                f"{made.name} is a continuous box: make it with gymnasium.make('lapwing/{made.name}-v0')"
            )
        options = {"observation": observation, "slip": slip}
        given = {option: value for option, value in options.items() if value is not None}
        self.world = made = made.with_options(**given) if given else made
        self.render_mode = _checked_render_mode(render_mode)
        self.action_space = spaces.Discrete(len(MOVES))
        low, high, dtype = {
            "xy": (-0.5, 0.5, np.float32),
            "one_hot": (0.0, 1.0, np.float32),
            "pixels": (0, 255, np.uint8),
        }[made.observation]
        self.observation_space = spaces.Box(low, high, made.observation_shape, dtype)
        self.state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start in a state drawn uniformly, or in ``options["state"]``."""
        super().reset(seed=seed)
        state = (options or {}).get("state")
        if state is not None and not (isinstance(state, int | np.integer) and 0 <= state < self.world.num_states):
            raise LapwingError(
                f"options['state'] must be a whole number from 0 to {self.world.num_states - 1}, got {state!r}"
            )
        self.state = int(self.np_random.integers(self.world.num_states)) if state is None else int(state)
        return self._observe(), {"state": self.state}

    def step(self, action: np.int64) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Make the move, or a random one where it slips; blocked moves stay."""
        if not self.action_space.contains(action):
            raise LapwingError(f"action must be 0 to {len(MOVES) - 1} (up, right, down, left), got {action!r}")
        slips = self.world.slip > 0 and self.np_random.random() < self.world.slip
        move = int(self.np_random.integers(len(MOVES))) if slips else int(action)
        self.state = int(self.world.successors[self.state, move])
        return self._observe(), 0.0, False, False, {"state": self.state}

    def render(self) -> NDArray[np.uint8] | None:
        """The world with the agent, enlarged to at least 256 pixels along its longer side."""
        if self.render_mode is None:
            return None
        image = self.world.with_options(observation="pixels").observe([self.state])[0]
        scale = max(1, -(-256 // max(image.shape[:2])))
        return np.asarray(image.repeat(scale, axis=0).repeat(scale, axis=1))

    def _observe(self) -> NDArray[Any]:
        return np.asarray(self.world.observe([self.state])[0])


class BoxWorldEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """The reflecting walk in a box for Gymnasium; an action in [-1, 1] per axis is scaled by the world's step."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012 - Gymnasium's own convention

    def __init__(self, world: str | BoxWorld = "Box-2", render_mode: str | None = None) -> None:
        """Build the box and its spaces."""
        made = make_world(world) if isinstance(world, str) else world
        if not isinstance(made, BoxWorld):
            raise LapwingError(f"{made.name} is a grid world: make it with gymnasium.make('lapwing/{made.name}-v0')")
        self.world = made
        self.render_mode = _checked_render_mode(render_mode)
        self.action_space = spaces.Box(-1.0, 1.0, (made.dimension,), np.float32)
        self.observation_space = spaces.Box(-0.5, 0.5, (made.dimension,), np.float32)
        self.point = np.zeros(made.dimension)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start at a point drawn uniformly from the box."""
        super().reset(seed=seed)
        self.point = self.world.uniform_points(1, self.np_random)[0]
        return self.world.observe(self.point), {}

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move by the action times the world's step, reflected at the walls."""
        if not self.action_space.contains(action):
            raise LapwingError(f"action must be {self.world.dimension} float32 number(s) in [-1, 1], got {action!r}")
        self.point = self.world.advance(self.point, action)
        return self.world.observe(self.point), 0.0, False, False, {}

    def render(self) -> NDArray[np.uint8] | None:
        """A square with a dot at the first two coordinates (the middle where there is one only)."""
        if self.render_mode is None:
            return None
        image = np.full((128, 128, 3), 236, dtype=np.uint8)
        scaled = np.append(self.world.observe(self.point), [0.0])[:2] + 0.5
        row, column = np.clip((scaled * 127).astype(int), 2, 125)
        image[row - 2 : row + 3, column - 2 : column + 3] = AGENT_COLOUR
        return image


def _checked_render_mode(render_mode: str | None) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise LapwingError(f"unknown render_mode {render_mode!r}; use 'rgb_array' or leave it out")
    return render_mode
