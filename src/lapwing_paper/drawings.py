"""Figures of studies: curves with bands, bars with errors, functions on worlds; described as data, then drawn."""

import textwrap
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from lapwing.environments import World
from lapwing.plots import COLOURS, LINE_STYLES, draw_field

Numbers = NDArray[np.float64]

MARK = "#00C853"
SOLID, PALE = "#1a1a1a", "#b0b0b0"
LETTERS_PER_INCH = 12


@dataclass(frozen=True)
class Line:
    """A curve with a band around it."""

    label: str
    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None
    highlighted: bool = False


@dataclass(frozen=True)
class LinePanel:
    """A panel of curves."""

    title: str
    lines: tuple[Line, ...]
    size = (3.6, 2.7)

    def draw(self, ax: Axes) -> None:
        """Lines with bands; highlighted ones thick, the others beside them thin."""
        any_highlighted = any(line.highlighted for line in self.lines)
        for number, line in enumerate(self.lines):
            colour, style = _look(number, len(self.lines), any_highlighted)
            width, order = (2.6, 3) if line.highlighted else (1.3, 2)
            ax.plot(line.x, line.y, style, color=colour, lw=width, label=line.label, zorder=order)
            if line.low is not None and line.high is not None:
                ax.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, lw=0)
        ax.xaxis.set_major_locator(MaxNLocator(nbins=4))
        ax.xaxis.set_major_formatter(FuncFormatter(_thousands))
        ax.grid(alpha=0.3)
        _open_frame(ax)


@dataclass(frozen=True)
class BarPanel:
    """A panel of bars with error bars; those that are not ``solid`` are drawn pale (not significant)."""

    title: str
    labels: tuple[str, ...]
    values: Numbers
    errors: Numbers | None = None
    solid: tuple[bool, ...] | None = None
    size = (3.1, 2.3)

    def draw(self, ax: Axes) -> None:
        """Bars, black or pale."""
        places = np.arange(len(self.labels))
        colours = [SOLID if one else PALE for one in self.solid or (True,) * len(self.labels)]
        # An unknown error (NaN, of one seed) is not drawn.
        ax.bar(places, self.values, color=colours, yerr=self.errors, ecolor="#D55E00", capsize=2, width=0.7)
        slanted = max((len(label) for label in self.labels), default=0) > 3
        rotation, side = (40, "right") if slanted else (0, "center")
        ax.set_xticks(places, self.labels, rotation=rotation, ha=side, fontsize=8)
        ax.axhline(0.0, color="#666666", lw=0.8)
        ax.grid(alpha=0.3, axis="y")
        _open_frame(ax)


@dataclass(frozen=True)
class FieldPanel:
    """A panel that shows one number per state of a world; in grids, states can be marked."""

    title: str
    world: World
    values: Numbers
    maxima: tuple[int, ...] = ()
    minima: tuple[int, ...] = ()
    size = (2.1, 2.2)

    def draw(self, ax: Axes) -> None:
        """The function as colour; maxima boxed with a full line, minima with a dashed one."""
        draw_field(ax, self.world, self.values, limit=float(np.abs(self.values).max()) or 1.0)
        numbers = self.world.field_image(np.arange(len(self.values), dtype=np.float64)).filled(-1.0)
        for states, style in ((self.maxima, "-"), (self.minima, "--")):
            for row, column in (np.argwhere(numbers == state)[0] for state in states):
                ax.add_patch(Rectangle((column - 1, row - 1), 2, 2, fill=False, ec=MARK, lw=1.2, ls=style))


@dataclass(frozen=True)
class StudyFigure:
    """A figure: panels of one kind in rows of ``columns``, with common labels of the axes.

    Attributes:
        name: file stem.
        title: above the panels; includes the size of a quick version.
        panels: what is drawn.
        columns: panels in a row.
        x_label: of the panels at the bottom.
        y_label: of the panels on the left.
        description: what it shows, as text, for those who cannot see it.
        y_limits: common to all panels.
    """

    name: str
    title: str
    panels: tuple[LinePanel | BarPanel | FieldPanel, ...]
    columns: int
    x_label: str = ""
    y_label: str = ""
    description: str = ""
    y_limits: tuple[float, float] | None = None

    def draw(self) -> Figure:
        """The whole figure: panels in a grid, one legend where lines share their labels."""
        panels = self.panels
        rows, columns = max(-(-len(panels) // self.columns), 1), min(self.columns, max(len(panels), 1))
        width, height = panels[0].size if panels else LinePanel.size
        if len(panels) == 1 and isinstance(panels[0], BarPanel):
            width, height = 8.0, 3.4
        figure = Figure(figsize=(max(columns * width, 6.0), rows * height + 0.9), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for number, (ax, panel) in enumerate(zip(axes, panels, strict=False)):
            panel.draw(ax)
            ax.set_title(panel.title, fontsize=9)
            if number + columns >= len(panels):
                ax.set_xlabel(self.x_label)
            if number % columns == 0:
                ax.set_ylabel(self.y_label)
            if self.y_limits is not None:
                ax.set_ylim(*self.y_limits)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        _add_legend(figure, [panel for panel in panels if isinstance(panel, LinePanel)])
        letters = int(figure.get_figwidth() * LETTERS_PER_INCH)
        figure.suptitle("\n".join(textwrap.fill(line, letters) for line in self.title.split("\n")), fontsize=10)
        return figure


def _look(number: int, count: int, ordered: bool) -> tuple[Any, str]:
    """Colour and style of a line: distinct ones, or, for many that are in order, a scale from dark to light."""
    if count > len(COLOURS) or ordered:
        return matplotlib.colormaps["viridis"](0.92 * number / max(count - 1, 1)), "-"
    return COLOURS[number % len(COLOURS)], LINE_STYLES[(number // len(COLOURS)) % len(LINE_STYLES)]


def _add_legend(figure: Figure, panels: list[LinePanel]) -> None:
    """One legend below if all panels have the same lines, else one in each; none for a single line."""
    if not panels or max(len(panel.lines) for panel in panels) < 2:
        return
    if len({tuple(line.label for line in panel.lines) for panel in panels}) == 1:
        handles, names = figure.axes[0].get_legend_handles_labels()
        columns = min(len(names), 6)
        legend = figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8, frameon=False)
        for line in legend.get_lines():
            # Which line is highlighted differs from panel to panel.
            line.set_linewidth(1.5)
        return
    for ax, panel in zip(figure.axes, panels, strict=False):
        if panel.lines:
            ax.legend(fontsize=6.5, frameon=False)


def _open_frame(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8)


def _thousands(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"
