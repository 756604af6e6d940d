"""Experience from any Gymnasium environment or vector environment, never across a reset."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.vectorised import Policy, Progress
from lapwing.errors import LapwingError

FLUSH_STATES = 8192
FLUSH_BYTES = 1 << 25
# What Python needs for an array of its own, beside the numbers in it.
ROW_OVERHEAD = 256


class Step(NamedTuple):
    """What one call of ``step`` means: which environments really moved, where to, and which began anew."""

    moved: NDArray[np.bool_]
    observations: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    restarted: NDArray[np.bool_]
    first_observations: NDArray[Any]


def collect_gymnasium(
    env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any],
    builder: TrajectoryBuilder,
    steps: int,
    seed: int,
    policy: Policy | None = None,
    episode_length: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Step until ``steps`` transitions are recorded; episodes still open then are marked truncated."""
    if steps < 1:
        raise LapwingError(f"steps must be at least 1, got {steps}; an empty data set is of no use")
    if episode_length is not None and episode_length < 1:
        raise LapwingError(f"episode_length must be at least 1, got {episode_length}; leave it out for no limit")
    encode = _observation_encoder(env)
    if isinstance(env, VectorEnv):
        if episode_length is not None:
            raise LapwingError(
                "a vector environment ends its own episodes; wrap it in TimeLimit instead of episode_length"
            )
        start, stream = _vector_steps(env, seed, policy)
    else:
        start, stream = _single_steps(env, seed, policy, episode_length)
    recorder = _Recorder(builder, [[row] for row in encode(start)])
    done = 0
    for step in stream:
        observations, first = encode(step.observations), encode(step.first_observations)
        for i in np.flatnonzero(step.moved).tolist():
            if done == steps:
                break
            recorder.extend(i, observations[i])
            done += 1
            if step.terminated[i] or step.truncated[i]:
                recorder.close(i, bool(step.terminated[i]), bool(step.truncated[i]))
        if done == steps:
            break
        for i in np.flatnonzero(step.restarted).tolist():
            recorder.begin(i, first[i])
        if progress is not None:
            progress(done, steps)
    recorder.close_all()
    if progress is not None:
        progress(done, steps)


class _Recorder:
    """Keeps one open episode per environment and hands finished ones to the builder in blocks.

    A single environment's open episode goes to the builder in pieces, for it may never end; of several the open ones
    wait, since the builder takes one episode after the other.
    """

    def __init__(self, builder: TrajectoryBuilder, open_episodes: list[list[NDArray[Any]]]) -> None:
        self._builder = builder
        self._open = open_episodes
        self._finished: list[NDArray[Any]] = []
        self._lengths: list[int] = []
        self._ends: list[tuple[bool, bool]] = []
        self._handed_over = 0
        self._row_bytes = max(episode[0].nbytes for episode in open_episodes) + ROW_OVERHEAD

    def extend(self, index: int, observation: NDArray[Any]) -> None:
        self._open[index].append(observation)
        if len(self._open) == 1 and self._is_much(len(self._finished) + len(self._open[0])):
            self._flush()
            self._builder.add_states(np.stack(self._open[0]))
            self._handed_over += len(self._open[0])
            self._open[0] = []

    def begin(self, index: int, observation: NDArray[Any]) -> None:
        self._open[index] = [observation]

    def close(self, index: int, terminated: bool, truncated: bool) -> None:
        episode, self._open[index] = self._open[index], []
        states, self._handed_over = self._handed_over + len(episode), 0
        if states < 2:
            return
        self._finished += episode
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

    def _flush(self) -> None:
        if self._finished:
            self._builder.add_states(np.stack(self._finished))
        if self._lengths:
            ends = np.array(self._ends, dtype=bool)
            self._builder.close_episodes(np.array(self._lengths), ends[:, 0], ends[:, 1])
        self._finished, self._lengths, self._ends = [], [], []


def _single_steps(
    env: gymnasium.Env[Any, Any], seed: int, policy: Policy | None, limit: int | None
) -> tuple[NDArray[Any], Iterator[Step]]:
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)

    def stream(observation: Any) -> Iterator[Step]:
        length = 0
        while True:
            action = env.action_space.sample() if policy is None else policy(observation)
            observation, _, terminated, truncated, _ = env.step(action)
            length += 1
            truncated = truncated or length == limit
            ended = bool(terminated or truncated)
            # An environment may hand out one buffer again and again, and reset overwrites it.
            final = np.array(observation, copy=True)
            if ended:
                observation, _ = env.reset()
                length = 0
            flags = [np.array([flag], dtype=bool) for flag in (True, terminated, truncated, ended)]
            yield Step(flags[0], final[None], flags[1], flags[2], flags[3], np.asarray(observation)[None])

    return np.asarray(observation)[None], stream(observation)


def _vector_steps(
    env: VectorEnv[Any, Any, Any], seed: int, policy: Policy | None
) -> tuple[NDArray[Any], Iterator[Step]]:
    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
    observations, _ = env.reset(seed=seed)
    env.action_space.seed(seed)

    def stream(observations: Any) -> Iterator[Step]:
        resetting = np.zeros(env.num_envs, dtype=bool)
        while True:
            actions = env.action_space.sample() if policy is None else policy(observations)
            observations, _, terminated, truncated, infos = env.step(actions)
            moved, ended = ~resetting, np.logical_or(terminated, truncated)
            if mode is AutoresetMode.NEXT_STEP:
                # The step after an ending only resets: its observation begins an episode and ends no transition.
                yield Step(moved, observations, terminated, truncated, resetting, observations)
                resetting = ended
            elif mode is AutoresetMode.SAME_STEP:
                final = np.array(observations, copy=True)
                for i in np.flatnonzero(ended):
                    final[i] = infos["final_obs"][i]
                yield Step(moved, final, terminated, truncated, ended, observations)
            else:
                final = np.array(observations, copy=True)
                if ended.any():
                    observations, _ = env.reset(options={"reset_mask": ended})
                yield Step(moved, final, terminated, truncated, ended, observations)

    return np.asarray(observations), stream(observations)


def _observation_encoder(env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> Any:
    """A function from a batch of raw observations to a batch of arrays; numbered states become one-hot rows."""
    space = env.single_observation_space if isinstance(env, VectorEnv) else env.observation_space
    if isinstance(space, spaces.Discrete):
        return lambda batch: _one_hot(np.asarray(batch) - int(space.start), int(space.n))
    if isinstance(space, (spaces.Box, spaces.MultiBinary, spaces.MultiDiscrete)):
        return lambda batch: np.array(batch, copy=True).reshape(len(batch), *(space.shape or (1,)))
    raise LapwingError(
        f"observations of kind {type(space).__name__} are not arrays; "
        "wrap the environment in gymnasium.wrappers.FlattenObservation"
    )


def _one_hot(numbers: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    rows = np.zeros((len(numbers), count), dtype=np.float32)
    rows[np.arange(len(numbers)), numbers] = 1.0
    return rows
