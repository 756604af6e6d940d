"""Runs of the studies of distances: the reference numbers, and tables made from real outcomes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing_paper.distance_tasks import goal_by_goal, relative_error, stuck_share
from lapwing_paper.run_store import Finished, Results, StudyRun
from lapwing_paper.studies import commute_distances, directed_times
from lapwing_paper.study import make_plan
from lapwing_paper.study_worlds import study_world
from lapwing_paper.tasks import perform

# Third-party layouts, which are not ours to ship.
DOMAINS = Path(__file__).resolve().parents[3] / "shared" / "domains"


def numbers_of(task: str, world: str, settings: dict[str, Any], layouts: Path | None = None) -> dict[str, Any]:
    return perform(StudyRun("x", study_world(world, layouts), 0, settings, task).specification()).numbers


@pytest.mark.slow
def test_hitting_times_of_the_windy_rooms_agree_with_the_reference() -> None:
    dims = list(directed_times.DIMS)
    exact = numbers_of("hitting-times", "WindyRooms", {"dims": dims, "transitions": 0})
    assert exact["reversible"] == 1.0
    assert max(exact["full_rank_error"], exact["solve_error"]) < 1e-6
    counted = numbers_of("hitting-times", "WindyRooms", {"dims": dims, "transitions": 1_000_000})
    for dim, (directed, commute) in directed_times.REFERENCE["WindyRooms"].items():
        assert exact[f"directed_{dim}"] == pytest.approx(directed, abs=5e-4)
        assert exact[f"symmetrised_{dim}"] == pytest.approx(commute, abs=5e-4)
        # Of a reversible walk the symmetrised one is the walk itself.
        assert exact[f"symmetrised_hitting_{dim}"] == pytest.approx(directed, abs=5e-4)
        assert counted[f"directed_{dim}"] == pytest.approx(directed, abs=0.02)
    assert "full_rank_error" not in counted


def test_where_doors_lead_one_way_directed_hitting_times_are_far_ahead() -> None:
    found = numbers_of("hitting-times", "OneWayRooms", {"dims": [11], "transitions": 0})
    assert found["reversible"] == 0.0
    assert found["directed_11"] > 0.96
    assert max(found["symmetrised_11"], found["symmetrised_hitting_11"]) < 0.63


@pytest.mark.parametrize("world", commute_distances.STUDY.worlds)
def test_the_commute_identity_holds_in_every_world_of_the_study(world: str) -> None:
    found = numbers_of("distances", world, {"dim": 11, "transitions": 0, "steps": 0})
    assert found["identity_error"] < 1e-6
    assert found["psi_spearman"] > found["plain_spearman"]


@pytest.mark.parametrize("world", list(commute_distances.REFERENCE))
def test_exact_distances_agree_with_the_reference(world: str) -> None:
    layouts = None if world == "GridRoom-1" else DOMAINS
    if layouts is not None and not layouts.is_dir():
        pytest.skip("the authors' layouts are not on this machine")
    found = numbers_of("distances", world, {"dim": 11, "transitions": 0, "steps": 0}, layouts)
    names = ("plain_spearman", "psi_spearman", "plain_stuck", "psi_stuck")
    for name, wanted in zip(names, commute_distances.REFERENCE[world], strict=True):
        assert found[name] == pytest.approx(wanted, abs=6e-4), name


def test_learned_distances_have_every_number_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a model was made by makes no difference, and training takes long.
    monkeypatch.setattr("lapwing_paper.distance_tasks.learn", lambda data, dim, **options: lw.solve(data, dim))
    plan = make_plan(commute_distances.STUDY, worlds=("GridMaze-9",), steps=2)
    runs = plan.runs()
    settings = {run.method: dict(run.settings) for run in runs}
    settings["learned"]["transitions"] = 5000
    finished = [
        Finished(run, perform(StudyRun(run.method, run.world, 0, settings[run.method], run.task).specification()))
        for run in runs
    ]
    spearman, stuck = plan.study.tables(plan, Results(finished))
    missing = {head for table in (spearman, stuck) for head, cell in table.records[0].items() if cell == "–"}
    assert missing == {"plain, reference", "psi, reference"}


def test_stuck_pairs_are_those_without_a_nearer_neighbour() -> None:
    operator = lw.operator("room:1x4")
    cells = np.arange(4)
    paths = np.abs(cells[:, None] - cells[None, :]).astype(float)
    assert stuck_share(paths, operator) == 0.0
    # From the first cell everything looks near, and the way there farther.
    paths[0, 1:] = 0.5
    assert stuck_share(paths, operator) == pytest.approx(2 / 12)


def test_the_independent_solver_and_its_error() -> None:
    times = goal_by_goal(lw.operator([[0.5, 0.5], [0.25, 0.75]]))
    np.testing.assert_allclose(times, [[0.0, 2.0], [4.0, 0.0]])
    assert relative_error(times + np.array([[0.0, 0.2], [0.0, 0.0]]), times) == pytest.approx(0.1)
