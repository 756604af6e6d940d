"""Notebook manners: what a representation looks like as the value of a cell, and its pictures."""

import base64
import operator
from collections.abc import Sequence
from html import escape
from typing import Any

from matplotlib.figure import Figure

from lapwing.checks import shown
from lapwing.diagnostics.certificate import DEGENERATE, NOT_CONVERGED, TOO_FEW_DATA, TRUSTED, Certificate
from lapwing.environments.descriptions import world_from_description
from lapwing.errors import LapwingError, did_you_mean
from lapwing.plots.papers import TEXT_WIDTH, Picture, paper_figure
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.records import world_name

SHOWN_ROWS = 12
SHOWN_PICTURES = 6
SCREEN_WIDTH = 9.0
DRAWABLE = ("eigenvectors", "spectrum", "curves")

# Text and ground of each verdict, at least 7 to 1 whatever the notebook's theme, and told apart without red and green.
VERDICT_COLOURS = {
    TRUSTED: ("#08306b", "#cfe1f2"),
    DEGENERATE: ("#3f2a56", "#e4d9ee"),
    TOO_FEW_DATA: ("#4a3500", "#ffe5a3"),
    NOT_CONVERGED: ("#5c1a00", "#ffd3c2"),
}

CELL = "padding:1px 10px 1px 0;text-align:right;border:0;background:transparent;color:inherit"


def plot_model(
    model: LaplacianRepresentation, components: Sequence[int] | None = None, what: str = "eigenvectors"
) -> Figure:
    """The figure of :meth:`LaplacianRepresentation.plot`, sized for a screen."""
    if what not in DRAWABLE:
        raise LapwingError(f"cannot plot {shown(what)}; {did_you_mean(str(what), DRAWABLE)}")
    return _picture(model, None if components is None else _whole_numbers(components), what, SCREEN_WIDTH)


def model_html(model: LaplacianRepresentation) -> str:
    """A representation in a notebook: what it is, its eigenvalues with verdicts, its first components.

    Self-contained and escaped. It never raises, for a cell must not fail because of how its value is shown.
    """
    try:
        return _html(model)
    except Exception:  # whatever a half-made or damaged representation may bring
        return f"<pre>{escape(_plain(model))}</pre>"


def _html(model: LaplacianRepresentation) -> str:
    name = world_name(model.metadata, "unnamed world")
    facts = [f"{model.dim} components", "exact dynamics" if model.exact else "from data", str(model.definition)]
    method = model.metadata.get("method")
    if method == "learn":
        facts.append(f"learned in {int(model.metadata.get('steps', 0)):,} steps")
    elif method is not None:
        facts.append("solved" if method == "solve" else f"by {method}")
    head = f"<b>Laplacian representation of {escape(name)}</b><br>{escape(', '.join(facts))}"
    picture = _image(model, name)
    return (
        '<div style="color:inherit;line-height:1.4;max-width:60em">'
        f"{head}{_problems(model)}"
        "<div style='display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start;margin-top:6px'>"
        f"{_table(model)}{picture}</div></div>"
    )


def _problems(model: LaplacianRepresentation) -> str:
    """What speaks against it, before anything else is looked at."""
    lines = []
    for problem in model.problems():
        ink, ground = VERDICT_COLOURS[NOT_CONVERGED if problem.untrusted else TOO_FEW_DATA]
        words = f"<b>{escape(problem.name)}</b>: {escape(problem.words)}; {escape(problem.advice)}"
        style = f"color:{ink};background:{ground};padding:2px 8px;border-radius:6px;margin-top:4px"
        lines.append(f'<div style="{style}">{words}</div>')
    return "".join(lines)


def _table(model: LaplacianRepresentation) -> str:
    certificate = _certificate(model)
    shown = min(model.dim, SHOWN_ROWS)
    bars = None if model.mu_errors is None else model.error_bars_in(model.definition)
    titles = ["", f"eigenvalue ({model.definition})", *([] if certificate is None else ["verdict"])]
    rows = ["".join(f'<th style="{CELL}">{escape(title)}</th>' for title in titles)]
    for number in range(shown):
        value = f"{model.eigenvalues[number]:.5g}" + ("" if bars is None else f" &plusmn; {bars[number]:.1g}")
        cells = [str(number + 1), value, *([] if certificate is None else [_chip(certificate.verdicts[number])])]
        rows.append("".join(f'<td style="{CELL}">{cell}</td>' for cell in cells))
    body = "".join(f'<tr style="background:transparent">{row}</tr>' for row in rows)
    more = f"<div>and {model.dim - shown} more</div>" if model.dim > shown else ""
    return f'<div><table style="border-collapse:collapse;margin:0;color:inherit">{body}</table>{more}</div>'


def _chip(verdict: str) -> str:
    ink, ground = VERDICT_COLOURS.get(verdict, ("#222222", "#dddddd"))
    return f'<span style="color:{ink};background:{ground};padding:0 6px;border-radius:6px">{escape(verdict)}</span>'


def _image(model: LaplacianRepresentation, name: str) -> str:
    """The first components as an inline PNG; nothing where there is no map to draw them on."""
    if world_from_description(model.metadata.get("world")) is None:
        return ""
    shown = min(model.dim, SHOWN_PICTURES)
    png = base64.b64encode(_picture(model, range(1, shown + 1), "eigenvectors", TEXT_WIDTH)._repr_png_()).decode()
    words = escape(f"the first {shown} eigenvectors on {name}, red above zero and blue below", quote=True)
    # A white card: labels are black whatever the theme.
    return (
        f'<img alt="{words}" style="background:#fff;border-radius:6px;padding:4px;max-width:100%" '
        f'src="data:image/png;base64,{png}">'
    )


def _picture(model: LaplacianRepresentation, components: Sequence[int] | None, what: Any, width: float) -> Picture:
    name = world_name(model.metadata, "this representation")
    return paper_figure({name: model}, what, components, width)


def _certificate(model: LaplacianRepresentation) -> Certificate | None:
    try:
        return model.certificate()
    except LapwingError:  # it holds no residuals to be judged by
        return None


def _whole_numbers(components: Sequence[int]) -> list[int]:
    try:
        return [operator.index(number) for number in components]
    except TypeError as error:
        raise LapwingError(f"components are numbers from 1, e.g. [1, 2, 3], got {components!r}") from error


def _plain(model: LaplacianRepresentation) -> str:
    try:
        return repr(model)
    except Exception:  # the same as above
        return object.__repr__(model)
