"""The numbers of the how-to pages and of the explanation of finite episodes.

    python benchmarks/how_to.py dimension   # docs/choose_d.md
    python benchmarks/how_to.py lags        # docs/choose_lags.md
    python benchmarks/how_to.py data        # docs/how_much_data.md
    python benchmarks/how_to.py episodes    # docs/finite_episodes.md

Each prints a table in Markdown; `lags` trains four models and takes a minute or two, the others take seconds.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import lapwing as lw

warnings.simplefilter("ignore", lw.LapwingWarning)

WORLD = "Rooms-16"


def table(columns: list[str], rows: list[list[str]]) -> None:
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def dimension() -> None:
    world = lw.make_world(WORLD)
    states = world.table()
    paths = shortest_path(world.transition_matrix(), unweighted=True)
    truth = lw.solve(world, dim=64)
    counted = lw.solve(lw.collect(world, 1_000_000, seed=0), dim=64)
    score, angles = lw.score(counted, truth), counted.certificate().data_angles
    above = np.triu_indices(len(states), 1)
    rows = []
    for d in (2, 4, 8, 11, 16, 24, 32, 64):
        found = []
        for scaled in (True, False):
            values = truth.embedding(states, scaled=scaled)[:, : d - 1]
            distances = np.linalg.norm(values[:, None] - values[None], axis=-1)
            found.append(spearmanr(distances[above], paths[above]).statistic)
        value, noise = truth.eigenvalues[d - 1], angles[:d].max()
        rows.append([str(d), f"{value:.4f}", f"{found[0]:.3f}", f"{found[1]:.3f}", f"{noise:.2f}"])
        rows[-1].append(f"{score.subspace_cosines[:d].mean():.3f}")
    names = ["d", "eigenvalue of the last", "scaled distance", "plain distance", "largest angle by data", "cosine"]
    table(names, rows)


def lags() -> None:
    world = lw.make_world(WORLD)
    data, truth = lw.collect(world, 1_000_000, seed=0), lw.solve(world, dim=11)
    rows = []
    choices = [(0.9,), (0.99,), (0.999,), (0.9, 0.99, 0.999)]
    for discounts in choices:
        began = time.perf_counter()
        model = lw.learn(data, dim=11, discounts=discounts, steps=4000, log_every=100)
        seconds = time.perf_counter() - began
        values = [np.mean([truth.eigenvalues_in(lw.geometric(g))[i] for g in discounts]) for i in (1, 10)]
        rows.append(
            [
                str(discounts).strip("()").rstrip(","),
                f"{values[0]:.4f}",
                f"{values[1]:.3f}",
                f"{model.metadata['steps']:,}",
            ]
        )
        rows[-1] += [f"{lw.score(model, truth).subspace_cosine:.4f}", f"{seconds:.0f}"]
    counting = lw.counting_score(data, truth).subspace_cosine
    names = [
        "discounts",
        "lambda_2 of f(P)",
        "lambda_11 of f(P)",
        "steps until converged",
        "subspace cosine",
        "seconds",
    ]
    table(names, rows)
    print(f"counting the same data: {counting:.4f}")


def data() -> None:
    world = lw.make_world(WORLD)
    truth = lw.solve(world, dim=11)
    rows = []
    for count in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000):
        trajectories = lw.collect(world, count, seed=0)
        row = [f"{count:,}"]
        for rho in ("visits", "uniform"):
            model = lw.solve(trajectories, dim=11, rho=None if rho == "visits" else rho)
            certificate = model.certificate()
            score, wide = lw.score(model, truth), lw.score(model, truth, tolerance=0.05)
            if rho == "visits":
                trusted = sum(verdict in ("trusted", "degenerate") for verdict in certificate.verdicts)
                row += [f"{certificate.data_angles.max():.3f}", str(trusted), f"{certificate.expected_cosine:.3f}"]
            row += [f"{score.cosine:.3f}", f"{wide.subspace_cosine:.3f}"]
        rows.append(row)
    names = [
        "transitions",
        "largest angle by data",
        "trusted of 11",
        "expected cosine",
        "cosine",
        "subspaces within 5 %",
    ]
    table([*names, "cosine, rho known", "subspaces, rho known"], rows)


def episodes() -> None:
    world = lw.make_world("FourRooms")
    truth = lw.solve(world, dim=6)
    whole = truth.eigenvalues_in(lw.geometric(0.9))
    rows = []
    for length in (5, 10, 20, 50, 200, 1000):
        cut = truth.eigenvalues_in(lw.truncated(0.9, length))
        seen = lw.audit(lw.collect(world, 20_000, episode_length=length, seed=0))
        rows.append([str(length), f"{seen.mean_lag:.2f}", f"{cut[1]:.4f}", f"{cut[1] / whole[1]:.1%}"])
    table(["transitions per episode", "mean lag", "lambda_2 of the pairs", "of geometric(0.9)"], rows)
    print(f"geometric(0.9): mean lag 10, lambda_2 {whole[1]:.4f}\n")

    # Episodes that begin in one corner see another distribution of states than those that begin anywhere.
    following, states, rng = np.asarray(world.successors), world.table(), np.random.default_rng(0)
    rows = []
    for length in (20, 50, 200, 1000):
        row = [str(length)]
        for begin in ("anywhere", "one corner"):
            count = 1_000_000 // length
            now = rng.integers(len(states), size=count) if begin == "anywhere" else np.zeros(count, dtype=np.int64)
            path = [now]
            for _ in range(length):
                now = following[now, rng.integers(4, size=count)]
                path.append(now)
            rows_of = np.stack(path, axis=1).ravel()
            found = lw.from_arrays(states[rows_of], lengths=[length + 1] * count)
            visits = np.bincount(rows_of, minlength=len(states)) / len(rows_of)
            entropy = -(visits[visits > 0] * np.log(visits[visits > 0])).sum() / np.log(len(states))
            row += [f"{entropy:.3f}", f"{lw.score(lw.solve(found, dim=6), truth).cosine:.3f}"]
        rows.append(row)
    names = ["transitions per episode"]
    names += [
        f"{what}, starts {where}" for where in ("anywhere", "in a corner") for what in ("visit entropy", "cosine")
    ]
    table(names, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["dimension", "lags", "data", "episodes"])
    {"dimension": dimension, "lags": lags, "data": data, "episodes": episodes}[parser.parse_args().what]()
