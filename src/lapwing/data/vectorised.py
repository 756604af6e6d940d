"""Thousands of episodes at once in the package's own worlds."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.data.builder import TrajectoryBuilder
from lapwing.environments.world import World
from lapwing.errors import ArgumentError, LapwingError

Policy = Callable[[NDArray[Any]], ArrayLike]
Progress = Callable[[int, int], None]
EpisodeLength = int | tuple[int, int]

CHUNK_TRANSITIONS = 1 << 21


def draw_lengths(steps: int, episode_length: EpisodeLength, rng: np.random.Generator) -> NDArray[np.int64]:
    """Lengths of episodes that add up to ``steps``: all equal, or uniform in a range; the last one is cut to fit."""
    low, high = (episode_length, episode_length) if isinstance(episode_length, int) else episode_length
    if steps < 1:
        raise LapwingError(f"steps must be at least 1, got {steps}; an empty data set is of no use")
    if not 1 <= low <= high:
        raise LapwingError(
            f"episode_length must be a whole number above 0, or (low, high) with low <= high; got {episode_length}"
        )
    lengths = rng.integers(low, high, size=-(-steps // low), endpoint=True)
    ends = np.cumsum(lengths)
    count = int(np.searchsorted(ends, steps)) + 1
    lengths = lengths[:count]
    lengths[-1] -= int(ends[count - 1]) - steps
    return lengths


def collect_own_world(
    world: World,
    builder: TrajectoryBuilder,
    lengths: NDArray[np.int64],
    seed: int,
    policy: Policy | None = None,
    progress: Progress | None = None,
    tabulated: bool = True,
) -> None:
    """Run all episodes from uniform restarts, in chunks whose random numbers depend on the seed alone."""
    done, total = 0, int(lengths.sum())
    boundaries = np.searchsorted(np.cumsum(lengths), np.arange(CHUNK_TRANSITIONS, total, CHUNK_TRANSITIONS)) + 1
    for number, chunk in enumerate(np.split(lengths, np.unique(boundaries))):
        if not len(chunk):
            continue
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, number)))
        states = _run(world, world.reset(len(chunk), rng), chunk, policy, rng)
        if not tabulated:
            states = world.observe(states)
        flags = np.ones(len(chunk), dtype=bool)
        builder.add(states, chunk, ~flags, flags)
        done += int(chunk.sum())
        if progress is not None:
            progress(done, total)


def _run(
    world: World,
    start: NDArray[Any],
    lengths: NDArray[np.int64],
    policy: Policy | None,
    rng: np.random.Generator,
) -> NDArray[Any]:
    """All states of episodes of the given lengths, end to end; only the unfinished ones are stepped."""
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    order = np.argsort(-lengths, kind="stable")
    places, sorted_lengths, state = offsets[:-1][order], lengths[order], start[order]
    states = np.empty((int(offsets[-1]), *start.shape[1:]), dtype=start.dtype)
    states[places] = state
    for time in range(int(lengths.max())):
        active = int(np.searchsorted(-sorted_lengths, -time, side="left"))
        state = state[:active]
        actions: Any = None if policy is None else policy(world.observe(state))
        if policy is not None and actions is None:
            raise ArgumentError(f"the policy must give {len(state)} actions, one per observation, got None")
        state, _ = world.step(state, actions, rng)
        states[places[:active] + time + 1] = state
    return states
