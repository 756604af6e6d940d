"""Wrappers of Gymnasium environments that draw their world anew at every reset, so that one world is learned."""

from typing import Any

import gymnasium
import numpy as np

from lapwing.checks import as_whole, shown
from lapwing.errors import ArgumentError


class FixedSeed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Resets every episode with the same seed: layouts, goals and starts that a reset draws are always the same.

    Only the reset is repeated. After it the environment draws from a generator that goes on from episode to episode and
    follows the seed of the first reset, so that random steps are not the same in every episode. Randomness that an
    environment keeps elsewhere than in ``np_random``, as Atari's emulator does, is repeated.

    Put it around the environment itself, inside all other wrappers.

    Args:
        env: a single environment.
        seed: of every reset.

    Example:
        >>> env = FixedSeed(gymnasium.make("CliffWalking-v1"), seed=3)
        >>> first, _ = env.reset(seed=0)
        >>> first == env.reset()[0]
        True
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seed: int = 0) -> None:
        """Nothing is reset yet."""
        super().__init__(env)
        whole = as_whole(seed)
        if whole is None or whole < 0:
            raise ArgumentError(f"the seed of every reset must be a whole number of at least 0, got {shown(seed)}")
        self._seed = whole
        self._rng: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset with the seed of all episodes; the one given here is that of the steps."""
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        found = self.env.reset(seed=self._seed, options=options)
        self.unwrapped.np_random = self._rng
        return found


class RandomStart(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts the agent of a MiniGrid environment on a free cell drawn at every reset, whatever start it has of its own.

    With :class:`FixedSeed` inside, the layout is one and the starts are many.

    Args:
        env: a MiniGrid environment, inside the wrappers that change what is observed.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        """Refuse an environment that cannot place its agent."""
        super().__init__(env)
        if not (hasattr(env.unwrapped, "place_agent") and hasattr(env.unwrapped, "gen_obs")):
            raise ArgumentError(
                f"RandomStart is for MiniGrid, whose agent can be placed; {type(env.unwrapped).__name__} has no "
                "place_agent: leave it out"
            )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset, then draw the place and the direction of the agent."""
        _, info = self.env.reset(seed=seed, options=options)
        inner: Any = self.unwrapped
        inner.place_agent()
        return inner.gen_obs(), info
