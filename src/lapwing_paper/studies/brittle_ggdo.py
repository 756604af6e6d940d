"""GGDO depends on its barrier coefficient, and differently in each world (paper, Figure 1)."""

from lapwing_paper.engine.artefact import Artefact, Plan, Spec
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table
from lapwing_paper.studies.methods import ggdo_settings
from lapwing_paper.studies.sweeps import DEVIATIONS, FULL, QUICK, WORLDS, sweep_pictures, sweep_runs, sweep_tables

SPEC = Spec(
    name="brittle-ggdo",
    title="GGDO over training for a range of barrier coefficients",
    paper="Figure 1",
    worlds=WORLDS,
    quick=QUICK,
    full=FULL,
    deviations=(*DEVIATIONS, "GGDO's penalty is weighted as in the authors' code, see `comparison-xy`."),
)


def runs(plan: Plan) -> list[Run]:
    """GGDO with every coefficient."""
    return sweep_runs(plan, ggdo_settings)


def table(plan: Plan, results: Results) -> list[Table]:
    """Final similarity by coefficient."""
    return sweep_tables(plan, results, "figure-1")


def pictures(plan: Plan, results: Results) -> list[Picture]:
    """Figure 1."""
    return sweep_pictures(plan, results, "figure-1")


ARTEFACT = Artefact(SPEC, runs, table, pictures)
