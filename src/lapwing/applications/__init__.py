"""What a representation is used for; each application takes one however it was made."""

from lapwing.applications.distances import (
    CoverTime,
    bottleneck_scores,
    commute_times,
    cover_time,
    diffusion_time,
    hitting_times,
    largest_hitting_time,
    reversible_hitting_times,
)

__all__ = [
    "CoverTime",
    "bottleneck_scores",
    "commute_times",
    "cover_time",
    "diffusion_time",
    "hitting_times",
    "largest_hitting_time",
    "reversible_hitting_times",
]
