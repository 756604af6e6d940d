"""What learning while experience comes in can do, beside counting with the same forgetting.

    python benchmarks/online.py doors --seeds 5            # nine rooms whose doors change in the middle
    python benchmarks/online.py explore --seeds 5          # an agent explores 9,279 states by options of its own
    python benchmarks/online.py stream                     # a million observations: memory, and time beside offline

Each prints a table; with ``--out DIR`` figures and numbers are written there. The agent that learns from the
representation while its policy changes is a study of the paper package: ``lapwing reproduce online-policies``.
"""

import argparse
import json
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.applications import learn_options

warnings.simplefilter("ignore", lw.LapwingWarning)

ROOM = 4
CLOSED = ((2, 6, 8, 11), (0, 4, 5, 7))
"""Doors that are closed before and after the change, of the twelve between nine rooms."""
LARGE_WORLD = "rooms:8x8x12:3"
START = 0.005
"""Probability of beginning an option in a step without one."""


def nine_rooms(closed: tuple[int, ...], name: str) -> lw.GridWorld:
    """Three by three rooms; doors are numbered across first, then down."""
    size = 3 * (ROOM + 1) + 1
    tiles = np.full((size, size), "X")
    places = range(1, size, ROOM + 1)
    for row in places:
        for column in places:
            tiles[row : row + ROOM, column : column + ROOM] = "."
    middle = ROOM // 2
    across = [(row + middle, column + ROOM) for row in places for column in list(places)[:2]]
    down = [(row + ROOM, column + middle) for row in list(places)[:2] for column in places]
    for number, door in enumerate(across + down):
        tiles[door] = "X" if number in closed else "."
    return lw.GridWorld(lw.Layout.from_text("\n".join("".join(row) for row in tiles), name))


