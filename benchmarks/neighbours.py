"""The neighbours of lapwing on the same data in the same run: what each reaches, and in how many seconds of one core.

    pip install deeptime==0.4.5 kooplearn==2.0.3 scikit-learn pygsp
    python benchmarks/neighbours.py --seeds 0 1 2 --out neighbours.jsonl
    python benchmarks/neighbours.py --table neighbours.jsonl

Two worlds: ``Rooms-16``, whose states repeat, and ``UMaze``, a walk in a continuous maze. All get 100,000 transitions in
episodes of 50 and are scored by ``lw.score`` against the ground truth of the world: 11 components, mean cosine, mean relative
error of the ten eigenvalues above zero. What is not installed is skipped, and the script says so.

SciPy is shown at its best: of four sizes of cells the one with the highest cosine, which needs the ground truth to choose.
With ``rho="uniform"`` lapwing is told that the walk's stationary distribution is uniform, which the others are not.
kooplearn gets 20,000 of the pairs, because its kernel matrices grow with them.
``--paper-steps`` adds the paper's method, lapwing's preset ``paper``; the authors' code itself is not run.
Time is processor time of the whole process, with compiling, because wall-clock time depends on who else uses the machine.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from beyond_the_table import Functions, feature_map, flat, nystroem_eigenfunctions, pairs_of
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import eigsh
from scipy.spatial import cKDTree

import lapwing as lw

DIM = 11
TRANSITIONS = 100_000
SAMPLE = 3000
CELLS = 500
KOOPLEARN_PAIRS = 20_000
Found = tuple[np.ndarray | None, Callable[[np.ndarray], np.ndarray]]


def scipy_counting(labels: np.ndarray, data: lw.Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Counting in ten lines: eigenvalues of P, and components (cells, DIM)."""
    at, count = pairs_of(data), labels.max() + 1
    flow = csr_array((np.ones(len(at)), (labels[at], labels[at + 1])), shape=(count, count))
    flow = csr_array(flow + flow.T)
    seen = np.flatnonzero(flow.sum(axis=1))
    flow = csr_array(flow[seen][:, seen])
    degree = np.asarray(flow.sum(axis=1)).ravel()
    scale = diags_array(1 / np.sqrt(degree))
    mu, vectors = eigsh(scale @ flow @ scale, k=DIM, which="LA")
    table = np.zeros((count, DIM))
    table[seen] = (vectors / np.sqrt(degree / degree.sum())[:, None])[:, ::-1]
    return mu[::-1], table


