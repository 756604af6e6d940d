"""Charts of numbers as plotly figures: spectrum, learning curves, visits, episode lengths. The page adds the theme."""

import math
import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]

from lapwing.report.sources import Run
from lapwing.report.spectrum import Component

# Okabe and Ito's colours, told apart by the colour-blind; lightened a little to be read on dark and on white.
BLUE, ORANGE, GREEN, PINK, SKY, AMBER = "#1f85c9", "#d9632b", "#16a085", "#c777a5", "#5db6e6", "#d99a1c"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")

# Columns of a history, by panel: title of the axis, whether it is logarithmic, and what is drawn.
PANELS: dict[str, tuple[str, bool, tuple[tuple[str, str], ...]]] = {
    "similarity": (
        "cosine",
        False,
        (("cosine", "subspace similarity"), ("paper_cosine", "the paper's cosine")),
    ),
    "angle": ("sine", True, (("angle", "largest angle, judged without a truth"),)),
    "loss": ("loss", False, (("loss", "loss"), ("graph", "graph term"), ("dual", "dual term"), ("penalty", "penalty"))),
    "constraints": ("size", True, (("error", "largest constraint error"), ("barrier", "barrier"))),
}
DUAL_COLUMN = re.compile(r"(?:dual|reading)_(\d+)")


def spectrum_figure(rows: Sequence[Component], definition: str, method: str) -> dict[str, Any]:
    """Eigenvalues by component: as learned (two standard errors), exact, by counting, and as the duals read them."""
    numbers = [row.number for row in rows]
    errors = [row.error for row in rows]
    known = {"type": "data", "array": errors, "thickness": 1.5, "width": 4} if any(errors) else None
    bars = _points(numbers, [row.eigenvalue for row in rows], method, BLUE, "circle", 9, error_y=known)
    figure = go.Figure()
    # Beside the learned ones, not behind them.
    for column, name, colour, symbol, size, shift in (
        ("exact", "exact", ORANGE, "line-ew", 26, 0.0),
        ("counting", "counting the same data", GREEN, "x-thin", 10, -0.16),
        ("dual", "dual reading", PINK, "triangle-up-open", 10, 0.16),
    ):
        values = [getattr(row, column) for row in rows]
        if any(value is not None for value in values):
            figure.add_trace(_points([number + shift for number in numbers], values, name, colour, symbol, size))
    figure.add_trace(bars)
    return _plain(figure, "component", f"eigenvalue ({definition})", whole=True)


def spectra_figure(runs: Sequence[tuple[str, Sequence[Component]]], definition: str) -> dict[str, Any]:
    """Several spectra side by side, each run a little to the right of the one before."""
    figure = go.Figure()
    spread = 0.5 / max(len(runs), 1)
    for place, (label, rows) in enumerate(runs):
        shift = (place - (len(runs) - 1) / 2) * spread
        errors = [row.error for row in rows]
        figure.add_trace(
            _points(
                [row.number + shift for row in rows],
                [row.eigenvalue for row in rows],
                label,
                CYCLE[place % len(CYCLE)],
                SYMBOLS[place % len(SYMBOLS)],
                8,
                error_y={"type": "data", "array": errors, "thickness": 1.5, "width": 3} if any(errors) else None,
            )
        )
    return _plain(figure, "component", f"eigenvalue ({definition})", whole=True)


def curve_figures(run: Run) -> dict[str, dict[str, Any]]:
    """One figure per panel that the history has columns for."""
    figures = {}
    for panel, (unit, log, columns) in PANELS.items():
        lines = [(title, run.history, name) for name, title in columns if _has(run.history, name)]
        if lines:
            figures[panel] = _lines(lines, unit, log)
    duals = sorted({name for row in run.history for name in row if DUAL_COLUMN.fullmatch(name)}, key=_dual_number)
    if duals:
        figures["duals"] = _lines([(f"dual {_dual_number(name)}", run.history, name) for name in duals], "dual", False)
    return figures


