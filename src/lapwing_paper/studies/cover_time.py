"""Connectivity, hitting times and cover times with covering options (Jinnai et al., 2019)."""

from typing import NamedTuple

from lapwing_paper.run_store import Results
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import MISSING, ResultTable, number

OPTIONS = 8
METHOD = "walks"
KINDS = {"covering": f"covering, {OPTIONS}", "eigenvectors": f"ends of eigenvectors, {OPTIONS}", "none": "none"}


class PublishedCover(NamedTuple):
    """A row of the table: the second eigenvalue, and what it calls the expected cover time."""

    connectivity: float
    cover_time: float


PUBLISHED = {
    "FourRoom-104": {
        "covering": PublishedCover(0.065, 672.0),
        "eigenvectors": PublishedCover(0.054, 695.9),
        "none": PublishedCover(0.023, 1094.8),
    },
    "room:9x9": {
        "covering": PublishedCover(0.24, 258.6),
        "eigenvectors": PublishedCover(0.19, 261.5),
        "none": PublishedCover(0.12, 460.5),
    },
}


def methods(plan: Plan) -> Methods:
    """One run per world.

    Args:
        plan: gives the size of the study.

    Returns:
        One label with its settings.
    """
    return [(METHOD, {"walks": 20_000 if plan.is_full else 4_000, "point_options": OPTIONS})]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """What the published table prints, and the cover times of the same walks.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table with a row per world and kind of options.
    """
    records = []
    for world in plan.labels:
        for one in results.select(world, METHOD)[:1]:
            for kind, title in KINDS.items():
                found, published = one.numbers[kind], PUBLISHED.get(world, {}).get(kind)
                records.append(
                    {
                        "world": world,
                        "options": title,
                        "lambda_2, published": MISSING if published is None else f"{published.connectivity:g}",
                        "lambda_2": number(found["connectivity"]),
                        "'cover time', published": number(published and published.cover_time, 1),
                        "largest hitting time": number(found["largest_hitting"], 1),
                        "cover time": _with_error(found["cover"]),
                        "cover time in moves": _with_error(found["cover_in_moves"]),
                    }
                )
    notes = (
        "lambda_2: of the combinatorial Laplacian D - A of the state graph, options as edges.",
        "Largest hitting time: the mean over starts of the largest expected number of steps to any state, bumps "
        "included, an option being one step. This is what the published table calls the expected cover time.",
        "Cover time: steps until every state was visited, without bumps, an option being one step that visits only its "
        "end; the mean of simulated walks, standard error in brackets. In moves: every move of an option counts, and "
        "what it passes is visited.",
        "The room has a repeated second eigenvalue, so that several sets of options are right, and the ends of its "
        "eigenvectors depend on the basis.",
        plan.layouts_note,
    )
    return [ResultTable("cover-time", plan.title, records, notes)]


def _with_error(pair: list[float]) -> str:
    return f"{pair[0]:.0f} ({pair[1]:.0f})"


STUDY = Study(
    name="cover-time",
    title="Connectivity, hitting time and cover time with covering options",
    paper="",
    worlds=("FourRoom-104", "room:9x9"),
    quick=Scale(seeds=1, steps=1, transitions=0),
    full=Scale(seeds=2, steps=1, transitions=0),
    deviations=(
        "Published: Jinnai, Park, Abel & Konidaris (ICML 2019), Table 1.",
        "4,000 walks in the quick version, 20,000 in the full one.",
    ),
    methods=methods,
    tables=tables,
    task="cover-time",
)
