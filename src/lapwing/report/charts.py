"""Charts as plain plotly data: spectra, learning curves, visits, episode lengths. The page adds the theme."""

from collections.abc import Sequence
from html import escape
from itertools import cycle, pairwise
from typing import Any, NamedTuple

from lapwing.plots.figures import CURVE_PANELS, CurvePanel, History, curve_panels
from lapwing.report.stored_run import StoredRun
from lapwing.storage.schemas import EpisodeLengths, is_number

# Okabe and Ito's colours, lightened a little to be legible on dark and on white.
BLUE, ORANGE, GREEN, PINK, SKY, AMBER = "#1f85c9", "#d9632b", "#16a085", "#c777a5", "#5db6e6", "#d99a1c"
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, AMBER)
GREY = "#8a909c"
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")

# In pixels: a panel of a chart over time, the labels of its time axis, and the frames below.
TIME_PANEL, TIME_AXIS, TIME_STRIP = 92, 48, 100

Chart = dict[str, Any]


class Series(NamedTuple):
    """Eigenvalues of components 1, 2, ... that get one colour and symbol.

    Attributes:
        name: in the legend.
        values: by component; None where there is none.
        errors: lengths of the error bars.
        colour: of points and bars.
        symbol: of the points, by plotly's name.
        size: of the points.
        shift: to the right, so that series stand beside each other.
    """

    name: str
    values: Sequence[float | None]
    errors: Sequence[float | None] = ()
    colour: str = BLUE
    symbol: str = "circle"
    size: int = 9
    shift: float = 0.0


def spectrum_chart(spectra: Sequence[Series], definition: str) -> Chart:
    """Draw eigenvalues by component.

    Args:
        spectra: what is drawn, the last one in front.
        definition: of the eigenvalues.

    Returns:
        A plotly figure as JSON types.
    """
    traces = []
    for one in spectra:
        line = {"color": one.colour, "width": 2.5 if "thin" in one.symbol or "line" in one.symbol else 1}
        trace = {
            "type": "scatter",
            "mode": "markers",
            "x": [number + one.shift for number in range(1, len(one.values) + 1)],
            "y": list(one.values),
            "name": escape(one.name),
            "marker": {"color": one.colour, "symbol": one.symbol, "size": one.size, "line": line},
            "hovertemplate": "component %{x:.0f}: %{y:.5g}",
        }
        if any(one.errors):
            trace["error_y"] = {"type": "data", "array": list(one.errors), "thickness": 1.5, "width": 4}
        traces.append(trace)
    chart = _chart(traces, "component", f"eigenvalue ({definition})")
    if max((len(one.values) for one in spectra), default=0) <= 20:
        chart["layout"]["xaxis"]["dtick"] = 1
    return chart


def compared_spectra(spectra: Sequence[tuple[str, Sequence[float], Sequence[float | None]]]) -> list[Series]:
    """Series that stand beside each other, from the name, eigenvalues and errors of each run.

    Args:
        spectra: for each run its name, (d,) eigenvalues and (d,) errors, None where one is unknown.

    Returns:
        One series per run, shifted sideways so that points do not overlap.
    """
    looks = zip(cycle(CYCLE), cycle(SYMBOLS), strict=False)
    middle, width = (len(spectra) - 1) / 2, 0.5 / max(len(spectra), 1)
    return [
        Series(*spectrum, colour, symbol, 8, (place - middle) * width)
        for place, (spectrum, (colour, symbol)) in enumerate(zip(spectra, looks, strict=False))
    ]


def curve_charts(runs: Sequence[StoredRun]) -> dict[str, Chart]:
    """Draw learning curves: all columns of one run, or the first column of each panel with one line per run.

    Args:
        runs: one or several.

    Returns:
        Plotly figures as JSON types by the name of their panel, each with a ``title``.
    """
    if len(runs) == 1:
        history = runs[0].history
        return {
            key: _lines([(text, history, column) for column, text in panel.lines.items()], panel)
            for key, panel in curve_panels(history).items()
        }
    charts = {}
    for key, panel in CURVE_PANELS.items():
        column = next(iter(panel.lines))
        lines = [(run.label, run.history, column) for run in runs]
        shown = [line for line in lines if any(is_number(row.get(column)) for row in line[1])]
        if shown:
            charts[key] = _lines(shown, panel)
    return charts


def lengths_chart(record: EpisodeLengths) -> Chart | None:
    """Draw how many episodes are how long; None where all are equally long.

    Args:
        record: the histogram in ``audit.json``, by length or by bins.

    Returns:
        Data and layout of a Plotly bar chart, or None.
    """
    if len(record.counts) < 2:
        return None
    trace: dict[str, Any] = {"type": "bar", "y": record.counts, "marker": {"color": BLUE}, "name": "episodes"}
    if record.lengths is not None:
        trace["x"] = [str(length) for length in record.lengths]
    else:
        edges = list(pairwise(record.edges or []))
        trace |= {"x": [(low + high) / 2 for low, high in edges], "width": [high - low for low, high in edges]}
    chart = _chart([trace], "transitions in an episode", "episodes", legend=False)
    if record.lengths is not None:
        chart["layout"]["xaxis"]["type"] = "category"
    return chart


