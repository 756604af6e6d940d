"""Second to seventh eigenvector of a large world by ALLO and by GGDO, local extrema marked (paper, Figure 7)."""

import numpy as np
from numpy.typing import ArrayLike

from lapwing import Layout, solve
from lapwing.errors import ArgumentError
from lapwing_paper.drawings import FieldPanel, StudyFigure
from lapwing_paper.extrema import Extrema, local_extrema
from lapwing_paper.run_store import Results
from lapwing_paper.studies.methods import PLAIN, allo_settings, exact_run, ggdo_settings, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import StudyWorld
from lapwing_paper.tables import ResultTable, number

ALLO, GGDO = "ALLO", "GGDO"
COMPONENTS = range(1, 7)

# Corners of rooms make slight bumps in any smooth function; these do not end an option.
PROMINENCE = 0.05


def methods(plan: Plan) -> Methods:
    """Both objectives, everything else equal.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings of ALLO and GGDO.
    """
    scale = plan.scale
    objectives = ((ALLO, allo_settings()), (GGDO, ggdo_settings()))
    if plan.is_full:
        return [(name, paper_run(own, scale.transitions, scale.steps)) for name, own in objectives]
    plain, rates = {**PLAIN, "steps": scale.steps}, {ALLO: {"dual_rate": 0.01}, GGDO: {}}
    return [(name, exact_run({**own, **plain, **rates[name]}, scale.transitions)) for name, own in objectives]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """How many local extrema each component has, and how similar to the exact one it is.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table: a row for the exact components and for each method in each world.
    """
    records = []
    for world in plan.worlds:
        _layout(world)
        exact = solve(world.world, max(COMPONENTS) + 1).transform(np.asarray(world.world.table()))
        found: list[tuple[str, ArrayLike | None, float]] = [("exact", exact, 1.0)]
        for method in (ALLO, GGDO):
            if one := results.first_components(world.label, method):
                found.append((method, one.outcome.components, float(one.numbers["cosine"])))
        for method, values, cosine in found:
            counts = {f"u{i + 1}": _extrema(world, np.asarray(values)[:, i]).count for i in COMPONENTS}
            records.append(
                {
                    "world": world.label,
                    "method": method,
                    **{head: str(count) for head, count in counts.items()},
                    "in all": str(sum(counts.values())),
                    "cosine (all 11)": number(cosine),
                }
            )
    note = f"Local minima and maxima of components 2 to 7 that stand out by at least {PROMINENCE:.0%} of their range."
    return [ResultTable("figure-7", plan.title, records, (note, plan.layouts_note))]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Components 2 to 7, ALLO above GGDO.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure: a row per world and method, a column per component.
    """
    panels = []
    for world in plan.worlds:
        for method in (ALLO, GGDO):
            if one := results.first_components(world.label, method):
                for i in COMPONENTS:
                    values = np.asarray(one.outcome.components, dtype=np.float64)[:, i]
                    found = _extrema(world, values)
                    title = f"{method} $u_{{{i + 1}}}$: {found.count} extrema"
                    panels.append(FieldPanel(title, world.world, values, tuple(found.maxima), tuple(found.minima)))
    description = "Components 2 to 7 as colour on the world, local minima and maxima boxed in green; ALLO above GGDO."
    return [StudyFigure("figure-7", plan.title, tuple(panels), len(COMPONENTS), description=description)]


def _extrema(world: StudyWorld, values: ArrayLike) -> Extrema:
    return local_extrema(_layout(world), np.asarray(values, dtype=np.float64), prominence=PROMINENCE)


def _layout(world: StudyWorld) -> Layout:
    layout: Layout | None = getattr(world.world, "layout", None)
    if layout is None:
        raise ArgumentError(f"{world.label} is not a grid: local extrema are counted among neighbouring cells")
    return layout


STUDY = Study(
    name="rotations",
    title="Second to seventh eigenvector, ALLO above GGDO, local extrema marked",
    paper="Figure 7",
    worlds=("GridRoom-64",),
    quick=Scale(seeds=1, steps=3_000, transitions=3_000_000),
    full=Scale(seeds=1, steps=200_000, transitions=3_000_000),
    deviations=(
        "The quick version trains both objectives with Fourier features and the exact expectation over the data, "
        "without refinement; the full one with the paper's preset.",
        "Local extrema are computed, not picked by eye: a cell, or a plateau of equal cells, with no neighbour beyond "
        "it, that stands out by at least 5 % of the component's range.",
        "The exact eigenvectors' extrema are counted too, as the measure for both.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
)
