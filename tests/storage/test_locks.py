"""Two processes never work in one folder."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.storage.folders import locked

HOLD = """
import sys
from pathlib import Path
from lapwing.storage.folders import locked
with locked(Path(sys.argv[1])):
    print('held', flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    with holder(tmp_path / "run") as first:
        with pytest.raises(LapwingError, match="another process is at work in"), locked(tmp_path / "run"):
            pytest.fail("two at a time")
        first.send_signal(signal.SIGKILL)
    with locked(tmp_path / "run"):
        pass


def test_the_same_process_is_refused_a_second_time_and_let_in_afterwards(tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(LapwingError, match="another process"), locked(tmp_path):
        pytest.fail("two at a time")
    with locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LapwingError, match="cannot write to"), locked(tmp_path / "file" / "run"):
        pytest.fail("no such folder")


def test_work_that_came_to_nothing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="no good"), locked(tmp_path / "runs" / "run"):
        raise LapwingError("no good")
    assert not list(tmp_path.iterdir())
    result = tmp_path / "runs" / "run" / "result"

    def fail_later() -> None:
        with locked(result.parent):
            result.touch()
            raise LapwingError("no good")

    with pytest.raises(LapwingError, match="no good"):
        fail_later()
    assert result.exists()


def test_what_somebody_put_beside_it_does_not_hide_the_error(tmp_path: Path) -> None:
    def fail() -> None:
        with locked(tmp_path / "a" / "b"):
            (tmp_path / "a" / "other").mkdir()
            raise KeyboardInterrupt("stopped")

    with pytest.raises(KeyboardInterrupt, match="stopped"):
        fail()
    assert (tmp_path / "a" / "other").is_dir()
