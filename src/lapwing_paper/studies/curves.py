"""Learning curves over seeds, and the numbers at their ends: what the sweeps share."""

from collections.abc import Sequence

import numpy as np

from lapwing_paper.engine.artefact import Plan
from lapwing_paper.engine.pictures import Curves, Line
from lapwing_paper.engine.runs import Results
from lapwing_paper.engine.tables import Cell, Table, mean_std_cell
from lapwing_paper.statistics import confidence_band, mean_and_std

# Of two seeds a 95 % interval is twelve standard errors wide and says nothing.
FEWEST_FOR_BANDS = 5


def bands_note(plan: Plan) -> str:
    """What the bands of a picture are."""
    return "bands are 95 %" if plan.scale.seeds >= FEWEST_FOR_BANDS else "bands are the range of the seeds"


def band(
    results: Results, name: str, world: str, method: str, label: str | None = None, highlighted: bool = False
) -> Line:
    """The mean over seeds of a column of the histories, with its 95 % band, or the range of a few seeds."""
    steps, values = results.curves(name, world, method)
    if not len(steps):
        return Line(label or method, np.zeros(0), np.zeros(0))
    known = np.isfinite(values).all(axis=0)
    steps, values = steps[known], values[:, known]
    mean, low, high = confidence_band(values)
    if len(values) < FEWEST_FOR_BANDS:
        low, high = values.min(axis=0), values.max(axis=0)
    return Line(label or method, steps, mean, low, high, highlighted)


def panel(
    results: Results,
    name: str,
    world: str,
    methods: Sequence[str],
    title: str | None = None,
    best: str | None = None,
    labels: Sequence[str] | None = None,
) -> Curves:
    """One world's curves, one line per method, under its own name or the label given."""
    lines = [
        band(results, name, world, method, label, highlighted=method == best)
        for method, label in zip(methods, labels or methods, strict=True)
    ]
    return Curves(title or world, tuple(line for line in lines if len(line.x)))


def best_method(results: Results, name: str, world: str, methods: Sequence[str]) -> str | None:
    """The method whose final number is largest on average."""
    finals = {method: results.values(name, world, method) for method in methods}
    means = {method: float(np.mean(values)) for method, values in finals.items() if len(values)}
    return max(means, key=lambda method: means[method]) if means else None


def final_table(
    plan: Plan, results: Results, name: str, methods: Sequence[str], key: str, title: str, notes: tuple[str, ...]
) -> Table:
    """Final numbers, mean (standard deviation), methods down and worlds across; the best of each world is bold."""
    worlds = [place.label for place in plan.places]
    best = {world: best_method(results, name, world, methods) for world in worlds}
    rows: list[tuple[Cell | str, ...]] = []
    for method in methods:
        cells = [_final_cell(results, name, world, method, best[world] == method) for world in worlds]
        rows.append((method, *cells))
    return Table(key, title, ("method", *worlds), tuple(rows), (*notes, plan.layouts_note))


def _final_cell(results: Results, name: str, world: str, method: str, bold: bool) -> Cell | str:
    """Mean (standard deviation) of the runs that have a number; those that collapsed have none."""
    values = results.values(name, world, method)
    lost = len(results.select(world, method)) - len(values)
    if lost and not len(values):
        return "collapsed"
    found = mean_and_std(values)
    cell = mean_std_cell(found.mean, found.std, bold=bold)
    return Cell(f"{cell.text}, {lost} collapsed", cell.bold) if lost else cell
