"""Building piece by piece: the same data in memory and on disk, and nothing left behind by a failure."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from lapwing.data import builder as builder_module
from lapwing.data import collect, collecting, trajectories
from lapwing.data.builder import ObservationTable, TrajectoryBuilder
from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import ARRAYS, Trajectories
from lapwing.errors import LapwingError


def assert_equal(first: Trajectories, second: Trajectories) -> None:
    for name in ARRAYS:
        a, b = getattr(first, name), getattr(second, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert a.dtype == b.dtype, name
            np.testing.assert_array_equal(a, b, err_msg=name)
    assert first.metadata == second.metadata


def add_episode(builder: TrajectoryBuilder, states: Any) -> None:
    array = np.asarray(states)
    builder.add(array, np.array([len(array) - 1]), np.array([False]), np.array([True]))


@pytest.mark.parametrize("world", ["GridMaze-9", "Box-2"])
def test_streamed_to_disk_or_kept_in_memory_the_data_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: str
) -> None:
    monkeypatch.setattr(collecting, "CHUNK_TRANSITIONS", 500)
    kept = collect(world, steps=3000, seed=4, episode_length=(3, 20))
    streamed = collect(world, steps=3000, seed=4, episode_length=(3, 20), out=tmp_path / "data")
    assert isinstance(streamed.observations, np.memmap)
    assert_equal(kept, streamed)
    # Loading without memory mapping compares the checksums, too.
    assert_equal(Trajectories.load(tmp_path / "data"), streamed)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_environment_streamed_to_disk_gives_the_same_data(tmp_path: Path) -> None:
    kept = collect(gymnasium.make("CartPole-v1"), steps=500, seed=1)
    streamed = collect(gymnasium.make("CartPole-v1"), steps=500, seed=1, out=tmp_path / "data")
    assert_equal(kept, streamed)
    assert_equal(Trajectories.load(tmp_path / "data"), streamed)


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_table_is_given_up_where_observations_hardly_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    monkeypatch.setattr(builder_module, "DECIDE_AFTER", 30)
    rng = np.random.default_rng(0)
    repeated = [rng.integers(3, size=(10, 2)).astype(float) for _ in range(4)]
    fresh = [rng.normal(size=(60, 2)) for _ in range(4)]
    out = tmp_path / "data" if on_disk else None
    with TrajectoryBuilder(out) as builder:
        for episode in repeated:
            add_episode(builder, episode)
        tabulated_so_far = builder._table is not None
        for episode in fresh:
            add_episode(builder, episode)
        data = builder.finish({})
    assert tabulated_so_far
    assert not data.has_table
    np.testing.assert_array_equal(data.observations, np.concatenate(repeated + fresh))
    assert data.lengths.tolist() == [9] * 4 + [59] * 4
    if out is not None:
        assert sorted(path.name for path in out.iterdir()) == [
            "observations.npy",
            "offsets.npy",
            "terminated.npy",
            "trajectories.json",
            "truncated.npy",
        ]
        assert_equal(Trajectories.load(out), data)


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_table_is_kept_where_observations_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_disk: bool
) -> None:
    monkeypatch.setattr(builder_module, "DECIDE_AFTER", 30)
    states = np.random.default_rng(0).integers(5, size=(100, 1)).astype(np.float32)
    with TrajectoryBuilder(tmp_path / "data" if on_disk else None) as builder:
        for begin in range(0, 100, 10):
            add_episode(builder, states[begin : begin + 10])
        data = builder.finish({})
    assert data.ids is not None
    assert sorted(data.observations.ravel().tolist()) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(data.observations[data.ids], states)


def test_the_table_numbers_observations_as_they_first_appear() -> None:
    table = ObservationTable()
    assert table.lookup(np.array([[5.0], [3.0], [5.0]])).tolist() == [0, 1, 0]
    assert table.lookup(np.array([[3.0], [4.0]])).tolist() == [1, 2]
    assert table.array().ravel().tolist() == [5.0, 3.0, 4.0]
    assert len(table) == 3


def test_zero_and_minus_zero_are_one_observation() -> None:
    assert ObservationTable().lookup(np.array([[0.0], [-0.0]])).tolist() == [0, 0]


def test_observations_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectories, "row_hashes", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    table = ObservationTable()
    assert table.lookup(np.array([[5.0], [3.0], [5.0], [4.0], [3.0]])).tolist() == [0, 1, 0, 2, 1]
    assert table.lookup(np.array([[4.0], [5.0], [6.0]])).tolist() == [2, 0, 3]
    assert table.array().ravel().tolist() == [5.0, 3.0, 4.0, 6.0]


def test_memory_that_was_reserved_grows_and_widens() -> None:
    with TrajectoryBuilder(tabulate=False, expected=2) as builder:
        buffer = np.array([[1], [2]], dtype=np.int8)
        add_episode(builder, buffer)
        before = builder.finish({})
        buffer[:] = 0
        add_episode(builder, [[0.5], [300.0], [-1.0]])
        assert builder.finish({}).observations.ravel().tolist() == [1, 2, 0.5, 300, -1]
        assert before.observations.ravel().tolist() == [1, 2]
        with pytest.raises(LapwingError, match="changed their shape"):
            add_episode(builder, np.zeros((3, 2)))


def test_numbers_are_encoded_whether_they_repeat_or_not() -> None:
    for states in (np.arange(300), np.arange(300) % 3):
        with TrajectoryBuilder(encode=lambda numbers: np.stack([numbers, -numbers], axis=1)) as builder:
            add_episode(builder, states)
            data = builder.finish({})
        assert data.has_table == (len(np.unique(states)) == 3)
        np.testing.assert_array_equal(data.episode(0), np.stack([states, -states], axis=1))


def test_the_table_keeps_its_rows_when_the_caller_reuses_the_buffer() -> None:
    table, buffer = ObservationTable(), np.zeros((1, 2))
    table.lookup(buffer)
    buffer[:] = 7.0
    assert table.lookup(buffer).tolist() == [1]
    assert table.array().tolist() == [[0.0, 0.0], [7.0, 7.0]]


@pytest.mark.parametrize("tabulate", [False, True])
def test_a_failure_on_the_way_leaves_nothing_behind(tmp_path: Path, tabulate: bool) -> None:
    def fail_half_way() -> None:
        with TrajectoryBuilder(tmp_path / "data", tabulate=tabulate) as builder:
            add_episode(builder, np.zeros((3, 2)))
            assert any(path.name.startswith(".data.") for path in tmp_path.iterdir())
            raise RuntimeError("the environment crashed")

    with pytest.raises(RuntimeError, match="crashed"):
        fail_half_way()
    assert list(tmp_path.iterdir()) == []


def test_a_failing_policy_leaves_the_older_data_set_intact(tmp_path: Path) -> None:
    old = collect("GridMaze-7", steps=100, out=tmp_path / "data")
    with pytest.raises(LapwingError, match="outside 0 to 3"):
        collect("GridMaze-7", steps=100, policy=lambda rows: np.full(len(rows), 9), out=tmp_path / "data")
    assert_equal(Trajectories.load(tmp_path / "data"), old)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("tabulate", [False, True])
@pytest.mark.parametrize("on_disk", [False, True])
def test_nan_is_refused_when_it_comes_in_and_named_by_its_place(tmp_path: Path, on_disk: bool, tabulate: bool) -> None:
    out = tmp_path / "data" if on_disk else None
    with TrajectoryBuilder(out, tabulate=tabulate) as builder:
        add_episode(builder, np.zeros((3, 2)))
        with pytest.raises(LapwingError, match="observation 4 holds NaN"):
            add_episode(builder, [[0.0, 0.0], [0.0, np.nan]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_builder_without_an_episode_has_nothing_to_finish(tmp_path: Path, on_disk: bool) -> None:
    with (
        TrajectoryBuilder(tmp_path / "data" if on_disk else None) as builder,
        pytest.raises(LapwingError, match="nothing was collected"),
    ):
        builder.finish({})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_refused_before_anything_is_collected(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")

    def policy(rows: np.ndarray) -> np.ndarray:
        raise AssertionError("collecting began")

    with pytest.raises(LapwingError, match="holds other files"):
        collect("GridMaze-7", steps=100, policy=policy, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_older_data_set_is_replaced_only_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "data"
    old = collect("GridMaze-7", steps=100, seed=0, out=out)
    with TrajectoryBuilder(out) as builder:
        add_episode(builder, np.zeros((3, 2)))
        assert_equal(Trajectories.load(out), old)
        builder.finish({"new": True})
    assert Trajectories.load(out).metadata == {"new": True}
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_whether_observations_repeat_is_decided_on_all_the_data(tmp_path: Path, on_disk: bool) -> None:
    # One pass over 4,500 observations shows no repetition; ten passes do. Values such as 1.0 and 2.0 share low bits.
    once = np.stack(np.divmod(np.arange(4_500.0), 90.0), axis=1)
    rng = np.random.default_rng(0)
    episodes = [once[rng.permutation(len(once))] for _ in range(10)]
    with TrajectoryBuilder(tmp_path / "data" if on_disk else None) as builder:
        for episode in episodes:
            add_episode(builder, episode)
        given_up = builder._table is None
        data = builder.finish({})
    assert given_up
    assert data.has_table
    assert len(data.observations) == 4_500
    np.testing.assert_array_equal(data.episode(7), episodes[7])
    np.testing.assert_array_equal(from_arrays(episodes).ids, data.ids)
    if on_disk:
        assert_equal(Trajectories.load(tmp_path / "data"), data)
