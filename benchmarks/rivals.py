"""Fifty components from 3,000,000 transitions: objectives beside counting on the same data and the best published.

    python benchmarks/rivals.py --layouts DIR --seeds 3 --out rows.jsonl        # three worlds, all objectives
    python benchmarks/rivals.py --layouts DIR --worlds GridMaze-32 --objectives ALLO VAMP-2

Each objective trains the default preset of 50 components on exact expectations over the counted transitions. Cosines are
the paper's (component by component) and by eigenspaces (clusters within 1 %), of the components as they are ("raw"), after
plain Rayleigh-Ritz ("ritz") and of the default read-out: means over seeds. Rows of as many steps that
stand in the file are not made again. The comparison at 11 components is a study: ``lapwing reproduce rivals``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import lapwing as lw
from lapwing_paper.published_numbers import BEST_AT_FIFTY
from lapwing_paper.read_out_tasks import raw_components, ritz_components
from lapwing_paper.studies.rivals import OBJECTIVES

DIM = 50
TRANSITIONS = 3_000_000
COUNTING = "counting"
COLUMNS = ("raw", "ritz", "cosine", "eigenspaces", "eigenvalues", "seconds")

Row = dict[str, Any]


def scored(found: lw.LaplacianRepresentation, truth: lw.LaplacianRepresentation) -> Row:
    """The numbers of a final result."""
    result = lw.score(found, truth)
    values = (result.cosine, result.subspace_cosine, result.mean_eigenvalue_error)
    return dict(zip(("cosine", "eigenspaces", "eigenvalues"), values, strict=True))


def rows(name: str, seed: int, methods: list[str], steps: int, layouts: Path | None) -> Iterator[Row]:
    """One row per method, of the same data."""
    world = lw.make_world(name, layouts=layouts)
    truth = lw.solve(world, dim=DIM)
    data = lw.collect(world, TRANSITIONS, seed=seed)
    for method in methods:
        row: Row = {"world": name, "seed": seed, "method": method}
        started = time.perf_counter()
        if method == COUNTING:
            yield row | scored(lw.solve(data, dim=DIM), truth) | {"seconds": time.perf_counter() - started}
            continue
        try:
            model = lw.learn(
                data, dim=DIM, batches="exact", steps=steps, seed=seed, stop_when_converged=False, **OBJECTIVES[method]
            )
        except (lw.training.NetworkCollapsedError, lw.training.LearningDivergedError) as error:
            # That is what the objective does here.
            yield row | {"steps": steps, "lost": str(error), "seconds": time.perf_counter() - started}
            continue
        seconds = time.perf_counter() - started
        spans = {"raw": raw_components(model, data), "ritz": ritz_components(model, data)}
        cosines = {read_out: lw.score(found, truth).cosine for read_out, found in spans.items()}
        yield row | {"steps": steps} | cosines | scored(model, truth) | {"seconds": seconds}


def print_table(found: list[Row], worlds: list[str]) -> None:
    """Means over seeds, and how many there are."""
    print("| world | method | seeds | raw | ritz | read out | eigenspaces | eigenvalues off by | seconds |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for world in worlds:
        print(f"| {world} | best published (5M samples) | | | | {BEST_AT_FIFTY.get(world)} | | | |")
        for method in dict.fromkeys(row["method"] for row in found if row["world"] == world):
            own = [row for row in found if (row["world"], row["method"]) == (world, method)]
            means = {key: np.mean([row[key] for row in own if key in row] or [np.nan]) for key in COLUMNS}
            cells = [f"{means[key]:.4f}" for key in COLUMNS[:4]]
            cells += [f"{means['eigenvalues']:.2%}", f"{means['seconds']:.0f}"]
            print(
                f"| {world} | {method} | {len(own)} | "
                + " | ".join(cells).replace("nan%", "").replace("nan", "")
                + " |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", type=Path)
    parser.add_argument("--worlds", nargs="+", default=["GridRoom-16", "GridMaze-32", "GridRoom-64"])
    parser.add_argument("--objectives", nargs="+", default=list(OBJECTIVES), choices=list(OBJECTIVES))
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, help="a file of JSON lines to add to")
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    kept = options.out.read_text().splitlines() if options.out is not None and options.out.exists() else []
    found = [row for row in map(json.loads, kept) if row.get("steps", options.steps) == options.steps]
    for name in options.worlds:
        for seed in range(options.seeds):
            made = {row["method"] for row in found if (row["world"], row["seed"]) == (name, seed)}
            missing = [method for method in (COUNTING, *options.objectives) if method not in made]
            for row in rows(name, seed, missing, options.steps, options.layouts) if missing else ():
                print(json.dumps(row), flush=True)
                found.append(row)
                if options.out is not None:
                    with options.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    print_table(found, options.worlds)


if __name__ == "__main__":
    main()
