"""The default preset on the twelve worlds of the paper: cosine, eigenvalue error and seconds, beside counting.

    python benchmarks/twelve_worlds.py --layouts DIR --mode data      # 3M transitions, three seeds
    python benchmarks/twelve_worlds.py --layouts DIR --mode exact     # the operator itself
    python benchmarks/twelve_worlds.py --layouts DIR --mode pixels    # the operator, observed as pixels

Without --layouts the shipped worlds are used. Seconds include compilation; they are wall time of one run on this machine.
"""

import argparse
import time
import warnings

import numpy as np

import lapwing as lw

PAPER = [
    "GridMaze-7",
    "GridMaze-9",
    "GridMaze-17",
    "GridMaze-19",
    "GridMaze-26",
    "GridMaze-32",
    "GridRoom-1",
    "GridRoom-4",
    "GridRoom-16",
    "GridRoom-32",
    "GridRoom-64",
    "GridRoomSym-4",
]
OWN = [
    "GridMaze-7",
    "GridMaze-9",
    "GridMaze-17",
    "Maze-19",
    "Maze-26",
    "Maze-32",
    "GridRoom-1",
    "FourRooms",
    "Rooms-16",
    "Rooms-32",
    "Rooms-64",
    "GridRoomSym-4",
]


def learn_once(world: str, mode: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    observation = "pixels" if mode == "pixels" else "xy"
    truth = lw.solve(world, options.dim, layouts=options.layouts, observation=observation)
    counting = None
    if mode == "data":
        data = lw.collect(world, options.steps, seed=seed, layouts=options.layouts)
        counting = lw.counting_score(data, truth)
    else:
        data = lw.operator(world, layouts=options.layouts, observation=observation)
    started = time.perf_counter()
    preset = "pixels" if mode == "pixels" else "default"
    model = lw.learn(data, dim=options.dim, seed=seed, preset=preset)
    seconds = time.perf_counter() - started
    score = lw.score(model, truth)
    return {
        "subspace": score.subspace_cosine,
        "paper": score.cosine,
        "eigenvalues": score.mean_eigenvalue_error,
        "steps": model.metadata["steps"],
        "seconds": seconds,
        "counting": counting.subspace_cosine if counting else np.nan,
        "counting_eigenvalues": counting.mean_eigenvalue_error if counting else np.nan,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("data", "exact", "pixels"), default="exact")
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--worlds", nargs="*", default=None)
    parser.add_argument("--seeds", type=int, default=None, help="default: 3 for data, 1 otherwise")
    parser.add_argument("--steps", type=int, default=3_000_000, help="transitions, with --mode data")
    parser.add_argument("--dim", type=int, default=11)
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    seeds = options.seeds or (3 if options.mode == "data" else 1)
    print(
        f"mode {options.mode}, dim {options.dim}, {seeds} seed(s), layouts {'given' if options.layouts else 'shipped'}"
    )
    print(
        f"{'world':15} {'subspace':>9} {'worst':>8} {'counting':>9} {'paper cos':>9} {'eig err':>8} {'steps':>6} {'sec':>6}"
    )
    rows = []
    for world in options.worlds or (PAPER if options.layouts else OWN):
        runs = [learn_once(world, options.mode, seed, options) for seed in range(seeds)]
        mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
        mean["worst"] = min(run["subspace"] for run in runs)
        mean["margin"] = min(run["subspace"] - run["counting"] for run in runs)
        mean["slowest"] = max(run["seconds"] for run in runs)
        rows.append(mean)
        print(
            f"{world:15} {mean['subspace']:9.5f} {mean['worst']:8.5f} {mean['counting']:9.5f} {mean['paper']:9.5f} "
            f"{mean['eigenvalues']:8.3%} {mean['steps']:6.0f} {mean['seconds']:6.1f}",
            flush=True,
        )
    print(
        f"mean subspace cosine {np.mean([row['subspace'] for row in rows]):.5f}, worst run {min(r['worst'] for r in rows):.5f}, "
        f"mean eigenvalue error {np.mean([row['eigenvalues'] for row in rows]):.3%}, slowest {max(r['slowest'] for r in rows):.1f} s"
    )
    if options.mode == "data":
        print(f"smallest margin over counting on the same data {min(row['margin'] for row in rows):+.5f}")


if __name__ == "__main__":
    main()