def visits_chart(visits: Sequence[int]) -> Chart:
    """Draw how often each row of a table was visited.

    Args:
        visits: (n,) visits of each row.

    Returns:
        Data and layout of a Plotly bar chart.
    """
    trace = {"type": "bar", "y": list(visits), "marker": {"color": BLUE}, "name": "visits"}
    return _chart([trace], "row of the table", "visits", legend=False)


def time_chart(
    values: Sequence[tuple[str, Sequence[float | None]]],
    offsets: Sequence[int],
    boundaries: Sequence[tuple[float, str]],
    frames: Sequence[tuple[int, str]] = (),
) -> Chart:
    """Draw components over time, one below the other, with frames of images below the time axis.

    Args:
        values: for each component its name and its value at each state.
        offsets: (episodes + 1,) where each episode begins, and the end of the last.
        boundaries: where episodes end, and the line style of each, "-" or "--".
        frames: positions of states, and the picture at each as a PNG in base64.

    Returns:
        A plotly figure as JSON types, with its ``height`` in pixels.
    """
    states, count = offsets[-1], len(values)
    strip = TIME_STRIP if frames else 0
    margin = {"l": 40, "r": 12, "t": 2, "b": 4 if frames else TIME_AXIS}
    height = count * TIME_PANEL + TIME_AXIS + strip + 2
    inside = height - margin["t"] - margin["b"]
    # From the bottom up: frames, the labels of the time axis, panels.
    bottom = (strip + TIME_AXIS - 4) / inside if frames else 0.0
    each = (1.0 - bottom) / count
    layout: dict[str, Any] = {
        "margin": margin,
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": "step"},
            "range": [-0.5, states - 0.5],
            "anchor": _axis("y", count),
            "zeroline": False,
        },
        "annotations": [],
        "shapes": [],
        "images": [],
    }
    traces: list[dict[str, Any]] = []
    marked = [position for position, _ in frames]
    for number, (name, column) in enumerate(values, start=1):
        top = 1.0 - (number - 1) * each
        axis = _axis("yaxis", number)
        layout[axis] = {"domain": [top - 0.95 * each, top - 0.25 * each], "nticks": 4, "zeroline": True}
        label = {"text": name, "x": 0, "xref": "paper", "y": top - 0.25 * each, "yref": "paper", "showarrow": False}
        layout["annotations"].append(label | {"xanchor": "left", "yanchor": "bottom", "font": {"size": 12}})
        for place, style in boundaries:
            ends = {"x0": place, "x1": place, "y0": 0, "y1": 1, "xref": "x", "yref": f"{_axis('y', number)} domain"}
            line = {"color": GREY, "width": 1, "dash": "solid" if style == "-" else "dash"}
            layout["shapes"].append({"type": "line", **ends, "line": line})
        trace = {"type": "scatter", "xaxis": "x", "yaxis": _axis("y", number), "hoverinfo": "skip"}
        pieces = list(pairwise(offsets))
        # A line does not lead from the end of one episode to the beginning of the next.
        places = [place for begin, end in pieces for place in (*range(begin, end), None)][:-1]
        heights = [None if place is None else column[place] for place in places]
        curve = {"x": places, "y": heights, "line": {"color": BLUE, "width": 1.4}, "hoverinfo": "x+y"}
        traces.append({**trace, "mode": "lines", **curve})
        if marked:
            dots = {"x": marked, "y": [column[place] for place in marked], "marker": {"color": ORANGE, "size": 6}}
            traces.append({**trace, "mode": "markers", **dots})
    for position, png in frames:
        corner = {"x": position, "y": strip / inside, "xref": "x", "yref": "paper", "sizing": "contain"}
        size = {"sizex": 0.92 * states / len(frames), "sizey": strip / inside}
        anchors = {"xanchor": "center", "yanchor": "top", "layer": "above"}
        layout["images"].append({"source": f"data:image/png;base64,{png}", **corner, **size, **anchors})
    return {"data": traces, "layout": layout, "height": height}


def _axis(name: str, number: int) -> str:
    """Plotly's name of an axis, of which the first has no number."""
    return name if number == 1 else f"{name}{number}"


def _lines(lines: Sequence[tuple[str, History, str]], panel: CurvePanel) -> Chart:
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [_finite(row.get("step")) for row in history],
            "y": [_finite(row.get(column)) for row in history],
            "name": escape(name),
            "line": {"color": CYCLE[place % len(CYCLE)], "width": 2, "dash": DASHES[place % len(DASHES)]},
            "marker": {"symbol": SYMBOLS[place % len(SYMBOLS)], "size": 5},
            "hovertemplate": "step %{x}: %{y:.4g}",
        }
        for place, (name, history, column) in enumerate(lines)
    ]
    return _chart(traces, "step", panel.axis, log=panel.log) | {"title": panel.title}


def _chart(
    traces: list[dict[str, Any]], x_title: str, y_title: str, *, log: bool = False, legend: bool = True
) -> Chart:
    layout = {
        "margin": {"l": 62, "r": 12, "t": 10, "b": 48},
        "showlegend": legend,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": escape(x_title)}},
        "yaxis": {"title": {"text": escape(y_title)}, "type": "log" if log else "linear"},
        "hovermode": "closest",
    }
    return {"data": traces, "layout": layout}


def _finite(value: Any) -> float | None:
    return float(value) if is_number(value) else None
