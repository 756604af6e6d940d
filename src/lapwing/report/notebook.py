"""What a notebook shows of a representation, and the figures of its ``plot`` method."""

import base64
import operator
from collections.abc import Sequence
from html import escape
from typing import cast

from matplotlib.figure import Figure

from lapwing.checks import shown
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.certificate import VERDICT_COLOURS
from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments import world_from_description
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean
from lapwing.plots.figures import What, representation_figure
from lapwing.plots.observation_arrays import Observations
from lapwing.plots.observation_maps import observations_figure
from lapwing.plots.time_series import trajectories_figure
from lapwing.report.page import environment
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import world_name

SHOWN_ROWS = 12
SHOWN_PICTURES = 6
SCREEN_WIDTH = 9.0
DRAWABLE = ("eigenvectors", "spectrum", "curves", "trajectories")


def plot_model(
    model: LaplacianRepresentation,
    components: Sequence[int] | None = None,
    what: str = "eigenvectors",
    data: Trajectories | None = None,
) -> Figure:
    """Draw a representation for a screen; see :meth:`LaplacianRepresentation.plot`.

    Args:
        model: the representation.
        components: which components, counted from 1; all if None, of eigenvectors the first few.
        what: ``eigenvectors``, ``spectrum``, ``curves`` or ``trajectories``.
        data: experience, for trajectories, and for eigenvectors in an environment that has no map.

    Returns:
        A figure that a notebook shows.
    """
    if what not in DRAWABLE:
        raise UnknownNameError(f"cannot plot {shown(what)}; {did_you_mean(str(what), DRAWABLE)}")
    try:
        numbers = None if components is None else [operator.index(number) for number in components]
    except TypeError as error:
        raise ArgumentError(f"components are numbers from 1, e.g. [1, 2, 3], got {components!r}") from error
    if data is not None and not isinstance(data, Trajectories):
        raise ArgumentError(f"data are Trajectories, as collect and from_arrays return, got {type(data).__name__}")
    if what == "trajectories":
        if data is None:
            raise ArgumentError('components over time need experience: model.plot(what="trajectories", data=data)')
        return trajectories_figure(model, data, numbers, width=SCREEN_WIDTH)
    if what == "eigenvectors" and not _has_map(model):
        observations = _observations(model, data)
        if observations is None:
            raise ArgumentError(
                "this representation has no map to be drawn on; draw it at observations: model.plot(data=data)"
            )
        return observations_figure(model, observations, numbers, width=SCREEN_WIDTH)
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
    name, method = world_name(model.metadata, "unnamed world"), model.metadata.get("method")
    facts = [f"{model.dim} components", "exact dynamics" if model.exact else "from data", str(model.definition)]
    if method == "learn":
        facts.append(f"learned in {int(model.metadata.get('steps', 0)):,} steps")
    elif method is not None:
        facts.append("solved" if method == "solve" else f"by {method}")
    pictures = min(model.dim, SHOWN_PICTURES)
    page = environment().get_template("notebook.html")
    png = base64.b64encode(_picture(model, pictures)).decode()
    seen = f"the first {pictures} eigenvectors on {name}, red above zero and blue below"
    if not _has_map(model):
        seen = f"eigenvectors 2 to {pictures} of {name} at the states of its table"
    return page.render(
        model=model, name=name, facts=facts, rows=_rows(model), colours=VERDICT_COLOURS, seen=seen, png=png
    )


def _rows(model: LaplacianRepresentation) -> list[tuple[str, str]]:
    """The first eigenvalues with their error bars, and the verdicts."""
    try:
        verdicts: Sequence[str] = model.certificate().verdicts
    except LapwingError:  # it has no residuals to certify
        verdicts = ["not certified"] * model.dim
    bars = [""] * model.dim
    if model.mu_errors is not None:
        bars = [f" ± {bar:.1g}" for bar in model.error_bars_in(model.definition)]
    values = [f"{value:.5g}{bar}" for value, bar in zip(model.eigenvalues, bars, strict=True)]
    return list(zip(values, verdicts, strict=True))[:SHOWN_ROWS]


def _picture(model: LaplacianRepresentation, count: int) -> bytes:
    """The first components as a PNG; nothing of a network where the world has no map."""
    if _has_map(model):
        name = world_name(model.metadata, "")
        return representation_figure({name: model}, "eigenvectors", range(1, count + 1))._repr_png_()
    observations = _observations(model, None)
    if observations is None or count < 2:
        return b""
    return observations_figure(model, observations, range(2, count + 1))._repr_png_()


def _has_map(model: LaplacianRepresentation) -> bool:
    world = world_from_description(model.metadata.get("world"))
    return world is not None and world.field_points(2) is not None


def _observations(model: LaplacianRepresentation, data: Trajectories | None) -> Observations | None:
    """Where to draw a representation that has no map: at the data, else at the states that its table holds."""
    if data is not None:
        return data.observations
    return model.encoder.observations if isinstance(model.encoder, LookupEncoder) else None
