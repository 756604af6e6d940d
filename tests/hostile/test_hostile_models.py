"""Hostile models: refused with a message, nothing executed, nothing written."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import JSON_BOMBS, edit_json, forge_arrays, forge_weights, tensor_bombs

import lapwing as lw
from lapwing.errors import LapwingError

pytestmark = pytest.mark.slow

Copied = Callable[[str], Path]
MODELS = ["model-lookup", "model-learned", "model-box"]


def refused(folder: Path, words: str | None = None) -> None:
    """Loading gives one error message, and leaves the folder as it was."""
    before = {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()}
    with pytest.raises(LapwingError, match=words) as error:
        lw.load(folder)
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)
    assert {path.name: path.lstat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_a_hostile_manifest_is_refused(copied: Copied, bomb: str) -> None:
    folder = copied("model-lookup")
    (folder / "model.json").write_bytes(JSON_BOMBS[bomb])
    refused(folder, r"model\.json")


@pytest.mark.parametrize("bomb", tensor_bombs())
def test_hostile_weights_are_refused_even_with_the_right_checksum(copied: Copied, bomb: str) -> None:
    folder = copied("model-lookup")
    forge_weights(folder, tensor_bombs()[bomb])
    refused(folder)


FIELDS: list[dict[str, Any]] = [
    {"version": 99},
    {"version": True},
    {"format": "lapwing-trajectories"},
    {"dim": ...},
    {"dim": -1},
    {"dim": 10**18},
    {"dim": 2.0},
    {"dim": True},
    {"dim": [3]},
    {"definition": "__import__('os').getpid()"},
    {"definition": "truncated(0.9, 1e12)"},
    {"definition": "successor(nan)"},
    {"definition": "x" * 100_000},
    {"definition": {}},
    {"exact": "yes"},
    {"exact": 1},
    {"orthonormality_error": -1.0},
    {"orthonormality_error": "nan"},
    {"next_mu": "inf"},
    {"checksum": None},
    {"checksum": "0"},
    {"checksum": 1.5},
    {"encoder": ...},
    {"encoder": []},
    {"encoder": {"kind": "lookup"}},
    {"encoder": {"kind": "os:system", "config": {}}},
    {"encoder": {"kind": "rotated", "config": {}}},
    {"encoder": {"kind": "rotated", "config": {"inner": {"kind": "rotated", "config": {}}}}},
    {"encoder": {"kind": "lookup", "config": [1]}},
    {"metadata": "text"},
    {"metadata": [1]},
]


@pytest.mark.parametrize("changes", FIELDS, ids=lambda changes: str(changes)[:60])
def test_a_hostile_field_is_refused(copied: Copied, changes: dict[str, Any]) -> None:
    folder = copied("model-lookup")
    edit_json(folder / "model.json", **changes)
    refused(folder)


NAN, INFINITE = np.full(3, np.nan), np.array([0.0, np.inf, 1.0])


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("model-lookup", {"mu": NAN}),
        ("model-lookup", {"mu": INFINITE}),
        ("model-lookup", {"mu": np.zeros(3, dtype=np.float32)}),
        ("model-lookup", {"mu": np.zeros(3, dtype=np.int64)}),
        ("model-lookup", {"mu": np.zeros((3, 1))}),
        ("model-lookup", {"mu": np.zeros(())}),
        ("model-lookup", {"residuals": np.full(3, -1.0)}),
        ("model-lookup", {"residuals": np.zeros((3, 3))}),
        ("model-lookup", {"code": np.zeros(3)}),
        ("model-lookup", {"encoder__values": np.full((11, 3), np.nan)}),
        ("model-lookup", {"encoder__values": np.zeros((11, 3), dtype=np.float16)}),
        ("model-lookup", {"encoder__values": np.zeros((0, 3))}),
        ("model-lookup", {"encoder__weights": np.zeros(11)}),
        ("model-lookup", {"encoder__weights": np.full(11, -1 / 11)}),
        ("model-lookup", {"encoder__weights": np.full((11, 1), 1 / 11)}),
        ("model-lookup", {"encoder__observations": np.full((11, 2), np.inf)}),
        ("model-lookup", {"encoder__observations": np.zeros(11)}),
        ("model-box", {"encoder__modes": np.zeros((4, 2))}),
        ("model-box", {"encoder__modes": np.full((4, 2), -1)}),
        ("model-box", {"encoder__modes": np.zeros((4, 0), dtype=np.int64)}),
        ("model-box", {"encoder__modes": np.zeros((4, 70_000), dtype=np.int64)}),
        ("model-box", {"encoder__modes": None}),
        ("model-learned", {"encoder__matrix": None}),
        ("model-learned", {"encoder__matrix": np.zeros((5, 3), dtype=np.float32)}),
        ("model-learned", {"encoder__matrix": np.zeros((4, 3))}),
        ("model-learned", {"encoder__matrix": np.full((5, 3), np.nan)}),
        ("model-learned", {"encoder__inner.inputs.scale.array": None}),
        ("model-learned", {"encoder__inner.inputs.scale.array": np.zeros(2, dtype=np.float32)}),
        ("model-learned", {"encoder__inner.network.layers.0.weight": None}),
        ("model-learned", {"encoder__inner.network.layers.0.weight": np.full((2, 8), np.nan, np.float32)}),
        ("model-learned", {"encoder__inner.network.layers.0.weight": np.zeros((2, 8))}),
        ("model-learned", {"encoder__inner.network.layers.0.weight": np.zeros((2, 9), np.float32)}),
        ("model-learned", {"mu_errors": np.array([0.0, np.nan, 0.0])}),
        ("model-learned", {"operator_values": np.zeros(9)}),
    ],
)
def test_arrays_that_are_not_what_they_should_be_are_refused(
    copied: Copied, name: str, changes: dict[str, Any]
) -> None:
    folder = copied(name)
    forge_arrays(folder, **changes)
    refused(folder)


def test_an_angle_or_a_residual_that_is_not_known_is_no_damage_and_never_trusted(copied: Copied) -> None:
    folder = copied("model-learned")
    forge_arrays(folder, angles=np.full(3, np.inf), residuals=np.full(3, np.nan), data_angles=np.full(3, np.nan))
    assert set(lw.load(folder).certificate().verdicts) == {"not converged"}


@pytest.mark.parametrize(
    "config",
    [
        {"hidden": [10**9]},
        {"hidden": [10**18, 10**18]},
        {"hidden": [8] * 100_000},
        {"hidden": "8"},
        {"hidden": [8.5]},
        {"hidden": [-8]},
        {"observation_shape": [10**6, 10**6]},
        {"observation_shape": [2, 1]},
        {"observation_shape": "ab"},
        {"dim": 10**12},
        {"dim": True},
        {"key": 3},
        {"statistics": None},
        {"colour": "red"},
    ],
    ids=lambda config: str(config)[:50],
)
def test_a_network_that_boasts_is_refused_before_anything_is_allocated(copied: Copied, config: dict[str, Any]) -> None:
    folder = copied("model-learned")
    encoder = json.loads((folder / "model.json").read_text())["encoder"]
    encoder["config"]["inner"]["config"].update(config)
    edit_json(folder / "model.json", encoder=encoder)
    refused(folder)


def test_a_kind_of_network_that_needs_code_is_refused(copied: Copied) -> None:
    folder = copied("model-learned")
    inner = {"kind": "own", "config": {"module": "os.system"}}
    edit_json(folder / "model.json", encoder={"kind": "rotated", "config": {"inner": inner}})
    refused(folder, "files hold no code")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["folder", "loop", "pipe", "nothing", "elsewhere"])
def test_what_is_no_file_in_place_of_one_is_refused(copied: Copied, name: str, kind: str) -> None:
    path = copied("model-lookup") / name
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "elsewhere":
        path.symlink_to("/dev/zero")
    refused(path.parent)


def test_files_of_another_model_or_of_trajectories_are_not_mixed_up(copied: Copied) -> None:
    one, other = copied("model-lookup"), copied("model-box")
    (one / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    refused(one, "belongs to another")
    refused(copied("trajectories-table"), "holds trajectories, not a representation")
    (other / "model.json").write_bytes((copied("trajectories-rows") / "trajectories.json").read_bytes())
    refused(other, "is not a lapwing-representation manifest")


def test_weights_larger_than_memory_are_not_read(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.storage.reading.memory_bytes", lambda: 500)
    refused(copied("model-lookup"), "more than the 500 that it may have")


@pytest.mark.parametrize(
    "line", ["score model-lookup", "report model-lookup", "plot model-lookup", "solve model-lookup"]
)
def test_on_the_command_line_it_is_one_line_and_exit_code_1(copied: Copied, run: Any, line: str) -> None:
    forge_arrays(copied("model-lookup"), mu=NAN)
    result = run(line)
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
