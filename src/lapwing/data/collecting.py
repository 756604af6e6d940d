"""``collect``: experience from the package's worlds, thousands of episodes at once, or from a Gymnasium environment."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_whole, shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.trajectories import Trajectories, row_blocks
from lapwing.environments import Layout, World, make_world
from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import VectorEnv

    Source = str | Layout | World | gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

Policy = Callable[[NDArray[Any]], ArrayLike]
Progress = Callable[[int, int], None]
EpisodeLength = int | tuple[int, int]

Further = Callable[[World, NDArray[Any], "Policy | None", np.random.Generator], list[Any]]
"""Draws further next states of states."""

MAX_STEPS = 2**31 - 1
MOST_NEXT_STATES = 100
RECORDS = ("actions", "rewards")
CHUNK_TRANSITIONS = 1 << 21
OBSERVATION_BYTES = 4
DEFAULT_EPISODE_LENGTH = 50  # as in the paper: episodes of 51 states


def collect(
    source: "Source",
    steps: int = 1_000_000,
    *,
    episode_length: "int | tuple[int, int] | None" = None,
    policy: "Policy | ArrayLike | None" = None,
    observation: str | None = None,
    slip: float | None = None,
    keys: "str | Sequence[str] | None" = None,
    record: "str | Sequence[str]" = (),
    next_states: int = 1,
    all_actions: bool = False,
    seed: int = 0,
    layouts: "str | Path | None" = None,
    out: "str | Path | None" = None,
    progress: "Progress | None" = None,
) -> Trajectories:
    """Collect experience from one of the package's worlds or from any Gymnasium environment.

    Args:
        source: a world's name, a layout, a world, or a Gymnasium (vector) environment.
        steps: how many transitions; exactly as many are recorded.
        episode_length: transitions per episode, or a range (low, high) to draw from. Own worlds: 50 unless given,
            from uniform restarts. Gymnasium environments: their own ends unless given.
        policy: None (uniform at random), a function from observations to actions (own worlds and vector
            environments: a batch of them), or, for grids, a table (states, 4) of probabilities. For Gymnasium
            environments also an agent with ``predict``, and functions that return (action, state).
        observation: ``xy``, ``one_hot`` or ``pixels`` for grids.
        slip: probability that a random move replaces the chosen one, for grids.
        keys: which entries to record where a Gymnasium environment's observations are dictionaries or tuples
            (``"0"`` is the first of a tuple, ``"a.b"`` the key b inside a); one, or several.
        record: what to record besides observations: ``actions`` (of own worlds the moves really made, slips
            included), ``rewards`` (of Gymnasium environments), both, or nothing.
        next_states: how many independent next states to draw from each state, the one that the episode goes on with
            among them; for the package's own worlds. Counting uses all of them.
        all_actions: whether to record the next state of every action from each state, so that counting averages over
            actions exactly; for own worlds with numbered actions and the uniform policy.
        seed: the same seed gives the same data; episodes are the same with further next states or without.
        layouts: folder of layout files.
        out: folder to write to while collecting, for data larger than memory.
        progress: called with (steps done, steps in all) now and then.

    Returns:
        The experience; dictionaries of observations become keys (see :meth:`Trajectories.select`).

    Example:
        >>> data = collect("GridRoom-1", steps=1000, seed=0)
        >>> data.num_transitions, data.num_episodes
        (1000, 20)
    """
    steps, seed = _whole_number("steps", steps), _whole_number("seed", seed)
    if steps < 1:
        raise ArgumentError(f"steps must be at least 1, got {steps}")
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is a function that is called now and then, got {shown(progress)}")
    length = _checked_episode_length(episode_length)
    record = (record,) if isinstance(record, str) else tuple(record)
    for name in record:
        if name not in RECORDS:
            raise UnknownNameError(f"cannot record {shown(name)}; {did_you_mean(str(name), RECORDS)}")
    further = _whole_number("next_states", next_states)
    if further < 1 or further > MOST_NEXT_STATES:
        raise ArgumentError(f"next_states must be 1 to {MOST_NEXT_STATES}, got {shown(next_states)}")
    if all_actions and further > 1:
        raise ArgumentError("give either next_states or all_actions: the latter has one next state of every action")
    if _is_environment(source):
        if further > 1 or all_actions:
            raise ArgumentError(
                "next_states and all_actions need a simulator that can be reset to any state; "
                "give one of the package's own worlds"
            )
        from lapwing.data.from_gymnasium import collect_gymnasium

        if observation is not None or slip is not None:
            raise ArgumentError("observation and slip are for the package's own worlds; pass them to gymnasium.make")
        if policy is not None and not (callable(policy) or hasattr(policy, "predict")):
            raise ArgumentError(
                "the policy of a Gymnasium environment must be a function from observations to actions, "
                "or an agent with predict(observation)"
            )
        if isinstance(length, tuple):
            raise ArgumentError("for a Gymnasium environment episode_length must be one number, not a range")
        return collect_gymnasium(cast(Any, source), steps, seed, policy, length, keys, record, out, progress)
    if keys is not None:
        raise ArgumentError("keys are for Gymnasium environments whose observations are dictionaries")
    given = {"observation": observation, "slip": slip, "policy": None if callable(policy) else policy}
    world = _as_world(source, layouts).with_options(**{key: value for key, value in given.items() if value is not None})
    length, chosen = length or DEFAULT_EPISODE_LENGTH, policy if callable(policy) else None
    if all_actions:
        if not isinstance(world.actions, int):
            raise ArgumentError("all_actions needs numbered actions; these are continuous: use next_states=2 or more")
        if policy is not None:
            raise ArgumentError("all_actions gives every action the same weight, so it needs the uniform policy")
    draw = _every_action if all_actions else partial(_independent, count=further - 1) if further > 1 else None
    return _collect_world(world, steps, length, chosen, record, draw, seed, out, progress)


def draw_lengths(steps: int, episode_length: EpisodeLength, rng: np.random.Generator) -> NDArray[np.int64]:
    """Lengths of episodes that add up to ``steps``: all equal, or uniform in a range; the last one is cut to fit.

    Args:
        steps: transitions in total, at least 1.
        episode_length: transitions in every episode, or the smallest and the largest number (both included).
        rng: draws the lengths.

    Returns:
        (episodes,) transitions in each episode, in order.
    """
    low, high = (episode_length, episode_length) if isinstance(episode_length, int) else episode_length
    lengths = rng.integers(low, high, size=-(-steps // low), endpoint=True)
    ends = np.cumsum(lengths)
    count = int(np.searchsorted(ends, steps)) + 1
    lengths = lengths[:count]
    lengths[-1] -= int(ends[count - 1]) - steps
    return lengths


def _collect_world(
    world: World,
    steps: int,
    length: EpisodeLength,
    policy: Policy | None,
    record: tuple[str, ...],
    draw: "Further | None",
    seed: int,
    out: str | Path | None,
    progress: Progress | None,
) -> Trajectories:
    """Run all episodes from the world's own restarts, in chunks whose random numbers depend on the seed alone."""
    lengths = draw_lengths(steps, length, np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,))))
    table = world.table()
    kind = "callable" if policy is not None else "table" if getattr(world, "policy", None) is not None else "uniform"
    metadata = {"world": world.describe(), "steps": steps, "seed": seed}
    metadata |= {"episode_length": length if isinstance(length, int) else list(length), "policy": kind}
    boundaries = np.searchsorted(np.cumsum(lengths), np.arange(CHUNK_TRANSITIONS, steps, CHUNK_TRANSITIONS)) + 1
    done = 0
    with TrajectoryBuilder(out, table=table, tabulate=False) as builder:
        for number, chunk in enumerate(np.split(lengths, np.unique(boundaries))):
            if not len(chunk):
                continue
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, number)))
            states, actions = _run(world, chunk, policy, "actions" in record, rng)
            extra = {"actions": actions}
            if draw is not None:
                other = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, number)))
                extra |= _further_states(world, states, chunk, policy, draw, other, table is not None)
            # Observations may be far larger than states: they are made a few megabytes at a time.
            shape = states.shape if table is not None else (len(states), *world.observation_shape)
            for number_of_block, block in enumerate(row_blocks(shape, OBSERVATION_BYTES)):
                rows = states[block] if table is not None else world.observe(states[block])
                builder.add_states(rows, **(extra if number_of_block == 0 else {}))
            cut = np.ones(len(chunk), dtype=bool)
            builder.close_episodes(chunk, ~cut, cut)
            done += int(chunk.sum())
            if progress is not None:
                progress(done, steps)
        return builder.finish(metadata)


