"""The paper's lemmas, corollary and theorem, checked numerically (paper, Lemmas 1 and 2, Corollary 1, Theorem 1)."""

from typing import Any

from lapwing_paper.run_store import Results
from lapwing_paper.study import Plan, Scale, Study
from lapwing_paper.tables import ResultTable

SIZE, DIM = 6, 3
ROUNDING = 1e-8


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Every claim: whether it held on all graphs, and its deviation over them.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per claim.
    """
    found = merged_claims(results)
    records = [
        {
            "claim": claim["paper"],
            "what is checked": claim["statement"],
            "verdict": "held" if claim["held"] else "did not hold",
            "deviation": _deviation(claim["smallest"], claim["deviation"]),
            "what is right": claim["note"],
        }
        for claim in found
    ]
    held = sum(claim["held"] for claim in found)
    notes = (
        f"{held} of {len(found)} claims held, on {len(results.finished)} random graphs of {SIZE} states with {DIM} "
        "components each. Gradients and Jacobians come from automatic differentiation of the package's own objectives, "
        "in float64. Deviations: the largest over the graphs, or from the smallest to the largest where it is not "
        "rounding.",
    )
    return [ResultTable("theory", plan.title, records, notes)]


def merged_claims(results: Results) -> list[dict[str, Any]]:
    """Claims over all graphs: held if it held on each, smallest and largest deviation, the first note.

    Args:
        results: one run per graph.

    Returns:
        One record per claim, with ``smallest`` beside its ``deviation``.
    """
    merged: dict[str, dict[str, Any]] = {}
    for one in results.finished:
        for claim in one.numbers["claims"]:
            known = merged.setdefault(claim["name"], {**claim, "smallest": claim["deviation"]})
            known["held"] = known["held"] and claim["held"]
            known["smallest"] = min(known["smallest"], claim["deviation"])
            known["deviation"] = max(known["deviation"], claim["deviation"])
            known["note"] = known["note"] or claim["note"]
    return list(merged.values())


def _deviation(smallest: float, largest: float) -> str:
    ends = [f"{value:.2g}" for value in (smallest, largest)]
    rounding = max(abs(smallest), abs(largest)) < ROUNDING
    return ends[1] if rounding or ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


STUDY = Study(
    name="theory",
    title="The paper's claims on small random graphs",
    paper="Lemmas 1 and 2, Corollary 1, Theorem 1",
    worlds=(),
    quick=Scale(seeds=3, steps=1, transitions=0),
    full=Scale(seeds=20, steps=1, transitions=0),
    deviations=("Every graph is random, connected and of six states; three components; float64.",),
    methods=lambda plan: [("claims", {"size": SIZE, "dim": DIM})],
    tables=tables,
    task="theory",
)
