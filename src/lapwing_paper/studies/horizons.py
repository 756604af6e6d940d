"""How many steps to cosine 0.99 for each training discount, single and mixed, exact and sampled (ours)."""

import numpy as np

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.studies.learning_curves import curves_figure, panel
from lapwing_paper.studies.methods import PLAIN
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number

WANTED = 0.99
DISCOUNTS: dict[str, list[float]] = {
    "0.9": [0.9],
    "0.99": [0.99],
    "0.999": [0.999],
    "mixed": [0.9, 0.99, 0.999],
}
KINDS = ("exact", "sampled")


def methods(plan: Plan) -> Methods:
    """Every discount, exact and sampled.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels ``KIND, DISCOUNT`` and settings, exact ones first.
    """
    steps = plan.scale.steps
    options = {**PLAIN, "steps": steps, "log_every": max(1, steps // 48), "schedule": "constant", "learning_rate": 1e-3}
    return [
        (
            f"{kind}, {label}",
            {
                "preset": "default",
                "transitions": 0 if kind == "exact" else plan.scale.transitions,
                "options": {**options, "batches": kind, "discounts": discounts},
            },
        )
        for kind in KINDS
        for label, discounts in DISCOUNTS.items()
    ]


def steps_to(results: Results, world: str, method: str) -> tuple[float, float]:
    """Steps until the mean curve first reaches the wanted cosine (NaN if never), and its last value.

    Args:
        results: the finished runs.
        world: label of the world.
        method: label of the method.

    Returns:
        The step, and the mean cosine over seeds after the last one; both NaN where no run has finished.
    """
    steps, values = results.curves("cosine", world, method)
    if not len(steps):
        return np.nan, np.nan
    mean = values.mean(axis=0)
    reached = np.flatnonzero(mean >= WANTED)
    return (float(steps[reached[0]]) if len(reached) else np.nan), float(mean[-1])


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Steps to the wanted cosine; where it is not reached, the last value.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table: a row per method, a column per world.
    """

    def cell(world: str, method: str) -> str:
        steps, last = steps_to(results, world, method)
        reached = f"never ({number(last, 3)})" if np.isnan(steps) else f"{steps:,.0f} ({number(last)})"
        return "–" if np.isnan(last) else reached

    records = [
        {"discount": method, **{world: cell(world, method) for world in plan.labels}} for method, _ in methods(plan)
    ]
    notes = (
        f"Steps until the subspace cosine first reaches {WANTED:g}, in brackets its value after {plan.scale.steps:,} "
        f"steps; {plan.scale.seeds} seed(s).",
        plan.layouts_note,
    )
    return [ResultTable("horizons", plan.title, records, notes)]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Similarity over training, exact above sampled.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure: a column per world, a line per discount.
    """
    labels = tuple(DISCOUNTS)
    panels = [
        panel(results, "cosine", world, [f"{kind}, {label}" for label in labels], f"{world}, {kind}", labels=labels)
        for kind in KINDS
        for world in plan.labels
    ]
    description = "Cosine similarity over training for each discount; exact expectations above, sampled pairs below."
    return curves_figure(plan, "horizons", panels, len(plan.worlds), "subspace cosine", description)


STUDY = Study(
    name="horizons",
    title="Steps to cosine 0.99 against the training discount",
    paper="",
    worlds=("GridMaze-9", "GridRoom-16", "GridRoom-64"),
    quick=Scale(seeds=1, steps=1_920, transitions=1_000_000),
    full=Scale(seeds=10, steps=20_000, transitions=3_000_000),
    deviations=(
        "Plain ALLO on Fourier features, no oversampling, no refinement, constant learning rate 1e-3. Exact: the "
        "operator itself. Sampled: pairs inside episodes of 50, which cut long lags, so that discounts beyond 0.98 "
        "hardly differ.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
)
