"""Projected rewards and their policies, against linear programming, linear solves and published shares."""

import numpy as np
import pytest
from scipy.optimize import linprog

import lapwing as lw
from lapwing.applications import (
    SuccessorFeatures,
    greedy_actions,
    optimal_action_values,
    reward_weights,
    successor_features,
)
from lapwing.errors import ArgumentError

WORLD = lw.make_world("FourRooms")
STATES = WORLD.table()
DISCOUNT = 0.9


def dense_moves(world: lw.environments.World) -> np.ndarray:
    matrices = world.action_matrices()
    assert matrices is not None
    return np.stack([matrix.toarray() for matrix in matrices])


def policy_values(world: lw.environments.World, actions: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Values of a policy by one linear solve."""
    walk = dense_moves(world)[actions, np.arange(len(actions))]
    return np.linalg.solve(np.eye(len(actions)) - DISCOUNT * walk, walk @ rewards)


def test_optimal_values_are_those_of_a_linear_programme() -> None:
    world = lw.GridWorld(lw.room(3, 3), slip=0.2)
    rewards, moves = np.random.default_rng(0).normal(size=9), dense_moves(world)
    # The smallest V with V >= P_a (r + gamma V) for every action.
    limits = np.concatenate([DISCOUNT * one - np.eye(9) for one in moves])
    found = linprog(np.ones(9), A_ub=limits, b_ub=-np.concatenate(moves @ rewards[:, None])[:, 0], bounds=(None, None))
    values = optimal_action_values(world, rewards, DISCOUNT)
    np.testing.assert_allclose(values.max(axis=1), found.x, atol=1e-7)
    np.testing.assert_allclose(policy_values(world, greedy_actions(values), rewards), found.x, atol=1e-7)


def test_several_rewards_at_once_are_as_one_after_another() -> None:
    rewards = np.random.default_rng(1).normal(size=(104, 3))
    together = optimal_action_values(WORLD, rewards, DISCOUNT)
    assert together.shape == (104, 4, 3)
    for column in range(3):
        np.testing.assert_allclose(together[..., column], optimal_action_values(WORLD, rewards[:, column], DISCOUNT))
    np.testing.assert_array_equal(greedy_actions(together)[:, 1], greedy_actions(together[..., 1]))


def test_weights_are_the_least_squares_projection_under_rho() -> None:
    policy = np.full((104, 4), 0.25)
    policy[:, 1] += 0.2
    policy[:, 3] -= 0.2
    world = lw.GridWorld(WORLD.layout, policy=policy)  # type: ignore[attr-defined]
    model = lw.solve(world, dim=8)
    rho = lw.operator(world).rho
    assert rho.max() > 1.5 * rho.min()
    rewards = np.random.default_rng(2).normal(size=104)
    values, root = model.transform(STATES), np.sqrt(rho)[:, None]
    wanted = np.linalg.lstsq(root * values, root[:, 0] * rewards, rcond=None)[0]
    np.testing.assert_allclose(reward_weights(model, STATES, rewards, rho), wanted, atol=1e-8)


def test_a_policy_of_a_projection_loses_no_more_than_its_bound() -> None:
    model, rewards = lw.solve(WORLD, dim=30), np.eye(104)[17]
    projected = model.transform(STATES) @ reward_weights(model, STATES, rewards)
    actions = greedy_actions(optimal_action_values(WORLD, projected, DISCOUNT))
    loss = optimal_action_values(WORLD, rewards, DISCOUNT).max(axis=1) - policy_values(WORLD, actions, rewards)
    bound = 2 * np.abs(rewards - projected).max() / (1 - DISCOUNT)
    assert loss.min() > -1e-9
    assert loss.max() <= bound


def test_successor_features_are_sums_of_components_along_their_policy() -> None:
    model = lw.solve(WORLD, dim=3)
    components = np.asarray(model.transform(STATES))
    found = successor_features(model, WORLD, DISCOUNT)
    assert found.features.shape == (4, 104, 4, 3)
    actions = greedy_actions(optimal_action_values(WORLD, -components[:, 1], DISCOUNT))  # the policy of -u2
    for state, action in ((0, 2), (50, 1)):
        total, weight, here = np.zeros(3), 1.0, int(dense_moves(WORLD)[action, state].argmax())
        for _ in range(300):
            total += weight * components[here]
            weight *= DISCOUNT
            here = int(dense_moves(WORLD)[actions[here], here].argmax())
        np.testing.assert_allclose(found.features[1, state, action], total, atol=1e-9)


def test_generalised_improvement_is_no_worse_than_any_of_its_policies() -> None:
    model = lw.solve(WORLD, dim=6)
    components, weights = np.asarray(model.transform(STATES)), np.random.default_rng(3).normal(size=6)
    rewards, found = components @ weights, successor_features(model, WORLD, DISCOUNT)
    improved = policy_values(WORLD, greedy_actions(found.action_values(weights)), rewards)
    for number in range(2, 7):
        for sign in (1, -1):
            own = greedy_actions(optimal_action_values(WORLD, sign * components[:, number - 1], DISCOUNT))
            assert (improved >= policy_values(WORLD, own, rewards) - 1e-9).all()


def test_a_discount_near_one_ends_with_exact_values() -> None:
    values = optimal_action_values(lw.make_world("room:1x6"), np.arange(6) == 5, discount=0.99999)
    assert values.max() == pytest.approx(1e5, rel=1e-9)  # 1 for every step, for ever


def test_rounding_does_not_decide_between_equal_actions() -> None:
    assert greedy_actions([[1.0, 1.0 + 1e-15], [0.0, 1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda model: reward_weights(model, STATES, np.ones(3)),
        lambda model: reward_weights(model, STATES, np.full(104, np.nan)),
        lambda model: reward_weights(model, STATES, np.ones(104), np.ones(104)),
        lambda model: optimal_action_values(WORLD, np.ones(3)),
        lambda model: optimal_action_values(WORLD, np.ones(104), discount=1.0),
        lambda model: optimal_action_values(lw.make_world("UMaze"), np.ones(3)),
        lambda model: optimal_action_values("FourRooms", np.ones(104)),
        lambda model: greedy_actions([[np.nan, 1.0]]),
        lambda model: greedy_actions(np.zeros((0, 3))),
        lambda model: reward_weights("model", STATES, np.ones(104)),
        lambda model: successor_features("model", WORLD),
        lambda model: successor_features(lw.solve(WORLD, dim=1), WORLD),
        lambda model: SuccessorFeatures(np.zeros((1, 2, 2, 3)), 0.9).action_values([1.0]),
    ],
)
def test_bad_input_is_refused(call: object) -> None:
    with pytest.raises(ArgumentError):
        call(lw.solve(WORLD, dim=3))  # type: ignore[operator]
