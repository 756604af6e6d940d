"""How many diffusion options there are, and the steps between states with them (Bar, Talmon & Meir, 2020)."""

from typing import Any

from lapwing_paper.run_store import Results
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import MISSING, ResultTable

METHOD = "options"
TIMES = (4, 13)

# Options by time; median and range between quartiles of the steps of the random walk and with options.
PUBLISHED_COUNTS = {"FourRoom-104": {4: 20, 13: 15}, "HardMaze": {4: 19, 13: 14}}
PUBLISHED_STEPS = {
    "FourRoom-104": {0: (487, 104), 4: (147, 137)},
    "HardMaze": {0: (1280, 960), 4: (282, 194)},
}


def methods(plan: Plan) -> Methods:
    """One run per world.

    Args:
        plan: gives the size of the study.

    Returns:
        One label with its settings.
    """
    return [(METHOD, {"times": list(TIMES)})]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Options and steps, alone and with the options of each time.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world and time.
    """
    records = []
    for world in plan.labels:
        for one in results.select(world, METHOD)[:1]:
            records.append(_record(world, 0, None, one.numbers["walk"]))
            records += [
                _record(world, time, one.numbers[str(time)]["options"], one.numbers[str(time)]["quartiles"])
                for time in TIMES
            ]
    notes = (
        "Options: local maxima of the distance between the lazy walk after t steps and its stationary distribution; a "
        "plateau counts once.",
        "Steps: the median over goals of the mean over all starts, the goal among them, of the expected steps of a "
        "uniform walk without bumps, in moves; in brackets the range between the quartiles, by Hazen's rule.",
        plan.layouts_note,
    )
    return [ResultTable("diffusion-options", plan.title, records, notes)]


def _record(world: str, time: int, count: int | None, quartiles: list[float]) -> dict[str, str]:
    low, middle, high = quartiles
    published: Any = PUBLISHED_STEPS.get(world, {}).get(time)
    return {
        "world": world,
        "walk": f"with options, t = {time}" if time else "actions alone",
        "options, published": str(PUBLISHED_COUNTS.get(world, {}).get(time, MISSING)),
        "options": MISSING if count is None else str(count),
        "steps, published": f"{published[0]} ({published[1]})" if published else MISSING,
        "steps": f"{middle:.0f} ({high - low:.0f})",
    }


STUDY = Study(
    name="diffusion-options",
    title="Diffusion options: how many, and steps between states",
    paper="",
    worlds=("FourRoom-104", "HardMaze"),
    quick=Scale(seeds=1, steps=1, transitions=0),
    full=Scale(seeds=2, steps=1, transitions=0),
    deviations=(
        "Published: Bar, Talmon & Meir (ICML 2020), Table 1; the four rooms and the maze of Wu et al. (2019). Ring and "
        "the versions with wind are not here.",
        "Nothing is random: the full version repeats the quick one.",
    ),
    methods=methods,
    tables=tables,
    task="diffusion-options",
)
