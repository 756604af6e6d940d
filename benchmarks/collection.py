"""Steps per second of ``collect``: of the package's worlds, and of Gymnasium environments against a raw loop.

python benchmarks/collection.py                          # both
python benchmarks/collection.py --only CartPole Atari    # environments whose name holds one of these words

A raw loop samples actions, steps, and keeps a copy of every observation; it does not know episodes. Each environment is
collected and looped over in turn, several times, and the ratio is the median over the pairs: other work on the machine
then slows both. Environments of packages that are not installed are left out.
"""

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv, VectorEnv

import lapwing as lw

WORLD = "Rooms-64"
EPISODE_LENGTH = 50
LOOP_STEPS = 50_000
REPEATS = 5


class Images(gymnasium.Env[Any, Any]):
    """84x84 images that cost as little as possible: a square that moves over noise."""

    observation_space = spaces.Box(0, 255, (84, 84), np.uint8)
    action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time, self.place = 0, np.array([42, 42])
        return self.image(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        self.place = np.clip(self.place + ((0, 3), (3, 0), (0, -3), (-3, 0))[action], 0, 76)
        return self.image(), 0.0, False, self.time == 200, {}

    def image(self) -> Any:
        image = np.frombuffer(self.np_random.bytes(84 * 84), np.uint8).reshape(84, 84) >> 2
        row, column = self.place
        image[row : row + 8, column : column + 8] = 255
        return image


class Case(NamedTuple):
    name: str
    make: Callable[[], Any]
    steps: int
    package: str = "gymnasium"


def four_rooms() -> Any:
    wrappers = importlib.import_module("minigrid.wrappers")
    return wrappers.ImgObsWrapper(wrappers.FullyObsWrapper(gymnasium.make("MiniGrid-FourRooms-v0")))


def vector(name: str, count: int, **options: Any) -> Callable[[], Any]:
    return lambda: gymnasium.make_vec(name, num_envs=count, **options)


CASES = (
    Case("CartPole", lambda: gymnasium.make("CartPole-v1"), 60_000),
    Case("CartPole, its own vector environment of 8", vector("CartPole-v1", 8), 100_000),
    Case("CartPole, its own vector environment of 64", vector("CartPole-v1", 64), 500_000),
    Case("CartPole, SyncVectorEnv of 8", vector("CartPole-v1", 8, vectorization_mode="sync"), 60_000),
    Case("CartPole, SyncVectorEnv of 64", vector("CartPole-v1", 64, vectorization_mode="sync"), 60_000),
    Case("Acrobot", lambda: gymnasium.make("Acrobot-v1"), 15_000),
    Case("FrozenLake 8x8", lambda: gymnasium.make("FrozenLake-v1", map_name="8x8"), 60_000),
    Case("Taxi", lambda: gymnasium.make("Taxi-v4"), 60_000),
    Case("MiniGrid FourRooms, full view", four_rooms, 3_000, "minigrid"),
    Case("images 84x84", Images, 20_000),
    Case("images 84x84, SyncVectorEnv of 8", lambda: SyncVectorEnv([Images] * 8), 20_000),
    Case("MontezumaRevenge, AtariVectorEnv of 8", vector("ALE/MontezumaRevenge-v5", 8), 6_000, "ale_py"),
    Case("MontezumaRevenge, RAM", lambda: gymnasium.make("ALE/MontezumaRevenge-v5", obs_type="ram"), 4_000, "ale_py"),
)


def raw_loop(env: Any, steps: int) -> None:
    """Sample, step, copy, until so many transitions are made."""
    seen, _ = env.reset(seed=0)
    env.action_space.seed(0)
    if not isinstance(env, VectorEnv):
        kept = [np.array(seen)]
        for _ in range(steps):
            seen, _, terminated, truncated, _ = env.step(env.action_space.sample())
            kept.append(np.array(seen))
            if terminated or truncated:
                seen, _ = env.reset()
                kept.append(np.array(seen))
        return
    rows = np.empty((steps // env.num_envs, *seen.shape), seen.dtype)
    made = 0
    while made < steps:
        # Steps that only reset an environment do not count.
        for row in range(min(len(rows), -(-(steps - made) // env.num_envs))):
            seen, _, terminated, truncated, _ = env.step(env.action_space.sample())
            rows[row] = seen
            made += env.num_envs - np.count_nonzero(terminated | truncated)


def seconds(function: Callable[..., Any], case: Case) -> float:
    env = case.make()
    before = time.perf_counter()
    function(env, case.steps)
    passed = time.perf_counter() - before
    env.close()
    return passed


def environments(words: list[str]) -> None:
    print(f"{'environment':<45}{'raw loop':>12}{'collect':>12}{'ratio':>8}   steps/s, median of {REPEATS}")
    for case in CASES:
        if words and not any(word.lower() in case.name.lower() for word in words):
            continue
        try:
            gymnasium.register_envs(importlib.import_module(case.package))
        except ImportError:
            print(f"{case.name:<45}   {case.package} is not installed")
            continue
        lw.collect(case.make(), 300)  # what is loaded once is not counted
        pairs = np.array([(seconds(raw_loop, case), seconds(lw.collect, case)) for _ in range(REPEATS)])
        rates = case.steps / np.median(pairs, axis=0)
        ratio = np.median(pairs[:, 0] / pairs[:, 1])
        print(f"{case.name:<45}{rates[0]:>12,.0f}{rates[1]:>12,.0f}{ratio:>8.0%}", flush=True)


def vectorised(steps: int) -> float:
    """Seconds to collect ``steps`` transitions: the median of some runs, after one that is not counted."""
    lw.collect(WORLD, steps=EPISODE_LENGTH)
    times = []
    for seed in range(REPEATS):
        before = time.perf_counter()
        lw.collect(WORLD, steps=steps, episode_length=EPISODE_LENGTH, seed=seed)
        times.append(time.perf_counter() - before)
    return float(np.median(times))


def python_loop(steps: int) -> float:
    """Seconds to step the environment by hand, keeping every observation."""
    env = gymnasium.make(f"lapwing/{WORLD}-v0")
    moves = np.random.default_rng(0).integers(4, size=steps)
    observation, _ = env.reset(seed=0)
    kept = [observation]
    before = time.perf_counter()
    for number, move in enumerate(moves, 1):
        observation, *_ = env.step(move)
        kept.append(observation)
        if number % EPISODE_LENGTH == 0:
            observation, _ = env.reset()
            kept.append(observation)
    np.stack(kept)
    return time.perf_counter() - before


def worlds(steps: int = 1_000_000) -> None:
    fast = steps / vectorised(steps)
    slow = LOOP_STEPS / python_loop(LOOP_STEPS)
    print(f"world                         {WORLD}, episodes of {EPISODE_LENGTH}")
    print(f"collect, {steps:>11,} steps    {fast:>12,.0f} steps/s ({steps / fast:.3f} s, median of {REPEATS})")
    print(f"Python loop, {LOOP_STEPS:>7,} steps    {slow:>12,.0f} steps/s")
    print(f"ratio                         {fast / slow:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of environments")
    chosen = parser.parse_args().only
    if not chosen:
        worlds()
    environments(chosen)
