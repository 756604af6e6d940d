"""ALLO against GGDO in twelve worlds, from pixels (paper, Figure 10 and Table 2)."""

from lapwing_paper.studies.comparison import comparison_figures, comparison_tables
from lapwing_paper.studies.methods import ALLO_PAPER, GGDO_PAPER, Settings, allo_settings, ggdo_settings, paper_run
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.study_worlds import TWELVE_WORLDS

ALLO_PIXELS = "ALLO (pixels preset)"
QUICK_STEPS = 400


def methods(plan: Plan) -> Methods:
    """Three methods, all from images.

    Args:
        plan: gives the size of the study.

    Returns:
        Labels and settings of our preset, the paper's ALLO and the paper's GGDO.
    """
    scale = plan.scale
    raw: Settings = {"encoder": "conv", "scale_inputs": False}
    ours: Settings = {} if plan.is_full else {"steps": QUICK_STEPS}
    found = [
        (ALLO_PIXELS, {"preset": "pixels", "transitions": scale.transitions, "options": ours}),
        (ALLO_PAPER, paper_run(allo_settings(**raw), scale.transitions, scale.steps)),
        (GGDO_PAPER, paper_run(ggdo_settings(**raw), scale.transitions, scale.steps)),
    ]
    return [(label, {**settings, "observation": "pixels"}) for label, settings in found]


STUDY = Study(
    name="comparison-pixels",
    title="ALLO against GGDO from pixels in twelve worlds",
    paper="Figure 10, Table 2",
    # Table 2 has GridMaze-11 where Table 1 has GridRoom-64.
    worlds=("GridMaze-7", "GridMaze-9", "GridMaze-11", *TWELVE_WORLDS[2:-1]),
    quick=Scale(seeds=2, steps=6_000, transitions=1_000_000),
    full=Scale(seeds=60, steps=200_000, transitions=1_000_000),
    deviations=(
        "The convolutional network is the package's own (the paper does not give its layers).",
        "The pixels preset (centred images, exact expectation over the data, Rayleigh-Ritz) is ours and stands beside "
        "the paper's settings, in which images are divided by 255 and not centred, as in the authors' code.",
        "GGDO's penalty is weighted as in the authors' code, see `comparison-xy`.",
        "The quick version has the four smallest worlds, and in it the pixels preset makes 400 of its 1,000 steps.",
    ),
    quick_worlds=("GridMaze-7", "GridMaze-9", "GridMaze-11", "GridMaze-17"),
    methods=methods,
    tables=lambda plan, results: comparison_tables(plan, results, ALLO_PIXELS, "pixels"),
    figures=lambda plan, results: comparison_figures(plan, results, ("figure-10a", "figure-10b")),
)
