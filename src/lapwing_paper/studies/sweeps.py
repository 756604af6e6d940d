"""The sweep over barrier coefficients that the paper makes for GGDO and for ALLO."""

from collections.abc import Callable

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.studies.learning_curves import bands_note, best_method, curves_figure, final_table, panel
from lapwing_paper.studies.methods import Settings, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable

# In the units of the authors' code; the smallest first.
BARRIERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
QUICK_BARRIERS = (0.1, 0.5, 2.0, 10.0)

DEVIATIONS = (
    "The paper names neither the three worlds nor the coefficients nor the number of steps: these are those of the "
    "authors' published job script and configuration (50,000 steps).",
    "Coefficients are given as the authors' code counts them, twice ours, because its graph term lacks the half of "
    "the paper's own equations.",
)


def sweep(name: str, title: str, figure: int, deviation: str, settings: Callable[[float], Settings]) -> Study:
    """A study of one method with every coefficient.

    Args:
        name: of the study.
        title: of the study.
        figure: its number in the paper.
        deviation: from the paper, besides those of both sweeps.
        settings: options of a run by coefficient.

    Returns:
        The study.
    """

    def methods(plan: Plan) -> Methods:
        barriers = BARRIERS if plan.is_full else QUICK_BARRIERS
        scale = plan.scale
        return [(f"b = {b:g}", paper_run(settings(b), scale.transitions, scale.steps)) for b in barriers]

    def tables(plan: Plan, results: Results) -> list[ResultTable]:
        notes = (
            f"Paper preset, {plan.scale}: the paper's average cosine similarity at the end, mean (standard deviation); "
            "the best of each world is bold.",
        )
        return final_table(plan, results, "cosine", [label for label, _ in methods(plan)], f"figure-{figure}", notes)

    def figures(plan: Plan, results: Results) -> list[StudyFigure]:
        labels = [label for label, _ in methods(plan)]
        panels = [
            panel(results, "paper_cosine", world, labels, best=best_method(results, "cosine", world, labels))
            for world in plan.labels
        ]
        description = (
            f"Average cosine similarity over training by barrier coefficient, the best one bold; {bands_note(plan)}."
        )
        return curves_figure(plan, f"figure-{figure}", panels, 3, "cosine similarity", description)

    return Study(
        name=name,
        title=title,
        paper=f"Figure {figure}",
        worlds=("GridMaze-19", "GridRoom-16", "GridRoom-1"),
        quick=Scale(seeds=2, steps=3_000, transitions=200_000),
        full=Scale(seeds=60, steps=50_000, transitions=200_000),
        deviations=(*DEVIATIONS, deviation),
        methods=methods,
        tables=tables,
        figures=figures,
    )
