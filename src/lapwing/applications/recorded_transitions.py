"""Experience with discrete actions, one row for each transition: what is learned off-policy starts here."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError

# More actions than this are not a list to choose from, but numbers.
MAX_ACTIONS = 1000


class RecordedTransitions(NamedTuple):
    """All transitions of the data.

    Attributes:
        here: (m,) row of the observation before.
        there: (m,) row of the observation after.
        actions: (m,) number of the action among those that occur.
        terminal: (m,) whether the environment ended the episode there.
        labels: (actions,) the environment's numbers of the actions that occur.
    """

    here: NDArray[np.int64]
    there: NDArray[np.int64]
    actions: NDArray[np.int64]
    terminal: NDArray[np.bool_]
    labels: NDArray[np.int64]


def recorded_transitions(data: Trajectories) -> RecordedTransitions:
    """All transitions of data with discrete actions; none crosses the end of an episode.

    Args:
        data: from ``collect(..., record="actions")``.

    Returns:
        The transitions, in order of time.

    Raises:
        DataError: data without actions.
        ArgumentError: actions that are not discrete.
    """
    if not isinstance(data, Trajectories):
        raise ArgumentError(f"experience is needed, Trajectories as lw.collect gives them, got {shown(data)}")
    data.require_one_key()
    if data.actions is None:
        raise DataError('the data have no actions; record them: lw.collect(env, steps, record="actions")')
    given = np.asarray(data.actions)
    given = given[:, 0] if given.shape[1:] == (1,) else given
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ArgumentError(
            f"discrete actions are needed, one whole number per transition; these are {given.dtype} of shape "
            f"{data.actions.shape[1:]} each: make the environment's actions discrete before collecting"
        )
    labels, numbers = np.unique(given, return_inverse=True)
    if labels[0] < 0 or len(labels) > MAX_ACTIONS:
        raise ArgumentError(
            f"actions must be numbers from 0, at most {MAX_ACTIONS:,} different ones; these are {len(labels):,} "
            f"numbers from {labels[0]} to {labels[-1]}"
        )
    # Every state but the last of its episode begins a transition, to the next one.
    before = np.delete(np.arange(data.num_states), np.asarray(data.offsets[1:]) - 1)
    terminal = np.zeros(data.num_transitions, dtype=bool)
    ended = data.terminated & (data.lengths > 0)
    terminal[np.cumsum(data.lengths)[ended] - 1] = True
    return RecordedTransitions(data.rows(before), data.rows(before + 1), numbers, terminal, labels.astype(np.int64))
