"""Options learned off-policy from recorded transitions: how near to exact ones, and what they do in other environments.

    python benchmarks/learned_options.py exact --layouts DIR      # FourRoom-104: beside exact options
    python benchmarks/learned_options.py follow FourRooms         # MiniGrid FourRooms, full view
    python benchmarks/learned_options.py follow MountainCar-v0
    python benchmarks/learned_options.py follow Acrobot-v1

``exact``: the share of states (over all options) with an action as good as the best, the mean loss of value beside
the mean value, the share of states where learned and exact options agree on ending, and the diffusion time of a walk
over actions and all options in the true world. ``follow``: each option is followed from states that random actions
reach, and random actions go as many steps from the same states: means of ``u(end) - u(start)``, with standard errors.
"""

import argparse
import time
import warnings
from typing import Any

import gymnasium
import numpy as np

import lapwing as lw
from lapwing.applications import LearnedOption, Option, diffusion_time, eigenoptions, learn_options
from lapwing.environments import World

MOST_STEPS = 1000

Env = gymnasium.Env[Any, Any]


def action_values(world: World, values: np.ndarray, discount: float = 0.9) -> np.ndarray:
    """(actions, n, k) exact values of actions for the eigenpurposes, ending being worth zero."""
    matrices = [matrix.toarray() for matrix in world.action_matrices() or ()]
    best = np.zeros_like(values)
    for _ in range(500):
        returns = np.stack([matrix @ values - values + discount * (matrix @ best) for matrix in matrices])
        best = np.maximum(returns.max(axis=0), 0.0)
    return returns


def as_listed(option: Option | LearnedOption, world: World) -> Option:
    """The option at the states of a world."""
    table = np.asarray(world.table())
    ends = np.array([option.termination(seen) for seen in table])
    starts = np.array([option.initiation(seen) for seen in table])
    actions = [option.policy(seen) if end < 1 else -1 for seen, end in zip(table, ends, strict=True)]
    return Option(option.name, table, starts, np.array(actions), ends)


def compare_with_exact(layouts: str | None, transitions: int, dim: int) -> None:
    """Options from a table and from a network beside exact ones, of exact and of learned components."""
    world = lw.make_world("FourRoom-104", layouts=layouts)
    data = lw.collect(world, transitions, seed=0, record="actions")
    print("| components | options | equally good action | loss of value | same ends | diffusion time | seconds |")
    print("|---|---|---|---|---|---|---|")
    for label, model in (("exact", lw.solve(world, dim)), ("learned", lw.learn(data, dim, seed=0))):
        values = np.asarray(model.transform(world.table()), dtype=np.float64)[:, 1:]
        signed = np.stack([values, -values], axis=2).reshape(len(values), -1)
        returns = action_values(world, signed)
        best, rounding = np.maximum(returns.max(axis=0), 0.0), 1e-9 * np.abs(signed).max()
        for kind in ("exact", "table", "fourier"):
            start = time.perf_counter()
            found = eigenoptions(model, world) if kind == "exact" else learn_options(model, data, encoder=kind)
            seconds = time.perf_counter() - start
            options = [as_listed(option, world) for option in found]
            actions = np.stack([option.actions for option in options], axis=1)
            taken = np.take_along_axis(returns, np.maximum(actions, 0)[None], axis=0)[0]
            loss = best - np.where(actions < 0, 0.0, taken)
            good, same = np.mean(loss <= rounding), np.mean((actions < 0) == (best <= rounding))
            steps = diffusion_time(world, options)
            print(f"| {label} | {kind} | {good:.4f} | {loss.mean() / best.mean():.1e} | {same:.4f} | {steps:.1f} | {seconds:.1f} |")  # fmt: skip


class FixedRooms(gymnasium.Wrapper[Any, Any, Any, Any]):
    """MiniGrid with the layout of one seed, and a start drawn anew in each episode."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.starts = np.random.default_rng(seed)
        self.env.reset(seed=0)
        self.unwrapped.np_random = self.starts
        self.unwrapped.place_agent()
        return self.unwrapped.gen_obs(), {}


def make_environment(name: str) -> Env:
    """MiniGrid's four rooms in full view, or any other environment by its id, without a limit of steps."""
    if name != "FourRooms":
        return gymnasium.make(name).unwrapped
    from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

    return ImgObsWrapper(FullyObsWrapper(FixedRooms(gymnasium.make("MiniGrid-FourRooms-v0", max_steps=10**9))))


