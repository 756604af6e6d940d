"""Components over time: their values along some episodes, with the boundaries between them, and frames of images."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from lapwing.checks import as_whole, shown
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError
from lapwing.plots.figures import COLOURS, PRINT, NotebookFigure, Style, label
from lapwing.plots.observation_arrays import (
    are_images,
    array_to_draw,
    picture_of,
    rows_of,
    scaled,
    values_at,
)
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

# States and episodes that are drawn side by side and can still be told apart.
MOST_STATES = 1_024
MOST_EPISODES = 8
# Panels of a figure in which components are not chosen.
MOST_COMPONENTS = 6
MOST_FRAMES = 8
# In inches.
PANEL_HEIGHT, FRAME_WIDTH = 0.62, 0.95
SAMPLE = "episodes_sampled"
BOUNDARY, CURVE = "0.45", COLOURS[0]


def sample_episodes(
    data: Trajectories, episodes: Sequence[int] | None = None, *, states: int = MOST_STATES
) -> Trajectories:
    """A few episodes, spread over the data; of long ones their beginnings.

    Args:
        data: experience.
        episodes: which, counted from 0; as many as fit, at most 8, if None.
        states: the most that are taken, over all episodes.

    Returns:
        New data without actions and rewards; its metadata tell which episodes these are and whether they are whole.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-7", 1_000, episode_length=100, seed=0)
        >>> sample_episodes(data, states=303).lengths, sample_episodes(data, [9], states=50).lengths
        (array([100, 100, 100]), array([49]))
    """
    count = data.num_episodes
    if as_whole(states) is None or states < 1:
        raise ArgumentError(f"states to draw are a number of at least 1, got {shown(states)}")
    if episodes is None:
        fit = min(max(int(states // (np.median(data.lengths) + 1)), 1), MOST_EPISODES, count)
        numbers = np.unique(np.linspace(0, count - 1, fit).astype(np.int64))
    else:
        chosen = [as_whole(number) for number in np.atleast_1d(np.asarray(episodes)).tolist()]
        if not chosen or any(number is None or not 0 <= number < count for number in chosen):
            raise ArgumentError(f"episodes are numbered 0 to {count - 1}, got {shown(episodes)}")
        numbers = np.asarray(chosen, dtype=np.int64)
    begins, ends = np.asarray(data.offsets)[numbers], np.asarray(data.offsets)[numbers + 1]
    taken = np.minimum(ends - begins, max(states // len(numbers), 1))
    whole = taken == ends - begins
    positions = np.concatenate([np.arange(begin, begin + size) for begin, size in zip(begins, taken, strict=True)])
    rows, ids = data.rows(positions), None
    if data.has_table:
        rows, ids = np.unique(rows, return_inverse=True)
    earlier, total = _sampled(data)
    uncut = bool(whole.all()) and not _is_cut(data)
    record = {"numbers": [earlier[number] for number in numbers], "of": total, "whole": uncut}
    return replace(
        data,
        observations=rows_of(data.observations, rows),  # type: ignore[arg-type]
        ids=None if ids is None else ids.astype(np.int32),
        offsets=np.append(0, np.cumsum(taken)),
        terminated=np.asarray(data.terminated)[numbers] & whole,
        truncated=np.asarray(data.truncated)[numbers] | ~whole,
        actions=None,
        rewards=None,
        next_observations=None,
        next_ids=None,
        metadata={**data.metadata, SAMPLE: record},
    )


def describe_sample(data: Trajectories) -> str:
    """Which episodes a sample holds, as text.

    Args:
        data: of :func:`sample_episodes`, or any other.

    Returns:
        Such as "3 of 200 episodes" or "the first 125 steps of 8 of 200 episodes".
    """
    _, total = _sampled(data)
    count = data.num_episodes
    text = (
        ("1 episode" if total == 1 else f"{total:,} episodes") if count == total else f"{count} of {total:,} episodes"
    )
    if _is_cut(data):
        longest = int(data.lengths.max())
        return f"the first {longest:,} step{'s' * (longest != 1)} of {text}"
    return text


def episode_numbers(data: Trajectories) -> list[int]:
    """The numbers of a sample's episodes in the data that it was taken from.

    Args:
        data: of :func:`sample_episodes`, or any other.

    Returns:
        One number per episode, counted from 0.
    """
    return _sampled(data)[0]


def values_in_time(model: LaplacianRepresentation, data: Trajectories) -> NDArray[np.float64]:
    """Components at every state of some data, in order of time.

    Args:
        model: the representation.
        data: a few episodes, which may have several keys.

    Returns:
        (states, dim) components; NaN at states that a table does not know.

    Raises:
        ArgumentError: if it knows none of them.
    """
    values = values_at(model, data.observations)[data.rows(np.arange(data.num_states))]
    if not np.isfinite(values).any():
        raise ArgumentError("the representation is a table of states, and knows none of these observations")
    return values


def frames_in_time(data: Trajectories, most: int = MOST_FRAMES) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
    """Frames at equal distances in time, where observations are images.

    Args:
        data: a few episodes.
        most: how many frames.

    Returns:
        (k,) positions of states, and the picture at each in shades from 0 to 1; none of either without images.
    """
    drawn = array_to_draw(data.observations)
    if not are_images(drawn):
        return np.empty(0, dtype=np.int64), []
    count = min(most, data.num_states)
    positions = ((np.arange(count) + 0.5) * data.num_states / count).astype(np.int64)
    limits = float(drawn.min()), float(drawn.max())
    return positions, [scaled(picture_of(image), limits) for image in drawn[data.rows(positions)]]


def trajectories_figure(
    model: LaplacianRepresentation,
    data: Trajectories,
    components: Sequence[int] | None = None,
    *,
    episodes: Sequence[int] | None = None,
    steps: int = MOST_STATES,
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw components along some episodes, one panel for each; frames of images stand below the time axis.

    Vertical lines are the boundaries between episodes: solid where the environment ended one, dashed where it was cut
    off or goes on.

    Args:
        model: the representation.
        data: experience, in any environment.
        components: which, counted from 1; 2 to 7, as far as there are, if None.
        episodes: which, counted from 0; up to 8 spread over the data if None.
        steps: the most that are drawn; of longer episodes the beginnings are.
        width: in inches; that of the style if None.
        style: as of :func:`representation_figure`.

    Returns:
        The figure; :func:`save_figure` writes it.

    Raises:
        ArgumentError: if there is no such component or episode, or a table knows none of the observations.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("UMaze", 2_000, seed=0)
        >>> figure = trajectories_figure(lw.solve("UMaze", dim=3), data, episodes=[0, 1])
        >>> [text.get_text() for ax in figure.axes for text in ax.texts][-1]
        '$\\\\lambda_{3}$ = 0.0225'
    """
    chosen = _chosen(model, components)
    sample = sample_episodes(data, episodes, states=steps)
    values = values_in_time(model, sample)
    width = style.width if width is None else width
    # No more frames than fit side by side.
    positions, frames = frames_in_time(sample, max(min(MOST_FRAMES, int(width / FRAME_WIDTH)), 1))
    tall = min(width / max(len(frames), 1) * 0.85, FRAME_WIDTH) * (
        frames[0].shape[0] / frames[0].shape[1] if frames else 0
    )
    with matplotlib.rc_context(dict(style.settings)):  # type: ignore[arg-type]
        heights = [PANEL_HEIGHT * width / PRINT.width if style.titles else PANEL_HEIGHT] * len(chosen)
        total = sum(heights) + tall + 0.6 + 0.35 * style.titles + 0.15 * bool(frames)
        figure = NotebookFigure(figsize=(width, total), layout="constrained")
        figure.get_layout_engine().set(h_pad=0.03, hspace=0.02)  # type: ignore[union-attr, call-arg]
        grid = figure.subplots(
            len(chosen) + bool(frames), 1, squeeze=False, height_ratios=[*heights, tall] if frames else heights
        )[:, 0]
        panels = grid[: len(chosen)]
        for ax, number in zip(panels, chosen, strict=True):
            draw_over_time(ax, sample, values[:, number - 1], positions)
            text = f"$\\lambda_{{{number}}}$ = {model.eigenvalues[number - 1]:.3g}"
            ax.text(1.01, 0.5, text, transform=ax.transAxes, va="center", fontsize="small")
            ax.tick_params(labelbottom=ax is panels[-1])
        panels[-1].set_xlabel("step")
        _number_episodes(panels[0], sample, width)
        if frames:
            _draw_frames(grid[-1], sample.num_states, positions, frames, width)
        if style.titles:
            name = label(world_name(model.metadata, "Laplacian"))
            figure.suptitle(f"{name}: components over time, {describe_sample(sample)}", fontsize=12)
        # Ticks are created when they are first drawn, with the settings of that moment.
        figure.draw_without_rendering()
    return figure