def nearest(points: np.ndarray, table: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Components elsewhere: those of the nearest point."""
    tree = cKDTree(points)
    return lambda x: table[tree.query(flat(x))[1]]


def states_of(data: lw.Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """The distinct observations of a table, and the number of each state of the data."""
    return flat(data.observations), np.asarray(data.rows(np.arange(data.num_states)))


def subsample(data: lw.Trajectories, seed: int) -> np.ndarray:
    points = flat(data.observations)
    return points[np.random.default_rng(seed).choice(len(points), SAMPLE, replace=False)].astype(np.float64)


def with_constant(components: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(components)), components])[:, :DIM]


# --- one function per method: eigenvalues of P or None, and functions of observations ---------------------------------


def scipy_alone(data: lw.Trajectories, seed: int, size: int) -> Found:
    if data.has_table:
        points, labels = states_of(data)
        mu, table = scipy_counting(labels, data)
        return mu, nearest(points[: len(table)], table)
    points = flat(data.observations)
    low, high = points.min(axis=0), points.max(axis=0) + 1e-6
    bins = np.floor((points - low) / (high - low) * size).astype(int)
    mu, table = scipy_counting(bins @ [size, 1], data)
    full = np.zeros((size * size, DIM))
    full[: len(table)] = table
    return mu, lambda x: full[
        np.clip(np.floor((flat(x) - low) / (high - low) * size), 0, size - 1).astype(int) @ [size, 1]
    ]


def deeptime_msm(data: lw.Trajectories, seed: int) -> Found:
    from deeptime.clustering import KMeans
    from deeptime.markov import TransitionCountEstimator
    from deeptime.markov.msm import MaximumLikelihoodMSM

    if data.has_table:
        points, labels = states_of(data)
        assign = nearest(points, np.arange(len(points))[:, None])
    else:
        points = flat(data.observations).astype(np.float64)
        clusters = KMeans(CELLS, max_iter=30, fixed_seed=seed, init_strategy="kmeans++").fit(points[::10]).fetch_model()
        labels = clusters.transform(points)
        assign = lambda x: clusters.transform(flat(x).astype(np.float64))[:, None]  # noqa: E731
    episodes = [labels[a:b].astype(np.int32) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    counts = TransitionCountEstimator(1, "sliding").fit(episodes).fetch_model().submodel_largest()
    model = MaximumLikelihoodMSM(reversible=True).fit(counts).fetch_model()
    table = np.zeros((labels.max() + 1, DIM))
    table[counts.state_symbols] = model.eigenvectors_right(DIM).real
    return model.eigenvalues(DIM).real, lambda x: table[assign(x)[:, 0]]


def deeptime_vamp(data: lw.Trajectories, seed: int) -> Found:
    from deeptime.decomposition import VAMP

    at = pairs_of(data)
    if data.has_table:
        points, labels = states_of(data)
        assign = nearest(points, np.arange(len(points))[:, None])
        features = lambda x: np.eye(len(points))[assign(x)[:, 0]]  # noqa: E731
        rows = np.eye(len(points))
        pairs = rows[labels[at]], rows[labels[at + 1]]
    else:
        features = feature_map(data, 2.0, seed)
        pairs = features(data.observations[at]), features(data.observations[at + 1])
    model = VAMP(dim=DIM - 1, epsilon=1e-6).fit(pairs).fetch_model()
    return np.append(1.0, model.singular_values[: DIM - 1]), lambda x: with_constant(model.transform(features(x)))


def kooplearn_nystroem(data: lw.Trajectories, seed: int) -> Found:
    points, labels = states_of(data) if data.has_table else (flat(data.observations), np.arange(data.num_states))
    centre, spread = points.mean(axis=0), points.std(axis=0)
    scaled = lambda x: ((flat(x) - centre) / spread).astype(np.float64)  # noqa: E731
    # It takes one trajectory: all first states of the episodes, then all second ones, with the number of episodes as the lag.
    length = int(data.offsets[1])
    count = KOOPLEARN_PAIRS // (length - 1)
    path = scaled(points[labels[: count * length].reshape(count, length).T.ravel()])
    return nystroem_eigenfunctions(path, scaled, DIM, seed, gamma=1.0, lag=count)


def spectral_embedding(data: lw.Trajectories, seed: int) -> Found:
    from sklearn.manifold import SpectralEmbedding

    if data.has_table:
        points, labels = states_of(data)
        at = pairs_of(data)
        flow = np.zeros((len(points), len(points)))
        np.add.at(flow, (labels[at], labels[at + 1]), 1)
        embedding = SpectralEmbedding(DIM - 1, affinity="precomputed", random_state=seed).fit_transform(flow + flow.T)
    else:
        points = subsample(data, seed)
        embedding = SpectralEmbedding(DIM - 1, n_neighbors=10, random_state=seed).fit_transform(points)
    return None, nearest(points, with_constant(embedding))


def pygsp_graph(data: lw.Trajectories, seed: int) -> Found:
    from pygsp import graphs

    if data.has_table:
        points, labels = states_of(data)
        at = pairs_of(data)
        flow = csr_array((np.ones(len(at)), (labels[at], labels[at + 1])), shape=(len(points), len(points)))
        graph = graphs.Graph(csr_array(flow + flow.T), lap_type="normalized")
    else:
        points = subsample(data, seed)
        graph = graphs.NNGraph(points, k=10, lap_type="normalized")
    graph.compute_fourier_basis()
    table = graph.U[:, :DIM] / np.sqrt(graph.dw)[:, None]
    mu = 1 - graph.e[:DIM] if data.has_table else None
    return mu, nearest(points, table)


NEIGHBOURS: dict[str, tuple[str, Callable[..., Found]]] = {
    "deeptime, k-means and Markov state model": ("deeptime", deeptime_msm),
    "deeptime, VAMP on features": ("deeptime", deeptime_vamp),
    "kooplearn, Nystroem kernel": ("kooplearn", kooplearn_nystroem),
    "scikit-learn, SpectralEmbedding": ("sklearn", spectral_embedding),
    "PyGSP, graph Fourier basis": ("pygsp", pygsp_graph),
}


def measured(make: Callable[[], Any], truth: lw.LaplacianRepresentation) -> dict[str, Any]:
    started = time.process_time()
    found = make()
    seconds = time.process_time() - started
    has_values = True
    if isinstance(found, tuple):
        mu, function = found
        has_values = mu is not None
        found = lw.LaplacianRepresentation(
            Functions(function, DIM), np.linspace(1, 0.9, DIM) if mu is None else mu, DIM
        )
    score = lw.score(found, truth)
    errors = np.abs(found.eigenvalues[1:DIM] / truth.eigenvalues[1:DIM] - 1)
    return {
        "cosine": score.subspace_cosine,
        "eigenvalue_error": float(errors.mean()) if has_values else None,
        "seconds": seconds,
    }


def run(world: str, seed: int, paper_steps: int, only: str, out: Path) -> None:
    truth, data = lw.solve(world, dim=DIM), lw.collect(world, TRANSITIONS, seed=seed)
    methods: dict[str, Callable[[], Any]] = {"lapwing, `lw.learn`": lambda: lw.learn(data, DIM, seed=seed)}
    if data.has_table:
        methods["lapwing, `lw.solve(data)`"] = lambda: lw.solve(data, DIM)
        methods['lapwing, `lw.solve(data, rho="uniform")`'] = lambda: lw.solve(data, DIM, rho="uniform")
        if paper_steps:
            methods[f"the paper's method, {paper_steps:,} steps"] = lambda: lw.learn(
                data, DIM, preset="paper", steps=paper_steps, seed=seed
            )
    for name, (module, method) in NEIGHBOURS.items():
        try:
            __import__(module)
        except ImportError:
            print(f"{name}: {module} is not installed, skipped", file=sys.stderr)
            continue
        methods[name] = lambda method=method: method(data, seed)
    sizes = (1,) if data.has_table else (24, 32, 48, 64)
    for size in sizes:
        methods[f"SciPy, ten lines, {size}"] = lambda size=size: scipy_alone(data, seed, size)
    lines: dict[str, dict[str, Any]] = {}
    for name, make in methods.items():
        if only not in name:
            continue
        try:
            lines[name] = measured(make, truth)
        except Exception as error:  # a neighbour that fails is a result, too
            if name.startswith("lapwing"):
                raise
            lines[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}
        print(world, seed, name, lines[name], flush=True)
    sized = [lines.pop(name) for name in list(lines) if name.startswith("SciPy")]
    if sized:
        lines["SciPy, ten lines"] = max(sized, key=lambda line: line["cosine"])
    with out.open("a", encoding="utf-8") as file:
        for name, line in lines.items():
            file.write(json.dumps({"world": world, "seed": seed, "method": name, **line}) + "\n")


def print_table(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for world in dict.fromkeys(line["world"] for line in lines):
        print(
            f"\n| {world}, {TRANSITIONS:,} transitions | cosine | eigenvalues off by | core seconds |\n|---|---:|---:|---:|"
        )
        here = [line for line in lines if line["world"] == world]
        for name in dict.fromkeys(line["method"] for line in here):
            rows = [line for line in here if line["method"] == name and "cosine" in line]
            if not rows:
                print(f"| {name} | failed | | |")
                continue
            cosine, seconds = (np.mean([row[key] for row in rows]) for key in ("cosine", "seconds"))
            errors = [row["eigenvalue_error"] for row in rows]
            off = "none given" if None in errors else f"{100 * np.mean(errors):.1f} %"
            print(f"| {name} | {cosine:.4f} | {off} | {seconds:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="+", default=["Rooms-16", "UMaze"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--paper-steps", type=int, default=0, help="of the preset paper, 200000 in the paper; 0 leaves it out"
    )
    parser.add_argument("--only", default="", help="methods whose name contains this")
    parser.add_argument("--out", type=Path, default=Path("neighbours.jsonl"))
    parser.add_argument("--table", type=Path, default=None)
    given = parser.parse_args()
    if given.table is not None:
        print_table(given.table)
        return
    warnings.simplefilter("ignore")
    for seed in given.seeds:
        for world in given.worlds:
            run(world, seed, given.paper_steps, given.only, given.out)


if __name__ == "__main__":
    main()
