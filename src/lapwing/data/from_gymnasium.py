"""Experience from any Gymnasium environment or vector environment, never across a reset."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import getitem
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import FrameStackObservation, TransformObservation
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.recorder import EpisodeRecorder, Rows
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean

FLUSH_STATES = 8192
# Little more than a processor's cache: memory that is written for the first time costs more than a copy.
FLUSH_BYTES = 1 << 22
# Of many environments a block holds more states, so that few of its episodes reach beyond it.
MIN_SLOTS = 256
SECONDS_BETWEEN_REPORTS = 0.1

ARRAYS = (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete, spaces.Discrete)
GOAL_WORDS = ("goal", "mission", "target", "instruction", "task")

AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
Picked = dict[str, Any]
"""Entries of observations by key, as the environment gives them."""


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
    if isinstance(env, VectorEnv) and episode_length is not None:
        raise ArgumentError(
            "a vector environment ends its own episodes; wrap it in TimeLimit instead of episode_length"
        )
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    metadata = {"world": {"kind": "gymnasium", "name": name}, "steps": steps, "seed": seed}
    metadata |= {"episode_length": episode_length, "policy": "uniform" if policy is None else "callable"}
    actions = env.single_action_space if isinstance(env, VectorEnv) else env.action_space
    if isinstance(actions, (spaces.Dict, spaces.Tuple)):
        # Actions that are not arrays are not recorded.
        record = tuple(item for item in record if item != "actions")
    # Numbered states are looked up in the table as numbers; only distinct ones become one-hot rows.
    one_hot = entries.one_hot
    encode = entries.encode if one_hot is None else entries.unnamed
    # Episodes have one state more than transitions; if they are very short, memory is reserved once more.
    with TrajectoryBuilder(out, encode=one_hot, expected=steps + steps // 8 + 64) as builder:
        report, make = _Progress(progress, steps), partial(EpisodeRecorder, builder, encode)
        if isinstance(env, VectorEnv):
            recorder = _record_vector(env, make, entries, steps, seed, policy, record, report)
        else:
            recorder = _record_single(env, make, entries, steps, seed, policy, episode_length, record, report)
        recorder.close()
        report.last()
        return builder.finish(metadata)


class _Progress:
    """Calls a function with (done, total) ten times a second at most: more calls would cost as much as the steps."""

    def __init__(self, function: Any, total: int) -> None:
        self._function, self._total, self._next = function, total, 0.0
        self.wanted = function is not None

    def __call__(self, done: int) -> None:
        now = perf_counter()
        if now >= self._next:
            self._next = now + SECONDS_BETWEEN_REPORTS
            self._function(done, self._total)

    def last(self) -> None:
        if self.wanted:
            self._function(self._total, self._total)


def _slots(first: Picked, environments: int, steps: int) -> int:
    """How many steps a block holds: many for speed, but few bytes, and not many more than will come."""
    row_bytes = sum(np.asarray(part).nbytes for part in first.values())
    wanted = FLUSH_STATES if environments == 1 else max(FLUSH_STATES // environments, MIN_SLOTS)
    # A step in which an episode ends may take two slots.
    return max(1, min(wanted, FLUSH_BYTES // max(1, row_bytes), 2 * -(-steps // environments) + 2))


def _record_single(
    env: gymnasium.Env[Any, Any],
    make: Callable[..., EpisodeRecorder],
    entries: "ObservationEntries",
    steps: int,
    seed: int,
    policy: Any,
    limit: int | None,
    record: tuple[str, ...],
    report: _Progress,
) -> EpisodeRecorder:
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    act, sample = _action_function(policy, env.action_space), env.action_space.sample
    first = entries.pick(observation)
    recorder = make(first, None, _slots(first, 1, steps))
    transitions: dict[str, Any] = {}
    length = 0
    for done in range(1, steps + 1):
        action = sample() if policy is None else act(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        length += 1
        if record:
            made = {"actions": action, "rewards": float(reward)}
            transitions = {name: made[name] for name in record}
        # At once, because an environment may hand out one buffer again and again, and reset overwrites it.
        slot = recorder.extend(entries.pick(observation), transitions)
        if terminated or truncated or length == limit:
            recorder.ended(slot, bool(terminated), bool(truncated or length == limit))
            if done < steps:
                observation, _ = env.reset()
                recorder.begin(entries.pick(observation))
            length = 0
        if report.wanted:
            report(done)
    return recorder


def _record_vector(
    env: VectorEnv[Any, Any, Any],
    make: Callable[..., EpisodeRecorder],
    entries: "ObservationEntries",
    steps: int,
    seed: int,
    policy: Any,
    record: tuple[str, ...],
    report: _Progress,
) -> EpisodeRecorder:
    if getattr(env, "batch_size", env.num_envs) != env.num_envs:
        # Which environments a batch is from changes from step to step.
        raise ArgumentError("this vector environment steps some of its environments at a time; leave batch_size out")
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    observations, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    act, sample = _action_function(policy, env.action_space), env.action_space.sample
    first = entries.pick(observations)
    recorder = make(first, env.num_envs, _slots(first, env.num_envs, steps))
    resetting = np.zeros(env.num_envs, dtype=bool)
    transitions: dict[str, Any] = {}
    left = steps
    while True:
        actions = sample() if policy is None else act(observations)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        if record:
            made = {"actions": actions, "rewards": rewards}
            transitions = {name: made[name] for name in record}
        slot = recorder.extend(entries.pick(observations), transitions)
        recorder.ended(slot, terminated, truncated)
        ended = np.logical_or(terminated, truncated)
        moved = env.num_envs
        if mode is AutoresetMode.NEXT_STEP:
            # The step after an ending only resets: its observation begins an episode and ends no transition.
            recorder.restarted(slot, resetting)
            moved -= int(np.count_nonzero(resetting))
        elif mode is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(ended).tolist():
                recorder.replace(slot, i, entries.pick(infos["final_obs"][i]))
        if moved >= left:
            recorder.leave_out(slot, resetting | (np.cumsum(~resetting) > left))
            return recorder
        left -= moved
        if mode is AutoresetMode.NEXT_STEP:
            resetting = ended
        elif ended.any():
            if mode is AutoresetMode.DISABLED:
                observations, _ = env.reset(options={"reset_mask": ended})
            recorder.begin(entries.pick(observations), ended)
        if report.wanted:
            report(steps - left)


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
        if "" in self.paths:
            return {"": observation}
        return {key: reduce(getitem, path, observation) for key, path in self.paths.items()}

    def encode(self, picked: Mapping[str, Any]) -> Rows:
        """Arrays of a batch of entries.

        Args:
            picked: from :meth:`pick`, with a leading axis.

        Returns:
            (n, ...) arrays by key, copies only where they are encoded; the key of one alone is empty.
        """
        return self.unnamed({key: encode(picked[key]) for key, encode in self.encoders.items()})

    @staticmethod
    def unnamed(rows: Mapping[str, Any]) -> Rows:
        """The same by key, with an empty key for one alone.

        Args:
            rows: arrays by key.

        Returns:
            The same arrays.
        """
        return dict(rows) if len(rows) > 1 else {"": next(iter(rows.values()))}

    @property
    def one_hot(self) -> "_OneHot | None":
        """The encoder of the only entry, where that is the number of a state."""
        encoders = list(self.encoders.values())
        return encoders[0] if len(encoders) == 1 and isinstance(encoders[0], _OneHot) else None


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


@dataclass(frozen=True)
class _OneHot:
    """From numbers of states to one-hot rows."""

    numbers: NDArray[np.int64]

    def __call__(self, batch: Any) -> NDArray[Any]:
        return (np.asarray(batch)[:, None] == self.numbers).astype(np.float32)


def _array_encoder(space: spaces.Space[Any], key: str) -> Callable[[Any], NDArray[Any]]:
    """A function from a batch of one space to a batch of arrays; numbered states become one-hot rows."""
    if isinstance(space, spaces.Discrete):
        return _OneHot(np.arange(space.n) + space.start)
    if isinstance(space, ARRAYS):
        return lambda batch: np.asarray(batch).reshape(len(batch), *(space.shape or (1,)))
    what = f"observations[{key!r}]" if key else "observations"
    raise DataError(
        f"{what} are of kind {type(space).__name__}, not numbers; "
        + ("choose other keys" if key else "wrap the environment so that they are (gymnasium.ObservationWrapper)")
    )
