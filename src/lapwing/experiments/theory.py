"""The paper's lemmas, corollary and theorem, checked numerically (paper, Lemmas 1 and 2, Corollary 1, Theorem 1)."""

from typing import Any

from lapwing.studies.artefact import Artefact, Plan, Scale, Spec, no_pictures
from lapwing.studies.runs import Results, Run
from lapwing.studies.tables import Table

SIZE, DIM = 6, 3

SPEC = Spec(
    name="theory",
    title="The paper's claims on small random graphs",
    paper="Lemmas 1 and 2, Corollary 1, Theorem 1",
    worlds=(),
    quick=Scale(seeds=3, steps=1, transitions=0),
    full=Scale(seeds=20, steps=1, transitions=0),
    deviations=("Every graph is random, connected and of six states; three components; float64.",),
)


def runs(plan: Plan) -> list[Run]:
    """One run per random graph."""
    return [Run("claims", None, seed, {"size": SIZE, "dim": DIM}, "theory") for seed in plan.seeds]


def table(plan: Plan, results: Results) -> list[Table]:
    """Every claim: whether it held on all graphs, and the largest deviation."""
    found = merged_claims(results)
    rows = [
        (
            claim["paper"],
            claim["statement"],
            "held" if claim["held"] else "did not hold",
            f"{claim['deviation']:.2g}",
            claim["note"],
        )
        for claim in found
    ]
    notes = (
        f"{len(results.finished)} random graphs of {SIZE} states, {DIM} components. Gradients and Jacobians come from "
        "automatic differentiation of the package's own objectives, in float64.",
    )
    columns = ("claim", "what is checked", "verdict", "largest deviation", "what is right")
    return [Table("theory", plan.title, columns, tuple(rows), notes)]


def merged_claims(results: Results) -> list[dict[str, Any]]:
    """Claims over all graphs: held if it held on each, the largest deviation, the first note."""
    merged: dict[str, dict[str, Any]] = {}
    for one in results.finished:
        for claim in one.numbers["claims"]:
            known = merged.setdefault(claim["name"], dict(claim))
            known["held"] = known["held"] and claim["held"]
            known["deviation"] = max(known["deviation"], claim["deviation"])
            known["note"] = known["note"] or claim["note"]
    return list(merged.values())


ARTEFACT = Artefact(SPEC, runs, table, no_pictures)
