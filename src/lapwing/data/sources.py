"""Experience that already exists: plain arrays, and local Minari data sets."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_reals, shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.trajectories import Trajectories
from lapwing.errors import LapwingError
from lapwing.storage.reading import MAX_ITEM_BYTES, NUMBER_KINDS


def from_arrays(
    observations: ArrayLike | Sequence[ArrayLike],
    *,
    lengths: ArrayLike | None = None,
    episode_ids: ArrayLike | None = None,
    terminated: ArrayLike | None = None,
    truncated: ArrayLike | None = None,
    next_observations: ArrayLike | None = None,
    out: str | Path | None = None,
) -> Trajectories:
    """Experience from arrays, in any of the usual shapes; where each episode ends must be said.

    Args:
        observations: a list with one array (states, ...) per episode, or one array of all rows in order of time.
        lengths: rows in each episode.
        episode_ids: (rows,) a label that changes where a new episode begins.
        terminated: (rows,) true at the last row of an episode that the environment ended; with a list of
            episodes, one per episode.
        truncated: the same for episodes that were cut off from outside.
        next_observations: (rows, ...) if each row is a transition; the last one then completes its episode.
        out: folder to write to, for data larger than memory.

    Example:
        >>> data = from_arrays([[[0.0], [1.0], [2.0]], [[5.0], [6.0]]])
        >>> data.num_episodes, data.num_transitions
        (2, 3)
    """
    if (
        isinstance(observations, (list, tuple))
        and lengths is None
        and episode_ids is None
        and next_observations is None
    ):
        return _from_episodes(observations, terminated, truncated, out)
    rows = _as_rows(observations)
    ends = _episode_ends(len(rows), lengths, episode_ids, terminated, truncated)
    pieces = np.split(rows, ends[:-1])
    if next_observations is not None:
        following = _as_rows(next_observations)
        if following.shape != rows.shape:
            raise LapwingError(
                f"next_observations must have the shape of observations {rows.shape}, got {following.shape}"
            )
        _check_continuity(rows, following, ends)
        pieces = [np.concatenate([piece, following[end - 1 : end]]) for piece, end in zip(pieces, ends, strict=True)]
    flags = [None if given is None else _flags_at(ends, given) for given in (terminated, truncated)]
    return _from_episodes(pieces, flags[0], flags[1], out)


def from_minari(dataset: Any, *, out: str | Path | None = None) -> Trajectories:
    """Experience from a local Minari data set, by its name or as an object; needs the ``minari`` extra."""
    name = dataset if isinstance(dataset, str) else str(getattr(getattr(dataset, "spec", None), "dataset_id", "minari"))
    if isinstance(dataset, str):
        dataset = _load_minari(dataset)
    with TrajectoryBuilder(out) as builder:
        for episode in _episodes(dataset, name):
            observations = episode.observations
            if isinstance(observations, (dict, tuple)):
                raise LapwingError(
                    f"{name}: observations are a {type(observations).__name__}, not arrays; flatten them"
                )
            rows = _as_rows(observations)
            if len(rows) < 2:
                continue
            ends = [np.array([bool(np.asarray(flags)[-1])]) for flags in (episode.terminations, episode.truncations)]
            builder.add(rows, np.array([len(rows) - 1]), ends[0], ends[1])
        return builder.finish({"world": {"kind": "minari", "name": name}})


def _episodes(dataset: Any, name: str) -> Iterator[Any]:
    """The episodes of a Minari data set, one by one; a damaged one is an error that names the data set."""
    try:
        yield from dataset.iterate_episodes()
    except Exception as error:  # as above
        if isinstance(error, LapwingError):
            raise
        raise LapwingError(f"the Minari data set {name!r} is damaged ({error}); download it again") from error


def _load_minari(name: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise LapwingError("reading Minari data sets needs an extra: pip install 'lapwing[minari]'") from error
    try:
        return minari.load_dataset(name, download=False)
    except Exception as error:  # a damaged file fails in the libraries' depths in too many ways to list
        raise LapwingError(
            f"no local Minari data set {name!r} can be read ({error}); `minari list local` shows those there are"
        ) from error


def _from_episodes(
    episodes: Sequence[ArrayLike], terminated: ArrayLike | None, truncated: ArrayLike | None, out: str | Path | None
) -> Trajectories:
    count = len(episodes)
    if count == 0:
        raise LapwingError("the data set is empty: it has no episode; give at least one with two states")
    arrays = [_as_rows(episode) for episode in episodes]
    # One type for all, else equal observations of different types would count as different ones.
    common = np.result_type(*{array.dtype for array in arrays})
    arrays = [array.astype(common, copy=False) for array in arrays]
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise LapwingError(f"episodes have observations of different shapes: {sorted(shapes)}")
    ended = np.zeros(count, dtype=bool) if terminated is None else _flags(terminated, count, "episode")
    cut = ~ended if truncated is None else _flags(truncated, count, "episode")
    # An episode of one state holds no transition; it says nothing and is left out.
    kept = [number for number, array in enumerate(arrays) if len(array) > 1]
    if not kept:
        raise LapwingError("the data set is empty: no episode has two states; check where episodes end")
    with TrajectoryBuilder(out) as builder:
        for number in kept:
            flags = np.array([[ended[number]], [cut[number]]])
            builder.add(arrays[number], np.array([len(arrays[number]) - 1]), flags[0], flags[1])
        return builder.finish({"world": {"kind": "arrays", "name": "arrays"}})


def _episode_ends(
    rows: int,
    lengths: ArrayLike | None,
    episode_ids: ArrayLike | None,
    terminated: ArrayLike | None,
    truncated: ArrayLike | None,
) -> NDArray[np.int64]:
    """One past the last row of each episode."""
    if lengths is not None and episode_ids is not None:
        raise LapwingError("give lengths or episode_ids, not both")
    if lengths is not None:
        ends = np.cumsum(_checked_lengths(lengths))
        if (np.diff(ends, prepend=0) < 1).any() or len(ends) == 0 or ends[-1] != rows:
            raise LapwingError(
                f"lengths must be positive and add up to the {rows} rows, they add up to {ends[-1:].sum()}"
            )
        return ends
    if episode_ids is not None:
        try:
            labels = np.asarray(episode_ids)
        except ValueError:
            labels = np.empty((0, 0))
        if labels.shape != (rows,):
            raise LapwingError(f"episode_ids must be one label per row ({rows}), got shape {labels.shape}")
        return np.append(np.flatnonzero(labels[1:] != labels[:-1]) + 1, rows)
    if terminated is None and truncated is None:
        raise LapwingError(
            "one array does not say where episodes end; give lengths, episode_ids, or terminated/truncated "
            "(for a single episode: lengths=[number of rows])"
        )
    flags = np.zeros(rows, dtype=bool)
    for given in (terminated, truncated):
        if given is not None:
            flags |= _flags(given, rows, "row")
    ends = np.flatnonzero(flags) + 1
    return ends if len(ends) and ends[-1] == rows else np.append(ends, rows)


def _checked_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    numbers = as_reals(lengths)
    if numbers is None or numbers.ndim != 1 or not (np.abs(numbers) < 2**53).all() or (numbers % 1 != 0).any():
        raise LapwingError(f"lengths must be a list of whole numbers, rows in each episode; got {shown(lengths)}")
    return numbers.astype(np.int64)


def _check_continuity(rows: NDArray[Any], following: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Each next observation must be the next row, except at the end of an episode: else a boundary is missing."""
    given, wanted = following[:-1], rows[1:]
    # NaN is left to the check that names it.
    equal = (given == wanted) | ((given != given) & (wanted != wanted))
    same = np.all(equal, axis=tuple(range(1, rows.ndim)))
    same[ends[:-1] - 1] = True
    if not same.all():
        row = int(np.argmin(same))
        raise LapwingError(
            f"next_observations of row {row} is not row {row + 1} ({int((~same).sum())} such place(s)): "
            "an episode ends there, so mark it in terminated or truncated"
        )


