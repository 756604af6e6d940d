"""The Stable-Baselines3 wrapper with the real package where it is installed, and its absence elsewhere."""

import importlib
import importlib.util
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import lapwing as lw
from lapwing.applications import (
    EigenReward,
    GoalDistance,
    MixedReward,
    PotentialReward,
    RepresentationFeatures,
    RepresentationWrapper,
)
from lapwing.environments.gymnasium_env import WorldEnv
from lapwing.errors import ArgumentError, MissingExtraError

INSTALLED = importlib.util.find_spec("stable_baselines3") is not None
needs_sb3 = pytest.mark.skipif(not INSTALLED, reason="Stable-Baselines3 is not installed")

WORLD = lw.make_world("room:2x3")
MODEL = lw.solve(WORLD, 4)
GOAL = 5
DISTANCE = GoalDistance(MODEL, WORLD.table()[GOAL])
REWARDS = {
    "eigen": EigenReward(MODEL, 3),
    "potential": PotentialReward(DISTANCE, 0.9, 2.0),
    "mixed": MixedReward(DISTANCE),
}
FEATURES = RepresentationFeatures(MODEL, joined=True)


class ToCorner(WorldEnv):
    """-1 for every step; the goal ends the episode."""

    def __init__(self) -> None:
        super().__init__(WORLD)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, _, _, info = super().step(int(action))
        return observation, -1.0, self.state == GOAL, False, info


def env() -> gymnasium.Env[Any, Any]:
    return TimeLimit(ToCorner(), 4)


@pytest.mark.skipif(INSTALLED, reason="Stable-Baselines3 is installed")
def test_without_the_package_the_module_says_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match="pip install stable-baselines3"):
        importlib.import_module("lapwing.applications.sb3")


@needs_sb3
@pytest.mark.parametrize(("name", "kind"), [*((name, "DummyVecEnv") for name in REWARDS), ("mixed", "SubprocVecEnv")])
def test_every_sub_environment_gives_what_a_single_one_does(name: str, kind: str) -> None:
    from stable_baselines3.common import vec_env

    from lapwing.applications.sb3 import RepresentationVecEnv

    many = RepresentationVecEnv(getattr(vec_env, kind)([env] * 3), REWARDS[name], FEATURES)
    many.seed(7)
    singles = [RepresentationWrapper(env(), REWARDS[name], FEATURES) for _ in range(3)]
    seen = many.reset()
    np.testing.assert_array_equal(seen, np.stack([one.reset(seed=7 + i)[0] for i, one in enumerate(singles)]))
    assert seen[0] in many.observation_space
    ends, rng = [], np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(4, size=3)
        seen, rewards, dones, infos = many.step(actions)
        for i, single in enumerate(singles):
            last, reward, terminated, truncated, _ = single.step(actions[i])
            assert rewards[i] == pytest.approx(reward, rel=1e-6)
            assert infos[i]["env_reward"] == -1.0
            assert dones[i] == (terminated or truncated)
            if dones[i]:
                np.testing.assert_array_equal(infos[i]["terminal_observation"], last)
                ends.append(terminated)
                last = single.reset()[0]
            np.testing.assert_array_equal(seen[i], last)
    assert {True, False} <= set(ends)


@needs_sb3
def test_an_agent_learns_through_the_wrapper() -> None:
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import DummyVecEnv

    from lapwing.applications.sb3 import RepresentationVecEnv

    venv = RepresentationVecEnv(DummyVecEnv([env]), REWARDS["potential"], FEATURES)
    agent = DQN("MlpPolicy", venv, learning_starts=50, gamma=0.9, seed=0, policy_kwargs={"net_arch": [16]})
    agent.learn(200)
    states = RepresentationFeatures(MODEL, joined=True)(WORLD.table())
    assert agent.predict(states, deterministic=True)[0].shape == (len(states),)


@needs_sb3
def test_a_wrapper_without_anything_to_change_is_refused() -> None:
    from stable_baselines3.common.vec_env import DummyVecEnv

    from lapwing.applications.sb3 import RepresentationVecEnv

    with pytest.raises(ArgumentError, match="give a reward"):
        RepresentationVecEnv(DummyVecEnv([env]))


