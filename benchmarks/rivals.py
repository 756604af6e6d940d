"""Fifty components from 3,000,000 transitions: objectives beside counting on the same data and the best published.

    python benchmarks/rivals.py --layouts DIR                    # GridRoom-64 and GridMaze-32, the authors' layouts
    python benchmarks/rivals.py --layouts DIR --objectives allo vamp2 --worlds GridMaze-32

Each objective trains the default preset of 50 components on exact expectations over the counted transitions. Cosines are
the paper's (component by component) and by eigenspaces (clusters within 1 %), of the components as they are ("raw") and
of the default read-out. The comparison at 11 components is a study: ``lapwing reproduce rivals``.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import lapwing as lw
from lapwing_paper.published_numbers import BEST_AT_FIFTY
from lapwing_paper.read_out_tasks import raw_components

DIM = 50
TRANSITIONS = 3_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", type=Path)
    parser.add_argument("--worlds", nargs="+", default=["GridMaze-32", "GridRoom-64"])
    parser.add_argument("--objectives", nargs="+", default=["allo", "omm", "nested_lora", "vamp2"])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    print("| world | method | paper's cosine, raw | paper's cosine | eigenspaces | eigenvalues off by | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|", flush=True)
    for name in options.worlds:
        world = lw.make_world(name, layouts=options.layouts)
        truth = lw.solve(world, dim=DIM)
        data = lw.collect(world, TRANSITIONS, seed=options.seed)
        counted = lw.counting_score(data, truth)
        best = BEST_AT_FIFTY.get(name)
        print(f"| {name} | best published (5M samples) | | {best} | | | |")
        print(f"| {name} | counting | | {counted.cosine:.4f} | {counted.subspace_cosine:.4f} "
              f"| {counted.mean_eigenvalue_error:.2%} | |", flush=True)  # fmt: skip
        for objective in options.objectives:
            started = time.perf_counter()
            model = lw.learn(
                data, dim=DIM, objective=objective, batches="exact", steps=options.steps, seed=options.seed,
                stop_when_converged=False,
            )  # fmt: skip
            seconds = time.perf_counter() - started
            found, raw = lw.score(model, truth), lw.score(raw_components(model, data), truth)
            row = {
                "world": name, "objective": objective, "steps": options.steps, "raw": raw.cosine, "cosine": found.cosine,
                "eigenspaces": found.subspace_cosine, "eigenvalues": found.mean_eigenvalue_error, "seconds": seconds,
            }  # fmt: skip
            if options.out is not None:
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            print(f"| {name} | {objective} | {raw.cosine:.4f} | {found.cosine:.4f} | {found.subspace_cosine:.4f} "
                  f"| {found.mean_eigenvalue_error:.2%} | {seconds:.0f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
