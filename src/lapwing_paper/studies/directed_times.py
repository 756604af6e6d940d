"""Hitting times of directed worlds from few left and right eigenvectors (ours)."""

from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number

DIMS = (8, 11, 20)
EXACT, COUNTED = "exact", "counted"

# Computed independently of this package: directed, and distances of the symmetrised walk.
REFERENCE = {
    "WindyRooms": {8: (0.804, 0.460), 11: (0.888, 0.554), 20: (0.925, 0.582)},
    "FourRoom-104": {11: (0.982, 0.923)},
}


def methods(plan: Plan) -> Methods:
    """Exact and counted.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings.
    """
    dims = list(DIMS)
    return [
        (EXACT, {"dims": dims, "transitions": 0}),
        (COUNTED, {"dims": dims, "transitions": plan.scale.transitions}),
    ]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Agreement with true hitting times.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        A table of errors with all components, and one of Spearman correlations with few.
    """

    def value(name: str, world: str, method: str) -> float:
        return mean_and_std(results.values(name, world, method)).mean

    errors, spearman = [], []
    for label in plan.labels:
        found = {name: value(name, label, EXACT) for name in ("full_rank_error", "solve_error", "reversible")}
        reversible = found["reversible"]
        errors.append(
            {
                "world": label,
                "reversible": "–" if reversible != reversible else "yes" if reversible else "no",
                **{
                    head: "–" if found[name] != found[name] else f"{found[name]:.0e}"
                    for head, name in (("all eigenpairs", "full_rank_error"), ("one inverse", "solve_error"))
                },
            }
        )
        for dim in DIMS:
            reference = REFERENCE.get(label, {}).get(dim, (None, None))
            spearman.append(
                {
                    "world": label,
                    "d": str(dim),
                    "directed, reference": number(reference[0], 3),
                    "directed, exact": number(value(f"directed_{dim}", label, EXACT), 3),
                    "directed, counted": number(value(f"directed_{dim}", label, COUNTED), 3),
                    "commute, reference": number(reference[1], 3),
                    "commute, exact": number(value(f"symmetrised_{dim}", label, EXACT), 3),
                    "commute, counted": number(value(f"symmetrised_{dim}", label, COUNTED), 3),
                    "symmetrised, exact": number(value(f"symmetrised_hitting_{dim}", label, EXACT), 3),
                }
            )
    notes = (
        "Spearman correlation with the true hitting time over all ordered pairs. Directed: left and right eigenvectors "
        "of P. Commute: |psi(a) - psi(b)|^2 of the symmetrised walk. Symmetrised: its hitting times psi(b).(psi(b) - "
        "psi(a)).",
        "Reference: computed independently of this package. Counted: mean over seeds.",
        "In WindyRooms the walk is reversible, with weights that triple from row to row: symmetrising loses nothing "
        "there, and commute times fail because they are the same both ways.",
    )
    explained = ("Largest relative error over all pairs against one linear solve per goal.",)
    return [
        ResultTable("hitting-times", plan.title, spearman, notes),
        ResultTable("hitting-time-errors", "Hitting times without truncation", errors, explained),
    ]


STUDY = Study(
    name="hitting-times",
    title="Hitting times of directed worlds from few eigenvectors",
    paper="",
    worlds=("WindyRooms", "OneWayRooms", "PortalRooms", "FourRoom-104"),
    quick=Scale(seeds=1, steps=1, transitions=3_000_000),
    full=Scale(seeds=10, steps=1, transitions=3_000_000),
    deviations=(
        "All worlds are the classic four rooms of 104 states: with wind 1/3 down, with doors that lead round "
        "clockwise, with portals from the outer corners, and as they are.",
        "Counted: transitions counted one way in episodes of 50 from uniform starts, no network. The constant counts "
        "among the d components.",
    ),
    methods=methods,
    tables=tables,
    task="hitting-times",
)
