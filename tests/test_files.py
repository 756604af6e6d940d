"""Files are whole or absent, and reading one never runs code."""

import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing.files import (
    ArrayAppender,
    crc32,
    read_array,
    read_manifest,
    replaced_directory,
    replaced_file,
    working_directory,
    write_json,
)

MARKER, MEMBERS = "data.json", ("numbers.npy",)


class TemporaryFailureError(Exception):
    """Raised in the middle of a write, on purpose."""


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_replaced_file_appears_whole_and_is_as_public_as_the_umask_allows(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "result.txt"
    with replaced_file(target) as temporary:
        temporary.write_text("whole")
        assert not target.exists()
    umask = os.umask(0)
    os.umask(umask)
    assert target.read_text() == "whole"
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask
    assert entries(target.parent) == ["result.txt"]


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")

    def fail_half_way() -> None:
        with replaced_file(target) as temporary:
            temporary.write_text("half")
            raise TemporaryFailureError

    with pytest.raises(TemporaryFailureError):
        fail_half_way()
    assert target.read_text() == "old"
    assert entries(tmp_path) == ["result.txt"]


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    write_json(target, {"b": 1, "a": 2})
    assert list(json.loads(target.read_text())) == ["b", "a"]
    with pytest.raises(ValueError, match="JSON"):
        write_json(target, {"value": float("nan")})
    assert json.loads(target.read_text()) == {"b": 1, "a": 2}
    assert entries(tmp_path) == ["result.json"]


@pytest.mark.parametrize(("number", "advice"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "another folder")])
def test_a_disk_that_fails_is_a_clear_error_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    target = tmp_path / "result.json"
    write_json(target, {"a": 1})

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(LapwingError, match=f"result.json: .*untouched: .*{advice}"):
        write_json(target, {"a": 2})
    assert json.loads(target.read_text()) == {"a": 1}
    assert entries(tmp_path) == ["result.json"]


