"""Experience from any Gymnasium environment or vector environment, never across a reset."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean

FLUSH_STATES = 8192
FLUSH_BYTES = 1 << 25
# What Python needs for an array of its own, beside the numbers in it.
ROW_OVERHEAD = 256

AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]
Rows = dict[str, NDArray[Any]]
"""A batch of observations by key; the key is empty where an observation is one array."""


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
        keys: which entries of dictionary observations to keep; None for all.
        record: any of ``actions`` and ``rewards``.
        out: folder to write to, for data larger than memory.
        progress: called with (done, total), or None.

    Returns:
        The experience, with the environment's name in its metadata.
    """
    space = env.single_observation_space if isinstance(env, VectorEnv) else env.observation_space
    encode = observation_encoder(space, keys)
    if isinstance(env, VectorEnv):
        if episode_length is not None:
            raise ArgumentError(
                "a vector environment ends its own episodes; wrap it in TimeLimit instead of episode_length"
            )
        start, stream = _vector_steps(env, seed, policy)
    else:
        start, stream = _single_steps(env, seed, policy, episode_length)
    name = env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    metadata = {"world": {"kind": "gymnasium", "name": name}, "steps": steps, "seed": seed}
    metadata |= {"episode_length": episode_length, "policy": "uniform" if policy is None else "callable"}
    actions = env.single_action_space if isinstance(env, VectorEnv) else env.action_space
    if isinstance(actions, (spaces.Dict, spaces.Tuple)):
        # Actions that are not arrays are not recorded.
        record = tuple(item for item in record if item != "actions")
    done = 0
    with TrajectoryBuilder(out) as builder:
        recorder = _Recorder(builder, encode(start), record)
        for step in stream:
            rows, first = encode(step.observations), encode(step.first_observations)
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
    env: gymnasium.Env[Any, Any], seed: int, policy: Any, limit: int | None
) -> tuple[Any, Iterator[Step]]:
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)

    def stream(observation: Any) -> Iterator[Step]:
        length = 0
        while True:
            action = env.action_space.sample() if policy is None else policy(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            length += 1
            truncated = truncated or length == limit
            ended = bool(terminated or truncated)
            # An environment may hand out one buffer again and again, and reset overwrites it.
            final = _each(observation, lambda array: np.array(array, copy=True)[None])
            if ended:
                observation, _ = env.reset()
                length = 0
            flags = [np.array([flag], dtype=bool) for flag in (True, terminated, truncated, ended)]
            first = _each(observation, lambda array: np.asarray(array)[None])
            yield Step(flags[0], [action], [float(reward)], final, flags[1], flags[2], flags[3], first)

    return _each(observation, lambda array: np.asarray(array)[None]), stream(observation)


def _vector_steps(env: VectorEnv[Any, Any, Any], seed: int, policy: Any) -> tuple[Any, Iterator[Step]]:
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    observations, _ = env.reset(seed=seed)
    env.action_space.seed(seed)

    def stream(observations: Any) -> Iterator[Step]:
        resetting = np.zeros(env.num_envs, dtype=bool)
        while True:
            actions = env.action_space.sample() if policy is None else policy(observations)
            observations, rewards, terminated, truncated, infos = env.step(actions)
            moved, ended = ~resetting, np.logical_or(terminated, truncated)
            step = Step(moved, actions, rewards, observations, terminated, truncated, resetting, observations)
            if mode is AutoresetMode.NEXT_STEP:
                # The step after an ending only resets: its observation begins an episode and ends no transition.
                yield step
                resetting = ended
                continue
            final = _each(observations, lambda array: np.array(array, copy=True))
            if mode is AutoresetMode.SAME_STEP:
                for i in np.flatnonzero(ended).tolist():
                    _put(final, i, infos["final_obs"][i])
            elif ended.any():
                observations, _ = env.reset(options={"reset_mask": ended})
            yield step._replace(observations=final, restarted=ended, first_observations=observations)

    return _each(observations, np.asarray), stream(observations)


def _each(observation: Any, function: Callable[[Any], NDArray[Any]]) -> Any:
    """A function applied to an observation, or to each key of one that is a dictionary."""
    if isinstance(observation, dict):
        return {key: _each(part, function) for key, part in observation.items()}
    return observation if isinstance(observation, tuple) else function(observation)


def _put(batch: Any, index: int, observation: Any) -> None:
    if isinstance(batch, dict):
        for key, part in batch.items():
            _put(part, index, observation[key])
    else:
        batch[index] = observation


def observation_encoder(space: spaces.Space[Any], keys: str | Sequence[str] | None) -> Callable[[Any], Rows]:
    """A function from a batch of raw observations to arrays by key; one key alone, or none, is the empty one.

    Args:
        space: of one observation.
        keys: which entries of dictionary observations to keep; None for all.

    Returns:
        The function; its arrays are copies, with numbered states as one-hot rows.
    """
    if not isinstance(space, spaces.Dict):
        if keys is not None:
            raise ArgumentError("keys are for environments whose observations are dictionaries; these are not")
        encode = _array_encoder(space, "observations")
        return lambda batch: {"": encode(batch)}
    chosen = tuple(space.spaces) if keys is None else (keys,) if isinstance(keys, str) else tuple(keys)
    for key in chosen:
        if key not in space.spaces:
            raise UnknownNameError(f"no key {shown(key)} in these observations; {did_you_mean(str(key), space.spaces)}")
    if not chosen:
        raise ArgumentError("choose at least one key of the observations")
    encoders = {key: _array_encoder(space[key], f"observations[{key!r}]") for key in chosen}
    names = {chosen[0]: ""} if len(chosen) == 1 else {key: key for key in chosen}
    return lambda batch: {names[key]: encoders[key](batch[key]) for key in chosen}


def _array_encoder(space: spaces.Space[Any], what: str) -> Callable[[Any], NDArray[Any]]:
    """A function from a batch of one space to a batch of arrays; numbered states become one-hot rows."""
    if isinstance(space, spaces.Discrete):
        numbers = np.arange(space.n) + space.start
        return lambda batch: (np.asarray(batch)[:, None] == numbers).astype(np.float32)
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return lambda batch: np.array(batch, copy=True).reshape(len(batch), *(space.shape or (1,)))
    raise DataError(
        f"{what} of kind {type(space).__name__} are not arrays; "
        "wrap the environment in gymnasium.wrappers.FlattenObservation"
    )
