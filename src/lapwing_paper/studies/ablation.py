"""ALLO with parts taken away, for several rates of barrier growth (paper, Figure 5)."""

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.studies.curves import bands_note, final_table, panel
from lapwing_paper.studies.methods import allo_settings, ggdo_settings, over_places, paper_run

BARRIER = 0.1
RATES = (0.0, 0.001, 0.01, 0.1, 1.0)
QUICK_RATES = (0.0, 0.01, 1.0)

ALLO, NO_DUALS, GGDO, GROWING = "ALLO", "ALLO without duals", "GGDO", "GGDO with growing barrier"

LABELS = (ALLO, NO_DUALS, GROWING, GGDO)

SPEC = Spec(
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
)


def _rates(plan: Plan) -> tuple[float, ...]:
    return RATES if plan.is_full else QUICK_RATES


def _label(method: str, rate: float) -> str:
    # GGDO keeps its barrier, so it is the same in every panel.
    return method if method == GGDO else f"{method}, rate {rate:g}"


def runs(plan: Plan) -> list[Run]:
    """Every method at every rate."""
    methods = [(GGDO, ggdo_settings(BARRIER))]
    for rate in _rates(plan):
        methods.append((_label(ALLO, rate), allo_settings(BARRIER, rate)))
        methods.append((_label(NO_DUALS, rate), allo_settings(BARRIER, rate, duals=False)))
        if rate:
            methods.append((_label(GROWING, rate), ggdo_settings(BARRIER, rate)))
    scale = plan.scale
    return over_places(plan, [(name, paper_run(options, scale.transitions, scale.steps)) for name, options in methods])


def table(plan: Plan, results: Results) -> list[Table]:
    """Final similarity by method and rate."""
    methods = [GGDO] + [_label(method, rate) for rate in _rates(plan) for method in (ALLO, NO_DUALS, GROWING)]
    methods = [method for method in methods if results.select(method=method)]
    notes = (
        f"Paper preset, b = {BARRIER:g} at the start, {plan.scale.steps:,} steps, {plan.scale.transitions:,} "
        f"transitions, {plan.scale.seeds} seeds: the paper's cosine similarity at the end, mean (standard deviation).",
    )
    return [final_table(plan, results, "cosine", methods, "figure-5", plan.title, notes)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 5: one panel per rate, and one row per world."""
    panels = []
    for place in plan.places:
        for rate in _rates(plan):
            # A barrier that grows at rate 0 is one that does not grow.
            methods = [_label(method, rate) for method in (ALLO, NO_DUALS, GROWING if rate else GGDO, GGDO)]
            title = f"{place.label}, rate {rate:g}"
            panels.append(panel(results, "paper_cosine", place.label, methods, title, labels=LABELS))
    words = f"Average cosine similarity over training, one panel per rate of barrier growth; {bands_note(plan)}."
    columns = len(_rates(plan))
    return [
        Picture(
            "figure-5", plan.title, tuple(panels), columns, "gradient steps", "cosine similarity", words, (0.0, 1.02)
        )
    ]


ARTEFACT = Artefact(SPEC, runs, table, pictures)
