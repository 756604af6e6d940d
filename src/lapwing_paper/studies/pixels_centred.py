"""Why the paper's pixel runs collapse: raw images share their background, centred ones do not (ours)."""

from lapwing_paper.drawings import StudyFigure
from lapwing_paper.published_numbers import published_cosines
from lapwing_paper.run_store import Results
from lapwing_paper.studies.learning_curves import curves_figure, final_table, panel
from lapwing_paper.study import Methods, Plan, Scale, Study
from lapwing_paper.tables import ResultTable

RAW, CENTRED = "raw pixels", "centred pixels"


def methods(plan: Plan) -> Methods:
    """The same run with raw and with centred images.

    Args:
        plan: gives the size of the study.

    Returns:
        Two labels with settings that differ in ``scale_inputs`` alone.
    """
    steps = plan.scale.steps
    options = {"steps": steps, "log_every": max(1, steps // 15), "stop_when_converged": False}
    run = {"preset": "pixels", "observation": "pixels", "transitions": 0}
    return [(name, {**run, "options": {**options, "scale_inputs": name == CENTRED}}) for name in (RAW, CENTRED)]


def tables(plan: Plan, results: Results) -> list[ResultTable]:
    """Final similarity, raw and centred.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One table: a row per kind of input, a column per world.
    """
    printed = published_cosines("pixels")["GridMaze-32"].allo_mean
    notes = (
        f"From the exact operator, {plan.scale.steps:,} steps, {plan.scale.seeds} seed(s), 11 components: subspace "
        f"cosine. The paper's pixel run on GridMaze-32 ends at {printed} after 200,000 steps.",
    )
    return final_table(plan, results, "subspace_cosine", [RAW, CENTRED], "pixels-centred", notes)


def figures(plan: Plan, results: Results) -> list[StudyFigure]:
    """Similarity over training.

    Args:
        plan: of the study.
        results: its finished runs, some of which may be missing.

    Returns:
        One figure with both curves in each panel.
    """
    panels = [panel(results, "cosine", world, [RAW, CENTRED]) for world in plan.labels]
    description = "Cosine similarity over training with raw and with centred images."
    return curves_figure(plan, "pixels-centred", panels, 2, "subspace cosine", description)


STUDY = Study(
    name="pixels-centred",
    title="Raw against centred pixels",
    paper="",
    worlds=("GridMaze-32", "GridRoom-64"),
    quick=Scale(seeds=1, steps=300, transitions=0),
    full=Scale(seeds=10, steps=1_500, transitions=0),
    deviations=(
        "Both learn from the exact operator with the pixels preset: the same network, steps and refinement; what "
        "differs is whether images are divided by 255, or the data's mean image is subtracted and the rest scaled by "
        "its deviation.",
    ),
    methods=methods,
    tables=tables,
    figures=figures,
)
