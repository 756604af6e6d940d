"""The agent of the study of shaped rewards: optima by value iteration, returns by simulation, and that it learns."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing_paper import deep_q_agent
from lapwing_paper.deep_q_agent import MazeTask, learning_curve, optimal_return, policy_return
from lapwing_paper.shaping_tasks import maze_task

# Third-party layouts, which are not ours to ship.
DOMAINS = Path(__file__).resolve().parents[3] / "shared" / "domains"
CORRIDOR = maze_task(lw.make_world("room:1x6"))  # type: ignore[arg-type]


def simulated_return(task: MazeTask, actions: np.ndarray) -> float:
    total = 0
    for start in range(len(actions)):
        state = start
        for _ in range(deep_q_agent.EPISODE_LENGTH):
            state = task.successors[state, actions[state]]
            total -= state != task.goal
    return total / len(actions)


@pytest.mark.parametrize(("name", "optimum"), [("HardMaze", -18.98), ("TwoRoom", -11.36)])
def test_the_optimum_is_the_published_one(name: str, optimum: float) -> None:
    if not DOMAINS.is_dir():
        pytest.skip("the authors' layouts are not on this machine")
    task = maze_task(lw.make_world(name, layouts=DOMAINS))  # type: ignore[arg-type]
    assert optimal_return(task) == pytest.approx(optimum, abs=0.005)


def test_the_optimum_of_a_corridor_is_its_mean_path_without_the_last_step() -> None:
    # From the far end of six cells: 4, 3, 2, 1, 0 misses, and none at the goal.
    assert optimal_return(CORRIDOR) == pytest.approx(-(4 + 3 + 2 + 1) / 6)


def test_the_return_of_a_policy_is_that_of_walking_it() -> None:
    task = maze_task(lw.make_world("GridMaze-9"))  # type: ignore[arg-type]
    for seed in range(5):
        actions = np.random.default_rng(seed).integers(5, size=len(task.successors))
        found = float(policy_return(task.successors, task.goal, jnp.asarray(actions)))
        assert found == pytest.approx(simulated_return(task, actions), abs=1e-4)


@pytest.mark.slow
def test_an_agent_learns_a_corridor_and_the_same_seed_gives_the_same_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"HIDDEN": 32, "LAYERS": 2, "BATCH": 32, "FIRST_TRANSITIONS": 500, "REFRESH_RATE": 0.5}
    for name, value in sizes.items():
        monkeypatch.setattr(deep_q_agent, name, value)
    steps, returns = learning_curve(CORRIDOR, CORRIDOR.sparse_rewards, 1_500, seed=0)
    assert steps.tolist() == [0, 1_000, 2_000]
    assert returns[-1] == pytest.approx(optimal_return(CORRIDOR), abs=1e-4)
    np.testing.assert_array_equal(learning_curve(CORRIDOR, CORRIDOR.sparse_rewards, 1_500, seed=0)[1], returns)
    assert learning_curve(CORRIDOR, -CORRIDOR.sparse_rewards, 1_500, seed=0)[1][-1] < -10.0
