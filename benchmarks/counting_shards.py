"""Transitions counted from files in parts: seconds, peak memory, and one process against Ray.

    python benchmarks/counting_shards.py write --transitions 1e8 --parts 20 --out shards
    python benchmarks/counting_shards.py count --shards shards --on local
    python benchmarks/counting_shards.py count --shards shards --on ray
    python benchmarks/counting_shards.py memory --shards shards          # all parts in memory at once, for comparison
    python benchmarks/counting_shards.py all --transitions 1e8 --out shards

``write`` collects each part from a grid world by its random policy, a seed each. ``count`` prints the seconds of
``lw.count`` and of ``lw.operator`` after it, the peak memory of this process (and of the largest Ray worker), and a
digest of the counts: equal digests are equal counts, to the last bit. ``memory`` loads all parts, joins them and counts
with ``Trajectories.counts``. ``all`` writes and runs each of the others in a process of its own.

Peak memory is ``VmHWM``, what was resident at most; ``anonymous`` is the largest share of it that is not pages of mapped
files, sampled ten times a second, because the system takes back pages of files when memory is short.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import lapwing as lw
from lapwing.ray_cluster import connect_ray

MEGABYTE = 1 << 20


def memory_line(name: str, pid: str = "self") -> int:
    """Bytes in one line of a process's status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


class Peaks:
    """The largest resident and anonymous memory of this process, and of the workers of a Ray cluster on this machine."""

    def __enter__(self) -> "Peaks":
        self.before, self.anonymous, self.worker, self._over = memory_line("VmRSS"), 0, 0, threading.Event()
        Path("/proc/self/clear_refs").write_text("5")
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.resident = memory_line("VmHWM")

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.anonymous = max(self.anonymous, memory_line("RssAnon"))
            self.worker = max([self.worker, *self._workers()])

    @staticmethod
    def _workers() -> list[int]:
        found = []
        for status in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if status.read_bytes().startswith(b"ray::"):
                    found.append(memory_line("RssAnon", status.parent.name))
            except (OSError, StopIteration):
                continue
        return found


def write(world: str, transitions: int, shards: int, out: Path) -> None:
    """Collect the parts."""
    started = time.perf_counter()
    for number in range(shards):
        lw.collect(world, transitions // shards, seed=number, out=out / f"part-{number:04}")
    size = sum(path.stat().st_size for path in out.rglob("*.npy"))
    print(f"wrote {transitions:,} transitions of {world} in {shards} parts, {size / 1e6:,.0f} MB, "
          f"{time.perf_counter() - started:.1f} s", flush=True)  # fmt: skip


def digest(counts: "lw.Trajectories | lw.data.TransitionCounts") -> str:
    """A digest of the table of observations and of the counts."""
    matrix = counts.counts()
    content = hashlib.sha256()
    for part in (counts.observations, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data):
        content.update(np.ascontiguousarray(part))
    return content.hexdigest()[:16]


def report(label: str, counts: "lw.Trajectories | lw.data.TransitionCounts", seconds: float, peaks: Peaks) -> None:
    """One row of the table."""
    worker = f", worker {peaks.worker / MEGABYTE:,.0f}" if peaks.worker else ""
    print(
        f"| {label} | {counts.num_transitions:,} | {len(counts.observations):,} | {counts.counts().nnz:,} "
        f"| {seconds:.1f} | {peaks.resident / MEGABYTE:,.0f} (before {peaks.before / MEGABYTE:,.0f}, "
        f"anonymous {peaks.anonymous / MEGABYTE:,.0f}{worker}) | {digest(counts)} |",
        flush=True,
    )


def count(folder: Path, on: str) -> None:
    """Count the parts, and time the operator as well."""
    parts = sorted(folder.iterdir())
    lw.count(lw.collect("GridMaze-7", 100))  # imports are not counting
    if on != "local":
        started = time.perf_counter()
        connect_ray(on)
        lw.count(lw.collect("GridMaze-7", 100), on=on)
        print(f"starting Ray and a first worker: {time.perf_counter() - started:.1f} s", flush=True)
    with Peaks() as peaks:
        started = time.perf_counter()
        counts = lw.count(parts, on=on)
        seconds = time.perf_counter() - started
    report(f"lw.count, {on}", counts, seconds, peaks)
    started = time.perf_counter()
    lw.operator(counts)
    print(f"lw.operator of the counts: {time.perf_counter() - started:.1f} s", flush=True)


def count_in_memory(folder: Path) -> None:
    """All parts in memory, joined and counted."""
    lw.collect("GridMaze-7", 100).counts()
    with Peaks() as peaks:
        started = time.perf_counter()
        data = lw.Trajectories.concatenate([lw.Trajectories.load(part) for part in sorted(folder.iterdir())])
        data.counts()
        seconds = time.perf_counter() - started
    report("in memory", data, seconds, peaks)


def main() -> None:
    """Carry out what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "count", "memory", "all"])
    parser.add_argument("--world", default="rooms:24x24x13:5")
    parser.add_argument("--transitions", type=float, default=1e8)
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--out", "--shards", type=Path, default=Path("shards"))
    parser.add_argument("--on", default="local")
    given = parser.parse_args()
    if given.what == "write":
        write(given.world, int(given.transitions), given.parts, given.out)
    elif given.what == "count":
        count(given.out, given.on)
    elif given.what == "memory":
        count_in_memory(given.out)
    else:
        print("| how | transitions | states | pairs | seconds | peak MB | digest |\n|---|---:|---:|---:|---:|---|---|")
        shared = ["--out", str(given.out), "--world", given.world, "--transitions", str(given.transitions)]
        for what in (["write", "--parts", str(given.parts)], ["count"], ["count", "--on", "ray"], ["memory"]):
            subprocess.run([sys.executable, __file__, *what, *shared], check=True, env=os.environ)


if __name__ == "__main__":
    main()
