"""Outputs permuted at random at intervals: similarity falls and returns (paper, Figure 8)."""

import numpy as np

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results
from lapwing_paper.seed_statistics import mean_and_std
from lapwing_paper.studies.comparison import signed
from lapwing_paper.studies.learning_curves import curves_figure, panel
from lapwing_paper.studies.methods import PLAIN, allo_settings, exact_run, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import TWELVE_WORLDS
from lapwing_paper.tables import ResultTable, number

METHOD = "ALLO, permuted"
FULL_EVERY, FULL_STEPS = 20_000, 200_000
QUICK_CYCLES = 4
POINTS_PER_CYCLE = 20


def _every(plan: Plan) -> int:
    return FULL_EVERY if plan.is_full else max(2, plan.scale.steps // QUICK_CYCLES)


def methods(plan: Plan) -> Methods:
    """One run per world and seed; it ends one step early if its last step would be a permutation.

    Args:
        plan: gives the size of the study.

    Returns:
        One label with its settings.
    """
    scale, every = plan.scale, _every(plan)
    steps = scale.steps - 1 if scale.steps % every == 0 else scale.steps
    cycles = {"permute_every": every, "log_every": max(1, every // POINTS_PER_CYCLE)}
    if plan.is_full:
        return [(METHOD, paper_run(allo_settings(**cycles), scale.transitions, steps))]
    options = {**PLAIN, **cycles, "steps": steps, "schedule": "constant", "learning_rate": 1e-3}
    return [(METHOD, exact_run(options, scale.transitions))]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Similarity at the end of every cycle, and the lowest after a permutation.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world.
    """
    every = _every(plan)
    records = []
    for world in plan.labels:
        steps, values = results.curves("cosine", world, METHOD)
        if not len(steps):
            continue
        mean = values.mean(axis=0)
        # A report on the step of a permutation shows what it has left.
        cycles = (steps // every).astype(int)
        ends = [float(mean[cycles == cycle].max()) for cycle in range(int(cycles[-1]) + 1)]
        after = [float(mean[cycles == cycle].min()) for cycle in range(1, int(cycles[-1]) + 1)]
        later = min(ends[1:], default=np.nan)
        counting = mean_and_std(results.values("counting_subspace_cosine", world, METHOD)).mean
        records.append(
            {
                "world": world,
                "best before the first permutation": number(ends[0]),
                "lowest after one": number(min(after, default=np.nan)),
                "worst of later cycles' best": number(later),
                "change": signed(later - ends[0]),
                "counting": number(counting),
            }
        )
    note = (
        f"Subspace cosine, permuted every {every:,} steps, {plan.scale.seeds} seed(s). Counting on the same data is "
        "where a converged run ends: above it a curve falls again."
    )
    return [ResultTable("figure-8", plan.title, records, (note, plan.layouts_note))]


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Similarity over training, one panel per world.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure of learning curves.
    """
    panels = [panel(results, "cosine", world, [METHOD]) for world in plan.labels]
    description = "Cosine similarity over training: it falls at every permutation and returns."
    return curves_figure(plan, "figure-8", panels, 4, "cosine similarity", description)


STUDY = Study(
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
    methods=methods,
    tables=tables,
    figures=figures,
)
