"""What a Laplacian representation is used for. Each part takes any representation, exact or learned."""

from lapwing.applications.distances import (
    CoverTime,
    bottleneck_scores,
    commute_times,
    hitting_times,
    largest_hitting_time,
    mean_hitting_time,
    reversible_hitting_times,
    walk_cover_time,
)
from lapwing.applications.options import (
    Option,
    algebraic_connectivity,
    cover_time,
    covering_options,
    diffusion_options,
    diffusion_time,
    eigenoptions,
    eigenpurpose_options,
    expected_steps,
    point_options,
    state_graph,
)

__all__ = [
    "CoverTime",
    "Option",
    "algebraic_connectivity",
    "bottleneck_scores",
    "commute_times",
    "cover_time",
    "covering_options",
    "diffusion_options",
    "diffusion_time",
    "eigenoptions",
    "eigenpurpose_options",
    "expected_steps",
    "hitting_times",
    "largest_hitting_time",
    "mean_hitting_time",
    "point_options",
    "reversible_hitting_times",
    "state_graph",
    "walk_cover_time",
]
