"""Figures for papers: eigenvectors, spectra, learning curves and comparisons, sized for print, without titles."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lapwing.environments.box import BoxWorld
from lapwing.environments.registry import World
from lapwing.errors import LapwingError, did_you_mean
from lapwing.plots.fields import draw_component, label, values_on_world
from lapwing.plots.figures import world_of
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.files import replaced_file
from lapwing.storage.records import learning_history

What = Literal["eigenvectors", "spectrum", "curves", "comparison"]

# Okabe and Ito's colours, told apart by the colour-blind; yellow is left out, for it fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
STYLES = ("-", "--", ":")
TEXT_WIDTH = 5.5
WIDTHS = (1.0, 40.0)
MOST_PANELS = 12
PANEL_INCHES = 0.95
MARKERS = "osD^vP*"

PRINT: Mapping[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
}

# What is on a quality axis, by the column of the history.
QUALITY = {"cosine": "cosine to the truth", "angle": "largest angle (sine)"}
CURVES = (*QUALITY, "loss", "error")
LOGARITHMIC = ("angle", "error")


class Picture(Figure):
    """A figure that a notebook shows even where pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=110)
        return stream.getvalue()


def paper_figure(
    models: Mapping[str, LaplacianRepresentation],
    what: What = "eigenvectors",
    components: Sequence[int] | None = None,
    width: float = TEXT_WIDTH,
    style: Mapping[str, Any] = PRINT,
) -> Picture:
    """A figure of one representation, or of several by name.

    Args:
        models: by the names that rows and lines get where there are several.
        what: ``eigenvectors`` (one row per model), ``spectrum``, ``curves`` (one model each), or ``comparison``.
        components: which ones, counted from 1; all unless given, of eigenvectors the first few.
        width: in inches.
        style: matplotlib's settings; those of print unless given.
    """
    known = {
        "eigenvectors": _eigenvectors,
        "spectrum": _spectrum,
        "curves": _curves,
        "comparison": _comparison,
    }
    if what not in known:
        raise LapwingError(f"cannot draw {what!r}; {did_you_mean(what, known)}")
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise LapwingError(f"the width must be between {WIDTHS[0]:g} and {WIDTHS[1]:g} inches, got {width:g}")
    if what in ("spectrum", "curves") and len(models) > 1:
        raise LapwingError(f"{what} is drawn of one run; comparison puts several on one axes")
    if what == "comparison" and len(models) < 2:
        raise LapwingError("a comparison takes at least two runs")
    for name, model in models.items():
        _check_components(name, model, components)
    settings: dict[Any, Any] = dict(style)
    with matplotlib.rc_context(settings):
        figure: Picture = known[what](models, components, width)
        # Ticks are made when they are first drawn, and take their sizes from the settings of that moment.
        figure.draw_without_rendering()
    return figure


def save_for_print(figure: Figure, path: Path) -> Path:
    """Write a figure, whole or not at all: fonts embedded as fonts, 300 dots per inch, the same bits each time."""
    kind = path.suffix.lstrip(".").lower()
    undated: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    if kind not in undated:
        raise LapwingError(f"{path}: figures are written as .pdf, .png or .svg")
    settings: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "lapwing"}
    with matplotlib.rc_context(settings), replaced_file(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=300, metadata=undated[kind])
    return path


def draw_spectra(
    ax: Axes, models: Mapping[str, LaplacianRepresentation], components: Sequence[int] | None = None
) -> Axes:
    """Eigenvalues of several representations in the first one's definition, two standard errors where from data."""
    definition = next(iter(models.values())).definition
    shifts = np.linspace(-0.15, 0.15, len(models)) if len(models) > 1 else np.zeros(1)
    for number, (name, model) in enumerate(models.items()):
        chosen = np.asarray(components or range(1, model.dim + 1)) - 1
        places, values = chosen + 1 + shifts[number], model.eigenvalues_in(definition)[chosen]
        colour = COLOURS[number % len(COLOURS)]
        bars = 2.0 * model.error_bars_in(definition)[chosen]
        if model.mu_errors is not None:
            ax.errorbar(places, values, yerr=bars, fmt="none", ecolor=colour, elinewidth=0.8, capsize=2)
        ax.plot(places, values, MARKERS[number % len(MARKERS)], color=colour, label=label(name))
    ax.set_xlabel("component")
    ax.set_ylabel(f"eigenvalue ({definition})")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.3)
    return ax


