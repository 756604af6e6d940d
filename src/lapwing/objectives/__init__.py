"""Graph-drawing objectives as named tuples of pure functions; adding one is one file and one row of ``OBJECTIVES``."""

from collections.abc import Callable

from lapwing.objectives.allo import AlloState, allo, dual_eigenvalues, multiplier_eigenvalues
from lapwing.objectives.constraints import Barrier, BarrierState, Constraints, rayleigh_quotients
from lapwing.objectives.gdo import gdo
from lapwing.objectives.ggdo import ggdo
from lapwing.objectives.objective import Details, Evaluation, Objective, State, Values, inner_products
from lapwing.objectives.permuted import permuted
from lapwing.objectives.quadratic_penalty import quadratic_penalty

OBJECTIVES: dict[str, Callable[..., Objective]] = {
    "gdo": gdo,
    "ggdo": ggdo,
    "quadratic_penalty": quadratic_penalty,
    "allo": allo,
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
    "State",
    "Values",
    "allo",
    "dual_eigenvalues",
    "gdo",
    "ggdo",
    "inner_products",
    "multiplier_eigenvalues",
    "permuted",
    "quadratic_penalty",
    "rayleigh_quotients",
]
