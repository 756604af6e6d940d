"""Wrappers that feed an online learner: every step once, no pair across a reset, updates when they are due."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lapwing as lw
from lapwing.applications import OnlineWrapper, VectorOnlineWrapper
from lapwing.errors import ArgumentError


class Counter(gymnasium.Env[Any, Any]):
    """Counts on with every step and jumps by 100 at a reset; ends after five steps."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Discrete(4)

    def __init__(self, first: int = 0) -> None:
        self.count, self.steps = float(first), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.count, self.steps = self.count + 100, 0
        return np.array([self.count], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count, self.steps = self.count + 1, self.steps + 1
        return np.array([self.count], np.float32), 0.0, self.steps == 5, False, {}


def check(data: lw.Trajectories, transitions: int) -> None:
    positions = np.concatenate(list(data.pair_positions(1)))
    rows = data.rows(positions), data.rows(positions + 1)
    assert (data.observations[rows[1]] == data.observations[rows[0]] + 1).all()
    assert data.num_transitions == transitions


def test_every_step_of_an_environment_is_seen_once() -> None:
    learner = lw.OnlineLearner(dim=2)
    env = OnlineWrapper(Counter(), learner, every=0)
    env.reset()
    for number in range(23):
        if env.step(number % 4)[2]:
            env.reset()
    env.close()
    data = learner.data()
    check(data, 22)  # in the last state no action was taken
    assert data.terminated.sum() == 4
    assert np.array_equal(data.actions, np.arange(22) % 4)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_every_step_of_a_vector_environment_is_seen_once(mode: AutoresetMode) -> None:
    learner = lw.OnlineLearner(dim=2)
    envs = SyncVectorEnv([lambda first=1000 * i: Counter(first) for i in range(3)], autoreset_mode=mode)
    env = VectorOnlineWrapper(envs, learner, every=30, after=10**9)
    env.reset()
    for number in range(24):
        env.step(np.full(3, number % 4))
    env._feed.hand_over()
    # In NEXT_STEP mode a step after every fifth only resets.
    check(learner.data(), 3 * (20 if mode is AutoresetMode.NEXT_STEP else 23))
    assert learner.data().terminated.sum() == 3 * 4


def test_updates_come_when_they_are_due() -> None:
    learner = lw.OnlineLearner(dim=2, hidden=(32,))
    env = OnlineWrapper(gymnasium.make("lapwing/GridMaze-7-v0"), learner, every=200, steps=2, after=500)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(1000):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    assert [report.step for report in learner.reports] == [2, 4, 6]
    assert learner.reports[0].seen >= 500


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="OnlineLearner"):
        OnlineWrapper(Counter(), None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="every"):
        OnlineWrapper(Counter(), lw.OnlineLearner(), every=-1)
    with pytest.raises(gymnasium.error.ResetNeeded):
        OnlineWrapper(Counter(), lw.OnlineLearner()).step(0)
