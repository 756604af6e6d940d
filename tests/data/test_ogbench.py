"""Data sets of OGBench: its files in blocks, and the arrays that its own loader makes of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lapwing as lw
from lapwing.data import trajectories as container
from lapwing.errors import ArgumentError, DamagedFileError, DataError, UnknownNameError

LENGTHS = (4, 1, 7, 2)

Arrays = dict[str, NDArray[Any]]


def data_set(kind: type = np.float32, shape: tuple[int, ...] = (3,), lengths: tuple[int, ...] = LENGTHS) -> Arrays:
    """Arrays as OGBench's scripts write them: an action in every row, 1 at the last row of each trajectory."""
    rng = np.random.default_rng(0)
    rows = sum(lengths)
    terminals = np.zeros(rows, dtype=bool)
    terminals[np.cumsum(lengths) - 1] = True
    return {
        "observations": (100 * rng.random((rows, *shape))).astype(kind),
        "actions": rng.normal(size=(rows, 2)).astype(np.float32),
        "terminals": terminals,
        "qpos": rng.normal(size=(rows, 5)).astype(np.float32),
        "qvel": rng.normal(size=(rows, 4)).astype(np.float32),
    }


def written(folder: Path, arrays: Arrays, compressed: bool = True) -> Path:
    path = folder / "pointmaze-test-v0.npz"
    (np.savez_compressed if compressed else np.savez)(path, **arrays)  # type: ignore[arg-type]
    return path


def regular(arrays: Arrays) -> Arrays:
    """What ``ogbench.load_dataset`` makes of a file: rows are transitions."""
    inside = ~arrays["terminals"]
    after = np.append(False, inside[:-1])
    ends = np.append(arrays["terminals"][1:], True)
    return {
        "observations": arrays["observations"][inside],
        "next_observations": arrays["observations"][after],
        "actions": arrays["actions"][inside],
        "terminals": ends[inside].astype(np.float32),
    }


def compact(arrays: Arrays) -> Arrays:
    """The same with ``compact_dataset=True``: the last two rows of each trajectory are marked."""
    ends = arrays["terminals"].astype(np.float32)
    return arrays | {"valids": 1.0 - ends, "terminals": np.minimum(ends + np.append(ends[1:], 1.0), 1.0)}


def assert_is_the_data_set(data: lw.Trajectories, arrays: Arrays, key: str = "observations") -> None:
    """Trajectories of two states or more, each with its actions."""
    ends = np.cumsum(LENGTHS)
    pieces = [(end - length, end) for end, length in zip(ends, LENGTHS, strict=True) if length > 1]
    assert data.num_episodes == len(pieces)
    for number, (begin, end) in enumerate(pieces):
        np.testing.assert_array_equal(data.episode(number), arrays[key][begin:end])
    assert data.actions is not None
    wanted = np.concatenate([arrays["actions"][begin : end - 1] for begin, end in pieces])
    np.testing.assert_array_equal(data.actions, wanted)
    assert data.truncated.all()
    assert not data.terminated.any()


@pytest.mark.parametrize("block", [1, 40, 1 << 22])
@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("to_disk", [True, False])
def test_a_file_is_read_in_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, compressed: bool, to_disk: bool
) -> None:
    monkeypatch.setattr("lapwing.data.loading.row_blocks", lambda *a: container.row_blocks(*a, block_bytes=block))
    arrays = data_set()
    data = lw.from_ogbench(written(tmp_path, arrays, compressed), out=tmp_path / "out" if to_disk else None)
    assert_is_the_data_set(data, arrays)
    assert data.metadata["world"] == {"kind": "ogbench", "name": "pointmaze-test-v0"}


def test_images_stay_bytes(tmp_path: Path) -> None:
    arrays = data_set(np.uint8, (8, 8, 3))
    data = lw.from_ogbench(written(tmp_path, arrays))
    assert_is_the_data_set(data, arrays)
    assert data.observations.dtype == np.uint8


