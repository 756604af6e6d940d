"""Coverage-guided fuzzing of everything that reads text or files: ``make fuzz SECONDS=60``.

    python tests/fuzz/fuzz_atheris.py --seconds 60 [--target layout ...]

Each target runs in a process of its own under atheris. A crash is any exception but LapwingError, a case slower than
``SLOW_SECONDS``, or a process that dies. Inputs that crash are printed; the exit code is then 1.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

import atheris
import numpy as np

# Which modules are instrumented is no news.
with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["lapwing"]):
    import lapwing as lw
    from lapwing.data.trajectories import Trajectories
    from lapwing.definitions import parse_definition
    from lapwing.environments import world_from_description
    from lapwing.environments.layouts import Layout
    from lapwing.environments.registry import make_world
    from lapwing.errors import LapwingError
    from lapwing.report.stored_run import read_run
    from lapwing.storage.reading import read_array
    from lapwing.training.config import make_config
    from lapwing_paper.run_store import Outcome, RunStore, StudyRun

SLOW_SECONDS = 5
MEMORY_MIB = 4096
LONGEST_INPUT = 4096
STUDY_RUN = StudyRun("fuzz", None, seed=0)

Target = Callable[[bytes], Any]


def text_target(read: Callable[[str], Any]) -> Callable[[Path], Target]:
    """A parser of text, given whatever the bytes say."""
    return lambda folder: lambda data: read(data.decode("utf-8", "surrogateescape"))


def json_target(read: Callable[[Any], Any]) -> Callable[[Path], Target]:
    """A reader of plain data, given whatever JSON the bytes are."""

    def target(data: bytes) -> None:
        try:
            content = json.loads(data)
        except (ValueError, RecursionError):
            return
        read(content)

    return lambda folder: target


def file_target(name: str, load: Callable[[Path], Any]) -> Callable[[Path], Target]:
    """A file among sound neighbours, in a folder that :func:`make_neighbours` made."""

    def ready(folder: Path) -> Target:
        path = folder / name

        def target(data: bytes) -> None:
            path.write_bytes(data)
            load(path)

        return target

    return ready


def load_mapped(path: Path) -> None:
    Trajectories.load(path.parent)
    Trajectories.load(path.parent, mmap=True)


def load_array(path: Path) -> None:
    read_array(path)
    read_array(path, mmap=True)


def load_weights(path: Path) -> None:
    """With a checksum that fits, as a forger would write: the format itself is to be read."""
    manifest = json.loads((path.parent / "sound.json").read_text())
    (path.parent / "model.json").write_text(json.dumps(manifest | {"checksum": zlib.crc32(path.read_bytes())}))
    lw.load(path.parent)


def configure(content: Any) -> None:
    if isinstance(content, dict) and "preset" not in content:
        make_config(**content)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "layout": text_target(Layout.from_text),
    "layout file": file_target("own.txt", Layout.from_file),
    "world name": text_target(lambda name: make_world(name) if _is_small(name) else None),
    "definition": text_target(parse_definition),
    "description": json_target(world_from_description),
    "config": json_target(configure),
    "trajectories.json": file_target("data/trajectories.json", load_mapped),
    "model.json": file_target("model/model.json", lambda path: lw.load(path.parent)),
    "run.json": file_target(f"runs/{STUDY_RUN.key}/run.json", lambda path: RunStore(path.parents[1]).read(STUDY_RUN)),
    "audit.json": file_target("model/audit.json", lambda path: read_run(path.parent)),
    "metrics.csv": file_target("model/metrics.csv", lambda path: read_run(path.parent)),
    "npy": file_target("array.npy", load_array),
    "offsets.npy": file_target("data/offsets.npy", lambda path: Trajectories.load(path.parent, mmap=True)),
    "safetensors": file_target("model/model.safetensors", load_weights),
}

SEEDS = {
    "layout": [b"XXX\nX X\nXXX", b"\xef\xbb\xbf#.#\r\n#.#\r\n"],
    "world name": [b"room:2x3", b"rooms:2x2x3:7", b"maze:3x3:1", b"FourRooms", b"a.txt"],
    "definition": [b"one_step", b"successor(0.9)", b"truncated(0.9, 50)"],
    "description": [
        b'{"kind":"box","name":"b","sides":[1.0,0.5],"step":0.1}',
        b'{"kind":"grid","name":"g","layout":"X  X","observation":"xy","slip":0.0,"policy":null}',
    ],
    "config": [b'{"dim":3,"discounts":[0.9],"hidden":[4],"barrier":1.0,"duals":true,"objective":"ggdo"}'],
    "metrics.csv": [b"step,loss\n1,0.5\n2,0.25\n"],
}


def _is_small(name: str) -> bool:
    """Whether a name asks for little: worlds of millions of tiles are allowed, and take their seconds."""
    return all(len(number) < 3 or len(number) > 8 for number in re.findall(r"\d+", name))


def make_neighbours(folder: Path) -> None:
    """Everything that is kept in files, sound and small."""
    lw.collect("GridMaze-7", 40, episode_length=8).save(folder / "data")
    lw.solve("GridMaze-7", 3).save(folder / "model")
    (folder / "model" / "sound.json").write_bytes((folder / "model" / "model.json").read_bytes())
    (folder / "model" / "audit.json").write_text('{"states": 11, "visits": [1, 2]}')
    np.save(folder / "array.npy", np.eye(3))
    outcome = Outcome({"cosine": 1.0}, [{"step": 1.0}], np.eye(2, dtype=np.float32))
    RunStore(folder / "runs").write(STUDY_RUN, outcome, 0.5)
    (folder / "own.txt").write_text("XXX\nX X\nXXX")


@contextmanager
def working_folder() -> Iterator[Path]:
    """In memory where the system has such a place: a million files are written."""
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as place:
        yield Path(place)


def fuzz(name: str, seconds: int, place: Path) -> None:
    """One target, in this process, which ends with it; crashes are added to ``crashes.jsonl``."""
    corpus = place / "corpus"
    corpus.mkdir()
    make_neighbours(place)
    for number, seed in enumerate(SEEDS.get(name) or [_sound_bytes(name, place)]):
        (corpus / f"seed{number}").write_bytes(seed)
    target, seen = TARGETS[name](place), set()

    def once(data: bytes) -> None:
        began, trouble = time.monotonic(), ""
        try:
            target(data)
        except LapwingError:
            pass
        except Exception as error:
            frames = [f"{Path(one.filename).name}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
            trouble = f"{type(error).__name__} at {' '.join(frames[-4:])}: {str(error)[:100]}"
        if not trouble and time.monotonic() - began > SLOW_SECONDS:
            trouble = f"slower than {SLOW_SECONDS} s"
        if trouble and trouble.split(":")[0] not in seen:
            seen.add(trouble.split(":")[0])
            with (place / "crashes.jsonl").open("a") as stream:
                stream.write(json.dumps({"trouble": trouble, "input": repr(data)}) + "\n")

    options = [f"-max_total_time={seconds}", f"-rss_limit_mb={MEMORY_MIB}", f"-max_len={LONGEST_INPUT}"]
    options += [f"-timeout={10 * SLOW_SECONDS}", f"-artifact_prefix={place}/", "-seed=1", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(corpus)], once)
    atheris.Fuzz()


def _sound_bytes(name: str, place: Path) -> bytes:
    """The sound file that a target's mutants start from."""
    homes = {
        "layout file": "own.txt",
        "trajectories.json": "data/trajectories.json",
        "model.json": "model/model.json",
        "run.json": f"runs/{STUDY_RUN.key}/run.json",
        "audit.json": "model/audit.json",
        "npy": "array.npy",
        "offsets.npy": "data/offsets.npy",
        "safetensors": "model/model.safetensors",
    }
    return (place / homes[name]).read_bytes()


