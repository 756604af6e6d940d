"""Components at observations of an environment that has no map: scatters over two inputs, or images at their ends."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_whole, shown
from lapwing.errors import ArgumentError
from lapwing.plots.fields import DIVERGING, SMALLEST_LIMIT
from lapwing.plots.figures import PRINT, NotebookFigure, Style, label
from lapwing.plots.observation_arrays import (
    Observations,
    are_images,
    array_to_draw,
    as_observations,
    count_of,
    picture_of,
    rows_of,
    scaled,
    values_at,
)
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

MOST_POINTS = 4_000
# Images at each end of a component.
FRAMES = 4
MOST_STRIPS = 12
WIDE = 7.0
# Cells in which the mean of a component says how much of it two inputs, or one, explain; and inputs that are paired.
BINS, BINS_OF_ONE = 12, 30
MOST_INPUTS = 8
# Behind points, so that those at zero, which are white, are seen.
GROUND = "0.9"


@dataclass(frozen=True, eq=False)
class Points:
    """Vectors as points over two of their numbers, or over one.

    Attributes:
        across: (n,) the first number of each.
        up: (n,) the second; None where observations are one number, or numbered states.
        names: what the axes are called.
    """

    across: NDArray[np.float64]
    up: NDArray[np.float64] | None
    names: tuple[str, str]


@dataclass(frozen=True, eq=False)
class Extremes:
    """Images at both ends of a component, in shades from 0 to 1.

    Attributes:
        lowest: pictures where it is smallest, ascending.
        highest: pictures where it is largest, ascending.
        lowest_values: (k,) the component there.
        highest_values: (k,) the component there.
        low_mean: mean picture of the lowest tenth.
        high_mean: mean picture of the highest tenth.
        difference: (rows, columns) the second mean less the first, over all colours, from -1 to 1.
    """

    lowest: list[NDArray[np.float64]]
    highest: list[NDArray[np.float64]]
    lowest_values: NDArray[np.float64]
    highest_values: NDArray[np.float64]
    low_mean: NDArray[np.float64]
    high_mean: NDArray[np.float64]
    difference: NDArray[np.float64]


def observations_figure(
    model: LaplacianRepresentation,
    observations: "ArrayLike | Mapping[str, ArrayLike]",
    components: Sequence[int] | None = None,
    *,
    inputs: tuple[int, int] | None = None,
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw components at observations, for environments that have no map.

    Vectors are drawn as points over two of their numbers, coloured by the component; images as those at which each
    component is smallest and largest, beside the mean images of its lowest and highest tenth and their difference,
    which shows where in the image the component looks.

    Args:
        model: the representation.
        observations: (n, ...) such as ``data.observations``; of many, some spread over all are drawn. Of several keys
            images are drawn if there are any, else the first vectors.
        components: which, counted from 1; all but the constant one if None, as far as the style allows.
        inputs: which two numbers of vectors, counted from 0; those that explain components 2 to 4 best if None.
        width: in inches; that of the style if None.
        style: as of :func:`representation_figure`.

    Returns:
        The figure.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("UMaze", 2_000, seed=0)
        >>> figure = observations_figure(lw.solve("UMaze", dim=3), data.observations)
        >>> [ax.get_title() for ax in figure.axes if ax.collections]
        ['$\\\\lambda_{2}$ = 0.0049', '$\\\\lambda_{3}$ = 0.0225']
    """
    drawn, values = _shown(model, as_observations(observations))
    width = width or style.width
    most = MOST_STRIPS if are_images(drawn) else style.panels
    chosen = list(range(2, min(model.dim, most) + 1)) or [1] if components is None else list(components)
    if not chosen or not all(as_whole(number) is not None and 1 <= number <= model.dim for number in chosen):
        raise ArgumentError(f"components are numbers from 1 to {model.dim}, got {shown(components)}")
    with matplotlib.rc_context(dict(style.settings)):  # type: ignore[arg-type]
        draw = _filmstrips if are_images(drawn) else _scatters
        figure = draw(model, drawn, values, chosen, width, style, inputs)
        if style.titles:
            title = f"{label(world_name(model.metadata, 'Laplacian'))}: components at {len(drawn):,} observations"
            figure.suptitle(title, fontsize=12)
    return figure


