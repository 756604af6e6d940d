"""Folders that one process at a time writes to: locks, and folders that replace their target atomically."""

import ctypes
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from lapwing.errors import ArgumentError, CannotWriteError
from lapwing.storage.files import sync_folder

LOCK = ".lock"

# Of Linux, since 3.15.
AT_CURRENT_FOLDER = -100
RENAME_EXCHANGE = 2


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder against other processes; an error at once if one of them holds it.

    The system releases the lock when its process ends, however it ends: a lock file that is left means nothing.

    Args:
        folder: created if need be, and removed if the block fails and nothing was put into it.

    Yields:
        Nothing; the lock is held until the block ends.
    """
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK)
        lock.acquire(blocking=False)
    except Timeout:
        raise CannotWriteError(
            f"another process is at work in {folder}; wait for it to end, or choose another folder"
        ) from None
    except OSError as error:
        raise CannotWriteError(f"cannot write to {folder}: {error.strerror or error}; choose another folder") from error
    left: list[Path] = []
    try:
        yield
    except BaseException:
        if new and folder.is_dir() and [path.name for path in folder.iterdir()] == [LOCK]:
            # Nothing was written, so nothing is left, unless somebody has put something there meanwhile.
            try:
                (folder / LOCK).unlink()
                _remove_empty(new)
            except PermissionError:
                # Windows keeps a file that is open; the release of the lock removes it.
                left = new
            except OSError:
                pass
        raise
    finally:
        lock.release()
        _remove_empty(left)


class NewFolder:
    """A folder being written, ``content``, that takes the place of ``path`` with :meth:`put_in_place`.

    Work is done in a hidden folder beside the target, ``.NAME.new``, locked against other processes. If the process is
    killed, that is all it leaves, and the next one to write to the same target clears it away.

    An existing ``path`` is replaced only if it is empty, or holds ``marker`` and beside it nothing but ``members``:
    no other files are lost.

    Args:
        path: the folder to create or replace.
        marker: name of the file that says that a folder is one of this kind.
        members: names of the other files that such a folder may hold.
    """

    def __init__(self, path: Path, marker: str, members: Collection[str]) -> None:
        """Nothing is touched before it is entered."""
        self.path = path.resolve()
        self.work = self.path.parent / f".{self.path.name}.new"
        self.content, self.old = self.work / "content", self.work / "old"
        self._marker, self._known = marker, {marker, *members}
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        """Lock the target, clear away what a killed process left, and make the empty folder to write to."""
        self._refuse_foreign()
        self._lock.enter_context(locked(self.work))
        try:
            if self.old.is_dir() and not self.path.exists():
                # Killed between two renames, where they are two: what was there before goes back first.
                self.old.replace(self.path)
            for left in (self.content, self.old):
                _remove(left)
            self.content.mkdir()
        except OSError as error:
            self._lock.close()
            raise CannotWriteError(f"cannot write to {self.work}: {error.strerror}; choose another folder") from error
        return self

    def put_in_place(self) -> None:
        """Let ``content`` take the place of the target, and remove what was there."""
        self._refuse_foreign()
        self.content.chmod(0o755)
        sync_folder(self.content)
        try:
            if not self.path.is_dir():
                self.content.replace(self.path)
            elif not exchanged(self.content, self.path):
                self._swap()
        except PermissionError as error:
            # On Windows, too, where a file in the folder is open or memory-mapped.
            raise CannotWriteError(
                f"cannot replace {self.path}: {error.strerror}; close what is open in it, or choose another folder"
            ) from error
        sync_folder(self.path.parent)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave nothing behind but the target."""
        # A disk that went away keeps what it has; the lock goes with the folder it is in.
        with suppress(OSError):
            for left in (self.content, self.old, self.work):
                _remove(left)
        held = [self.work] if self.work.exists() else []
        self._lock.close()
        _remove_empty(held)  # Windows could not remove the open lock file before

    def _swap(self) -> None:
        """Two renames where the system has no exchange; in between there is no target, and the next writer knows."""
        self.path.replace(self.old)
        try:
            self.content.replace(self.path)
        except OSError:
            self.old.replace(self.path)
            raise

    def _refuse_foreign(self) -> None:
        try:
            if self.path.exists() and not self.path.is_dir():
                raise ArgumentError(f"{self.path} is a file; choose a folder")
            present = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        except OSError as error:
            raise CannotWriteError(f"cannot read {self.path}: {error.strerror}; choose another folder") from error
        if present and self._marker not in present:
            raise ArgumentError(f"{self.path} holds other files and no {self._marker}; choose an empty or new folder")
        if foreign := sorted(present - self._known):
            raise ArgumentError(
                f"{self.path} holds other files ({foreign[0]}), which would be lost; choose another folder"
            )


@contextmanager
def replaced_directory(path: Path, marker: str, members: Collection[str]) -> Iterator[Path]:
    """A temporary folder that takes the place of ``path`` on success and vanishes on failure: a :class:`NewFolder`.

    Args:
        path: the folder to create or replace.
        marker: name of the file that says that a folder is one of this kind.
        members: names of the other files that such a folder may hold.

    Returns:
        A context manager that gives the folder to write to.
    """
    with NewFolder(path, marker, members) as new:
        yield new.content
        new.put_in_place()


def exchanged(first: Path, second: Path) -> bool:
    """Exchange two folders atomically, so that each name always leads to a complete one.

    Args:
        first: an existing folder.
        second: another on the same disk.

    Returns:
        False where the system cannot do so; then nothing has changed.
    """
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    names = [os.fsencode(path) for path in (first, second)]
    return bool(rename(AT_CURRENT_FOLDER, names[0], AT_CURRENT_FOLDER, names[1], RENAME_EXCHANGE) == 0)


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders as far as nothing is in them, the innermost first."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder, never what a link points to."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)
