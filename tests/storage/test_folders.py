"""Folders take their place whole, and what a killed process leaves is cleared away."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lapwing.errors import LapwingError
from lapwing.storage import folders
from lapwing.storage.folders import NewFolder, exchanged, replaced_directory

MARKER, MEMBERS = "data.json", ("numbers.npy",)


class TemporaryFailureError(Exception):
    """Raised in the middle of a write, on purpose."""


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_folder(target: Path, text: str) -> None:
    with replaced_directory(target, MARKER, MEMBERS) as folder:
        (folder / MARKER).write_text(text)
        (folder / "numbers.npy").write_text(text)


@pytest.mark.parametrize("before", ["absent", "empty", "ours"])
def test_a_replaced_folder_takes_the_place_of_none_an_empty_one_and_our_own(tmp_path: Path, before: str) -> None:
    target = tmp_path / "data"
    if before == "empty":
        target.mkdir()
    if before == "ours":
        write_folder(target, "old")
    write_folder(target, "new")
    assert (target / MARKER).read_text() == "new"
    assert entries(target) == [MARKER, "numbers.npy"]
    assert entries(tmp_path) == ["data"]


def test_a_folder_behind_a_link_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "disk")
    write_folder(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "disk" / MARKER).read_text() == "new"
    assert entries(tmp_path) == ["disk", "link"]


@pytest.mark.parametrize("names", [["thesis.tex"], ["numbers.npy"], [MARKER, "thesis.tex"]])
def test_a_folder_with_somebody_elses_files_is_never_replaced(tmp_path: Path, names: list[str]) -> None:
    target = tmp_path / "data"
    target.mkdir()
    for name in names:
        (target / name).write_text("precious")
    with pytest.raises(LapwingError, match="holds other files"):
        write_folder(target, "new")
    with pytest.raises(LapwingError, match="holds other files"):
        NewFolder(target, MARKER, MEMBERS).__enter__()
    assert all((target / name).read_text() == "precious" for name in names)
    assert entries(tmp_path) == ["data"]


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("precious")
    with pytest.raises(LapwingError, match="is a file; choose a folder"):
        write_folder(tmp_path / "data", "new")
    assert (tmp_path / "data").read_text() == "precious"


def test_a_failing_write_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "data"
    write_folder(target, "old")

    def fail_half_way() -> None:
        with replaced_directory(target, MARKER, MEMBERS) as folder:
            (folder / MARKER).write_text("half")
            raise TemporaryFailureError

    with pytest.raises(TemporaryFailureError):
        fail_half_way()
    assert (target / MARKER).read_text() == "old"
    assert entries(tmp_path) == ["data"]


@pytest.mark.parametrize("failing_call", [1, 2])
def test_the_old_folder_comes_back_when_the_swap_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_call: int
) -> None:
    target = tmp_path / "data"
    write_folder(target, "old")
    replace, calls = Path.replace, []

    def failing(self: Path, other: Path) -> Path:
        calls.append(self)
        if len(calls) == failing_call:
            raise OSError("disk on fire")
        return replace(self, other)

    monkeypatch.setattr(folders, "exchanged", lambda *_: False)
    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="disk on fire"):
        write_folder(target, "new")
    assert (target / MARKER).read_text() == "old"
    assert entries(tmp_path) == ["data"]


def test_two_folders_change_places_in_one_stroke_or_not_at_all(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MARKER).write_text(name)
    swapped = exchanged(tmp_path / "first", tmp_path / "second")
    assert swapped is (sys.platform == "linux")
    assert (tmp_path / "first" / MARKER).read_text() == ("second" if swapped else "first")
    assert not exchanged(tmp_path / "first", tmp_path / "nowhere")


def test_where_there_is_no_exchange_two_renames_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "exchanged", lambda *_: False)
    write_folder(tmp_path / "data", "old")
    write_folder(tmp_path / "data", "new")
    assert (tmp_path / "data" / MARKER).read_text() == "new"
    assert entries(tmp_path) == ["data"]


def test_a_target_that_somebody_is_writing_is_refused_to_others(tmp_path: Path) -> None:
    target = tmp_path / "data"
    with replaced_directory(target, MARKER, MEMBERS) as folder:
        (folder / MARKER).write_text("first")
        with pytest.raises(LapwingError, match="another process is at work"):
            write_folder(target, "second")
    assert (target / MARKER).read_text() == "first"
    assert entries(tmp_path) == ["data"]


KILLED = """
import os, sys
from pathlib import Path
from lapwing.storage import folders

{before}
with folders.replaced_directory(Path(sys.argv[1]), "data.json", ("numbers.npy",)) as folder:
    (folder / "data.json").write_text("new")
    {inside}
"""
NO_EXCHANGE = "folders.exchanged = lambda *_: False"
ONE_RENAME = """
replace = Path.replace
def killed(self, other):
    if self.name == "content":
        os._exit(9)
    return replace(self, other)
Path.replace = killed
"""
EXCHANGED = """
really = folders.exchanged
def exchanged(first, second):
    really(first, second)
    os._exit(9)
folders.exchanged = exchanged
"""


@pytest.mark.parametrize(
    ("before", "inside", "left"),
    [
        ("", "os._exit(9)", "old"),
        (NO_EXCHANGE + ONE_RENAME, "", None),
        pytest.param(EXCHANGED, "", "new", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux alone")),
    ],
    ids=["while writing", "between two renames", "after the exchange"],
)
def test_a_killed_writer_loses_nothing_and_the_next_one_clears_up(
    tmp_path: Path, before: str, inside: str, left: str | None
) -> None:
    target = tmp_path / "data"
    write_folder(target, "old")
    program = KILLED.format(before=before, inside=inside)
    ended = subprocess.run([sys.executable, "-c", program, str(target)], env=os.environ, check=False)
    assert ended.returncode == 9
    assert ".data.new" in entries(tmp_path)
    if left is None:
        # The one moment without a target, where there is no exchange: what was there waits beside it.
        assert not target.exists()
        with pytest.raises(ZeroDivisionError):
            fail_in(target, lambda: 1 / 0)
        assert (target / MARKER).read_text() == "old"
    else:
        assert (target / MARKER).read_text() == left
        write_folder(target, "newer")
        assert (target / MARKER).read_text() == "newer"
    assert entries(tmp_path) == ["data"]


def fail_in(target: Path, fail: Callable[[], object]) -> None:
    with replaced_directory(target, MARKER, MEMBERS):
        fail()


def test_links_among_leftovers_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.tex").write_text("precious")
    (tmp_path / ".data.new").mkdir()
    (tmp_path / ".data.new" / "content").symlink_to(tmp_path / "precious")
    write_folder(tmp_path / "data", "new")
    assert (tmp_path / "precious" / "thesis.tex").read_text() == "precious"
    assert entries(tmp_path) == ["data", "precious"]


def test_a_folder_whose_name_no_system_takes_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(LapwingError, match="File name too long"),
        replaced_directory(tmp_path / ("x" * 5000), MARKER, ()),
    ):
        pytest.fail("no such name")