def compared_curves(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """The first column of each panel, one line per run."""
    figures = {}
    for panel, (unit, log, columns) in PANELS.items():
        name = columns[0][0]
        lines = [(run.label, run.history, name) for run in runs if _has(run.history, name)]
        if lines:
            figures[panel] = _lines(lines, unit, log)
    return figures


def lengths_figure(record: dict[str, Any]) -> dict[str, Any] | None:
    """How many episodes were how long, from ``episode_lengths`` of an audit; none where all were equally long."""
    counts = record.get("counts")
    if not counts or len(counts) == 1:
        return None
    if record.get("lengths") is not None:
        places, widths = [str(length) for length in record["lengths"]], None
    else:
        edges = record["edges"]
        places = [(low + high) / 2 for low, high in pairwise(edges)]
        widths = [high - low for low, high in pairwise(edges)]
    figure = go.Figure(go.Bar(x=places, y=counts, width=widths, marker={"color": BLUE}, name="episodes"))
    found = _plain(figure, "transitions in an episode", "episodes", legend=False)
    if widths is None:
        found["layout"]["xaxis"]["type"] = "category"
    return found


def visits_figure(visits: Sequence[int]) -> dict[str, Any]:
    """How often each row of a table was seen."""
    figure = go.Figure(go.Bar(x=list(range(len(visits))), y=list(visits), marker={"color": BLUE}, name="visits"))
    return _plain(figure, "row of the table", "visits", legend=False)


def _points(x: Sequence[float], y: Sequence[Any], name: str, colour: str, symbol: str, size: int, **more: Any) -> Any:
    line = {"color": colour, "width": 2.5} if "thin" in symbol or "line" in symbol else {"color": colour, "width": 1}
    marker = {"color": colour, "symbol": symbol, "size": size, "line": line}
    hover = "component %{x:.0f}: %{y:.5g}"
    return go.Scatter(
        x=list(x), y=list(y), name=escape(name), mode="markers", marker=marker, hovertemplate=hover, **more
    )


def _lines(lines: Sequence[tuple[str, Sequence[dict[str, Any]], str]], unit: str, log: bool) -> dict[str, Any]:
    figure = go.Figure()
    for place, (title, history, name) in enumerate(lines):
        steps, values = ([_finite(row.get(column)) for row in history] for column in ("step", name))
        colour, symbol = CYCLE[place % len(CYCLE)], SYMBOLS[place % len(SYMBOLS)]
        dash = DASHES[place % len(DASHES)]
        figure.add_trace(
            go.Scatter(
                x=steps,
                y=values,
                name=escape(title),
                mode="lines+markers",
                line={"color": colour, "width": 2, "dash": dash},
                marker={"symbol": symbol, "size": 5},
                hovertemplate="step %{x}: %{y:.4g}",
            )
        )
    return _plain(figure, "step", unit, log=log)


def _plain(
    figure: Any, x_title: str, y_title: str, *, log: bool = False, legend: bool = True, whole: bool = False
) -> dict[str, Any]:
    figure.update_layout(
        margin={"l": 62, "r": 12, "t": 10, "b": 48},
        showlegend=legend,
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis={"title": {"text": escape(x_title)}} | ({"dtick": 1} if whole and len(figure.data[-1].x) <= 20 else {}),
        yaxis={"title": {"text": escape(y_title)}, "type": "log" if log else "linear"},
        hovermode="closest",
    )
    found: dict[str, Any] = figure.to_plotly_json()
    found["layout"].pop("template", None)
    return {"data": found["data"], "layout": found["layout"]}


def _has(history: Sequence[dict[str, Any]], name: str) -> bool:
    return any(_finite(row.get(name)) is not None for row in history)


def _dual_number(name: str) -> int:
    match = DUAL_COLUMN.fullmatch(name)
    return int(match[1]) if match else 0


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
