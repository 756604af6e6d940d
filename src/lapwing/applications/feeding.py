"""Gymnasium wrappers that feed an online learner with what an agent sees, and update it now and then."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from lapwing.applications.wrappers import batch_of_one, row_encoder
from lapwing.checks import as_whole, shown
from lapwing.errors import ArgumentError
from lapwing.training.online import OnlineLearner, OnlineReport


class Feed:
    """States on their way to an online learner, handed over in blocks; updates at regular intervals.

    Args:
        learner: what learns.
        every: states of all environments together between two updates; 0 for none.
        steps: gradient steps of an update.
        after: states before the first update.
        environments: how many there are.
    """

    def __init__(self, learner: OnlineLearner, every: int, steps: int, after: int, environments: int = 1) -> None:
        """Check the numbers."""
        if not isinstance(learner, OnlineLearner):
            raise ArgumentError(f"learner must be lw.OnlineLearner(...), got {shown(learner)}")
        for name, number, least in (("every", every, 0), ("steps", steps, 1), ("after", after, 0)):
            whole = as_whole(number)
            if whole is None or whole < least:
                raise ArgumentError(f"{name} must be a whole number of at least {least}, got {shown(number)}")
        self.learner, self._every, self._steps, self._after = learner, every, steps, after
        self._rows: list[list[Any]] = [[] for _ in range(environments)]
        self._flags: list[list[tuple[bool, bool]]] = [[] for _ in range(environments)]
        self._actions: list[list[Any]] = [[] for _ in range(environments)]
        self._since = 0

    def see(self, environment: int, row: Any) -> None:
        """Add a state that begins an episode, or that the last action led to.

        Args:
            environment: its number.
            row: the observation.
        """
        self._rows[environment].append(row)
        self._flags[environment].append((False, False))
        # Until an action is taken in it.
        self._actions[environment].append(None)
        self._since += 1

    def act(self, environment: int, action: Any) -> None:
        """Say which action was taken in the last state.

        Args:
            environment: its number.
            action: of the environment.
        """
        if self._actions[environment]:
            self._actions[environment][-1] = action

    def end(self, environment: int, terminated: bool) -> None:
        """Say that the episode ended with the last state, unless that is known already.

        Args:
            environment: its number.
            terminated: whether the environment itself ended it.
        """
        flags = self._flags[environment]
        if flags and not flags[-1][0]:
            flags[-1] = (True, terminated)

    def update(self) -> OnlineReport | None:
        """Hand over what has come in, and update the learner if it is time.

        Returns:
            The report; None where it was not time.
        """
        due = self._every > 0 and self._since >= self._every and self.learner.seen + self._since > self._after
        if not due:
            return None
        self.hand_over()
        return self.learner.update(self._steps)

    def hand_over(self) -> None:
        """Give the learner all states but the newest of each environment, in which no action was taken yet."""
        for number, rows in enumerate(self._rows):
            open_end = bool(rows) and not self._flags[number][-1][0]
            count = len(rows) - int(open_end)
            if count:
                ends, over = np.array(self._flags[number][:count]).T
                self.learner.add(
                    np.stack(rows[:count]), ends, terminated=over, actions=self._taken(number, count), stream=number
                )
            for column in (self._rows, self._flags, self._actions):
                column[number] = column[number][count:]
        self._since = 0

    def _taken(self, number: int, count: int) -> Any:
        """The actions; that of an episode's last state is any."""
        taken = self._actions[number][:count]
        example = next((one for one in taken if one is not None), 0)
        return np.stack([np.asarray(example if one is None else one) for one in taken])


class OnlineWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations feed an online learner; the agent notices nothing.

    Args:
        env: with array or numbered observations, as :func:`lapwing.collect` takes them; numbers become one-hot rows.
        learner: what learns.
        every: steps between two updates; 0 for none, where the agent's own loop calls ``learner.update``.
        steps: gradient steps of an update.
        after: states before the first update.
        key: which entry of dictionary observations the learner takes.

    Example:
        >>> import lapwing as lw
        >>> env = OnlineWrapper(gymnasium.make("lapwing/GridMaze-7-v0"), lw.OnlineLearner(dim=3), every=500, after=1000)
        >>> _ = env.reset(seed=0), env.action_space.seed(0)
        >>> for _ in range(1500):
        ...     _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        ...     if terminated or truncated:
        ...         _ = env.reset()
        >>> [report.seen >= 1000 for report in env.learner.reports]
        [True, True]
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        learner: OnlineLearner,
        every: int = 500,
        steps: int = 16,
        after: int = 1000,
        key: str | None = None,
    ) -> None:
        """Wrap the environment."""
        super().__init__(env)
        self.learner = learner
        self._feed = Feed(learner, every, steps, after)
        self._encode = row_encoder(env.observation_space, key)
        self._begun = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: for the environment.
            options: for the environment.

        Returns:
            The observation and the info.
        """
        observation, info = self.env.reset(seed=seed, options=options)
        # An episode that was left before its end.
        self._feed.end(0, False)
        self._feed.see(0, self._encode(batch_of_one(observation))[0])
        self._begun = True
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step.

        Args:
            action: of the environment.

        Returns:
            Observation, reward, terminated, truncated and info, as they are.
        """
        if not self._begun:
            raise ResetNeeded("call reset() before step()")
        result = self.env.step(action)
        observation, _, terminated, truncated, _ = result
        self._feed.act(0, action)
        self._feed.see(0, self._encode(batch_of_one(observation))[0])
        if terminated or truncated:
            self._feed.end(0, bool(terminated))
        self._feed.update()
        return result

    def close(self) -> None:
        """Hand over what has come in, and close the environment."""
        self._feed.hand_over()
        super().close()


class VectorOnlineWrapper(VectorWrapper):  # type: ignore[type-arg,unused-ignore]
    """A vector environment whose observations feed an online learner, in every autoreset mode.

    Args:
        env: as for :class:`OnlineWrapper`.
        learner: as there; each sub-environment is a stream of its own.
        every: steps of all sub-environments together between two updates; 0 for none.
        steps: as there.
        after: as there.
        key: as there.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        learner: OnlineLearner,
        every: int = 500,
        steps: int = 16,
        after: int = 1000,
        key: str | None = None,
    ) -> None:
        """Wrap the environment."""
        super().__init__(env)
        self.learner = learner
        self._feed = Feed(learner, every, steps, after, env.num_envs)
        self._encode = row_encoder(env.single_observation_space, key)
        self._mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._resetting = np.zeros(env.num_envs, dtype=bool)

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
        begun = np.broadcast_to((options or {}).get("reset_mask", True), self.num_envs)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        rows = self._encode(observations)
        for number in np.flatnonzero(begun).tolist():
            self._feed.end(number, False)
            self._feed.see(number, rows[number])
        self._resetting &= ~begun
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One step of each.

        Args:
            actions: one for each sub-environment.

        Returns:
            Observations, rewards, terminated, truncated and infos, as they are.
        """
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        rows, ended = self._encode(observations), np.logical_or(terminated, truncated)
        for number in range(self.num_envs):
            if self._resetting[number]:
                self._feed.see(number, rows[number])
                continue
            self._feed.act(number, actions[number])
            restarted = self._mode is AutoresetMode.SAME_STEP and bool(ended[number])
            last = self._encode(batch_of_one(infos["final_obs"][number]))[0] if restarted else rows[number]
            self._feed.see(number, last)
            if ended[number]:
                self._feed.end(number, bool(terminated[number]))
            if restarted:
                self._feed.see(number, rows[number])
        if self._mode is AutoresetMode.NEXT_STEP:
            self._resetting = ended
        self._feed.update()
        return observations, rewards, terminated, truncated, infos
