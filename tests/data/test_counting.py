"""Counts of shards are those of all the data in memory, wherever they are counted; bad shards are named."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.data import Trajectories, counting
from lapwing.data.counting import TransitionCounts, count
from lapwing.diagnostics import noise
from lapwing.errors import ArgumentError, DamagedFileError, DataError, LapwingError


def assert_same_counts(found: TransitionCounts, wanted: "Trajectories | TransitionCounts") -> None:
    """Every number, and the order of the states."""
    np.testing.assert_array_equal(found.observations, wanted.observations)
    assert found.observations.dtype == wanted.observations.dtype
    for one, other in ((found.counts(), wanted.counts()),):
        np.testing.assert_array_equal(one.indptr, other.indptr)
        np.testing.assert_array_equal(one.indices, other.indices)
        np.testing.assert_array_equal(one.data, other.data)
    assert (found.num_transitions, found.num_episodes) == (wanted.num_transitions, wanted.num_episodes)


def saved(parts: list[Trajectories], folder: Path) -> list[Path]:
    return [part.save(folder / f"part-{number}") for number, part in enumerate(parts)]


def collected(steps: int = 6_000, **options: Any) -> list[Trajectories]:
    return [lw.collect("GridMaze-7", steps, seed=seed, **options) for seed in range(3)]


def walks_of_their_own() -> list[Trajectories]:
    """Parts that have seen different states, in different orders; one state is seen in the last part alone."""
    rng = np.random.default_rng(0)
    found = []
    for low, high in ((0, 12), (5, 20), (8, 31)):
        walk = np.clip(np.cumsum(rng.integers(-1, 2, 900)), low - 10, high - 10)
        found.append(lw.from_arrays(list((walk[:, None] * np.array([1, 3])).reshape(30, 30, 2))))
    return found


def of_several_keys() -> list[Trajectories]:
    return [
        lw.from_arrays({"a": list(part.states().reshape(30, 30, 2)), "b": list(part.states().reshape(30, 30, 2) % 2)})
        for part in walks_of_their_own()
    ]


def of_other_types() -> list[Trajectories]:
    parts = walks_of_their_own()
    types = (np.int32, np.int64, np.float64)
    return [replace(part, observations=part.observations.astype(kind)) for part, kind in zip(parts, types, strict=True)]


PARTS: dict[str, Callable[[], list[Trajectories]]] = {
    "the same table": collected,
    "different tables": walks_of_their_own,
    "next states of all moves": lambda: collected(all_actions=True),
    "several keys": of_several_keys,
    "tables of different types": of_other_types,
}


@pytest.mark.parametrize("kind", PARTS)
def test_shards_give_the_counts_of_all_the_data(kind: str, tmp_path: Path) -> None:
    parts = PARTS[kind]()
    whole = Trajectories.concatenate([part.packed() for part in parts])
    assert_same_counts(count(saved(parts, tmp_path)), whole)
    assert_same_counts(count(parts), whole)


@pytest.mark.parametrize("kind", PARTS)
def test_solving_shards_is_solving_all_the_data(kind: str, tmp_path: Path) -> None:
    parts = PARTS[kind]()
    whole = Trajectories.concatenate([part.packed() for part in parts])
    found, wanted = lw.solve(count(saved(parts, tmp_path)), 4), lw.solve(whole, 4)
    np.testing.assert_array_equal(found.mu, wanted.mu)
    np.testing.assert_array_equal(found.encoder.arrays()["values"], wanted.encoder.arrays()["values"])
    assert found.data_angles is not None
    np.testing.assert_array_equal(found.data_angles, wanted.data_angles)
    assert found.metadata == wanted.metadata


def test_counts_are_those_of_a_loop_over_the_transitions() -> None:
    parts = walks_of_their_own()
    found, numbers = count(parts), {}
    for number, row in enumerate(found.observations.tolist()):
        numbers[tuple(row)] = number
    wanted = np.zeros((len(numbers),) * 2)
    for part in parts:
        for number in range(part.num_episodes):
            rows = [numbers[tuple(row)] for row in part.episode(number).tolist()]
            for here, there in itertools.pairwise(rows):
                wanted[here, there] += 1
    np.testing.assert_array_equal(found.counts().toarray(), wanted)


def test_three_next_states_add_up_to_the_same_bits(tmp_path: Path) -> None:
    # A third has no exact binary form, so that sums of it would depend on their order.
    rng = np.random.default_rng(0)
    parts = [
        replace(part, next_ids=rng.integers(0, len(part.observations), (part.num_transitions, 3)).astype(np.int32))
        for part in walks_of_their_own()
    ]
    assert_same_counts(count(saved(parts, tmp_path)), Trajectories.concatenate(parts))


def test_rows_known_from_next_states_stay_known_over_shards() -> None:
    parts = collected(all_actions=True)
    # Each part has seen its own rows.
    found = count([part.take([0, 1]) for part in parts])
    wanted = Trajectories.concatenate([part.take([0, 1]) for part in parts])
    np.testing.assert_array_equal(found.known_next_rows(), wanted.known_next_rows())
    assert lw.operator(found).metadata == lw.operator(wanted).metadata
    np.testing.assert_array_equal(lw.operator(found).rho, lw.operator(wanted).rho)


def test_shards_that_disagree_about_next_states_know_none() -> None:
    parts = collected(all_actions=True)
    assert parts[1].next_ids is not None
    other = replace(parts[1], next_ids=parts[1].next_ids[:, ::-1].copy())
    assert count([parts[0], other]).known_next_rows() is None
    assert Trajectories.concatenate([parts[0], other]).known_next_rows() is None


@pytest.mark.parametrize("directed", [False, True])
def test_operators_of_shards_are_those_of_all_the_data(directed: bool) -> None:
    parts = walks_of_their_own()
    found, wanted = (
        lw.operator(source, directed=directed) for source in (count(parts), Trajectories.concatenate(parts))
    )
    np.testing.assert_array_equal(found.matrix.toarray(), wanted.matrix.toarray())
    np.testing.assert_array_equal(found.rho, wanted.rho)


def test_a_known_rho_counts_for_shards_too() -> None:
    parts = collected()
    found, wanted = (lw.solve(source, 3, rho="uniform") for source in (count(parts), Trajectories.concatenate(parts)))
    np.testing.assert_array_equal(found.mu, wanted.mu)
    np.testing.assert_array_equal(found.data_angles, wanted.data_angles)


def test_observations_that_repeat_in_other_shards_alone_are_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    walks = [rng.permutation(400)[:, None] for _ in range(8)]
    parts = [lw.from_arrays([walk]) for walk in walks]
    assert not any(part.has_table for part in parts)
    whole = lw.from_arrays(walks)
    assert whole.has_table
    assert_same_counts(count(saved(parts, tmp_path)), whole)


def test_observations_that_hardly_repeat_are_refused(tmp_path: Path) -> None:
    parts = [lw.collect("Box-2", 500, seed=seed) for seed in range(2)]
    with pytest.raises(DataError, match="observations that repeat"):
        count(saved(parts, tmp_path))


@pytest.mark.parametrize("length", [7, 40_000])
def test_noise_is_estimated_from_the_first_episodes_as_from_all(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(counting, "SAMPLE_STATES", 1 << 11)
    monkeypatch.setattr(counting, "SAMPLE_MARGIN", 1 << 10)
    monkeypatch.setattr(noise, "NOISE_TRANSITIONS", 1 << 11)
    monkeypatch.setattr(noise, "CHUNK", 1 << 9)
    parts = [lw.collect("GridMaze-7", steps, seed=1, episode_length=length) for steps in (1_500, 40_000)]
    found = count(parts)
    assert found.sample.num_states < 6_000
    wanted = lw.solve(Trajectories.concatenate(parts), 4)
    np.testing.assert_array_equal(lw.solve(found, 4).data_angles, wanted.data_angles)


def test_the_sample_has_as_many_states_as_noise_is_estimated_from() -> None:
    assert counting.SAMPLE_STATES == noise.NOISE_TRANSITIONS
    assert counting.SAMPLE_MARGIN >= 2 * noise.CHUNK


def test_a_shard_with_other_observations_is_named(tmp_path: Path) -> None:
    parts = [*collected(100), lw.collect("GridMaze-7", 100, observation="one_hot")]
    with pytest.raises(DataError, match=r"part-3 has observations of shape \(11,\), the parts before it \(2,\)"):
        count(saved(parts, tmp_path))


def test_a_shard_with_other_next_states_is_named(tmp_path: Path) -> None:
    parts = [*collected(100), *collected(100, all_actions=True)]
    with pytest.raises(DataError, match="part-3 lists 4 next states"):
        count(saved(parts, tmp_path))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folders = saved(collected(100), tmp_path)
    with pytest.raises(LapwingError, match="part-9"):
        count([*folders, tmp_path / "part-9"])


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    folders = saved(collected(1_000), tmp_path)
    path = folders[1] / "ids.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(DamagedFileError, match=r"part-1.*damaged"):
        count(folders)


def test_a_shard_named_twice_is_refused(tmp_path: Path) -> None:
    folders = saved(collected(100), tmp_path)
    with pytest.raises(ArgumentError, match=r"part-1 is named twice"):
        count([*folders, tmp_path / "." / "part-1"])


@pytest.mark.parametrize("shards", [[], None, 3, [None], {"a": 1}])
def test_what_is_not_a_list_of_shards_is_refused(shards: Any) -> None:
    with pytest.raises(ArgumentError):
        count(shards)


@pytest.mark.parametrize("on", ["cluster", "", None, "ray:1"])
def test_an_unknown_place_is_refused(on: Any) -> None:
    with pytest.raises(ArgumentError, match="local, ray or ray://"):
        count(collected(100), on=on)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork", "ignore::pytest.PytestUnraisableExceptionWarning")  # JAX at forks of Ray
def test_ray_gives_the_same_counts_and_names_a_bad_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        folders = saved(walks_of_their_own(), tmp_path)
        assert_same_counts(count(folders, on="ray"), count(folders))
        (folders[2] / "ids.npy").unlink()
        with pytest.raises(LapwingError, match="part-2"):
            count(folders, on="ray")
        assert ray.is_initialized(), "a cluster that was joined before is left alone"
    finally:
        ray.shutdown()


def test_what_is_counted_says_how_much() -> None:
    assert repr(count(collected(100))) == (
        "TransitionCounts(300 transitions in 6 episodes, 11 distinct observations, 31 pairs)"
    )


def test_counting_changes_no_shard(tmp_path: Path) -> None:
    parts = walks_of_their_own()
    folders = saved(parts, tmp_path)
    before = {path: path.read_bytes() for folder in folders for path in sorted(folder.iterdir())}
    steps = count(parts[:1]).steps
    count([*parts[:1], *folders[1:]])
    assert {path: path.read_bytes() for folder in folders for path in sorted(folder.iterdir())} == before
    assert steps.shape == (len(parts[0].observations),) * 2
    assert json.loads((folders[0] / "trajectories.json").read_text())["format"] == "lapwing-trajectories"
