"""Whole figures: all eigenvectors of a representation, its spectrum, and a sheet of worlds."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from lapwing.environments.box import BoxWorld
from lapwing.environments.descriptions import world_from_description
from lapwing.environments.grid import GridWorld
from lapwing.environments.registry import World
from lapwing.errors import LapwingError
from lapwing.operators.clusters import group_degenerate
from lapwing.plots.fields import WALL, bare, draw_component, draw_layout, label, values_on_world
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.files import replaced_file
from lapwing.storage.records import world_name

MAX_PANELS = 60


def eigenvector_figure(model: LaplacianRepresentation, columns: int = 4) -> Figure:
    """Every component drawn on its world, with its eigenvalue underneath; repeated eigenvalues are marked."""
    world = world_of(model)
    values = values_on_world(model, world)
    shown = min(model.dim, MAX_PANELS)
    columns = min(columns, shown)
    rows = -(-shown // columns)
    height, width = _panel_size(world)
    figure = Figure(figsize=(columns * width, rows * (height + 0.45) + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    labels = _cluster_labels(model)
    for number, ax in enumerate(axes):
        if number >= shown:
            ax.set_visible(False)
            continue
        draw_component(ax, model, world, values[:, number])
        ax.set_title(
            f"$u_{{{number + 1}}}$   $\\lambda$ = {model.eigenvalues[number]:.5g}{labels[number]}", fontsize=10
        )
    kind = "exact" if model.exact else "from data"
    figure.suptitle(
        f"{label(world.name)}: Laplacian eigenvectors, {kind} ($\\lambda$: {model.definition})", fontsize=12
    )
    return figure


def draw_spectrum(ax: Axes, model: LaplacianRepresentation) -> Axes:
    """Eigenvalues by component, two standard errors where they come from data; those that count as one are joined."""
    numbers = np.arange(1, model.dim + 1)
    for cluster in group_degenerate(1.0 - model.mu[: model.dim], model.tolerance):
        if len(cluster) > 1:
            ax.plot(
                numbers[list(cluster)], model.eigenvalues[list(cluster)], lw=6, color="#d9a441", alpha=0.6, zorder=1
            )
    if model.mu_errors is not None:
        bars = 2.0 * model.error_bars_in(model.definition)
        ax.errorbar(numbers, model.eigenvalues, yerr=bars, fmt="none", ecolor="#2b4c7e", capsize=3, zorder=2)
    ax.plot(numbers, model.eigenvalues, "o", color="#2b4c7e", ms=5, zorder=2)
    ax.set_xlabel("component")
    ax.set_ylabel(f"eigenvalue ({model.definition})")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.3)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def spectrum_figure(model: LaplacianRepresentation) -> Figure:
    """The spectrum alone."""
    figure = Figure(figsize=(5.5, 3.6), layout="constrained")
    ax = draw_spectrum(figure.subplots(), model)
    ax.set_title(f"{label(world_name(model.metadata, ''))}: smallest eigenvalues (repeated ones joined)", fontsize=10)
    return figure


def worlds_figure(worlds: Sequence[World], columns: int = 5) -> Figure:
    """A sheet with a small picture of each world and its number of states."""
    rows = -(-len(worlds) // columns)
    figure = Figure(figsize=(columns * 2.1, rows * 2.4), layout="constrained")
    for ax, world in zip(figure.subplots(rows, columns, squeeze=False).ravel(), worlds, strict=False):
        if isinstance(world, GridWorld):
            draw_layout(ax, world.layout)
            ax.set_title(f"{label(world.name)}\n{world.num_states:,} states", fontsize=9)
        else:
            _draw_outline(ax, world)
            ax.set_title(f"{label(world.name)}\ncontinuous", fontsize=9)
    for ax in figure.axes[len(worlds) :]:
        ax.set_visible(False)
    return figure


def world_of(model: LaplacianRepresentation) -> World:
    """The world a representation belongs to, from what its file says."""
    world = world_from_description(model.metadata.get("world"))
    if world is None:
        raise LapwingError("this representation does not belong to a grid or a box, so it cannot be drawn as a map")
    return world


def save_figure(figure: Figure, path: Path, dpi: int = 130) -> Path:
    """Write a picture, whole or not at all; the format is the ending's."""
    kind = path.suffix.lstrip(".").lower() or "png"
    if kind not in ("png", "pdf", "svg"):
        raise LapwingError(f"{path}: pictures are written as .png, .pdf or .svg")
    with replaced_file(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=dpi)
    return path


def _draw_outline(ax: Axes, world: BoxWorld) -> None:
    height, width = world.sides[0], world.sides[1] if world.dimension > 1 else 0.15
    ax.add_patch(Rectangle((-width / 2, -height / 2), width, height, fill=False, lw=3, ec=WALL))
    ax.text(0.0, 0.0, f"{world.dimension} D", ha="center", va="center", fontsize=9)
    ax.set_xlim(-0.55, 0.55)
    ax.set_ylim(-0.55, 0.55)
    ax.set_aspect("equal")
    bare(ax)


def _cluster_labels(model: LaplacianRepresentation) -> list[str]:
    labels = [""] * model.dim
    for cluster in group_degenerate(1.0 - model.mu, model.tolerance):
        if len(cluster) > 1:
            for number in cluster:
                if number < model.dim:
                    labels[number] = f"  ({len(cluster)}-fold)"
    return labels


def _panel_size(world: World) -> tuple[float, float]:
    """Height and width in inches that keep the world's proportions inside about 2.4 inches."""
    if isinstance(world, BoxWorld):
        rows, columns = world.sides[0], world.sides[1] if world.dimension > 1 else world.sides[0]
    else:
        rows, columns = world.layout.shape
    longest = max(rows, columns)
    return 2.4 * rows / longest, max(2.4 * columns / longest, 1.7)
