"""GGDO depends on its barrier coefficient, and differently in each world (paper, Figure 1)."""

from lapwing_paper.studies.methods import ggdo_settings
from lapwing_paper.studies.sweeps import sweep

STUDY = sweep(
    "brittle-ggdo",
    "GGDO over training for a range of barrier coefficients",
    1,
    "GGDO's penalty is weighted as in the authors' code, see `comparison-xy`.",
    ggdo_settings,
)
