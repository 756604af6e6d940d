"""The exact side, in float64: operators, eigensolvers, clusters of eigenvalues, Rayleigh-Ritz."""

from lapwing.operators.clusters import canonical_signs, group_degenerate
from lapwing.operators.eigensolver import Eigenpairs, smallest_eigenpairs
from lapwing.operators.lags import geometric_lags, lags_inside_episodes
from lapwing.operators.operator import (
    Operator,
    laplacian,
    operator_from_directed_counts,
    operator_from_matrix,
    operator_from_trajectories,
    operator_from_world,
    stationary_distribution,
)
from lapwing.operators.ritz import Ritz

__all__ = [
    "Eigenpairs",
    "Operator",
    "Ritz",
    "canonical_signs",
    "geometric_lags",
    "group_degenerate",
    "lags_inside_episodes",
    "laplacian",
    "operator_from_directed_counts",
    "operator_from_matrix",
    "operator_from_trajectories",
    "operator_from_world",
    "smallest_eigenpairs",
    "stationary_distribution",
]
