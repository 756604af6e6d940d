"""The one door to experience: ``collect``."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import ArrayLike

from lapwing.checks import as_whole, shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.from_gymnasium import collect_gymnasium
from lapwing.data.trajectories import Trajectories
from lapwing.data.vectorised import EpisodeLength, Policy, Progress, collect_own_world, draw_lengths
from lapwing.environments import Layout, World, make_world
from lapwing.environments.grid import ObservationMode
from lapwing.errors import LapwingError

MAX_STEPS = 2**31 - 1

DEFAULT_EPISODE_LENGTH = 50  # as in the paper: episodes of 51 states

Source = str | Layout | World | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]


def collect(
    source: Source,
    steps: int = 1_000_000,
    *,
    episode_length: EpisodeLength | None = None,
    policy: Policy | ArrayLike | None = None,
    observation: ObservationMode | None = None,
    slip: float | None = None,
    seed: int = 0,
    layouts: str | Path | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Trajectories:
    """Collect experience from one of the package's worlds or from any Gymnasium environment.

    Args:
        source: a world's name, a layout, a world, or a Gymnasium (vector) environment.
        steps: how many transitions; exactly as many are recorded.
        episode_length: transitions per episode, or a range (low, high) to draw from. Own worlds: 50 unless given,
            from uniform restarts. Gymnasium environments: their own ends unless given.
        policy: None (uniform at random), a function from observations to actions (own worlds and vector
            environments: a batch of them), or, for grids, a table (states, 4) of probabilities.
        observation: ``xy``, ``one_hot`` or ``pixels`` for grids.
        slip: probability that a random move replaces the chosen one, for grids.
        seed: the same seed gives the same data.
        layouts: folder of layout files.
        out: folder to write to while collecting, for data larger than memory.
        progress: called with (steps done, steps in all) now and then.

    Example:
        >>> data = collect("GridRoom-1", steps=1000, seed=0)
        >>> data.num_transitions, data.num_episodes
        (1000, 20)
    """
    steps, seed = _whole_number("steps", steps), _whole_number("seed", seed)
    if progress is not None and not callable(progress):
        raise LapwingError(f"progress is a function that is called now and then, got {shown(progress)}")
    if isinstance(episode_length, (tuple, list)) and len(episode_length) == 2:
        low, high = (_whole_number("episode_length", end) for end in episode_length)
        episode_length = (low, high)
    elif episode_length is not None:
        episode_length = _whole_number("episode_length", episode_length)
    if isinstance(source, (gymnasium.Env, VectorEnv)):
        return _collect_environment(source, steps, episode_length, policy, observation, slip, seed, out, progress)
    world = _prepared_world(source, observation, slip, layouts, policy)
    length = DEFAULT_EPISODE_LENGTH if episode_length is None else episode_length
    lengths = draw_lengths(steps, length, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))))
    table = world.table()
    metadata = {"world": world.describe(), "steps": steps, "seed": seed}
    metadata["episode_length"] = length if isinstance(length, int) else list(length)
    table_policy = getattr(world, "policy", None) is not None
    metadata["policy"] = "callable" if callable(policy) else "table" if table_policy else "uniform"
    with TrajectoryBuilder(out, table=table, tabulate=False) as builder:
        collect_own_world(
            world, builder, lengths, seed, policy if callable(policy) else None, progress, table is not None
        )
        return builder.finish(metadata)


def _whole_number(name: str, value: Any) -> int:
    """Any kind of integer as a plain int, which JSON and Gymnasium insist on; 1e6 will do, 0.5 and -1 will not."""
    whole = as_whole(value)
    if whole is None or whole < 0:
        raise LapwingError(f"{name} must be a whole number of at least 0, got {shown(value)}")
    if name != "seed" and whole > MAX_STEPS:
        raise LapwingError(f"{name} must be at most {MAX_STEPS:,}, got {shown(value)}; positions are 32-bit numbers")
    return whole


def _prepared_world(
    source: str | Layout | World,
    observation: ObservationMode | None,
    slip: float | None,
    layouts: str | Path | None,
    policy: Policy | ArrayLike | None,
) -> World:
    if isinstance(source, (str, Layout)):
        world = make_world(source, layouts=layouts)
    elif isinstance(source, World):
        world = source
    else:
        raise LapwingError(
            f"cannot collect from {type(source).__name__}; "
            "give a world's name, a layout, a world or a Gymnasium environment"
        )
    changes: dict[str, Any] = {"observation": observation, "slip": slip}
    changes["policy"] = None if callable(policy) else policy
    return world.with_options(**{name: value for name, value in changes.items() if value is not None})


def _collect_environment(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    steps: int,
    episode_length: EpisodeLength | None,
    policy: Policy | ArrayLike | None,
    observation: ObservationMode | None,
    slip: float | None,
    seed: int,
    out: str | Path | None,
    progress: Progress | None,
) -> Trajectories:
    if observation is not None or slip is not None:
        raise LapwingError("observation and slip are for the package's own grids; set them when making the environment")
    if policy is not None and not callable(policy):
        raise LapwingError("for a Gymnasium environment the policy must be a function from observations to actions")
    if episode_length is not None and not isinstance(episode_length, int):
        raise LapwingError("for a Gymnasium environment episode_length must be one number, not a range")
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    metadata = {"world": {"kind": "gymnasium", "name": name}, "steps": steps, "seed": seed}
    metadata |= {"episode_length": episode_length, "policy": "uniform" if policy is None else "callable"}
    with TrajectoryBuilder(out) as builder:
        collect_gymnasium(env, builder, steps, seed, policy, episode_length, progress)
        return builder.finish(metadata)
