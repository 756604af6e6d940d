"""What only Linux, or only POSIX, has can be missing: each test takes one such thing away and goes on without it."""

import io
import mmap
import os
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock

import lapwing as lw
from lapwing.cli import main as cli
from lapwing.cli.arguments import file_name
from lapwing.data.builder import DECIDE_AFTER
from lapwing.errors import CannotWriteError
from lapwing.storage import files, folders, reading
from lapwing_paper import executors

MAPS = Path("/proc/self/maps")


def as_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lock files that are held cannot be removed; their release removes them. Folders cannot be opened or exchanged."""
    held: set[Path] = set()
    really_unlink, really_acquire, really_release = Path.unlink, FileLock.acquire, FileLock.release
    really_os_unlink, really_open = os.unlink, os.open

    def acquire(self: FileLock, *arguments: Any, **options: Any) -> Any:
        result = really_acquire(self, *arguments, **options)
        held.add(Path(self.lock_file))
        return result

    def release(self: FileLock, *arguments: Any, **options: Any) -> None:
        really_release(self, *arguments, **options)
        held.discard(Path(self.lock_file))
        really_unlink(Path(self.lock_file), missing_ok=True)

    def refuse(path: Path) -> None:
        if path in held or path.name in {place.name for place in held}:
            raise PermissionError(13, "it is being used by another process", str(path))

    def unlink(self: Path, missing_ok: bool = False) -> None:
        refuse(self)
        really_unlink(self, missing_ok=missing_ok)

    def os_unlink(path: Any, *, dir_fd: int | None = None) -> None:
        refuse(Path(os.fsdecode(path)))
        really_os_unlink(path, dir_fd=dir_fd)

    def opened(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if dir_fd is None and os.path.isdir(path) and sys._getframe(1).f_code.co_name == "sync_folder":
            raise PermissionError(13, "folders cannot be opened", str(path))
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(FileLock, "acquire", acquire)
    monkeypatch.setattr(FileLock, "release", release)
    monkeypatch.setattr(Path, "unlink", unlink)
    monkeypatch.setattr(os, "unlink", os_unlink)
    monkeypatch.setattr(os, "open", opened)

    def no_library(*_: Any, **__: Any) -> None:
        raise TypeError("a name is needed")

    monkeypatch.setattr(folders.ctypes, "CDLL", no_library)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: as_on_windows(monkeypatch)


# --- files and folders ------------------------------------------------------------------------------------------------


def test_a_new_file_is_flushed_through_a_handle_that_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    really, modes = os.fsync, []

    def fsync(handle: int) -> None:
        if not os.path.isdir(f"/proc/self/fd/{handle}"):
            modes.append(fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE)
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    files.write_bytes(tmp_path / "some", b"content")
    assert modes
    assert os.O_RDONLY not in modes


def test_results_are_written_twice_where_open_files_stay_and_folders_are_not_exchanged(
    tmp_path: Path, windows: Callable[[], None]
) -> None:
    windows()
    model, data = lw.solve("room:3x4", dim=3), lw.collect("room:3x4", steps=100, seed=0)
    for _ in range(2):
        model.save(tmp_path / "model")
        data.save(tmp_path / "data")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "model"]
    np.testing.assert_array_equal(lw.load(tmp_path / "model").eigenvalues, model.eigenvalues)
    assert lw.Trajectories.load(tmp_path / "data").num_transitions == 100


def test_a_locked_folder_in_which_nothing_was_written_goes_where_open_files_stay(
    tmp_path: Path, windows: Callable[[], None]
) -> None:
    windows()
    with pytest.raises(ZeroDivisionError), folders.locked(tmp_path / "outer" / "inner"):
        raise ZeroDivisionError
    assert not (tmp_path / "outer").exists()


def test_a_folder_whose_files_are_open_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = lw.collect("room:3x4", steps=100, seed=0)
    data.save(tmp_path / "data")
    monkeypatch.setattr(folders, "exchanged", lambda *_: False)
    really = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if self == tmp_path / "data":
            raise PermissionError(13, "it is being used by another process", str(self))
        return really(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(CannotWriteError, match="close what is open"):
        data.save(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert lw.Trajectories.load(tmp_path / "data").num_transitions == data.num_transitions


@pytest.mark.skipif(not MAPS.exists(), reason="this system does not tell what a process has mapped")
def test_no_file_is_removed_while_it_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.data.builder import TrajectoryBuilder

    really, removed = Path.unlink, []

    def unlink(self: Path, missing_ok: bool = False) -> None:
        assert str(self) not in MAPS.read_text(encoding="utf-8"), f"{self} is still mapped"
        removed.append(self.name)
        really(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    states = np.random.default_rng(0).normal(size=(2 * DECIDE_AFTER, 2)).astype(np.float32)
    with TrajectoryBuilder(tmp_path / "data") as builder:
        for block in np.split(states, 16):
            builder.add_states(block)
        builder.close_episodes(np.array([len(states) - 1]), np.array([False]), np.array([True]))
        builder.finish({})
    assert "ids.npy" in removed


def test_pages_of_a_mapped_file_stay_where_the_system_takes_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(mmap, "MADV_DONTNEED", raising=False)
    files.write_array(tmp_path / "some.npy", np.arange(5.0))
    mapped = reading.read_array(tmp_path / "some.npy", mmap=True)
    reading.forget_pages(mapped)
    np.testing.assert_array_equal(mapped, np.arange(5.0))


def test_without_sysconf_a_size_of_memory_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    from lapwing.cli import doctor_command

    monkeypatch.delattr(os, "sysconf", raising=False)
    assert reading.memory_bytes() == 1 << 34
    assert doctor_command._memory_gib() is None


@pytest.mark.parametrize("label", ["rooms:8x8x12:3", "product:A*B", "gym:module:Env-v0", 'a<b>c"d|e?f\\g'])
def test_default_folders_have_names_that_every_system_takes(label: str) -> None:
    assert not set(file_name(label)) & set('<>:"/\\|?*')


# --- processes and output ---------------------------------------------------------------------------------------------


def test_cores_are_counted_and_threads_limited_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sched_getaffinity", "sched_setaffinity"):
        monkeypatch.delattr(os, name, raising=False)
    assert executors.usable_cores() == list(range(os.cpu_count() or 1))
    monkeypatch.setattr(executors.threadpoolctl, "threadpool_limits", lambda limits: None)
    executors.compute_with_one_thread()


def test_threads_are_not_bound_where_they_cannot_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "THREADS", "/nowhere/task")
    monkeypatch.setattr(executors.threadpoolctl, "threadpool_limits", lambda limits: None)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: pytest.fail("it was bound"), raising=False)
    executors.compute_with_one_thread()


def test_workers_start_without_signal_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    with executors._interrupts_blocked():
        pass


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_pictures_are_printed_where_output_is_not_utf8(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert cli.main(["worlds", "--pictures"]) == 0
    sys.stdout.flush()
    assert "Rooms-16" in written.getvalue().decode(encoding)


def test_the_list_of_tests_that_need_posix_is_right() -> None:
    tests = Path(__file__).parent
    assert all((tests / name).exists() for name in runpy.run_path(str(tests / "conftest.py"))["ONLY_ON_POSIX"])
