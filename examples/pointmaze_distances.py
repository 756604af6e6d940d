"""A distance map in PointMaze (gymnasium-robotics): how many steps apart are two places, walls included?

Collects random steps, learns the representation from positions and velocities, and draws commute times from a place,
beside straight distances. Writes pointmaze.png into the current folder; takes about a minute.
"""

import sys

import gymnasium
import numpy as np

import lapwing as lw
from lapwing.applications import commute_times

try:
    import gymnasium_robotics
except ImportError:
    print("this example needs gymnasium-robotics: pip install 'lapwing[robotics]'")
    sys.exit(0)

gymnasium.register_envs(gymnasium_robotics)
env = gymnasium.make("PointMaze_UMaze-v3", continuing_task=True, max_episode_steps=200)

# A ball that is pushed another way at every step hardly moves: each push is kept for a while.
rng = np.random.default_rng(0)
push = np.zeros(2)


def persistent(observation: object) -> np.ndarray:
    global push
    if rng.random() < 0.05:
        push = rng.uniform(-1.0, 1.0, 2)
    return push.astype(np.float32)


# The goal is part of the observation, but not of the state: only the key "observation" is kept.
data = lw.collect(env, 40_000, policy=persistent, keys="observation", seed=0)
model = lw.learn(data, dim=5, refit=2, seed=0)
print(model)

positions = data.observations[:: max(1, len(data.observations) // 3000)]
start = positions[np.argmin(np.linalg.norm(positions[:, :2] - [-1.0, 1.0], axis=1))]
maps = {
    "commute time, steps": commute_times(model, start[None], positions)[0],
    "straight distance": np.linalg.norm(positions[:, :2] - start[:2], axis=1),
}
places = positions[:, 1::-1]  # down, across
figure = lw.plots.value_maps(places, maps, lw.plots.Marks(start=start[1::-1].astype(float)))
lw.plots.save_figure(figure, "pointmaze.png")

# From one arm of the U to the other: near by straight distance, far in steps.
other = positions[np.argmin(np.linalg.norm(positions[:, :2] - [-1.0, -1.0], axis=1))]
corner = positions[np.argmin(np.linalg.norm(positions[:, :2] - [1.0, 1.0], axis=1))]
times = commute_times(model, start[None], np.stack([corner, other]))[0]
print(f"commute time along the arm {times[0]:.0f} steps, to the arm behind the wall {times[1]:.0f}")
print("wrote pointmaze.png")
