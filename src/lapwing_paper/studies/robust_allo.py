"""ALLO hardly depends on its initial barrier coefficient (paper, Figure 3)."""

from lapwing_paper.engine.artefact import Artefact, Plan, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.studies.methods import allo_settings
from lapwing_paper.studies.sweeps import DEVIATIONS, FULL, QUICK, WORLDS, sweep_pictures, sweep_runs, sweep_tables

SPEC = Spec(
    name="robust-allo",
    title="ALLO over training for a range of initial barrier coefficients",
    paper="Figure 3",
    worlds=WORLDS,
    quick=QUICK,
    full=FULL,
    deviations=(*DEVIATIONS, "The barrier grows at the rate 0.01 that the paper found best for ALLO."),
)


def runs(plan: Plan) -> list[Run]:
    """ALLO from every initial coefficient."""
    return sweep_runs(plan, allo_settings)


def table(plan: Plan, results: Results) -> list[Table]:
    """Final similarity by coefficient."""
    return sweep_tables(plan, results, "figure-3")


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 3."""
    return sweep_pictures(plan, results, "figure-3")


ARTEFACT = Artefact(SPEC, runs, table, pictures)
