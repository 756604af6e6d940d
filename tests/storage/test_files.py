"""Files are whole or absent."""

import errno
import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lapwing.errors import CannotWriteError, LapwingError
from lapwing.storage.files import ArrayAppender, replaced_file, write_array, write_bytes, write_json
from lapwing.storage.reading import crc32, read_array, read_record


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


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_an_array_that_grew_row_by_row_is_the_file_that_numpy_would_write(
    tmp_path: Path, shape: tuple[int, ...]
) -> None:
    whole = np.random.default_rng(0).normal(size=(1234, *shape)).astype(np.float32)
    appender = ArrayAppender(tmp_path / "grown.npy", whole.dtype, shape)
    for begin in range(0, len(whole), 100):
        appender.append(whole[begin : begin + 100])
    appender.append(whole[:0])
    checksum = appender.close()
    assert checksum == crc32(whole)
    read = read_array(tmp_path / "grown.npy", checksum=checksum)
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


@contextmanager
def full_disk(most: int) -> Iterator[None]:
    """The system refuses files of more bytes, as a full disk does: at the write, or only when the file is closed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("numbers", [20, 5000])
def test_a_full_disk_is_noticed_whatever_the_size_of_the_array(tmp_path: Path, numbers: int) -> None:
    target = tmp_path / "array.npy"
    write_array(target, np.arange(3.0))
    with full_disk(most=128 + 8 * numbers - 1), pytest.raises(LapwingError, match=r"array.npy: .*free some space"):
        write_array(target, np.arange(float(numbers)))
    np.testing.assert_array_equal(read_array(target), np.arange(3.0))
    with full_disk(most=5), pytest.raises(LapwingError, match="free some space"):
        write_bytes(tmp_path / "model.safetensors", bytes(6))
    assert entries(tmp_path) == ["array.npy"]


@pytest.mark.parametrize("array", [np.float32(3), np.arange(6).reshape(2, 3).T, np.zeros((0, 4)), np.array([True])])
def test_a_written_array_is_the_file_that_numpy_would_write(tmp_path: Path, array: np.ndarray) -> None:
    checksum = write_array(tmp_path / "ours.npy", array)
    np.save(tmp_path / "numpys.npy", np.asarray(array, order="C"))
    assert (tmp_path / "ours.npy").read_bytes() == (tmp_path / "numpys.npy").read_bytes()
    assert checksum == crc32(np.asarray(array))


@pytest.mark.parametrize("array", [np.array([{}]), np.array(["text"]), np.array([1j]), np.zeros(1, dtype="f4,i4")])
def test_only_plain_numbers_are_written(tmp_path: Path, array: np.ndarray) -> None:
    with pytest.raises(LapwingError, match="not plain numbers"):
        write_array(tmp_path / "array.npy", array)
    assert entries(tmp_path) == []


def test_half_a_character_in_a_record_does_not_make_it_unreadable(tmp_path: Path) -> None:
    write_json(tmp_path / "provenance.json", {"command": ["data-\udcff", "\U0001f426"]})
    assert read_record(tmp_path / "provenance.json") == {"command": ["data-?", "\U0001f426"]}


def test_a_full_disk_while_rows_are_added_is_named(tmp_path: Path) -> None:
    appender = ArrayAppender(tmp_path / "rows.npy", np.dtype(np.float64), (4,))
    with full_disk(most=5000), pytest.raises(CannotWriteError, match=r"rows.npy: .*free some space"):
        appender.append(np.zeros((50_000, 4)))
    appender.abandon()