def test_a_file_is_not_written_over_a_folder_or_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(LapwingError, match="is a folder"):
        write_json(tmp_path / "folder", {})
    with pytest.raises(LapwingError, match="cannot write to"):
        write_json(tmp_path / "file" / "result.json", {})
    assert entries(tmp_path) == ["file", "folder"]


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
        working_directory(target, MARKER, MEMBERS)
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

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="disk on fire"):
        write_folder(target, "new")
    assert (target / MARKER).read_text() == "old"
    assert entries(tmp_path) == ["data"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not readable JSON"),
        (b"{", "not readable JSON"),
        (b"\xff\xfe\x00", "not readable JSON"),
        (b"[" * 100_000, "not readable JSON"),
        (b'{"version": ' + b"9" * 5000 + b"}", "not readable JSON"),
        (b"[1, 2]", "it says 'list'"),
        (b"{}", "it says None"),
        (b'{"format": "other", "version": 1}', "it says 'other'"),
        (b'{"format": "ours"}', "format version None"),
        (b'{"format": "ours", "version": "1"}', "format version '1'"),
        (b'{"format": "ours", "version": 0}', "format version 0"),
        (b'{"format": "ours", "version": 3}', "this package reads 1 to 2. Update lapwing"),
    ],
)
def test_a_foreign_or_damaged_manifest_is_refused(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(LapwingError, match=complaint):
        read_manifest(path, "ours", newest=2)


def test_a_good_manifest_reads_and_a_missing_or_huge_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(LapwingError, match="does not exist"):
        read_manifest(path, "ours", newest=2)
    write_json(path, {"format": "ours", "version": 2, "more": [1]})
    assert read_manifest(path, "ours", newest=2)["more"] == [1]
    monkeypatch.setattr("lapwing.files.MAX_MANIFEST_BYTES", 10)
    with pytest.raises(LapwingError, match="larger than any manifest"):
        read_manifest(path, "ours", newest=2)


class Exploit:
    """Unpickling this would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("mmap", [False, True])
def test_a_pickle_inside_an_array_file_is_refused_and_not_run(tmp_path: Path, mmap: bool) -> None:
    path, trace = tmp_path / "array.npy", tmp_path / "executed"
    np.save(path, np.array([Exploit(trace)], dtype=object), allow_pickle=True)
    with pytest.raises(LapwingError, match="cannot read"):
        read_array(path, mmap=mmap)
    assert not trace.exists()


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(
    "damage", ["missing", "folder", "empty", "foreign", "short", "archive", "broken archive", "huge"]
)
def test_an_array_file_that_is_none_of_ours_is_refused(tmp_path: Path, damage: str, mmap: bool) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.arange(100.0))
    content = path.read_bytes()
    if damage in ("missing", "folder"):
        path.unlink()
    if damage == "folder":
        path.mkdir()
    if damage == "empty":
        path.write_bytes(b"")
    if damage == "foreign":
        path.write_bytes(b"row,column\n1,2\n")
    if damage == "short":
        path.write_bytes(content[:-8])
    if damage == "archive":
        with path.open("wb") as stream:
            np.savez(stream, array=np.arange(3))
    if damage == "broken archive":
        path.write_bytes(b"PK\x03\x04" + bytes(100))
    if damage == "huge":
        path.write_bytes(content.replace(b"(100,), }          ", b"(10000000000000,), }"[:19]))
        assert path.read_bytes() != content
    with pytest.raises(LapwingError, match=r"array\.npy"):
        read_array(path, mmap=mmap)


@pytest.mark.parametrize("mask", [0x02, 0xFF])
@pytest.mark.parametrize("dtype", ["<f4", "|b1"])
def test_no_byte_of_an_array_file_can_change_unnoticed(tmp_path: Path, dtype: str, mask: int) -> None:
    path = tmp_path / "array.npy"
    array = np.random.default_rng(0).integers(0, 2, size=(3, 2)).astype(dtype)
    np.save(path, array)
    content = path.read_bytes()
    noticed = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= mask
        path.write_bytes(damaged)
        try:
            read = read_array(path, checksum=crc32(array))
        except LapwingError:
            noticed += 1
        else:  # blanks and the like, which mean nothing
            assert read.dtype == array.dtype
            np.testing.assert_array_equal(read, array)
    assert noticed > array.nbytes


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_an_array_that_grew_row_by_row_is_the_file_that_numpy_would_write(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    whole = np.random.default_rng(0).normal(size=(1234, *shape)).astype(np.float32)
    appender = ArrayAppender(tmp_path / "grown.npy", whole.dtype, shape)
    for begin in range(0, len(whole), 100):
        appender.append(whole[begin : begin + 100])
    appender.append(whole[:0])
    appender.close()
    assert appender.checksum == crc32(whole)
    read = read_array(tmp_path / "grown.npy", checksum=appender.checksum)
    assert read.dtype == whole.dtype
    np.testing.assert_array_equal(read, whole)
    np.save(tmp_path / "saved.npy", whole)
    assert (tmp_path / "grown.npy").read_bytes() == (tmp_path / "saved.npy").read_bytes()


@pytest.mark.parametrize("block", [np.zeros((1, 2)), np.zeros((1, 3), dtype=np.float32)])
def test_rows_of_another_type_or_shape_are_not_appended(tmp_path: Path, block: np.ndarray) -> None:
    appender = ArrayAppender(tmp_path / "grown.npy", np.dtype(np.float32), (2,))
    with pytest.raises(LapwingError, match="changed from float32"):
        appender.append(block)
    appender.abandon()


def test_the_checksum_knows_values_types_and_shapes_but_not_memory_order() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    others = [array + 1, array.reshape(3, 2), array.astype(">i4"), array.view(np.uint32), array.view(np.float32)]
    assert len({crc32(array), *map(crc32, others)}) == 6
    assert crc32(np.asfortranarray(array)) == crc32(array)


def test_a_folder_whose_name_no_system_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="cannot write to"):
        working_directory(tmp_path / ("x" * 5000), "manifest.json", ())
