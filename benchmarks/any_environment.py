"""Third-party environments from one command each: time, memory, certificate, and the truth where there is one.

    pip install -c constraints.txt '.[minigrid,robotics,atari]'
    python benchmarks/any_environment.py --out runs/any            # all cases
    python benchmarks/any_environment.py --out runs/any --only Taxi images
    python benchmarks/any_environment.py --out runs/any --table    # the table of what has been run

Every case is a ``lapwing learn`` command in a process of its own, from collection to report page; seconds and peak memory are
those of the whole process (``ru_maxrss``, pages of mapped files included). Beside the expected cosine of the certificate stands
the real one: against the world's ground truth, or against counting the same transitions where observations repeat
(``lw.solve(experience)``). For PointMaze, R^2 is the share of components 2 to 4 that the position explains: means over cells
of a 25 x 25 grid.

Cases whose name begins with ``1M`` need 8 GB of disk, and run only when they are named with ``--only``.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

BINS = 25


class Case(NamedTuple):
    """A command, and which entries of observations are the position, if they are known."""

    arguments: str
    position: tuple[int, int] | None = None
    before: str = ""
    """A command that collects first."""


ROBOTICS, ATARI = "gym:gymnasium_robotics:", "gym:ale_py:ALE/"
CASES = {
    "FrozenLake 4x4": Case("gym:FrozenLake-v1 --data-steps 300000 --dim 5"),
    "FrozenLake 8x8": Case("gym:FrozenLake8x8-v1 --data-steps 300000 --dim 6"),
    "CliffWalking": Case("gym:CliffWalking-v1 --data-steps 300000 --dim 6"),
    "Taxi": Case("gym:Taxi-v4 --data-steps 500000 --dim 6"),
    "MiniGrid FourRooms, full view": Case(
        "gym:minigrid:MiniGrid-FourRooms-v0 --reset-seed 1 --keys image --env-option max_steps=200 --data-steps 100000 "
        "--dim 6 --wrappers lapwing.environments.gymnasium_wrappers:RandomStart minigrid.wrappers:FullyObsWrapper"
    ),
    "MiniGrid Empty 8x8, own view and direction": Case(
        "gym:minigrid:MiniGrid-Empty-8x8-v0 --keys image direction --data-steps 50000 --dim 5"
    ),
    "PointMaze UMaze": Case(
        f"{ROBOTICS}PointMaze_UMaze-v3 --env-option continuing_task=True --keys observation --data-steps 200000 --dim 6",
        (0, 1),
    ),
    "AntMaze UMaze": Case(f"{ROBOTICS}AntMaze_UMaze-v5 --keys observation achieved_goal --data-steps 50000 --dim 4"),
    "CartPole": Case("gym:CartPole-v1 --num-envs 8 --data-steps 100000 --dim 4"),
    "Acrobot": Case("gym:Acrobot-v1 --num-envs 8 --data-steps 100000 --dim 4"),
    "MountainCar": Case("gym:MountainCar-v0 --num-envs 8 --data-steps 100000 --dim 4"),
    "Pendulum": Case("gym:Pendulum-v1 --num-envs 8 --data-steps 100000 --dim 4"),
    "Pong, RAM": Case(f"{ATARI}Pong-v5 --env-option obs_type=ram --data-steps 50000 --dim 4"),
    "Montezuma's Revenge, RAM": Case(
        f"{ATARI}MontezumaRevenge-v5 --env-option obs_type=ram --data-steps 100000 --dim 6"
    ),
    "Montezuma's Revenge, images": Case(
        f"{ATARI}MontezumaRevenge-v5 --num-envs 8 --env-option stack_num=1 --data-steps 100000 --dim 6 --steps 400"
    ),
    "images 84x84 of UMaze": Case(
        "{folder}/data --dim 6", before="collect images:84:UMaze --steps 100000 --out {folder}/data"
    ),
    "1M images 84x84 of UMaze": Case(
        "{folder}/data --dim 6 --memory 1 --steps 400",
        before="collect images:84:UMaze --steps 1000000 --out {folder}/data",
    ),
}


def run(name: str, case: Case, out: Path) -> dict[str, Any]:
    """Run the command, and measure it."""
    folder = out / "".join(letter if letter.isalnum() else "-" for letter in name)
    folder.mkdir(parents=True, exist_ok=True)
    before = case.before.format(folder=folder)
    if before and not (folder / "data").exists():
        subprocess.run([sys.executable, "-m", "lapwing", *shlex.split(before)], check=True)
    command = f"lapwing learn {case.arguments.format(folder=folder)} --out {folder}/run"
    print(command, flush=True)
    started = time.perf_counter()
    with (folder / "output.json").open("wb") as written, (folder / "progress.txt").open("wb") as progress:
        words = [sys.executable, "-m", "lapwing", *shlex.split(command)[1:], "--json", "--overwrite"]
        process = subprocess.Popen(words, stdout=written, stderr=progress)
        _, status, usage = os.wait4(process.pid, 0)
    row = {
        "case": name,
        "command": command.replace(str(folder), "RUN"),
        "seconds": time.perf_counter() - started,
        "memory_gb": usage.ru_maxrss / 1e6,
        "exit": os.waitstatus_to_exitcode(status),
    }
    if row["exit"] in (0, 3):
        row |= found(case, folder)
    else:
        row["error"] = (folder / "progress.txt").read_text().strip().splitlines()[-1:]
    (folder / "row.json").write_text(json.dumps(row, indent=1))
    return row


def found(case: Case, folder: Path) -> dict[str, Any]:
    """What was learned, beside the truth where there is one."""
    import lapwing as lw

    model = lw.load(folder / "run")
    report = json.loads((folder / "output.json").read_text())
    row: dict[str, Any] = {
        "trusted": sum(line["verdict"] == "trusted" for line in report["spectrum"]),
        "components": model.dim,
        "expected": model.certificate().expected_cosine,
        "learning_seconds": report["seconds"],
    }
    world = lw.environments.world_from_description(model.metadata.get("world"))
    kept = folder / "run" / "experience"
    if world is not None:
        row |= {"cosine": lw.score(model, lw.solve(world, dim=model.dim)).subspace_cosine, "truth": "ground truth"}
    if (folder / "data").is_dir():
        row["transitions"] = lw.Trajectories.load(folder / "data", mmap=True).num_transitions
    if kept.is_dir():
        data = lw.Trajectories.load(kept, mmap=True)
        row["transitions"] = data.num_transitions
        packed = data.packed()
        if packed.has_table:
            counted = lw.solve(packed, dim=model.dim)
            row |= {"cosine": lw.score(model, counted).subspace_cosine, "truth": "counting"}
            row["distinct"] = len(packed.observations)
        if case.position is not None:
            rows = np.arange(0, data.num_states, max(1, data.num_states // 100_000))
            observations = np.asarray(data.observations[rows])
            row["r2"] = explained(observations[:, case.position], model.transform(observations)[:, 1:4])
    return row


def explained(places: np.ndarray, values: np.ndarray) -> list[float]:
    """The share of each function's variance that lies between cells of a grid of places."""
    low, high = places.min(axis=0), places.max(axis=0)
    cells = np.minimum(((places - low) / (high - low) * BINS).astype(int), BINS - 1) @ [BINS, 1]
    counts = np.maximum(np.bincount(cells, minlength=BINS * BINS), 1)
    means = np.stack([np.bincount(cells, column, minlength=BINS * BINS) / counts for column in values.T], axis=1)
    return (1.0 - ((values - means[cells]) ** 2).mean(axis=0) / values.var(axis=0)).tolist()


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| environment | transitions | seconds (learning) | GB | trusted | expected cosine | real cosine |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        if "expected" not in row:
            lines.append(
                f"| {row['case']} | | {row['seconds']:.0f} | {row['memory_gb']:.2f} | failed: {row.get('error')} | | |"
            )
            continue
        real = f"{row['cosine']:.4f} ({row['truth']})" if "cosine" in row else ""
        if "r2" in row:
            real += " R^2 of position " + ", ".join(f"{value:.3f}" for value in row["r2"])
        size = f"{row['transitions']:,}" if row.get("transitions") else ""
        lines.append(
            f"| {row['case']} | {size} | {row['seconds']:.0f} ({row['learning_seconds']:.0f}) | {row['memory_gb']:.2f} | "
            f"{row['trusted']} of {row['components']} | {row['expected']:.4f} | {real} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=None, help="cases whose name holds one of these words")
    parser.add_argument("--table", action="store_true", help="only print the table of what has been run")
    options = parser.parse_args()
    words = options.only
    chosen = {
        name: case
        for name, case in CASES.items()
        if (not name.startswith("1M") if words is None else any(word in name for word in words))
    }
    if not options.table:
        for name, case in chosen.items():
            print(json.dumps(run(name, case, options.out)), flush=True)
    rows = [json.loads(path.read_text()) for path in sorted(options.out.glob("*/row.json"))]
    order = list(CASES)
    print(table(sorted(rows, key=lambda row: order.index(row["case"]) if row["case"] in order else len(order))))


if __name__ == "__main__":
    main()