def draw_histories(ax: Axes, histories: Mapping[str, Sequence[Mapping[str, float]]], column: str) -> Axes:
    """One column of several learning histories over steps; an empty one is left out but keeps its colour."""
    for number, (name, history) in enumerate(histories.items()):
        if not history:
            continue
        steps, values = [row["step"] for row in history], [row[column] for row in history]
        style = STYLES[number % len(STYLES)]
        ax.plot(steps, values, style, color=COLOURS[number % len(COLOURS)], label=label(name))
    if column in LOGARITHMIC:
        ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel({**QUALITY, "error": "constraint error"}.get(column, column))
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, steps=[1, 2, 5, 10]))
    ax.grid(alpha=0.3)
    return ax


def _eigenvectors(
    models: Mapping[str, LaplacianRepresentation], components: Sequence[int] | None, width: float
) -> Picture:
    several = len(models) > 1
    most = round(width / PANEL_INCHES) if several else MOST_PANELS
    chosen = list(components or range(1, min(most, *(model.dim for model in models.values())) + 1))
    columns = len(chosen) if several else min(len(chosen), max(round(width / PANEL_INCHES), 1))
    rows = len(models) if several else -(-len(chosen) // columns)
    worlds = [world_of(model) for model in models.values()]
    # One line of text below each panel.
    heights = [width / columns * _proportion(worlds[row if several else 0]) + 0.22 for row in range(rows)]
    figure = Picture(figsize=(width, sum(heights)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)  # type: ignore[union-attr, call-arg]
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    for row, ((name, model), world) in enumerate(zip(models.items(), worlds, strict=True)):
        values, line = values_on_world(model, world), axes[row] if several else axes.ravel()
        for ax, number in zip(line, chosen, strict=False):
            draw_component(ax, model, world, values[:, number - 1])
            ax.set_xlabel(f"$\\lambda_{{{number}}}$ = {model.eigenvalues[number - 1]:.3g}", labelpad=2)
        if several:
            line[0].set_ylabel(label(name))
    for ax in axes.ravel()[len(models) * len(chosen) :]:
        ax.set_visible(False)
    return figure


def _spectrum(models: Mapping[str, LaplacianRepresentation], components: Sequence[int] | None, width: float) -> Picture:
    figure = Picture(figsize=(width, 0.6 * width), layout="constrained")
    draw_spectra(figure.subplots(), models, components)
    return figure


def _curves(models: Mapping[str, LaplacianRepresentation], components: Sequence[int] | None, width: float) -> Picture:
    if components is not None:
        raise LapwingError("learning curves are of all components together; leave the components out")
    (history,) = _histories(models).values()
    if not history:
        raise LapwingError("this representation was not learned step by step; there are no curves to draw")
    columns = [name for name in CURVES if name in history[0]]
    rows = -(-len(columns) // 2)
    figure = Picture(figsize=(width, rows * 0.3 * width), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, column in zip(axes, columns, strict=False):
        draw_histories(ax, _histories(models), column)
    for ax in axes[len(columns) :]:
        ax.set_visible(False)
    return figure


def _comparison(
    models: Mapping[str, LaplacianRepresentation], components: Sequence[int] | None, width: float
) -> Picture:
    histories = _histories(models)
    learned = [history for history in histories.values() if history]
    shared = [column for column in QUALITY if learned and all(column in history[0] for history in learned)]
    figure = Picture(figsize=(width, (0.42 if shared else 0.6) * width + 0.25), layout="constrained")
    axes = figure.subplots(1, 2 if shared else 1, squeeze=False)[0]
    draw_spectra(axes[0], models, components)
    if shared:
        draw_histories(axes[1], histories, shared[0])
    handles, names = axes[0].get_legend_handles_labels()
    # A run keeps its colour on both axes, so one legend serves them.
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False)
    return figure


def _histories(models: Mapping[str, LaplacianRepresentation]) -> dict[str, list[dict[str, float]]]:
    """Learning histories, empty where a representation was not learned step by step."""
    return {name: learning_history(model.metadata) for name, model in models.items()}


def _check_components(name: str, model: LaplacianRepresentation, components: Sequence[int] | None) -> None:
    if components is not None and not components:
        raise LapwingError("no component is chosen; name at least one")
    for number in components or ():
        if not 1 <= number <= model.dim:
            raise LapwingError(f"{name} has components 1 to {model.dim}; there is no component {number}")


def _proportion(world: World) -> float:
    """Height of a panel for a width of one."""
    if isinstance(world, BoxWorld):
        return world.sides[0] / world.sides[1] if world.dimension > 1 else 1.0
    rows, columns = world.layout.shape
    return rows / columns
