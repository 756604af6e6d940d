"""The sweep over barrier coefficients that the paper makes for GGDO and for ALLO, written once."""

from collections.abc import Callable
from typing import Any

from lapwing_paper.engine.artefact import Plan, Scale
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.studies.curves import bands_note, best_method, final_table, panel
from lapwing_paper.studies.methods import over_places, paper_run

WORLDS = ("GridMaze-19", "GridRoom-16", "GridRoom-1")

# As the authors' code counts them; the smallest first.
BARRIERS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
QUICK_BARRIERS = (0.1, 0.5, 2.0, 10.0)

QUICK = Scale(seeds=2, steps=3_000, transitions=200_000)
FULL = Scale(seeds=60, steps=50_000, transitions=200_000)

DEVIATIONS = (
    "The paper names neither the three worlds nor the coefficients nor the number of steps: these are those of the "
    "authors' published job script and configuration (50,000 steps).",
    "Coefficients are given as the authors' code counts them, twice ours, because its graph term lacks the half of "
    "the paper's own equations.",
)


def barriers(plan: Plan) -> tuple[float, ...]:
    """All of the paper's coefficients, or four of them in a quick version."""
    return BARRIERS if plan.is_full else QUICK_BARRIERS


def label(barrier: float) -> str:
    """How a coefficient is called in tables."""
    return f"b = {barrier:g}"


def sweep_runs(plan: Plan, settings: Callable[[float], dict[str, Any]]) -> list[Run]:
    """One method with every coefficient."""
    scale = plan.scale
    methods = [(label(b), paper_run(settings(b), scale.transitions, scale.steps)) for b in barriers(plan)]
    return over_places(plan, methods)


def sweep_tables(plan: Plan, results: Results, name: str) -> list[Table]:
    """Final similarity by coefficient and world."""
    notes = (
        f"Paper preset, {plan.scale.steps:,} steps, {plan.scale.transitions:,} transitions, {plan.scale.seeds} seeds: "
        "the paper's average cosine similarity at the end, mean (standard deviation); the best of each world is bold.",
    )
    labels = [label(b) for b in barriers(plan)]
    return [final_table(plan, results, "cosine", labels, name, plan.title, notes)]


def sweep_pictures(plan: Plan, results: Results, name: str) -> list[Picture]:
    """One panel per world, one line per coefficient, the best highlighted."""
    labels = [label(b) for b in barriers(plan)]
    panels = tuple(
        panel(results, "paper_cosine", place.label, labels, best=best_method(results, "cosine", place.label, labels))
        for place in plan.places
    )
    words = f"Average cosine similarity over training by barrier coefficient, the best one bold; {bands_note(plan)}."
    return [Picture(name, plan.title, panels, 3, "gradient steps", "cosine similarity", words, (0.0, 1.02))]
