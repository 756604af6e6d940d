"""The baseline for anything learned from data: count transitions, symmetrise, diagonalise, score.

    python benchmarks/counting.py
    python benchmarks/counting.py --layouts DIR --worlds GridRoom-32 GridRoom-64 --steps 1000000 3000000

Cosines and relative eigenvalue errors (successor(0.9)) of 11 components: mean over seeds, standard deviation, and the
lowest cosine. The spread over data sets tells how many transitions a published spread can have come from.
"""

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

import lapwing as lw

WORLDS = ("Rooms-16", "Rooms-64", "GridRoomSym-4")
STEPS = (200_000, 1_000_000, 3_000_000)
DIM = 11


def cell(cosines: NDArray[np.float64]) -> str:
    """Mean (standard deviation), lowest."""
    return f"{cosines.mean():.4f} ({cosines.std(ddof=1):.4f}), {cosines.min():.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--worlds", nargs="+", default=WORLDS)
    parser.add_argument("--steps", nargs="+", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, default=10, help="at least 2")
    given = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    print(f"{given.seeds} seeds, episodes of 50 from uniform restarts, uniform policy, {DIM} components")
    print("| world | steps | cosine, lowest seed | subspace cosine, lowest seed | eigenvalue error |")
    print("|---|---:|---:|---:|---:|")
    for world in given.worlds:
        truth = lw.solve(world, DIM, layouts=given.layouts)
        for steps in given.steps:
            scores = [
                lw.counting_score(lw.collect(world, steps=steps, seed=seed, layouts=given.layouts), truth)
                for seed in range(given.seeds)
            ]
            cosines = np.array([score.cosine for score in scores])
            subspaces = np.array([score.subspace_cosine for score in scores])
            error = np.mean([score.mean_eigenvalue_error for score in scores])
            print(f"| {world} | {steps:,} | {cell(cosines)} | {cell(subspaces)} | {error:.2%} |", flush=True)


if __name__ == "__main__":
    main()