def draw_over_time(
    ax: Axes, data: Trajectories, values: NDArray[Any], marked: Sequence[int] | NDArray[Any] = ()
) -> Axes:
    """Draw one number per state over time: a line for each episode, and the boundaries between episodes.

    Args:
        ax: the axes to draw on.
        data: a few episodes.
        values: (states,) numbers in order of time.
        marked: positions of states that get a dot.

    Returns:
        The same axes.
    """
    ax.axhline(0.0, color="0.8", linewidth=0.6, zorder=0)
    for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        marker = "." if end - begin == 1 else ""
        ax.plot(np.arange(begin, end), values[begin:end], color=CURVE, linewidth=0.9, marker=marker)
    for place, style in boundaries(data):
        ax.axvline(place, color=BOUNDARY, linewidth=0.7, linestyle=style, zorder=1)
    if len(marked):
        places = np.asarray(marked)
        ax.plot(places, values[places], "o", color=COLOURS[1], markersize=3, linestyle="none", zorder=3)
    ax.set_xlim(-0.5, data.num_states - 0.5)
    ax.yaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    return ax


def boundaries(data: Trajectories) -> list[tuple[float, str]]:
    """Where one episode ends and the next begins, between two states.

    Args:
        data: a few episodes.

    Returns:
        The place of each on an axis of states, and its line style: "-" if the environment ended the episode, else "--".

    Example:
        >>> import lapwing as lw
        >>> boundaries(lw.collect("GridMaze-7", 30, episode_length=10, seed=0))
        [(10.5, '--'), (21.5, '--')]
    """
    ends = zip(data.offsets[1:-1], data.terminated[:-1], strict=True)
    return [(float(place) - 0.5, "-" if ended else "--") for place, ended in ends]


