"""Learning where observations never repeat, or too many do for exact batches, beside what a user would do by hand.

    pip install deeptime==0.4.5 kooplearn==2.0.3
    python benchmarks/beyond_the_table.py --worlds UMaze LargeMaze --seeds 0 1 2 --out results.jsonl
    python benchmarks/beyond_the_table.py --table results.jsonl

Every method gets the same data in the same run and is scored by ``lw.score`` against the world's ground truth:

* ``lapwing``: ``lw.learn`` as it comes.
* ``cells``: k-means into 2,000 cells of the observations, counting, SciPy's ``eigsh``; nearest cell elsewhere.
* ``features``: 400 random Fourier features (``tanh`` features where there are more than 8 inputs) and the closed-form
  Rayleigh-Ritz over all one-step pairs; the better of two bandwidths on held-out episodes.
* ``vamp``: deeptime's VAMP on the same features.
* ``nystroem``: kooplearn's Nystroem reduced-rank regression, 300 centres, 20,000 pairs.
* ``limit``: not a method, because it needs the ground truth: the Rayleigh-Ritz procedure over the 30 slowest true
  eigenfunctions and all one-step pairs. What it misses is the noise of the data, in which all methods share.
* ``counting``: ``lw.solve`` of the data, where observations repeat.

``UMaze-29 in mixed units`` is ``UMaze-29`` with each of the 29 numbers multiplied by a factor of its own between 0.01 and
100, the position's first by 100: metres to centimetres. For ``DoubleWell`` and ``FourWell`` rates ``-log(mu) / time step``
are compared, and the crossings between the wells counted.

A line of the output is one method on one data set: cosine, subspace cosine, relative errors of the eigenvalues, z (error
over error bar), expected cosine, one-step excess on fresh data, seconds, and peak memory of the process so far.
"""

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh

import lapwing as lw

CELLS = 2000
FEATURES = 400
LIMIT_FUNCTIONS = 30
CONTINUOUS = ("UMaze", "MediumMaze", "LargeMaze", "ContinuousFourRooms", "LShape")
SIZES = {
    "rooms:8x8x12:3": 3_000_000, "rooms:24x24x13:5": 10_000_000, "UMaze-Pixels": 100_000,
}  # fmt: skip
MIXED = "UMaze-29 in mixed units"
DIMS = {"UMaze-Pixels": 6, "DoubleWell": 3, "FourWell": 4, "NoisyRotation": 3}


class Functions:
    """Any functions as the encoder of a representation."""

    kind = "functions"

    def __init__(self, function: Callable[[np.ndarray], np.ndarray], dim: int) -> None:
        self.encode, self.dim = function, dim

    def config(self) -> dict[str, Any]:
        return {}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}


def flat(observations: np.ndarray) -> np.ndarray:
    return np.asarray(observations, dtype=np.float32).reshape(len(observations), -1)


def pairs_of(data: lw.Trajectories) -> np.ndarray:
    return np.concatenate(list(data.pair_positions(1)))


def cells(data: lw.Trajectories, dim: int, seed: int) -> tuple[np.ndarray, Callable]:
    from sklearn.cluster import MiniBatchKMeans

    points = flat(data.observations)
    rng = np.random.default_rng(seed)
    sample = points[rng.choice(len(points), min(len(points), 100_000), replace=False)]
    means = MiniBatchKMeans(CELLS, batch_size=8192, n_init=1, max_iter=20, random_state=seed).fit(sample)
    labels, at = means.predict(points), pairs_of(data)
    flow = csr_array((np.ones(len(at)), (labels[at], labels[at + 1])), shape=(CELLS, CELLS))
    flow = flow + flow.T
    seen = np.flatnonzero(np.asarray(flow.sum(axis=1)).ravel() > 0)
    flow = csr_array(flow[seen][:, seen])
    degree = np.asarray(flow.sum(axis=1)).ravel()
    scale = diags_array(1 / np.sqrt(degree))
    mu, vectors = eigsh(scale @ flow @ scale, k=dim, which="LA")
    table = np.zeros((CELLS, dim))
    table[seen] = (vectors / np.sqrt(degree / degree.sum())[:, None])[:, ::-1]
    return mu[::-1], lambda x: table[means.predict(flat(x))]