def doors(seeds: int, out: Path | None) -> None:
    dim, every, capacity, change, end = 9, 500, 7000, 15_000, 35_000
    worlds = [nine_rooms(closed, name) for closed, name in zip(CLOSED, ("before", "after"), strict=True)]
    truths = [lw.solve(world, dim=dim) for world in worlds]
    curves, rows = [], []
    for seed in range(seeds):
        learner = lw.OnlineLearner(dim, capacity=capacity, rho="uniform", seed=seed)
        curve = []
        for piece in range(end // every):
            now = int(piece * every >= change)
            data = lw.collect(worlds[now], every * 50 // 51, seed=1000 * seed + piece)
            learner.add(data.states(), data.last_states())
            learner.update(8)
            counted = lw.solve(learner.data(), dim=dim, rho="uniform")
            scores = [lw.score(one, truths[now]).subspace_cosine for one in (learner.model(certified=False), counted)]
            curve.append((learner.seen, *scores))
        found = np.array(curve)
        after = found[found[:, 0] > change]
        # When it is back above 0.95, and how many of the updates from then on are above it.
        back = [int(np.flatnonzero(after[:, column] >= 0.95)[0]) for column in (1, 2)]
        stays = [float((after[place:, column] >= 0.95).mean()) for place, column in zip(back, (1, 2), strict=True)]
        moments = [moment for moment in learner.drift().moments if moment > 5000]
        steps = [int(after[place, 0]) - change for place in back]
        rows.append((seed, *steps, *stays, after[-1, 1], after[-1, 2], moments))
        curves.append(found)
        print(rows[-1], flush=True)
        if out is not None and seed == 0:
            lw.plots.save_figure(
                lw.plots.drift_figure(learner.reports, [change], style=lw.plots.SCREEN), out / "drift.png"
            )
    print("| seed | steps until back above 0.95 | updates above 0.95 since then | at the end | surprising updates |")
    print("|---:|---|---|---|---|")
    for seed, *numbers, moments in rows:
        back, stays, ends = (
            ", ".join(format(number, kind) for number in numbers[place : place + 2])
            for place, kind in ((0, ",d"), (2, ".0%"), (4, ".3f"))
        )
        print(f"| {seed} | {back} | {stays} | {ends} | {', '.join(f'{moment:,}' for moment in moments)} |")
    print("each column: the online network, then counting with the same window")
    print(f"the doors change after {change:,} states; a window of {capacity:,}; an update every {every}")
    if out is not None:
        figure = Figure(figsize=(8, 3.2), layout="constrained")
        ax = figure.subplots()
        stack = np.array(curves)
        for column, label in ((1, "online network"), (2, "counting, same window")):
            ax.plot(stack[0, :, 0], stack[:, :, column].mean(axis=0), "-" if column == 1 else "--", label=label)
            ax.fill_between(stack[0, :, 0], stack[:, :, column].min(axis=0), stack[:, :, column].max(axis=0), alpha=0.2)
        ax.axvline(change, color="0.4", linestyle="--")
        ax.set_xlabel("states")
        ax.set_ylabel("similarity to the world as it is")
        ax.legend(loc="lower right")
        lw.plots.save_figure(figure, out / "doors.png")


class Walker:
    """Moves through a world of listed states; nothing but observations leaves it."""

    def __init__(self, world: Any, seed: int) -> None:
        self.following = np.asarray(world.successors)
        self.rng, self.table = np.random.default_rng(seed), world.table()
        self.state = int(np.lexsort(self.table.T)[0])
        self.visits = np.zeros(len(self.table), dtype=np.int64)
        self.visits[self.state] = 1

    def step(self, action: int) -> int:
        self.state = int(self.following[self.state, action])
        self.visits[self.state] += 1
        return self.state


def random_actions(walker: Walker, tried: np.ndarray) -> int:
    return int(walker.rng.integers(walker.following.shape[1]))


def least_tried(walker: Walker, tried: np.ndarray) -> int:
    """Count-based: the action that was tried least often here."""
    counts = tried[walker.state]
    return int(walker.rng.choice(np.flatnonzero(counts == counts.min())))


def cover(world: Any, method: str, seed: int, steps: int, every: int) -> list[tuple[int, float]]:
    """Share of states visited, at every interval."""
    walker, curve = Walker(world, seed), []
    tried = np.zeros_like(walker.following)
    learner = lw.OnlineLearner(6, capacity=steps, seed=seed, hidden=(128, 128), batch_size=512, rho="uniform")
    policies: list[tuple[np.ndarray, np.ndarray]] = []
    number: dict[bytes, int] = {row.tobytes(): state for state, row in enumerate(walker.table)}
    running: tuple[np.ndarray, np.ndarray] | None = None
    states, actions = [walker.state], []
    for step in range(1, steps + 1):
        action = least_tried(walker, tried) if method == "counts" else random_actions(walker, tried)
        if method == "options":
            if running is None and policies and walker.rng.random() < START:
                running = policies[walker.rng.integers(len(policies))]
            if running is not None:
                chosen, ending = running
                if ending[walker.state]:
                    running = None
                else:
                    action = int(chosen[walker.state])
        tried[walker.state, action] += 1
        actions.append(action)
        states.append(walker.step(action))
        if step % every == 0:
            curve.append((step, float((walker.visits > 0).mean())))
            if method == "options":
                learner.add(walker.table[states[:-1]], actions=np.array(actions))
                learner.update(8)
                options = learn_options(learner.model(certified=False), learner.data(), encoder="table", discount=0.95)
                policies, running = [], None
                for option in options:
                    places = np.array([number[row.tobytes()] for row in np.asarray(option.observations)])
                    ending = np.ones(len(walker.table), dtype=bool)
                    chosen = np.zeros(len(walker.table), dtype=np.int64)
                    ending[places] = option.termination_probabilities >= 1.0
                    chosen[places] = np.maximum(option.actions, 0)
                    policies.append((chosen, ending))
                states, actions = states[-1:], []
    return curve


def explore(seeds: int, out: Path | None, steps: int, every: int) -> None:
    world = lw.make_world(LARGE_WORLD)
    found: dict[str, np.ndarray] = {}
    for method in ("random", "options", "counts"):
        started = time.perf_counter()
        found[method] = np.array([cover(world, method, seed, steps, every) for seed in range(seeds)])
        last = found[method][:, -1, 1]
        print(f"{method}: {last.mean():.3f} of the states after {steps:,} steps, seeds {np.round(last, 3).tolist()} "
              f"({time.perf_counter() - started:.0f} s)", flush=True)  # fmt: skip
    print("| steps | random walk | options of the online representation | least tried action |")
    print("|---:|---|---|---|")
    for place in range(0, len(found["random"][0]), max(1, len(found["random"][0]) // 8)):
        cells = [f"{part[:, place, 1].mean():.3f} ± {part[:, place, 1].std():.3f}" for part in found.values()]
        print(f"| {int(found['random'][0, place, 0]):,} | {' | '.join(cells)} |")
    if out is not None:
        (out / "explore.json").write_text(json.dumps({name: part.tolist() for name, part in found.items()}))
        figure = Figure(figsize=(6, 3.4), layout="constrained")
        ax = figure.subplots()
        names = {
            "random": "random walk",
            "options": "options of the online representation",
            "counts": "least tried action",
        }
        for name, label in names.items():
            part = found[name]
            ax.plot(part[0, :, 0], part[:, :, 1].mean(axis=0), label=label)
            ax.fill_between(part[0, :, 0], part[:, :, 1].min(axis=0), part[:, :, 1].max(axis=0), alpha=0.2)
        ax.set_xlabel("steps")
        ax.set_ylabel(f"share of {len(world.table()):,} states visited")
        ax.legend()
        lw.plots.save_figure(figure, out / "explore.png")


def stream(out: Path | None) -> None:
    """A million observations of a continuous maze that never repeat, in blocks of 10,000."""
    total, block, steps, dim = 1_000_000, 10_000, 16, 6
    learner = lw.OnlineLearner(dim, capacity=50_000, steps=64)
    spent = {"add": 0.0, "update": 0.0}
    for number in range(total // block):
        data = lw.collect("UMaze", block * 50 // 51, seed=number)
        rows, ends = data.states(), data.last_states()
        started = time.perf_counter()
        learner.add(rows, ends)
        middle = time.perf_counter()
        learner.update(steps)
        spent["add"] += middle - started
        spent["update"] += time.perf_counter() - middle
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    truth = lw.solve("UMaze", dim=dim)
    online = lw.score(learner.model(), truth).subspace_cosine
    offline_data = lw.collect("UMaze", total, seed=10**6)
    started = time.perf_counter()
    offline = lw.learn(offline_data, dim=dim, steps=steps * total // block)
    seconds = time.perf_counter() - started
    print(f"{learner.seen:,} states in blocks of {block:,}: add {spent['add']:.1f} s, {steps} steps of update each "
          f"{spent['update']:.0f} s; peak {peak:.2f} GB until the end of the stream")  # fmt: skip
    ratio = (spent["add"] + spent["update"]) / seconds
    print(f"offline, as many steps on as many transitions: {seconds:.0f} s, of which online takes {ratio:.2f}; "
          f"cosine online {online:.4f} (from the last 50,000 states), offline "
          f"{lw.score(offline, truth).subspace_cosine:.4f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("doors", "explore", "stream"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100_000, help="of explore")
    parser.add_argument("--every", type=int, default=5000, help="steps between updates of explore")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    if options.what == "doors":
        doors(options.seeds, options.out)
    elif options.what == "explore":
        explore(options.seeds, options.out, options.steps, options.every)
    else:
        stream(options.out)


if __name__ == "__main__":
    main()
