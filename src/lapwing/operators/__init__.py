"""The exact side, in float64: operators, eigensolvers, clusters, Rayleigh-Ritz."""
