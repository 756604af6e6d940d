"""Fifty components in ten worlds, beside the best published (ours)."""

from functools import partial

from lapwing_paper.published_numbers import BEST_AT_FIFTY
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.studies.methods import exact_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import TWELVE_WORLDS
from lapwing_paper.tables import ResultTable, number, sample_cell

FIFTY = 50
FROM_OPERATOR, FROM_DATA = "from the exact operator", "from data"


def methods(plan: Plan) -> Methods:
    """The default preset for many components, from data, and in the full version from the operator.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings of one or two runs.
    """
    options = {"dim": FIFTY, "steps": plan.scale.steps, "stop_when_converged": False}
    from_data = [(FROM_DATA, exact_run(options, plan.scale.transitions))]
    return [(FROM_OPERATOR, exact_run(options)), *from_data] if plan.is_full else from_data


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Similarities and eigenvalue errors beside the best published.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world.
    """
    records = []
    for world in plan.worlds:
        exact, data = (
            partial(results.values, world=world.label, method=method) for method in (FROM_OPERATOR, FROM_DATA)
        )
        best = BEST_AT_FIFTY.get(world.paper_name) if world.is_the_papers else None
        records.append(
            {
                "Env": world.label,
                "exact operator, eigenspaces": sample_cell(exact("subspace_cosine")),
                "exact operator, the paper's metric": sample_cell(exact("cosine")),
                "data, eigenspaces": sample_cell(data("subspace_cosine")),
                "data, the paper's metric": sample_cell(data("cosine")),
                "counting, eigenspaces": number(mean_and_std(data("counting_subspace_cosine")).mean),
                "best published": number(best, 3),
                "seconds": number(mean_and_std(data("seconds")).mean, 0),
            }
        )
    notes = (
        f"{FIFTY} components, default preset with {plan.scale.steps:,} steps, {plan.scale.transitions:,} transitions, "
        f"{plan.scale.seeds} seed(s). Clusters within 1e-6 from the operator, 1 % from data. Seconds of one run from "
        "data with one thread, beside whatever else the machine did.",
        plan.layouts_note,
    )
    return [ResultTable("many-components", plan.title, records, notes)]


STUDY = Study(
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
    methods=methods,
    tables=tables,
)
