"""ALLO hardly depends on its initial barrier coefficient (paper, Figure 3)."""

from lapwing_paper.studies.methods import allo_settings
from lapwing_paper.studies.sweeps import sweep

STUDY = sweep(
    "robust-allo",
    "ALLO over training for a range of initial barrier coefficients",
    3,
    "The barrier grows at the rate 0.01 that the paper found best for ALLO.",
    allo_settings,
)
