"""Thousands of episodes at once: exact amounts, the world's own dynamics, and nothing across a chunk."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.stats import chisquare

import lapwing as lw
from lapwing.data import collect, collecting
from lapwing.data.collecting import draw_lengths
from lapwing.data.trajectories import Trajectories
from lapwing.environments.box import BoxWorld, box_eigenfunctions
from lapwing.environments.grid import MOVES, GridWorld
from lapwing.environments.layouts import Layout, room
from lapwing.environments.registry import WORLDS, make_world
from lapwing.errors import ArgumentError, DataError, LapwingError
from worlds_by_kind import BOXES, GRIDS

StepsMatch = Callable[[csr_array, csr_array], bool]


def grid(name: str, **options: Any) -> GridWorld:
    world = make_world(name)
    assert isinstance(world, GridWorld)
    return world.with_options(**options)


def random_policy(world: GridWorld, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(len(MOVES), 5.0), size=world.num_states)


def first_ids(data: Trajectories) -> np.ndarray:
    assert data.ids is not None
    return np.asarray(data.ids[data.offsets[:-1]])


@given(steps=st.integers(1, 5000), low=st.integers(1, 60), extra=st.integers(0, 60), seed=st.integers(0, 9))
def test_lengths_add_up_to_the_steps_and_lie_in_the_range(steps: int, low: int, extra: int, seed: int) -> None:
    lengths = draw_lengths(steps, (low, low + extra), np.random.default_rng(seed))
    assert lengths.sum() == steps
    assert (lengths[:-1] >= low).all()
    assert lengths.min() >= 1
    assert lengths.max() <= low + extra


def test_lengths_are_uniform_over_their_range() -> None:
    lengths = draw_lengths(200_000, (3, 8), np.random.default_rng(0))[:-1]
    assert chisquare(np.bincount(lengths, minlength=9)[3:]).pvalue > 1e-3


@pytest.mark.parametrize("world", ["GridMaze-7", "Box-1"])
@pytest.mark.parametrize(
    ("steps", "episode_length", "lengths"),
    [(100, None, [50, 50]), (101, None, [50, 50, 1]), (7, 3, [3, 3, 1]), (5, 10, [5]), (1, 1, [1])],
)
def test_exactly_the_steps_asked_for_are_recorded(
    world: str, steps: int, episode_length: int | None, lengths: list[int]
) -> None:
    data = collect(world, steps=steps, episode_length=episode_length)
    assert data.num_transitions == steps
    assert data.lengths.tolist() == lengths
    assert data.truncated.all()
    assert not data.terminated.any()


def test_any_kind_of_whole_number_will_do_and_metadata_stay_plain(tmp_path: Any) -> None:
    given_as_numpy = collect(
        "GridMaze-7",
        steps=np.int64(90),
        seed=np.int32(3),
        episode_length=(np.int64(4), np.int64(9)),
        out=tmp_path / "data",
    )
    plain = collect("GridMaze-7", steps=90.0, seed=3, episode_length=[4, 9])  # type: ignore[arg-type]
    assert given_as_numpy.metadata == plain.metadata
    np.testing.assert_array_equal(given_as_numpy.ids, plain.ids)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"steps": -5}, "steps must be a whole number"),
        ({"steps": 2.5}, "steps must be a whole number"),
        ({"steps": "many"}, "steps must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"episode_length": 0}, "episode_length must be a whole number above 0"),
        ({"episode_length": (5, 3)}, "low <= high"),
        ({"episode_length": (0, 3)}, "low <= high"),
        ({"episode_length": (1, 2, 3)}, "episode_length must be a whole number"),
        ({"episode_length": 2.5}, "episode_length must be a whole number"),
        ({"policy": np.ones((3, 4)) / 4}, "a policy table needs shape"),
        ({"policy": lambda rows: np.zeros(1, dtype=int)}, "one per observation"),
        ({"policy": lambda rows: np.zeros(len(rows))}, "one per observation"),
        ({"policy": lambda rows: np.full(len(rows), 4)}, "outside 0 to 3"),
        ({"policy": lambda rows: np.full(len(rows), -1)}, "outside 0 to 3"),
        ({"slip": 1.5}, "slip is a probability"),
        ({"observation": "xyz"}, "unknown observation mode"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LapwingError, match=complaint):
        collect("GridMaze-7", **{"steps": 500, **options})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"policy": lambda rows: np.zeros(1)}, "finite actions of shape"),
        ({"policy": lambda rows: np.full(rows.shape, np.nan)}, "finite actions of shape"),
        ({"policy": np.ones((4, 4)) / 4}, "no policy table"),
        ({"slip": 0.1}, "no slip"),
        ({"observation": "pixels"}, "only observation"),
    ],
)
@pytest.mark.parametrize("source", ["Box-2", BoxWorld()])
def test_bad_options_of_a_box_are_refused(source: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(LapwingError, match=complaint):
        collect(source, steps=500, **options)


def test_something_that_is_no_world_is_refused() -> None:
    with pytest.raises(LapwingError, match="cannot collect from dict"):
        collect({"world": 1}, steps=10)  # type: ignore[arg-type]
    with pytest.raises(LapwingError, match="did you mean GridRoom-1"):
        collect("GridRom-1", steps=10)


@pytest.mark.parametrize("name", GRIDS)
def test_step_frequencies_match_the_transition_matrix(name: str, steps_match: StepsMatch) -> None:
    world = grid(name)
    data = collect(world, steps=300_000, seed=1)
    assert steps_match(data.counts(), world.transition_matrix())


@pytest.mark.parametrize("name", GRIDS)
def test_step_frequencies_match_the_matrix_of_a_policy_table_with_slip(name: str, steps_match: StepsMatch) -> None:
    world = grid(name, slip=0.3)
    world = world.with_options(policy=random_policy(world))
    data = collect(world, steps=300_000, seed=2, episode_length=10)
    assert steps_match(data.counts(), world.transition_matrix())


@pytest.mark.parametrize("slip", [0.0, 0.4, 1.0])
def test_step_frequencies_match_the_matrix_of_a_uniform_policy_with_slip(slip: float, steps_match: StepsMatch) -> None:
    data = collect("FourRooms", steps=200_000, slip=slip)
    assert data.metadata["world"]["slip"] == slip
    assert steps_match(data.counts(), grid("FourRooms", slip=slip).transition_matrix())


@pytest.mark.parametrize("slip", [0.0, 0.4])
def test_step_frequencies_match_the_matrix_of_the_table_that_a_callable_stands_for(
    slip: float, steps_match: StepsMatch
) -> None:
    world = grid("GridMaze-11", slip=slip, observation="one_hot")
    table = random_policy(world)
    rng = np.random.default_rng(3)

    def policy(observations: np.ndarray) -> np.ndarray:
        states = observations.argmax(axis=1)
        return (rng.random(len(states))[:, None] >= table[states].cumsum(axis=1)[:, :-1]).sum(axis=1)

    data = collect(world, steps=200_000, policy=policy, episode_length=10)
    assert data.metadata["policy"] == "callable"
    assert steps_match(data.counts(), world.with_options(policy=table).transition_matrix())


def test_the_judge_of_step_frequencies_notices_other_dynamics(steps_match: StepsMatch) -> None:
    world = grid("FourRooms")
    table = random_policy(world)
    counts = collect(world, steps=200_000, policy=table).counts()
    assert steps_match(counts, world.with_options(policy=table).transition_matrix())
    assert not steps_match(counts, world.transition_matrix())
    assert not steps_match(counts, world.with_options(policy=table, slip=0.1).transition_matrix())
    assert not steps_match(counts, world.with_options(policy=table[:, [1, 0, 2, 3]]).transition_matrix())


@pytest.mark.parametrize("name", ["GridMaze-7", "Maze-19", "Rooms-16"])
def test_every_observation_mode_sees_the_same_steps(name: str) -> None:
    plain = collect(name, steps=2000)
    for mode in ("xy", "one_hot", "pixels"):
        data = collect(name, steps=2000, observation=mode)
        world = grid(name, observation=mode)
        np.testing.assert_array_equal(data.ids, plain.ids)
        np.testing.assert_array_equal(data.observations, world.table())
        assert data.observations.dtype == world.table().dtype


def test_metadata_name_the_policy_that_moved() -> None:
    world = grid("GridMaze-7")
    table = random_policy(world)
    assert collect(world, steps=10).metadata["policy"] == "uniform"
    assert collect(world, steps=10, policy=table).metadata["policy"] == "table"
    assert collect(world.with_options(policy=table), steps=10).metadata["policy"] == "table"
    np.testing.assert_allclose(collect(world, steps=10, policy=table).metadata["world"]["policy"], table)


def test_a_layout_of_your_own_will_do() -> None:
    data = collect(Layout.from_text("XXXX\nX  X\nXXXX"), steps=100)
    assert data.counts().toarray().min() > 0


@pytest.mark.parametrize("name", ["GridRoom-1", "Maze-19"])
def test_episodes_start_anywhere_equally_often(name: str) -> None:
    data = collect(name, steps=40_000, episode_length=2)
    starts = np.bincount(first_ids(data), minlength=len(data.observations))
    assert chisquare(starts).pvalue > 1e-3


@pytest.mark.parametrize("name", ["GridMaze-17", "Rooms-16"])
@pytest.mark.parametrize("episode_length", [7, (1, 40), 3000])
def test_nothing_is_glued_where_chunks_meet(
    name: str, episode_length: int | tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "CHUNK_TRANSITIONS", 300)
    done: list[int] = []
    data = collect(name, steps=10_000, episode_length=episode_length, progress=lambda now, total: done.append(now))
    assert len(done) > 3
    assert done[-1] == data.num_transitions == 10_000
    assert data.ids is not None
    allowed = grid(name).transition_matrix().toarray() > 0
    assert allowed[data.counts().nonzero()].all()
    # Where one episode ends and the next begins there are jumps that no step can make: gluing would have shown.
    assert not allowed[data.ids[data.offsets[1:-1] - 1], data.ids[data.offsets[1:-1]]].all()
    if episode_length == 7:
        assert set(data.lengths[:-1].tolist()) == {7}


def test_chunks_draw_different_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "CHUNK_TRANSITIONS", 500)
    data = collect("GridRoom-1", steps=1000)
    assert data.ids is not None
    assert (data.ids[:510] != data.ids[510:]).mean() > 0.9


@pytest.mark.parametrize("name", list(WORLDS))
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(name: str) -> None:
    first, again, other = (collect(name, steps=2000, seed=seed, episode_length=(5, 50)) for seed in (7, 7, 8))
    states = [data.observations if data.ids is None else data.ids for data in (first, again, other)]
    assert states[0].tobytes() == states[1].tobytes()
    assert first.offsets.tobytes() == again.offsets.tobytes()
    assert first.offsets.tobytes() != other.offsets.tobytes()
    assert states[0].tobytes() != states[2].tobytes()


def test_a_callable_policy_sees_the_observations_of_the_unfinished_episodes() -> None:
    shapes = []

    def policy(observations: np.ndarray) -> np.ndarray:
        shapes.append(observations.shape)
        return np.full(len(observations), 1)

    data = collect(room(3, 4), steps=10, episode_length=4, policy=policy)
    assert shapes == [(3, 2), (3, 2), (2, 2), (2, 2)]
    for number in range(data.num_episodes):
        rows, columns = data.episode(number).T
        assert np.ptp(rows) == 0
        assert (np.diff(columns) >= 0).all()


@pytest.mark.parametrize("name", BOXES)
def test_one_step_correlations_in_a_box_match_the_closed_form(name: str) -> None:
    world = make_world(name)
    data = collect(world, steps=200_000, episode_length=20, seed=5)
    assert not data.has_table
    exact = world.closed_form(7)
    values = box_eigenfunctions(exact.modes, data.observations)
    positions = np.concatenate(list(data.pair_positions(1)))
    products = (values[positions] * values[positions + 1]).reshape(data.num_episodes, 20, -1).mean(axis=1)
    # Episodes are independent, steps inside one are not.
    error = products.std(axis=0) / np.sqrt(data.num_episodes)
    assert (error < 0.02).all()
    assert (np.abs(products.mean(axis=0) - exact.mu) <= 4.5 * error + 1e-12).all()


def test_a_box_follows_its_policy_and_clips_its_actions() -> None:
    world = BoxWorld((1.0, 2.0), 0.01)
    data = collect(world, steps=40, episode_length=10, policy=lambda rows: np.tile([5.0, 0.0], (len(rows), 1)))
    for number in range(4):
        moves = np.diff(data.episode(number), axis=0)
        np.testing.assert_allclose(np.abs(moves[:, 0]).max(), 0.01, atol=1e-6)
        np.testing.assert_allclose(moves[:, 1], 0.0, atol=1e-7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 10**12}, "steps must be at most 2,147,483,647"),
        ({"steps": 10**30}, "steps must be at most"),
        ({"steps": True}, "steps must be a whole number"),
        ({"steps": np.array([1, 2])}, "steps must be a whole number"),
        ({"episode_length": 10**19}, "episode_length must be at most"),
        ({"episode_length": (1, 10**18)}, "episode_length must be at most"),
        ({"slip": ""}, "slip is a probability"),
        ({"slip": []}, "slip is a probability"),
        ({"observation": np.array([1, 2])}, "unknown observation mode"),
        ({"policy": 10**400}, "a policy table needs 4 numbers"),
        ({"policy": np.ones((11, 4)) * 1j}, "a policy table needs 4 numbers"),
        ({"out": 3}, "the folder to write must be a path"),
        ({"out": "a\0b"}, "the folder to write must be a path"),
        ({"policy": lambda seen: [[0], [1, 2]]}, "the policy must give"),
        ({"policy": lambda seen: None}, "the policy must give"),
    ],
)
def test_arguments_from_nowhere_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        collect("GridMaze-7", **{"steps": 20, **options})


def test_episodes_of_any_length_within_the_limit_add_up() -> None:
    assert collect("GridMaze-7", 100, episode_length=(1, 2**31 - 1)).num_transitions == 100


def test_further_next_states_leave_the_episodes_as_they_are() -> None:
    plain = lw.collect("GridRoom-1", 2_000, seed=3)
    several, every = (
        lw.collect("GridRoom-1", 2_000, seed=3, next_states=3),
        lw.collect("GridRoom-1", 2_000, seed=3, all_actions=True),
    )
    for data in (several, every):
        np.testing.assert_array_equal(data.ids, plain.ids)
    positions = np.concatenate(list(plain.pair_positions(1)))
    np.testing.assert_array_equal(several.next_ids[:, 0], plain.ids[positions + 1])
    assert several.next_ids.shape == (2_000, 3)
    assert len(np.unique(several.next_ids[:, 1] - several.next_ids[:, 2])) > 1
    world = make_world("GridRoom-1")
    for move in range(4):
        expected, _ = world.step(plain.ids[positions], np.full(2_000, move), np.random.default_rng(0))
        np.testing.assert_array_equal(every.next_ids[:, move], expected)


def test_counts_average_the_next_states() -> None:
    data = lw.collect("GridRoom-1", 500, seed=0, next_states=4)
    positions = np.concatenate(list(data.pair_positions(1)))
    expected = np.zeros((len(data.observations),) * 2)
    for start, ends in zip(data.ids[positions], data.next_ids, strict=True):
        for end in ends:
            expected[start, end] += 0.25
    np.testing.assert_allclose(data.counts().toarray(), expected)
    np.testing.assert_allclose(data.counts().sum(axis=1), lw.collect("GridRoom-1", 500, seed=0).counts().sum(axis=1))


def test_all_actions_give_the_exact_operator_of_the_states_that_were_visited() -> None:
    truth = lw.solve("Rooms-16", dim=6)
    data = lw.collect("Rooms-16", 20_000, seed=0, all_actions=True)
    assert len(np.unique(data.ids)) == truth.encoder.observations.shape[0]
    found, counted = lw.solve(data, 6), lw.solve(lw.collect("Rooms-16", 20_000, seed=0), 6)
    np.testing.assert_allclose(found.eigenvalues, truth.eigenvalues, atol=1e-9)
    assert lw.score(found, truth).cosine > 0.999999 > lw.score(counted, truth).cosine
    assert found.certificate().data_angles.max() == 0.0
    slippery = lw.collect("Rooms-16", 20_000, seed=0, all_actions=True, slip=0.3)
    assert lw.solve(slippery, 6).certificate().data_angles.max() > 0.0


def test_further_next_states_of_continuous_worlds_are_observations() -> None:
    data = lw.collect("UMaze", 300, seed=0, next_states=3)
    assert data.next_observations.shape == (300, 2, 2)
    assert np.abs(data.next_observations[:, 0] - data.next_observations[:, 1]).max() > 0.0


def test_further_next_states_are_saved_taken_and_appended(tmp_path: Path) -> None:
    data = lw.collect("GridRoom-1", 200, seed=0, all_actions=True)
    again = Trajectories.load(data.save(tmp_path / "data"))
    np.testing.assert_array_equal(again.next_ids, data.next_ids)
    both = data.take([0, 1]).append(data.take([2, 3]))
    np.testing.assert_array_equal(both.next_ids, data.next_ids)
    np.testing.assert_array_equal(both.counts().toarray(), data.counts().toarray())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"next_states": 0}, "next_states must be 1 to 100"),
        ({"next_states": 2, "all_actions": True}, "either next_states or all_actions"),
        ({"all_actions": True, "policy": lambda x: np.zeros(len(x), dtype=int)}, "uniform policy"),
    ],
)
def test_wrong_requests_for_next_states_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        lw.collect("GridRoom-1", 10, **options)
    with pytest.raises(ArgumentError, match="numbered actions"):
        lw.collect("UMaze", 10, all_actions=True)


def test_next_ids_that_do_not_fit_are_refused() -> None:
    data = lw.collect("GridRoom-1", 10, seed=0)
    for wrong in (np.zeros(10, dtype=int), np.zeros((9, 2), dtype=int), np.full((10, 2), 10**6), np.zeros((10, 2))):
        with pytest.raises(DataError, match="next_ids"):
            replace(data, next_ids=wrong)
    with pytest.raises(DataError, match="have none"):
        replace(lw.collect("Box-1", 10), next_ids=np.zeros((10, 2), dtype=int))
