"""The exact side, in float64: operators, eigensolvers, clusters, Rayleigh-Ritz."""

from lapwing.operators.operator import laplacian, operator_from_matrix

__all__ = ["laplacian", "operator_from_matrix"]
