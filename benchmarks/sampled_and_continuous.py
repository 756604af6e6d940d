"""Learning where observations do not repeat: sampled pairs only, and the continuous boxes against their cosines.

    python benchmarks/sampled_and_continuous.py --layouts DIR

The grid's data are stripped of their table, so that nothing knows that observations repeat.
"""

import argparse
import time

import numpy as np

import lapwing as lw


def report(name: str, data: lw.Trajectories, truth: lw.LaplacianRepresentation, **options: object) -> None:
    started = time.perf_counter()
    model = lw.learn(data, **options)
    seconds = time.perf_counter() - started
    score = lw.score(model, truth)
    print(
        f"{name:24} subspace cosine {score.subspace_cosine:.4f}, expected {model.certificate().expected_cosine:.4f}, "
        f"eigenvalue errors mean {score.mean_eigenvalue_error:.2%} largest {np.nanmax(score.eigenvalue_errors):.2%}, "
        f"{seconds:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    world = "GridRoom-16" if options.layouts else "Rooms-16"
    data = lw.collect(world, options.steps, layouts=options.layouts)
    rows = np.asarray(data.observations)[np.asarray(data.ids)]
    bare = lw.Trajectories(rows, data.offsets, data.terminated, data.truncated, metadata=data.metadata)
    truth = lw.solve(world, layouts=options.layouts)
    report(f"{world}, no table", bare, truth)
    for box in ("Box-1", "Box-2"):
        report(f"{box}, 3,000 steps", lw.collect(box, options.steps), lw.solve(box), steps=3000)


if __name__ == "__main__":
    main()
