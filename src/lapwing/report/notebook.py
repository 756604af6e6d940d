"""What a notebook shows of a representation, and the figures of its ``plot`` method."""

import base64
import operator
from collections.abc import Sequence
from html import escape
from typing import cast

from matplotlib.figure import Figure

from lapwing.checks import shown
from lapwing.diagnostics.certificate import DEGENERATE, NOT_CONVERGED, TOO_FEW_DATA, TRUSTED
from lapwing.environments import world_from_description
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean
from lapwing.plots.figures import What, representation_figure
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

SHOWN_ROWS = 12
SHOWN_PICTURES = 6
SCREEN_WIDTH = 9.0
DRAWABLE = ("eigenvectors", "spectrum", "curves")

# Text and background of each verdict: contrast at least 7 to 1 in any theme, and not red against green.
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
    """Draw a representation for a screen; see :meth:`LaplacianRepresentation.plot`.

    Args:
        model: the representation.
        components: which components, counted from 1; all if None, of eigenvectors the first few.
        what: ``eigenvectors``, ``spectrum`` or ``curves``.

    Returns:
        A figure that a notebook shows.
    """
    if what not in DRAWABLE:
        raise UnknownNameError(f"cannot plot {shown(what)}; {did_you_mean(str(what), DRAWABLE)}")
    try:
        numbers = None if components is None else [operator.index(number) for number in components]
    except TypeError as error:
        raise ArgumentError(f"components are numbers from 1, e.g. [1, 2, 3], got {components!r}") from error
    name = world_name(model.metadata, "this representation")
    return representation_figure({name: model}, cast(What, what), numbers, width=SCREEN_WIDTH)


def model_html(model: LaplacianRepresentation) -> str:
    """A representation as HTML: its problems, its eigenvalues with verdicts, its first components.

    Args:
        model: the representation.

    Returns:
        A self-contained, escaped fragment; plain text where the representation cannot be shown, because a notebook
        cell must not fail because of how its value is displayed.
    """
    try:
        return _html(model)
    except Exception:  # whatever a half-built or damaged representation may raise
        try:
            text = repr(model)
        except Exception:  # the same as above
            text = object.__repr__(model)
        return f"<pre>{escape(text)}</pre>"


def _html(model: LaplacianRepresentation) -> str:
    name = world_name(model.metadata, "unnamed world")
    facts = [f"{model.dim} components", "exact dynamics" if model.exact else "from data", str(model.definition)]
    method = model.metadata.get("method")
    if method == "learn":
        facts.append(f"learned in {int(model.metadata.get('steps', 0)):,} steps")
    elif method is not None:
        facts.append("solved" if method == "solve" else f"by {method}")
    problems = "".join(
        f'<div style="{_chip_style(NOT_CONVERGED if problem.untrusted else TOO_FEW_DATA)};margin-top:4px">'
        f"<b>{escape(problem.name)}</b>: {escape(problem.message)}; {escape(problem.advice)}</div>"
        for problem in model.problems()
    )
    return (
        '<div style="color:inherit;line-height:1.4;max-width:60em">'
        f"<b>Laplacian representation of {escape(name)}</b><br>{escape(', '.join(facts))}{problems}"
        "<div style='display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start;margin-top:6px'>"
        f"{_table(model)}{_image(model, name)}</div></div>"
    )


def _table(model: LaplacianRepresentation) -> str:
    try:
        verdicts: Sequence[str] | None = model.certificate().verdicts
    except LapwingError:  # it has no residuals to certify
        verdicts = None
    bars = [""] * model.dim
    if model.mu_errors is not None:
        bars = [f" &plusmn; {bar:.1g}" for bar in model.error_bars_in(model.definition)]
    lines = [["", f"eigenvalue ({escape(str(model.definition))})", "verdict"]]
    for i in range(min(model.dim, SHOWN_ROWS)):
        verdict = verdicts[i] if verdicts else "not certified"
        chip = f'<span style="{_chip_style(verdict)}">{escape(verdict)}</span>'
        lines.append([str(i + 1), f"{model.eigenvalues[i]:.5g}{bars[i]}", chip])
    tags = ["th"] + ["td"] * (len(lines) - 1)
    rows = (
        "".join(f'<{tag} style="{CELL}">{cell}</{tag}>' for cell in line) for tag, line in zip(tags, lines, strict=True)
    )
    body = "".join(f'<tr style="background:transparent">{row}</tr>' for row in rows)
    more = f"<div>and {model.dim - SHOWN_ROWS} more</div>" if model.dim > SHOWN_ROWS else ""
    return f'<div><table style="border-collapse:collapse;margin:0;color:inherit">{body}</table>{more}</div>'


def _chip_style(verdict: str) -> str:
    ink, background = VERDICT_COLOURS.get(verdict, ("#222222", "#dddddd"))
    return f"color:{ink};background:{background};padding:0 6px;border-radius:6px"


def _image(model: LaplacianRepresentation, name: str) -> str:
    """The first components as an inline PNG; nothing where the world has no picture."""
    world = world_from_description(model.metadata.get("world"))
    if world is None or world.field_points() is None:
        return ""
    count = min(model.dim, SHOWN_PICTURES)
    png = representation_figure({name: model}, "eigenvectors", range(1, count + 1))._repr_png_()
    text = escape(f"the first {count} eigenvectors on {name}, red above zero and blue below", quote=True)
    # On white, because its labels are black in any theme.
    return (
        f'<img alt="{text}" style="background:#fff;border-radius:6px;padding:4px;max-width:100%" '
        f'src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    )
