"""Experience that already exists: plain arrays, local Minari data sets, and OGBench files."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_path, as_reals, shown
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.trajectories import Trajectories, row_blocks
from lapwing.errors import ArgumentError, DataError, LapwingError, MissingExtraError, UnknownNameError, did_you_mean
from lapwing.storage.reading import MAX_ITEM_BYTES, NUMBER_KINDS, ArchivedArray, open_archive

GROUP_STATES = 1 << 10


def from_arrays(
    observations: "ArrayLike | Sequence[ArrayLike] | Mapping[str, ArrayLike]",
    *,
    lengths: "ArrayLike | None" = None,
    episode_ids: "ArrayLike | None" = None,
    terminated: "ArrayLike | None" = None,
    truncated: "ArrayLike | None" = None,
    actions: "ArrayLike | None" = None,
    rewards: "ArrayLike | None" = None,
    next_observations: "ArrayLike | None" = None,
    keys: "str | Sequence[str] | None" = None,
    out: "str | Path | None" = None,
) -> Trajectories:
    """Experience from arrays, in any of the usual shapes; the ends of episodes must be given.

    Args:
        observations: a list with one array (states, ...) per episode, or one array of all rows in order of time;
            or a dictionary of either, for observations of several keys.
        lengths: rows in each episode.
        episode_ids: (rows,) a label that changes where a new episode begins.
        terminated: (rows,) true at the last row of an episode that the environment ended; with a list of
            episodes, one per episode.
        truncated: the same for episodes that were cut off from outside.
        actions: (rows, ...) the action made in each row, or a list with one array per episode; that of an episode's
            last row may be left out, and is not used unless ``next_observations`` of shape (rows, ...) are given.
        rewards: (rows,) the reward of the same transition, in the same form.
        next_observations: (rows, ...) if each row is a transition; the last one then completes its episode. With one
            axis more, (rows, k, ...) or a list of (states or transitions, k, ...): k further next observations of
            each transition, drawn independently.
        keys: which keys of a dictionary to take; all unless given.
        out: folder to write to, for data larger than memory.

    Returns:
        The experience.

    Example:
        >>> data = from_arrays([[[0.0], [1.0], [2.0]], [[5.0], [6.0]]], rewards=[[0.0, 1.0], [0.5]])
        >>> data.num_episodes, data.num_transitions, data.rewards
        (2, 3, array([0. , 1. , 0.5]))
    """
    by_key = _by_key(observations, "observations", keys)
    following = None if next_observations is None else _by_key(next_observations, "next_observations", keys)
    if following is not None and following.keys() != by_key.keys():
        raise ArgumentError("next_observations must have the keys of observations")
    is_list = all(isinstance(rows, (list, tuple)) for rows in by_key.values())
    given_ends = lengths is not None or episode_ids is not None
    if is_list and not given_ends and not (following is not None and _is_one_array(next_observations, by_key)):
        episodes = {key: [as_rows(episode) for episode in rows] for key, rows in by_key.items()}
        flags = [terminated, truncated]
    else:
        rows = {key: as_rows(array) for key, array in by_key.items()}
        count = len(next(iter(rows.values())))
        ends = _episode_ends(count, lengths, episode_ids, terminated, truncated)
        episodes = {key: np.split(array, ends[:-1]) for key, array in rows.items()}
        flags = [None if given is None else _flags_at(ends, given) for given in (terminated, truncated)]
        if following is not None:
            after = {key: as_rows(array) for key, array in following.items()}
            if all(after[key].ndim == array.ndim for key, array in rows.items()):
                # Each row is a transition: the last next observation completes its episode.
                for key, array in rows.items():
                    _check_continuity(array, after[key], ends)
                    pieces = zip(episodes[key], ends, strict=True)
                    episodes[key] = [np.concatenate([piece, after[key][end - 1 : end]]) for piece, end in pieces]
                following = None
            else:
                following = {key: np.split(array, ends[:-1]) for key, array in after.items()}
        actions, rewards = (_split(part, ends, name) for name, part in (("actions", actions), ("rewards", rewards)))
    extras = {"actions": actions, "rewards": rewards}
    return _from_episodes(episodes, flags[0], flags[1], extras, following, out)


def from_minari(
    dataset: Any, *, keys: "str | Sequence[str] | None" = None, out: "str | Path | None" = None
) -> Trajectories:
    """Experience from a local Minari data set; needs the ``minari`` extra.

    Args:
        dataset: its name, or the data set as an object.
        keys: which keys to take where observations are dictionaries; all unless given.
        out: folder to write to, for data larger than memory.

    Returns:
        Observations (by key where they are dictionaries), actions and rewards.
    """
    name = dataset if isinstance(dataset, str) else str(getattr(getattr(dataset, "spec", None), "dataset_id", "minari"))
    if isinstance(dataset, str):
        dataset = _load_minari(dataset)
    with TrajectoryBuilder(out) as builder:
        for episode in _episodes(dataset, name):
            given = episode.observations
            chosen = _by_key(given, name, keys)
            if any(isinstance(part, (dict, tuple)) for part in chosen.values()):
                raise DataError(f"{name}: observations are nested or a tuple, not arrays; flatten them")
            rows = {key: as_rows(part) for key, part in chosen.items()}
            length = len(next(iter(rows.values()))) - 1
            if length < 1:
                continue
            ends = [np.array([bool(np.asarray(flags)[-1])]) for flags in (episode.terminations, episode.truncations)]
            extras = {}
            for label in ("actions", "rewards"):
                part = getattr(episode, label, None)
                # Actions that are not arrays are left out.
                if part is not None and not isinstance(part, (dict, tuple)):
                    extras[label] = _as_numbers(part, label)[:length]
            builder.add(rows.get("", rows), np.array([length]), ends[0], ends[1], **extras)
        return builder.finish({"world": {"kind": "minari", "name": name}})


def from_ogbench(
    source: "str | Path | Mapping[str, ArrayLike]",
    *,
    keys: "str | Sequence[str]" = "observations",
    out: "str | Path | None" = None,
) -> Trajectories:
    """Experience from a data set of OGBench: one of its ``.npz`` files, or the arrays that ``ogbench`` loads.

    A trajectory ends where ``terminals`` are 1. Every trajectory of OGBench ends by its time limit, so all count as
    truncated. A file is read a few megabytes at a time.

    Args:
        source: a file such as ``pointmaze-medium-navigate-v0.npz``; or its arrays as ``ogbench.load_dataset`` or
            ``make_env_and_datasets`` give them, with ``next_observations`` or, if compact, ``valids``.
        keys: what is observed: ``observations``, or others that the data have, as ``qpos``, ``qvel`` and
            ``button_states``; several as a list.
        out: folder to write to, for data larger than memory.

    Returns:
        Observations and actions, and rewards where there are some.

    Raises:
        DamagedFileError: a file that cannot be read.
        DataError: without terminals, or where arrays have different lengths.

    Example:
        >>> terminals, rows = np.array([0, 0, 1, 0, 1]), np.arange(10.0).reshape(5, 2)
        >>> from_ogbench({"observations": rows, "actions": rows, "terminals": terminals})
        Trajectories(3 transitions in 2 episodes, observations (2,) float64, 5 distinct, actions)
    """
    if isinstance(source, Mapping):
        return _from_ogbench_arrays(dict(source), keys, out)
    path = as_path(source, "the OGBench file")
    with open_archive(path) as arrays:
        chosen, flags = _ogbench_parts(arrays, keys, str(path))
        if "next_observations" in arrays or "valids" in arrays:
            whole = {name: array.read(array.shape[0]) for name, array in arrays.items()}
            return _from_ogbench_arrays(whole, keys, out)
        ends = as_flags(flags.read(flags.shape[0]), flags.shape[0], "row", "terminals")
        also: dict[str, ArchivedArray] = {name: arrays[name] for name in ("actions", "rewards") if name in arrays}
        with TrajectoryBuilder(out) as builder:
            lengths = _stream_ogbench(builder, chosen, also, _last_rows(ends))
            cut = np.ones(len(lengths), dtype=bool)
            builder.close_episodes(lengths, ~cut, cut)
            return builder.finish({"world": {"kind": "ogbench", "name": path.stem}})


def _ogbench_parts(arrays: Mapping[str, Any], keys: "str | Sequence[str]", where: str) -> tuple[dict[str, Any], Any]:
    """The arrays that are observed, by key, and the flags; of as many rows as all others."""
    if "terminals" not in arrays:
        raise DataError(f"{where} has no terminals, so it is not a data set of OGBench; it has {', '.join(arrays)}")
    chosen = _by_key({name: array for name, array in arrays.items() if name != "terminals"}, where, keys)
    rows = {name: np.shape(array)[:1] for name, array in arrays.items()}
    wrong = [name for name, length in rows.items() if length != rows["terminals"]]
    if wrong:
        raise DataError(f"{where} has {rows['terminals']} rows of terminals and {rows[wrong[0]]} of {wrong[0]}")
    return chosen, arrays["terminals"]


def _last_rows(ends: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each row is the last of its trajectory; the very last one is."""
    if not ends.any():
        raise DataError("terminals mark the end of no trajectory; they must be 1 at the last row of each")
    return np.append(ends[:-1], True)


