"""Why the paper's pixel runs collapse: raw images share their background, centred ones do not (ours)."""

from lapwing_paper.engine.artefact import Artefact, Plan, Scale, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.published import published_cosines
from lapwing_paper.studies.curves import final_table, panel
from lapwing_paper.studies.methods import over_places

RAW, CENTRED = "raw pixels", "centred pixels"

SPEC = Spec(
    name="pixels-centred",
    title="Raw against centred pixels",
    paper="",
    worlds=("GridMaze-32", "GridRoom-64"),
    quick=Scale(seeds=1, steps=300, transitions=0),
    full=Scale(seeds=10, steps=1_500, transitions=0),
    deviations=(
        "Both learn from the exact operator with the pixels preset: the same network, steps and refinement; what "
        "differs is whether the data's mean image is subtracted and the rest scaled by its deviation.",
    ),
)


def runs(plan: Plan) -> list[Run]:
    """The same run with raw and with centred images."""
    steps = plan.scale.steps
    common = {"steps": steps, "log_every": max(1, steps // 15), "stop_when_converged": False}
    methods = [
        (
            name,
            {
                "preset": "pixels",
                "observation": "pixels",
                "transitions": 0,
                "options": {**common, "centre_pixels": name == CENTRED},
            },
        )
        for name in (RAW, CENTRED)
    ]
    return over_places(plan, methods)


def table(plan: Plan, results: Results) -> list[Table]:
    """Final similarity, raw and centred."""
    printed = published_cosines("pixels")["GridMaze-32"].allo_mean
    notes = (
        f"From the exact operator, {plan.scale.steps:,} steps, {plan.scale.seeds} seed(s), 11 components: subspace "
        f"cosine. The paper's pixel run on GridMaze-32 ends at {printed} after 200,000 steps.",
    )
    return [final_table(plan, results, "subspace_cosine", [RAW, CENTRED], "pixels-centred", plan.title, notes)]


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Similarity over training."""
    panels = tuple(panel(results, "cosine", place.label, [RAW, CENTRED]) for place in plan.places)
    words = "Cosine similarity over training with raw and with centred images."
    return [Picture("pixels-centred", plan.title, panels, 2, "gradient steps", "subspace cosine", words, (0.0, 1.02))]


ARTEFACT = Artefact(SPEC, runs, table, pictures)
