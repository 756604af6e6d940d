"""What the certificate expects without a truth, beside what the score against the truth says.

python benchmarks/expected_cosine.py --layouts DIR
"""

import argparse
import warnings

import numpy as np

import lapwing as lw

CASES = (
    ("GridRoom-16", "Rooms-16", 50_000),
    ("GridRoom-16", "Rooms-16", 200_000),
    ("GridRoom-16", "Rooms-16", 1_000_000),
    ("GridRoom-64", "Rooms-64", 1_000_000),
    ("GridRoom-64", "Rooms-64", 3_000_000),
    ("GridMaze-26", "Maze-26", 200_000),
    ("GridRoom-1", "GridRoom-1", 100_000),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    print("| world | transitions | expected | real |\n|---|---:|---:|---:|")
    for theirs, ours, steps in CASES:
        world = theirs if options.layouts else ours
        truth = lw.solve(world, layouts=options.layouts)
        expected, real = [], []
        for seed in range(options.seeds):
            model = lw.solve(lw.collect(world, steps, seed=seed, layouts=options.layouts))
            expected.append(model.certificate().expected_cosine)
            real.append(lw.score(model, truth).subspace_cosine)
        print(
            f"| {world} | {steps:,} | {np.mean(expected):.4f} ({min(expected):.4f} to {max(expected):.4f}) "
            f"| {np.mean(real):.4f} ({min(real):.4f} to {max(real):.4f}) |",
            flush=True,
        )


if __name__ == "__main__":
    main()