def _stream_ogbench(
    builder: TrajectoryBuilder,
    chosen: dict[str, ArchivedArray],
    also: dict[str, ArchivedArray],
    ends: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Add all rows, in blocks; returns the (trajectories,) transitions in each, those of a single state left out."""
    # Such a state has no transition.
    alone = ends & np.append(True, ends[:-1])
    row_bytes = sum(one.dtype.itemsize * int(np.prod(one.shape[1:])) for one in (*chosen.values(), *also.values()))
    for block in row_blocks((len(ends), row_bytes), 1):
        count = len(ends[block])
        kept, inside = ~alone[block], ~ends[block]
        rows = {key: as_rows(one.read(count))[kept] for key, one in chosen.items()}
        columns = {name: _as_numbers(one.read(count), name)[inside] for name, one in also.items()}
        if kept.any():
            builder.add_states(rows.get("", rows), **columns)
    lasts = np.flatnonzero(ends & ~alone)
    if not len(lasts):
        raise DataError("the data set is empty: no trajectory has two states; check its terminals")
    states_before = np.cumsum(~alone)[lasts]
    return np.diff(np.append(0, states_before)) - 1


def _from_ogbench_arrays(arrays: dict[str, Any], keys: "str | Sequence[str]", out: "str | Path | None") -> Trajectories:
    chosen, flags = _ogbench_parts(arrays, keys, "the data set")
    following = None
    if "next_observations" in arrays:
        if set(chosen) != {""} or keys not in ("observations", ["observations"], ("observations",)):
            raise ArgumentError("next_observations are those of observations; for other keys read the file, or compact")
        following = arrays["next_observations"]
        ends = as_flags(flags, len(flags), "row", "terminals")
    else:
        valid = arrays.get("valids")
        ends = as_flags(flags if valid is None else np.asarray(valid) == 0, len(flags), "row", "terminals")
    return from_arrays(
        chosen.get("", chosen),
        next_observations=following,
        truncated=_last_rows(ends),
        actions=arrays.get("actions"),
        rewards=arrays.get("rewards"),
        out=out,
    )


def _episodes(dataset: Any, name: str) -> Iterator[Any]:
    """The episodes of a Minari data set, one by one; a damaged one is an error that names the data set."""
    try:
        yield from dataset.iterate_episodes()
    except Exception as error:  # as above
        if isinstance(error, LapwingError):
            raise
        raise DataError(f"the Minari data set {name!r} is damaged ({error}); download it again") from error


def _load_minari(name: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise MissingExtraError("reading Minari data sets needs an extra: pip install 'lapwing[minari]'") from error
    try:
        return minari.load_dataset(name, download=False)
    except Exception as error:  # a damaged file fails inside the libraries in too many ways to list
        raise DataError(
            f"no local Minari data set {name!r} can be read ({error}); `minari list local` shows those there are"
        ) from error


def _from_episodes(
    episodes: dict[str, list[NDArray[Any]]],
    terminated: Any,
    truncated: Any,
    extras: dict[str, Any],
    following: dict[str, Any] | None,
    out: str | Path | None,
) -> Trajectories:
    counts = {len(pieces) for pieces in episodes.values()}
    count = counts.pop()
    if counts:
        raise DataError("the keys of observations have different numbers of episodes")
    if count == 0:
        raise DataError("the data set is empty: it has no episode; give at least one with two states")
    episodes = {key: _of_one_type(pieces) for key, pieces in episodes.items()}
    sizes = [[len(piece) for piece in pieces] for pieces in episodes.values()]
    if any(size != sizes[0] for size in sizes):
        raise DataError("the keys of observations have episodes of different lengths")
    ended = np.zeros(count, dtype=bool) if terminated is None else as_flags(terminated, count, "episode")
    cut = ~ended if truncated is None else as_flags(truncated, count, "episode")
    # An episode of one state has no transition and is left out.
    kept = [number for number, size in enumerate(sizes[0]) if size > 1]
    if not kept:
        raise DataError("the data set is empty: no episode has two states; check where episodes end")
    columns = {name: _per_transition(name, part, sizes[0]) for name, part in extras.items() if part is not None}
    if following is not None:
        further = {key: _per_transition("next_observations", part, sizes[0]) for key, part in following.items()}
    with TrajectoryBuilder(out) as builder:
        for group in _groups(kept, sizes[0]):
            rows = {key: _joined(pieces, group) for key, pieces in episodes.items()}
            transitions: dict[str, Any] = {name: _joined(pieces, group) for name, pieces in columns.items()}
            if following is not None:
                after = {key: _joined(pieces, group) for key, pieces in further.items()}
                transitions["next_observations"] = after.get("", after)
            lengths = np.array([sizes[0][number] - 1 for number in group])
            builder.add(rows.get("", rows), lengths, ended[group], cut[group], **transitions)
        return builder.finish({"world": {"kind": "arrays", "name": "arrays"}})


def _groups(numbers: list[int], sizes: list[int]) -> Iterator[list[int]]:
    """Episodes in order, as many at once as make :data:`GROUP_STATES` states: a call for each would take long."""
    group: list[int] = []
    states = 0
    for number in numbers:
        group.append(number)
        states += sizes[number]
        if states >= GROUP_STATES:
            yield group
            group, states = [], 0
    if group:
        yield group


def _joined(pieces: list[NDArray[Any]], group: list[int]) -> NDArray[Any]:
    return pieces[group[0]] if len(group) == 1 else np.concatenate([pieces[number] for number in group])


def _by_key(given: Any, what: str, keys: str | Sequence[str] | None = None) -> dict[str, Any]:
    """The chosen parts by key; the key of what has none, or one alone, is empty."""
    if not isinstance(given, Mapping):
        if keys is not None:
            raise ArgumentError(f"keys are for {what} in a dictionary; these are one array or a list")
        return {"": given}
    if keys is not None:
        chosen = (keys,) if isinstance(keys, str) else tuple(keys)
        for key in chosen:
            if key not in given:
                raise UnknownNameError(f"no key {shown(key)} in {what}; {did_you_mean(str(key), given)}")
        given = {key: given[key] for key in chosen}
    if not given or not all(isinstance(key, str) and key for key in given):
        raise ArgumentError(f"the keys of {what} must be names, got {shown(list(given))}")
    return dict(given) if len(given) > 1 else {"": next(iter(given.values()))}


def _is_one_array(next_observations: Any, by_key: dict[str, Any]) -> bool:
    """Whether rows given as plain lists are transitions, and not episodes with further next observations."""
    one = next(iter(_by_key(next_observations, "next_observations").values()))
    return not isinstance(one, (list, tuple)) or np.ndim(one[0]) <= np.ndim(next(iter(by_key.values()))[0])


def _of_one_type(pieces: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """All of one type, else equal observations of different types would count as different ones."""
    common = np.result_type(*{piece.dtype for piece in pieces})
    shapes = {piece.shape[1:] for piece in pieces}
    if len(shapes) > 1:
        raise DataError(f"episodes have observations of different shapes: {sorted(shapes)}")
    return [piece.astype(common, copy=False) for piece in pieces]


def _split(part: Any, ends: NDArray[np.int64], name: str) -> list[NDArray[Any]] | None:
    if part is None:
        return None
    array = _as_numbers(part, name)
    if len(array) != ends[-1]:
        raise DataError(f"{name} must have one row per row of observations ({ends[-1]}), got {len(array)}")
    return np.split(array, ends[:-1])


def _per_transition(name: str, part: Any, sizes: list[int]) -> list[NDArray[Any]]:
    """One array per episode, without the unused last row where there is one."""
    if not isinstance(part, (list, tuple)) or len(part) != len(sizes):
        raise DataError(f"{name} must be a list with one array per episode ({len(sizes)})")
    pieces = [_as_numbers(piece, name) if size > 1 else np.empty(0) for piece, size in zip(part, sizes, strict=True)]
    for number, (piece, size) in enumerate(zip(pieces, sizes, strict=True)):
        if size > 1 and len(piece) not in (size - 1, size):
            raise DataError(f"{name} of episode {number} has {len(piece)} rows; its transitions are {size - 1}")
    common = np.result_type(*{piece.dtype for piece, size in zip(pieces, sizes, strict=True) if size > 1})
    return [piece[: size - 1].astype(common, copy=False) for piece, size in zip(pieces, sizes, strict=True)]


def _episode_ends(
    rows: int,
    lengths: ArrayLike | None,
    episode_ids: ArrayLike | None,
    terminated: ArrayLike | None,
    truncated: ArrayLike | None,
) -> NDArray[np.int64]:
    """One past the last row of each episode."""
    if lengths is not None and episode_ids is not None:
        raise DataError("give lengths or episode_ids, not both")
    if lengths is not None:
        ends = np.cumsum(_checked_lengths(lengths))
        if (np.diff(ends, prepend=0) < 1).any() or len(ends) == 0 or ends[-1] != rows:
            raise DataError(f"lengths must be positive and add up to the {rows} rows, they add up to {ends[-1:].sum()}")
        return ends
    if episode_ids is not None:
        try:
            labels = np.asarray(episode_ids)
        except ValueError:
            labels = np.empty((0, 0))
        if labels.shape != (rows,):
            raise DataError(f"episode_ids must be one label per row ({rows}), got shape {labels.shape}")
        return np.append(np.flatnonzero(labels[1:] != labels[:-1]) + 1, rows)
    if terminated is None and truncated is None:
        raise ArgumentError(
            "one array does not show where episodes end; give lengths, episode_ids, or terminated/truncated "
            "(for a single episode: lengths=[number of rows])"
        )
    flags = [as_flags(given, rows, "row") for given in (terminated, truncated) if given is not None]
    ends = np.flatnonzero(np.any(flags, axis=0)) + 1
    return ends if len(ends) and ends[-1] == rows else np.append(ends, rows)


def _checked_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    numbers = as_reals(lengths)
    if numbers is None or numbers.ndim != 1 or not (np.abs(numbers) < 2**53).all() or (numbers % 1 != 0).any():
        raise DataError(f"lengths must be a list of whole numbers, rows in each episode; got {shown(lengths)}")
    return numbers.astype(np.int64)


def _check_continuity(rows: NDArray[Any], following: NDArray[Any], ends: NDArray[np.int64]) -> None:
    """Each next observation must be the next row, except at the end of an episode: else a boundary is missing."""
    if following.shape != rows.shape:
        raise DataError(f"next_observations must have the shape of observations {rows.shape}, got {following.shape}")
    given, wanted = following[:-1], rows[1:]
    # NaN is left to the check that names it.
    equal = (given == wanted) | ((given != given) & (wanted != wanted))
    same = np.all(equal, axis=tuple(range(1, rows.ndim)))
    same[ends[:-1] - 1] = True
    if not same.all():
        row = int(np.argmin(same))
        raise DataError(
            f"next_observations of row {row} is not row {row + 1} ({int((~same).sum())} such place(s)): "
            "an episode ends there, so mark it in terminated or truncated"
        )


def as_rows(observations: Any) -> NDArray[Any]:
    """Observations as an array of numbers with an axis of its own for what each consists of.

    Args:
        observations: (n, ...) or (n,) of any numeric type.

    Returns:
        (n, ...); booleans as uint8.
    """
    rows = _as_numbers(observations, "observations")
    if rows.size == 0:
        raise DataError("the data set is empty: it has no observation")
    rows = rows.astype(np.uint8) if rows.dtype == np.bool_ else rows
    return rows[:, None] if rows.ndim == 1 else rows


def _as_numbers(given: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{name} do not form an array ({error}); give one array per episode") from error
    if array.dtype.kind not in NUMBER_KINDS or array.dtype.itemsize > MAX_ITEM_BYTES:
        raise DataError(f"{name} must be numbers, got {array.dtype}")
    if array.ndim == 0:
        raise DataError(f"the data set is empty: {name} are a single number")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _flags_at(ends: NDArray[np.int64], given: ArrayLike) -> NDArray[np.bool_]:
    """The flags at the last row of each episode; one inside an episode is a boundary that lengths or ids deny."""
    flags = as_flags(given, int(ends[-1]), "row")
    inside = flags.copy()
    inside[ends - 1] = False
    if inside.any():
        raise DataError(
            f"row {int(np.argmax(inside))} ends an episode by terminated or truncated, "
            "but lengths or episode_ids continue; make them agree"
        )
    return flags[ends - 1]


def as_flags(given: "ArrayLike", count: int, per: str, what: str = "terminated and truncated") -> NDArray[np.bool_]:
    """Booleans from anything that stands for them.

    Args:
        given: (count,) booleans or numbers.
        count: how many there must be.
        per: of what there is one each, for the message.
        what: their name, for the message.

    Returns:
        (count,) booleans.
    """
    numbers = as_reals(given)
    if numbers is None or not np.isfinite(numbers).all():
        raise DataError(f"{what} are true or false at each {per}, got {shown(given)}")
    flags = numbers != 0
    if flags.shape != (count,):
        raise DataError(f"{what} need one value per {per} ({count}), got shape {flags.shape}")
    return flags
