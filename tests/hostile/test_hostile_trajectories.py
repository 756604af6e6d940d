"""Hostile trajectories: refused with a message, nothing executed, nothing written."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import JSON_BOMBS, array_bombs, edit_json, forge_npy

import lapwing as lw
from lapwing.errors import LapwingError

pytestmark = pytest.mark.slow

Copied = Callable[[str], Path]
BOMBS = sorted(array_bombs(Path("unused")))


def refused(folder: Path, words: str | None = None, mmap: bool = False) -> None:
    with pytest.raises(LapwingError, match=words) as error:
        lw.Trajectories.load(folder, mmap=mmap)
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_a_hostile_manifest_is_refused(copied: Copied, bomb: str) -> None:
    folder = copied("trajectories-table")
    (folder / "trajectories.json").write_bytes(JSON_BOMBS[bomb])
    refused(folder, r"trajectories\.json")


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", ["observations", "offsets", "terminated", "ids"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_hostile_array_is_refused(copied: Copied, trace: Path, bomb: str, name: str, mmap: bool) -> None:
    folder = copied("trajectories-table")
    (folder / f"{name}.npy").write_bytes(array_bombs(trace)[bomb])
    refused(folder, rf"{name}\.npy", mmap)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 3},
        {"format": "lapwing-representation"},
        {"checksums": ...},
        {"checksums": {}},
        {"checksums": {"observations": 1, "offsets": 1, "terminated": 1, "truncated": 1, "../../precious": 1}},
        {"checksums": {"/etc/passwd": 1}},
        {"metadata": 3},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_a_hostile_field_is_refused(copied: Copied, changes: dict[str, Any]) -> None:
    folder = copied("trajectories-table")
    edit_json(folder / "trajectories.json", **changes)
    refused(folder)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("observations", np.full((11, 2), np.nan, dtype=np.float32), "NaN or infinity"),
        ("observations", np.zeros(11), "must be numbers of shape"),
        ("observations", np.zeros((11, 2), dtype=bool), "must be numbers of shape"),
        ("observations", np.zeros((0, 2)), "outside the table"),
        ("offsets", np.array([0, 2**62]), "ids must be"),
        ("offsets", np.array([0, 2**63 - 1, -(2**63)]), "must start at 0 and grow"),
        ("offsets", np.array([0, 5], dtype=np.uint64) - np.uint64(1), "must start at 0 and grow"),
        ("offsets", np.zeros((2, 2), dtype=np.int64), "no episode"),
        ("offsets", np.array([0.0, 5.0]), "no episode"),
        ("ids", np.full(110, 2**31 - 1, dtype=np.int32), "outside the table"),
        ("ids", np.zeros(110), "whole numbers"),
        ("terminated", np.zeros(10, dtype=np.int8), "one boolean per episode"),
        ("truncated", np.zeros((10, 1), dtype=bool), "one boolean per episode"),
    ],
)
def test_arrays_that_are_not_what_they_should_be_are_refused(
    copied: Copied, name: str, array: np.ndarray, words: str
) -> None:
    folder = copied("trajectories-table")
    forge_npy(folder, name, array)
    refused(folder, words)
    refused(folder, words, mmap=True)


def test_a_model_is_not_taken_for_trajectories(copied: Copied) -> None:
    refused(copied("model-lookup"), "holds a representation, not trajectories")
    with pytest.raises(LapwingError, match="must be a path"):
        lw.Trajectories.load(3)  # type: ignore[arg-type]


def test_arrays_of_other_trajectories_are_noticed(copied: Copied) -> None:
    table, rows = copied("trajectories-table"), copied("trajectories-rows")
    (table / "offsets.npy").write_bytes((rows / "offsets.npy").read_bytes())
    refused(table, "checksum does not match")


WORLDS: list[Any] = [
    "a string",
    [1],
    3,
    {"kind": "grid"},
    {"kind": "grid", "name": 3, "layout": "   ", "observation": "xy", "slip": 0.0},
    {"kind": "grid", "name": "x", "layout": "<script>", "observation": "xy", "slip": 0.0},
    {"kind": "grid", "name": "x", "layout": ["   "], "observation": "xy", "slip": 0.0},
    {"kind": "grid", "name": "x", "layout": "   ", "observation": ["xy"], "slip": 0.0},
    {"kind": "grid", "name": "x", "layout": "   ", "observation": "xy", "slip": "0"},
    {"kind": "grid", "name": "x", "layout": "   ", "observation": "xy", "slip": 0.0, "policy": [[10**90] * 4] * 3},
    {"kind": "grid", "name": "x", "layout": "   ", "observation": "xy", "slip": 0.0, "policy": "../policy.npy"},
    {"kind": "box", "name": "x", "sides": [1.0] * 1000, "step": 0.1},
    {"kind": "box", "name": "x", "sides": "12", "step": 0.1},
    {"kind": "box", "name": "x", "sides": [0.0], "step": 0.1},
    {"kind": "box", "name": "x", "sides": [1.0], "step": None},
    {"kind": ["grid"]},
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: str(world)[:70])
def test_a_hostile_world_is_an_error_in_words_or_no_world(copied: Copied, run: Any, world: Any) -> None:
    folder = copied("trajectories-table")
    edit_json(folder / "trajectories.json", metadata={"world": world})
    data = lw.Trajectories.load(folder)
    with suppress(LapwingError):
        model = lw.solve(data, 2)
        assert "<script>" not in model._repr_html_()
        assert "LaplacianRepresentation(" in repr(model)
    result = run("solve trajectories-table --dim 2 --out run")
    # The words of an error are one line; notes on the data may stand beside a run that went well.
    assert result.code in (0, 3) or (result.code == 1 and result.err.count("\n") == 1)
    assert (folder.parent / "run").exists() is (result.code in (0, 3))


def test_on_the_command_line_it_is_one_line_and_exit_code_1(copied: Copied, trace: Path, run: Any) -> None:
    folder = copied("trajectories-table")
    (folder / "ids.npy").write_bytes(array_bombs(trace)["a pickle inside"])
    for line in ("audit", "solve", "learn"):
        result = run(f"{line} trajectories-table")
        assert result.code == 1
        assert result.err.count("\n") == 1


def test_links_in_a_folder_are_replaced_with_it_and_what_they_point_to_stays(copied: Copied, place: Path) -> None:
    folder = copied("trajectories-table")
    outside = place.parent.parent / "precious.txt"
    (folder / "ids.npy").unlink()
    os.symlink(outside, folder / "ids.npy")
    refused(folder, r"ids\.npy")
    lw.collect("GridMaze-7", steps=20, seed=0, out=folder)
    assert not (folder / "ids.npy").is_symlink()
    assert json.loads((folder / "trajectories.json").read_text())["version"] == 2
