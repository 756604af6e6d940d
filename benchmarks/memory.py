"""Peak memory of 10,000,000 transitions and of a million pictures, each case in a process of its own.

    python benchmarks/memory.py [--layouts DIR] [--steps N] [--only TEXT ...]

The peak is the resident size of the whole process, Python, JAX and its compiler included (``ru_maxrss``); the first row
is a process that only imports. Data larger than the cache of the system stay on disk where they are mapped, and count
only while they are read.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

WORLD = "Rooms-64"
STEPS = 10_000_000
PIXEL_STEPS = 1_000_000


def nothing(options: argparse.Namespace) -> str:
    import lapwing.training.learner

    return f"imported {lapwing.training.learner.__name__}"


def collected(options: argparse.Namespace, **given: object):
    import lapwing as lw

    return lw.collect(WORLD, options.steps, seed=0, **given)


def on_disk(options: argparse.Namespace):
    from lapwing.data.trajectories import Trajectories

    return Trajectories.load(data_folder(options), mmap=True)


def in_memory(options: argparse.Namespace) -> str:
    data = collected(options)
    return f"{sum(array.nbytes for array in data._arrays().values()) / data.num_transitions:.1f} bytes a transition"


def to_disk(options: argparse.Namespace) -> str:
    data = collected(options, out=options.folder / "streamed")
    return f"{sum(path.stat().st_size for path in (options.folder / 'streamed').iterdir()) / data.num_transitions:.1f} bytes a transition"


def audited(options: argparse.Namespace) -> str:
    import lapwing as lw

    return f"{lw.audit(on_disk(options)).visited} states visited"


def solved(options: argparse.Namespace) -> str:
    import lapwing as lw

    return f"second eigenvalue {lw.solve(on_disk(options), 11).eigenvalues[1]:.6f}"


def learned(options: argparse.Namespace, **given: object) -> str:
    import lapwing as lw

    model = lw.learn(on_disk(options), stop_when_converged=False, **{"dim": 11, "steps": 20, "log_every": 10, **given})
    return f"{model.metadata['batches']}, {model.metadata['steps']} steps"


def one_episode(options: argparse.Namespace) -> str:
    """The same states as if no episode had ever ended."""
    from dataclasses import replace

    import numpy as np

    import lapwing as lw

    data = on_disk(options)
    ends = np.zeros(1, dtype=bool)
    joined = replace(data, offsets=np.array([0, data.num_states]), terminated=ends, truncated=~ends)
    lw.audit(joined)
    model = lw.learn(joined, 11, batches="unbiased", steps=20, log_every=10, stop_when_converged=False)
    return f"audit and learn: {model.metadata['batches']}, {joined.lengths.max():,} transitions in one episode"


def continuous(options: argparse.Namespace) -> str:
    """Points that never repeat: rows of float32 on disk, then on the device."""
    import lapwing as lw

    data = lw.collect("Box-2", options.steps, seed=0, out=options.folder / "box")
    model = lw.learn(data, 11, steps=20, log_every=10, stop_when_converged=False)
    return f"{model.metadata['batches']}, {data.observations.nbytes / 1e6:,.0f} MB of rows"


def command(*arguments: str) -> Callable[[argparse.Namespace], str]:
    def run(options: argparse.Namespace) -> str:
        from lapwing.cli import main as cli

        numbers = {
            "DATA": str(data_folder(options)),
            "OUT": str(options.folder / arguments[0]),
            "STEPS": str(options.steps),
        }
        code = cli.main([numbers.get(word, word) for word in arguments])
        assert code in (None, 0), code
        return "exit code 0"

    return run


def pixels(world: str) -> Callable[[argparse.Namespace], str]:
    def run(options: argparse.Namespace) -> str:
        import lapwing as lw

        data = lw.collect(world, PIXEL_STEPS, seed=0, observation="pixels", layouts=options.layouts)
        model = lw.learn(data, 11, preset="pixels", steps=20, log_every=10, stop_when_converged=False)
        stored, every = data.observations.nbytes / 1e6, data.num_states * data.observations[0].nbytes / 1e9
        return f"{len(data.observations):,} pictures stored, {stored:.0f} MB (each state its own: {every:.0f} GB); {model.metadata['steps']} steps"

    return run


def gymnasium_pixels(options: argparse.Namespace) -> str:
    """Step by step through Gymnasium: pictures are told apart while they come in."""
    import gymnasium

    import lapwing as lw

    env = gymnasium.make(f"lapwing/{WORLD}-v0", observation="pixels")
    data = lw.collect(env, 100_000, seed=0)
    return f"{len(data.observations):,} pictures stored of {data.num_states:,}, {data.observations.nbytes / 1e6:.0f} MB"


CASES: dict[str, Callable[[argparse.Namespace], str]] = {
    "imports alone": nothing,
    "collect, in memory": in_memory,
    "collect, to disk (out=)": to_disk,
    "audit, mapped": audited,
    "solve by counting, mapped": solved,
    "learn, default preset": learned,
    "learn, 50 components": lambda options: learned(options, dim=50),
    "learn, paper preset, sampled": lambda options: learned(options, preset="paper"),
    "learn, unbiased batches": lambda options: learned(options, batches="unbiased"),
    "audit and learn, one episode": one_episode,
    "collect and learn, Box-2, nothing repeats": continuous,
    "lapwing collect": command("collect", WORLD, "--steps", "STEPS", "--out", "OUT"),
    "lapwing audit": command("audit", "DATA"),
    "lapwing solve": command("solve", "DATA", "--out", "OUT"),
    "lapwing learn, run and report written": command("learn", "DATA", "--steps", "200", "--out", "OUT"),
    "pixels, Rooms-64, 1M steps": pixels(WORLD),
    "pixels through Gymnasium, 100k steps": gymnasium_pixels,
}
PREPARATION = "the data of the cases below"
WITH_LAYOUTS = {"pixels, GridRoom-64, 1M steps": pixels("GridRoom-64")}


def data_folder(options: argparse.Namespace) -> Path:
    return options.folder / "data"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layouts", help="folder of the authors' layouts")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--only", nargs="*", help="cases whose name contains one of these texts")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        everything = CASES | WITH_LAYOUTS | {PREPARATION: lambda given: repr(collected(given, out=data_folder(given)))}
        print(everything[options.case](options))
        return
    cases = CASES | (WITH_LAYOUTS if options.layouts else {})
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        # In a process of its own, for a child's peak is at least what its parent had when it was born.
        measured(PREPARATION, options)
        print("| case | peak, GB | seconds | |\n|---|---:|---:|---|")
        for name in cases:
            if options.only is None or any(word in name for word in options.only):
                print(measured(name, options), flush=True)


def measured(name: str, options: argparse.Namespace) -> str:
    """One line of the table, from a fresh process."""
    arguments = ["--case", name, "--folder", str(options.folder), "--steps", str(options.steps)]
    arguments += ["--layouts", options.layouts] if options.layouts else []
    started = time.perf_counter()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=output)
        # wait4 tells the peak of this child alone.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().strip().splitlines()
    peak = usage.ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    result = said[-1] if process.returncode == 0 else f"FAILED with exit code {process.returncode}"
    return f"| {name} | {peak:.2f} | {time.perf_counter() - started:.0f} | {result} |"


if __name__ == "__main__":
    main()
