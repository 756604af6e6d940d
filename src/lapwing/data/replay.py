"""Replay buffers of other libraries as experience, by their arrays; none of these libraries is imported.

Such a buffer is a ring: what was written last may stand anywhere in it, and the oldest episode may have lost its
beginning. Rows are brought into order of time, and episodes are cut there and at every reset.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_whole, shown
from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean


def from_sb3(buffer: Any, *, keys: "str | Sequence[str] | None" = None) -> Trajectories:
    """Experience from a replay or rollout buffer of Stable-Baselines3.

    Args:
        buffer: a ``ReplayBuffer``, ``DictReplayBuffer`` or ``RolloutBuffer``, such as ``model.replay_buffer``.
        keys: which keys to take where observations are dictionaries; all unless given.

    Returns:
        Observations, actions and rewards. A replay buffer with ``optimize_memory_usage`` and a rollout buffer do not
        hold the observation that ends an episode, so the step that leads to it is left out.

    Raises:
        DataError: an empty buffer, or one whose rows do not follow one another.

    Example:
        >>> from_sb3(model.replay_buffer)  # doctest: +SKIP
    """
    size, position = as_whole(getattr(buffer, "buffer_size", None)), as_whole(getattr(buffer, "pos", None))
    parts = ("full", "observations", "actions", "rewards")
    if size is None or position is None or not all(hasattr(buffer, name) for name in parts):
        raise ArgumentError(f"from_sb3 takes a buffer such as model.replay_buffer, got {shown(buffer)}")
    if getattr(buffer, "generator_ready", False):
        raise DataError("the rollout buffer has been flattened for training; read it before, in _on_rollout_end")
    order = _in_time(size, position, bool(buffer.full))
    is_rollout, shares_rows = hasattr(buffer, "episode_starts"), bool(getattr(buffer, "optimize_memory_usage", False))
    following = None if is_rollout or shares_rows else buffer.next_observations
    if is_rollout:
        # An episode ends in the row before the next one begins.
        ends, timeouts = np.roll(np.asarray(buffer.episode_starts)[order] != 0, -1, axis=0), None
    else:
        if shares_rows:
            # The next observation of the newest row has been written into the row after it, of a full ring the oldest.
            order = np.append(order[1:] if buffer.full else order, position % size)
        ends, timeouts = (np.asarray(part)[order] != 0 for part in (buffer.dones, buffer.timeouts))
    return _from_rows(order, buffer.observations, following, ends, timeouts, buffer.actions, buffer.rewards, keys)


def from_flashbax(
    state: Any,
    *,
    observation: str = "obs",
    done: str = "done",
    next_observation: str | None = None,
    action: str | None = None,
    reward: str | None = None,
    keys: "str | Sequence[str] | None" = None,
) -> Trajectories:
    """Experience from the state of a flashbax trajectory, flat or prioritised buffer.

    Args:
        state: with ``experience``, a dictionary, named tuple or dataclass of arrays (batch, time, ...), and
            ``current_index`` and ``is_full``.
        observation: the name of the observations in ``experience``, nested ones with dots; an array or a dictionary.
        done: the name of the flags that say where an episode ended with this step.
        next_observation: the name of the next observations, where they are stored; without them the step that ends an
            episode is left out.
        action: the name of the actions; left out unless given.
        reward: the name of the rewards; left out unless given.
        keys: which keys to take where observations are dictionaries; all unless given.

    Returns:
        The experience.

    Raises:
        DataError: an empty buffer, or one whose rows do not follow one another.

    Example:
        >>> from_flashbax(buffer_state, observation="obs", done="done")  # doctest: +SKIP
    """
    if not all(hasattr(state, name) for name in ("experience", "current_index", "is_full")):
        raise ArgumentError(f"from_flashbax takes the state of a buffer, with experience in it; got {shown(state)}")
    names = (observation, next_observation, action, reward)
    parts = [None if name is None else _time_first(_entry(state.experience, name)) for name in names]
    rows, following, actions, rewards = parts
    flags = np.asarray(_time_first(_entry(state.experience, done)))
    order = _in_time(len(flags), int(state.current_index), bool(state.is_full))
    return _from_rows(order, rows, following, flags[order] != 0, None, actions, rewards, keys)


def _in_time(size: int, position: int, full: bool) -> NDArray[np.int64]:
    """Rows of a ring from the oldest to the newest; ``position`` is where the next one will be written."""
    if not 0 <= position <= size:
        raise DataError(f"the buffer says that it writes to row {position} of {size}; it is damaged")
    return (np.arange(size) + position) % size if full else np.arange(position)


def _from_rows(
    order: NDArray[np.int64],
    observations: Any,
    following: Any,
    ends: NDArray[np.bool_],
    timeouts: NDArray[np.bool_] | None,
    actions: Any,
    rewards: Any,
    keys: "str | Sequence[str] | None",
) -> Trajectories:
    """Experience from arrays (rows, environments, ...), of which ``order`` are taken; flags are in that order."""
    if len(order) < (1 if following is not None else 2):
        raise DataError("the buffer is empty; let the agent act before reading it")

    def in_time(part: Any) -> Any:
        """All of the first environment, then all of the second, ..."""
        if isinstance(part, Mapping):
            return {key: in_time(inner) for key, inner in part.items()}
        return None if part is None else np.concatenate(list(np.swapaxes(np.asarray(part)[order], 0, 1)))

    truncated = np.zeros_like(ends) if timeouts is None else timeouts.copy()
    # Nothing follows the newest row.
    truncated[-1] |= ~ends[-1]
    flags = (np.concatenate(list(part.T)) for part in (ends & ~truncated, truncated))
    terminated, cut = flags
    given = (in_time(part) for part in (observations, following, actions, rewards))
    rows, after, taken, earned = given
    return from_arrays(
        rows, next_observations=after, terminated=terminated, truncated=cut, actions=taken, rewards=earned, keys=keys
    )


def _entry(experience: Any, name: str) -> Any:
    """A part of a nested structure by its name."""
    found = experience
    for part in name.split("."):
        known = list(found) if isinstance(found, Mapping) else [one for one in dir(found) if not one.startswith("_")]
        if part not in known:
            raise UnknownNameError(f"no {shown(name)} in the experience of the buffer; {did_you_mean(part, known)}")
        found = found[part] if isinstance(found, Mapping) else getattr(found, part)
    return found


def _time_first(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {key: _time_first(inner) for key, inner in part.items()}
    array = np.asarray(part)
    if array.ndim < 2:
        raise DataError(f"the arrays of a buffer have the axes (batch, time, ...), got shape {array.shape}")
    return np.swapaxes(array, 0, 1)