def feature_map(data: lw.Trajectories, bandwidth: float, seed: int) -> Callable:
    points = flat(data.observations)
    rng = np.random.default_rng(seed)
    centre, spread = points.mean(axis=0), np.maximum(points.std(axis=0), 1e-6)
    inputs = points.shape[1]
    if inputs > 8:
        weights, shift = rng.standard_normal((inputs, FEATURES)) / np.sqrt(inputs), rng.standard_normal(FEATURES)
        return lambda x: np.tanh(bandwidth * ((flat(x) - centre) / spread) @ weights + shift)
    weights, shift = bandwidth * rng.standard_normal((inputs, FEATURES)), rng.uniform(0, 2 * np.pi, FEATURES)
    return lambda x: np.cos(((flat(x) - centre) / spread) @ weights + shift)


def forms(data: lw.Trajectories, function: Callable) -> tuple[np.ndarray, np.ndarray]:
    gram = cross = 0.0
    for at in data.pair_positions(1, chunk=1 << 15):
        before, after = (
            np.column_stack([np.ones(len(at)), function(data.observations[at + k])]).astype(np.float32) for k in (0, 1)
        )
        gram = gram + (before.T @ before + after.T @ after).astype(np.float64)
        cross = cross + (before.T @ after + after.T @ before).astype(np.float64)
    return gram / (2 * data.num_transitions), cross / (2 * data.num_transitions)


def features(data: lw.Trajectories, dim: int, seed: int) -> tuple[np.ndarray, Callable]:
    held_out = data.take(range(0, data.num_episodes, 10))
    kept = data.take(np.setdiff1d(np.arange(data.num_episodes), np.arange(0, data.num_episodes, 10)))
    best = None
    for bandwidth in (1.0, 3.0):
        function = feature_map(data, bandwidth, seed)
        gram, cross = forms(kept, function)
        mu, vectors = eigh(cross, gram + 1e-6 * np.eye(len(gram)))
        vectors = vectors[:, ::-1][:, :dim]
        fresh_gram, fresh = (vectors.T @ form @ vectors for form in forms(held_out, function))
        merit = np.trace(np.linalg.solve(fresh_gram, fresh))
        if best is None or merit > best[0]:
            best = (merit, mu[::-1][:dim], vectors, function)
    _, mu, vectors, function = best
    return mu, lambda x: np.column_stack([np.ones(len(x)), function(x)]) @ vectors


def vamp(data: lw.Trajectories, dim: int, seed: int) -> tuple[np.ndarray, Callable]:
    from deeptime.decomposition import VAMP

    function = feature_map(data, 2.0, seed)
    at = np.random.default_rng(seed).permutation(pairs_of(data))[:200_000]
    estimator = VAMP(dim=dim, epsilon=1e-6)
    model = estimator.fit((function(data.observations[at]), function(data.observations[at + 1]))).fetch_model()
    singular = np.asarray(model.singular_values[: dim - 1])
    return np.append(1.0, singular), lambda x: np.column_stack(
        [np.ones(len(x)), model.transform(function(x))[:, : dim - 1]]
    )