def _chosen(model: LaplacianRepresentation, components: Sequence[int] | None) -> list[int]:
    if components is None:
        return list(range(2, min(model.dim, MOST_COMPONENTS + 1) + 1)) or [1]
    chosen = [as_whole(number) for number in components]
    if not chosen or any(number is None or not 1 <= number <= model.dim for number in chosen):
        raise ArgumentError(f"components are numbers from 1 to {model.dim}, got {shown(components)}")
    return [number for number in chosen if number is not None]


def _sampled(data: Trajectories) -> tuple[list[int], int]:
    """The original numbers of the episodes, and how many there were; those of the data itself if it is no sample."""
    record = data.metadata.get(SAMPLE)
    if isinstance(record, dict):
        numbers, total = record.get("numbers"), record.get("of")
        # Read from a file, it may be anything.
        if type(total) is int and isinstance(numbers, list) and len(numbers) == data.num_episodes <= total:
            return [number if type(number) is int else -1 for number in numbers], total
    return list(range(data.num_episodes)), data.num_episodes


def _is_cut(data: Trajectories) -> bool:
    record = data.metadata.get(SAMPLE)
    return isinstance(record, dict) and record.get("whole") is False


def _number_episodes(ax: Axes, data: Trajectories, width: float) -> None:
    """Write the number of each episode above the part that shows it, where there is room."""
    size = FontProperties(size="x-small").get_size_in_points()
    rooms = np.diff(data.offsets) / data.num_states * width * 0.8
    numbers = [f"{number:,}" for number in episode_numbers(data)]
    texts = [f"episode {number}" for number in numbers]
    # About 0.6 of its size is the width of a letter, and two of them keep labels apart.
    fits = [room > (len(text) + 2) * 0.6 * size / 72 for room, text in zip(rooms, texts, strict=True)]
    # Where episodes are short, the first that has room for the word tells what the numbers are.
    first = fits.index(True) if any(fits) else -1
    for place, room in enumerate(rooms):
        text = texts[place] if all(fits) or place == first else numbers[place]
        if room > (len(text) + 2) * 0.6 * size / 72:
            middle = (data.offsets[place] + data.offsets[place + 1] - 1) / 2
            options: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": "x-small"}
            ax.text(middle, 1.03, text, transform=ax.get_xaxis_transform(), **options)


def _draw_frames(
    ax: Axes, states: int, positions: NDArray[np.int64], frames: list[NDArray[np.float64]], width: float
) -> None:
    ax.set_xlim(-0.5, states - 0.5)
    ax.axis("off")
    share = min(0.85 / len(frames), FRAME_WIDTH / width)
    for position, frame in zip(positions, frames, strict=True):
        middle = (position + 0.5) / states
        inset = ax.inset_axes((middle - share / 2, 0.0, share, 1.0))
        inset.imshow(frame, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
        inset.set(xticks=[], yticks=[])
        inset.set_title(f"{position:,}", fontsize="x-small", pad=2)
        inset.spines[:].set(visible=True, color=COLOURS[1], linewidth=0.6)
