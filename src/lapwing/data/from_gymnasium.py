"""Experience from any Gymnasium environment or vector environment, never across a reset."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import FrameStackObservation, TransformObservation
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean

FLUSH_STATES = 8192
FLUSH_BYTES = 1 << 25
# What Python needs for an array of its own, beside the numbers in it.
ROW_OVERHEAD = 256

ARRAYS = (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete, spaces.Discrete)
GOAL_WORDS = ("goal", "mission", "target", "instruction", "task")

AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
Rows = dict[str, NDArray[Any]]
"""A batch of observations by key; the key is empty where an observation is one array."""
Picked = dict[str, Any]
"""Entries of observations by key, as the environment gives them."""


class Step(NamedTuple):
    """One call of ``step``: which environments really moved, by which action, where to, and which were reset."""

    moved: NDArray[np.bool_]
    actions: Any
    rewards: Any
    observations: Any
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    restarted: NDArray[np.bool_]
    first_observations: Any


def collect_gymnasium(
    env: AnyEnv,
    steps: int,
    seed: int,
    policy: Any,
    episode_length: int | None,
    keys: str | Sequence[str] | None,
    record: tuple[str, ...],
    out: str | Path | None,
    progress: Any,
) -> Trajectories:
    """Step until ``steps`` transitions are recorded; episodes still open then are marked truncated.

    Args:
        env: a single or a vector environment; it is reset with ``seed`` and not closed.
        steps: transitions to record, over all sub-environments together.
        seed: of the environment and of random actions.
        policy: a function from an observation (a batch of them with a vector environment) to an action; None for
            uniformly random actions.
        episode_length: truncate episodes after so many transitions; single environments only.
        keys: which entries of dictionary or tuple observations to keep; None where there is only one.
        record: any of ``actions`` and ``rewards``.
        out: folder to write to, for data larger than memory.
        progress: called with (done, total), or None.

    Returns:
        The experience, with the environment's name in its metadata.
    """
    space = env.single_observation_space if isinstance(env, VectorEnv) else env.observation_space
    entries = ObservationEntries.chosen(space, keys)
    if isinstance(env, VectorEnv):
        if episode_length is not None:
            raise ArgumentError(
                "a vector environment ends its own episodes; wrap it in TimeLimit instead of episode_length"
            )
        start, stream = _vector_steps(env, entries, seed, policy)
    else:
        start, stream = _single_steps(env, entries, seed, policy, episode_length)
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    metadata = {"world": {"kind": "gymnasium", "name": name}, "steps": steps, "seed": seed}
    metadata |= {"episode_length": episode_length, "policy": "uniform" if policy is None else "callable"}
    actions = env.single_action_space if isinstance(env, VectorEnv) else env.action_space
    if isinstance(actions, (spaces.Dict, spaces.Tuple)):
        # Actions that are not arrays are not recorded.
        record = tuple(item for item in record if item != "actions")
    done = 0
    with TrajectoryBuilder(out) as builder:
        recorder = _Recorder(builder, entries.encode(start), record)
        for step in stream:
            rows, first = entries.encode(step.observations), entries.encode(step.first_observations)
            for i in np.flatnonzero(step.moved).tolist():
                if done == steps:
                    break
                recorder.extend(i, rows, step)
                done += 1
                if step.terminated[i] or step.truncated[i]:
                    recorder.close(i, bool(step.terminated[i]), bool(step.truncated[i]))
            if done == steps:
                break
            for i in np.flatnonzero(step.restarted).tolist():
                recorder.begin(i, first)
            if progress is not None:
                progress(done, steps)
        recorder.close_all()
        if progress is not None:
            progress(done, steps)
        return builder.finish(metadata)


class _Recorder:
    """Keeps one open episode per environment and hands finished ones to the builder in blocks.

    A single environment's open episode goes to the builder in pieces, because it may never end; of several the open
    ones wait, since the builder takes one episode after the other.
    """

    def __init__(self, builder: TrajectoryBuilder, start: Rows, record: tuple[str, ...]) -> None:
        self._builder, self._keys, self._record = builder, tuple(start), record
        self._open = [_Episode.first(start, i) for i in range(len(start[self._keys[0]]))]
        self._finished = _Episode()
        self._lengths: list[int] = []
        self._ends: list[tuple[bool, bool]] = []
        self._handed_over = 0
        self._row_bytes = sum(rows[0].nbytes + ROW_OVERHEAD for rows in start.values())

    def extend(self, index: int, rows: Rows, step: Step) -> None:
        episode = self._open[index]
        for key in self._keys:
            episode.states[key].append(rows[key][index])
        for name in self._record:
            episode.transitions[name].append(np.array(getattr(step, name)[index], copy=True))
        if len(self._open) == 1 and self._is_much(len(self._finished) + len(episode)):
            self._flush()
            self._handed_over += len(episode)
            self._hand_over(episode)
            self._open[0] = _Episode()

    def begin(self, index: int, rows: Rows) -> None:
        self._open[index] = _Episode.first(rows, index)

    def close(self, index: int, terminated: bool, truncated: bool) -> None:
        episode, self._open[index] = self._open[index], _Episode()
        states, self._handed_over = self._handed_over + len(episode), 0
        if states < 2:
            return
        self._finished.extend(episode)
        self._lengths.append(states - 1)
        self._ends.append((terminated, truncated))
        if len(self._finished) >= FLUSH_STATES or self._is_much(len(self._finished)):
            self._flush()

    def close_all(self) -> None:
        for index in range(len(self._open)):
            self.close(index, terminated=False, truncated=True)
        self._flush()

    def _is_much(self, states: int) -> bool:
        return states > 1 and states * self._row_bytes >= FLUSH_BYTES

    def _hand_over(self, episode: "_Episode") -> None:
        observations = {key: np.stack(rows) for key, rows in episode.states.items()}
        transitions = {name: np.stack(rows) for name, rows in episode.transitions.items()}
        self._builder.add_states(observations.get("", observations), **transitions)

    def _flush(self) -> None:
        if len(self._finished):
            self._hand_over(self._finished)
        if self._lengths:
            ends = np.array(self._ends, dtype=bool)
            self._builder.close_episodes(np.array(self._lengths), ends[:, 0], ends[:, 1])
        self._finished, self._lengths, self._ends = _Episode(), [], []


class _Episode:
    """Rows of states by key, and of transitions by name."""

    def __init__(self) -> None:
        self.states: dict[str, list[Any]] = defaultdict(list)
        self.transitions: dict[str, list[Any]] = defaultdict(list)

    @classmethod
    def first(cls, rows: Rows, index: int) -> "_Episode":
        episode = cls()
        episode.states |= {key: [batch[index]] for key, batch in rows.items()}
        return episode

    def __len__(self) -> int:
        return max(map(len, self.states.values()), default=0)

    def extend(self, other: "_Episode") -> None:
        for mine, theirs in ((self.states, other.states), (self.transitions, other.transitions)):
            for name, rows in theirs.items():
                mine[name] += rows


def _single_steps(
    env: gymnasium.Env[Any, Any], entries: "ObservationEntries", seed: int, policy: Any, limit: int | None
) -> tuple[Picked, Iterator[Step]]:
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    act = _action_function(policy, env.action_space)

    def stream(observation: Any) -> Iterator[Step]:
        length = 0
        while True:
            action = env.action_space.sample() if policy is None else act(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            length += 1
            truncated = truncated or length == limit
            ended = bool(terminated or truncated)
            # An environment may hand out one buffer again and again, and reset overwrites it.
            final = {key: np.array(part, copy=True)[None] for key, part in entries.pick(observation).items()}
            if ended:
                observation, _ = env.reset()
                length = 0
            flags = [np.array([flag], dtype=bool) for flag in (True, terminated, truncated, ended)]
            yield Step(flags[0], [action], [float(reward)], final, flags[1], flags[2], flags[3], batch_of(observation))

    def batch_of(observation: Any) -> Picked:
        return {key: np.asarray(part)[None] for key, part in entries.pick(observation).items()}

    return batch_of(observation), stream(observation)


def _vector_steps(
    env: VectorEnv[Any, Any, Any], entries: "ObservationEntries", seed: int, policy: Any
) -> tuple[Picked, Iterator[Step]]:
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    observations, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    act = _action_function(policy, env.action_space)

    def stream(observations: Any) -> Iterator[Step]:
        resetting = np.zeros(env.num_envs, dtype=bool)
        while True:
            actions = env.action_space.sample() if policy is None else act(observations)
            observations, rewards, terminated, truncated, infos = env.step(actions)
            moved, ended = ~resetting, np.logical_or(terminated, truncated)
            seen = entries.pick(observations)
            step = Step(moved, actions, rewards, seen, terminated, truncated, resetting, seen)
            if mode is AutoresetMode.NEXT_STEP:
                # The step after an ending only resets: its observation begins an episode and ends no transition.
                yield step
                resetting = ended
                continue
            final = {key: np.array(part, copy=True) for key, part in seen.items()}
            if mode is AutoresetMode.SAME_STEP:
                for i in np.flatnonzero(ended).tolist():
                    for key, part in entries.pick(infos["final_obs"][i]).items():
                        final[key][i] = part
            elif ended.any():
                observations, _ = env.reset(options={"reset_mask": ended})
            yield step._replace(observations=final, restarted=ended, first_observations=entries.pick(observations))

    return entries.pick(observations), stream(observations)


def _action_function(policy: Any, space: spaces.Space[Any]) -> Callable[[Any], Any]:
    """A policy in any of the usual forms as a function from observations to actions of the space.

    An object with ``predict``, as agents of Stable-Baselines3 have; a function that returns an action, or an action
    and a state of its own; a number where actions are arrays of one number.
    """
    choose = policy.predict if hasattr(policy, "predict") else policy

    def act(observation: Any) -> Any:
        action = choose(observation)
        if isinstance(action, tuple) and len(action) == 2 and not isinstance(space, spaces.Tuple):
            action = action[0]
        if isinstance(space, (spaces.Dict, spaces.Tuple)):
            return action
        if action is None:
            raise ArgumentError(f"the policy gave None; it must give an action of {space}")
        array = np.asarray(action)
        if array.size != math.prod(space.shape or ()) or array.dtype.kind not in "biuf":
            raise ArgumentError(f"the policy gave {shown(action)}, which is not an action of {space}")
        if isinstance(space, spaces.Discrete):
            return array.item()
        return array.reshape(space.shape or ()).astype(space.dtype, copy=False)

    return act


def stack_observations(env: gymnasium.Env[Any, Any], count: int) -> gymnasium.Env[Any, Any]:
    """Join the last observations of an environment into one, where one alone does not show the state.

    Args:
        env: a single environment.
        count: how many to join; at the start of an episode the first one is repeated.

    Returns:
        The environment with observations (count * k,) for vectors, (rows, columns, count * channels) for images.

    Example:
        >>> stack_observations(gymnasium.make("CartPole-v1"), 3).observation_space.shape
        (12,)
    """
    stacked = FrameStackObservation(env, count)
    space = _map_space(stacked.observation_space, _joined_axes)
    return TransformObservation(stacked, lambda seen: _map_observation(seen, space), space)


def _joined_axes(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """The space of stacked arrays with the first axis joined with the last; of numbered states, as they are."""
    if not isinstance(space, spaces.Box) or len(space.shape) < 2:
        return space
    return spaces.Box(_join(space.low), _join(space.high), dtype=space.dtype.type)


def _join(stack: NDArray[Any]) -> NDArray[Any]:
    if stack.ndim == 3:
        return np.moveaxis(stack, 0, -1)
    return np.moveaxis(stack, 0, -2).reshape(*stack.shape[1:-1], -1)


def _map_space(space: spaces.Space[Any], function: Callable[[spaces.Space[Any]], spaces.Space[Any]]) -> Any:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _map_space(part, function) for key, part in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return spaces.Tuple(tuple(_map_space(part, function) for part in space.spaces))
    return function(space)


def _map_observation(seen: Any, space: spaces.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _map_observation(seen[key], part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_map_observation(one, part) for one, part in zip(seen, space.spaces, strict=True))
    return _join(np.asarray(seen)) if isinstance(space, spaces.Box) and np.ndim(seen) > 1 else seen


class ObservationEntries(NamedTuple):
    """The entries of observations that are kept: inside dictionaries and tuples, or all there is.

    Attributes:
        paths: by key, the keys and positions that lead to each entry.
        encoders: by key, a function from a batch of entries to arrays; numbered states become one-hot rows.
    """

    paths: dict[str, tuple[str | int, ...]]
    encoders: dict[str, Callable[[Any], NDArray[Any]]]

    @classmethod
    def chosen(cls, space: spaces.Space[Any], keys: str | Sequence[str] | None) -> "ObservationEntries":
        """Those with the given keys.

        Args:
            space: of one observation.
            keys: one or several; None where there is only one entry.

        Returns:
            The entries.

        Raises:
            ArgumentError: if there are several entries and none is chosen; it lists them.
        """
        entries = _entries(space)
        if keys is not None and list(entries) == [()]:
            raise ArgumentError("keys are for environments whose observations are dictionaries or tuples")
        paths = {".".join(map(str, path)): path for path in entries}
        if keys is None and len(entries) > 1:
            raise ArgumentError(_choose_keys({name: entries[path] for name, path in paths.items()}))
        wanted = tuple(paths) if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
        for key in wanted:
            if key not in paths:
                raise UnknownNameError(f"no key {shown(key)} in these observations; {did_you_mean(str(key), paths)}")
        if not wanted:
            raise ArgumentError("choose at least one key of the observations")
        encoders = {key: _array_encoder(entries[paths[key]], key) for key in wanted}
        return cls({key: paths[key] for key in wanted}, encoders)

    def pick(self, observation: Any) -> Picked:
        """The entries of an observation, or of a batch of them.

        Args:
            observation: as the environment gives it.

        Returns:
            By key, as they are.
        """
        return {key: reduce(lambda part, step: part[step], path, observation) for key, path in self.paths.items()}

    def encode(self, picked: Picked) -> Rows:
        """Arrays of a batch of entries.

        Args:
            picked: from :meth:`pick`, with a leading axis.

        Returns:
            (n, ...) copies by key; the key of one alone is empty.
        """
        rows = {key: encode(picked[key]) for key, encode in self.encoders.items()}
        return rows if len(rows) > 1 else {"": next(iter(rows.values()))}


def _entries(space: spaces.Space[Any]) -> dict[tuple[str | int, ...], spaces.Space[Any]]:
    """Spaces inside dictionaries and tuples, by keys and positions; a space that is neither has the empty path."""
    if not isinstance(space, (spaces.Dict, spaces.Tuple)):
        return {(): space}
    parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
    return {(key, *path): inner for key, part in parts for path, inner in _entries(part).items()}


def _choose_keys(entries: dict[str, spaces.Space[Any]]) -> str:
    """What to say where there are several entries: each with its shape, and which look like goals."""
    lines = []
    for name, space in entries.items():
        kind = f"{space.shape} {space.dtype}" if isinstance(space, ARRAYS) else f"{type(space).__name__}, not numbers"
        lines.append(f"{name} ({kind}{'; looks like a goal' if _is_goal(name) else ''})")
    sizes = {name: math.prod(space.shape or ()) for name, space in entries.items() if isinstance(space, ARRAYS)}
    usable = [name for name in sizes if not _is_goal(name)] or list(sizes) or list(entries)
    example = max(usable, key=lambda name: sizes.get(name, 0))
    return (
        f"observations have several entries: {', '.join(lines)}. Choose what the state is: keys={example!r}, or "
        f"--keys {example} on the command line. A goal that stays the same through an episode would be the slowest "
        "component of all"
    )


def _is_goal(name: str) -> bool:
    """Whether an entry looks like something that is wanted rather than where the agent is."""
    words = name.lower()
    return "achieved" not in words and any(word in words for word in GOAL_WORDS)


def _array_encoder(space: spaces.Space[Any], key: str) -> Callable[[Any], NDArray[Any]]:
    """A function from a batch of one space to a batch of arrays; numbered states become one-hot rows."""
    if isinstance(space, spaces.Discrete):
        numbers = np.arange(space.n) + space.start
        return lambda batch: (np.asarray(batch)[:, None] == numbers).astype(np.float32)
    if isinstance(space, ARRAYS):
        return lambda batch: np.array(batch, copy=True).reshape(len(batch), *(space.shape or (1,)))
    what = f"observations[{key!r}]" if key else "observations"
    raise DataError(
        f"{what} are of kind {type(space).__name__}, not numbers; "
        + ("choose other keys" if key else "wrap the environment so that they are (gymnasium.ObservationWrapper)")
    )
