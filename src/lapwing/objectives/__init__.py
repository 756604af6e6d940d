"""Objectives as named tuples of pure functions; adding one is one file and one row of ``OBJECTIVES``."""

from collections.abc import Callable

from lapwing.objectives.agdo import agdo
from lapwing.objectives.allo import AlloState, allo, dual_eigenvalues, multiplier_eigenvalues
from lapwing.objectives.constraints import Barrier, BarrierState, Constraints, rayleigh_quotients
from lapwing.objectives.gdo import gdo
from lapwing.objectives.ggdo import ggdo
from lapwing.objectives.nested_lora import nested_lora
from lapwing.objectives.nesting import Products, nested_loss
from lapwing.objectives.neural_ef import neural_ef
from lapwing.objectives.objective import Details, Evaluation, Objective, State, Values, inner_products, stateless
from lapwing.objectives.omm import omm
from lapwing.objectives.permuted import permuted
from lapwing.objectives.quadratic_penalty import quadratic_penalty
from lapwing.objectives.spectral_contrastive import spectral_contrastive
from lapwing.objectives.vamp2 import vamp2

OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "gdo": gdo,
    "ggdo": ggdo,
    "quadratic_penalty": quadratic_penalty,
    "agdo": agdo,
    "allo": allo,
    "omm": omm,
    "nested_lora": nested_lora,
    "neural_ef": neural_ef,
    "vamp2": vamp2,
    "spectral_contrastive": spectral_contrastive,
}

__all__ = [
    "OBJECTIVES",
    "AlloState",
    "Barrier",
    "BarrierState",
    "Constraints",
    "Details",
    "Evaluation",
    "Objective",
    "Products",
    "State",
    "Values",
    "agdo",
    "allo",
    "dual_eigenvalues",
    "gdo",
    "ggdo",
    "inner_products",
    "multiplier_eigenvalues",
    "nested_lora",
    "nested_loss",
    "neural_ef",
    "omm",
    "permuted",
    "quadratic_penalty",
    "rayleigh_quotients",
    "spectral_contrastive",
    "stateless",
    "vamp2",
]
