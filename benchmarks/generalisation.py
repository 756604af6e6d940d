"""States that are not in the data: what a network says of them, beside the nearest neighbour's value.

    python benchmarks/generalisation.py --layouts DIR --seeds 0 1 2

A fifth of the states, drawn at random, is taken out of the data altogether: every visit of one is deleted, and the states
before and after it become neighbours in time. The default preset learns from what is left, with its own Fourier scales and with longer waves only. Its components at the states left
out alone are compared with the true ones, by the mean absolute cosine over components 2 to 11. Beside it: counting on
the same data, extended to the states left out by their nearest neighbour in the data, and by linear interpolation
(nearest where a state lies outside the convex hull).
"""

import argparse
import warnings

import numpy as np
from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator

import lapwing as lw

SHARE = 0.2


def without(data: lw.Trajectories, left_out: np.ndarray) -> lw.Trajectories:
    """The data without any visit of some states, given by rows of the table."""
    kept = ~np.isin(np.asarray(data.ids), left_out)
    lengths = np.add.reduceat(kept, np.asarray(data.offsets[:-1]))
    observations = np.asarray(data.observations)[np.asarray(data.ids)[kept]]
    return lw.from_arrays(observations, lengths=lengths[lengths > 0])


def mean_cosine(values: np.ndarray, true: np.ndarray) -> float:
    """Mean absolute cosine between columns, the constant one left out."""
    values, true = values[:, 1:], true[:, 1:]
    products = np.abs((values * true).sum(axis=0))
    return float(np.mean(products / np.linalg.norm(values, axis=0) / np.linalg.norm(true, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--worlds", nargs="+", default=["GridRoom-64", "GridRoom-32", "GridMaze-26"])
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| world | states left out | network | network, scales 3 and 10 | nearest neighbour | linear interpolation | all states: network | counting |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for world in given.worlds:
        truth = lw.solve(world, dim=11, layouts=given.layouts)
        rows = []
        for seed in given.seeds:
            data = lw.collect(world, given.transitions, seed=seed, layouts=given.layouts)
            table = np.asarray(data.observations)
            left_out = np.random.default_rng(seed).choice(len(table), int(SHARE * len(table)), replace=False)
            kept = np.setdiff1d(np.arange(len(table)), left_out)
            rest = without(data, left_out)
            counted = lw.solve(rest, 11)
            learned, smooth = (
                np.asarray(lw.learn(rest, 11, seed=seed, **options).transform(table))[:, :11]
                for options in ({}, {"encoder": "fourier(scales=(3.0, 10.0))"})
            )
            true, known = truth.transform(table), np.asarray(counted.transform(table[kept]))[:, :11]
            nearest = NearestNDInterpolator(table[kept], known)(table[left_out])
            linear = LinearNDInterpolator(table[kept], known)(table[left_out])
            linear = np.where(np.isfinite(linear), linear, nearest)
            rows.append(
                [
                    mean_cosine(values, true[left_out])
                    for values in (learned[left_out], smooth[left_out], nearest, linear)
                ]
                + [mean_cosine(learned[kept], true[kept]), mean_cosine(known, true[kept])]
            )
        means = " | ".join(f"{value:.4f}" for value in np.mean(rows, axis=0))
        print(f"| {world} | {len(left_out)} of {len(table)} | {means} |", flush=True)


if __name__ == "__main__":
    main()
