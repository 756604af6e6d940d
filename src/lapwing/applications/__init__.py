"""What a representation is used for; each application takes one however it was made."""

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

__all__ = [
    "CoverTime",
    "bottleneck_scores",
    "commute_times",
    "hitting_times",
    "largest_hitting_time",
    "mean_hitting_time",
    "reversible_hitting_times",
    "walk_cover_time",
]
