"""Steps per second of ``collect``, against stepping the same world as a Gymnasium environment in a Python loop.

python benchmarks/collection.py [STEPS]
"""

import sys
import time

import gymnasium
import numpy as np

import lapwing as lw

WORLD = "Rooms-64"
EPISODE_LENGTH = 50
LOOP_STEPS = 50_000
REPEATS = 5


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


def main(steps: int = 1_000_000) -> None:
    fast = steps / vectorised(steps)
    slow = LOOP_STEPS / python_loop(LOOP_STEPS)
    print(f"world                         {WORLD}, episodes of {EPISODE_LENGTH}")
    print(f"collect, {steps:>11,} steps    {fast:>12,.0f} steps/s ({steps / fast:.3f} s, median of {REPEATS})")
    print(f"Python loop, {LOOP_STEPS:>7,} steps    {slow:>12,.0f} steps/s")
    print(f"ratio                         {fast / slow:.0f}")


if __name__ == "__main__":
    main(*(int(steps) for steps in sys.argv[1:2]))
