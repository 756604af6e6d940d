"""Small real disks, for faults that only a disk can have. They need the right to mount."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEGABYTES = 64


def can_mount() -> bool:
    """Whether disks can be had here: on Linux, for the superuser, outside of a locked-down container."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A disk of its own in the place of a folder, gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, how: str) -> None:
    """Make the disk read-only (``ro``) or writable (``rw``)."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the space that is left; the file to remove to have it back."""
    ballast = folder / ".ballast"
    try:
        with ballast.open("wb", buffering=0) as stream:
            while stream.write(bytes(1 << 14)):
                pass
    except OSError:
        pass
    return ballast
