"""A checkpoint is whole or noticed, belongs to one run, and is data."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, save

import lapwing as lw
from lapwing.errors import ArgumentError, CannotWriteError, DamagedFileError
from lapwing.storage.checkpoints import (
    _digest,
    checkpoint_files,
    newest_checkpoint,
    read_checkpoint,
    tree_arrays,
)
from lapwing.training.config import make_config
from lapwing.training.loop import Progress, Trained, _restored, _write, train
from lapwing.training.state import TrainState
from lapwing.training.task import Task, data_digest, prepare

SMALL: dict[str, Any] = {"dim": 2, "oversampling": 1, "hidden": (4,), "steps": 10, "log_every": 4}


@pytest.fixture(scope="module")
def task() -> Task:
    return prepare(make_config(**SMALL), lw.operator("GridMaze-7"), [0, 1], None, None)


@pytest.fixture(scope="module")
def state(task: Task) -> TrainState:
    return task.initial_state()


def at_step(state: TrainState, step: int) -> Trained:
    metrics = {"loss": np.array([0.1, 1.0 / 3.0], dtype=np.float32), "error": np.zeros(2, dtype=np.float32)}
    eigenvalues, seen = np.ones((2, 3), dtype=np.float32) / 3, [{"angle": 1.0 / step}, {"angle": 0.5}]
    history = [Progress(done, 10, metrics, eigenvalues, seen) for done in range(4, step + 1, 4)]
    return Trained(state, history, 1.5, False)


def written(folder: Path, reached: Trained, task: Task) -> Path:
    _write(folder, reached, task.identity())
    return checkpoint_files(folder)[0]


def newest(folder: Path, state: TrainState, task: Task) -> Trained | None:
    return newest_checkpoint(folder, lambda *content: _restored(*content, state, task.identity()))


def read(path: Path, state: TrainState, task: Task) -> Trained:
    return _restored(path, *read_checkpoint(path), state, task.identity())


def test_what_is_read_is_what_was_written_to_the_last_bit(task: Task, state: TrainState, tmp_path: Path) -> None:
    reached = at_step(state, 8)
    found = read(written(tmp_path, reached, task), task.initial_state(), task)
    before, after = tree_arrays(reached.state), tree_arrays(found.state)
    assert list(before) == list(after)
    assert any(".key" in name for name in before)
    for name in before:
        assert before[name].dtype == after[name].dtype
        np.testing.assert_array_equal(before[name], after[name])
    assert [line.row() for line in found.history] == [line.row() for line in reached.history]
    assert [line.by_seed for line in found.history] == [line.by_seed for line in reached.history]
    assert [(line.step, line.steps) for line in found.history] == [(4, 10), (8, 10)]
    assert (found.seconds, found.finished) == (1.5, False)


def test_the_last_two_are_kept(task: Task, state: TrainState, tmp_path: Path) -> None:
    for step in (4, 8, 12, 16):
        written(tmp_path, at_step(state, step), task)
    assert [path.name[5:15] for path in checkpoint_files(tmp_path)] == ["0000000016", "0000000012"]
    assert len(list(tmp_path.iterdir())) == 2


def two_checkpoints(folder: Path, task: Task, state: TrainState) -> tuple[Path, Path]:
    old, new = (written(folder, at_step(state, step), task) for step in (4, 8))
    return old, new


@pytest.mark.parametrize("damage", ["torn", "empty", "flipped", "longer", "folder", "renamed", "foreign"])
def test_a_damaged_one_is_said_aloud_and_the_one_before_it_used(
    task: Task, state: TrainState, tmp_path: Path, damage: str
) -> None:
    _, new = two_checkpoints(tmp_path, task, state)
    content = bytearray(new.read_bytes())
    if damage == "torn":
        new.write_bytes(content[: len(content) // 2])
    if damage == "empty":
        new.write_bytes(b"")
    if damage == "longer":
        new.write_bytes(bytes(content) + b"x")
    if damage == "flipped":
        content[-5] ^= 1
        new.write_bytes(content)
    if damage == "folder":
        new.unlink()
        new.mkdir()
    if damage == "renamed":
        new.rename(new.with_name(new.name.replace("0000000008-", "0000000009-")))
    if damage == "foreign":
        foreign = save({"weights": np.zeros(3)})
        new.unlink()
        (tmp_path / f"step-0000000008-{_digest(foreign)}.safetensors").write_bytes(foreign)
    with pytest.warns(lw.LapwingWarning, match="the one before it is used"):
        found = newest(tmp_path, state, task)
    assert found is not None
    assert found.history[-1].step == 4


def test_no_bit_of_a_checkpoint_can_change_unnoticed(task: Task, state: TrainState, tmp_path: Path) -> None:
    path = written(tmp_path, at_step(state, 4), task)
    content = path.read_bytes()
    for place in np.random.default_rng(0).integers(len(content), size=300):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(damaged)
        with pytest.raises(DamagedFileError):
            read(path, state, task)


def test_without_a_sound_one_learning_begins_at_the_beginning(task: Task, state: TrainState, tmp_path: Path) -> None:
    assert newest(tmp_path / "nowhere", state, task) is None
    (tmp_path / f"step-0000000004-{'0' * 32}.safetensors").write_bytes(b"nothing")
    with pytest.warns(lw.LapwingWarning, match="not the one in its name; it was the last, so learning starts over"):
        assert newest(tmp_path, state, task) is None


def test_damaged_ones_take_no_place_of_sound_ones(task: Task, state: TrainState, tmp_path: Path) -> None:
    for path in two_checkpoints(tmp_path, task, state):
        path.write_bytes(b"torn")
    with pytest.warns(lw.LapwingWarning) as said:
        assert newest(tmp_path, state, task) is None
    ends = ("the one before it is used", "it was the last, so learning starts over")
    assert [str(one.message).endswith(end) for one, end in zip(said, ends, strict=True)] == [True, True]
    again = written(tmp_path, at_step(state, 4), task)
    assert checkpoint_files(tmp_path) == [again]
    assert len(list(tmp_path.glob("damaged-step-*"))) == 2


def test_where_damaged_ones_cannot_be_moved_the_newest_is_kept_all_the_same(
    task: Task, state: TrainState, tmp_path: Path
) -> None:
    for step in (8, 9):
        (tmp_path / f"step-{step:010d}-{'0' * 32}.safetensors").write_bytes(b"torn")
    assert written(tmp_path, at_step(state, 4), task).exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"dim": 3}, "config.dim"),
        ({"learning_rate": 0.5}, "config.learning_rate"),
        ({"steps": 11}, "config.steps"),
        ({"seeds": [0, 2]}, "seeds"),
        ({"data": lw.operator("GridMaze-9")}, "data"),
    ],
)
def test_a_checkpoint_of_another_learning_is_refused_and_what_differs_is_named(
    task: Task, state: TrainState, tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    written(tmp_path, at_step(state, 4), task)
    options = {name: value for name, value in change.items() if name not in ("seeds", "data")}
    config = make_config(**{**SMALL, **options})
    other = prepare(config, change.get("data", task.data), change.get("seeds", [0, 1]), None, None)
    with pytest.raises(lw.LapwingError, match=f"another run: {named} was"):
        newest(tmp_path, other.initial_state(), other)


def forged(path: Path, arrays: dict[str, Any] | None = None, header: dict[str, str] | None = None) -> Path:
    """The same file with something else in it and a checksum that fits: made by hand, not by an accident."""
    with safe_open(path, framework="numpy") as opened:
        metadata = {**opened.metadata(), **(header or {})}
    content = save({**load(path.read_bytes()), **(arrays or {})}, metadata=metadata)
    target = path.with_name(f"step-0000000004-{_digest(content)}.safetensors")
    target.write_bytes(content)
    return target


@pytest.mark.parametrize(
    ("arrays", "header", "complaint"),
    [
        ({"state.step": np.zeros(7, dtype=np.int32)}, {}, r"\.step is int32 \(7,\), not int32 \(2,\)"),
        ({"state.step": np.zeros(2)}, {}, "is float64"),
        ({"state.objective_state.duals": np.full((2, 3, 3), np.nan, dtype=np.float32)}, {}, "is not finite"),
        ({"history.step": np.zeros(0, dtype=np.int64)}, {}, "history is incomplete"),
        ({}, {"version": "99"}, "format version '99'"),
        ({}, {"format": "other"}, "not a checkpoint"),
        ({}, {"record": "["}, "cannot be read"),
        ({}, {"record": "[" * 100_000}, "cannot be read"),
        ({}, {"record": "[1]"}, "holds no record"),
        ({}, {"record": "{}"}, "another run"),
        ({"history.eigenvalues": np.zeros((1, 3, 2), dtype=np.float32)}, {}, "history is incomplete"),
        ({"history.metrics.loss": np.zeros((1, 0), dtype=np.float32)}, {}, "another shape"),
    ],
)
def test_a_forged_checkpoint_is_a_clear_error(
    task: Task, state: TrainState, tmp_path: Path, arrays: dict[str, Any], header: dict[str, str], complaint: str
) -> None:
    path = forged(written(tmp_path, at_step(state, 4), task), arrays, header)
    with pytest.raises(lw.LapwingError, match=complaint):
        read(path, state, task)


@pytest.mark.parametrize("change", [{"steps": float("inf")}, {"seconds": 10**400}, {"by_seed": [[{"angle": 10**400}]]}])
def test_numbers_that_no_checkpoint_has_are_a_clear_error(
    task: Task, state: TrainState, tmp_path: Path, change: dict[str, Any]
) -> None:
    path = written(tmp_path, at_step(state, 4), task)
    with safe_open(path, framework="numpy") as opened:
        record = {**json.loads(opened.metadata()["record"]), **change}
    with pytest.raises(DamagedFileError, match="is missing or invalid"):
        read(forged(path, header={"record": json.dumps(record)}), state, task)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_under_the_name_of_a_checkpoint_is_not_waited_for(
    task: Task, state: TrainState, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"step-0000000300-{'0' * 32}.safetensors"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.warns(lw.LapwingWarning, match="it is a pipe or a device"):
        assert newest(tmp_path, state, task) is None


def test_another_version_of_a_library_is_said_aloud(task: Task, state: TrainState, tmp_path: Path) -> None:
    path = written(tmp_path, at_step(state, 4), task)
    with safe_open(path, framework="numpy") as opened:
        record = json.loads(opened.metadata()["record"])
    record["versions"]["jax"] = "0.0.1"
    with pytest.warns(lw.LapwingWarning, match="another version of jax"):
        read(forged(path, header={"record": json.dumps(record)}), state, task)


def test_a_digest_tells_data_apart_and_reads_large_data_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (lw.collect("GridMaze-7", steps=1000, seed=seed) for seed in (0, 1))
    assert data_digest(first) == data_digest(lw.collect("GridMaze-7", steps=1000, seed=0))
    digests = [data_digest(source) for source in (first, second, lw.operator("GridMaze-7"), lw.operator("GridMaze-9"))]
    assert len(set(digests)) == 4
    monkeypatch.setattr("lapwing.training.task.BLOCK_BYTES", 100)
    assert [data_digest(first), data_digest(second)] == digests[:2]


def test_a_full_disk_is_a_clear_error_and_leaves_the_last_good_checkpoint(
    task: Task, state: TrainState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = written(tmp_path, at_step(state, 4), task)

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWriteError, match="No space left on device"):
        written(tmp_path, at_step(state, 8), task)
    assert list(tmp_path.iterdir()) == [good]
    found = newest(tmp_path, state, task)
    assert found is not None
    assert found.history[-1].step == 4


@pytest.mark.slow
def test_checkpoints_are_not_mixed_with_other_files_and_leftovers_go(
    task: Task, state: TrainState, tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").touch()
    for folder in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(ArgumentError, match=r"thesis.tex"):
            train(state, task.source, 10, 4, folder=folder, identity=task.identity)
    (tmp_path / "thesis.tex").unlink()
    (tmp_path / ".step-0000000004-half").write_bytes(b"half")
    end = train(state, task.source, 10, 4, folder=tmp_path, identity=task.identity)
    assert end.history[-1].step == 10
    assert checkpoint_files(tmp_path)[0].name.startswith("step-0000000010")
    assert not list(tmp_path.glob(".step-*"))
