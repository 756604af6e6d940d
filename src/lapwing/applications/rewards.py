"""Rewards and features from a representation, as functions of batches of observations.

A reward takes ``(observations, next_observations, rewards, terminated)``, the batch of transitions that was made and
what the environment gave for it, and returns (n,) new rewards. :mod:`lapwing.applications.wrappers` applies these
functions inside Gymnasium, :mod:`lapwing.applications.sb3` inside Stable-Baselines3.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.applications.trust import check_model, warn_of_untrusted
from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.errors import ArgumentError, DataError, LapwingError
from lapwing.representation import LaplacianRepresentation

Reward = Callable[[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_]], NDArray[np.float64]]
"""From (n, ...) observations, (n, ...) next ones, (n,) rewards and (n,) terminations to (n,) new rewards."""

# Of the caller of a dataclass that warns: __post_init__ and the generated __init__ stand between.
CALLER_OF_A_DATACLASS = 4


@dataclass(frozen=True, eq=False)
class GoalDistance:
    """Distance to a goal in the embedding, in units of its own root mean square over the data.

    ``|psi(s) - psi(goal)|`` is a square root of steps in the scaled embedding and has no unit in the plain one. Divided
    by ``sqrt(E|psi(s) - psi(goal)|^2)`` it is 0 at the goal and 1 for a typical state in both. Because components have
    mean 0 and mean square 1, that is ``sqrt(sum_i 1 / lambda_i + |psi(goal)|^2)``: no data are needed.

    Args:
        model: exact or learned, of at least two dimensions.
        goal: the observation of the goal, as the model takes observations.
        scaled: distances of psi, whose squares are commute times; False for those of the plain components.

    Raises:
        ArgumentError: a goal of the wrong shape or that a table does not know; unconnected parts with ``scaled``.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")                           # a corridor of three cells
        >>> distance = GoalDistance(lw.solve(world, dim=3), goal=world.table()[0])
        >>> distance(world.table()).round(4).tolist()                   # commute times 0, 12 and 24, mean 12
        [0.0, 1.0, 1.4142]
    """

    model: LaplacianRepresentation
    goal: "ArrayLike"
    scaled: bool = True

    def __post_init__(self) -> None:
        """Refuse what has no distances, and warn of components that are not trusted."""
        check_model(self.model, 2)
        given = as_reals(self.goal)
        if given is None or not np.isfinite(given).all():
            raise ArgumentError(
                f"the goal must be the observation of one state, an array of finite numbers, got {shown(self.goal)}"
            )
        try:
            _ = self._goal
        except LapwingError as error:
            raise ArgumentError(f"the goal {shown(self.goal)} cannot be used: {error}") from error
        message = "distances in components that are not trusted may mislead"
        warn_of_untrusted(self.model, range(2, self.model.dim + 1), message, CALLER_OF_A_DATACLASS)

    @cached_property
    def _goal(self) -> NDArray[np.float64]:
        """(dim - 1,) the goal in the embedding."""
        return _embedded(self.model, np.asarray(self.goal)[None], self.scaled)[0]

    @cached_property
    def _size(self) -> float:
        squares = 1.0 / (1.0 - self.model.mu[1 : self.model.dim]) if self.scaled else np.ones(self.model.dim - 1)
        return float(np.sqrt(squares.sum() + (self._goal**2).sum()))

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """The distance of each of a batch.

        Args:
            observations: (n, ...) as the model takes them.

        Returns:
            (n,) distances.
        """
        apart = _embedded(self.model, observations, self.scaled) - self._goal
        return np.asarray(np.linalg.norm(apart, axis=1) / self._size)


@dataclass(frozen=True, eq=False)
class EigenReward:
    """The eigenpurpose of a component, ``sign (u_i(s') - u_i(s))`` (Machado et al., 2017), in place of the reward.

    Args:
        model: exact or learned.
        component: from 2 to ``model.dim``; the first one is constant.
        sign: 1 leads uphill, -1 downhill; which end of a component is up is arbitrary.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")
        >>> reward = EigenReward(lw.solve(world, dim=2), component=2, sign=-1)
        >>> left, right = world.table()[:1], world.table()[2:]
        >>> there, back = (reward(*way, np.zeros(1), np.zeros(1, dtype=bool)) for way in ((left, right), (right, left)))
        >>> (there + back).round(6).tolist()
        [0.0]
    """

    model: LaplacianRepresentation
    component: int = 2
    sign: int = 1

    def __post_init__(self) -> None:
        """Refuse a component that there is not, and warn of one that is not trusted."""
        check_model(self.model, 2)
        number = as_whole(self.component)
        if number is None or not 2 <= number <= self.model.dim:
            raise ArgumentError(
                f"component must be a whole number from 2 to {self.model.dim} (1 is constant), "
                f"got {shown(self.component)}"
            )
        if as_whole(self.sign) not in (1, -1):
            raise ArgumentError(f"sign must be 1 or -1, got {shown(self.sign)}")
        warn_of_untrusted(
            self.model, [number], "rewards of a component that is not trusted may mislead", CALLER_OF_A_DATACLASS
        )

    def __call__(
        self,
        observations: NDArray[Any],
        next_observations: NDArray[Any],
        rewards: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Rewards of a batch of transitions.

        Args:
            observations: (n, ...) before.
            next_observations: (n, ...) after.
            rewards: (n,) not used.
            terminated: (n,) not used.

        Returns:
            (n,) rewards.
        """
        both = _embedded(self.model, np.concatenate([observations, next_observations]), scaled=False)
        values = both[:, int(self.component) - 2]
        return self.sign * (values[len(observations) :] - values[: len(observations)])


@dataclass(frozen=True, eq=False)
class PotentialReward:
    """The reward plus ``discount Phi(s') - Phi(s)`` with ``Phi(s) = -scale distance(s)`` (Ng, Harada & Russell, 1999).

    Optimal policies stay the same. For that the potential of a terminated next state is 0; one that was only cut off
    by a time limit keeps its potential.

    Args:
        distance: to the goal.
        discount: the agent's own.
        scale: the return that lies between the goal and a typical state, such as its path length with rewards of -1.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")
        >>> distance = GoalDistance(lw.solve(world, dim=3), goal=world.table()[0])
        >>> reward = PotentialReward(distance, discount=0.5, scale=2.0)
        >>> steps = world.table()[[1, 1]], world.table()[[0, 2]]         # towards the goal, and away
        >>> reward(*steps, np.array([-1.0, -1.0]), np.array([False, False])).round(4).tolist()
        [1.0, -0.4142]
    """

    distance: GoalDistance
    discount: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        """Refuse another discount than one between 0 and 1, and a scale that is not positive."""
        _check_distance(self.distance)
        discount, scale = as_real(self.discount), as_real(self.scale)
        if discount is None or not 0.0 <= discount <= 1.0:
            raise ArgumentError(f"discount must be the agent's own, from 0 to 1, got {shown(self.discount)}")
        if scale is None or not 0.0 < scale < np.inf:
            raise ArgumentError(f"scale must be a positive number, got {shown(self.scale)}")

    def __call__(
        self,
        observations: NDArray[Any],
        next_observations: NDArray[Any],
        rewards: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Rewards of a batch of transitions.

        Args:
            observations: (n, ...) before.
            next_observations: (n, ...) after.
            rewards: (n,) the environment's.
            terminated: (n,) whether the next state ends the episode for good.

        Returns:
            (n,) rewards.
        """
        potentials = -self.scale * self.distance(np.concatenate([observations, next_observations]))
        before, after = potentials[: len(observations)], potentials[len(observations) :]
        return np.asarray(rewards + self.discount * np.where(terminated, 0.0, after) - before)


@dataclass(frozen=True, eq=False)
class MixedReward:
    """``-weight distance(s') + (1 - weight) r`` (Wu, Tucker & Nachum, 2019, with weight 0.5).

    It leads straight to the goal, and unlike :class:`PotentialReward` it can change which policy is optimal.

    Args:
        distance: to the goal.
        weight: of the distance, from 0 to 1.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")
        >>> reward = MixedReward(GoalDistance(lw.solve(world, dim=3), goal=world.table()[0]))
        >>> steps = world.table()[[1, 1]], world.table()[[0, 2]]         # to the goal, and away from it
        >>> reward(*steps, np.array([0.0, -1.0]), np.array([False, False])).round(4).tolist()
        [0.0, -1.2071]
    """

    distance: GoalDistance
    weight: float = 0.5

    def __post_init__(self) -> None:
        """Refuse another weight than one between 0 and 1."""
        _check_distance(self.distance)
        weight = as_real(self.weight)
        if weight is None or not 0.0 <= weight <= 1.0:
            raise ArgumentError(f"weight must be a number from 0 to 1, got {shown(self.weight)}")

    def __call__(
        self,
        observations: NDArray[Any],
        next_observations: NDArray[Any],
        rewards: NDArray[Any],
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """Rewards of a batch of transitions.

        Args:
            observations: (n, ...) not used.
            next_observations: (n, ...) after.
            rewards: (n,) the environment's.
            terminated: (n,) not used.

        Returns:
            (n,) rewards.
        """
        return np.asarray((1.0 - self.weight) * rewards - self.weight * self.distance(next_observations))


@dataclass(frozen=True, eq=False)
class RepresentationFeatures:
    """The representation as an observation, in place of the environment's own or joined with it.

    Args:
        model: exact or learned, of at least two dimensions; the constant component is left out.
        scaled: psi instead of the plain components; these have mean square 1, which suits networks.
        joined: put the flattened observation before them.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x3")
        >>> RepresentationFeatures(lw.solve(world, dim=3), joined=True)(world.table()).shape
        (3, 4)
    """

    model: LaplacianRepresentation
    scaled: bool = False
    joined: bool = False

    def __post_init__(self) -> None:
        """Refuse what has no embedding, and warn of components that are not trusted."""
        check_model(self.model, 2)
        message = "features of components that are not trusted may mislead"
        warn_of_untrusted(self.model, range(2, self.model.dim + 1), message, CALLER_OF_A_DATACLASS)

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Features of a batch.

        Args:
            observations: (n, ...) as the model takes them.

        Returns:
            (n, dim - 1) components 2 to ``dim``, after the flattened observation where ``joined``.
        """
        values = _embedded(self.model, observations, self.scaled)
        if self.joined:
            values = np.concatenate([observations.reshape(len(observations), -1), values], axis=1)
        return values.astype(np.float32)


def _embedded(model: LaplacianRepresentation, observations: NDArray[Any], scaled: bool) -> NDArray[np.float64]:
    """(n, dim - 1) finite values; an error where an observation is not finite or the model is not."""
    if observations.dtype.kind == "f" and not np.isfinite(observations).all():
        raise DataError("an observation holds NaN or infinity; repair the environment, no reward can be given for it")
    values = np.asarray(model.embedding(observations, scaled), dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError("the representation of an observation holds NaN or infinity; see model.problems()")
    return values


def _check_distance(distance: GoalDistance) -> None:
    if not isinstance(distance, GoalDistance):
        raise ArgumentError(f"distance must be GoalDistance(model, goal), got {shown(distance)}")