def followed(env: Env, observation: Any, option: Option | LearnedOption, seed: int) -> tuple[Any, int, bool]:
    """The last observation of an option, the number of steps, and whether it ended before the limit."""
    rng = np.random.default_rng(seed)
    for step in range(1, MOST_STEPS + 1):
        observation, _, terminated, _, _ = env.step(option.policy(observation))
        if terminated or rng.random() < option.termination(observation):
            return observation, step, True
    return observation, MOST_STEPS, False


def wandered(env: Env, actions: int, steps: int, rng: np.random.Generator) -> Any:
    """The last observation of random actions."""
    for _ in range(steps):
        observation, _, terminated, _, _ = env.step(int(rng.integers(actions)))
        if terminated:
            break
    return observation


def placed(env: Env, actions: int, seed: int) -> Any:
    """Reset and go a random number of random steps; the same seed gives the same state."""
    rng = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    for _ in range(rng.integers(200)):
        observation, _, terminated, _, _ = env.step(int(rng.integers(actions)))
        if terminated:
            observation, _ = env.reset()
    return observation


def follow_in(name: str, transitions: int, dim: int, starts: int) -> None:
    """Learn components and options from one data set of random actions, and follow the options."""
    env = make_environment(name)
    # Of MiniGrid's actions the first three move; the others find nothing to act on here.
    actions, rng = 3 if name == "FourRooms" else int(env.action_space.n), np.random.default_rng(0)
    choose = lambda _: int(rng.integers(actions))  # noqa: E731
    data = lw.collect(env, transitions, policy=choose, seed=0, record="actions", episode_length=200)
    print(data)
    model = lw.solve(data, dim) if data.has_table else lw.learn(data, dim, seed=0)
    print(model.certificate())
    start = time.perf_counter()
    options = learn_options(model, data)
    print(f"{len(options)} options ({type(options[0]).__name__}) in {time.perf_counter() - start:.1f} s\n")
    print("| option | starts | steps | ended | gain | gain of random actions | where it ends |")
    print("|---|---|---|---|---|---|---|")
    for number, option in enumerate(options):
        gains, others, lengths, ended, last = [], [], [], [], []
        for seed in range(starts):
            before = placed(env, actions, seed)
            if not option.initiation(before):
                continue
            there, steps, over = followed(env, before, option, seed)
            placed(env, actions, seed)
            random = wandered(env, actions, steps, np.random.default_rng(seed + starts))
            values = model.transform(np.stack([before, there, random]))[:, 1 + number // 2] * (-1) ** number
            gains.append(values[1] - values[0])
            others.append(values[2] - values[0])
            lengths.append(steps), ended.append(over), last.append(there)
        ends = where(np.stack(last)) if gains else "-"
        print(f"| {option.name} | {len(gains)} | {np.mean(lengths):.1f} | {np.mean(ended):.0%} | {interval(gains)} | {interval(others)} | {ends} |", flush=True)  # fmt: skip


def where(observations: np.ndarray) -> str:
    """The most frequent last place of an image with an agent (object 10), else mean and deviation of the entries."""
    if observations.ndim == 4:
        agents = [tuple(np.argwhere(image[..., 0] == 10)[0].tolist()) for image in observations if (image[..., 0] == 10).any()]  # fmt: skip
        places, counts = np.unique(agents, axis=0, return_counts=True)
        order = np.argsort(-counts)[:2]
        return ", ".join(f"{tuple(places[i].tolist())} {counts[i] / len(observations):.0%}" for i in order)
    return ", ".join(f"{m:.2f} ({d:.2f})" for m, d in zip(observations.mean(0), observations.std(0), strict=True))


def interval(values: list[float]) -> str:
    """Mean and its standard error."""
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "follow"))
    parser.add_argument("environment", nargs="?", default="FourRooms")
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--transitions", type=int, default=None)
    parser.add_argument("--dim", type=int, default=None)
    parser.add_argument("--starts", type=int, default=100)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.what == "exact":
        compare_with_exact(given.layouts, given.transitions or 1_000_000, given.dim or 9)
    else:
        follow_in(given.environment, given.transitions or 300_000, given.dim or 4, given.starts)


if __name__ == "__main__":
    main()