@needs_sb3
@pytest.mark.parametrize("vectors", [1, 3])
def test_a_callback_and_the_replay_buffer_see_the_same_steps(vectors: int) -> None:
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env

    from lapwing.applications.sb3 import OnlineCallback

    envs = make_vec_env("lapwing/GridMaze-7-v0", n_envs=vectors, env_kwargs={"max_episode_steps": 20}, seed=0)
    # 40 rows for each environment, so that the ring wraps round in the middle of an episode.
    agent = DQN("MlpPolicy", envs, buffer_size=40 * vectors, learning_starts=10, seed=0)
    learner = lw.OnlineLearner(dim=2, hidden=(16,))
    agent.learn(150 * vectors, callback=OnlineCallback(learner, every=100, steps=1, after=50))
    assert learner.reports
    held, buffered = learner.data(), lw.from_sb3(agent.replay_buffer)
    assert buffered.num_transitions == 40 * vectors
    assert held.lengths.max() == buffered.lengths.max() == 20
    pairs = [
        {
            tuple(np.concatenate(pair))
            for episode in range(data.num_episodes)
            for pair in pairwise(data.episode(episode))
        }
        for data in (held, buffered)
    ]
    assert pairs[1] <= pairs[0]


@needs_sb3
def test_a_rollout_buffer_is_read_before_it_is_flattened() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback

    found = []

    class Read(BaseCallback):
        def _on_step(self) -> bool:
            return True

        def _on_rollout_end(self) -> None:
            found.append(lw.from_sb3(self.model.rollout_buffer))

    PPO("MlpPolicy", "lapwing/GridMaze-7-v0", n_steps=128, batch_size=64, seed=0).learn(256, callback=Read())
    assert len(found) == 2
    assert all(data.num_transitions <= 127 for data in found)


@needs_sb3
@pytest.mark.parametrize("trainable", [False, True])
def test_an_agent_sees_the_components_through_its_features_extractor(trainable: bool, tmp_path: Any) -> None:
    import torch
    from stable_baselines3 import PPO

    from lapwing.applications.sb3 import extractor_options

    model = lw.learn(lw.collect(WORLD, 500, seed=0), dim=3, steps=8, refine="none", seed=0)
    agent = PPO(
        "MlpPolicy", env(), policy_kwargs=extractor_options(model, trainable), n_steps=16, batch_size=16, seed=0
    )
    extractor = agent.policy.features_extractor
    observations = np.asarray(WORLD.table(), dtype=np.float32)
    with torch.no_grad():
        seen = extractor(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(seen, model.transform(observations), atol=1e-5)
    before = {name: array.clone() for name, array in extractor.state_dict().items()}
    agent.learn(32)
    changed = any(not torch.equal(before[name], array) for name, array in extractor.state_dict().items())
    assert changed == trainable
    agent.save(tmp_path / "agent")
    again = PPO.load(tmp_path / "agent")
    assert again.predict(observations, deterministic=True)[0].tolist() == (
        agent.predict(observations, deterministic=True)[0].tolist()
    )


@needs_sb3
def test_images_may_have_their_channels_turned() -> None:
    import jax
    import torch
    from gymnasium.spaces import Box

    from lapwing.applications.sb3 import RepresentationExtractor
    from lapwing.encoders import build_encoder
    from lapwing.encoders.plain import plain_network

    encoder = build_encoder("conv", (9, 8, 3), 4, jax.random.key(0), hidden=(8,))
    images = np.random.default_rng(0).integers(0, 255, (2, 9, 8, 3), dtype=np.uint8)
    turned = np.moveaxis(images, -1, 1)
    extractor = RepresentationExtractor(Box(0, 255, (3, 9, 8), np.uint8), plain_network(encoder, 4))
    found = extractor(torch.from_numpy(turned.copy())).detach().numpy()
    expected = encoder.encode(images)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())
    with pytest.raises(ArgumentError, match="this agent has"):
        RepresentationExtractor(Box(0, 255, (3, 9, 9), np.uint8), plain_network(encoder, 4))
