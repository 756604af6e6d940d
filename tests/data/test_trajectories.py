"""The container: true boundaries, honest counts, and files that are whole or refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lapwing as lw
from lapwing.data import trajectories as container
from lapwing.data.trajectories import MANIFEST, Trajectories
from lapwing.errors import ArgumentError, LapwingError

MakeRagged = Callable[..., Trajectories]

lengths_in_states = st.lists(st.integers(1, 9), min_size=1, max_size=8).filter(lambda states: max(states) > 1)


def naive_counts(data: Trajectories, gap: int) -> np.ndarray:
    """Counting with two plain loops, one over episodes and one over time."""
    assert data.ids is not None
    counts = np.zeros((len(data.observations), len(data.observations)))
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        episode = data.ids[begin:end].tolist()
        for time in range(len(episode) - gap):
            counts[episode[time], episode[time + gap]] += 1
    return counts


def same_bits(first: Trajectories, second: Trajectories) -> bool:
    pairs = [(getattr(first, name), getattr(second, name)) for name in container.ARRAYS]
    return first.metadata == second.metadata and all(
        (a is None and b is None) or (a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
        for a, b in pairs
    )


@given(states=lengths_in_states, gap=st.integers(0, 10), seed=st.integers(0, 5))
def test_counts_equal_two_plain_loops(make_ragged: MakeRagged, states: list[int], gap: int, seed: int) -> None:
    data = make_ragged(states, seed=seed)
    np.testing.assert_array_equal(data.counts(gap).toarray(), naive_counts(data, gap))


@pytest.mark.parametrize("chunk", [1, 2, 7, 50])
@pytest.mark.parametrize("gap", [1, 3])
def test_counts_do_not_depend_on_the_size_of_chunks(
    make_ragged: MakeRagged, monkeypatch: pytest.MonkeyPatch, chunk: int, gap: int
) -> None:
    data = make_ragged([5, 1, 9, 2, 30, 4, 4], seed=3)
    chunks = list(data.pair_positions(gap, chunk=chunk))
    assert len(chunks) > 1
    np.testing.assert_array_equal(np.concatenate(chunks), next(data.pair_positions(gap, chunk=10**6)))
    pair_positions = Trajectories.pair_positions
    monkeypatch.setattr(Trajectories, "pair_positions", lambda self, lag: pair_positions(self, lag, chunk))
    np.testing.assert_array_equal(data.counts(gap).toarray(), naive_counts(data, gap))


@given(states=lengths_in_states, gap=st.integers(0, 10), chunk=st.integers(1, 30))
def test_pairs_are_all_those_inside_an_episode_and_never_one_across(
    make_ragged: MakeRagged, states: list[int], gap: int, chunk: int
) -> None:
    data = make_ragged(states)
    owner = np.repeat(np.arange(len(states)), states)
    everywhere = np.arange(len(owner) - gap) if gap < len(owner) else np.empty(0, dtype=int)
    inside = everywhere[owner[everywhere] == owner[everywhere + gap]]
    np.testing.assert_array_equal(np.concatenate(list(data.pair_positions(gap, chunk))), inside)


def test_sizes_lengths_and_episodes_are_those_that_went_in(make_ragged: MakeRagged) -> None:
    data = make_ragged([3, 1, 2])
    assert (data.num_episodes, data.num_states, data.num_transitions) == (3, 6, 3)
    assert data.lengths.tolist() == [2, 0, 1]
    assert data.observation_shape == (3,)
    assert data.ids is not None
    np.testing.assert_array_equal(data.episode(2), data.observations[data.ids[4:6]])
    np.testing.assert_array_equal(data.visits(), np.bincount(data.ids, minlength=4))
    assert repr(data) == "Trajectories(3 transitions in 3 episodes, observations (3,) float32, 4 distinct)"


def test_data_without_a_table_have_episodes_but_no_counts(make_ragged: MakeRagged) -> None:
    table, rows = make_ragged([3, 4]), make_ragged([3, 4], tabulated=False)
    assert table.has_table
    assert not rows.has_table
    np.testing.assert_array_equal(rows.episode(1), table.episode(1))
    assert "not tabulated" in repr(rows)
    for refused in (rows.counts, rows.visits):
        with pytest.raises(LapwingError, match="no table of them"):
            refused()


def test_a_negative_gap_is_refused(make_ragged: MakeRagged) -> None:
    with pytest.raises(LapwingError, match="a whole number of at least 0"):
        make_ragged([3]).counts(-1)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("tabulated", [False, True])
def test_what_is_saved_loads_bit_for_bit(make_ragged: MakeRagged, tmp_path: Path, tabulated: bool, mmap: bool) -> None:
    data = make_ragged([5, 1, 9], tabulated=tabulated)
    folder = data.save(tmp_path / "runs" / "data")
    loaded = Trajectories.load(folder, mmap=mmap)
    assert same_bits(loaded, data)
    assert isinstance(loaded.observations, np.memmap) is mmap
    np.testing.assert_array_equal(loaded.episode(2), data.episode(2))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float64])
def test_any_type_of_number_survives_saving(tmp_path: Path, dtype: type) -> None:
    flags = np.array([True])
    observations = np.arange(24, dtype=dtype).reshape(4, 2, 3)
    data = Trajectories(observations, np.array([0, 4]), flags, ~flags)
    assert same_bits(Trajectories.load(data.save(tmp_path / "data")), data)


def test_memory_mapped_data_can_be_saved_over_themselves(make_ragged: MakeRagged, tmp_path: Path) -> None:
    data = make_ragged([5, 9])
    folder = data.save(tmp_path / "data")
    Trajectories.load(folder, mmap=True).save(folder)
    assert same_bits(Trajectories.load(folder), data)


def test_saving_replaces_an_older_data_set_whole(make_ragged: MakeRagged, tmp_path: Path) -> None:
    make_ragged([5, 9]).save(tmp_path / "data")
    rows = make_ragged([4], tabulated=False)
    rows.save(tmp_path / "data")
    assert same_bits(Trajectories.load(tmp_path / "data"), rows)
    assert not (tmp_path / "data" / "ids.npy").exists()


def test_a_folder_with_other_files_is_left_alone(make_ragged: MakeRagged, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(LapwingError, match="holds other files"):
        make_ragged([5]).save(tmp_path)
    folder = make_ragged([5]).save(tmp_path / "data")
    (folder / "model.safetensors").write_text("precious")
    with pytest.raises(LapwingError, match=r"model\.safetensors"):
        make_ragged([5]).save(folder)
    assert (folder / "model.safetensors").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "thesis.tex"]


@pytest.mark.parametrize("successes", [0, 2, 4])
def test_a_failing_save_leaves_the_old_data_and_no_trace(
    make_ragged: MakeRagged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, successes: int
) -> None:
    old = make_ragged([5, 9])
    folder = old.save(tmp_path / "data")
    calls: list[Path] = []

    def failing(path: Path, *arguments: Any, **options: Any) -> int:
        calls.append(path)
        if len(calls) > successes:
            raise OSError("no space left on device")
        return original(path, *arguments, **options)

    original = container.write_array
    with monkeypatch.context() as patch:
        patch.setattr(container, "write_array", failing)
        for target in (folder, tmp_path / "new"):
            calls.clear()
            with pytest.raises(OSError, match="no space left"):
                make_ragged([7], seed=1).save(target)
    assert same_bits(Trajectories.load(folder), old)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_metadata_that_json_cannot_hold_leave_no_trace(make_ragged: MakeRagged, tmp_path: Path) -> None:
    data = replace(make_ragged([5]), metadata={"value": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        data.save(tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["observations", "offsets", "terminated", "truncated", "ids"])
@pytest.mark.parametrize("damage", ["flipped", "short", "missing", "archive", "pickle", "swapped"])
def test_a_damaged_array_is_noticed(make_ragged: MakeRagged, tmp_path: Path, name: str, damage: str) -> None:
    folder = make_ragged([5, 9]).save(tmp_path / "data")
    path = folder / f"{name}.npy"
    content = path.read_bytes()
    if damage == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "short":
        path.write_bytes(content[:-1])
    elif damage == "missing":
        path.unlink()
    elif damage == "archive":
        with path.open("wb") as stream:
            np.savez(stream, array=np.load(make_ragged([5, 9]).save(tmp_path / "copy") / f"{name}.npy"))
    elif damage == "pickle":
        np.save(path, np.array([{"code": 1}], dtype=object), allow_pickle=True)
    else:
        other = "offsets" if name != "offsets" else "ids"
        shutil.copy(folder / f"{other}.npy", path)
    with pytest.raises(LapwingError, match=f"{name}.npy"):
        Trajectories.load(folder)


@pytest.mark.parametrize("name", ["observations", "ids"])
def test_a_short_file_is_noticed_when_memory_mapped(make_ragged: MakeRagged, tmp_path: Path, name: str) -> None:
    folder = make_ragged([5, 9]).save(tmp_path / "data")
    path = folder / f"{name}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LapwingError, match=f"{name}.npy"):
        Trajectories.load(folder, mmap=True)


def drop(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest.pop(key)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(format="zarr"),
        lambda manifest: manifest.update(version=99),
        drop("checksums"),
        lambda manifest: manifest.update(checksums=[1]),
        lambda manifest: manifest["checksums"].pop("offsets"),
        lambda manifest: manifest["checksums"].update({"../../secret": 1}),
        lambda manifest: manifest["checksums"].update(ids="1"),
        lambda manifest: manifest.update(metadata=[1, 2]),
        lambda manifest: manifest.update(keys=["a", "b"]),
        lambda manifest: manifest.update(keys=3),
    ],
)
def test_a_manifest_that_is_not_ours_is_refused(
    make_ragged: MakeRagged, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = make_ragged([5, 9]).save(tmp_path / "data")
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(LapwingError):
        Trajectories.load(folder)


def test_a_folder_without_a_manifest_is_no_data_set(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match=r"does not exist; is .* really a lapwing-trajectories folder"):
        Trajectories.load(tmp_path / "nowhere")
    (tmp_path / MANIFEST).write_text("not json")
    with pytest.raises(LapwingError, match="not readable JSON"):
        Trajectories.load(tmp_path)


NO = np.zeros(2, dtype=bool)
GOOD: dict[str, Any] = {
    "observations": np.zeros((3, 1)),
    "offsets": np.array([0, 3, 5]),
    "terminated": NO,
    "truncated": NO,
    "ids": np.array([0, 1, 2, 1, 0]),
}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"offsets": np.array([0])}, "is empty: it has no episode"),
        ({"offsets": np.array([], dtype=int)}, "is empty: it has no episode"),
        ({"offsets": np.array([0.0, 3.0, 5.0])}, "is empty"),
        ({"offsets": np.array([0, 1, 2]), "ids": np.array([0, 1])}, "is empty: no episode has a transition"),
        ({"offsets": np.array([1, 3, 5])}, "must start at 0 and grow"),
        ({"offsets": np.array([0, 5, 5])}, "must start at 0 and grow"),
        ({"offsets": np.array([0, 6, 5])}, "must start at 0 and grow"),
        ({"offsets": np.array([0, 3, 6])}, "ids must be 6 whole numbers"),
        ({"ids": np.array([0.0, 1, 2, 1, 0])}, "ids must be 5 whole numbers"),
        ({"ids": np.array([[0], [1], [2], [1], [0]])}, "ids must be 5 whole numbers"),
        ({"ids": np.array([0, 1, 3, 1, 0])}, "ids"),
        ({"ids": np.array([0, 1, -1, 1, 0])}, "ids"),
        ({"ids": None}, "5 states need as many observations, got 3"),
        ({"terminated": np.zeros(3, dtype=bool)}, "terminated must be one boolean per episode"),
        ({"truncated": np.zeros((2, 1), dtype=bool)}, "truncated must be one boolean per episode"),
        ({"truncated": np.zeros(2)}, "truncated must be one boolean per episode"),
        ({"observations": np.zeros(3)}, "must be numbers of shape"),
        ({"observations": np.array(1.0)}, "must be numbers of shape"),
        ({"observations": np.array([["a"], ["b"], ["c"]])}, "must be numbers of shape"),
        ({"observations": np.array([[None]] * 3)}, "must be numbers of shape"),
        ({"observations": np.array([[0.0], [np.nan], [0.0]])}, "observation 1 holds NaN or infinity"),
        ({"observations": np.array([[0.0], [0.0], [np.inf]])}, "observation 2 holds NaN or infinity"),
    ],
)
def test_data_that_make_no_sense_are_refused(change: dict[str, Any], complaint: str) -> None:
    assert Trajectories(**GOOD).num_transitions == 3
    with pytest.raises(LapwingError, match=complaint):
        Trajectories(**{**GOOD, **change})


def test_nan_is_found_beyond_the_first_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "CHUNK_ROWS", 6)
    observations = np.zeros((50, 2, 2))
    observations[37, 1, 0] = np.nan
    with pytest.raises(LapwingError, match="observation 37 holds NaN"):
        Trajectories(observations, np.array([0, 50]), NO[:1], NO[:1])


@pytest.mark.parametrize("name", ["observations", "offsets", "terminated", "truncated", "ids"])
def test_a_part_that_is_no_array_is_refused_by_name(name: str) -> None:
    sound = {
        "observations": np.zeros((1, 2)),
        "offsets": np.array([0, 2]),
        "terminated": np.array([False]),
        "truncated": np.array([True]),
        "ids": np.zeros(2, dtype=np.int32),
    }
    Trajectories(**sound)
    with pytest.raises(LapwingError, match=f"{name} must be a NumPy array, got list"):
        Trajectories(**{**sound, name: [0]})  # type: ignore[arg-type]


@pytest.mark.parametrize("world", ["GridMaze-7", "Box-1"])
def test_some_of_the_episodes_are_taken_with_all_that_belongs_to_them(world: str) -> None:
    data = lw.collect(world, 60, episode_length=10, seed=0)
    data = replace(data, rewards=np.arange(60.0), actions=np.arange(60))
    part = data.take([4, 1])
    np.testing.assert_array_equal(part.episode(0), data.episode(4))
    np.testing.assert_array_equal(part.episode(1), data.episode(1))
    np.testing.assert_array_equal(part.rewards, [*range(40, 50), *range(10, 20)])
    np.testing.assert_array_equal(part.actions, part.rewards)
    assert part.has_table == data.has_table
    for wrong in ([], [6], [-1], [0.5], "all"):
        with pytest.raises(ArgumentError, match="episodes"):
            data.take(wrong)
