"""Goals reached by policies for projected rewards (ours; exact values computed independently for orientation)."""

import numpy as np

from lapwing_paper.run_store import Results
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable, number

DIMS = (2, 4, 6, 8, 11, 16, 20, 30, 50)
EXACT, LEARNED = "exact", "learned"

# Share of pairs that reach the goal, computed independently of this package.
REFERENCE = {
    "FourRoom-104": {
        2: 0.169, 4: 0.269, 6: 0.363, 8: 0.554, 11: 0.548, 16: 0.622, 20: 0.704, 30: 0.855, 50: 1.000
    }
}  # fmt: skip


def methods(plan: Plan) -> Methods:
    """Exact and learned.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings.
    """
    learned = {"dims": list(DIMS), "transitions": plan.scale.transitions, "steps": plan.scale.steps}
    return [(EXACT, {"dims": list(DIMS), "transitions": 0, "steps": 0}), (LEARNED, learned)]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Shares of pairs by number of components.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world and number of components.
    """

    def share(world: str, method: str, name: str, key: str) -> float:
        found = [one.numbers.get(name, {}).get(key) for one in results.select(world, method)]
        known = [value for value in found if value is not None]
        return float(np.mean(known)) if known else float("nan")

    records = []
    for world in plan.labels:
        for dim in DIMS:
            key = str(dim)
            records.append(
                {
                    "world": world,
                    "components": key,
                    "reference": number(REFERENCE.get(world, {}).get(dim), 3),
                    "exact": number(share(world, EXACT, "optimal", key), 4),
                    "learned": number(share(world, LEARNED, "optimal", key), 4),
                    "counted": number(share(world, LEARNED, "counted", key), 4),
                    "successor features, exact": number(share(world, EXACT, "successor", key), 4),
                    "loss / bound": number(share(world, EXACT, "optimal", f"bound {dim}"), 3),
                }
            )
    notes = (
        "Share of all pairs of a start and another state as the goal in which the policy reaches the goal within 200 "
        "steps. The reward of 1 at the goal is projected on the components; discount 0.95.",
        "Exact, learned, counted: the optimal policy of the projection, with components that were solved, learned, or "
        "solved from counts of the same data. Successor features: no planning for the goal, but generalised "
        "improvement over the policies that are optimal for each component and its negation.",
        "Loss / bound: the largest loss in value of these policies as a share of 2 max|r - r_k| / (1 - discount).",
        "Reference: computed independently of this package.",
        plan.layouts_note,
    )
    return [ResultTable("zero-shot", plan.title, records, notes)]


STUDY = Study(
    name="zero-shot",
    title="Goals reached by policies for projected rewards",
    paper="",
    worlds=("FourRoom-104",),
    quick=Scale(seeds=1, steps=1_600, transitions=1_000_000),
    full=Scale(seeds=10, steps=1_600, transitions=1_000_000),
    deviations=(
        "No published table of this kind is known to us; the reference values come from separate NumPy scripts.",
        "Learned with the default preset, 50 components at once.",
    ),
    methods=methods,
    tables=tables,
    task="zero-shot",
)
