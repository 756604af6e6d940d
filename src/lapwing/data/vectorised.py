"""Thousands of episodes at once in the package's own worlds."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_reals
from lapwing.data.builder import TrajectoryBuilder
from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import MOVES, GridWorld
from lapwing.environments.registry import World
from lapwing.errors import LapwingError

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
) -> None:
    """Run all episodes from uniform restarts, in chunks whose random numbers depend on the seed alone."""
    done, total = 0, int(lengths.sum())
    boundaries = np.searchsorted(np.cumsum(lengths), np.arange(CHUNK_TRANSITIONS, total, CHUNK_TRANSITIONS)) + 1
    for number, chunk in enumerate(np.split(lengths, np.unique(boundaries))):
        if not len(chunk):
            continue
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, number)))
        if isinstance(world, GridWorld):
            states = _run(rng.integers(world.num_states, size=len(chunk)), chunk, _grid_step(world, policy), rng)
        else:
            points = _run(world.uniform_points(len(chunk), rng), chunk, _box_step(world, policy), rng)
            states = world.observe(points)
        flags = np.ones(len(chunk), dtype=bool)
        builder.add(states, chunk, ~flags, flags)
        done += int(chunk.sum())
        if progress is not None:
            progress(done, total)


Step = Callable[[NDArray[Any], np.random.Generator], NDArray[Any]]


def _run(start: NDArray[Any], lengths: NDArray[np.int64], step: Step, rng: np.random.Generator) -> NDArray[Any]:
    """All states of episodes of the given lengths, end to end; only the unfinished ones are stepped."""
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    order = np.argsort(-lengths, kind="stable")
    places, sorted_lengths, state = offsets[:-1][order], lengths[order], start[order]
    states = np.empty((int(offsets[-1]), *start.shape[1:]), dtype=start.dtype)
    states[places] = state
    for time in range(int(lengths.max())):
        active = int(np.searchsorted(-sorted_lengths, -time, side="left"))
        state = step(state[:active], rng)
        states[places[:active] + time + 1] = state
    return states


def _grid_step(world: GridWorld, policy: Policy | None) -> Step:
    successors = world.successors.astype(np.int64).ravel()
    count = len(MOVES)
    if policy is not None:
        return _grid_step_by_callable(world, policy, successors)
    if world.policy is None:  # slipping changes nothing when all moves are equally likely
        return lambda state, rng: successors[state * count + rng.integers(count, size=len(state), dtype=np.uint8)]
    thresholds = np.cumsum(world.move_probabilities(), axis=1)[:, :-1]

    def step(state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        moves = (rng.random(len(state))[:, None] >= thresholds[state]).sum(axis=1)
        return successors[state * count + moves]

    return step


def _grid_step_by_callable(world: GridWorld, policy: Policy, successors: NDArray[np.int64]) -> Step:
    count = len(MOVES)

    def step(state: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        answer = policy(world.observe(state))
        moves = None if as_reals(answer) is None else np.asarray(answer)
        if moves is None or moves.shape != state.shape or not np.issubdtype(moves.dtype, np.integer):
            got = "something else" if moves is None else f"{moves.dtype} {moves.shape}"
            raise LapwingError(f"the policy must give {len(state)} whole numbers, one per observation, got {got}")
        if ((moves < 0) | (moves >= count)).any():
            raise LapwingError(f"the policy gave a move outside 0 to {count - 1} (up, right, down, left)")
        slips = rng.random(len(state)) < world.slip
        moves = np.where(slips, rng.integers(count, size=len(state)), moves)
        return successors[state * count + moves]

    return step


def _box_step(world: BoxWorld, policy: Policy | None) -> Step:
    def step(points: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
        actions = rng.uniform(-1.0, 1.0, points.shape) if policy is None else as_reals(policy(world.observe(points)))
        if actions is None or actions.shape != points.shape or not np.isfinite(actions).all():
            got = "something else" if actions is None else str(actions.shape)
            raise LapwingError(f"the policy must give finite actions of shape {points.shape}, got {got}")
        return world.advance(points, np.clip(actions, -1.0, 1.0))

    return step
