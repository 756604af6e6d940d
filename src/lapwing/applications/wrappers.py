"""Gymnasium wrappers that change rewards and observations by a representation; nothing crosses a reset.

Both take a function of :mod:`lapwing.applications.rewards` for the reward, one for the observation, or both. Rewards
are computed from what the environment observes, whatever the agent gets to see. The environment's own reward stays in
``info["env_reward"]``.
"""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from lapwing.applications.rewards import RepresentationFeatures, Reward
from lapwing.checks import shown
from lapwing.data.from_gymnasium import ObservationEntries
from lapwing.errors import ArgumentError, DataError

ENV_REWARD = "env_reward"
"""Where ``info`` holds the environment's own reward; of several wrappers the innermost writes it."""

Rows = NDArray[Any]


class RepresentationWrapper(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose rewards or observations come from a representation.

    Args:
        env: with array or numbered observations, as :func:`lapwing.collect` takes them; numbers become one-hot rows.
        reward: such as :class:`PotentialReward`; None keeps the environment's.
        features: what the agent observes instead; None keeps the environment's observations.
        key: which entry of dictionary observations the model takes.

    Example:
        >>> import lapwing as lw
        >>> from lapwing.applications import EigenReward, RepresentationFeatures
        >>> env = gymnasium.make("lapwing/GridRoom-1-v0")
        >>> model = lw.solve("GridRoom-1", dim=5)
        >>> env = RepresentationWrapper(env, EigenReward(model, component=2), RepresentationFeatures(model))
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(0)
        >>> observation.shape, info["env_reward"]
        ((4,), 0.0)
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        reward: Reward | None = None,
        features: RepresentationFeatures | None = None,
        key: str | None = None,
    ) -> None:
        """Wrap the environment."""
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, reward=reward, features=features, key=key)
        gymnasium.Wrapper.__init__(self, env)
        self._rows = row_encoder(env.observation_space, key)
        self._reward, self._features = check_parts(reward, features)
        self._here: Rows | None = None
        self._over = False
        if features is not None:
            self.observation_space = feature_space(features, env.observation_space, key)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: for the environment.
            options: for the environment.

        Returns:
            The observation and the info.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        self._here, self._over = self._rows(batch_of_one(observation)), False
        return self._observed(observation, self._here), info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step, with the environment's own reward in ``info["env_reward"]``.

        A step right after the end of an episode is one that only resets, as ``gymnasium.wrappers.Autoreset`` does, and
        keeps its reward.

        Args:
            action: of the environment.

        Returns:
            Observation, reward, terminated, truncated and info.
        """
        if self._here is None:
            raise ResetNeeded("call reset() before step()")
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._here = self._here, self._rows(batch_of_one(observation))
        check_rewards(float(reward))
        if self._reward is not None:
            info = {ENV_REWARD: reward, **info}
            if not self._over:
                reward = float(new_rewards(self._reward, before, self._here, [float(reward)], [terminated])[0])
        self._over = bool(terminated or truncated)
        return self._observed(observation, self._here), float(reward), terminated, truncated, info

    def _observed(self, observation: Any, rows: Rows) -> Any:
        return observation if self._features is None else self._features(rows)[0]


class VectorRepresentationWrapper(VectorWrapper, RecordConstructorArgs):  # type: ignore[type-arg,unused-ignore]
    """A vector environment whose rewards or observations come from a representation, in every autoreset mode.

    Args:
        env: as for :class:`RepresentationWrapper`.
        reward: as there.
        features: as there.
        key: as there.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        reward: Reward | None = None,
        features: RepresentationFeatures | None = None,
        key: str | None = None,
    ) -> None:
        """Wrap the environment."""
        RecordConstructorArgs.__init__(self, _disable_deepcopy=True, reward=reward, features=features, key=key)
        VectorWrapper.__init__(self, env)
        self._rows = row_encoder(env.single_observation_space, key)
        self._reward, self._features = check_parts(reward, features)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._here: Rows | None = None
        self._resetting = np.zeros(env.num_envs, dtype=bool)
        if features is not None:
            self.single_observation_space = feature_space(features, env.single_observation_space, key)
            self.observation_space = batch_space(self.single_observation_space, env.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every sub-environment, or in those of ``options["reset_mask"]``.

        Args:
            seed: for the environment.
            options: for the environment.

        Returns:
            The observations and the infos.
        """
        # The environment may take the mask out of the dictionary.
        begun = np.asarray((options or {}).get("reset_mask", True))
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._here = self._rows(observations)
        self._resetting &= ~begun
        return self._observed(observations, self._here), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of each, with the environment's own rewards in ``infos["env_reward"]``.

        Where a step only resets (``NEXT_STEP``) nothing is changed; where it also resets (``SAME_STEP``) the reward is
        that of the step to ``infos["final_obs"]``, which is changed as observations are.

        Args:
            actions: one for each sub-environment.

        Returns:
            Observations, rewards, terminated, truncated and infos.
        """
        if self._here is None:
            raise ResetNeeded("call reset() before step()")
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        check_rewards(rewards)
        ended, moved = np.logical_or(terminated, truncated), ~self._resetting
        before, self._here = self._here, self._rows(observations)
        there = self._here
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            there, finals = there.copy(), np.full(self.num_envs, None, dtype=object)
            for i in np.flatnonzero(ended):
                there[i], finals[i] = self._rows(batch_of_one(infos["final_obs"][i]))[0], infos["final_obs"][i]
                if self._features is not None:
                    finals[i] = self._features(there[i : i + 1])[0]
            infos = {**infos, "final_obs": finals}
        if self._reward is not None:
            infos = {ENV_REWARD: rewards, f"_{ENV_REWARD}": np.ones(self.num_envs, dtype=bool), **infos}
            rewards = np.where(moved, new_rewards(self._reward, before, there, rewards, terminated), rewards)
        if self._mode is AutoresetMode.NEXT_STEP:
            self._resetting = ended
        return self._observed(observations, self._here), rewards, terminated, truncated, infos

    def _observed(self, observations: Any, rows: Rows) -> Any:
        return observations if self._features is None else self._features(rows)


def row_encoder(space: spaces.Space[Any], key: str | None) -> Callable[[Any], Rows]:
    """A function from a batch of raw observations to the rows that a model takes.

    Args:
        space: of one observation.
        key: which entry of dictionary observations to take.

    Returns:
        The function; its rows are copies.
    """
    if isinstance(space, spaces.Dict) and key is None and len(space.spaces) > 1:
        raise ArgumentError(f"give the key of the observations that the model takes, one of {', '.join(space.spaces)}")
    entries = ObservationEntries.chosen(space, key)
    return lambda batch: np.array(entries.encode(entries.pick(batch))[""])


def check_parts(reward: Any, features: Any) -> tuple[Reward | None, RepresentationFeatures | None]:
    """The two parts of a wrapper, at least one of them given.

    Args:
        reward: a function of transitions, or None.
        features: a function of observations, or None.

    Returns:
        Both.
    """
    if reward is None and features is None:
        raise ArgumentError("give a reward such as PotentialReward, features such as RepresentationFeatures, or both")
    if not (reward is None or callable(reward)):
        raise ArgumentError(f"reward must be a function such as EigenReward(model), got {shown(reward)}")
    if not (features is None or isinstance(features, RepresentationFeatures)):
        raise ArgumentError(f"features must be RepresentationFeatures(model), got {shown(features)}")
    return reward, features


def feature_space(features: RepresentationFeatures, space: spaces.Space[Any], key: str | None) -> spaces.Box:
    """The space of one observation that an agent gets in place of one of ``space``.

    Args:
        features: what it gets.
        space: what the environment observes.
        key: which entry of dictionary observations the model takes.

    Returns:
        A box of float32; components have no bounds, and nor have numbered states that are joined with them.
    """
    width = row_encoder(space, key)(batch_of_one(space.sample()))[0].size if features.joined else 0
    low = np.full(width + features.model.dim - 1, -np.inf, dtype=np.float32)
    high = -low
    entry = space[key or next(iter(space.spaces))] if isinstance(space, spaces.Dict) else space
    if isinstance(entry, spaces.Box):
        low[:width], high[:width] = entry.low.ravel()[:width], entry.high.ravel()[:width]
    return spaces.Box(low, high, dtype=np.float32)


def new_rewards(
    reward: Reward, before: Rows, after: Rows, rewards: "ArrayLike", terminated: "ArrayLike"
) -> NDArray[np.float64]:
    """Rewards of a batch of transitions; an error instead of one that is not finite.

    Args:
        reward: the function.
        before: (n, ...) observations.
        after: (n, ...) next observations, before any reset.
        rewards: (n,) the environment's.
        terminated: (n,) whether episodes ended for good.

    Returns:
        (n,) rewards.
    """
    given = np.asarray(rewards, dtype=np.float64)
    found = reward(before, after, given, np.asarray(terminated, dtype=bool))
    check_rewards(found)
    return found


def check_rewards(rewards: "ArrayLike") -> None:
    """Refuse rewards that are not finite.

    Args:
        rewards: one or several.
    """
    given = np.asarray(rewards, dtype=np.float64)
    if not np.isfinite(given).all():
        raise DataError(f"a reward is not finite, got {shown(given.tolist())}; repair the environment or the reward")


def batch_of_one(observation: Any) -> Any:
    """An observation as a batch.

    Args:
        observation: an array, a number, or a dictionary of them.

    Returns:
        The same with an axis in front.
    """
    if isinstance(observation, dict):
        return {key: batch_of_one(part) for key, part in observation.items()}
    return np.asarray(observation)[None]
