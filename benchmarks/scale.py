"""Large worlds: eigenvalue errors, seconds and peak memory of each engine, SciPy beside it where it can.

    python benchmarks/scale.py rectangle [--rows 3163 --columns 3163]
    python benchmarks/scale.py maze [--world maze:707x707:1]
    python benchmarks/scale.py slepc [--world room:316x316]
    python benchmarks/scale.py product [--world product:NAME*NAME]
    python benchmarks/scale.py product-learned [--world product:NAME*NAME --transitions 10000000]

Each solution runs in a process of its own, so that its peak memory is its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np
from beyond_the_table import Functions, features

import lapwing as lw

DIM = 11
FACTORS = "product:room:80x120*room:100x101"
# Equal lengths make whole clusters, whose eigenvalues are far apart.
LEARNED = "product:room:53x179*room:56x179"


def cosines(rows: int, columns: int, count: int) -> np.ndarray:
    """The smallest one-step eigenvalues of a room; sin^2 instead of 1 - cos, so that small ones keep their digits."""
    down = np.sin(np.pi * np.arange(min(rows, count)) / (2 * rows)) ** 2
    across = np.sin(np.pi * np.arange(min(columns, count)) / (2 * columns)) ** 2
    return np.sort((down[:, None] + across[None, :]).ravel())[:count]


def in_a_process(world: str, engine: str) -> dict:
    """Eigenvalues, residuals, seconds and gigabytes of one call of ``solve`` in a fresh process."""
    done = subprocess.run([sys.executable, __file__, "child", world, engine], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{world} with {engine} failed")
    found = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{world}  {engine:<10} {found['seconds']:8.1f} s  {found['cpu_seconds']:8.1f} CPU-s  {found['gigabytes']:6.2f} GB"
        f"  largest residual {found['residual']:.1e}  converged {found['converged']}",
        flush=True,
    )
    return found


def child(world: str, engine: str) -> None:
    before = time.perf_counter()
    model = lw.solve(world, DIM, engine=engine, say=lambda stage: print(f"  {stage}", file=sys.stderr, flush=True))
    own, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {
        "eigenvalues": model.eigenvalues.tolist(),
        "seconds": time.perf_counter() - before,
        "cpu_seconds": own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime,
        "gigabytes": max(own.ru_maxrss, others.ru_maxrss) / (1e9 if sys.platform == "darwin" else 1e6),
        "residual": float(model.certificate().residuals.max()),
        "converged": model.certificate().converged,
    }
    print(json.dumps(found))


def report(label: str, found: np.ndarray, expected: np.ndarray) -> None:
    errors = np.abs(np.asarray(found)[1:] - expected[1:]) / expected[1:]
    print(f"{label}: largest relative error of eigenvalues 2 to {len(expected)}: {errors.max():.1e}", flush=True)


def rectangle(arguments: argparse.Namespace) -> None:
    rows, columns = arguments.rows, arguments.columns
    world, truth = f"room:{rows}x{columns}", cosines(rows, columns, DIM)
    report("multilevel against cosines", in_a_process(world, "multilevel")["eigenvalues"], truth)
    if rows * columns <= 2_000_000:
        report("scipy against cosines", in_a_process(world, "scipy")["eigenvalues"], truth)


def maze(arguments: argparse.Namespace) -> None:
    found = in_a_process(arguments.world, "multilevel")
    other = in_a_process(arguments.world, "scipy")
    report("multilevel against scipy", found["eigenvalues"], np.array(other["eigenvalues"]))


def slepc(arguments: argparse.Namespace) -> None:
    found, other = in_a_process(arguments.world, "slepc:2"), in_a_process(arguments.world, "scipy")
    report("slepc against scipy", found["eigenvalues"], np.array(other["eigenvalues"]))


def product_truth(world: str) -> np.ndarray:
    """From the factors' cosines alone: the smallest of 1 - (1 - a)(1 - b) = a + b - a b."""
    sizes = [tuple(map(int, name.split(":")[1].split("x"))) for name in world.removeprefix("product:").split("*")]
    first, second = (cosines(*size, 60) for size in sizes)
    return np.sort((first[:, None] + second - first[:, None] * second).ravel())[:DIM]


def product(arguments: argparse.Namespace) -> None:
    print(f"states {lw.make_world(arguments.world).summary()['states']:,}")
    report(
        "product against cosines", in_a_process(arguments.world, "auto")["eigenvalues"], product_truth(arguments.world)
    )


def product_learned(arguments: argparse.Namespace) -> None:
    world = arguments.world
    truth = lw.solve(world, DIM)
    print(f"{world}: {lw.make_world(world).summary()['states']:,} states, eigenvalues {truth.eigenvalues.round(5)}")
    start = time.perf_counter()
    data = lw.collect(world, arguments.transitions, seed=0)
    collected = time.perf_counter()
    model = lw.learn(data, dim=DIM, seed=0)
    learned = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    print(f"collected {collected - start:.0f} s, learned {learned - collected:.0f} s, peak memory {peak:.2f} GB")
    compare("lapwing", model, truth)
    started = time.perf_counter()
    mu, function = features(data, DIM, 0)
    print(f"400 random features in closed form, {time.perf_counter() - started:.0f} s")
    compare("features", lw.LaplacianRepresentation(Functions(function, DIM), mu, DIM), truth)


def compare(label: str, model: lw.LaplacianRepresentation, truth: lw.LaplacianRepresentation) -> None:
    score = lw.score(model, truth)
    errors = np.abs(model.eigenvalues[1:] / truth.eigenvalues[1:] - 1)
    print(
        f"{label}: subspace cosine {score.subspace_cosine:.4f}, eigenvalues off by {100 * errors.mean():.1f} % on average"
    )
    print("cosines", score.cosines.round(4), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for run, defaults in (
        (rectangle, {"rows": 3163, "columns": 3163}),
        (maze, {"world": "maze:707x707:1"}),
        (slepc, {"world": "room:316x316"}),
        (product, {"world": FACTORS}),
        (product_learned, {"world": LEARNED, "transitions": 10_000_000}),
    ):
        command = commands.add_parser(run.__name__.replace("_", "-"))
        for name, default in defaults.items():
            command.add_argument(f"--{name}", default=default, type=type(default))
        command.set_defaults(run=run)
    alone = commands.add_parser("child")
    alone.add_argument("world")
    alone.add_argument("engine")
    alone.set_defaults(run=lambda arguments: child(arguments.world, arguments.engine))
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
