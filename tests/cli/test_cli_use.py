"""``lapwing use``: each use leaves a picture and JSON that agree with the functions of the package."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.applications import commute_times, diffusion_time, eigenoptions

WORLD = lw.make_world("FourRooms")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lw.solve(WORLD, dim=6).save(tmp_path_factory.mktemp("use") / "model")


def written(folder: Path, name: str) -> Any:
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return json.loads((folder / f"{name}.json").read_text())


def test_distances_are_those_of_the_package(run: Any, model: Path, tmp_path: Path) -> None:
    result = run(f"use distances {model} --start 1,1 --out {tmp_path}")
    assert result.code == 0
    assert "rank correlation" in result.out
    facts = written(tmp_path, "distances")
    assert facts["start"] == {"state": 0, "place": "1,1"}
    wanted = commute_times(lw.load(model), WORLD.table()[:1], WORLD.table())[0]
    np.testing.assert_allclose(facts["commute_times"], wanted, rtol=1e-5)
    assert facts["spearman_psi"] > facts["spearman_plain"]
    by_number = run(f"use distances {model} --start 0 --out {tmp_path} --json").json
    assert by_number["commute_times"] == facts["commute_times"]
    assert by_number["files"] == [str(tmp_path / "distances.png"), str(tmp_path / "distances.json")]


def test_options_are_those_of_the_package(run: Any, model: Path, tmp_path: Path) -> None:
    facts = run(f"use options {model} --components 2,3 --out {tmp_path} --json").json
    options = eigenoptions(lw.load(model), WORLD, [2, 3])
    assert [one["name"] for one in facts["options"]] == ["u2", "-u2", "u3", "-u3"]
    assert facts["options"][0]["actions"] == options[0].actions.tolist()
    assert facts["diffusion_time_of_actions"] == pytest.approx(620.769, abs=1e-3)
    assert facts["diffusion_time"] == pytest.approx(diffusion_time(WORLD, options))
    for kind, count in (("covering --count 2", 2), ("diffusion --time 13", 15)):
        assert len(run(f"use options {model} --kind {kind} --out {tmp_path} --json").json["options"]) == count


def test_options_are_learned_from_data_where_asked_for(run: Any, model: Path, tmp_path: Path) -> None:
    data = lw.collect(WORLD, 100_000, seed=0, record="actions").save(tmp_path / "data")
    facts = run(f"use options {model} --components 2 --learned --data {data} --out {tmp_path} --json").json
    exact = eigenoptions(lw.load(model), WORLD, [2])
    ends = [f"{row:g},{column:g}" for row, column in lw.plots.field_places(WORLD)]
    wanted = [ends[state] for state in np.flatnonzero(exact[0].termination_probabilities)]
    assert set(facts["options"][0]["ends"]) == set(wanted)


def test_climbing_the_potential_is_followed_to_its_end(run: Any, model: Path, tmp_path: Path) -> None:
    psi = run(f"use shape {model} --goal 11,11 --out {tmp_path} --json").json
    plain = run(f"use shape {model} --goal 11,11 --plain --out {tmp_path} --json").json
    assert psi["potential"][psi["goal"]["state"]] == 0.0
    assert max(psi["potential"]) == 0.0
    assert psi["reached"] > plain["reached"]
    assert written(tmp_path, "shape")["scaled"] is False


def test_a_plan_leads_to_the_goal(run: Any, model: Path, tmp_path: Path) -> None:
    facts = run(f"use plan {model} --start 1,1 --goal 11,11 --regions 8 --out {tmp_path} --json").json
    assert facts["reached"]
    assert facts["way"][0] == [1.0, 1.0]
    assert facts["way"][-1] == [11.0, 11.0]
    assert facts["path"][0] == facts["start"]["region"]
    steps = np.abs(np.diff(facts["way"], axis=0)).sum(axis=1)
    assert steps.max() == 1.0
    assert written(tmp_path, "plan")["steps"] == facts["steps"] == len(facts["way"]) - 1


def test_data_of_an_unknown_environment_are_drawn_by_their_first_two_numbers(run: Any, tmp_path: Path) -> None:
    data = lw.collect("Box-3", 3_000, seed=0)
    folder = replace(lw.solve("Box-3", dim=4), metadata={}).save(tmp_path / "model")
    stored = data.save(tmp_path / "data")
    assert run(f"use distances {folder}").code == 1
    result = run(f"use distances {folder} --data {stored} --start 0,0,0 --out {tmp_path} --json")
    assert result.code == 0
    assert len(result.json["commute_times"]) == len(data.observations)
    assert "spearman_psi" not in result.json
    plan = run(
        f"use plan {folder} --data {stored} --start 0,0,0 --goal 0.4,0.3,0.2 --regions 4 --out {tmp_path} --json"
    ).json
    assert "way" not in plan
    assert plan["path"]
    assert run(f"use distances {folder} --data {stored} --start 99,99,99").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("shape MODEL", "--goal"),
        ("shape MODEL --goal 0,0", "wall"),
        ("shape MODEL --goal 104", "numbered"),
        ("shape MODEL --goal 1,2,3", "2 numbers"),
        ("shape MODEL --goal nonsense", "row, column"),
        ("plan MODEL --start 1,1", "--goal"),
        ("options MODEL --components 9", "components"),
        ("options MODEL --components 1", "components"),
        ("options MODEL --learned", "--data"),
        ("options MODEL --kind covering --components 2", "eigenoptions"),
        ("options MODEL --kind covering --count 3", "even"),
        ("distances nowhere", "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    run: Any, model: Path, tmp_path: Path, arguments: str, message: str
) -> None:
    result = run(f"use {arguments.replace('MODEL', str(model))} --out {tmp_path / 'new'}")
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_entered_or_was_never_visited_is_refused(run: Any, tmp_path: Path) -> None:
    circle = lw.solve("NoisyRotation", dim=3).save(tmp_path / "circle")
    assert "cannot be entered" in run(f"use plan {circle} --start 0 --goal 50").err
    counted = lw.solve(lw.collect("Rooms-16", 4_000, seed=0), dim=4).save(tmp_path / "counted")
    assert "never visited" in run(f"use distances {counted}").err


def test_a_small_world_has_fewer_regions_and_directed_dynamics_are_named(run: Any, tmp_path: Path) -> None:
    small = lw.solve("GridMaze-7", dim=4).save(tmp_path / "small")
    assert run(f"use plan {small} --start 0 --goal 10 --json").json["reached"]
    directed = lw.solve("OneWayRooms", dim=4).save(tmp_path / "directed")
    result = run(f"use shape {directed} --goal 1,1")
    assert result.code == 0
    assert "directed" in result.err


def test_a_model_of_one_component_is_refused(run: Any, tmp_path: Path) -> None:
    folder = lw.solve(WORLD, dim=1).save(tmp_path / "model")
    assert "constant component" in run(f"use options {folder}").err
    for use in ("distances MODEL", "options MODEL", "shape MODEL --goal 1,1", "plan MODEL --start 1,1 --goal 2,2"):
        assert run(f"use {use.replace('MODEL', str(folder))}").code == 1
