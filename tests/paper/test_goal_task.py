"""The task with a goal: returns and optima by closed forms, and a policy's operator by simulation and by definition."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.operators import stationary_distribution
from lapwing_paper import goal_task as module
from lapwing_paper.goal_task import GoalTask, goal_task, optimal_return, policy_matrix, policy_operator, policy_return

WORLD: Any = lw.make_world("GridMaze-9")
TASK = goal_task(WORLD, goal=3)
STATES = len(TASK.observations)


def random_policy(seed: int, states: int = STATES) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(4, 0.3), size=states)


def simulated_episodes(task: GoalTask, policy: np.ndarray, episodes: int, length: int) -> np.ndarray:
    """(episodes, length) states, drawn one by one."""
    rng = np.random.default_rng(0)
    matrix = np.cumsum(policy_matrix(task, policy), axis=1)
    states = np.empty((episodes, length), dtype=int)
    states[:, 0] = rng.integers(len(matrix), size=episodes)
    for time in range(1, length):
        states[:, time] = (matrix[states[:, time - 1]] <= rng.random(episodes)[:, None]).sum(axis=1)
    return states


def test_moves_slip_and_the_goal_leads_anywhere() -> None:
    assert TASK.transitions.shape == (4, STATES, STATES)
    np.testing.assert_allclose(TASK.transitions.sum(axis=2), 1.0)
    np.testing.assert_allclose(TASK.transitions[:, TASK.goal], 1.0 / STATES)
    for action, state in np.ndindex(4, STATES):
        if state != TASK.goal:
            wanted = np.zeros(STATES)
            np.add.at(wanted, WORLD.successors[state], 0.3 / 4)
            wanted[WORLD.successors[state, action]] += 0.7
            np.testing.assert_allclose(TASK.transitions[action, state], wanted)


def test_the_return_is_the_number_of_visits_of_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EPISODE_LENGTH", 30)
    policy = random_policy(0)
    visits = (simulated_episodes(TASK, policy, 20_000, 30) == TASK.goal).sum(axis=1)
    error = visits.std() / np.sqrt(len(visits))
    assert policy_return(TASK, policy) == pytest.approx(visits.mean(), abs=4 * error)


def test_the_optimum_is_the_return_of_the_best_stationary_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Towards the goal wherever one is: in a corridor that is right at every time but the last."""
    corridor: Any = lw.make_world("room:1x5")
    task = goal_task(corridor, goal=4)
    right = np.eye(4)[np.full(5, 1)]
    assert optimal_return(task) == pytest.approx(policy_return(task, right), rel=1e-9)
    assert all(policy_return(task, random_policy(seed, 5)) < optimal_return(task) for seed in range(5))
    monkeypatch.setattr(module, "EPISODE_LENGTH", 1)
    assert optimal_return(task) == pytest.approx(1 / 5)


def test_the_operator_is_what_counted_pairs_of_episodes_converge_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short episodes, whose states are far from stationary."""
    monkeypatch.setattr(module, "EPISODE_LENGTH", 4)
    policy = random_policy(1)
    exact = policy_operator(TASK, policy)
    states = simulated_episodes(TASK, policy, 100_000, 4)
    data = lw.from_arrays(list(TASK.observations[states]))
    counted = lw.operator(data)
    order = [int(np.flatnonzero((counted.observations == row).all(axis=1))[0]) for row in exact.observations]
    np.testing.assert_allclose(counted.rho[order], exact.rho, atol=2e-3)
    flow = counted.rho[order, None] * counted.matrix.toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(flow, exact.rho[:, None] * exact.matrix.toarray(), atol=2e-3)
    assert np.abs(exact.rho - lw.operator(policy_matrix(TASK, policy)).rho).max() > 0.02


def test_the_operator_of_long_episodes_is_the_symmetrised_one_in_the_stationary_distribution(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "EPISODE_LENGTH", 100_000)
    policy = random_policy(2)
    found = policy_operator(TASK, policy)
    matrix = policy_matrix(TASK, policy)
    dense = lw.operator(matrix)
    np.testing.assert_allclose(found.rho, stationary_distribution(dense.matrix), atol=1e-4)
    adjoint = matrix.T * dense.rho[None, :] / dense.rho[:, None]
    np.testing.assert_allclose(found.matrix.toarray(), (matrix + adjoint) / 2.0, atol=2e-3)
    assert found.is_reversible()
    np.testing.assert_allclose(found.rho @ found.matrix.toarray(), found.rho)
