"""Shaped rewards for a Stable-Baselines3 agent: DQN in nine rooms, with and without a potential.

    python examples/shaping_sb3.py [PICTURE.png]

The agent gets -1 for each step until it is at the goal. The representation is counted from a random walk that never
saw a reward. Needs Stable-Baselines3, which this package does not bring along.
"""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.applications import GoalDistance, PotentialReward
from lapwing.errors import MissingExtraError
from lapwing.plots import save_figure

WORLD = lw.make_world("rooms:3x3x4:3")
GOAL = 0
DISCOUNT, EPISODE = 0.98, 100
RANDOM_STEPS, STEPS, TEST_EVERY = 5_000, 10_000, 1_000


class ReachGoal(gymnasium.Wrapper):
    """-1 per step; the goal ends the episode."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, _, truncated, info = self.env.step(action)
        return observation, -1.0, info["state"] == GOAL, truncated, info


def make_env() -> gymnasium.Env:
    return gymnasium.make("lapwing/Grid-v0", world=WORLD)


def mean_steps(agent: Any) -> float:
    """Steps to the goal from every start, by the greedy policy; EPISODE where it does not get there."""
    states, rng = np.arange(WORLD.num_states), np.random.default_rng(0)
    steps, arrived = np.zeros(len(states)), states == GOAL
    for _ in range(EPISODE):
        steps += ~arrived
        actions, _ = agent.predict(WORLD.observe(states), deterministic=True)
        states, _ = WORLD.step(states, actions, rng)
        arrived |= states == GOAL
    return float(steps.mean())


def learning_curve(venv: Any, label: str) -> list[float]:
    from stable_baselines3 import DQN

    agent = DQN(
        "MlpPolicy", venv, learning_rate=1e-3, gamma=DISCOUNT, batch_size=128, buffer_size=STEPS,
        learning_starts=RANDOM_STEPS, train_freq=1, tau=0.05, target_update_interval=50,
        exploration_fraction=RANDOM_STEPS / STEPS, exploration_final_eps=0.2, seed=0,
        policy_kwargs={"net_arch": [128, 128, 128]},
    )  # fmt: skip
    curve = [mean_steps(agent)]
    for number in range(STEPS // TEST_EVERY):
        agent.learn(TEST_EVERY, reset_num_timesteps=number == 0)
        curve.append(mean_steps(agent))
        print(f"{label}: {curve[-1]:.1f} steps to the goal after {(number + 1) * TEST_EVERY:,}")
    return curve


def main(picture: str = "runs/shaping_sb3.png") -> None:
    try:
        from lapwing.applications.sb3 import RepresentationVecEnv
    except MissingExtraError as error:
        print(error)
        return
    from stable_baselines3.common.vec_env import DummyVecEnv

    model = lw.solve(lw.collect(WORLD, steps=1_000_000, seed=0), dim=11)
    distance = GoalDistance(model, goal=WORLD.table()[GOAL])
    # 20: about as many steps as lie between two states here.
    reward = PotentialReward(distance, DISCOUNT, scale=20.0)
    plain = DummyVecEnv([lambda: gymnasium.wrappers.TimeLimit(ReachGoal(make_env()), EPISODE)])
    curves = {
        "sparse": learning_curve(plain, "sparse"),
        "with the potential of psi": learning_curve(RepresentationVecEnv(plain, reward), "shaped"),
    }
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    ax = figure.subplots()
    for label, curve in curves.items():
        ax.plot(np.arange(len(curve)) * TEST_EVERY, curve, marker="o", ms=3, label=label)
    ax.set(xlabel="training steps", ylabel="steps to the goal", ylim=(0, None), title="DQN in nine rooms")
    ax.legend(frameon=False)
    save_figure(figure, Path(picture))
    print(f"wrote {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
