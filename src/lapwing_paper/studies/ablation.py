"""ALLO with parts taken away, for several rates of barrier growth (paper, Figure 5)."""

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.studies.learning_curves import bands_note, curves_figure, final_table, panel
from lapwing_paper.studies.methods import allo_settings, ggdo_settings, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable

BARRIER = 0.1
RATES = (0.0, 0.001, 0.01, 0.1, 1.0)
QUICK_RATES = (0.0, 0.01, 1.0)

ALLO, NO_DUALS, GGDO, GROWING = "ALLO", "ALLO without duals", "GGDO", "GGDO with growing barrier"

LABELS = (ALLO, NO_DUALS, GROWING, GGDO)


def _rates(plan: Plan) -> tuple[float, ...]:
    return RATES if plan.is_full else QUICK_RATES


def _label(method: str, rate: float) -> str:
    # GGDO keeps its barrier, so it is the same in every panel.
    return method if method == GGDO else f"{method}, rate {rate:g}"


def methods(plan: Plan) -> Methods:
    """Every method at every rate.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings: GGDO, then ALLO, ALLO without duals and GGDO with a growing barrier for each rate.
    """
    found = [(GGDO, ggdo_settings(BARRIER))]
    for rate in _rates(plan):
        found.append((_label(ALLO, rate), allo_settings(BARRIER, rate)))
        found.append((_label(NO_DUALS, rate), allo_settings(BARRIER, rate, duals=False)))
        if rate:
            found.append((_label(GROWING, rate), ggdo_settings(BARRIER, rate)))
    scale = plan.scale
    return [(name, paper_run(options, scale.transitions, scale.steps)) for name, options in found]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Final similarity by method and rate.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table: a row per method, a column per world.
    """
    shown = [label for label, _ in methods(plan) if results.select(method=label)]
    notes = (
        f"Paper preset, b = {BARRIER:g} at the start, {plan.scale}: the paper's cosine similarity at the end, mean "
        "(standard deviation).",
    )
    return final_table(plan, results, "cosine", shown, "figure-5", notes)


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """One panel per rate, and one row per world.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure, the learning curves of all panels.
    """
    panels = []
    for world in plan.labels:
        for rate in _rates(plan):
            # A barrier that grows at rate 0 does not grow.
            lines = [_label(method, rate) for method in (ALLO, NO_DUALS, GROWING if rate else GGDO, GGDO)]
            panels.append(panel(results, "paper_cosine", world, lines, f"{world}, rate {rate:g}", labels=LABELS))
    description = f"Average cosine similarity over training, one panel per rate of barrier growth; {bands_note(plan)}."
    return curves_figure(plan, "figure-5", panels, len(_rates(plan)), "cosine similarity", description)


STUDY = Study(
    name="ablation",
    title="ALLO, without duals, GGDO, and GGDO with a growing barrier",
    paper="Figure 5",
    worlds=("GridMaze-19",),
    quick=Scale(seeds=2, steps=3_000, transitions=200_000),
    full=Scale(seeds=60, steps=50_000, transitions=200_000),
    deviations=(
        "The paper gives neither the rates nor the number of steps: these are those of the authors' published job "
        "script and configuration.",
        "The barrier of GGDO grows with the mean of the squared errors on and below the diagonal, as ALLO's does; the "
        "authors' code takes the mean over all pairs there, so its barrier grows up to twice as fast.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
)
