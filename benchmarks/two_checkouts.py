"""Training steps and encoding of two checkouts of the package, in turn, as a ratio: vectors of 29 numbers, and images.

    git worktree add before COMMIT
    python benchmarks/two_checkouts.py --before before/src

Each checkout has a process of its own, which makes a round when it is told to; rounds alternate, and the ratio is that of the
best ones, because the machine may be shared. Steps are those of the default preset with the objective, as ``learn`` makes them
where observations never repeat; images per second are encoded by ``transform``'s network in NumPy and back.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CASES = {"UMaze-29": (20, 4096), "32x32 images": (4, 1024), "84x84 images": (2, 1024)}
FRAMES = 3_000


def work(case: str) -> None:
    """Make a round for each line of standard input, and print its steps and rows per second."""
    import jax

    import lapwing as lw
    from lapwing.environments import ImageObservations, make_world
    from lapwing.training import make_config, run_steps
    from lapwing.training.task import prepare

    size = int(case.split("x")[0]) if "images" in case else None
    world = make_world("UMaze-29") if size is None else ImageObservations(make_world("UMaze"), size)
    data = lw.collect(world, FRAMES, seed=0)
    task = prepare(make_config(dim=6), data, [0], None, None)
    state, (steps, rows) = task.initial_state(), CASES[case]
    program = jax.jit(lambda state, source: run_steps(state, source, steps))
    images = data.observations[:rows]

    def round_of(function) -> float:
        started = time.perf_counter()
        function()
        return time.perf_counter() - started

    def both() -> tuple[float, float]:
        return (
            steps / round_of(lambda: jax.block_until_ready(program(state, task.source))),
            rows / round_of(lambda: state.encoder.encode(images)),
        )

    both()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(both()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="folder src of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        work(options.work)
        return
    sources = {"before": options.before.resolve(), "now": Path(__file__).resolve().parents[1] / "src"}
    print(f"{'case':14} {'steps/s before':>15} {'now':>8} {'ratio':>6} {'rows/s before':>15} {'now':>8} {'ratio':>6}")
    for case in CASES:
        workers = {
            name: subprocess.Popen(
                [sys.executable, "-W", "ignore", __file__, "--work", case],
                env={**os.environ, "PYTHONPATH": str(source)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for name, source in sources.items()
        }  # fmt: skip
        for worker in workers.values():
            assert worker.stdout.readline().strip() == "ready"
        best = dict.fromkeys(workers, (0.0, 0.0))
        for _ in range(options.rounds):
            for name, worker in workers.items():
                worker.stdin.write("\n")
                worker.stdin.flush()
                best[name] = tuple(map(max, best[name], json.loads(worker.stdout.readline())))
        for worker in workers.values():
            worker.communicate()
        (steps, rows), (steps_now, rows_now) = best["before"], best["now"]
        print(
            f"{case:14} {steps:15.2f} {steps_now:8.2f} {steps_now / steps:6.2f} {rows:15.0f} {rows_now:8.0f} {rows_now / rows:6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
