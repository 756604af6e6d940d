"""Outputs permuted at random now and then: similarity falls and returns (paper, Figure 8)."""

import numpy as np

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.places import TWELVE_WORLDS
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table, number
from lapwing_paper.statistics import mean_and_std
from lapwing_paper.studies.curves import panel
from lapwing_paper.studies.methods import allo_settings, exact_run, over_places, paper_run

METHOD = "ALLO, permuted"
FULL_EVERY, FULL_STEPS = 20_000, 200_000
QUICK_CYCLES = 4
POINTS_PER_CYCLE = 20

SPEC = Spec(
    name="permutations",
    title="ALLO with its outputs permuted at random",
    paper="Figure 8",
    worlds=TWELVE_WORLDS,
    quick=Scale(seeds=1, steps=6_400, transitions=1_000_000),
    full=Scale(seeds=60, steps=FULL_STEPS, transitions=1_000_000),
    deviations=(
        "The quick version permutes four times in a run of the default preset without refinement and with a constant "
        "learning rate (Fourier features, exact expectation), which converges within a cycle; the full one permutes "
        "every 20,000 steps of the paper's.",
        "The permutations are the same in all seeds.",
    ),
)


def _every(plan: Plan) -> int:
    return FULL_EVERY if plan.is_full else max(2, plan.scale.steps // QUICK_CYCLES)


def runs(plan: Plan) -> list[Run]:
    """One run per world and seed; it ends one step early, for a permutation on the last step would be its result."""
    scale, every = plan.scale, _every(plan)
    steps = scale.steps - 1 if scale.steps % every == 0 else scale.steps
    log = max(1, every // POINTS_PER_CYCLE)
    if plan.is_full:
        settings = paper_run(allo_settings(permute_every=every, log_every=log), scale.transitions, steps)
    else:
        plain = {
            "refine": "none",
            "stop_when_converged": False,
            "schedule": "constant",
            "learning_rate": 1e-3,
            "spare": 0,
        }
        settings = exact_run({"steps": steps, "permute_every": every, "log_every": log, **plain}, scale.transitions)
    return over_places(plan, [(METHOD, settings)])


def table(plan: Plan, results: Results) -> list[Table]:
    """Similarity at the end of every cycle, and the lowest after a permutation."""
    every = _every(plan)
    rows = []
    for place in plan.places:
        steps, values = results.curves("cosine", place.label, METHOD)
        if not len(steps):
            continue
        mean = values.mean(axis=0)
        # A report on the step of a permutation shows what it has left.
        cycles = (steps // every).astype(int)
        ends = [float(mean[cycles == cycle].max()) for cycle in range(int(cycles[-1]) + 1)]
        after = [float(mean[cycles == cycle].min()) for cycle in range(1, int(cycles[-1]) + 1)]
        recovered = min(ends[1:], default=np.nan) - ends[0]
        rows.append(
            (
                place.label,
                number(ends[0], 4),
                number(min(after, default=np.nan), 4),
                number(min(ends[1:], default=np.nan), 4),
                "–" if np.isnan(recovered) else f"{recovered:+.4f}",
                number(mean_and_std(results.values("counting_subspace_cosine", place.label, METHOD)).mean, 4),
            )
        )
    columns = (
        "world",
        "best before the first permutation",
        "lowest after one",
        "worst of later cycles' best",
        "change",
        "counting",
    )
    words = (
        f"Subspace cosine, permuted every {every:,} steps, {plan.scale.seeds} seed(s). Counting on the same data is "
        "where a converged run ends: above it a curve falls again."
    )
    notes = (words, plan.layouts_note)
    return [Table("figure-8", plan.title, columns, tuple(rows), notes)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 8."""
    panels = tuple(panel(results, "cosine", place.label, [METHOD]) for place in plan.places)
    words = "Cosine similarity over training: it falls at every permutation and returns."
    return [Picture("figure-8", plan.title, panels, 4, "gradient steps", "cosine similarity", words, (0.0, 1.02))]


ARTEFACT = Artefact(SPEC, runs, table, pictures)
