"""Experience: collected from worlds and environments, made from arrays, stored, and examined before learning."""

from lapwing.data.auditing import Audit, audit, distinct_rows
from lapwing.data.buffer import ExperienceBuffer
from lapwing.data.builder import TrajectoryBuilder
from lapwing.data.cells import k_means_centres, nearest_cells
from lapwing.data.collecting import DEFAULT_EPISODE_LENGTH, collect
from lapwing.data.counting import TransitionCounts, count
from lapwing.data.trajectories import Trajectories

__all__ = [
    "DEFAULT_EPISODE_LENGTH",
    "Audit",
    "ExperienceBuffer",
    "Trajectories",
    "TrajectoryBuilder",
    "TransitionCounts",
    "audit",
    "collect",
    "count",
    "distinct_rows",
    "k_means_centres",
    "nearest_cells",
]
