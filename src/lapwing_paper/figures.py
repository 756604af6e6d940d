"""Figures of studies: curves with bands, bars with errors, functions on worlds, drawn from their plain description."""

import textwrap
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from lapwing.plots import COLOURS, LINE_STYLES, draw_field
from lapwing_paper.engine.pictures import Bars, Curves, Field, Panel, Picture

MARK = "#00C853"
SOLID, PALE = "#1a1a1a", "#b0b0b0"
LETTERS_PER_INCH = 12
PANEL_INCHES = {Curves: (3.6, 2.7), Bars: (3.1, 2.3), Field: (2.1, 2.2)}


def picture_figure(picture: Picture) -> Figure:
    """The whole figure: panels in a grid, one legend where lines share their labels."""
    rows = -(-len(picture.panels) // picture.columns)
    columns = min(picture.columns, max(len(picture.panels), 1))
    kind = type(picture.panels[0]) if picture.panels else Curves
    width, height = PANEL_INCHES[kind]
    if kind is Bars and len(picture.panels) == 1:
        width, height = 8.0, 3.4
    figure = Figure(figsize=(max(columns * width, 6.0), rows * height + 0.9), layout="constrained")
    axes = figure.subplots(max(rows, 1), columns, squeeze=False).ravel()
    for number, (ax, panel) in enumerate(zip(axes, picture.panels, strict=False)):
        draw_panel(ax, panel)
        if kind is not Field:
            ax.set_xlabel(picture.x_label if number + columns >= len(picture.panels) else "")
            ax.set_ylabel(picture.y_label if number % columns == 0 else "")
        if picture.y_limits is not None:
            ax.set_ylim(*picture.y_limits)
    for ax in axes[len(picture.panels) :]:
        ax.set_visible(False)
    _add_legend(figure, picture)
    room = int(figure.get_figwidth() * LETTERS_PER_INCH)
    figure.suptitle("\n".join(textwrap.fill(line, room) for line in picture.title.split("\n")), fontsize=10)
    return figure


def draw_panel(ax: Axes, panel: Panel) -> Axes:
    """Any panel, by its kind."""
    if isinstance(panel, Curves):
        draw_curves(ax, panel)
    elif isinstance(panel, Bars):
        draw_bars(ax, panel)
    else:
        draw_function(ax, panel)
    ax.set_title(panel.title, fontsize=9)
    return ax


def draw_curves(ax: Axes, panel: Curves) -> Axes:
    """Lines with bands; highlighted ones thick, the others beside them thin."""
    any_highlighted = any(line.highlighted for line in panel.lines)
    for number, line in enumerate(panel.lines):
        colour, style = _look(number, len(panel.lines), any_highlighted)
        thick = 2.6 if line.highlighted else 1.3
        ax.plot(line.x, line.y, style, color=colour, lw=thick, label=line.label, zorder=3 if line.highlighted else 2)
        if line.low is not None and line.high is not None:
            ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, lw=0)
    if panel.log_x:
        ax.set_xscale("log")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4))
        ax.xaxis.set_major_formatter(FuncFormatter(_thousands))
    ax.grid(alpha=0.3)
    return _open_frame(ax)


def draw_bars(ax: Axes, panel: Bars) -> Axes:
    """Bars with error bars, dark where significant and pale where not."""
    solid = panel.solid if panel.solid is not None else (True,) * len(panel.labels)
    places = np.arange(len(panel.labels))
    colours = [SOLID if one else PALE for one in solid]
    # An error that is not known (one seed) is not drawn.
    errors = None if panel.errors is None else np.nan_to_num(panel.errors)
    ax.bar(places, panel.values, color=colours, yerr=errors, ecolor="#D55E00", capsize=2, width=0.7)
    slanted = max((len(label) for label in panel.labels), default=0) > 3
    ax.set_xticks(places, panel.labels, rotation=40 if slanted else 0, ha="right" if slanted else "center", fontsize=8)
    ax.axhline(0.0, color="#666666", lw=0.8)
    ax.grid(alpha=0.3, axis="y")
    return _open_frame(ax)


def draw_function(ax: Axes, panel: Field) -> Axes:
    """A function on a world; local extrema boxed in green, maxima with a full line, minima with a dashed one."""
    draw_field(ax, panel.world, panel.values, limit=float(np.abs(panel.values).max()) or 1.0)
    numbers = panel.world.field_image(np.arange(len(panel.values), dtype=np.float64)).filled(-1.0)
    for states, style in ((panel.maxima, "-"), (panel.minima, "--")):
        for row, column in (np.argwhere(numbers == state)[0] for state in states):
            ax.add_patch(Rectangle((column - 1, row - 1), 2, 2, fill=False, ec=MARK, lw=1.2, ls=style))
    return ax


def _look(number: int, count: int, ordered: bool) -> tuple[Any, str]:
    """Colour and style of a line: distinct ones, or, for many that are in order, a scale from dark to light."""
    if count > len(COLOURS) or ordered:
        return matplotlib.colormaps["viridis"](0.92 * number / max(count - 1, 1)), "-"
    return COLOURS[number % len(COLOURS)], LINE_STYLES[(number // len(COLOURS)) % len(LINE_STYLES)]


def _add_legend(figure: Figure, picture: Picture) -> None:
    """One legend below if all panels have the same lines, else one in each; none for a single line."""
    curves = [panel for panel in picture.panels if isinstance(panel, Curves)]
    if not curves or max(len(panel.lines) for panel in curves) < 2:
        return
    labels = {tuple(line.label for line in panel.lines) for panel in curves}
    if len(labels) == 1:
        handles, names = figure.axes[0].get_legend_handles_labels()
        shown = figure.legend(
            handles, names, loc="outside lower center", ncols=min(len(names), 6), fontsize=8, frameon=False
        )
        for line in shown.get_lines():
            # Which line is highlighted differs from panel to panel.
            line.set_linewidth(1.5)
        return
    for ax, panel in zip(figure.axes, picture.panels, strict=False):
        if isinstance(panel, Curves) and panel.lines:
            ax.legend(fontsize=6.5, frameon=False)


def _open_frame(ax: Axes) -> Axes:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)
    return ax


def _thousands(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"
