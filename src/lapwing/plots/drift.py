"""How the components of an online learner change over its stream."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from lapwing.errors import ArgumentError
from lapwing.plots.figures import COLOURS, PRINT, NotebookFigure, Style

if TYPE_CHECKING:
    from lapwing.training.online import OnlineReport

SHOWN_EIGENVALUES = 6
CALM = 10.0
"""Surprise up to which nothing is said to have changed."""


def drift_figure(
    reports: "Sequence[OnlineReport]",
    moments: Sequence[float] = (),
    *,
    width: float | None = None,
    style: Style = PRINT,
) -> Figure:
    """Eigenvalues, turning and surprise at every update of an online learner.

    Args:
        reports: ``learner.reports``.
        moments: states added at times to mark, such as a known change of the world.
        width: in inches; the style's if None.
        style: ``PRINT`` or ``SCREEN``, or one of your own.

    Returns:
        A figure of three panels; :func:`save_figure` writes it.

    Example:
        >>> import lapwing as lw
        >>> learner = lw.OnlineLearner(dim=3, hidden=(32,))
        >>> data = lw.collect("GridMaze-7", 2000)
        >>> for begin in range(0, 2000, 500):
        ...     learner.add(data.states()[begin : begin + 500], data.last_states()[begin : begin + 500])
        ...     _ = learner.update(4)
        >>> len(drift_figure(learner.reports).axes)
        3
    """
    if not reports:
        raise ArgumentError("there are no reports to draw; call learner.update() first")
    seen = np.array([report.seen for report in reports])
    eigenvalues = np.array([report.eigenvalues for report in reports])[:, 1 : 1 + SHOWN_EIGENVALUES]
    turned = np.array([report.turned for report in reports])[:, 1:]
    surprise = np.array([report.surprise for report in reports])
    with matplotlib.rc_context(dict(style.settings)):  # type: ignore[arg-type]
        outside: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        inches = style.width if width is None else width
        figure = NotebookFigure(figsize=(inches, 0.62 * inches), layout="constrained")
        top, middle, bottom = figure.subplots(3, 1, sharex=True)
        for number, column in enumerate(eigenvalues.T):
            top.plot(seen, column, color=COLOURS[number % len(COLOURS)], label=f"{number + 2}")
        top.set_ylabel("eigenvalues")
        if eigenvalues.size:
            top.legend(title="component", **outside)
        if turned.size:
            # The first update has nothing to compare with.
            middle.plot(seen[1:], turned[1:].mean(axis=1), color=COLOURS[0], label="mean")
            middle.plot(seen[1:], turned[1:].max(axis=1), color=COLOURS[1], linewidth=0.8, label="largest")
            middle.legend(**outside)
        middle.set_ylim(0, 1)
        middle.set_ylabel("turned (sine)")
        bottom.plot(seen, surprise, color=COLOURS[2])
        bottom.axhline(CALM, color="0.6", linewidth=0.8, linestyle=":")
        bottom.set_yscale("symlog", linthresh=CALM)
        bottom.set_ylabel("surprise (s.e.)")
        bottom.set_xlabel("states added")
        for axes in (top, middle, bottom):
            for moment in moments:
                axes.axvline(moment, color="0.3", linewidth=0.8, linestyle="--")
    return figure
