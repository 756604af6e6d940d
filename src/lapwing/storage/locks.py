"""One process at a time in a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from lapwing.errors import LapwingError

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder, made if need be, against other processes; an error at once if one of them holds it.

    The system lets go of the lock when its process ends, however it ends: a file that is left means nothing.
    """
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire(blocking=False)
    except Timeout:
        raise LapwingError(
            f"another process is at work in {folder}; wait for it to end, or choose another folder"
        ) from None
    except OSError as error:
        raise LapwingError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from error
    try:
        yield
    except BaseException:
        if new and folder.is_dir() and [path.name for path in folder.iterdir()] == [LOCK]:
            # Nothing came of it, so nothing is left, unless somebody has put something there meanwhile.
            with suppress(OSError):
                (folder / LOCK).unlink()
                for place in new:
                    place.rmdir()
        raise
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Whether a process, this one included, is at work in a folder."""
    if not (folder / LOCK).exists() or not os.access(folder, os.W_OK):
        return False
    try:
        with FileLock(folder / LOCK).acquire(blocking=False):
            return False
    except Timeout:
        return True
