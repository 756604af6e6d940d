"""How much of ALLO's lead is due to how GGDO's penalty was weighted, and what Rayleigh-Ritz adds to either (ours)."""

from lapwing_paper.run_store import Results
from lapwing_paper.studies.learning_curves import final_table
from lapwing_paper.studies.methods import PAPER_GGDO_BARRIER, PLAIN, exact_run, ggdo_barrier
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable

BARRIERS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
QUICK_BARRIERS = (1.0, 10.0)
PAPERS_OWN = ggdo_barrier(PAPER_GGDO_BARRIER)


def methods(plan: Plan) -> Methods:
    """Every method, plain and refined.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings: GGDO with each barrier and ALLO, then the same with Rayleigh-Ritz.
    """
    barriers = {"GGDO as in the paper": PAPERS_OWN}
    barriers |= {f"GGDO, b = {b:g}": b for b in (BARRIERS if plan.is_full else QUICK_BARRIERS)}
    found = [(name, {"objective": "ggdo", "barrier": b, "barrier_rate": 0.0}) for name, b in barriers.items()]
    found.append(("ALLO", {"objective": "allo"}))
    common = {**PLAIN, "steps": plan.scale.steps, "discounts": [0.9]}
    plain = [(name, exact_run({**common, **own})) for name, own in found]
    return plain + [(f"{name} + Ritz", exact_run({**common, **own, "refine": "ritz"})) for name, own in found]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Final similarity by method.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table: a row per method, a column per world.
    """
    notes = (
        f"From the exact operator, {plan.scale.steps:,} steps, {plan.scale.seeds} seed(s), 11 components: subspace "
        "cosine (clusters within 1e-6), the best of each world bold. GGDO as in the paper is coefficient 2 with its "
        f"penalty averaged over pairs: b = {PAPERS_OWN:.3f} in Eq. 4's own units, where every mode with eigenvalue "
        f"above 2b = {2 * PAPERS_OWN:.3f} vanishes.",
    )
    return final_table(plan, results, "subspace_cosine", [name for name, _ in methods(plan)], "fair-ggdo", notes)


STUDY = Study(
    name="fair-ggdo",
    title="GGDO as in the paper, GGDO in proper units, and what Rayleigh-Ritz adds",
    paper="",
    worlds=("GridMaze-7", "GridMaze-9", "GridRoom-16", "GridRoom-64"),
    quick=Scale(seeds=1, steps=2_000, transitions=0),
    full=Scale(seeds=10, steps=10_000, transitions=0),
    deviations=(
        "All methods learn from the exact operator with lags at discount 0.9 and Fourier features, so that they differ "
        "in the objective alone; no oversampling, no early stop.",
    ),
    methods=methods,
    tables=tables,
)
