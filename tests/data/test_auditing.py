"""The audit: hand-computed facts of small data, and warnings where and only where they belong."""

import json
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from scipy.sparse import csr_array

from lapwing.data import collect
from lapwing.data.auditing import Audit, audit, count_asymmetry
from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import Trajectories
from lapwing.environments.registry import make_world, world_names
from lapwing.errors import LapwingError
from worlds_by_kind import DIRECTED

Glue = Callable[[Trajectories], Trajectories]


def ring_walk(directed: bool, seed: int = 0) -> Trajectories:
    """Walks on a ring of six states, one way only or both ways alike."""
    rng = np.random.default_rng(seed)
    steps = np.ones((400, 40), dtype=int) if directed else rng.choice([-1, 1], size=(400, 40))
    starts = rng.integers(6, size=(400, 1))
    return from_arrays(list(np.cumsum(np.hstack([starts, steps]), axis=1) % 6))


def warned(found: Audit, words: str) -> bool:
    return any(words in warning for warning in found.warnings)


def test_facts_of_small_data_equal_those_computed_by_hand() -> None:
    # States a b a b c and, apart, d e: visits 2 2 1 1 1, steps ab ba ab bc de.
    data = from_arrays([[0, 1, 0, 1, 2], [3, 4]], terminated=[True, False])
    found = audit(data, discount=0.5)
    assert (found.transitions, found.episodes, found.terminated, found.truncated) == (5, 2, 1, 1)
    assert (found.shortest, found.median_length, found.longest) == (1, 2.5, 4)
    assert (found.states, found.visited) == (5, 5)
    visits = np.array([2, 2, 1, 1, 1]) / 7
    assert found.entropy == pytest.approx(-(visits * np.log(visits)).sum())
    assert found.entropy_of_uniform == pytest.approx(np.log(5))
    assert found.components == 2
    assert found.largest_component == pytest.approx(5 / 7)
    # Of five steps, ab once too often, bc and de are not matched by their reverse.
    assert found.asymmetry == pytest.approx(3 / 5)
    # Pairs ab (2 and 1), bc (1 and 0), de (1 and 0): squared differences over sums are 1/3, 1, 1.
    assert found.asymmetry_over_noise == pytest.approx((1 / 3 + 1 + 1) / 3)
    # Gaps at discount 1/2: with 1, 2, 3, 4 steps left the mean gap is 1, 4/3, 11/7, 26/15.
    assert found.mean_lag == pytest.approx((1 + 4 / 3 + 11 / 7 + 26 / 15 + 1) / 5)
    assert found.mean_lag_untruncated == pytest.approx(2.0)
    assert found.slow_eigenvalue_ratio == pytest.approx(found.mean_lag / 2.0)
    assert warned(found, "2 unconnected parts")
    assert warned(found, "convert eigenvalues by the truncated map")


def test_one_state_alone_is_said_to_tell_nothing_apart() -> None:
    found = audit(from_arrays([[1.0, 1.0, 1.0]]))
    assert (found.visited, found.entropy, found.asymmetry, found.components) == (1, 0.0, 0.0, 1)
    assert warned(found, "only one state was visited")


def test_asymmetry_is_none_for_symmetric_counts_and_all_for_one_way_counts() -> None:
    one_way = np.roll(np.eye(5), 1, axis=1) * 8.0
    assert count_asymmetry(csr_array(one_way + one_way.T)) == (0.0, 0.0)
    assert count_asymmetry(csr_array(one_way)) == (1.0, 8.0)
    assert count_asymmetry(csr_array(np.eye(5))) == (0.0, 0.0)
    # Staying put is its own reverse: it dilutes the share, and says nothing about noise.
    assert count_asymmetry(csr_array(one_way + 24.0 * np.eye(5))) == (0.25, 8.0)


def test_directed_data_are_flagged_and_undirected_data_are_not() -> None:
    directed, undirected = audit(ring_walk(directed=True)), audit(ring_walk(directed=False))
    assert directed.asymmetry == 1.0
    assert warned(directed, "the dynamics are directed")
    assert undirected.asymmetry is not None
    assert undirected.asymmetry < 0.05
    assert not warned(undirected, "directed")


def test_more_data_tell_a_weak_direction_from_noise() -> None:
    table = np.tile([0.25, 0.4, 0.25, 0.1], (225, 1))
    found = audit(collect("GridRoom-1", steps=300_000, policy=table, episode_length=5))
    assert warned(found, "the dynamics are directed")


def test_states_that_were_never_visited_are_counted() -> None:
    found = audit(collect("Rooms-64", steps=200))
    assert found.visited is not None
    assert found.states == 1088
    assert found.visited < 200
    assert warned(found, f"{1088 - found.visited:,} state(s) were never visited")
    assert not warned(audit(collect("GridMaze-7", steps=5000)), "never visited")


def test_long_episodes_leave_discounted_gaps_alone_and_short_ones_do_not() -> None:
    long, short = (audit(collect("GridMaze-7", steps=20_000, episode_length=length)) for length in (5000, 10))
    assert not long.warnings
    assert long.slow_eigenvalue_ratio > 0.99
    assert warned(short, "discount 0.9")
    assert not warned(audit(collect("GridMaze-7", steps=20_000, episode_length=50), discount=0.3), "truncated map")


