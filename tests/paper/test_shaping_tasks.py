"""Runs of the study of shaped rewards: goals, every reward by its formula, and cells of the table."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing_paper import deep_q_agent
from lapwing_paper.run_store import Finished, Outcome, Results, StudyRun
from lapwing_paper.seed_statistics import welch
from lapwing_paper.shaping_tasks import REWARDS, maze_task, penalised_components, shaped_rewards
from lapwing_paper.studies import shaping
from lapwing_paper.study import Plan, make_plan
from lapwing_paper.study_worlds import AUTHORS, StudyWorld, study_world
from lapwing_paper.tasks import perform

WORLD: Any = lw.make_world("GridMaze-9")
TASK = maze_task(WORLD)
MODEL = lw.solve(WORLD, 6)


def test_the_fifth_action_stays_and_the_goal_is_the_farthest_state() -> None:
    assert TASK.successors.shape == (len(TASK.observations), 5)
    assert TASK.successors[:, 4].tolist() == list(range(len(TASK.observations)))
    assert maze_task(lw.make_world("room:1x5")).goal in (0, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_follows_its_formula(name: str) -> None:
    found = shaped_rewards(name, TASK, MODEL, penalty=5.0)
    states, goal = TASK.observations, TASK.goal
    embeddings = {
        "l2": states,
        "rawmix": states,
        "mix with phi": penalised_components(MODEL, states, 5.0),
        "mix with u": MODEL.transform(states)[:, 1:],
        "mix with psi": MODEL.transform(states)[:, 1:] / np.sqrt(1.0 - MODEL.mu[1:6]),
    }
    embeddings["potential of psi"] = embeddings["mix with psi"]
    for state, action in np.ndindex(TASK.successors.shape):
        there = TASK.successors[state, action]
        sparse = 0.0 if there == goal else -1.0
        if name == "sparse":
            assert found[state, action] == sparse
            continue
        apart = np.linalg.norm(embeddings[name] - embeddings[name][goal], axis=1)
        if name.endswith((" u", " psi")):
            apart = apart / np.sqrt(np.mean(apart**2))
        wanted = {
            "l2": -apart[there],
            "potential of psi": sparse - 20.0 * (0.98 * apart[there] - apart[state]),
        }.get(name, 0.5 * sparse - 0.5 * apart[there])
        assert found[state, action] == pytest.approx(wanted, abs=1e-6)


def test_penalised_components_minimise_the_published_objective() -> None:
    """No other size of a component has a smaller value of it, and no size at all is best beyond the cut."""
    model, penalty = lw.solve(WORLD, 6), 3.0
    squares = (penalised_components(model, TASK.observations, penalty) ** 2).mean(axis=0)
    walk = 0.8 * lw.operator(WORLD).matrix.toarray() + 0.2 * np.eye(len(TASK.observations))
    lagged = 0.1 * walk @ np.linalg.inv(np.eye(len(walk)) - 0.9 * walk)
    rows = model.transform(TASK.observations)
    energy = 1.0 - np.einsum("ni,nm,mi->i", rows, lagged, rows) / len(rows)

    def objective(sizes: np.ndarray) -> np.ndarray:
        return 2.0 * energy * sizes + penalty * (sizes - 1.0 / 6.0) ** 2

    for other in np.linspace(0.0, 0.3, 301):
        assert (objective(squares) <= objective(np.full(6, other)) + 1e-12).all()
    assert squares[0] == pytest.approx(1.0 / 6.0)
    assert squares[-1] == 0.0


@pytest.mark.slow
def test_a_run_gives_a_curve_from_the_first_step_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"HIDDEN": 16, "LAYERS": 1, "BATCH": 16, "FIRST_TRANSITIONS": 200}
    for name, value in sizes.items():
        monkeypatch.setattr(deep_q_agent, name, value)
    settings = {"reward": "mix with psi", "steps": 1_000, "dim": 4, "transitions": 3_000}
    found = perform(StudyRun("x", study_world("GridMaze-9", None), 0, settings, "shaping").specification())
    assert [row["step"] for row in found.history] == [0, 1_000]
    returns = [row["return"] for row in found.history]
    assert found.numbers["final_return"] == returns[-1]
    assert found.numbers["mean_return"] == pytest.approx(np.mean(returns))
    assert found.numbers["optimum"] >= max(returns)


# --- the table -----------------------------------------------------------------------------------------------------


def results_with(curves: dict[str, list[list[float]]], origin: str = AUTHORS) -> tuple[Plan, Results]:
    """A plan of one world called HardMaze, and made-up curves by reward and seed."""
    world = StudyWorld("HardMaze", WORLD, origin)
    plan = Plan(shaping.STUDY, shaping.STUDY.full, (world,), is_full=True)
    finished = []
    for name, by_seed in curves.items():
        for seed, returns in enumerate(by_seed):
            history = [{"step": 1_000.0 * i, "return": value} for i, value in enumerate(returns)]
            means = {"optimum": -18.98, "final_return": returns[-1], "mean_return": float(np.mean(returns))}
            finished.append(Finished(StudyRun(name, world, seed, {}, "shaping"), Outcome(means, history)))
    return plan, Results(finished)


def test_cells_tell_when_the_threshold_is_reached_and_whether_psi_is_better() -> None:
    sparse = [[-50.0, -40.0, -30.0, -22.0], [-50.0, -45.0, -28.0, -20.0]]
    psi = [[-50.0, -20.0, -19.0, -19.0], [-50.0, -22.0, -21.0, -19.0]]
    plan, results = results_with({"sparse": sparse, "mix with psi": psi, "l2": [[-50.0, -49.0, -48.0, -47.0]] * 2})
    rows = {record["reward"]: record for record in shaping.tables(plan, results)[0].records}
    assert list(rows) == list(REWARDS)
    assert (rows["sparse"]["reached, published"], rows["sparse"]["threshold"]) == ("28,000", "-21.0")
    assert rows["sparse"]["reached"] == "3,000"
    assert rows["sparse"]["reached, first to last seed"] == "3,000 to 1 never"
    assert rows["mix with psi"]["reached"] == "1,000"
    assert rows["mix with psi"]["reached, first to last seed"] == "1,000 to 2,000"
    assert rows["l2"]["reached"] == "not by 3,000"
    assert rows["sparse"]["at the end"] == "-21.00 (1.41)"
    test = welch([np.mean(curve) for curve in psi], [np.mean(curve) for curve in sparse])
    assert rows["sparse"]["t of psi"] == f"{test.statistic:.1f}"
    assert rows["sparse"]["p"] == f"{test.p_value:.3f}"
    assert rows["mix with psi"]["p"] == rows["rawmix"]["reached"] == "–"


def test_a_stand_in_has_a_threshold_of_its_own_and_no_published_numbers() -> None:
    plan, results = results_with({"sparse": [[-50.0, -20.97]]}, origin="own stand-in")
    record = shaping.tables(plan, results)[0].records[0]
    assert (record["threshold"], record["reached, published"], record["reached"]) == ("-21.0", "–", "1,000")


def test_the_potential_is_trained_for_fewer_steps() -> None:
    steps = {run.method: run.settings["steps"] for run in make_plan(shaping.STUDY, full=True).runs()}
    assert steps.pop("potential of psi") == 10_000
    assert set(steps.values()) == {30_000}