def nystroem(data: lw.Trajectories, dim: int, seed: int) -> tuple[np.ndarray, Callable]:
    points = flat(data.observations)
    centre, spread = points.mean(axis=0), np.maximum(points.std(axis=0), 1e-6)
    scaled = lambda x: ((flat(x) - centre) / spread).astype(np.float64)  # noqa: E731
    # It takes one trajectory, so one pair in fifty leads from the end of an episode to the start of the next.
    some = np.random.default_rng(seed).permutation(data.num_episodes)[: 20_000 * data.num_episodes // data.num_states]
    path = scaled(data.take(some).observations)
    gamma = 2.0 / points.shape[1]
    return nystroem_eigenfunctions(path, scaled, dim, seed, gamma)


def nystroem_eigenfunctions(
    path: np.ndarray, scaled: Callable, dim: int, seed: int, gamma: float, lag: int = 1
) -> tuple[np.ndarray, Callable]:
    from kooplearn.kernel import NystroemKernelRidge

    model = NystroemKernelRidge(
        n_components=dim, lag_time=lag, kernel="rbf", gamma=gamma, alpha=1e-6, n_centers=300, random_state=seed
    ).fit(path)
    values = model.eig()
    order = np.argsort(-values.real)[:dim]

    def evaluate(x: np.ndarray) -> np.ndarray:
        parts = [model.eig(eval_right_on=scaled(x[i : i + 4096]))[1][:, order].real for i in range(0, len(x), 4096)]
        return np.concatenate(parts)

    return values.real[order], evaluate


def limit(data: lw.Trajectories, dim: int, world: str) -> tuple[np.ndarray, Callable]:
    truth = lw.solve(world, dim=LIMIT_FUNCTIONS)
    function = lambda x: truth.transform(x)[:, 1:]  # noqa: E731
    gram, cross = forms(data, function)
    mu, vectors = eigh(cross, gram)
    vectors = vectors[:, ::-1][:, :dim]
    return mu[::-1][:dim], lambda x: np.column_stack([np.ones(len(x)), function(x)]) @ vectors


BASELINES = {"cells": cells, "features": features, "vamp": vamp, "nystroem": nystroem}


def scored(
    name: str, model: lw.LaplacianRepresentation, truth: lw.LaplacianRepresentation, fresh: lw.Trajectories
) -> dict[str, Any]:
    """All numbers of one method."""
    score = lw.score(model, truth)
    dim = min(model.dim, truth.dim)
    true = truth.eigenvalues[1:dim]
    at = pairs_of(fresh)[:100_000]
    rows = [fresh.rows(at), fresh.rows(at + 1)]
    here, there = (np.asarray(model.transform(fresh.observations[part]))[:, 1:dim] for part in rows)
    energies = 0.5 * ((there - here) ** 2).mean(axis=0)
    line: dict[str, Any] = {
        "method": name,
        "cosine": score.cosine,
        "subspace_cosine": score.subspace_cosine,
        "eigenvalue_errors": (model.eigenvalues[1:dim] / true - 1).tolist(),
        "excess": (energies - true).tolist(),
        "smooth": bool(np.all((energies - true <= 5e-4) | (energies <= 1.2 * true))),
    }
    if name == "lapwing":
        line["expected"] = model.certificate().expected_cosine
        line["problems"] = [problem.name for problem in model.problems()]
        if model.mu_errors is not None:
            line["z"] = ((model.eigenvalues[1:dim] - true) / model.mu_errors[1:dim]).tolist()
    return line


def unit_factors(inputs: int) -> np.ndarray:
    """What each number of an observation is multiplied by in mixed units."""
    factors = 10.0 ** np.random.default_rng(0).uniform(-2, 2, inputs)
    factors[0] = 100.0
    return factors.astype(np.float32)


def in_mixed_units(data: lw.Trajectories) -> lw.Trajectories:
    observations = data.observations * unit_factors(data.observations.shape[1])
    return lw.from_arrays(observations, lengths=np.diff(data.offsets))


def in_plain_units(model: lw.LaplacianRepresentation) -> lw.LaplacianRepresentation:
    """A model of mixed units as a function of plain observations."""
    encode = model.encoder.encode
    return replace(model, encoder=Functions(lambda x: encode(x * unit_factors(x.shape[1])), model.dim))


def facts_of(
    world: str, data: Any, model: lw.LaplacianRepresentation, truth: lw.LaplacianRepresentation
) -> dict[str, Any]:
    """Rates and crossings, for worlds that have wells."""
    if not world.endswith("Well") or not isinstance(data, lw.Trajectories):
        return {}
    step = lw.make_world(world).time_step
    barriers = {"DoubleWell": [0.0], "FourWell": [-0.5, 0.0, 0.5]}[world]
    place = np.digitize(data.observations[:, 0], barriers)
    at = pairs_of(data)
    # A crossing counts once the walk is well inside the other well, so that jitter on a barrier does not.
    deep = np.abs(data.observations[:, 0][:, None] - np.array(barriers)).min(axis=1) > 0.15
    episodes = np.repeat(np.arange(data.num_episodes), np.diff(data.offsets))[deep]
    crossings = (np.diff(place[deep]) != 0) & (np.diff(episodes) == 0)
    rates = [-np.log(one.mu[1 : model.dim]) / step for one in (model, truth)]
    return {
        "rates": rates[0].tolist(),
        "true_rates": rates[1].tolist(),
        "crossings": int(crossings.sum()),
        "time": len(at) * step,
    }


def run(world: str, transitions: int, seed: int, options: dict[str, Any], methods: list[str], out: Path) -> None:
    plain = "UMaze-29" if world == MIXED else world
    dim = DIMS.get(world, 11)
    truth = lw.solve(plain, dim=dim)
    data = lw.operator(plain) if not transitions else lw.collect(plain, transitions, seed=seed)
    fresh = lw.collect(plain, 100_000, seed=1_000 + seed)
    if world == MIXED:
        data = in_mixed_units(data)
    table = not transitions or data.has_table
    possible = ("lapwing", "counting") if table else ("lapwing", *BASELINES, "limit")
    for name in [name for name in methods if name in possible]:
        started = time.perf_counter()
        try:
            if name == "lapwing":
                model = lw.learn(data, dim, seed=seed, **options)
            elif name == "counting":
                model = lw.solve(data, dim)
            else:
                mu, function = limit(data, dim, plain) if name == "limit" else BASELINES[name](data, dim, seed)
                model = lw.LaplacianRepresentation(Functions(function, dim), np.asarray(mu, dtype=float), dim)
            seconds = time.perf_counter() - started
            model = in_plain_units(model) if world == MIXED else model
            line = {**scored(name, model, truth, fresh), **facts_of(world, data, model, truth)}
        except Exception as error:  # a baseline that fails is a result, too
            if name == "lapwing":
                raise
            seconds, line = time.perf_counter() - started, {"method": name, "failed": str(error)[:200]}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        line = {
            "world": world,
            "transitions": transitions,
            "seed": seed,
            **line,
            "seconds": seconds,
            "gigabytes": memory,
        }
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        brief = {key: round(value, 4) for key, value in line.items() if isinstance(value, float)}
        print(world, transitions, seed, name, brief, line.get("failed", ""), flush=True)


def print_table(path: Path) -> None:
    """Means over seeds, one row per world, size and method; then coverage of the error bars."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    print(
        "| world | transitions | method | seeds | cosine | subspace | eigenvalues off by, mean / largest | smooth | expected | seconds | peak memory |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    covered: list[bool] = []
    for key in dict.fromkeys((line["world"], line["transitions"], line["method"]) for line in lines):
        rows = [
            line for line in lines if (line["world"], line["transitions"], line["method"]) == key and "cosine" in line
        ]
        if not rows:
            print(f"| {key[0]} | {key[1]:,} | {key[2]} | failed | | | | | | | |")
            continue
        errors = 100 * np.abs([row["eigenvalue_errors"] for row in rows])
        expected = f"{np.mean([row['expected'] for row in rows]):.3f}" if "expected" in rows[0] else ""
        smooth = f"{sum(row['smooth'] for row in rows)} of {len(rows)}"
        print(
            f"| {key[0]} | {key[1]:,} | {key[2]} | {len(rows)} | {np.mean([row['cosine'] for row in rows]):.4f} | "
            f"{np.mean([row['subspace_cosine'] for row in rows]):.4f} | {errors.mean():.1f} / {errors.mean(axis=0).max():.1f} % | "
            f"{smooth} | {expected} | {np.mean([row['seconds'] for row in rows]):.0f} | "
            f"{max(row['gigabytes'] for row in rows):.1f} GB |"
        )
        covered += [abs(z) <= 1.96 for row in rows for z in row.get("z", [])]
    if covered:
        print(f"\n95 % intervals that hold: {np.mean(covered):.1%} of {len(covered)} (world, seed, component)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=list(CONTINUOUS))
    parser.add_argument("--transitions", type=int, default=None, help="0 for the exact operator")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", default=["lapwing", "counting", *BASELINES, "limit"])
    parser.add_argument("--preset", default="default")
    parser.add_argument("--smooth-functions", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--solve-last-layer", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--out", type=Path, default=Path("beyond_the_table.jsonl"))
    parser.add_argument("--table", type=Path, default=None)
    given = parser.parse_args()
    if given.table is not None:
        print_table(given.table)
        return
    warnings.simplefilter("ignore")
    for seed in given.seeds:
        for world in given.worlds:
            transitions = SIZES.get(world, 1_000_000) if given.transitions is None else given.transitions
            options = {
                "preset": given.preset,
                "smooth_functions": given.smooth_functions,
                "solve_last_layer": given.solve_last_layer,
            }
            run(world, transitions, seed, options, given.methods, given.out)


if __name__ == "__main__":
    main()