def _as_rows(observations: Any) -> NDArray[Any]:
    try:
        rows = np.asarray(observations)
    except (ValueError, OverflowError) as error:
        raise LapwingError(f"observations do not form an array ({error}); give one array per episode") from error
    if rows.dtype.kind not in NUMBER_KINDS or rows.dtype.itemsize > MAX_ITEM_BYTES:
        raise LapwingError(f"observations must be numbers, got {rows.dtype}")
    if not rows.dtype.isnative:
        rows = rows.astype(rows.dtype.newbyteorder("="))
    if rows.ndim == 0 or rows.size == 0:
        raise LapwingError("the data set is empty: it has no observation")
    rows = rows.astype(np.uint8) if rows.dtype == np.bool_ else rows
    return rows[:, None] if rows.ndim == 1 else rows


def _flags_at(ends: NDArray[np.int64], given: ArrayLike) -> NDArray[np.bool_]:
    """The flags at the last row of each episode; one inside an episode is a boundary that lengths or ids deny."""
    flags = _flags(given, int(ends[-1]), "row")
    inside = flags.copy()
    inside[ends - 1] = False
    if inside.any():
        raise LapwingError(
            f"row {int(np.argmax(inside))} ends an episode by terminated or truncated, "
            "but lengths or episode_ids go on; make them agree"
        )
    return flags[ends - 1]


def _flags(given: ArrayLike, count: int, per: str) -> NDArray[np.bool_]:
    numbers = as_reals(given)
    if numbers is None or not np.isfinite(numbers).all():
        raise LapwingError(f"terminated and truncated are true or false at each {per}, got {shown(given)}")
    flags = numbers != 0
    if flags.shape != (count,):
        raise LapwingError(f"terminated and truncated need one value per {per} ({count}), got shape {flags.shape}")
    return flags
