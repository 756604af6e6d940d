"""Rewards against commute times from linear solves, telescoping sums and value iteration; and what is refused."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lapwing as lw
from lapwing.applications import (
    EigenReward,
    GoalDistance,
    MixedReward,
    PotentialReward,
    RepresentationFeatures,
    hitting_times,
)
from lapwing.errors import ArgumentError, DataError, UntrustedWarning

WORLD = lw.make_world("GridMaze-9")
STATES = WORLD.table()
FULL = lw.solve(WORLD, len(STATES))
MODEL = lw.solve(WORLD, 5)
GOAL = 3

Table = NDArray[np.float64]


def all_steps() -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int32]]:
    """Every action in every state: observations before and after, and the (n, 4) next states."""
    there = WORLD.successors  # type: ignore[attr-defined]
    return np.repeat(STATES, 4, axis=0), STATES[there.ravel()], there


# --- distances -----------------------------------------------------------------------------------------------------


def test_squared_distances_are_commute_times_over_their_mean() -> None:
    times = hitting_times(lw.operator(WORLD))
    commute = (times + times.T)[GOAL]
    np.testing.assert_allclose(GoalDistance(FULL, STATES[GOAL])(STATES) ** 2, commute / commute.mean(), rtol=1e-9)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("goal", [0, GOAL])
def test_distances_are_zero_at_the_goal_and_have_mean_square_one(scaled: bool, goal: int) -> None:
    found = GoalDistance(MODEL, STATES[goal], scaled)(STATES)
    assert found[goal] == 0.0
    assert np.mean(found**2) == pytest.approx(1.0, rel=1e-9)
    values = MODEL.embedding(STATES, scaled)
    plain = np.linalg.norm(values - values[goal], axis=1)
    np.testing.assert_allclose(found / found.max(), plain / plain.max(), atol=1e-12)


# --- rewards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("component", [2, 5])
def test_an_eigen_reward_is_the_difference_of_a_component(component: int, sign: int) -> None:
    path = STATES[[0, 1, 2, 1, 0, 4, 7]]
    found = EigenReward(MODEL, component, sign)(path[:-1], path[1:], np.full(6, -1.0), np.zeros(6, dtype=bool))
    values = MODEL.transform(path)[:, component - 1]
    np.testing.assert_allclose(found, sign * np.diff(values), atol=1e-12)


def test_a_mixed_reward_is_half_the_reward_and_half_the_distance_of_the_next_state() -> None:
    before, after, there = all_steps()
    own = np.where(there.ravel() == GOAL, 0.0, -1.0)
    distance = GoalDistance(MODEL, STATES[GOAL])
    found = MixedReward(distance)(before, after, own, np.zeros(len(own), dtype=bool))
    np.testing.assert_allclose(found, 0.5 * own - 0.5 * distance(STATES)[there.ravel()], atol=1e-12)
    assert MixedReward(distance, weight=0.0)(before, after, own, own > 0).tolist() == own.tolist()


@pytest.mark.parametrize("terminated", [True, False])
def test_the_discounted_sum_of_a_potential_depends_on_the_ends_alone(terminated: bool) -> None:
    path, discount, scale = STATES[[5, 6, 5, 2, 1, 0]], 0.9, 3.0
    distance = GoalDistance(MODEL, STATES[GOAL])
    ends = np.array([False] * 4 + [terminated])
    found = PotentialReward(distance, discount, scale)(path[:-1], path[1:], np.zeros(5), ends)
    begin, end = -scale * distance(path)[[0, -1]]
    # A state that is only cut off keeps its potential, one that ends the episode has none.
    wanted = (0.0 if terminated else discount**5 * end) - begin
    assert (discount ** np.arange(5) * found).sum() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("ends_at_goal", [True, False])
def test_a_potential_leaves_optimal_policies_as_they_are(ends_at_goal: bool) -> None:
    before, after, there = all_steps()
    ends = (there == GOAL) & ends_at_goal
    own = np.where(there == GOAL, 0.0, -1.0)
    reward = PotentialReward(GoalDistance(MODEL, STATES[GOAL]), discount=0.95, scale=7.0)
    shaped = reward(before, after, own.ravel(), ends.ravel()).reshape(there.shape)

    def best_actions(rewards: Table) -> NDArray[np.bool_]:
        values = np.zeros(len(there))
        for _ in range(2_000):
            returns = rewards + 0.95 * np.where(ends, 0.0, values[there])
            values = returns.max(axis=1)
        return returns >= values[:, None] - 1e-9

    assert not np.allclose(shaped, own)
    np.testing.assert_array_equal(best_actions(shaped), best_actions(own))


def test_features_are_components_after_the_observation() -> None:
    plain, joined = RepresentationFeatures(MODEL)(STATES), RepresentationFeatures(MODEL, joined=True)(STATES)
    assert plain.dtype == joined.dtype == np.float32
    np.testing.assert_allclose(plain, MODEL.transform(STATES)[:, 1:], atol=1e-5)
    np.testing.assert_array_equal(joined, np.concatenate([STATES, plain], axis=1))
    np.testing.assert_allclose(RepresentationFeatures(MODEL, scaled=True)(STATES), MODEL.embedding(STATES), rtol=1e-5)


# --- bad input -----------------------------------------------------------------------------------------------------

ONE = lw.solve(WORLD, 1)
DISTANCE = GoalDistance(MODEL, STATES[GOAL])
WRONG: dict[str, Callable[[], Any]] = {
    "a goal outside the table": lambda: GoalDistance(MODEL, [9.0, 9.0]),
    "a goal of another shape": lambda: GoalDistance(MODEL, STATES[0, :1]),
    "several goals": lambda: GoalDistance(MODEL, STATES[:2]),
    "a goal with NaN": lambda: GoalDistance(MODEL, [np.nan, 0.0]),
    "a goal in words": lambda: GoalDistance(MODEL, "there"),
    "no goal": lambda: GoalDistance(MODEL, None),  # type: ignore[arg-type]
    "a ragged goal": lambda: GoalDistance(MODEL, [[1.0], [1.0, 2.0]]),
    "no model": lambda: GoalDistance("FourRooms", STATES[0]),  # type: ignore[arg-type]
    "one dimension": lambda: GoalDistance(ONE, STATES[0]),
    "one dimension for a reward": lambda: EigenReward(ONE, 2),
    "one dimension for features": lambda: RepresentationFeatures(ONE),
    "the constant component": lambda: EigenReward(MODEL, 1),
    "a component beyond": lambda: EigenReward(MODEL, 6),
    "half a component": lambda: EigenReward(MODEL, 2.5),  # type: ignore[arg-type]
    "no sign": lambda: EigenReward(MODEL, 2, 0),
    "a discount above one": lambda: PotentialReward(DISTANCE, 1.1),
    "a discount of NaN": lambda: PotentialReward(DISTANCE, np.nan),
    "no scale": lambda: PotentialReward(DISTANCE, 0.9, 0.0),
    "an infinite scale": lambda: PotentialReward(DISTANCE, 0.9, np.inf),
    "a model for a distance": lambda: PotentialReward(MODEL, 0.9),  # type: ignore[arg-type]
    "a weight above one": lambda: MixedReward(DISTANCE, 2.0),
    "no distance": lambda: MixedReward(None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError):
        WRONG[name]()


def test_an_unconnected_world_has_plain_distances_and_no_scaled_ones() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lw.solve(lw.operator([[1.0, 0.0], [0.0, 1.0]]), 2)
    states = np.arange(2)[:, None]
    with pytest.raises(ArgumentError, match="unconnected parts"):
        GoalDistance(model, states[0])
    assert np.isfinite(GoalDistance(model, states[0], scaled=False)(states)).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_observation_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(DataError, match="NaN or infinity"):
        DISTANCE(np.array([[value, 0.0]], dtype=np.float32))


def test_components_that_are_not_trusted_are_named() -> None:
    world = lw.make_world("FourRooms")
    poor = lw.solve(lw.collect(world, 3_000, seed=0), dim=6)
    makers: list[Callable[[], Any]] = [
        lambda: EigenReward(poor, 6),
        lambda: GoalDistance(poor, world.table()[0]),
        lambda: RepresentationFeatures(poor),
    ]
    for make in makers:
        with pytest.warns(UntrustedWarning, match=r"6 \(too few data\)") as caught:
            make()
        assert caught[0].filename == __file__
