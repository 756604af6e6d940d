"""Suspicion of hidden resets: found where they were put, and not where steps are merely long, rare or slippery."""

from collections.abc import Callable

import numpy as np
import pytest

from lapwing.data import auditing, collect
from lapwing.data.auditing import suspect_glued_resets
from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import Trajectories
from lapwing.environments.grid import GridWorld
from lapwing.environments.registry import make_world

Glue = Callable[[Trajectories], Trajectories]


def line_walk(states: int, steps: int, jumps: list[tuple[int, int]], seed: int = 0) -> Trajectories:
    """A walk on a line with given teleports, each made once from where the walk happens to come by."""
    rng = np.random.default_rng(seed)
    place, walk, waiting = 0, [0], list(jumps)
    for move in rng.choice([-1, 1], size=steps):
        jump_now = bool(waiting) and place == waiting[0][0]
        place = waiting.pop(0)[1] if jump_now else min(max(place + int(move), 0), states - 1)
        walk.append(place)
    assert not waiting
    return from_arrays([np.array(walk)])


def test_each_teleport_over_three_steps_or_more_is_counted() -> None:
    found = suspect_glued_resets(line_walk(8, 20_000, [(1, 4), (6, 1), (0, 7)]))
    assert found is not None
    assert found.steps == 3
    assert found.share == pytest.approx(3 / 20_000, rel=1e-9)


def test_a_rare_step_to_a_state_two_steps_away_is_no_reset() -> None:
    found = suspect_glued_resets(line_walk(8, 20_000, [(1, 3), (6, 4)]))
    assert found is not None
    assert (found.steps, found.share) == (0, 0.0)


def test_a_teleport_that_comes_often_is_part_of_the_dynamics() -> None:
    rng = np.random.default_rng(0)
    place, walk = 0, [0]
    for _ in range(20_000):
        place = 7 if place == 0 and rng.random() < 0.3 else min(max(place + int(rng.choice([-1, 1])), 0), 7)
        walk.append(place)
    found = suspect_glued_resets(from_arrays([np.array(walk)]))
    assert found is not None
    assert found.steps == 0


@pytest.mark.parametrize("departures", [99, 100])
def test_states_left_too_seldom_are_not_judged(departures: int) -> None:
    found = suspect_glued_resets(from_arrays([np.array([0, 1])] * departures))
    assert (found is None) is (departures < 100)


@pytest.mark.parametrize("name", ["GridRoom-1", "Maze-26", "FourRooms"])
def test_slip_and_an_uneven_policy_are_no_resets(name: str) -> None:
    world = make_world(name, slip=0.1)
    assert isinstance(world, GridWorld)
    policy = np.random.default_rng(1).dirichlet(np.ones(4), size=world.num_states)
    found = suspect_glued_resets(collect(world, steps=300_000, policy=policy))
    assert found is not None
    assert found.steps == 0


def test_many_sources_are_judged_by_a_sample_of_them(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    data = glue(collect("Rooms-16", steps=300_000))
    whole = suspect_glued_resets(data)
    monkeypatch.setattr(auditing, "MAX_SOURCES", 40)
    sample = suspect_glued_resets(data)
    assert whole is not None
    assert sample is not None
    assert sample.steps != whole.steps
    assert sample.steps == pytest.approx(whole.steps, rel=0.15)


def test_long_data_in_a_box_are_judged_by_a_sample_of_them(glue: Glue, monkeypatch: pytest.MonkeyPatch) -> None:
    data = glue(collect("Box-2", steps=200_000))
    whole = suspect_glued_resets(data)
    monkeypatch.setattr(auditing, "SAMPLE", 20_000)
    sample = suspect_glued_resets(data)
    assert whole is not None
    assert sample is not None
    assert sample.steps == pytest.approx(whole.steps, rel=0.3)


def plain_rows(rows: np.ndarray) -> Trajectories:
    flags = np.array([True])
    return Trajectories(rows, np.array([0, len(rows)]), ~flags, flags)


def test_a_coordinate_of_small_units_is_not_drowned_by_one_of_large_units() -> None:
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.uniform(-1, 1, size=(5000, 2)), axis=0) * [1e-3, 1e3]
    walk[2500:, 0] += 0.1
    found = suspect_glued_resets(plain_rows(walk))
    assert found is not None
    assert found.steps == 1


def test_a_constant_coordinate_does_no_harm_and_a_constant_walk_cannot_be_judged() -> None:
    rng = np.random.default_rng(0)
    walk = np.column_stack([np.cumsum(rng.uniform(-1, 1, size=5000)), np.zeros(5000)])
    found = suspect_glued_resets(plain_rows(walk))
    assert found is not None
    assert found.steps == 0
    assert suspect_glued_resets(plain_rows(np.zeros((5000, 2)))) is None
    assert suspect_glued_resets(plain_rows(walk[:50])) is None
