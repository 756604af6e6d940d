"""Policies for rewards that were not known while the representation was learned: projection, then planning.

A reward r is replaced by its projection ``sum_i w_i u_i`` with ``w_i = E_rho[r u_i]``, since ``E_rho[u_i u_j]`` is one
for i = j and else zero. The policy is then either optimal for the projection, or found at once from successor features
of policies that were solved beforehand (Barreto et al., 2017; with Laplacian features Touati et al., 2023). If every
reward is off by at most e, the optimal policy of the projection loses at most ``2 e / (1 - discount)`` in value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, eye_array, vstack
from scipy.sparse.linalg import splu

from lapwing.applications.options import TIE_TOLERANCE, checked_discount, exact_dynamics
from lapwing.applications.trust import check_model
from lapwing.checks import as_reals, shown
from lapwing.environments import World
from lapwing.errors import ArgumentError
from lapwing.representation import LaplacianRepresentation

MAX_FEATURES = 1 << 28
"""Numbers that successor features may hold: policies times states times actions times components."""

Array = NDArray[np.float64]


def reward_weights(
    model: LaplacianRepresentation,
    observations: "ArrayLike",
    rewards: "ArrayLike",
    probabilities: "ArrayLike | None" = None,
) -> Array:
    """Project rewards on the components: ``w_i = E_rho[r u_i]``; ``model.transform(s) @ w`` is the projection.

    Args:
        model: exact or learned.
        observations: (n, ...) drawn from rho, such as those of the data, or every state once with its probability.
        rewards: (n,) the reward for arriving at each, or (n, k) of k rewards.
        probabilities: (n,) of the observations, summing to one; equal unless given.

    Returns:
        (dim,) weights, or (dim, k).

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")
        >>> model = lw.solve(world, dim=3)
        >>> rewards = np.array([0.0, 0.0, 1.0])
        >>> np.allclose(model.transform(world.table()) @ reward_weights(model, world.table(), rewards), rewards)
        True
    """
    check_model(model)
    values = np.asarray(model.transform(observations), dtype=np.float64)
    given = as_reals(rewards)
    if given is None or given.ndim not in (1, 2) or len(given) != len(values) or not np.isfinite(given).all():
        raise ArgumentError(f"rewards must be {len(values)} finite numbers, one for each observation, or such columns")
    if probabilities is None:
        return values.T @ given / len(values)
    shares = as_reals(probabilities)
    if shares is None or shares.shape != (len(values),) or not (shares >= 0).all() or not abs(shares.sum() - 1) < 1e-6:
        raise ArgumentError(f"probabilities must be {len(values)} numbers of at least 0 that sum to one")
    return values.T @ (shares.reshape(-1, *[1] * (given.ndim - 1)) * given)


def optimal_action_values(world: World, rewards: "ArrayLike", discount: float = 0.95) -> Array:
    """Values of each action under the optimal policy, by policy iteration.

    Args:
        world: with listed states, discrete actions and known dynamics.
        rewards: (n,) for arriving at each state, such as ``model.transform(world.table()) @ weights``; or (n, k) of k
            rewards, each with an optimal policy of its own.
        discount: at least 0 and below 1.

    Returns:
        (n, actions) values, or (n, actions, k).

    Example:
        >>> from lapwing import make_world
        >>> values = optimal_action_values(make_world("room:1x2"), [0.0, 1.0], discount=0.5)
        >>> values.max(axis=1).round(6).tolist()  # 1 for every step: to the right, and staying there
        [2.0, 2.0]
    """
    matrices, gamma = exact_dynamics(world), checked_discount(discount)
    given = _checked_rewards(rewards, matrices[0].shape[0])
    stacked, columns = csr_array(vstack(matrices)), given.reshape(len(given), -1)
    values = np.stack([_optimal(stacked, column, gamma) for column in columns.T], axis=2)
    return values.reshape(len(given), len(matrices), *given.shape[1:])


def greedy_actions(values: "ArrayLike") -> NDArray[np.int64]:
    """The action with the largest value in each state; of those that differ by rounding only, the first.

    Args:
        values: (n, actions) or (n, actions, k).

    Returns:
        (n,) or (n, k) numbers of actions.
    """
    given = as_reals(values)
    if given is None or given.ndim not in (2, 3) or not given.size or not np.isfinite(given).all():
        raise ArgumentError(f"values must be finite numbers of shape (states, actions), got {shown(values)}")
    scale = np.abs(given).max(axis=(0, 1), keepdims=True)
    return np.argmax(given >= given.max(axis=1, keepdims=True) - TIE_TOLERANCE * scale, axis=1)


@dataclass(frozen=True, eq=False)
class SuccessorFeatures:
    """Successor features of several policies: what each collects of every component after each action.

    Args:
        features: (policies, n, actions, dim) expected discounted sums of the components of the states arrived at, when
            the action is followed by the policy.
        discount: of the sums.
    """

    features: Array
    discount: float

    def action_values(self, weights: "ArrayLike") -> Array:
        """Values of each action for a reward, by generalised policy improvement: the best over all policies.

        Acting greedily on them is at least as good, for the projected reward, as the best of the policies.

        Args:
            weights: (dim,) as :func:`reward_weights` gives them, or (dim, k).

        Returns:
            (n, actions) values, or (n, actions, k).
        """
        given = as_reals(weights)
        dim = self.features.shape[-1]
        if given is None or given.ndim not in (1, 2) or len(given) != dim or not np.isfinite(given).all():
            raise ArgumentError(f"weights must be {dim} finite numbers, one for each component, or such columns")
        best = self.features[0] @ given
        for policy in self.features[1:]:
            np.maximum(best, policy @ given, out=best)
        return best


def successor_features(model: LaplacianRepresentation, world: World, discount: float = 0.95) -> SuccessorFeatures:
    """Successor features of the policies that are optimal for each component, and for its negation, as the reward.

    Solved once; any reward then has a policy without further planning, see :meth:`SuccessorFeatures.action_values`.

    Args:
        model: exact or learned, of at least two dimensions; it is evaluated at the world's observations.
        world: with listed states, discrete actions and known dynamics.
        discount: at least 0 and below 1.

    Returns:
        Successor features of ``2 (dim - 1)`` policies: u_2, -u_2, u_3, ...

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x4")
        >>> successor_features(lw.solve(world, dim=3), world).features.shape
        (4, 4, 4, 3)
    """
    check_model(model, 2)
    matrices, gamma = exact_dynamics(world), checked_discount(discount)
    components = np.asarray(model.transform(np.asarray(world.table())), dtype=np.float64)
    states, dim = components.shape
    if 2 * (dim - 1) * states * len(matrices) * dim > MAX_FEATURES:
        raise ArgumentError(
            f"successor features of {states:,} states and {dim} components do not fit; use a smaller dim"
        )
    signed = np.stack([components[:, 1:], -components[:, 1:]], axis=2).reshape(states, -1)
    policies = greedy_actions(optimal_action_values(world, signed, gamma))
    stacked = csr_array(vstack(matrices))
    found = np.empty((policies.shape[1], states, len(matrices), dim))
    for number, actions in enumerate(policies.T):
        collected = _collected(stacked, actions, components, gamma)
        found[number] = _after_each_action(stacked, components + gamma * collected)
    return SuccessorFeatures(found, gamma)


def _optimal(stacked: csr_array, rewards: Array, discount: float) -> Array:
    """(n, actions) values of the optimal policy: policy iteration, one linear solve a round."""
    states = np.arange(len(rewards))
    actions, values = np.zeros_like(states), _after_each_action(stacked, rewards)
    while True:
        # Only a real gain changes an action: rounding could go round for ever.
        gain = values.max(axis=1) - values[states, actions]
        better = gain > TIE_TOLERANCE * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
        if not better.any():
            return values
        actions = np.where(better, values.argmax(axis=1), actions)
        collected = _collected(stacked, actions, rewards, discount)
        values = _after_each_action(stacked, rewards + discount * collected)


def _collected(stacked: csr_array, actions: NDArray[np.int64], rewards: Array, discount: float) -> Array:
    """(n,) or (n, k) expected discounted sums of rewards on arrival along a policy."""
    walk = stacked[actions * len(actions) + np.arange(len(actions))]
    return np.asarray(splu((eye_array(len(actions)) - discount * walk).tocsc()).solve(walk @ rewards))


def _after_each_action(stacked: csr_array, values: Array) -> Array:
    """(n, actions) expectations of (n,) values on arrival, or (n, actions, k) of (n, k)."""
    return (stacked @ values).reshape(-1, *values.shape).swapaxes(0, 1)


def _checked_rewards(rewards: "ArrayLike", states: int) -> Array:
    given = as_reals(rewards)
    if given is None or given.ndim not in (1, 2) or len(given) != states or not np.isfinite(given).all():
        raise ArgumentError(f"rewards must be {states} finite numbers, one for each state, or such columns")
    return given
