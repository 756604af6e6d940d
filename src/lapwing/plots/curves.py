"""Learning curves: how far from converged, how similar to the truth where known, and the terms of the loss."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lapwing.errors import LapwingError
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.records import learning_history

COLOURS = {"angle": "#2b4c7e", "cosine": "#d9a441", "loss": "#2b4c7e", "error": "#b3446c", "barrier": "#4f7f5b"}


def curves_figure(model: LaplacianRepresentation) -> Figure:
    """Three panels over training steps: similarity and angle, loss terms, constraint error and barrier."""
    history = learning_history(model.metadata)
    if not history:
        raise LapwingError("this representation was not learned step by step; there are no curves to draw")
    figure = Figure(figsize=(10.5, 3.2), layout="constrained")
    quality, loss, constraints = figure.subplots(1, 3)
    draw_lines(quality, history, ("angle",), log=True)
    quality.set_title("largest angle, judged without a truth", fontsize=10)
    quality.set_ylabel("sine of the largest angle", color=COLOURS["angle"])
    if any("cosine" in row for row in history):
        other = quality.twinx()
        draw_lines(other, history, ("cosine",))
        other.set_ylim(top=1.001)
        other.set_ylabel("cosine to the truth", color=COLOURS["cosine"])
        quality.set_title("angle (log) and cosine to the truth", fontsize=10)
    draw_lines(loss, history, ("loss", "graph", "dual", "penalty"), legend=True)
    loss.set_title("loss and its terms", fontsize=10)
    draw_lines(constraints, history, ("error", "barrier"), log=True, legend=True)
    constraints.set_title("largest constraint error, barrier", fontsize=10)
    return figure


def draw_lines(
    ax: Axes, history: Sequence[dict[str, Any]], names: Sequence[str], log: bool = False, legend: bool = False
) -> Axes:
    """Columns of a history over its steps."""
    steps = [row["step"] for row in history]
    for name in names:
        if any(name in row for row in history):
            # A network that had collapsed for a while has no similarity then.
            values = [row.get(name, math.nan) for row in history]
            ax.plot(steps, values, ".-", label=name, color=COLOURS.get(name), lw=1.5)
    if log:
        ax.set_yscale("log")
    if legend:
        ax.legend(fontsize=8, frameon=False)
    ax.set_xlabel("step")
    ax.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    ax.grid(alpha=0.3)
    return ax
