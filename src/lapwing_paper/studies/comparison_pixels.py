"""ALLO against GGDO in twelve worlds, from pixels (paper, Figure 10 and Table 2)."""

from typing import Any

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.places import TWELVE_WORLDS
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.studies.comparison import comparison_pictures, comparison_tables
from lapwing_paper.studies.methods import ALLO_PAPER, GGDO_PAPER, allo_settings, ggdo_settings, over_places, paper_run

TRANSITIONS = 1_000_000
ALLO_PIXELS = "ALLO (pixels preset)"
QUICK_STEPS = 400

# Table 2 has GridMaze-11 where Table 1 has GridRoom-64.
PIXEL_WORLDS = ("GridMaze-7", "GridMaze-9", "GridMaze-11", *TWELVE_WORLDS[2:-1])

SPEC = Spec(
    name="comparison-pixels",
    title="ALLO against GGDO from pixels in twelve worlds",
    paper="Figure 10, Table 2",
    worlds=PIXEL_WORLDS,
    quick=Scale(seeds=2, steps=100, transitions=TRANSITIONS),
    full=Scale(seeds=60, steps=200_000, transitions=TRANSITIONS),
    deviations=(
        "The convolutional network is the package's own (the paper does not give its layers).",
        "The pixels preset (centred images, exact expectation over the data, Rayleigh-Ritz) is ours and stands beside "
        "the paper's settings, which leave images as they are.",
        "GGDO's penalty is weighted as in the authors' code, see `comparison-xy`.",
        "In the quick version the pixels preset makes 400 of its 1,000 steps.",
    ),
)


def runs(plan: Plan) -> list[Run]:
    """Three methods in every world, all of them looking at images."""
    scale = plan.scale
    raw: dict[str, Any] = {"encoder": "conv", "centre_pixels": False}
    ours: dict[str, Any] = {} if plan.is_full else {"steps": QUICK_STEPS}
    methods: list[tuple[str, dict[str, Any]]] = [
        (ALLO_PIXELS, {"preset": "pixels", "transitions": scale.transitions, "options": ours}),
        (ALLO_PAPER, paper_run(allo_settings(**raw), scale.transitions, scale.steps)),
        (GGDO_PAPER, paper_run(ggdo_settings(**raw), scale.transitions, scale.steps)),
    ]
    return over_places(plan, [(label, {**settings, "observation": "pixels"}) for label, settings in methods])


def table(plan: Plan, results: Results) -> list[Table]:
    """Table 2 with the published numbers, the pixels preset beside them, aggregates."""
    return comparison_tables(plan, results, ALLO_PIXELS, "pixels")


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Both halves of Figure 10."""
    return comparison_pictures(plan, results, ("figure-10a", "figure-10b"))


ARTEFACT = Artefact(SPEC, runs, table, pictures)
