"""Faults against a study: a worker killed, the study killed, a run damaged, a disk that fills."""

import json
import random
import subprocess
import time
from pathlib import Path

from disks import fill
from folder_faults import OtherFault
from learning_faults import NotHitError, promise
from subjects import LAPWING, finish, wait_until

ARGUMENTS = ("reproduce", "brittle-ggdo", "--worlds", "GridMaze-7", "--seeds", "1", "--steps", "400", "--workers", "2")


def start(folder: Path, *, going_on: bool = False) -> "subprocess.Popen[str]":
    """A process that makes the study, or completes it."""
    arguments = (*ARGUMENTS[:2], "--resume") if going_on else ARGUMENTS
    command = [*LAPWING, *arguments, "--out", str(folder / "study")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(folder: Path) -> dict[str, object]:
    """The numbers, metrics and components of every run."""
    found: dict[str, object] = {}
    for run in sorted((folder / "study" / "runs").glob("*/run.json")):
        content = json.loads(run.read_text())
        numbers = {name: value for name, value in content.get("numbers", {}).items() if name != "seconds"}
        found[run.parent.name] = content["status"], numbers
        for path in [*run.parent.glob("*.npy"), *run.parent.glob("*.csv")]:
            found[f"{run.parent.name}/{path.name}"] = path.read_bytes()
    return found


class Reference:
    """The result of the study left in peace; made once."""

    content: dict[str, object] | None = None

    @classmethod
    def get(cls, folder: Path) -> dict[str, object]:
        """Make it where it is missing."""
        if cls.content is None:
            place = folder.parent / "reference-study"
            code, said = finish(start(place))
            promise(code == 0, f"the study fails without any fault: {said}")
            cls.content = result(place)
        return cls.content


def finished_runs(folder: Path) -> list[Path]:
    """Runs that are complete."""
    return sorted((folder / "study" / "runs").glob("*/run.json"))


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    """Processes that carry out runs, by their numbers."""
    try:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    except OSError:
        return []


def is_alive(process: int) -> bool:
    """Whether a process still does something; one that has ended may wait for somebody to take note of it."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def complete(folder: Path) -> bool:
    """Resume to the end; whether the result is bit-identical."""
    code, said = finish(start(folder, going_on=True))
    promise(code == 0, f"--resume ended with {code}: {said}")
    return result(folder) == Reference.get(folder)


def worker_killed(folder: Path, rng: random.Random) -> bool:
    """SIGKILL to one worker at work: its run is named, the others are whole, --resume completes the study."""
    Reference.get(folder)
    process = start(folder)
    if not wait_until(process, lambda: len(workers_of(process)) == 2):
        raise NotHitError
    time.sleep(rng.uniform(0.5, 4.0))
    chosen = workers_of(process)
    if not chosen:
        raise NotHitError
    subprocess.run(["kill", "-9", str(rng.choice(chosen))], check=False)
    code, said = finish(process)
    if code == 0:
        raise NotHitError
    promise("the worker was killed" in said, f"the run is not named: {said}")
    done = [path for path in finished_runs(folder) if json.loads(path.read_text())["status"] == "done"]
    promise(len(done) == 3, f"{len(done)} of the 3 other runs are there")
    return complete(folder)


def study_killed(folder: Path, rng: random.Random) -> bool:
    """SIGKILL to the study itself: no worker stays behind, no finished run is lost."""
    Reference.get(folder)
    process = start(folder)
    if not wait_until(process, lambda: bool(finished_runs(folder))):
        raise NotHitError
    time.sleep(rng.uniform(0.0, 2.0))
    workers, done = workers_of(process), finished_runs(folder)
    process.kill()
    finish(process)
    patience = time.monotonic() + 20.0
    while any(map(is_alive, workers)) and time.monotonic() < patience:
        time.sleep(0.1)
    promise(not any(map(is_alive, workers)), "workers live on")
    before = {path: path.stat().st_mtime_ns for path in done}
    same = complete(folder)
    promise(all(path.stat().st_mtime_ns == when for path, when in before.items()), "a finished run was made again")
    return same


def run_damaged(folder: Path, rng: random.Random) -> bool:
    """A flipped bit in what a run left behind: named, and made again."""
    Reference.get(folder)
    code, said = finish(start(folder))
    promise(code == 0, said)
    files = sorted((folder / "study" / "runs").glob("*/*.*"))
    chosen = rng.choice([path for path in files if path.suffix in (".npy", ".csv", ".json")])
    content = bytearray(chosen.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    chosen.write_bytes(content)
    code, said = finish(start(folder, going_on=True))
    promise(code == 0 and "damaged" in said, f"exit code {code}; {chosen.name} is not named as damaged: {said}")
    return result(folder) == Reference.get(folder)


def study_on_a_full_disk(folder: Path, rng: random.Random) -> bool:
    """No space for a run: it is named, those that were there are whole, --resume completes the study."""
    Reference.get(folder)
    process = start(folder)
    if not wait_until(process, lambda: bool(finished_runs(folder))):
        raise NotHitError
    done = finished_runs(folder)
    ballast = fill(folder)
    code, said = finish(process)
    if code == 0:
        raise NotHitError
    promise("No space left on device" in said and "Traceback" not in said, f"the error was: {said}")
    ballast.unlink()
    promise(set(done) <= set(finished_runs(folder)), "a finished run is gone")
    return complete(folder)


STUDY_FAULTS = (
    OtherFault("study: worker killed", worker_killed),
    OtherFault("study: killed", study_killed),
    OtherFault("study: run damaged", run_damaged),
    OtherFault("study: disk full", study_on_a_full_disk, on_own_disk=True),
)