def _run(
    world: World, lengths: NDArray[np.int64], policy: Policy | None, record: bool, rng: np.random.Generator
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """All states of episodes of the given lengths, end to end, and their actions; only unfinished ones are stepped."""
    start = world.reset(len(lengths), rng)
    ends = np.cumsum(lengths)
    order = np.argsort(-lengths, kind="stable")
    firsts, sorted_lengths, state = (ends - lengths)[order], lengths[order], start[order]
    # Episode e has one state more than it has transitions, so that its first state is e places further on.
    places = firsts + order
    states = np.empty((int(ends[-1]) + len(lengths), *start.shape[1:]), dtype=start.dtype)
    states[places] = state
    actions: NDArray[Any] | None = None
    for time in range(int(lengths.max())):
        active = int(np.searchsorted(-sorted_lengths, -time, side="left"))
        state = state[:active]
        chosen: Any = None if policy is None else policy(world.observe(state))
        if policy is not None and chosen is None:
            raise ArgumentError(f"the policy must give {len(state)} actions, one per observation, got None")
        state, made = world.step(state, chosen, rng)
        states[places[:active] + time + 1] = state
        if record:
            if actions is None:
                # The number of a move fits into a byte.
                small = isinstance(world.actions, int) and world.actions <= 256
                dtype = np.uint8 if small else np.float32 if made.dtype == np.float64 else made.dtype
                actions = np.empty((int(ends[-1]), *made.shape[1:]), dtype=dtype)
            actions[firsts[:active] + time] = made
    return states, actions


def _every_action(world: World, states: NDArray[Any], policy: Policy | None, rng: np.random.Generator) -> list[Any]:
    """The next states of every action."""
    return [world.step(states, np.full(len(states), move), rng)[0] for move in range(cast(int, world.actions))]


def _independent(
    world: World, states: NDArray[Any], policy: Policy | None, rng: np.random.Generator, count: int
) -> list[Any]:
    """Independent next states by the same policy."""
    chosen: Any = None if policy is None else policy(world.observe(states))
    return [world.step(states, chosen, rng)[0] for _ in range(count)]


def _further_states(
    world: World,
    states: NDArray[Any],
    lengths: NDArray[np.int64],
    policy: Policy | None,
    draw: Further,
    rng: np.random.Generator,
    has_table: bool,
) -> dict[str, NDArray[Any]]:
    """Further next states of all transitions: rows of the table, or observations."""
    last = np.cumsum(lengths + 1) - 1
    before = np.delete(np.arange(len(states)), last)
    found = draw(world, states[before], policy, rng)
    if not has_table:
        return {"next_observations": np.stack([world.observe(part) for part in found], axis=1)}
    if draw is not _every_action:
        found = [states[before + 1], *found]
    return {"next_ids": np.stack(found, axis=1).astype(np.int32)}


def _whole_number(name: str, value: Any) -> int:
    """Any kind of integer as a plain int, which JSON and Gymnasium insist on; 1e6 will do, 0.5 and -1 will not."""
    whole = as_whole(value)
    if whole is None or whole < 0:
        raise ArgumentError(f"{name} must be a whole number of at least 0, got {shown(value)}")
    if name != "seed" and whole > MAX_STEPS:
        raise ArgumentError(f"{name} must be at most {MAX_STEPS:,}, got {shown(value)}; positions are 32-bit numbers")
    return whole


def _checked_episode_length(given: Any) -> EpisodeLength | None:
    if given is None:
        return None
    ends = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, given)
    low, high = (_whole_number("episode_length", end) for end in ends)
    if not 1 <= low <= high:
        raise ArgumentError(
            f"episode_length must be a whole number above 0, or (low, high) with low <= high; got {shown(given)}"
        )
    return (low, high) if isinstance(given, (tuple, list)) else low


def _is_environment(source: Any) -> bool:
    """Whether it is a Gymnasium environment; where Gymnasium is not loaded there is none."""
    gymnasium = sys.modules.get("gymnasium")
    return gymnasium is not None and isinstance(source, (gymnasium.Env, gymnasium.vector.VectorEnv))


def _as_world(source: Any, layouts: str | Path | None) -> World:
    if isinstance(source, (str, Layout)):
        return make_world(source, layouts=layouts)
    if isinstance(source, World):
        return source
    known = "a world's name, a layout, a world or a Gymnasium environment"
    raise ArgumentError(f"cannot collect from {type(source).__name__}; give {known}")
