"""Every world coloured by its second eigenvector as learned by ALLO (paper, Figures 2 and 6)."""

import numpy as np

from lapwing_paper.drawings import FieldPanel, StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.studies.methods import ALLO_DEFAULT, ALLO_PAPER, allo_settings, exact_run, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import TWELVE_WORLDS
from lapwing_paper.tables import ResultTable, number

SECOND = 1


def methods(plan: Plan) -> Methods:
    """One run per world.

    Args:
        plan: gives the size of the study.

    Returns:
        One label with its settings: the paper's preset in the full version, the default one in the quick.
    """
    scale = plan.scale
    if plan.is_full:
        return [(ALLO_PAPER, paper_run(allo_settings(), scale.transitions, scale.steps))]
    return [(ALLO_DEFAULT, exact_run({"steps": scale.steps}, scale.transitions))]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """How good the vectors in the figure are.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world.
    """
    ((method, _),) = methods(plan)
    records = []
    for world in plan.worlds:
        if one := results.first_components(world.label, method):
            cosine, true, learned = (
                number(one.numbers[key][SECOND]) for key in ("cosines", "true_eigenvalues", "eigenvalues")
            )
            records.append(
                {
                    "world": world.label,
                    "layout": world.origin,
                    "states": f"{len(np.asarray(one.outcome.components)):,}",
                    "cosine": cosine,
                    "true eigenvalue": true,
                    "learned eigenvalue": learned,
                }
            )
    return [ResultTable("figure-6", plan.title, records, ("Second component; eigenvalues in successor(0.9).",))]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """One panel per world.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure of maps.
    """
    ((method, _),) = methods(plan)
    panels = []
    for world in plan.worlds:
        if one := results.first_components(world.label, method):
            values = np.asarray(one.outcome.components, dtype=np.float64)[:, SECOND]
            panels.append(FieldPanel(f"{world.label}\n{len(values):,} states", world.world, values))
    description = "Worlds with each cell coloured by the second eigenvector, blue to red through white at zero."
    return [StudyFigure("figure-6", plan.title, tuple(panels), 5, description=description)]


STUDY = Study(
    name="worlds",
    title="The second eigenvector of every world, learned by ALLO",
    paper="Figures 2 and 6",
    worlds=("GridMaze-7", "GridMaze-9", "GridMaze-11", *TWELVE_WORLDS[2:]),
    quick=Scale(seeds=1, steps=1_600, transitions=1_000_000),
    full=Scale(seeds=1, steps=200_000, transitions=3_000_000),
    deviations=(
        "The quick version learns with the default preset, the full one with the paper's.",
        "Where the second eigenvalue repeats (GridRoom-1, GridRoomSym-4, GridMaze-32) the picture shows one vector of "
        "its space, which depends on the seed.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
)
