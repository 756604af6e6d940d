"""Components at observations of an environment that has no map: scatters over two inputs, or images at their ends."""

import itertools
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import shown
from lapwing.encoders.convolution import has_channels_first
from lapwing.encoders.networks import default_kind
from lapwing.errors import ArgumentError
from lapwing.plots.fields import DIVERGING, SMALLEST_LIMIT, field_values
from lapwing.plots.figures import PRINT, NotebookFigure, Style, label
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

MOST_POINTS = 4_000
# Images at each end of a component.
FRAMES = 4
# Cells in which the mean of a component says how much of it two inputs, or one, explain; and inputs that are paired.
BINS, BINS_OF_ONE = 12, 30
MOST_INPUTS = 8


def observations_figure(
    model: LaplacianRepresentation,
    observations: "ArrayLike",
    components: Sequence[int] | None = None,
    *,
    inputs: tuple[int, int] | None = None,
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw components at observations, for environments that have no map.

    Vectors are drawn as points over two of their numbers, coloured by the component; images as those at which each
    component is smallest and largest.

    Args:
        model: the representation.
        observations: (n, ...) such as ``data.observations``; of many, some spread over all are drawn.
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
    rows = np.asarray(observations)
    if rows.ndim < 2 or not len(rows):
        raise ArgumentError(f"observations are (n, ...) with at least one row, got shape {rows.shape}")
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), MOST_POINTS)).astype(np.int64)]
    values = field_values(model, rows)
    known = np.isfinite(values).all(axis=1)
    if not known.any():
        raise ArgumentError("the representation is a table of states, and knows none of these observations")
    rows, values = rows[known], values[known]
    width = width or style.width
    chosen = list(range(2, min(model.dim, style.panels) + 1)) or [1] if components is None else list(components)
    if not all(1 <= number <= model.dim for number in chosen):
        raise ArgumentError(f"components are numbers from 1 to {model.dim}, got {shown(components)}")
    images = default_kind(rows.shape[1:]) == "conv"
    with matplotlib.rc_context(dict(style.settings)):  # type: ignore[arg-type]
        draw = _filmstrips if images else _scatters
        figure = draw(model, rows, values, chosen, width, style, inputs)
        if style.titles:
            title = f"{label(world_name(model.metadata, 'Laplacian'))}: components at {len(rows):,} observations"
            figure.suptitle(title, fontsize=12)
    return figure


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
    vectors = rows.reshape(len(rows), -1).astype(np.float64)
    count = vectors.shape[1]
    # Rows of one 1 each are numbered states.
    numbered = count > 2 and bool(np.all((vectors == 1).sum(axis=1) == 1)) and bool(np.all(vectors.sum(axis=1) == 1))
    if inputs is not None and (len(inputs) != 2 or not all(0 <= number < count for number in inputs)):
        raise ArgumentError(f"inputs are two numbers from 0 to {count - 1}, got {shown(inputs)}")
    if numbered or count == 1:
        pair, places = None, vectors.argmax(axis=1) if numbered else vectors[:, 0]
    else:
        slow = values[:, 1:4] if model.dim > 1 else values
        pair = inputs or ((0, 1) if count == 2 else explaining_inputs(vectors, slow))
    columns = min(len(chosen), max(round(width / style.panel / (2 if pair is None else 1)), 1))
    lines = -(-len(chosen) // columns)
    height = lines * (width / columns * (0.5 if pair is None else 0.9) + 0.25) + 0.3 * style.titles
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=pair is not None).ravel()
    for ax, number in zip(axes, chosen, strict=False):
        column = values[:, number - 1]
        if pair is None:
            order = np.argsort(places)
            ax.plot(places[order], column[order], ".", markersize=2)
        else:
            limit = max(float(np.max(np.abs(column), initial=0.0)), SMALLEST_LIMIT)
            options = {"cmap": DIVERGING, "vmin": -limit, "vmax": limit, "s": 3, "linewidths": 0, "rasterized": True}
            ax.scatter(vectors[:, pair[0]], vectors[:, pair[1]], c=column, **options)
            ax.set_facecolor("0.9")
        ax.set_title(_eigenvalue(model, number), fontsize="medium")
    for ax in axes[len(chosen) :]:
        ax.set_visible(False)
    horizontal = "state" if numbered else "observation" if pair is None else f"observation[{pair[0]}]"
    figure.supxlabel(horizontal, fontsize="medium")
    figure.supylabel("component" if pair is None else f"observation[{pair[1]}]", fontsize="medium")
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
    # Equal images say the same of a component.
    _, first = np.unique(rows.reshape(len(rows), -1), axis=0, return_index=True)
    rows, values = rows[first], values[first]
    frames = min(FRAMES, max(len(rows) // 2, 1))
    pictures = [_picture(image) for image in rows[:1]]
    shape = pictures[0].shape[0] / pictures[0].shape[1]
    low, high = float(rows.min()), float(rows.max())
    figure = NotebookFigure(
        figsize=(width, len(chosen) * (width / (2 * frames + 0.6) * shape + 0.12) + 0.5), layout="constrained"
    )
    grid = figure.subplots(len(chosen), 2 * frames + 1, squeeze=False, width_ratios=[1] * frames + [0.2] + [1] * frames)
    for line, number in zip(grid, chosen, strict=True):
        order = np.argsort(values[:, number - 1], kind="stable")
        shown_rows = [*order[:frames], None, *order[-frames:]]
        for ax, row in zip(line, shown_rows, strict=True):
            if row is None:
                ax.set_visible(False)
                continue
            _draw_image(ax, _picture(rows[row]), low, high)
            ax.set_title(f"{values[row, number - 1]:.2g}", fontsize=6, pad=1)
        line[0].set_ylabel(_eigenvalue(model, number), fontsize="small")
    return figure


def _picture(image: NDArray[Any]) -> NDArray[Any]:
    """An observation as (rows, columns) or (rows, columns, 3): colours, or the last frame of a stack."""
    if image.ndim == 4:
        image = image[-1]
    elif has_channels_first(image.shape):
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 2 or image.shape[-1] == 3:
        return image
    return image[..., -1]


def _draw_image(ax: Axes, image: NDArray[Any], low: float, high: float) -> None:
    scaled = (image.astype(np.float64) - low) / max(high - low, 1e-12)
    ax.imshow(scaled, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _eigenvalue(model: LaplacianRepresentation, number: int) -> str:
    return f"$\\lambda_{{{number}}}$ = {model.eigenvalues[number - 1]:.3g}"
