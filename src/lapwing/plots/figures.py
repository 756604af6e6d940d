"""Figures of representations, for a screen or for print: eigenvectors, spectra, learning curves, comparisons."""

import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lapwing.checks import as_path, shown
from lapwing.environments import World, world_from_description
from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean
from lapwing.operators.clusters import group_degenerate
from lapwing.plots.fields import draw_field, draw_world, field_values, proportion
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.files import replaced_file
from lapwing.storage.schemas import is_number, learning_history, world_name

What = Literal["eigenvectors", "spectrum", "curves", "comparison"]
Models = Mapping[str, LaplacianRepresentation]
History = Sequence[Mapping[str, float]]

# Okabe and Ito's colours, distinguishable with colour-blindness; without their yellow, which fades on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINE_STYLES = ("-", "--", ":")
MARKERS = "osD^vP*"
WIDTHS = (1.0, 40.0)
LONGEST_LABEL = 80
# Undated, so that the same figure gives the same bytes.
METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}


@dataclass(frozen=True)
class Style:
    """How figures look.

    Attributes:
        width: of a figure, in inches.
        panel: about how wide the picture of one eigenvector is, in inches.
        panels: the largest number of eigenvectors drawn.
        titles: whether a figure says what it shows; a figure in a paper has a caption instead.
        settings: of matplotlib.
    """

    width: float
    panel: float
    panels: int
    titles: bool
    settings: Mapping[str, Any] = field(default_factory=dict)