def test_the_arrays_of_a_file_give_the_same_as_the_file(tmp_path: Path) -> None:
    arrays = data_set()
    assert_is_the_data_set(lw.from_ogbench(arrays), arrays)
    with np.load(written(tmp_path, arrays)) as archive:
        assert_is_the_data_set(lw.from_ogbench(archive), arrays)


@pytest.mark.parametrize("form", [regular, compact])
@pytest.mark.parametrize("as_file", [True, False])
def test_what_its_own_loader_makes_gives_the_same_transitions(tmp_path: Path, form: Any, as_file: bool) -> None:
    arrays = data_set()
    made = form(arrays)
    assert_is_the_data_set(lw.from_ogbench(written(tmp_path, made) if as_file else made), arrays)


def test_rewards_are_kept(tmp_path: Path) -> None:
    arrays = data_set()
    arrays["rewards"] = np.arange(sum(LENGTHS), dtype=np.float32)
    for source in (arrays, written(tmp_path, arrays)):
        np.testing.assert_array_equal(lw.from_ogbench(source).rewards, [0, 1, 2, 5, 6, 7, 8, 9, 10, 12])


def test_other_keys_can_be_observed(tmp_path: Path) -> None:
    arrays = data_set()
    for source in (arrays, written(tmp_path, arrays)):
        assert_is_the_data_set(lw.from_ogbench(source, keys="qpos"), arrays, "qpos")
        both = lw.from_ogbench(source, keys=["qpos", "qvel"])
        assert both.keys == ("qpos", "qvel")
        assert_is_the_data_set(both.select("qvel"), arrays, "qvel")


def test_observations_that_repeat_become_a_table(tmp_path: Path) -> None:
    arrays = data_set(lengths=(500, 500))
    arrays["observations"] = arrays["observations"][np.arange(1000) % 7]
    data = lw.from_ogbench(written(tmp_path, arrays))
    assert data.has_table
    assert len(data.observations) == 7


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="qpos"):
        lw.from_ogbench(written(tmp_path, data_set()), keys="qps")


def test_a_key_of_no_next_observations_is_refused() -> None:
    with pytest.raises(ArgumentError, match="next_observations are those of observations"):
        lw.from_ogbench(regular(data_set()) | {"qpos": np.zeros((10, 2))}, keys="qpos")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("terminals"), "has no terminals"),
        (lambda arrays: arrays.update(actions=arrays["actions"][:-1]), "of actions"),
        (lambda arrays: arrays.update(terminals=np.zeros(14)), "mark the end of no trajectory"),
        (lambda arrays: arrays.update(terminals=np.ones(14)), "no (trajectory|episode) has two states"),
        (lambda arrays: arrays["observations"].__setitem__((5, 0), np.nan), "NaN or infinity"),
    ],
)
def test_what_is_not_a_data_set_is_refused_and_nothing_is_written(tmp_path: Path, change: Any, message: str) -> None:
    arrays = data_set()
    change(arrays)
    for source in (arrays, written(tmp_path, arrays)):
        with pytest.raises(DataError, match=message):
            lw.from_ogbench(source, out=tmp_path / "out")
        assert not (tmp_path / "out").exists()


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    arrays = data_set()
    arrays["observations"] = np.array([object()] * sum(LENGTHS))
    with pytest.raises(DamagedFileError, match="not plain numbers"):
        lw.from_ogbench(written(tmp_path, arrays))


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "missing", "folder"])
def test_a_damaged_file_is_named(tmp_path: Path, damage: str, compressed: bool) -> None:
    path = written(tmp_path, data_set(shape=(50,)), compressed)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[900] ^= 255
        path.write_bytes(content)
    elif damage == "text":
        path.write_text("not an archive")
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
    with pytest.raises(DamagedFileError, match=r"pointmaze-test-v0\.npz"):
        lw.from_ogbench(path, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
