"""Learning curves over seeds, and the numbers at their ends: what several studies share."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lapwing_paper.drawings import Line, LinePanel, StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import confidence_band
from lapwing_paper.study import Plan
from lapwing_paper.tables import ResultTable, sample_cell

# For two seeds a 95 % interval is twelve standard errors wide.
FEWEST_FOR_BANDS = 5
COUNTING = "counting"


def bands_note(plan: Plan) -> str:
    """What the bands of a figure are.

    Args:
        plan: tells how many seeds there are.

    Returns:
        Part of a caption.
    """
    return "bands are 95 %" if plan.scale.seeds >= FEWEST_FOR_BANDS else "bands are the range of the seeds"


def band(results: Results, name: str, world: str, method: str, label: str, highlighted: bool) -> Line:
    """The mean over seeds of a column of the histories, with its 95 % band, or the range of a few seeds.

    Args:
        results: the finished runs.
        name: of the column of histories.
        world: label of the world.
        method: label of the method.
        label: of the line in the legend.
        highlighted: draw it thicker and in front of the others.

    Returns:
        The line over gradient steps, empty where no run has finished.
    """
    steps, values = results.curves(name, world, method)
    if not len(steps):
        return Line(label, np.zeros(0), np.zeros(0))
    known = np.isfinite(values).all(axis=0)
    steps, values = steps[known], values[:, known]
    mean, low, high = confidence_band(values)
    if len(values) < FEWEST_FOR_BANDS:
        low, high = values.min(axis=0), values.max(axis=0)
    return Line(label, steps, mean, low, high, highlighted)


def panel(
    results: Results,
    name: str,
    world: str,
    methods: Sequence[str],
    title: str | None = None,
    best: str | None = None,
    labels: Sequence[str] | None = None,
) -> LinePanel:
    """One world's curves, one line per method, under its own name or the label given.

    Args:
        results: finished runs.
        name: column of the histories.
        world: label of the world.
        methods: labels of the methods.
        title: the world's label by default.
        best: the method to highlight.
        labels: of the lines; those of the methods by default.

    Returns:
        A panel.
    """
    lines = [
        band(results, name, world, method, label, highlighted=method == best)
        for method, label in zip(methods, labels or methods, strict=True)
    ]
    return LinePanel(title or world, tuple(line for line in lines if len(line.x)))


def curves_figure(
    plan: Plan, name: str, panels: Sequence[LinePanel], columns: int, measure: str, description: str
) -> list[StudyFigure]:
    """A figure of similarities over training.

    Args:
        plan: gives the title.
        name: of the figure's files.
        panels: row by row.
        columns: panels beside each other.
        measure: label of the vertical axis, which goes from 0 to 1.
        description: text for readers who do not see the picture.

    Returns:
        The figure, as the only one of a list.
    """
    return [StudyFigure(name, plan.title, tuple(panels), columns, "gradient steps", measure, description, (0.0, 1.02))]


def best_method(results: Results, name: str, world: str, methods: Sequence[str]) -> str | None:
    """The method whose final number is largest on average.

    Args:
        results: finished runs.
        name: of the final number.
        world: label of the world.
        methods: labels of the methods.

    Returns:
        A label; None if no run has finished.
    """
    finals = {method: results.values(name, world, method) for method in methods}
    means = {method: float(np.mean(values)) for method, values in finals.items() if len(values)}
    return max(means, key=lambda method: means[method]) if means else None


def final_table(
    plan: Plan, results: Results, measure: str, methods: Sequence[str], name: str, notes: tuple[str, ...]
) -> list[ResultTable]:
    """Final numbers, mean (standard deviation), methods down and worlds across; the best of each world is bold.

    Where the methods learn from data, counting the same data stands below them.

    Args:
        plan: of the study.
        results: its finished runs.
        measure: name of the final number.
        methods: labels, one per row.
        name: of the table.
        notes: below the table.

    Returns:
        One table.
    """
    best = {world: best_method(results, measure, world, methods) for world in plan.labels}
    records = [
        {"method": method}
        | {world: _final_cell(results, measure, world, method, best[world] == method) for world in plan.labels}
        for method in methods
    ]
    counted = {world: _counted(results, measure, world, methods) for world in plan.labels}
    if any(len(values) for values in counted.values()):
        records.append({"method": COUNTING} | {world: sample_cell(values) for world, values in counted.items()})
        notes = (*notes, "Counting: transitions of the same data counted and diagonalised.")
    return [ResultTable(name, plan.title, records, (*notes, plan.layouts_note))]


def _counted(results: Results, measure: str, world: str, methods: Sequence[str]) -> NDArray[np.float64]:
    """What counting reaches, once for each seed: methods share their data."""
    return max((results.values(f"counting_{measure}", world, method) for method in methods), key=len)


def _final_cell(results: Results, measure: str, world: str, method: str, bold: bool) -> str:
    """Mean (standard deviation) of the runs that have a number; those that collapsed have none."""
    values = results.values(measure, world, method)
    lost = len(results.select(world, method)) - len(values)
    if lost and not len(values):
        return "collapsed"
    cell = sample_cell(values, bold)
    return type(cell)(f"{cell}, {lost} collapsed") if lost else cell
