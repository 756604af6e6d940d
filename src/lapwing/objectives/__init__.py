"""Graph-drawing objectives as named tuples of pure functions; adding one is one file and one row of ``OBJECTIVES``."""

from collections.abc import Callable

from lapwing.objectives.allo import AlloState, allo, dual_eigenvalues, multiplier_eigenvalues
from lapwing.objectives.barrier import Barrier, BarrierState
from lapwing.objectives.base import Info, Objective, State, Values
from lapwing.objectives.gdo import gdo
from lapwing.objectives.ggdo import ggdo
from lapwing.objectives.quadratic_penalty import quadratic_penalty
from lapwing.objectives.terms import (
    exact_graph_drawing_energy,
    graph_drawing_energy,
    inner_products,
    orthogonality_error,
    rayleigh_quotients,
)
from lapwing.objectives.wrappers import PermutedState, output_order, permuted

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
    "Info",
    "Objective",
    "PermutedState",
    "State",
    "Values",
    "allo",
    "dual_eigenvalues",
    "exact_graph_drawing_energy",
    "gdo",
    "ggdo",
    "graph_drawing_energy",
    "inner_products",
    "multiplier_eigenvalues",
    "orthogonality_error",
    "output_order",
    "permuted",
    "quadratic_penalty",
    "rayleigh_quotients",
]
