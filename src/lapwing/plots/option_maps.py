"""Options on their world: an arrow for the action in each state, dots where an option may start alone or end."""

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.quiver import Quiver
from numpy.typing import ArrayLike, NDArray

from lapwing.applications.options import Option
from lapwing.checks import as_reals
from lapwing.environments import World
from lapwing.errors import ArgumentError
from lapwing.plots.fields import draw_field, draw_world, field_places, proportion
from lapwing.plots.figures import PRINT, NotebookFigure, Style, label

ARROW, END, START = "#1a1a1a", "#F0E442", "#009E73"
ARROW_LENGTH = 0.62  # of a cell
# Up to this many states an initiation set is drawn state by state: it is a point of departure, not a region.
FEW_STARTS = 3
PANELS_WIDE = 1.1  # arrows need a little more room than colours


def draw_option(ax: Axes, world: World, option: Option, values: "ArrayLike | None" = None) -> Quiver:
    """Draw an option: an arrow in each state that it may pass, a dot where it may end, a ring around a lone start.

    Args:
        ax: the axes to draw on; ticks and frame are removed.
        world: the world of the option, with a picture.
        option: over the states of that world.
        values: (n,) a function below the arrows, such as the component of an eigenoption; none unless given.

    Returns:
        The arrows, as ``ax.quiver`` returns them.
    """
    places, steps = _places(world), _mean_steps(world, option)
    if values is None:
        draw_world(ax, world)
    else:
        draw_field(ax, world, _checked_values(values, len(places)))
    passed = _passed(world, option)
    ends = np.flatnonzero(passed & (option.termination_probabilities > 0))
    starts = np.flatnonzero(option.initiation_set)
    acting = np.flatnonzero(passed & (option.actions >= 0) & (np.abs(steps).max(axis=1) > 0))
    lengths = np.linalg.norm(steps[acting], axis=1, keepdims=True)
    down, across = (ARROW_LENGTH * steps[acting] / lengths).T
    rows, columns = places[acting].T
    arrows = ax.quiver(
        columns, rows, across, down, color=ARROW, pivot="mid", angles="xy", scale_units="xy", scale=1.0, width=0.009,
        headwidth=4.5, headlength=4.5, headaxislength=4.0, zorder=3,
    )  # fmt: skip
    size = _dot_size(ax, world)
    ax.scatter(places[ends, 1], places[ends, 0], s=size, color=END, edgecolors=ARROW, linewidths=0.8, zorder=4)
    if 0 < len(starts) <= FEW_STARTS:
        lone = places[starts]
        ax.scatter(lone[:, 1], lone[:, 0], s=2 * size, facecolors="none", edgecolors=START, linewidths=1.5, zorder=4)
    return arrows


def options_figure(
    world: World,
    options: Sequence[Option],
    values: "ArrayLike | None" = None,
    *,
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw options side by side, each on the picture of its world.

    Args:
        world: the world of the options, with a picture.
        options: at least one, each over the states of that world.
        values: (n, k) a function below the arrows of each option; none unless given.
        width: in inches; that of the style if None.
        style: ``PRINT`` or ``SCREEN``, or one of your own; panels are wider than those of eigenvectors.

    Returns:
        The figure; :func:`save_figure` writes it.

    Raises:
        ArgumentError: a world without a picture, no options, or values that do not fit them.

    Example:
        >>> import lapwing as lw
        >>> world = lw.make_world("room:1x5")
        >>> figure = options_figure(world, lw.applications.covering_options(world, 2))
        >>> [ax.get_xlabel() for ax in figure.axes]
        ['0 to 4', '4 to 0']
    """
    if not options:
        raise ArgumentError("there is no option to draw; give at least one")
    fields = None if values is None else as_reals(values)
    if values is not None and (fields is None or fields.ndim != 2 or fields.shape[1] != len(options)):
        raise ArgumentError(f"values must be numbers of shape (states, {len(options)}), one column for each option")
    _places(world)  # refuses a world without a picture
    width = style.width if width is None else width
    columns = min(len(options), max(round(width / (PANELS_WIDE * style.panel)), 1))
    rows = -(-len(options) // columns)
    height = width / columns * min(proportion(world), 2.0) + 0.22
    settings = dict(style.settings)
    with matplotlib.rc_context(settings):  # type: ignore[arg-type]
        figure = NotebookFigure(figsize=(width, rows * height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for number, (ax, option) in enumerate(zip(axes, options, strict=False)):
            draw_option(ax, world, option, None if fields is None else fields[:, number])
            ax.set_xlabel(label(option.name))
        for ax in axes[len(options) :]:
            ax.set_visible(False)
        figure.draw_without_rendering()
    return figure


def _places(world: World) -> NDArray[np.float64]:
    """(n, 2) where each state lies in the picture, down and across."""
    points = world.field_points()
    if points is None or world.num_states != len(points):
        raise ArgumentError(f"{world.name} has no picture with a place for each state")
    return field_places(world)


def _mean_steps(world: World, option: Option) -> NDArray[np.float64]:
    """(n, 2) where the option's action leads on average, relative to the state."""
    matrices, places = world.action_matrices(), _places(world)
    if matrices is None or len(option.actions) != len(places):
        raise ArgumentError(f"option {option.name} is not over the states of {world.name}")
    steps = np.zeros_like(places)
    for action, matrix in enumerate(matrices):
        rows = option.actions == action
        steps[rows] = (matrix @ places - places)[rows]
    return np.where(np.abs(steps) < 1e-9, 0.0, steps)


def _passed(world: World, option: Option) -> NDArray[np.bool_]:
    """(n,) states where the option may start or which it may reach."""
    matrices = world.action_matrices()
    assert matrices is not None
    found = option.initiation_set.copy()
    while True:
        acting = np.where(found & ((option.termination_probabilities < 1) | option.initiation_set), option.actions, -1)
        reached = found.copy()
        for action, matrix in enumerate(matrices):
            reached |= np.asarray(matrix.T @ (acting == action).astype(np.float64)) > 0
        if (reached == found).all():
            return found
        found = reached


def _checked_values(values: "ArrayLike", count: int) -> NDArray[np.float64]:
    numbers = as_reals(values)
    if numbers is None or numbers.shape != (count,):
        raise ArgumentError(f"values must be {count} numbers, one for each state")
    return numbers


def _dot_size(ax: Axes, world: World) -> float:
    """The area of a dot that fills a good part of a cell, in square points, whatever the size of the panel."""
    assert ax.figure is not None
    cells = np.ma.getmaskarray(world.field_image(np.zeros(int(world.num_states or 0)))).shape[1]
    points = ax.get_position().width * ax.figure.get_figwidth() * 72.0 / cells  # type: ignore[union-attr]
    return float((0.55 * points) ** 2)
