"""Does the same seed give the same bits? Learning repeated under other circumstances and compared number by number.

    python benchmarks/same_bits.py [--steps 200] [--only NAME ...]

Each circumstance is a process of its own that learns with exact, sampled and unbiased batches and from pixels, with one
seed and with three in one program. Weights, duals, eigenvalues, error bars, components and the history of all metrics
are compared with those of a process that ran alone. The last rows compare one seed alone with the same seed among others.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SEEDS = [0, 1, 2]
STEPS = 200
# Name, preset, batches, observation.
CASES = [
    ("exact", "default", "exact", "xy"),
    ("sampled", "default", "sampled", "xy"),
    ("unbiased", "default", "unbiased", "xy"),
    ("pixels", "pixels", "exact", "pixels"),
]
BUSY = 4
LEAST = 1e-300


@dataclass(frozen=True)
class Circumstance:
    """What is changed: a label for the table, environment variables, and what the child does before it starts."""

    label: str
    variables: dict[str, str] = field(default_factory=dict)
    before: Callable[[], object] | None = None
    busy: bool = False


def devices(count: int) -> dict[str, str]:
    return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}


CIRCUMSTANCES = {
    "again": Circumstance("nothing: run again"),
    "hash": Circumstance("another PYTHONHASHSEED", {"PYTHONHASHSEED": "12345"}),
    "busy": Circumstance(f"{BUSY} busy processes beside it", busy=True),
    "nice": Circumstance("lowest priority, busy processes beside it", before=lambda: os.nice(19), busy=True),
    "core": Circumstance("one core instead of all", before=lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})),
    "devices2": Circumstance("2 devices", devices(2)),
    "devices3": Circumstance("3 devices", devices(3)),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--only", nargs="*", choices=CIRCUMSTANCES, default=list(CIRCUMSTANCES))
    parser.add_argument("--worker", type=Path, help="learn, and write all numbers to this file")
    options = parser.parse_args()
    if options.worker is not None:
        np.savez(options.worker, **learned_numbers(options.steps))
        return
    with tempfile.TemporaryDirectory() as folder:
        alone = run(Circumstance("alone"), options.steps, Path(folder) / "alone.npz")
        print(f"{options.steps} steps, {len(os.sched_getaffinity(0))} usable cores\n")
        print("| what was changed | learned with | numbers compared | differ | weights | eigenvalues | components |")
        print("|---|---|---:|---:|---:|---:|---:|")
        for name in options.only:
            circumstance = CIRCUMSTANCES[name]
            found = run(circumstance, options.steps, Path(folder) / f"{name}.npz")
            for label in (f"{case[0]}, {seeds}" for case in CASES for seeds in ("1 seed", "3 seeds")):
                print_row(circumstance.label, label, of_case(alone, label), of_case(found, label))
        for case in CASES:
            several = of_case(alone, f"{case[0]}, 3 seeds")
            same_seed = {key[2:]: value for key, value in several.items() if key.startswith("0/")}
            one = {key[2:]: value for key, value in of_case(alone, f"{case[0]}, 1 seed").items()}
            for numbers in (same_seed, one):  # the history of several seeds is their mean
                numbers.pop("history")
            print_row("seed 0 among 3 seeds", case[0], one, same_seed)


def run(circumstance: Circumstance, steps: int, path: Path) -> dict[str, np.ndarray]:
    """All numbers learned under a circumstance, in a fresh process."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", **circumstance.variables}
    command = [sys.executable, __file__, "--worker", str(path), "--steps", str(steps)]
    with busy_processes(BUSY if circumstance.busy else 0):
        subprocess.run(command, check=True, env=environment, preexec_fn=circumstance.before)
    with np.load(path) as archive:
        return dict(archive)


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """So many processes that do nothing but keep the machine busy."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=spin, daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def spin() -> None:
    matrix, parent = np.random.default_rng(0).normal(size=(300, 300)), os.getppid()
    while os.getppid() == parent:
        matrix @ matrix


def learned_numbers(steps: int) -> dict[str, np.ndarray]:
    """Every case with one seed and with three: weights, duals, eigenvalues, components, history."""
    import lapwing as lw

    found: dict[str, np.ndarray] = {}
    for name, preset, batches, observation in CASES:
        world, dim = ("GridMaze-9", 5) if observation == "pixels" else ("Rooms-16", 11)
        data = lw.collect(world, 100_000, seed=0, observation=observation)
        learner = lw.Learner(
            preset, dim=dim, steps=steps, batches=batches, log_every=max(1, steps // 4), stop_when_converged=False
        )
        for label, models in (("1 seed", [learner.fit(data)]), ("3 seeds", learner.fit_many(data, SEEDS))):
            for number, model in enumerate(models):
                parts = numbers_of(model, np.asarray(data.observations))
                found |= {f"{name}, {label}|{number}/{part}": value for part, value in parts.items()}
    return found


def numbers_of(model, observations: np.ndarray) -> dict[str, np.ndarray]:
    history = [list(row.values()) for row in model.metadata["history"]]
    parts = {f"weights/{name}": array for name, array in model.encoder.arrays().items()}
    parts |= {f"readings/{name}": np.array(values) for name, values in model.metadata["eigenvalue_estimates"].items()}
    parts |= {"eigenvalues": model.eigenvalues, "bars": model.mu_errors, "noise": model.data_angles}
    parts |= {"components": model.transform(observations), "history": np.array(history)}
    return {name: np.asarray(value) for name, value in parts.items()}


def of_case(numbers: dict[str, np.ndarray], label: str) -> dict[str, np.ndarray]:
    return {key.split("|", 1)[1]: value for key, value in numbers.items() if key.startswith(f"{label}|")}


def print_row(changed: str, label: str, one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """One line of the table; differences are relative to the largest number of each array."""
    assert one.keys() == other.keys()
    total = sum(array.size for array in one.values())
    differ = sum(differing(one[key], other[key]) for key in one)
    sizes = [
        max((relative(one[key], other[key]) for key in one if kind in key), default=0.0)
        for kind in ("weights", "eigenvalues", "components")
    ]
    cells = " | ".join("0" if size == 0 else f"{size:.0e}" for size in sizes)
    print(f"| {changed} | {label} | {total:,} | {differ:,} | {cells} |", flush=True)


def differing(one: np.ndarray, other: np.ndarray) -> int:
    """How many entries are not the same bits."""
    as_bytes = [np.ascontiguousarray(array).reshape(array.size).view(np.uint8).reshape(array.size, -1) for array in (one, other)]  # fmt: skip
    return int((as_bytes[0] != as_bytes[1]).any(axis=1).sum())


def relative(one: np.ndarray, other: np.ndarray) -> float:
    first, second = one.astype(np.float64), other.astype(np.float64)
    return float(np.abs(first - second).max() / max(np.abs(first).max(), LEAST))


if __name__ == "__main__":
    main()
