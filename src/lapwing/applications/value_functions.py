"""Value functions on the components: least-squares policy iteration from experience (Lagoudakis & Parr, 2003).

With Laplacian components as features this is representation policy iteration, and the features are proto-value
functions (Mahadevan & Maggioni, 2007). It needs no dynamics: any experience with numbered actions will do.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.applications.options import checked_discount
from lapwing.applications.recorded_transitions import RecordedTransitions, recorded_transitions
from lapwing.applications.trust import check_model
from lapwing.applications.zero_shot import greedy_actions
from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, ConvergenceWarning, DataError
from lapwing.representation import LaplacianRepresentation

Array = NDArray[np.float64]
Features = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class LinearActionValues:
    """Values of actions that are linear in the components of a representation.

    Args:
        model: gives the components.
        coefficients: (features, actions), components first.
        actions: (actions,) the environment's numbers of the actions.
        features: further functions of observations, or None.
        rounds: how many policies were evaluated.
    """

    model: LaplacianRepresentation
    coefficients: Array
    actions: NDArray[np.int64]
    features: Features | None = None
    rounds: int = 0

    def action_values(self, observations: "ArrayLike") -> Array:
        """Values of every action.

        Args:
            observations: (n, ...) of any numeric type.

        Returns:
            (n, actions) values.
        """
        return _encoded(self.model, self.features, np.asarray(observations)) @ self.coefficients

    def policy(self, observation: "ArrayLike") -> int:
        """The action with the largest value.

        Args:
            observation: one.

        Returns:
            The number of an action.
        """
        return int(self.actions[greedy_actions(self.action_values(np.asarray(observation)[None]))[0]])


def least_squares_policy_iteration(
    model: LaplacianRepresentation,
    data: Trajectories,
    rewards: "ArrayLike | Callable[[NDArray[Any]], Any] | None" = None,
    *,
    discount: float = 0.9,
    features: Features | None = None,
    ridge: float = 1e-9,
    most_rounds: int = 100,
) -> LinearActionValues:
    """Learn action values from experience, and the policy that is greedy in them (LSPI).

    Each round evaluates the greedy policy of the last by least-squares temporal differences on all the data, in closed
    form. Components are smooth: a value function with a cliff, such as at a goal that ends the episode, needs many, or
    one of ``features`` that marks the goal.

    Args:
        model: gives the features; exact or learned.
        data: with actions, from ``collect(..., record="actions")``, numbered from 0.
        rewards: (transitions,) numbers, or a function from (n, ...) observations arrived at to (n,) rewards; those of
            the data unless given.
        discount: at least 0 and below 1. After a step that terminated the episode nothing follows.
        features: further functions, from (n, ...) observations to (n, k) numbers.
        ridge: added to the diagonal, as a share of its mean.
        most_rounds: after which it stops where the policy still changes; it also stops where policies repeat.

    Returns:
        The action values.

    Warns:
        ConvergenceWarning: where the policy did not settle. Data of another policy than the one that is evaluated can
            do that, the more so with a discount near one.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("room:1x4", 2000, seed=0, record="actions")
        >>> values = least_squares_policy_iteration(lw.solve(data, dim=4), data, lambda seen: seen[:, 1] > 0.2)
        >>> values.policy(data.observations[0]) == values.policy(data.observations[1])
        True
    """
    gamma, shrink, most = checked_discount(discount), as_real(ridge), as_whole(most_rounds)
    check_model(model)
    if shrink is None or not 0.0 <= shrink < np.inf:
        raise ArgumentError(f"ridge must be a number of at least 0, got {shown(ridge)}")
    if most is None or most < 1:
        raise ArgumentError(f"most_rounds must be a whole number of at least 1, got {shown(most_rounds)}")
    recorded = recorded_transitions(data)
    steps = _steps(model, data, recorded, rewards, features)
    actions = len(recorded.labels)
    size = steps.here.shape[1]
    weighted = steps.here * steps.shares[:, None]
    gram, side = np.zeros((actions, size, size)), np.empty((actions, size))
    for action in range(actions):
        rows = steps.actions == action
        gram[action] = weighted[rows].T @ steps.here[rows]
        side[action] = weighted[rows].T @ steps.rewards[rows]
    mean = float(np.trace(gram, axis1=1, axis2=2).sum()) / (actions * size)
    gram += shrink * mean * np.eye(size)
    coefficients, seen = np.zeros((size, actions)), dict[bytes, int]()
    for number in range(most + 1):
        chosen = greedy_actions(steps.there @ coefficients)
        # What would follow the end of an episode has no value, and its action is rounding.
        chosen[steps.goes_on == 0] = 0
        before = seen.setdefault(chosen.tobytes(), number)
        if before < number or number == most:
            break
        coefficients = _evaluated(steps, weighted, gram, side, chosen, gamma)
    if before != number - 1:
        message = f"the policy did not settle in {number} rounds; take a smaller discount, or another dim"
        warnings.warn(message, ConvergenceWarning, stacklevel=2)
    return LinearActionValues(model, coefficients, recorded.labels, features, number)


class _Steps(NamedTuple):
    """Distinct transitions: features at both ends, actions, rewards, whether the episode goes on, and shares."""

    here: Array
    there: Array
    actions: NDArray[np.int64]
    rewards: Array
    goes_on: Array
    shares: Array


def _evaluated(
    steps: _Steps, weighted: Array, gram: Array, side: Array, chosen: NDArray[np.int64], gamma: float
) -> Array:
    """(features, actions) coefficients of the policy that takes ``chosen`` after each step: LSTD-Q."""
    actions, size = side.shape
    system = np.zeros((actions, size, actions, size))
    for action in range(actions):
        system[action, :, action] = gram[action]
        for following in range(actions):
            rows = (steps.actions == action) & (chosen == following)
            discounted = gamma * steps.goes_on[rows, None] * steps.there[rows]
            system[action, :, following] -= weighted[rows].T @ discounted
    square = system.reshape(actions * size, -1)
    try:
        found = np.linalg.solve(square, side.ravel())
    except np.linalg.LinAlgError:  # without a ridge, features that depend on one another
        found = np.linalg.lstsq(square, side.ravel(), rcond=None)[0]
    return np.asarray(found, dtype=np.float64).reshape(actions, size).T


def _encoded(model: LaplacianRepresentation, features: Features | None, observations: NDArray[Any]) -> Array:
    values = np.asarray(model.transform(observations), dtype=np.float64)
    if features is None:
        return values
    further = as_reals(features(observations))
    if further is None or further.ndim != 2 or len(further) != len(values) or not np.isfinite(further).all():
        raise ArgumentError(
            f"features must map {len(values)} observations to finite numbers of shape ({len(values)}, k)"
        )
    return np.concatenate([values, further], axis=1)


def _steps(
    model: LaplacianRepresentation,
    data: Trajectories,
    recorded: RecordedTransitions,
    rewards: Any,
    features: Features | None,
) -> _Steps:
    here, there, actions, terminal, _ = recorded
    received = _received(data, rewards, there)
    columns = np.stack([here, actions, there, ~terminal], axis=1)
    shares = np.full(len(columns), 1.0 / len(columns))
    if data.has_table:
        # The same transition many times is one with a larger share; its rewards are averaged.
        columns, numbers, counts = np.unique(columns, axis=0, return_inverse=True, return_counts=True)
        received = np.bincount(numbers.ravel(), received) / counts
        shares = counts / len(here)
    used, places = np.unique(columns[:, [0, 2]], return_inverse=True)
    encoded = _encoded(model, features, data.observations[used])
    starts, ends = encoded[places.reshape(-1, 2)].transpose(1, 0, 2)
    return _Steps(starts, ends, columns[:, 1], received, columns[:, 3].astype(np.float64), shares)


def _received(data: Trajectories, rewards: Any, next_rows: NDArray[np.int64]) -> Array:
    """(transitions,) rewards."""
    if rewards is None and data.rewards is None:
        raise DataError("these data have no rewards; give rewards=, or collect with record=('actions', 'rewards')")
    if callable(rewards):
        distinct, places = np.unique(next_rows, return_inverse=True)
        found = as_reals(rewards(data.observations[distinct]))
        given = None if found is None or found.shape != distinct.shape else found[places]
    else:
        given = as_reals(np.asarray(data.rewards) if rewards is None else rewards)
    if given is None or given.shape != next_rows.shape or not np.isfinite(given).all():
        raise ArgumentError(f"rewards must be {len(next_rows)} finite numbers, one for each transition")
    return given
