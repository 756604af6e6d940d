"""Faults against data sets and models that are replaced: what was there, or what was to come, is there whole."""

import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from learning_faults import NotHitError, promise
from subjects import LAPWING, finish, wait_until

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.training.task import data_digest

SAVER = """
import sys, lapwing as lw
models = [lw.solve("GridMaze-7", dim=dim) for dim in (3, 4)]
models[0].save(sys.argv[1])
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[1])
"""


@dataclass(frozen=True)
class OtherFault:
    """A kind of fault that brings its subject with it; ``inject`` says whether the end was the same to the bit."""

    name: str
    inject: Callable[[Path, random.Random], bool]
    on_own_disk: bool = False


def collect_killed(folder: Path, rng: random.Random) -> bool:
    """SIGKILL while a data set is replaced by a larger one."""
    target = folder / "data"

    def collecting(steps: int, seed: int) -> "subprocess.Popen[str]":
        arguments = ["collect", "Rooms-64", "--steps", str(steps), "--seed", str(seed), "--out", str(target)]
        return subprocess.Popen([*LAPWING, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    promise(finish(collecting(50_000, 0))[0] == 0, "the first data set could not be collected")
    old = data_digest(lw.Trajectories.load(target))
    process = collecting(20_000_000, 1)
    if not wait_until(process, lambda: len(list(folder.iterdir())) > 1):
        raise NotHitError
    time.sleep(rng.uniform(0.0, 0.3))
    process.kill()
    if finish(process)[0] == 0:
        raise NotHitError
    try:
        left = lw.Trajectories.load(target)
    except LapwingError as error:
        promise(False, str(error))
    promise(left.num_transitions == 20_000_000 or data_digest(left) == old, "the old data set is gone")
    promise(finish(collecting(50_000, 2))[0] == 0, "nothing can be collected there any more")
    again = data_digest(lw.Trajectories.load(target)) == data_digest(lw.collect("Rooms-64", 50_000, seed=2))
    promise([path.name for path in folder.iterdir()] == ["data"], "something half-written was left")
    return again


def save_killed(folder: Path, rng: random.Random) -> bool:
    """SIGKILL, five times, while one model replaces another."""
    known = {lw.solve("GridMaze-7", dim=dim).mu.tobytes() for dim in (3, 4)}
    for _ in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        promise(process.stdout.readline() == "ready\n", "the model could not be saved")
        time.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        finish(process)
        try:
            found = lw.load(folder)
        except LapwingError as error:
            promise(False, str(error))
        promise(found.mu.tobytes() in known, "the model is neither the old nor the new one")
    return True


FOLDER_FAULTS = (
    OtherFault("killed while collecting", collect_killed),
    OtherFault("killed while saving a model", save_killed),
)
