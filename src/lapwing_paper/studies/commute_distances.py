"""Distances in the embedding against commute times and path lengths (ours, after Wang et al., 2023)."""

from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number, percent

DIM = 11
EXACT, LEARNED = "exact", "learned"

# Exact values of Spearman's rho with the path length, and of the share of stuck pairs: plain, then psi. Computed
# independently of this package, for d = 11; no published number of this kind is known to us.
REFERENCE = {
    "GridRoom-1": (0.615, 0.924, 0.0112, 0.0),
    "TwoRoom": (0.550, 0.932, 0.0131, 0.0),
    "HardMaze": (0.581, 0.990, 0.0257, 0.0006),
}


def methods(plan: Plan) -> Methods:
    """Exact and learned.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings.
    """
    learned = {"dim": DIM, "transitions": plan.scale.transitions, "steps": plan.scale.steps}
    return [(EXACT, {"dim": DIM, "transitions": 0, "steps": 0}), (LEARNED, learned)]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Agreement with path lengths, and of commute times with linear solves.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        Two tables with a row per world: Spearman correlations, and pairs in which descent of the distance is stuck.
    """

    def value(name: str, world: str, method: str) -> float:
        return mean_and_std(results.values(name, world, method)).mean

    spearman, stuck = [], []
    for world in plan.worlds:
        label = world.label
        reference = REFERENCE.get(world.paper_name) if world.is_the_papers else None
        error = value("identity_error", label, EXACT)
        spearman.append(
            {
                "world": label,
                "states": number(value("states", label, EXACT), 0),
                "identity error": "–" if error != error else f"{error:.0e}",
                "plain, reference": number(reference and reference[0], 3),
                "plain, exact": number(value("plain_spearman", label, EXACT), 3),
                "plain, learned": number(value("plain_spearman", label, LEARNED), 3),
                "psi, reference": number(reference and reference[1], 3),
                "psi, exact": number(value("psi_spearman", label, EXACT), 3),
                "psi, learned": number(value("psi_spearman", label, LEARNED), 3),
                "psi, counted": number(value("counting_psi_spearman", label, LEARNED), 3),
            }
        )
        stuck.append(
            {
                "world": label,
                "plain, reference": percent(float("nan") if reference is None else reference[2]),
                "plain, exact": percent(value("plain_stuck", label, EXACT)),
                "plain, learned": percent(value("plain_stuck", label, LEARNED)),
                "psi, reference": percent(float("nan") if reference is None else reference[3]),
                "psi, exact": percent(value("psi_stuck", label, EXACT)),
                "psi, learned": percent(value("psi_stuck", label, LEARNED)),
            }
        )
    notes = (
        "Identity error: the largest relative difference between commute times from all components and from one linear "
        "solve per goal.",
        f"The other columns: Spearman correlation of the distance between two states, d = {DIM}, with the length of "
        "the shortest path; plain: distances of u; psi: of u / sqrt(lambda). Learned: mean over seeds.",
        "Reference: exact values computed independently of this package.",
        plan.layouts_note,
    )
    explained = ("Share of (state, goal) pairs in which no neighbour of the state is nearer to the goal.",)
    return [
        ResultTable("distances", plan.title, spearman, notes),
        ResultTable("stuck-pairs", "Pairs in which descent of the distance is stuck", stuck, explained),
    ]


STUDY = Study(
    name="distances",
    title="Distances in the embedding against commute times and path lengths",
    paper="",
    worlds=("GridMaze-9", "GridMaze-17", "GridRoomSym-4", "FourRoom-104", "GridRoom-1", "TwoRoom", "HardMaze"),
    quick=Scale(seeds=1, steps=800, transitions=1_000_000),
    full=Scale(seeds=10, steps=1_600, transitions=1_000_000),
    deviations=(
        "No published numbers of this kind are known to us; the reference values come from separate NumPy and SciPy "
        "scripts.",
        "HardMaze and TwoRoom are worlds of Wu, Tucker and Nachum (2019), here with four moves instead of five: a "
        "fifth that stays changes eigenvalues by a common factor and no distance's rank. They are read from --layouts; "
        "without it worlds of our own stand in.",
        "Learned with the default preset; where eigenvalues repeat (GridRoomSym-4, GridRoom-1), components at the cut "
        "are one choice of several, on which plain distances depend.",
    ),
    methods=methods,
    tables=tables,
    task="distances",
)
