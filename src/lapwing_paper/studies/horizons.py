"""How many steps to cosine 0.99 for each training discount, single and mixed, exact and sampled (ours)."""

from typing import Any

import numpy as np

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table, number
from lapwing_paper.studies.curves import panel
from lapwing_paper.studies.methods import over_places

WANTED = 0.99
DISCOUNTS: dict[str, list[float]] = {
    "0.9": [0.9],
    "0.99": [0.99],
    "0.999": [0.999],
    "mixed": [0.9, 0.99, 0.999],
}
KINDS = ("exact", "sampled")

SPEC = Spec(
    name="horizons",
    title="Steps to cosine 0.99 against the training discount",
    paper="",
    worlds=("GridMaze-9", "GridRoom-16", "GridRoom-64"),
    quick=Scale(seeds=1, steps=1_920, transitions=1_000_000),
    full=Scale(seeds=10, steps=20_000, transitions=3_000_000),
    deviations=(
        "Plain ALLO on Fourier features, no spare components, no refinement, constant learning rate 1e-3. Exact: the "
        "operator itself. Sampled: pairs inside episodes of 50, which cut long gaps, so that discounts beyond 0.98 "
        "hardly differ.",
    ),
)


def _label(kind: str, discounts: str) -> str:
    return f"{kind}, {discounts}"


def _methods(plan: Plan) -> list[tuple[str, dict[str, Any]]]:
    steps = plan.scale.steps
    plain = {"refine": "none", "spare": 0, "stop_when_converged": False, "schedule": "constant", "learning_rate": 1e-3}
    options = {"steps": steps, "log_every": max(1, steps // 48), **plain}
    found = []
    for kind in KINDS:
        for label, discounts in DISCOUNTS.items():
            transitions = 0 if kind == "exact" else plan.scale.transitions
            own = {**options, "batches": kind, "discounts": discounts}
            found.append((_label(kind, label), {"preset": "default", "transitions": transitions, "options": own}))
    return found


def runs(plan: Plan) -> list[Run]:
    """Every discount, exact and sampled."""
    return over_places(plan, _methods(plan))


def steps_to(results: Results, world: str, method: str) -> tuple[float, float]:
    """Steps until the mean curve first reaches the wanted cosine (NaN if never), and its last value."""
    steps, values = results.curves("cosine", world, method)
    if not len(steps):
        return np.nan, np.nan
    mean = values.mean(axis=0)
    reached = np.flatnonzero(mean >= WANTED)
    return (float(steps[reached[0]]) if len(reached) else np.nan), float(mean[-1])


def table(plan: Plan, results: Results) -> list[Table]:
    """Steps to the wanted cosine; where it is not reached, the last value."""
    rows = []
    for method, _ in _methods(plan):
        cells = []
        for place in plan.places:
            steps, last = steps_to(results, place.label, method)
            reached = f"never ({number(last, 3)})" if np.isnan(steps) else f"{steps:,.0f} ({number(last, 4)})"
            cells.append("–" if np.isnan(last) else reached)
        rows.append((method, *cells))
    notes = (
        f"Steps until the subspace cosine first reaches {WANTED:g}, in brackets its value after {plan.scale.steps:,} "
        f"steps; {plan.scale.seeds} seed(s).",
        plan.layouts_note,
    )
    return [Table("horizons", plan.title, ("discount", *(place.label for place in plan.places)), tuple(rows), notes)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Similarity over training, exact above sampled."""
    panels = tuple(
        panel(
            results,
            "cosine",
            place.label,
            [_label(kind, label) for label in DISCOUNTS],
            f"{place.label}, {kind}",
            labels=tuple(DISCOUNTS),
        )
        for kind in KINDS
        for place in plan.places
    )
    words = "Cosine similarity over training for each discount; exact expectations above, sampled pairs below."
    columns = len(plan.places)
    return [Picture("horizons", plan.title, panels, columns, "gradient steps", "subspace cosine", words, (0.0, 1.02))]


ARTEFACT = Artefact(SPEC, runs, table, pictures)
