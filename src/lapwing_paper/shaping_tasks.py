"""What a run of the study of shaped rewards does: train an agent on one reward in one world."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from lapwing import GridWorld, LaplacianRepresentation, collect, geometric, learn
from lapwing.applications import GoalDistance, MixedReward, PotentialReward
from lapwing.environments import world_from_description
from lapwing.errors import DataError
from lapwing_paper.deep_q_agent import DISCOUNT, EPISODE_LENGTH, MazeTask, Table, learning_curve, optimal_return
from lapwing_paper.run_store import Outcome

# Wu, Tucker & Nachum (2019): rows and columns, the border counts; and the weight of their orthonormality penalty.
GOALS = {"HardMaze": (10, 10), "TwoRoom": (9, 15)}
PENALTIES = {"HardMaze": 1.0, "TwoRoom": 5.0}
OTHER_PENALTY = 5.0
GAP_DISCOUNT = 0.9

POTENTIAL_SCALE = 20.0
"""Steps from a typical state to the goal: the size of the values that a potential anticipates."""


def train_on_reward(specification: dict[str, Any]) -> Outcome:
    """The learning curve of an agent that gets a shaped reward.

    Settings: ``reward``, a name in :data:`REWARDS`; ``steps`` of training; ``dim`` components learned from
    ``transitions`` of a random walk.

    Args:
        specification: of the run.

    Returns:
        The optimal return, the last one and their mean over training; returns by step as the history.
    """
    settings, seed = specification["settings"], int(specification["seed"])
    world = world_from_description(specification["world"])
    if not isinstance(world, GridWorld):
        raise DataError("agents are trained in grid worlds")
    task = maze_task(world)
    model = None
    if settings["reward"] in NEED_A_MODEL:
        data = collect(world, int(settings["transitions"]), seed=seed, episode_length=EPISODE_LENGTH)
        model = learn(data, dim=int(settings["dim"]), seed=seed)
    rewards = shaped_rewards(settings["reward"], task, model, PENALTIES.get(world.name, OTHER_PENALTY))
    steps, returns = learning_curve(task, rewards, int(settings["steps"]), seed)
    numbers = {
        "states": len(task.successors),
        "optimum": optimal_return(task),
        "final_return": float(returns[-1]),
        "mean_return": float(returns.mean()),
    }
    history = [{"step": int(step), "return": float(value)} for step, value in zip(steps, returns, strict=True)]
    return Outcome(numbers, history)


def maze_task(world: GridWorld) -> MazeTask:
    """A grid world with a fifth action that stays, and with a goal.

    Args:
        world: the published goal is taken where it is one of the published worlds.

    Returns:
        Its tables; elsewhere the goal is the state with the longest shortest paths to it, on average.
    """
    stay = np.arange(world.num_states, dtype=np.int32)[:, None]
    row, column = GOALS.get(world.name, (0, 0))
    goal = int(world.layout.index[row, column]) if max(row, column) < min(world.layout.shape) else -1
    if goal < 0:
        paths = shortest_path(world.transition_matrix(), unweighted=True)
        goal = int(paths.mean(axis=0).argmax())
    return MazeTask(world.table(), np.concatenate([world.successors, stay], axis=1), goal)


def shaped_rewards(name: str, task: MazeTask, model: LaplacianRepresentation | None, penalty: float) -> Table:
    """What each action in each state is rewarded with.

    Args:
        name: which reward.
        task: the world and its goal.
        model: the representation, where the reward uses one.
        penalty: of the objective whose minimum ``mix with phi`` is.

    Returns:
        (n, actions) rewards.
    """
    sparse, there = task.sparse_rewards, task.successors
    if name == "sparse":
        return sparse
    if name in ("l2", "rawmix"):
        apart = _distances(task.observations, task.goal)[there]
        return -apart if name == "l2" else 0.5 * (sparse - apart)
    if model is None:
        raise DataError(f"the reward {name} needs a representation")
    if name == "mix with phi":
        return 0.5 * (sparse - _distances(penalised_components(model, task.observations, penalty), task.goal)[there])
    distance = GoalDistance(model, task.observations[task.goal], scaled=name != "mix with u")
    potential = PotentialReward(distance, DISCOUNT, POTENTIAL_SCALE)
    reward = potential if name == "potential of psi" else MixedReward(distance)
    before = np.repeat(task.observations, there.shape[1], axis=0)
    none_ends = np.zeros(there.size, dtype=bool)
    return reward(before, task.observations[there.ravel()], sparse.ravel(), none_ends).reshape(there.shape)


NEED_A_MODEL = ("mix with phi", "mix with u", "mix with psi", "potential of psi")
REWARDS = ("sparse", "l2", "rawmix", *NEED_A_MODEL)


def penalised_components(
    model: LaplacianRepresentation, observations: NDArray[Any], penalty: float
) -> NDArray[np.float64]:
    """The minimum of the published objective in closed form, from eigenpairs.

    The objective is ``E|phi(s) - phi(s')|^2 + penalty |E[phi phi^T] - I / d|^2`` over pairs with geometric lags. With
    ``phi_i = sqrt(n_i) u_i`` it is ``sum_i 2 lambda_i n_i + penalty (n_i - 1 / d)^2``, and ``n_i = max(0, 1 / d -
    lambda_i / penalty)``: components with larger eigenvalues are damped or absent.

    Args:
        model: of d dimensions, of a walk with four moves.
        observations: (n, ...) observations.
        penalty: weight of the orthonormality penalty.

    Returns:
        (n, d) values.
    """
    # The published walk stays with probability 1/5.
    mu = (4.0 * model.mu[: model.dim] + 1.0) / 5.0
    squares = np.maximum(0.0, 1.0 / model.dim - geometric(GAP_DISCOUNT).from_mu(mu) / penalty)
    return np.asarray(model.transform(observations) * np.sqrt(squares), dtype=np.float64)


def _distances(values: NDArray[Any], goal: int) -> Table:
    return np.asarray(np.linalg.norm(values - values[goal], axis=1), dtype=np.float64)