def _shown(model: LaplacianRepresentation, observations: Observations) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The observations that are drawn, of one key, and the components there; those that a table knows."""
    count = count_of(observations)
    some = rows_of(observations, np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(np.int64))
    values = values_at(model, some)
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        raise ArgumentError("the representation is a table of states, and knows none of these observations")
    return array_to_draw(some)[known], values[known]


def points_of(rows: NDArray[Any], values: NDArray[np.float64], inputs: tuple[int, int] | None = None) -> Points:
    """Where vectors are drawn.

    Args:
        rows: (n, ...) observations that are not images.
        values: (n, dim) components there, by which the two numbers are chosen if ``inputs`` is None.
        inputs: which two numbers, counted from 0.

    Returns:
        Their places: over the number of the state where each row has a single 1 and zeros.
    """
    vectors = rows.reshape(len(rows), -1).astype(np.float64)
    count = vectors.shape[1]
    # Rows of one 1 each are numbered states.
    numbered = count > 2 and bool(np.all((vectors == 1).sum(axis=1) == 1)) and bool(np.all(vectors.sum(axis=1) == 1))
    if inputs is not None and (len(inputs) != 2 or not all(0 <= number < count for number in inputs)):
        raise ArgumentError(f"inputs are two numbers from 0 to {count - 1}, got {shown(inputs)}")
    if numbered:
        return Points(vectors.argmax(axis=1).astype(np.float64), None, ("state", "component"))
    if count == 1:
        return Points(vectors[:, 0], None, ("observation", "component"))
    slow = values[:, 1:4] if values.shape[1] > 1 else values
    pair = inputs or ((0, 1) if count == 2 else explaining_inputs(vectors, slow))
    return Points(vectors[:, pair[0]], vectors[:, pair[1]], (f"observation[{pair[0]}]", f"observation[{pair[1]}]"))


def draw_points(ax: Axes, points: Points, column: NDArray[np.float64]) -> PathCollection | None:
    """Draw a component at points: as colours, or as heights where there is only one number to draw over.

    Args:
        ax: the axes to draw on.
        points: of :func:`points_of`.
        column: (n,) the component there.

    Returns:
        The coloured points; None where they are not coloured.
    """
    if points.up is None:
        order = np.argsort(points.across, kind="stable")
        ax.plot(points.across[order], column[order], ".", markersize=2 if len(order) > 100 else 5)
        return None
    limit = max(float(np.max(np.abs(column), initial=0.0)), SMALLEST_LIMIT)
    options: dict[str, Any] = {
        "cmap": DIVERGING,
        "vmin": -limit,
        "vmax": limit,
        "s": 3,
        "linewidths": 0,
        "rasterized": True,
    }
    ax.set_facecolor(GROUND)
    return ax.scatter(points.across, points.up, c=column, **options)


def extremes_of(rows: NDArray[Any], column: NDArray[np.float64], frames: int = FRAMES) -> Extremes:
    """The images at both ends of a component, and the means of its lowest and highest tenth.

    Args:
        rows: (n, ...) images, each once.
        column: (n,) the component there.
        frames: how many at each end.

    Returns:
        Pictures to draw; of stacked frames the newest.

    Example:
        >>> found = extremes_of(np.arange(20.0)[:, None, None] * np.ones((20, 8, 8)), np.arange(20.0))
        >>> found.highest_values, round(float(found.difference[0, 0]), 2)
        (array([16., 17., 18., 19.]), 0.95)
    """
    order = np.argsort(column, kind="stable")
    frames = min(frames, max(len(rows) // 2, 1))
    tenth = max(len(rows) // 10, 1)
    low, high = order[:frames], order[-frames:]
    limits = float(rows.min()), float(rows.max())
    means = [_mean_picture(rows, part, limits) for part in (order[:tenth], order[-tenth:])]
    difference = means[1] - means[0]
    return Extremes(
        lowest=[scaled(picture_of(rows[row]), limits) for row in low],
        highest=[scaled(picture_of(rows[row]), limits) for row in high],
        lowest_values=column[low],
        highest_values=column[high],
        low_mean=means[0],
        high_mean=means[1],
        difference=difference if difference.ndim == 2 else difference.mean(axis=-1),
    )


def difference_limit(difference: NDArray[np.float64]) -> float:
    """The difference that gets the darkest colour: exceeded by few pixels, such as a counter on the screen.

    Args:
        difference: (rows, columns) of two mean images.

    Returns:
        A positive number.

    Example:
        >>> counter = np.full((10, 10), 0.1)
        >>> counter[0, 0] = 1.0
        >>> difference_limit(counter), difference_limit(np.eye(2))
        (0.1, 1.0)
    """
    sizes = np.abs(difference[difference != 0])
    return max(float(np.quantile(sizes, 0.98)), 1e-12) if sizes.size else 1.0


def distinct_rows(rows: NDArray[Any]) -> NDArray[np.int64]:
    """One of each group of equal images, which say the same of a component.

    Args:
        rows: (n, ...) images.

    Returns:
        (m,) the first row of each group, in order.
    """
    found: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        found.setdefault(blake2b(np.ascontiguousarray(row).data, digest_size=16).digest(), number)
    return np.fromiter(found.values(), dtype=np.int64)


def _mean_picture(rows: NDArray[Any], chosen: NDArray[np.int64], limits: tuple[float, float]) -> NDArray[np.float64]:
    """The mean of some pictures, one after the other so that they are never all floats."""
    total = scaled(picture_of(rows[chosen[0]]), limits)
    for row in chosen[1:]:
        total += scaled(picture_of(rows[row]), limits)
    return total / len(chosen)


def explaining_inputs(vectors: NDArray[Any], values: NDArray[np.float64]) -> tuple[int, int]:
    """The two inputs that explain most of some functions: of their variance, what means over cells of both account for.

    Args:
        vectors: (n, k) with k at least 2.
        values: (n, m) functions.

    Returns:
        Two numbers below k, in ascending order.

    Example:
        >>> points = np.random.default_rng(0).uniform(size=(2_000, 3))
        >>> explaining_inputs(points, np.sin(points[:, [2]]) + points[:, [0]] ** 2)
        (0, 2)
    """
    alone = [_explained(_bins(column, BINS_OF_ONE), values) for column in vectors.T]
    best = np.sort(np.argsort(alone)[::-1][:MOST_INPUTS])
    bins = {int(number): _bins(vectors[:, number], BINS) for number in best}
    pairs = list(itertools.combinations(bins, 2))
    return max(pairs, key=lambda pair: _explained(BINS * bins[pair[0]] + bins[pair[1]], values))


def _bins(column: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Which of equally full intervals each number lies in."""
    edges = np.quantile(column, np.linspace(0, 1, count + 1)[1:-1])
    return np.searchsorted(edges, column, side="right").astype(np.int64)