def run_target(name: str, seconds: int) -> tuple[list[str], list[dict[str, str]]]:
    """A row of the table, and the crashes of one target in a process of its own."""
    with working_folder() as place:
        began = time.monotonic()
        words = [sys.executable, __file__, "--inside", str(place), "--target", name, "--seconds", str(seconds)]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        took = time.monotonic() - began
        path = place / "crashes.jsonl"
        crashes = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        runs = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
        if runs is None or done.returncode != 0:
            left = [one.read_bytes() for pattern in ("crash-*", "timeout-*", "oom-*") for one in place.glob(pattern)]
            trouble = f"the process ended with {done.returncode}: {done.stderr.strip()[-300:]}"
            crashes.append({"trouble": trouble, "input": repr(left[:1])})
    return [name, f"{int(runs[1]):,}" if runs else "?", f"{took:.0f}", str(len(crashes))], crashes


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seconds", type=int, default=60, help="for each target")
    words.add_argument("--target", action="append", choices=sorted(TARGETS), help="all unless given")
    words.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    given = words.parse_args()
    if given.inside is not None:
        fuzz(given.target[0], given.seconds, given.inside)
    found = []
    print(f"{'target':<18} {'executions':>12} {'seconds':>8} {'crashes':>8}", flush=True)
    for name in given.target or TARGETS:
        row, crashes = run_target(name, given.seconds)
        print(f"{row[0]:<18} {row[1]:>12} {row[2]:>8} {row[3]:>8}", flush=True)
        found += [(name, crash) for crash in crashes]
    for name, crash in found:
        print(f"\n{name}: {crash['trouble']}\n  input {crash['input']}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
