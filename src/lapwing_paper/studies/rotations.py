"""Second to seventh eigenvector of a large world by ALLO and by GGDO, local extrema marked (paper, Figure 7)."""

import numpy as np

from lapwing.environments import Layout
from lapwing.errors import LapwingError
from lapwing.solving import solve
from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Field, Picture
from lapwing_paper.engine.places import Place
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table, number
from lapwing_paper.extrema import Extrema, local_extrema
from lapwing_paper.studies.methods import allo_settings, exact_run, ggdo_settings, over_places, paper_run

ALLO, GGDO = "ALLO", "GGDO"
COMPONENTS = range(1, 7)

# Corners of rooms make slight bumps in any smooth function; these do not end an option.
PROMINENCE = 0.05

SPEC = Spec(
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
)


def runs(plan: Plan) -> list[Run]:
    """Both objectives, everything else equal."""
    scale = plan.scale
    objectives = ((ALLO, allo_settings()), (GGDO, ggdo_settings()))
    if plan.is_full:
        return over_places(plan, [(name, paper_run(own, scale.transitions, scale.steps)) for name, own in objectives])
    plain = {"steps": scale.steps, "refine": "none", "stop_when_converged": False, "spare": 0, "dual_rate": 0.01}
    return over_places(plan, [(name, exact_run({**own, **plain}, scale.transitions)) for name, own in objectives])


def table(plan: Plan, results: Results) -> list[Table]:
    """How many local extrema each component has, and how true it is."""
    rows = []
    for place in plan.places:
        truth = solve(place.world, max(COMPONENTS) + 1).transform(np.asarray(place.world.table()))
        for method in ("exact", ALLO, GGDO):
            found = None if method == "exact" else results.with_array("components", place.label, method)[:1]
            if found == []:
                continue
            values = truth if found is None else found[0].outcome.arrays["components"]
            extrema = [_extrema(place, np.asarray(values)[:, i]) for i in COMPONENTS]
            counts = [one.count for one in extrema]
            cosine = 1.0 if found is None else float(found[0].numbers["cosine"])
            rows.append((place.label, method, *(str(count) for count in counts), str(sum(counts)), number(cosine, 4)))
    columns = ("world", "method", *(f"u{i + 1}" for i in COMPONENTS), "in all", "cosine (all 11)")
    words = f"Local minima and maxima of components 2 to 7 that stand out by at least {PROMINENCE:.0%} of their range."
    notes = (words, plan.layouts_note)
    return [Table("figure-7", plan.title, columns, tuple(rows), notes)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 7: ALLO above GGDO."""
    panels = []
    for place in plan.places:
        for method in (ALLO, GGDO):
            for one in results.with_array("components", place.label, method)[:1]:
                for i in COMPONENTS:
                    values = np.asarray(one.outcome.arrays["components"][:, i], dtype=np.float64)
                    found = _extrema(place, values)
                    title = f"{method} $u_{{{i + 1}}}$: {found.count} extrema"
                    panels.append(Field(title, place.world, values, tuple(found.maxima), tuple(found.minima)))
    words = "Components 2 to 7 as colour on the world, local minima and maxima boxed in green; ALLO above GGDO."
    return [Picture("figure-7", plan.title, tuple(panels), len(COMPONENTS), description=words)]


def _extrema(place: Place, values: np.ndarray) -> Extrema:
    return local_extrema(_layout(place), np.asarray(values, dtype=np.float64), prominence=PROMINENCE)


def _layout(place: Place) -> Layout:
    layout = getattr(place.world, "layout", None)
    if layout is None:
        raise LapwingError(f"{place.label} is not a grid: local extrema are counted among neighbouring cells")
    return layout


ARTEFACT = Artefact(SPEC, runs, table, pictures)
