"""Goals in continuous mazes reached by planning, in psi and in coordinates (after ALPS, 2026)."""

from typing import Any

import numpy as np

from lapwing_paper.run_store import Results
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import MISSING, ResultTable, number

DIM = 11
REGIONS = (1, 16)
PAIRS = 200
EMBEDDINGS = {"learned": "psi, learned", "exact": "psi, exact", "coordinates": "coordinates"}
# Of each local planner: with the true dynamics sequences are tried, else recorded ones are followed.
PLANNERS = {
    "simulator": {"horizon": 3, "samples": 64, "elites": 8, "rounds": 3},
    "recorded": {"horizon": 2, "samples": 64, "elites": 8},
}
TITLES = {"simulator": "true dynamics", "recorded": "recorded steps"}


def methods(plan: Plan) -> Methods:
    """One run per embedding.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings.
    """
    shared: dict[str, Any] = {"dim": DIM, "regions": list(REGIONS), "pairs": PAIRS, **PLANNERS}
    shared["transitions"] = plan.scale.transitions
    return [
        (label, {**shared, "embedding": kind, "steps": plan.scale.steps if kind == "learned" else 0})
        for kind, label in EMBEDDINGS.items()
    ]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Success and lengths of ways.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world, local planner and number of regions.
    """
    records = []
    for world in plan.labels:
        for kind, title in TITLES.items():
            for regions in REGIONS:
                record = {"world": world, "local planner": title, "regions": str(regions)}
                for label in EMBEDDINGS.values():
                    found = [one.numbers[f"{kind}-{regions}"] for one in results.select(world, label)]
                    reached = np.concatenate([np.asarray(one["reached"]) for one in found]) if found else np.empty(0)
                    ratios = np.concatenate([np.asarray(one["ratios"]) for one in found]) if found else np.empty(0)
                    record[f"{label}: reached, %"] = _percent_with_interval(reached)
                    record[f"{label}: length"] = _mean_with_interval(ratios)
                records.append(record)
    notes = (
        f"Reached: share of {PAIRS} random pairs of start and goal per seed in which the goal came within half a cell "
        "in 100 steps, planned anew at each step, with 95 % intervals (Wilson). Length: of the way as a multiple of "
        "the shortest around walls, where it was reached and is longer than two cells, with the 95 % interval. The "
        "shortest way is that on a grid of four points to a cell, up to a tenth too long where it turns round corners.",
        "True dynamics: the cross-entropy method, horizon 3, 64 samples, 3 rounds. Recorded steps: no simulator, but "
        "the recorded sequences of two steps from the 64 nearest observations.",
        f"Regions: k-means in the embedding, joined by observed steps; with 1 the goal is the target. d = {DIM}.",
        "For orientation, in other worlds and from images (ALPS): 94, 92, 91 % with one region and 97, 96, 94 % with "
        "16 in Hallway, Rooms, Spiral; PcLast before it 51, 30, 35 % and 62, 57, 60 %.",
    )
    return [ResultTable("planning", plan.title, records, notes)]


def _percent_with_interval(reached: "np.ndarray[Any, Any]") -> str:
    """A share in percent with Wilson's interval."""
    count = len(reached)
    if not count:
        return MISSING
    share, z = float(reached.mean()), 1.96
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    return f"{100 * share:.1f} ({100 * (middle - half):.1f} to {100 * (middle + half):.1f})"


def _mean_with_interval(ratios: "np.ndarray[Any, Any]") -> str:
    if len(ratios) < 2:
        return MISSING
    return f"{number(float(ratios.mean()), 2)} ± {1.96 * ratios.std(ddof=1) / np.sqrt(len(ratios)):.2f}"


STUDY = Study(
    name="planning",
    title="Goals in continuous mazes reached by planning in psi and in coordinates",
    paper="",
    worlds=("UMaze", "ContinuousFourRooms", "LargeMaze"),
    quick=Scale(seeds=1, steps=800, transitions=200_000),
    full=Scale(seeds=5, steps=1_600, transitions=1_000_000),
    deviations=(
        "The published worlds are others, seen as images, with learned dynamics; ours are seen as coordinates.",
        "Learned with the default preset.",
    ),
    methods=methods,
    tables=tables,
    task="planning",
)
