"""Diffusion times with eigenoptions, exact and learned (Machado, Bellemare & Bowling, 2017)."""

from typing import Any

from lapwing_paper.run_store import Results
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import MISSING, ResultTable, number, percent

EXACT, LEARNED = "exact", "learned"
COUNTS = (4, 16, 28, 30, 32)
FORMS = {"published": "sqrt(degree) u, walk without bumps", "own": "components 2 and on, walk with bumps"}

# As read off the paper's figure, by number of options; 0 is actions alone.
PUBLISHED = {
    "room:10x10": {0: 272.0, 30: 151.0},
    "I-Maze": {0: 247.0, 4: 27.0, 16: 86.0},
    "FourRoom-104": {0: 620.0, 30: 235.0},
}
# The authors' algorithm computed independently of this package, with one choice of equally good actions.
RECOMPUTED = {
    "room:10x10": {0: 271.965, 30: 152.0},
    "I-Maze": {0: 246.222, 4: 27.4, 16: 85.3},
    "FourRoom-104": {0: 620.769, 30: 235.5},
}


def methods(plan: Plan) -> Methods:
    """Exact components, and components learned from data.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings of both.
    """
    return [
        (EXACT, {"transitions": 0, "counts": list(COUNTS)}),
        (LEARNED, {"transitions": plan.scale.transitions, "counts": list(COUNTS)}),
    ]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Exact diffusion times beside the published ones, and those of learned options beside exact ones.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table of exact times and one of learned options.
    """
    exact = [record for world in plan.labels for record in _exact_records(world, results)]
    learned = [record for world in plan.labels for record in _learned_records(world, results)]
    columns = (
        "Official: the end of an option costs a step of its own, as in the authors' code. Moves: it does not.",
        "Published, recomputed: an independent computation of the published algorithm, with one choice of equally good "
        "actions and one basis of repeated eigenvalues.",
        "Ties: the smallest and largest value over draws of one of equally good actions; the other columns take the "
        "first one. Bases: the same over random bases of the spaces of repeated eigenvalues, where there are any. "
        "Noise: the same over draws of noise of 0.1% of each eigenvector's size.",
        "By eigenvalues: n / (n - 1) times the sum of 1 / lambda over the eigenvalues of I - P above zero.",
        "The published eigenvectors are those of D^-1/2 (D - A) D^-1/2, the graph without bumps, the first included: "
        "they are sqrt(degree) u, where u are the components of the walk without bumps. Our components are those of "
        "the walk with bumps, whose I - P is (D - A) / 4.",
        plan.layouts_note,
    )
    basis = (
        "Official count. Counted: the solution of the operator counted from the same data.",
        "In each space of a repeated eigenvalue, exact and counted eigenvectors are turned to the basis nearest to the "
        "learned one, because times depend on the basis. A time is not continuous in the eigenvectors, because an "
        "option ends where the best action is worth nothing: the column of noise above shows by how much.",
    )
    return [
        ResultTable("diffusion-time", plan.title, exact, columns),
        ResultTable("diffusion-time-learned", f"{plan.title}: learned components", learned, basis),
    ]


def _exact_records(world: str, results: Results) -> list[dict[str, str]]:
    runs = results.select(world, EXACT)
    if not runs:
        return []
    found = runs[0].numbers
    rows = [_record(world, 0, "actions alone", {"official": found["actions"], "moves": found["actions"]})]
    rows[0]["by eigenvalues"] = number(found["by_eigenvalues"], 3)
    for form, title in FORMS.items():
        rows += [_record(world, int(count), title, times, form == "published") for count, times in found[form].items()]
    return rows


def _record(world: str, count: int, title: str, times: dict[str, Any], published: bool = True) -> dict[str, str]:
    figure, recomputed = (source.get(world, {}).get(count) if published else None for source in (PUBLISHED, RECOMPUTED))
    return {
        "world": world,
        "options": str(count),
        "eigenvectors": title,
        "published figure": number(figure, 0),
        "published, recomputed": number(recomputed, 3 if count == 0 else 1),
        "official": _steps(times["official"]),
        "ties": _between(times.get("ties_low"), times.get("ties_high")),
        "bases": _between(times.get("bases_low"), times.get("bases_high")),
        "noise": _between(times.get("noise_low"), times.get("noise_high")),
        "moves": _steps(times["moves"]),
        "by eigenvalues": MISSING,
    }


def _learned_records(world: str, results: Results) -> list[dict[str, str]]:
    records = []
    for one in results.select(world, LEARNED):
        for form, title in FORMS.items():
            for count, times in one.numbers[form].items():
                records.append(
                    {
                        "world": world,
                        "seed": str(one.run.seed),
                        "options": count,
                        "eigenvectors": title,
                        "exact": _steps(times["exact"]),
                        "learned": _steps(times["learned"]),
                        "difference": percent(times["learned"] / times["exact"] - 1.0),
                        "counted": _steps(times["counted"]),
                        "difference, counted": percent(times["counted"] / times["exact"] - 1.0),
                    }
                )
    return records


def _steps(value: float) -> str:
    return f"{value:,.0f}" if value >= 10_000 else number(value, 3)


def _between(low: float | None, high: float | None) -> str:
    return MISSING if low is None or high is None else f"{_steps(low)} to {_steps(high)}"


STUDY = Study(
    name="diffusion-time",
    title="Diffusion time with eigenoptions, exact and learned",
    paper="",
    worlds=("room:10x10", "I-Maze", "FourRoom-104"),
    quick=Scale(seeds=1, steps=1, transitions=1_000_000),
    full=Scale(seeds=5, steps=1, transitions=1_000_000),
    deviations=(
        "Published: Machado, Bellemare & Bowling (ICML 2017), Figure 6, read off by eye.",
        "Options end where no action has a value above zero, to rounding; the authors' code ends them within 0.001 of "
        "zero.",
        "The published values with 16 options in I-Maze and with 30 in the four rooms depend on which of equally good "
        "actions a policy takes, those of the 10x10 room also on the basis of repeated eigenvalues: they are one of a "
        "range, and the range is given.",
    ),
    methods=methods,
    tables=tables,
    task="diffusion-time",
)
