"""A world with a goal as tables, and what a policy does in it, exactly: its return and its operator."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing import GridWorld, Operator
from lapwing.operators import operator_from_matrix

Table = NDArray[np.float64]

EPISODE_LENGTH = 1_000
SLIP = 0.3


class GoalTask(NamedTuple):
    """A world with a goal as tables: a step from the goal is rewarded with 1 and leads to any state.

    Episodes begin in any state with the same probability, and are cut off after 1,000 steps.

    Attributes:
        observations: (n, k) the observation of each state.
        transitions: (actions, n, n) a row-stochastic matrix for each action.
        goal: number of a state.
    """

    observations: NDArray[np.float32]
    transitions: Table
    goal: int


def goal_task(world: GridWorld, goal: int) -> GoalTask:
    """The task of Ahmed, Bhargav and Ghasemi (2025): with probability 0.3 a random move replaces the chosen one.

    Args:
        world: a grid.
        goal: number of a state.

    Returns:
        The task as tables.
    """
    matrices = world.with_options(slip=SLIP).action_matrices()
    transitions = np.stack([matrix.toarray() for matrix in matrices])
    transitions[:, goal] = 1.0 / world.num_states
    return GoalTask(world.table(), transitions, goal)


def policy_matrix(task: GoalTask, policy: Table) -> Table:
    """The one-step transition matrix of a policy, restarts apart.

    Args:
        task: the world and its goal.
        policy: (n, actions) probabilities of actions.

    Returns:
        (n, n) row-stochastic matrix.
    """
    return np.asarray(np.einsum("sa,asn->sn", policy, task.transitions))


def policy_return(task: GoalTask, policy: Table) -> float:
    """The expected sum of rewards in an episode.

    Args:
        task: the world and its goal.
        policy: (n, actions) probabilities of actions.

    Returns:
        The expected number of steps from the goal.
    """
    return float(_visits(policy_matrix(task, policy), EPISODE_LENGTH)[task.goal])


def optimal_return(task: GoalTask) -> float:
    """The largest expected return of any policy, by value iteration over the episode.

    Args:
        task: the world and its goal.

    Returns:
        Its mean over all starts.
    """
    values = np.zeros(len(task.observations))
    for _ in range(EPISODE_LENGTH):
        values = (task.transitions @ values).max(axis=0)
        values[task.goal] += 1.0
    return float(values.mean())


def policy_operator(task: GoalTask, policy: Table) -> Operator:
    """The operator that pairs of consecutive states of a policy's episodes estimate.

    An episode is T states: the first is uniform, and each other one follows by P, the matrix of the policy. The T - 1
    pairs in it do not reach over its end. Let v be the mean distribution of their first states, so that vP is that of
    their second states. Counted both ways, the pairs have the expected flow ``C = (diag(v) P + P^T diag(v)) / 2``,
    whose row sums are ``rho = (v + vP) / 2``, and ``1/2 E (u(s) - u(s'))^2 = <u, u>_rho - u^T C u``. So the operator is
    ``diag(rho)^-1 C``: reversible, with the stationary distribution rho.

    As T grows, v and rho become the stationary distribution of P, and the operator (P + P*)/2 in its inner product:
    the Laplacian of Ahmed, Bhargav and Ghasemi (2025). Restarts, one in T steps, belong to their P and not to ours,
    because no pair holds one; a step from the goal to a random state is a pair like any other.

    Args:
        task: the world and its goal.
        policy: (n, actions) probabilities of actions.

    Returns:
        The operator.
    """
    matrix = policy_matrix(task, policy)
    first = _visits(matrix, EPISODE_LENGTH - 1) / (EPISODE_LENGTH - 1)
    flow = first[:, None] * matrix
    flow = (flow + flow.T) / 2.0
    rho = flow.sum(axis=1)
    return operator_from_matrix(flow / rho[:, None], rho, task.observations)


def _visits(matrix: Table, states: int) -> Table:
    """(n,) how often each state is expected among the first ones of an episode."""
    here = np.full(len(matrix), 1.0 / len(matrix))
    total = np.zeros(len(matrix))
    for _ in range(states):
        total += here
        here = here @ matrix
    return total
