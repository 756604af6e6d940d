"""Runs of the studies zero-shot and planning, in small worlds, and their numbers in the right cells."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.environments import ContinuousMaze
from lapwing_paper.policy_tasks import plan_in_maze, reach_goals, shortest_ways
from lapwing_paper.run_store import Finished, Outcome, Results
from lapwing_paper.studies.catalogue import STUDIES
from lapwing_paper.study import make_plan
from lapwing_paper.study_worlds import study_world

SMALL = ContinuousMaze(lw.Layout.from_text("XXXXX\nX   X\nXXX X\nX   X\nXXXXX", "small U"), 0.5)


def specification(world: Any, **settings: Any) -> dict[str, Any]:
    return {"world": world.describe(), "seed": 0, "settings": settings}


@pytest.mark.slow
def test_shares_of_goals_reached_are_the_reference_and_stand_beside_it() -> None:
    world = study_world("FourRoom-104", None).world
    made = reach_goals(specification(world, dims=[8, 50], transitions=0, steps=0)).numbers
    assert made["optimal"]["8"] == pytest.approx(0.554, abs=5e-4)
    assert made["optimal"]["50"] == pytest.approx(1.0)
    assert 0 < made["optimal"]["bound 8"] <= 1
    assert made["successor"]["8"] < made["optimal"]["8"]
    plan = make_plan(STUDIES["zero-shot"], seeds=1)
    runs = [Finished(run, Outcome(made)) for run in plan.runs() if run.method == "exact"]
    records = STUDIES["zero-shot"].tables(plan, Results(runs))[0].records
    (eight,) = [record for record in records if record["components"] == "8"]
    assert (eight["reference"], eight["exact"], eight["learned"]) == ("0.554", "0.5542", "–")


def test_ways_around_a_wall_are_measured_around_it() -> None:
    starts, goals = np.array([[1.5, 1.5], [1.5, 1.2]]), np.array([[3.5, 1.5], [1.5, 3.2]])
    around, straight = shortest_ways(SMALL, starts, goals)
    # Along the arm to the inner corner at (2, 3), down to (3, 3), and back.
    exact = 2 * np.hypot(0.5, 1.5) + 1.0
    assert exact <= around <= 1.12 * exact
    assert straight == pytest.approx(2.0, rel=0.15)


def test_plans_are_counted_by_planner_and_number_of_regions() -> None:
    options = {"horizon": 2, "samples": 16, "elites": 4}
    settings = {"dim": 4, "regions": [1, 3], "pairs": 6, "transitions": 3_000, "steps": 0}
    settings |= {"simulator": options, "recorded": options}
    made = plan_in_maze(specification(SMALL, embedding="exact", **settings)).numbers
    assert set(made) == {"simulator-1", "simulator-3", "recorded-1", "recorded-3"}
    assert len(made["simulator-1"]["reached"]) == 6
    assert np.mean(made["simulator-3"]["reached"]) > 0.8
    assert min(made["simulator-3"]["ratios"], default=1.0) > 0.8
    plain = plan_in_maze(specification(SMALL, embedding="coordinates", **settings)).numbers
    assert "cosine" not in plain
    plan = make_plan(STUDIES["planning"], seeds=1, worlds=("UMaze",))
    sixteen = {f"{kind}-16": made[f"{kind}-3"] for kind in ("simulator", "recorded")}
    runs = [Finished(run, Outcome(made | sixteen)) for run in plan.runs()]
    one, many, *_ = STUDIES["planning"].tables(plan, Results(runs))[0].records
    assert (one["regions"], many["regions"], many["local planner"]) == ("1", "16", "true dynamics")
    share = 100 * np.mean(made["simulator-3"]["reached"])
    assert many["psi, exact: reached, %"].startswith(f"{share:.1f} (")
