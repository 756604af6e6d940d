"""Fifty components in ten worlds, beside the best published (ours)."""

import numpy as np

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec, no_pictures
from lapwing_paper.engine.places import TWELVE_WORLDS
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Cell, Table, mean_std_cell, number
from lapwing_paper.published import BEST_AT_FIFTY
from lapwing_paper.statistics import mean_and_std
from lapwing_paper.studies.methods import exact_run, over_places

FIFTY = 50
FROM_OPERATOR, FROM_DATA = "from the exact operator", "from data"

SPEC = Spec(
    name="many-components",
    title="Fifty components in ten worlds",
    paper="",
    worlds=tuple(world for world in TWELVE_WORLDS if world in BEST_AT_FIFTY),
    quick=Scale(seeds=1, steps=3_000, transitions=3_000_000),
    full=Scale(seeds=10, steps=4_000, transitions=3_000_000),
    deviations=(
        "The best published numbers (Table 2 of the OMM paper) were learned from samples; the fair column beside them "
        "is the one from data, with the paper's metric.",
        "The quick version learns from data alone, the full one from the exact operator too.",
    ),
)


def runs(plan: Plan) -> list[Run]:
    """The default preset for many components, from data, and in the full version from the operator."""
    options = {"dim": FIFTY, "steps": plan.scale.steps, "stop_when_converged": False}
    from_data = [(FROM_DATA, exact_run(options, plan.scale.transitions))]
    return over_places(plan, [(FROM_OPERATOR, exact_run(options)), *from_data] if plan.is_full else from_data)


def table(plan: Plan, results: Results) -> list[Table]:
    """Similarities and eigenvalue errors beside the best published."""
    rows: list[tuple[Cell | str, ...]] = []
    for place in plan.places:
        cells: list[Cell | str] = []
        for method in (FROM_OPERATOR, FROM_DATA):
            for name in ("subspace_cosine", "cosine"):
                found = mean_and_std(results.values(name, place.label, method))
                cells.append(mean_std_cell(found.mean, found.std))
        counted = results.values("counting_subspace_cosine", place.label, FROM_DATA)
        seconds = results.values("seconds", place.label, FROM_DATA)
        best = BEST_AT_FIFTY.get(place.paper_name) if place.is_the_papers else None
        means = [
            number(float(np.mean(values)) if len(values) else None, digits)
            for values, digits in ((counted, 4), (seconds, 0))
        ]
        rows.append((place.label, *cells, means[0], number(best, 3), means[1]))
    columns = (
        "Env",
        "exact operator, eigenspaces",
        "exact operator, the paper's metric",
        "data, eigenspaces",
        "data, the paper's metric",
        "counting, eigenspaces",
        "best published",
        "seconds",
    )
    notes = (
        f"{FIFTY} components, default preset with {plan.scale.steps:,} steps, {plan.scale.transitions:,} transitions, "
        f"{plan.scale.seeds} seed(s). Clusters within 1e-6 from the operator, 1 % from data. Seconds of one run from "
        "data with one thread, beside whatever else the machine did.",
        plan.layouts_note,
    )
    return [Table("many-components", plan.title, columns, tuple(rows), notes)]


ARTEFACT = Artefact(SPEC, runs, table, no_pictures)