_COMMON = {"axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.2, "lines.markersize": 3.5}
_SMALL = {"font.size": 8, "xtick.labelsize": 7, "ytick.labelsize": 7, "legend.fontsize": 7, "axes.linewidth": 0.6}
SCREEN = Style(9.6, 2.4, 60, True, {**_COMMON, "axes.titlesize": 10, "legend.fontsize": 8})
PRINT = Style(5.5, 0.95, 12, False, {**_COMMON, **_SMALL, "grid.linewidth": 0.4})


@dataclass(frozen=True)
class CurvePanel:
    """Columns of a learning history that share a panel.

    Attributes:
        title: what the panel shows.
        axis: the label of the vertical axis.
        log: whether that axis is logarithmic.
        lines: the labels of its lines, by column.
    """

    title: str
    axis: str
    log: bool
    lines: Mapping[str, str]


_SIMILARITY = {"cosine": "subspace similarity", "paper_cosine": "the paper's cosine"}
_LOSS = {"loss": "loss", "graph": "graph term", "dual": "dual term", "penalty": "penalty"}
_CONSTRAINTS = {"error": "largest constraint error", "barrier": "barrier"}
_ANGLE = {"angle": "largest angle"}
CURVE_PANELS = {
    "similarity": CurvePanel("Similarity to the ground truth", "cosine to the ground truth", False, _SIMILARITY),
    "angle": CurvePanel("Largest angle, estimated without a ground truth", "largest angle (sine)", True, _ANGLE),
    "loss": CurvePanel("Loss and its terms", "loss", False, _LOSS),
    "constraints": CurvePanel("Constraint error and barrier", "constraint error, barrier", True, _CONSTRAINTS),
}
DUAL_COLUMN = re.compile(r"(?:dual|reading|eigenvalue)_(\d{1,6})")


class NotebookFigure(Figure):
    """A figure that a notebook shows even where pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=110)
        return stream.getvalue()


def representation_figure(
    models: Models,
    what: What = "eigenvectors",
    components: Sequence[int] | None = None,
    *,
    width: float | None = None,
    style: Style = PRINT,
) -> NotebookFigure:
    """Draw one representation, or several together.

    Args:
        models: representations by the name that rows and lines get where there are several.
        what: ``eigenvectors`` on the world (one row per model if there are several), the ``spectrum`` or the learning
            ``curves`` of one model, or a ``comparison`` of the spectra and curves of several.
        components: which components, counted from 1; all if None, of eigenvectors as many as the style allows.
        width: in inches; that of the style if None.
        style: ``PRINT`` (for a paper, without titles) or ``SCREEN``, or one of your own.

    Returns:
        The figure; :func:`save_figure` writes it.

    Raises:
        ArgumentError: if there is no such figure of these models.

    Example:
        >>> import lapwing as lw
        >>> figure = representation_figure({"room": lw.solve("GridRoom-1", dim=4)}, "spectrum")
        >>> figure.axes[0].get_ylabel()
        'eigenvalue (one_step)'
    """
    if what not in _FIGURES:
        raise UnknownNameError(f"cannot draw {shown(what)}; {did_you_mean(str(what), _FIGURES)}")
    width = style.width if width is None else width
    if not WIDTHS[0] <= width <= WIDTHS[1]:
        raise ArgumentError(f"the width must be between {WIDTHS[0]:g} and {WIDTHS[1]:g} inches, got {width:g}")
    if what in ("spectrum", "curves") and len(models) > 1:
        raise ArgumentError(f"the {what} figure shows one run; a comparison shows several on the same axes")
    if what == "comparison" and len(models) < 2:
        raise ArgumentError("a comparison needs at least two runs")
    if components is not None and not len(components):
        raise ArgumentError("no component is chosen; name at least one")
    for name, model in models.items():
        for number in () if components is None else components:
            if not 1 <= number <= model.dim:
                raise ArgumentError(f"{name} has components 1 to {model.dim}; there is no component {number}")
    settings: dict[Any, Any] = dict(style.settings)
    with matplotlib.rc_context(settings):
        figure = _FIGURES[what](models, None if components is None else list(components), width, style)
        # Ticks are created when they are first drawn, with the settings of that moment.
        figure.draw_without_rendering()
    return figure


def save_figure(figure: Figure, path: str | Path, dpi: int = 130) -> Path:
    """Write a figure atomically; the same figure gives the same bytes.

    Args:
        figure: any matplotlib figure.
        path: ends in ``.pdf``, ``.png`` or ``.svg``, which decides the format.
        dpi: dots per inch of a PNG.

    Returns:
        The path.

    Raises:
        ArgumentError: if the ending is another one; then nothing is written.
    """
    target = as_path(path, "the file of a figure")
    kind = target.suffix.lstrip(".").lower()
    if kind not in METADATA:
        raise ArgumentError(f"{target}: figures are written as .pdf, .png or .svg")
    # Fonts embedded as TrueType: journals refuse Type 3.
    settings: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "lapwing"}
    with matplotlib.rc_context(settings), replaced_file(target) as temporary:
        figure.savefig(temporary, format=kind, dpi=dpi, metadata=METADATA[kind])
    return target


def draw_spectra(ax: Axes, models: Models, components: Sequence[int] | None = None) -> Axes:
    """Draw the eigenvalues of one or several representations, in the definition of the first.

    Error bars are two standard errors, where eigenvalues come from data. Repeated eigenvalues of a single
    representation are joined.

    Args:
        ax: the axes to draw on.
        models: representations by name.
        components: which components, counted from 1; all if None.

    Returns:
        The same axes.
    """
    definition = next(iter(models.values())).definition
    shifts = np.linspace(-0.15, 0.15, len(models)) if len(models) > 1 else np.zeros(1)
    for number, (name, model) in enumerate(models.items()):
        chosen = np.asarray(components or range(1, model.dim + 1)) - 1
        places, values = chosen + 1 + shifts[number], model.eigenvalues_in(definition)
        colour = COLOURS[number % len(COLOURS)]
        for cluster in group_degenerate(1.0 - model.mu[: model.dim], model.tolerance) if len(models) == 1 else ():
            joined = [i for i in cluster if i in chosen]
            if len(joined) > 1:
                ax.plot(np.add(joined, 1), values[joined], lw=6, color="#E69F00", alpha=0.5, zorder=1)
        if model.mu_errors is not None:
            bars = 2.0 * model.error_bars_in(definition)[chosen]
            ax.errorbar(places, values[chosen], yerr=bars, fmt="none", ecolor=colour, elinewidth=0.8, capsize=2)
        ax.plot(places, values[chosen], MARKERS[number % len(MARKERS)], color=colour, label=label(name))
    ax.set(xlabel="component", ylabel=f"eigenvalue ({definition})")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.3)
    return ax


def draw_curves(ax: Axes, lines: Mapping[str, tuple[History, str]], axis: str, log: bool = False) -> Axes:
    """Draw columns of learning histories over training steps.

    Args:
        ax: the axes to draw on.
        lines: (rows, column) of each line by its label; one without rows is left out but keeps its colour.
        axis: the label of the vertical axis.
        log: whether that axis is logarithmic.

    Returns:
        The same axes.
    """
    for number, (name, (history, column)) in enumerate(lines.items()):
        if history:
            # A network that had collapsed for a while has no similarity then.
            values = [row.get(column, math.nan) for row in history]
            style, colour = LINE_STYLES[number % len(LINE_STYLES)], COLOURS[number % len(COLOURS)]
            steps = [row["step"] for row in history]
            ax.plot(steps, values, style, marker=".", color=colour, label=label(name))
    if log and any(np.any(np.asarray(line.get_ydata()) > 0) for line in ax.lines):
        ax.set_yscale("log")
    ax.set(xlabel="step", ylabel=axis)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, steps=[1, 2, 5, 10]))
    ax.grid(alpha=0.3)
    return ax


def curve_panels(history: History) -> dict[str, CurvePanel]:
    """The panels that show a learning history, each with the columns that the history has.

    Args:
        history: rows of numbers by column, all with the same columns.

    Returns:
        Panels by name: those of ``CURVE_PANELS``, ``duals``, and ``others`` with what an objective logs besides.
    """
    columns = {name: None for row in history for name, value in row.items() if is_number(value)}
    panels = {}
    for key, panel in CURVE_PANELS.items():
        if lines := {name: text for name, text in panel.lines.items() if name in columns}:
            panels[key] = replace(panel, lines=lines)
    known = {"step", *(name for panel in panels.values() for name in panel.lines)}
    duals = {int(found[1]): name for name in columns if (found := DUAL_COLUMN.fullmatch(name))}
    if duals:
        lines = {duals[number]: f"dual {number}" for number in sorted(duals)}
        panels["duals"] = CurvePanel("Dual variables", "dual variable", False, lines)
    if others := {name: name for name in columns if name not in known and name not in duals.values()}:
        panels["others"] = CurvePanel("Other metrics of the objective", "value", False, others)
    return panels


def worlds_figure(worlds: Sequence[World], columns: int = 5) -> NotebookFigure:
    """Draw a sheet with a small picture of each world.

    Args:
        worlds: the worlds.
        columns: how many stand side by side.

    Returns:
        The figure.
    """
    rows = -(-len(worlds) // columns)
    figure = NotebookFigure(figsize=(columns * 2.1, rows * 2.4), layout="constrained")
    for ax, world in zip(figure.subplots(rows, columns, squeeze=False).ravel(), worlds, strict=False):
        if world.field_points() is None:
            ax.axis("off")
        else:
            draw_world(ax, world)
        kind = "continuous" if world.num_states is None else f"{world.num_states:,} states"
        ax.set_title(f"{label(world.name)}\n{kind}", fontsize=9)
    for ax in figure.axes[len(worlds) :]:
        ax.set_visible(False)
    return figure


def world_of(model: LaplacianRepresentation) -> World:
    """The world that a representation's metadata describe; an ArgumentError where there is none to draw.

    Args:
        model: solved or learned in a world of the registry.

    Returns:
        A world whose ``field_points`` are not None.
    """
    world = world_from_description(model.metadata.get("world"))
    if world is None or world.field_points() is None:
        raise ArgumentError(
            "this representation has no world with a map; components are also drawn at observations "
            "(plots.observations_figure) and over time (plots.trajectories_figure)"
        )
    return world


def label(name: str) -> str:
    """A name from a file as text on a figure: short, on one line, and never parsed as a formula.

    Args:
        name: any text.

    Returns:
        Text that Matplotlib draws as it is.
    """
    return "".join(c if c.isprintable() else " " for c in name[:LONGEST_LABEL]).replace("$", r"\$")


def _eigenvectors(models: Models, components: list[int] | None, width: float, style: Style) -> NotebookFigure:
    several, side_by_side = len(models) > 1, max(round(width / style.panel), 1)
    most = side_by_side if several else style.panels
    chosen = components or list(range(1, min(most, *(model.dim for model in models.values())) + 1))
    columns = len(chosen) if several else min(len(chosen), side_by_side)
    rows = len(models) if several else -(-len(chosen) // columns)
    worlds = [world_of(model) for model in models.values()]
    # One line of text below each panel; a long corridor is not drawn across the whole width.
    shapes = [min(proportion(world), 2.0) for world in worlds]
    heights = [width / columns * shapes[row if several else 0] + 0.22 for row in range(rows)]
    figure = NotebookFigure(figsize=(width, sum(heights) + 0.3 * style.titles), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02)  # type: ignore[union-attr, call-arg]
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    for row, ((name, model), world) in enumerate(zip(models.items(), worlds, strict=True)):
        values, line = field_values(model, np.asarray(world.field_points())), axes[row] if several else axes.ravel()
        repeats = _repeats(model) if style.titles else [""] * model.dim
        for ax, number in zip(line, chosen, strict=False):
            draw_field(ax, world, values[:, number - 1])
            eigenvalue = f"{model.eigenvalues[number - 1]:.3g}{repeats[number - 1]}"
            ax.set_xlabel(f"$\\lambda_{{{number}}}$ = {eigenvalue}", labelpad=2)
        if several:
            line[0].set_ylabel(label(name))
    for ax in axes.ravel()[len(models) * len(chosen) :]:
        ax.set_visible(False)
    if style.titles:
        model = next(iter(models.values()))
        kind = "exact" if model.exact else "from data"
        title = f"{label(worlds[0].name)}: Laplacian eigenvectors, {kind} ($\\lambda$: {model.definition})"
        figure.suptitle(title, fontsize=12)
    return figure


def _spectrum(models: Models, components: list[int] | None, width: float, style: Style) -> NotebookFigure:
    # Alone, it needs no more than the width of a printed page.
    width = min(width, PRINT.width) if style.titles else width
    figure = NotebookFigure(figsize=(width, 0.6 * width), layout="constrained")
    ax = draw_spectra(figure.subplots(), models, components)
    if style.titles:
        (model,) = models.values()
        name = label(world_name(model.metadata, "Laplacian"))
        ax.set_title(f"{name}: smallest eigenvalues (repeated ones joined)")
    return figure


def _curves(models: Models, components: list[int] | None, width: float, style: Style) -> NotebookFigure:
    if components is not None:
        raise ArgumentError("learning curves are of all components together; leave the components out")
    (history,) = (learning_history(model.metadata) for model in models.values())
    panels = [panel for name, panel in curve_panels(history).items() if name != "duals"]
    if not panels:
        raise ArgumentError("this representation was not learned step by step; there are no curves to draw")
    rows = -(-len(panels) // 2)
    figure = NotebookFigure(figsize=(width, rows * 0.3 * width), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, panel in zip(axes, panels, strict=False):
        draw_curves(ax, {text: (history, name) for name, text in panel.lines.items()}, panel.axis, panel.log)
        if len(panel.lines) > 1:
            ax.legend(frameon=False)
        if style.titles:
            ax.set_title(panel.title)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    return figure


def _comparison(models: Models, components: list[int] | None, width: float, style: Style) -> NotebookFigure:
    histories = {name: learning_history(model.metadata) for name, model in models.items()}
    learned = [curve_panels(history) for history in histories.values() if history]
    shared = [name for name in ("similarity", "angle") if learned and all(name in panels for panels in learned)]
    figure = NotebookFigure(figsize=(width, (0.42 if shared else 0.6) * width + 0.25), layout="constrained")
    axes = figure.subplots(1, 2 if shared else 1, squeeze=False)[0]
    draw_spectra(axes[0], models, components)
    if shared:
        panel = CURVE_PANELS[shared[0]]
        column = next(iter(panel.lines))
        draw_curves(axes[1], {name: (rows, column) for name, rows in histories.items()}, panel.axis, panel.log)
    handles, names = axes[0].get_legend_handles_labels()
    # A run has the same colour on both axes, so one legend serves them.
    figure.legend(handles, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False)
    return figure


_FIGURES: dict[str, Callable[[Models, list[int] | None, float, Style], NotebookFigure]] = {
    "eigenvectors": _eigenvectors,
    "spectrum": _spectrum,
    "curves": _curves,
    "comparison": _comparison,
}


def _repeats(model: LaplacianRepresentation) -> list[str]:
    """How often each component's eigenvalue repeats, as text; also where its cluster goes on beyond the last one."""
    texts = [""] * len(model.mu)
    for cluster in group_degenerate(1.0 - model.mu, model.tolerance):
        if len(cluster) > 1:
            texts[cluster.start : cluster.stop] = [f"  ({len(cluster)}-fold)"] * len(cluster)
    return texts
