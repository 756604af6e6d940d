"""Episodes glued together at resets, as a collector that works in chunks may leave them: a cause of bias."""

from dataclasses import replace

import numpy as np

from lapwing import Trajectories
from lapwing.errors import ArgumentError, DataError


def glue_episodes(data: Trajectories, every: int) -> Trajectories:
    """The same data as a collector leaves it that resets its world every ``every`` states, unnoticed.

    The episode that the end of a chunk cuts is not closed: what was seen of it stays in the buffer, and the first
    episode of the next chunk is appended. So one episode of each chunk is longer by the beginning of another, with a
    jump in the middle that no step made. What remained of the cut episode is lost.

    Args:
        data: trajectories whose observations repeat.
        every: states between two resets, at least 2.

    Returns:
        Trajectories with fewer and longer episodes.

    Example:
        >>> from lapwing import collect
        >>> data = collect("GridRoom-1", 10_000, seed=0)            # 200 episodes of 50 transitions
        >>> glued = glue_episodes(data, every=1_000)
        >>> int(glued.lengths.max()) > 50, glued.num_episodes < data.num_episodes
        (True, True)
    """
    if every < 2:
        raise ArgumentError(f"episodes are glued every so many states, at least 2; got {every}")
    kept = np.ones(data.num_states, dtype=bool)
    open_end = np.zeros(data.num_episodes, dtype=bool)
    filled = 0
    for episode, (start, stop) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        left = every - filled
        if stop - start > left and episode + 1 < data.num_episodes:
            # The chunk ends inside this episode: the next one is appended to what was seen of it.
            kept[start + left : stop] = False
            open_end[episode] = True
            filled = 0
        else:
            filled = (filled + int(stop - start)) % every
    positions = np.flatnonzero(kept)
    sizes = np.add.reduceat(kept, np.asarray(data.offsets[:-1]))
    ends = np.cumsum(sizes)[~open_end]
    rows = data.rows(positions).astype(np.int32)
    if not data.has_table:
        raise DataError("only data whose observations repeat can be glued")
    return replace(
        data,
        ids=rows,
        offsets=np.concatenate([[0], ends]).astype(np.int64),
        terminated=np.asarray(data.terminated)[~open_end],
        truncated=np.asarray(data.truncated)[~open_end],
    )


def crossing_probability(every: int, episode_length: int, discount: float) -> float:
    """The probability that a sampled pair of states lies on two sides of a jump in glued episodes.

    Exact for the sampler of the paper: a uniform episode, a uniform start in it, a geometric lag cut at its end. Each
    chunk begins with a fresh episode, so what its end cuts off is always of the same length: of 10,000 states and
    episodes of 51 four are left over, and one episode in 196 is glued after them.

    Args:
        every: states between two resets.
        episode_length: transitions per episode.
        discount: of the geometric lags.

    Returns:
        A probability.

    Example:
        >>> round(crossing_probability(10_000, 50, 0.9), 6)
        0.000325
    """
    whole, part = divmod(every, episode_length + 1)
    return _crossing_in_episode(part, part + episode_length + 1, discount) / whole if part and whole else 0.0


def _crossing_in_episode(jump: int, states: int, discount: float) -> float:
    """In an episode of so many states whose first ``jump`` belong to another: the chance that a pair crosses."""
    starts = np.arange(min(jump, states - 1))
    left = states - 1 - starts
    # The lag is at least jump - start.
    beyond = discount ** (jump - starts - 1.0)
    return float(((beyond - discount**left) / (1.0 - discount**left)).sum() / (states - 1))
