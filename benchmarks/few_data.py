"""Is counting the limit of few data? The default preset and exact averages over actions, beside counting, paired by seed.

    python benchmarks/few_data.py --layouts DIR --worlds GridRoom-64 GridRoom-32 GridMaze-26 --transitions 200000 1000000

For each world and size, over seeds: the cosine of counting; the default preset minus counting and ``all_actions=True``
(solved) minus counting, each with the 95 % interval of its mean (Student's t); to see what limits counting, counts
whose next states are averaged over all actions while visits stay those of the data; and the default preset with
``rho="uniform"``, which takes the noise of visits away and leaves that of steps.
"""

import argparse
import warnings

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.stats import t as student

import lapwing as lw


def interval(values: list[float]) -> str:
    """Mean and the half width of its 95 % interval."""
    mean, count = float(np.mean(values)), len(values)
    half = float(student.ppf(0.975, count - 1) * np.std(values, ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    return f"{mean:+.5f} +- {half:.5f}"


def known_steps_counted_visits(data: lw.Trajectories) -> lw.Operator:
    """Symmetrised flow between the states, steps averaged over actions and visits as they were."""
    counts = data.counts()
    flow = csr_array((counts + counts.T) / 2.0)
    degree = np.asarray(flow.sum(axis=1)).ravel()
    seen = np.flatnonzero(degree > 0)
    matrix = csr_array(diags_array(1.0 / degree[seen]) @ flow[seen][:, seen])
    return lw.Operator(
        matrix, degree[seen] / degree.sum(), np.asarray(data.observations[seen]), exact=False, metadata={}
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", default=None)
    parser.add_argument("--worlds", nargs="+", default=["GridRoom-64", "GridRoom-32", "GridMaze-26"])
    parser.add_argument("--transitions", nargs="+", type=int, default=[200_000, 1_000_000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| world | transitions | counting | default - counting | all actions - counting | steps known, visits counted - counting | rho known - counting |"
    )
    print("|---|---|---|---|---|---|---|")
    for world in given.worlds:
        truth = lw.solve(world, dim=11, layouts=given.layouts)
        for transitions in given.transitions:
            counted, learned, known, half_known, balanced = [], [], [], [], []
            for seed in given.seeds:
                data = lw.collect(world, transitions, seed=seed, layouts=given.layouts)
                every = lw.collect(world, transitions, seed=seed, layouts=given.layouts, all_actions=True)
                counted.append(lw.score(lw.solve(data, 11), truth).cosine)
                learned.append(lw.score(lw.learn(data, 11, seed=seed), truth).cosine - counted[-1])
                known.append(lw.score(lw.solve(every, 11), truth).cosine - counted[-1])
                half_known.append(lw.score(lw.solve(known_steps_counted_visits(every), 11), truth).cosine - counted[-1])
                uniform = lw.learn(data, 11, seed=seed, rho="uniform")
                balanced.append(lw.score(uniform, truth).cosine - counted[-1])
            columns = [interval(values) for values in (learned, known, half_known, balanced)]
            print(f"| {world} | {transitions:,} | {np.mean(counted):.5f} | {' | '.join(columns)} |", flush=True)


if __name__ == "__main__":
    main()
