"""Every world coloured by its second eigenvector as learned by ALLO (paper, Figures 2 and 6)."""

import numpy as np

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Field, Picture
from lapwing_paper.engine.places import TWELVE_WORLDS
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table, number
from lapwing_paper.studies.methods import ALLO_DEFAULT, ALLO_PAPER, allo_settings, exact_run, over_places, paper_run

SECOND = 1

SPEC = Spec(
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
)


def _method(plan: Plan) -> str:
    return ALLO_PAPER if plan.is_full else ALLO_DEFAULT


def runs(plan: Plan) -> list[Run]:
    """One run per world."""
    scale = plan.scale
    if plan.is_full:
        return over_places(plan, [(ALLO_PAPER, paper_run(allo_settings(), scale.transitions, scale.steps))])
    return over_places(plan, [(ALLO_DEFAULT, exact_run({"steps": scale.steps}, scale.transitions))])


def table(plan: Plan, results: Results) -> list[Table]:
    """How good the vectors in the picture are."""
    rows = []
    for place in plan.places:
        for one in results.with_array("components", place.label, _method(plan))[:1]:
            numbers = one.numbers
            states = f"{len(one.outcome.arrays['components']):,}"
            cells = [number(numbers[key][SECOND], 4) for key in ("cosines", "true_eigenvalues", "eigenvalues")]
            rows.append((place.label, place.origin, states, *cells))
    columns = ("world", "layout", "states", "cosine", "true eigenvalue", "learned eigenvalue")
    return [Table("figure-6", plan.title, columns, tuple(rows), ("Second component; eigenvalues in successor(0.9).",))]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 6, of which Figure 2 is a part."""
    panels = []
    for place in plan.places:
        for one in results.with_array("components", place.label, _method(plan))[:1]:
            values = np.asarray(one.outcome.arrays["components"][:, SECOND], dtype=np.float64)
            panels.append(Field(f"{place.label}\n{len(values):,} states", place.world, values))
    words = "Worlds with each cell coloured by the second eigenvector, blue to red through white at zero."
    return [Picture("figure-6", plan.title, tuple(panels), 5, description=words)]


ARTEFACT = Artefact(SPEC, runs, table, pictures)