def test_the_mean_lag_is_that_of_a_sampler_inside_these_episodes() -> None:
    data = collect("GridMaze-7", steps=2000, episode_length=(1, 30))
    rng = np.random.default_rng(0)
    left = np.concatenate([np.arange(length, 0, -1) for length in data.lengths])
    left = rng.choice(left, size=100_000)
    gaps = rng.geometric(0.2, size=len(left))
    while (over := gaps > left).any():
        gaps[over] = rng.geometric(0.2, size=int(over.sum()))
    assert audit(data, discount=0.8).mean_lag == pytest.approx(gaps.mean(), abs=5 * gaps.std() / np.sqrt(len(gaps)))


def test_very_many_different_lengths_are_summarised_by_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    data = collect("GridMaze-7", steps=60_000, episode_length=(1, 300))
    exact = audit(data).mean_lag
    monkeypatch.setattr("lapwing.data.auditing.MAX_HORIZONS", 60)
    assert audit(data).mean_lag == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("name", world_names())
def test_honest_data_of_every_world_raise_no_suspicion(name: str) -> None:
    world = make_world(name)
    images = len(world.observation_shape) > 1
    found = audit(collect(world, steps=20_000 if images else 300_000, seed=3))
    assert found.suspected_resets == (None if images else 0)
    others = [warning for warning in found.warnings if "truncated map" not in warning]
    assert len(others) == (name in ("NoisyRotation", *DIRECTED))
    assert all("the dynamics are directed" in warning for warning in others)


@pytest.mark.parametrize("name", ["GridRoom-1", "Maze-19", "Rooms-16", "Rooms-64", "Box-1", "Box-2", "Box-3"])
def test_glued_data_are_suspected(name: str, glue: Glue) -> None:
    honest = collect(name, steps=300_000, seed=3)
    found = audit(glue(honest))
    assert found.suspected_resets is not None
    assert found.suspected_share is not None
    glued = honest.num_episodes - found.episodes
    # Some resets land nearby and look like a step; none are invented.
    assert 0.2 * glued < found.suspected_resets <= glued
    assert found.suspected_share == pytest.approx(found.suspected_resets / found.transitions, rel=0.05)
    assert warned(found, "episodes may have been glued together")


def bouncing_ball(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Place and speed in a box: at a wall the speed alone jumps."""
    states = np.zeros((steps, 4))
    place, speed = rng.uniform(0, 1, 2), rng.normal(0, 0.02, 2)
    for row in states:
        row[:2], row[2:] = place, speed
        speed += rng.normal(0, 0.002, 2)
        place = place + speed
        hit = (place < 0) | (place > 1)
        place, speed = np.clip(place, 0, 1), np.where(hit, -speed, speed)
    return states


def test_a_bounce_is_not_a_reset_but_a_glued_episode_is() -> None:
    rng = np.random.default_rng(0)
    episodes = [bouncing_ball(rng, 100) for _ in range(60)]
    assert audit(from_arrays(episodes)).suspected_resets == 0
    glued = audit(from_arrays([np.concatenate(episodes)])).suspected_resets
    assert glued is not None
    assert 10 < glued <= 59


def test_rare_jumps_to_where_no_episode_begins_are_not_resets() -> None:
    # A ring of which one place in eight shows what another place shows: views that lie apart follow each other.
    rng = np.random.default_rng(0)
    episodes = []
    for _ in range(400):
        walk = np.cumsum(np.append(rng.integers(0, 2), rng.choice([-1, 0, 1], 99))) % 40
        hidden = (rng.random(100) < 0.004) & (walk > 4) & (walk < 36)
        episodes.append(np.where(hidden, rng.integers(6, 34, 100), walk)[:, None].astype(float))
    data = from_arrays(episodes)
    assert data.has_table
    assert audit(data).suspected_resets == 0
    assert (audit(from_arrays([np.concatenate(episodes)])).suspected_resets or 0) > 0


def test_data_too_few_to_judge_say_so_by_none() -> None:
    found = audit(from_arrays([[0.0, 1.0, 2.0]]))
    assert found.suspected_resets is None
    assert "steps like a reset" not in str(found)


@pytest.mark.parametrize("name", ["GridMaze-7", "Box-2"])
def test_an_audit_is_json_and_a_table(name: str) -> None:
    found = audit(collect(name, steps=5000))
    content = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert content["transitions"] == 5000
    assert content["warnings"] == list(found.warnings)
    lines = str(found).splitlines()
    assert lines[0].split() == ["transitions", "5,000"]
    labels = [label for label, _ in found.rows()]
    assert len(lines) == len(labels) + len(found.warnings)
    assert all(line.startswith(label) for line, label in zip(lines, labels, strict=False))
    assert all(line.startswith("warning: ") for line in lines[len(labels) :])
    assert ("states visited" in labels) is (name == "GridMaze-7")
    assert (content["visited"] is None) is (name == "Box-2")


def test_an_audit_of_a_gymnasium_environment_tells_its_endings() -> None:
    found = audit(collect(gymnasium.make("CartPole-v1"), steps=6000, seed=0))
    assert found.terminated > 100
    assert found.terminated + found.truncated == found.episodes
    assert found.states is None


def test_a_discount_that_is_none_is_refused() -> None:
    with pytest.raises(LapwingError, match="strictly between 0 and 1"):
        audit(from_arrays([[0.0, 1.0]]), discount=1.0)
