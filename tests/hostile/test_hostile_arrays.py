"""Hostile array files, wherever one is read: refused with a message, nothing executed, nothing allocated."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import array_bombs, saved

from lapwing.errors import LapwingError
from lapwing.storage.reading import read_array

pytestmark = pytest.mark.slow

BOMBS = sorted(array_bombs(Path("unused")))


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_hostile_array_is_refused(place: Path, trace: Path, bomb: str, mmap: bool) -> None:
    path = place / "array.npy"
    path.write_bytes(array_bombs(trace)[bomb])
    with pytest.raises(LapwingError, match=r"array\.npy") as error:
        read_array(path, mmap=mmap)
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)
    assert [entry.name for entry in place.iterdir()] == ["array.npy"]


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize(
    "line",
    ["solve array.npy", "solve GridMaze-7 --policy array.npy", "collect GridMaze-7 --steps 10 --policy array.npy"],
)
def test_on_the_command_line_it_is_one_line_exit_code_1_and_no_file(
    place: Path, trace: Path, run: Any, line: str, bomb: str
) -> None:
    (place / "array.npy").write_bytes(array_bombs(trace)[bomb])
    result = run(line)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "array.npy" in result.err
    assert [entry.name for entry in place.iterdir()] == ["array.npy"]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.full((3, 3), np.nan), "finite numbers"),
        (np.full((3, 3), np.inf), "finite numbers"),
        (np.zeros((3, 4)), "is square"),
        (np.zeros(3), "square|matrix"),
        (np.zeros((0, 0)), "not empty"),
        (np.zeros((2, 2, 2)), "square|matrix"),
        (np.array(1.0), "square|matrix"),
        (np.full((3, 3), -1.0), "at least 0"),
        (np.full((3, 3), 7, dtype=np.uint8), "sums to"),
    ],
)
def test_a_matrix_of_nonsense_is_refused(place: Path, run: Any, array: np.ndarray, words: str) -> None:
    (place / "matrix.npy").write_bytes(saved(array))
    result = run("solve matrix.npy --dim 2")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert any(word in result.err for word in words.split("|"))


@pytest.mark.parametrize("array", [np.zeros((11, 4)), np.full((11, 4), np.nan), np.zeros(44), np.ones((10, 4)) / 4])
def test_a_policy_of_nonsense_is_refused(place: Path, run: Any, array: np.ndarray) -> None:
    (place / "policy.npy").write_bytes(saved(array))
    result = run("solve GridMaze-7 --policy policy.npy")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "policy" in result.err


@pytest.mark.parametrize("dtype", ["<f2", ">f8", ">i4", "|b1", "<u8", "<f4"])
def test_plain_numbers_of_any_size_and_order_are_read_as_what_they_are(place: Path, dtype: str) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    (place / "array.npy").write_bytes(saved(array))
    found = read_array(place / "array.npy")
    np.testing.assert_array_equal(found, array)
    assert found.dtype.isnative


def test_another_machines_byte_order_is_not_memory_mapped(place: Path) -> None:
    (place / "array.npy").write_bytes(saved(np.arange(3.0).astype(">f8")))
    with pytest.raises(LapwingError, match="without memory mapping"):
        read_array(place / "array.npy", mmap=True)


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "device"])
def test_what_is_no_file_is_refused_at_once(place: Path, kind: str) -> None:
    path = place / "array.npy"
    make = {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "loop": lambda: path.symlink_to(path)}
    make.get(kind, lambda: path.symlink_to("/dev/zero"))()
    with pytest.raises(LapwingError, match="cannot read"):
        read_array(path)


def test_a_file_larger_than_memory_is_not_read_at_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place / "array.npy"
    path.write_bytes(saved(np.zeros(100)))
    monkeypatch.setattr("lapwing.storage.reading.memory_bytes", lambda: 500)
    assert len(read_array(path, mmap=True)) == 100
    with pytest.raises(LapwingError, match="memory-map it"):
        read_array(path)
