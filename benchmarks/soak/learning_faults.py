"""What is done to learning, and what must come of it: each fault gives True for a promise kept, or raises."""

import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from disks import fill, remount
from subjects import Subject, finish, wait_until


class NotHitError(Exception):
    """The process had ended before the fault could be injected: nothing was tried."""


class BrokenPromiseError(Exception):
    """What came of the fault is not what was promised."""


def promise(kept: bool, message: str) -> None:
    """Nothing, or an error that says what was broken."""
    if not kept:
        raise BrokenPromiseError(message)


def go_on(subject: Subject, folder: Path) -> str:
    """Resume to the end; returns what was printed."""
    code, said = finish(subject.start(folder, going_on=True))
    promise(code == 0, f"resuming ended with {code}: {said}")
    return said


def _with_checkpoints(subject: Subject, folder: Path, count: int) -> "subprocess.Popen[str]":
    """A process that has written so many checkpoints."""
    process = subject.start(folder)
    seen: set[str] = set()

    def enough() -> bool:
        seen.update(path.name for path in subject.checkpoints(folder))
        return len(seen) >= count

    if not wait_until(process, enough):
        raise NotHitError(finish(process)[1])
    return process


def killed_at_random(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
    """SIGKILL, up to three times, anywhere from the first import to the last file."""
    hits = 0
    for attempt in range(3):
        process = subject.start(folder, going_on=attempt > 0 and subject.is_begun(folder))
        try:
            process.wait(timeout=rng.uniform(0.1, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            hits += 1
        finish(process)
    if not hits:
        raise NotHitError
    if subject.is_begun(folder):
        go_on(subject, folder)
    else:
        code, said = finish(subject.start(folder))
        promise(code == 0, f"beginning again ended with {code}: {said}")


def killed_at_the_end(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
    """SIGKILL while results are being written."""
    process = subject.start(folder)
    if not wait_until(process, lambda: any(folder.glob("**/model.*"))):
        raise NotHitError
    time.sleep(rng.uniform(0.0, 0.3))
    process.kill()
    finish(process)
    go_on(subject, folder)


def _told(number: signal.Signals) -> Callable[..., None]:
    def fault(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
        process = _with_checkpoints(subject, folder, 1)
        time.sleep(rng.uniform(0.0, 1.0))
        process.send_signal(number)
        code, said = finish(process)
        if code == 0:
            raise NotHitError
        # Before and after learning itself a signal does what it does to any program.
        if code != -number and subject.says_how:
            promise(code == 128 + number, f"the exit code was {code}")
            promise("resume with: lapwing learn --resume" in said, f"it did not print how to resume: {said}")
        elif code != -number:
            promise("stopping at the end of this chunk" in said, f"nothing was said of stopping: {said}")
        go_on(subject, folder)

    return fault


def _damaged(how: str) -> Callable[..., None]:
    def fault(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
        process = _with_checkpoints(subject, folder, 2)
        process.kill()
        finish(process)
        chosen = subject.checkpoints(folder)[: None if how == "all" else 1]
        for path in chosen:
            content = bytearray(path.read_bytes())
            if how == "torn":
                del content[rng.randrange(len(content)) :]
            else:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
        said = go_on(subject, folder)
        promise("is damaged: its checksum is not the one in its name" in said, f"nothing was said of it: {said}")

    return fault


def full_disk(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
    """No space left after the first checkpoint; then some is freed."""
    process = _with_checkpoints(subject, folder, 1)
    ballast = fill(folder)
    code, said = finish(process)
    if code == 0:
        raise NotHitError
    promise("No space left on device" in said, f"the error was: {said}")
    if subject.says_how:
        promise("Traceback" not in said and "resume with" in said, f"it did not print how to resume: {said}")
    ballast.unlink()
    promise(bool(subject.checkpoints(folder)), "the last good checkpoint is gone")
    go_on(subject, folder)


def read_only_disk(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
    """Killed; then nothing can be written; then it can."""
    process = _with_checkpoints(subject, folder, 1)
    process.kill()
    finish(process)
    before = [path.name for path in subject.checkpoints(folder)]
    remount(folder, "ro")
    code, said = finish(subject.start(folder, going_on=True))
    remount(folder, "rw")
    promise(code != 0 and "Read-only file system" in said, f"exit code {code}: {said}")
    promise(before == [path.name for path in subject.checkpoints(folder)], "checkpoints have changed")
    go_on(subject, folder)


def second_process(subject: Subject, folder: Path, rng: random.Random, seconds: float) -> None:
    """Two at a time in one folder: the second is refused and the first notices nothing."""
    process = _with_checkpoints(subject, folder, 1)
    process.send_signal(signal.SIGSTOP)
    code, said = finish(subject.start(folder, going_on=True))
    process.send_signal(signal.SIGCONT)
    promise(code != 0 and "another process is at work" in said, f"exit code {code}: {said}")
    code, said = finish(process)
    promise(code == 0, f"the first ended with {code}: {said}")


@dataclass(frozen=True)
class Fault:
    """A kind of fault: its name in the table, what it does, and whether it needs a disk of its own."""

    name: str
    inject: Callable[[Subject, Path, random.Random, float], None]
    on_own_disk: bool = False


LEARNING_FAULTS = (
    Fault("killed at a random time", killed_at_random),
    Fault("killed while writing results", killed_at_the_end),
    Fault("Ctrl-C", _told(signal.SIGINT)),
    Fault("terminated", _told(signal.SIGTERM)),
    Fault("torn checkpoint", _damaged("torn")),
    Fault("flipped bit in a checkpoint", _damaged("flipped")),
    Fault("all checkpoints damaged", _damaged("all")),
    Fault("second process", second_process),
    Fault("disk full", full_disk, on_own_disk=True),
    Fault("disk read-only", read_only_disk, on_own_disk=True),
)
