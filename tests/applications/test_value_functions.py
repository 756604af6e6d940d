"""Least-squares policy iteration: exact with all components, and what it does with ends, rewards and bad input."""

from dataclasses import replace

import numpy as np
import pytest

import lapwing as lw
from lapwing.applications import greedy_actions, least_squares_policy_iteration, optimal_action_values
from lapwing.errors import ArgumentError, ConvergenceWarning, DataError

WORLD = lw.make_world("room:4x4")
STATES = WORLD.table()


@pytest.fixture(scope="module")
def data() -> lw.Trajectories:
    return lw.collect(WORLD, 20_000, seed=0, record="actions")


def at_goal(seen: np.ndarray) -> np.ndarray:
    return (seen == STATES[-1]).all(axis=1)


def test_all_components_give_the_optimal_values(data: lw.Trajectories) -> None:
    found = least_squares_policy_iteration(lw.solve(WORLD, dim=16), data, at_goal)
    wanted = optimal_action_values(WORLD, at_goal(STATES).astype(float), 0.9)
    np.testing.assert_allclose(found.action_values(STATES), wanted, atol=1e-5)
    assert found.policy(STATES[0]) == greedy_actions(wanted)[0]


def test_rewards_may_be_given_for_each_transition_or_be_in_the_data(data: lw.Trajectories) -> None:
    model = lw.solve(WORLD, dim=16)
    ends = np.concatenate([data.episode(number)[1:] for number in range(data.num_episodes)])
    by_transition = least_squares_policy_iteration(model, data, at_goal(ends))
    by_state = least_squares_policy_iteration(model, data, at_goal)
    np.testing.assert_allclose(by_transition.coefficients, by_state.coefficients, atol=1e-9)
    with_rewards = replace(data, rewards=at_goal(ends).astype(float))
    found = least_squares_policy_iteration(model, with_rewards)
    np.testing.assert_allclose(found.action_values(STATES), by_state.action_values(STATES), atol=1e-6)


def test_nothing_follows_a_step_that_terminated_the_episode() -> None:
    # Two states in a row; arriving at the second ends the episode, and is worth 1 in all.
    observations = np.array([[0.0], [1.0]], dtype=np.float32)
    steps = {"actions": np.zeros(1, dtype=np.int64), "rewards": np.ones(1)}
    offsets, yes, no = np.array([0, 2]), np.array([True]), np.array([False])
    terminal = lw.Trajectories(observations, offsets, yes, no, **steps)
    going_on = lw.Trajectories(observations, offsets, no, yes, **steps)
    model = lw.solve(lw.operator([[0.5, 0.5], [0.5, 0.5]]), dim=1)
    once = least_squares_policy_iteration(model, terminal, discount=0.5).action_values(observations[:1])
    forever = least_squares_policy_iteration(model, going_on, discount=0.5).action_values(observations[:1])
    assert once[0, 0] == pytest.approx(1.0)
    assert forever[0, 0] == pytest.approx(2.0)  # 1 + 1/2 + 1/4 + ...


def test_what_follows_an_end_does_not_keep_the_policy_from_settling() -> None:
    # A corridor whose last state ends the episode; a warning would be an error.
    world = lw.make_world("room:1x6")
    walk = lw.collect(world, 4_000, seed=0, record="actions", episode_length=40)
    observations, actions, lengths, ended = [], [], [], []
    for number in range(walk.num_episodes):
        seen = walk.episode(number)
        there = np.flatnonzero((seen == world.table()[-1]).all(axis=1))
        stop = int(there[0]) if len(there) else len(seen) - 1
        if stop:
            first = int(walk.transition_rows(walk.offsets[number : number + 1])[0])
            observations.append(seen[: stop + 1])
            actions.append(walk.actions[first : first + stop])  # type: ignore[index]
            lengths.append(stop + 1)
            ended.append(bool(len(there)))
    data = lw.Trajectories(
        np.concatenate(observations),
        np.append(0, np.cumsum(lengths)),
        np.array(ended),
        ~np.array(ended),
        actions=np.concatenate(actions),
    )
    found = least_squares_policy_iteration(
        lw.solve(world, dim=6), data, lambda seen: (seen == world.table()[-1]).all(axis=1)
    )
    np.testing.assert_allclose(
        found.action_values(world.table()[:5]).max(axis=1), 0.9 ** np.arange(4, -1, -1), atol=1e-4
    )


def test_a_function_that_marks_the_goal_is_a_feature(data: lw.Trajectories) -> None:
    model = lw.solve(WORLD, dim=6)
    plain = least_squares_policy_iteration(model, data, at_goal)
    marked = least_squares_policy_iteration(model, data, at_goal, features=lambda seen: at_goal(seen)[:, None])
    assert marked.coefficients.shape == (7, 4)
    wanted = optimal_action_values(WORLD, at_goal(STATES).astype(float), 0.9)
    errors = [np.abs(found.action_values(STATES) - wanted).max() for found in (plain, marked)]
    assert errors[1] < errors[0]


def test_a_policy_that_does_not_settle_is_reported(data: lw.Trajectories) -> None:
    with pytest.warns(ConvergenceWarning, match="did not settle"):
        least_squares_policy_iteration(lw.solve(WORLD, dim=6), data, at_goal, most_rounds=1)


def test_bad_input_is_refused(data: lw.Trajectories) -> None:
    model = lw.solve(WORLD, dim=4)
    with pytest.raises(DataError, match="no actions"):
        least_squares_policy_iteration(model, lw.collect(WORLD, 100), at_goal)
    with pytest.raises(DataError, match="no rewards"):
        least_squares_policy_iteration(model, data)
    real = lw.collect("Box-2", 100, record="actions")
    with pytest.raises(ArgumentError, match="discrete actions"):
        least_squares_policy_iteration(lw.solve("Box-2", dim=4), real, lambda seen: seen[:, 0])
    with pytest.raises(ArgumentError, match="expected a LaplacianRepresentation"):
        least_squares_policy_iteration("model", data, at_goal)  # type: ignore[arg-type]
    for options in (
        {"discount": 1.0},
        {"ridge": -1.0},
        {"ridge": np.inf},
        {"most_rounds": 0},
        {"features": lambda seen: [1.0]},
    ):
        with pytest.raises(ArgumentError):
            least_squares_policy_iteration(model, data, at_goal, **options)  # type: ignore[arg-type]
    for rewards in (np.ones(3), lambda seen: np.full(len(seen), np.nan)):
        with pytest.raises(ArgumentError, match="rewards must be"):
            least_squares_policy_iteration(model, data, rewards)