def _explained(cells: NDArray[np.int64], values: NDArray[np.float64]) -> float:
    """Mean share of the variance that the means over cells account for."""
    counts = np.maximum(np.bincount(cells), 1)
    centred = values - values.mean(axis=0)
    means = np.stack([np.bincount(cells, column) / counts for column in centred.T], axis=1)
    return float(np.mean((counts @ means**2) / np.maximum((centred**2).sum(axis=0), 1e-30)))


def _scatters(
    model: LaplacianRepresentation,
    rows: NDArray[Any],
    values: NDArray[np.float64],
    chosen: list[int],
    width: float,
    style: Style,
    inputs: tuple[int, int] | None,
) -> NotebookFigure:
    points = points_of(rows, values, inputs)
    flat = points.up is None
    columns = min(len(chosen), max(round(width / style.panel / (2 if flat else 1)), 1))
    lines = -(-len(chosen) // columns)
    height = lines * (width / columns * (0.5 if flat else 0.9) + 0.25) + 0.3 * style.titles
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=not flat).ravel()
    for ax, number in zip(axes, chosen, strict=False):
        draw_points(ax, points, values[:, number - 1])
        ax.set_title(_eigenvalue(model, number), fontsize="medium")
    for ax in axes[len(chosen) :]:
        ax.set_visible(False)
    figure.supxlabel(points.names[0], fontsize="medium")
    figure.supylabel(points.names[1], fontsize="medium")
    return figure


def _filmstrips(
    model: LaplacianRepresentation,
    rows: NDArray[Any],
    values: NDArray[np.float64],
    chosen: list[int],
    width: float,
    style: Style,
    inputs: tuple[int, int] | None,
) -> NotebookFigure:
    if inputs is not None:
        raise ArgumentError("inputs are for vectors; these observations are images")
    first = distinct_rows(rows)
    rows, values = rows[first], values[first]
    # On a printed page fewer of them are large enough to be seen.
    strips = [extremes_of(rows, values[:, number - 1], FRAMES if width >= WIDE else FRAMES - 1) for number in chosen]
    frames = len(strips[0].lowest)
    shape = strips[0].low_mean.shape[0] / strips[0].low_mean.shape[1]
    ratios = [1.0] * frames + [0.15] + [1.0] * frames + [0.4] + [1.0] * 3
    height = len(chosen) * (width / (sum(ratios) + 0.6) * shape + 0.14) + 0.4
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.01, h_pad=0.02, wspace=0.01)  # type: ignore[union-attr, call-arg]
    grid = figure.subplots(len(chosen), len(ratios), squeeze=False, width_ratios=ratios)
    for line, strip, number in zip(grid, strips, chosen, strict=True):
        for ax in (line[frames], line[2 * frames + 1]):
            ax.set_visible(False)
        ends = [*line[:frames], *line[frames + 1 : 2 * frames + 1]]
        numbers = [*strip.lowest_values, *strip.highest_values]
        for ax, picture, value in zip(ends, [*strip.lowest, *strip.highest], numbers, strict=True):
            _draw_image(ax, picture)
            ax.set_title(f"{value:.2g}", fontsize=6, pad=1)
        for ax, picture, name in zip(line[-3:], (strip.low_mean, strip.high_mean), ("low", "high"), strict=False):
            _draw_image(ax, picture)
            ax.set_title(f"{name} mean", fontsize=6, pad=1)
        _draw_difference(line[-1], strip.difference)
        line[-1].set_title("difference", fontsize=6, pad=1)
        line[0].set_ylabel(_eigenvalue(model, number), fontsize="x-small")
    return figure


def _draw_image(ax: Axes, picture: NDArray[np.float64]) -> None:
    ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _draw_difference(ax: Axes, difference: NDArray[np.float64]) -> None:
    limit = difference_limit(difference)
    ax.imshow(difference, cmap=DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, color="0.6", linewidth=0.5)


def _eigenvalue(model: LaplacianRepresentation, number: int) -> str:
    return f"$\\lambda_{{{number}}}$ = {model.eigenvalues[number - 1]:.3g}"
