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
from lapwing.applications.feeding import OnlineWrapper, VectorOnlineWrapper
from lapwing.applications.learned_options import LearnedOption, learn_options
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
    likeliest_next_states,
    point_options,
    state_graph,
    successor_components,
)
from lapwing.applications.planning import Journey, Planner, RegionGraph, Simulator, region_graph
from lapwing.applications.rewards import EigenReward, GoalDistance, MixedReward, PotentialReward, RepresentationFeatures
from lapwing.applications.simple_options import as_simple_options
from lapwing.applications.value_functions import LinearActionValues, least_squares_policy_iteration
from lapwing.applications.wrappers import RepresentationWrapper, VectorRepresentationWrapper
from lapwing.applications.zero_shot import (
    SuccessorFeatures,
    greedy_actions,
    optimal_action_values,
    reward_weights,
    successor_features,
)

__all__ = [
    "CoverTime",
    "EigenReward",
    "GoalDistance",
    "Journey",
    "LearnedOption",
    "LinearActionValues",
    "MixedReward",
    "OnlineWrapper",
    "Option",
    "Planner",
    "PotentialReward",
    "RegionGraph",
    "RepresentationFeatures",
    "RepresentationWrapper",
    "Simulator",
    "SuccessorFeatures",
    "VectorOnlineWrapper",
    "VectorRepresentationWrapper",
    "algebraic_connectivity",
    "as_simple_options",
    "bottleneck_scores",
    "commute_times",
    "cover_time",
    "covering_options",
    "diffusion_options",
    "diffusion_time",
    "eigenoptions",
    "eigenpurpose_options",
    "expected_steps",
    "greedy_actions",
    "hitting_times",
    "largest_hitting_time",
    "learn_options",
    "least_squares_policy_iteration",
    "likeliest_next_states",
    "mean_hitting_time",
    "optimal_action_values",
    "point_options",
    "region_graph",
    "reversible_hitting_times",
    "reward_weights",
    "state_graph",
    "successor_components",
    "successor_features",
    "walk_cover_time",
]
