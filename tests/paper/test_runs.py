"""A run's key is its identity and a safe file name; results answer by world and method."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.environments import world_from_description
from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import Layout
from lapwing_paper.run_store import Finished, Outcome, Results, StudyRun
from lapwing_paper.study_worlds import OTHER, StudyWorld, study_world

MAZE = study_world("GridMaze-7", None)
SETTINGS: dict[str, Any] = {"preset": "paper", "transitions": 100, "options": {"steps": 10, "barrier": 0.5}}
RUN = StudyRun("ALLO", MAZE, 3, SETTINGS)


def finished(
    method: str, seed: int, numbers: dict[str, Any], history: list[dict[str, float]] | None = None
) -> Finished:
    return Finished(StudyRun(method, MAZE, seed, SETTINGS), Outcome(numbers, history or []))


def test_the_key_is_the_same_whatever_the_run_is_called_and_however_its_settings_are_ordered() -> None:
    assert replace(RUN, method="another label").key == RUN.key
    backwards = {name: SETTINGS[name] for name in reversed(SETTINGS)}
    assert replace(RUN, settings=backwards).key == RUN.key
    assert StudyRun("ALLO", study_world("GridMaze-7", None), 3, json.loads(json.dumps(SETTINGS))).key == RUN.key


def test_the_key_does_not_depend_on_whose_layout_it_is() -> None:
    assert replace(RUN, world=StudyWorld("my favourite", MAZE.world, OTHER)).key == RUN.key


def with_one_cell_less() -> StudyWorld:
    world = MAZE.world
    assert isinstance(world, GridWorld)
    text = list(world.layout.to_text())
    text[world.layout.to_text().index(" ") if " " in text else text.index(".")] = "X"
    return StudyWorld("GridMaze-7", GridWorld(Layout.from_text("".join(text), world.name)), MAZE.origin)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"settings": {**SETTINGS, "transitions": 101}},
        {"settings": {**SETTINGS, "options": {**SETTINGS["options"], "barrier": 0.25}}},
        {"settings": {**SETTINGS, "glued_every": 5}},
        {"task": "theory"},
        {"world": None},
        {"world": study_world("GridMaze-9", None)},
        {"world": with_one_cell_less()},
    ],
)
def test_the_key_is_different_for_whatever_differs(change: dict[str, Any]) -> None:
    assert replace(RUN, **change).key != RUN.key


def test_a_changed_layout_under_the_same_name_is_another_run() -> None:
    changed = replace(RUN, world=with_one_cell_less())
    assert changed.world_label == RUN.world_label
    assert changed.key != RUN.key


@pytest.mark.parametrize("name", ["maze:10x15:3", "room:3x4", "rooms:2x2x3:5", "GridRoom-16", "Box-2"])
def test_the_key_is_a_safe_file_name_that_a_person_can_read(name: str) -> None:
    found = study_world(name, None)
    key = StudyRun("m", found, 12, SETTINGS).key
    assert re.fullmatch(r"learn-[A-Za-z0-9._-]+-seed12-[0-9a-f]{12}", key)
    assert re.sub(r"[^A-Za-z0-9.-]", "_", found.world.name) in key


@given(st.text(min_size=1, max_size=20))
def test_no_name_of_a_world_leads_out_of_the_folder(name: str) -> None:
    world = GridWorld(Layout.from_text("XXXX\nX  X\nXXXX", name))
    key = StudyRun("m", StudyWorld(name, world, OTHER), 0).key
    assert not set(key) & set("/\\:\0\n")
    assert key not in (".", "..")


def test_an_order_is_plain_json_and_makes_the_world_again() -> None:
    order = json.loads(json.dumps(RUN.specification(), allow_nan=False))
    assert order == RUN.specification()
    assert (order["task"], order["seed"], order["settings"]) == ("learn", 3, SETTINGS)
    again = world_from_description(order["world"])
    assert again is not None
    assert again.describe() == MAZE.world.describe()


def test_a_run_without_a_world_has_a_dash_for_its_name() -> None:
    run = StudyRun("claims", None, 0, {"size": 6}, "theory")
    assert run.world_label == "-"
    assert run.specification()["world"] is None
    assert run.key.startswith("theory-seed0-")


def test_results_are_asked_by_world_and_method_in_the_order_of_the_plan() -> None:
    other = Finished(StudyRun("ALLO", study_world("GridMaze-9", None), 0, SETTINGS), Outcome({"cosine": 0.5}))
    results = Results([finished("ALLO", 1, {"cosine": 0.9}), other, finished("ALLO", 0, {"cosine": 0.8})])
    assert [one.run.seed for one in results.select("GridMaze-7", "ALLO")] == [1, 0]
    assert results.values("cosine", "GridMaze-7", "ALLO").tolist() == [0.9, 0.8]
    assert results.values("cosine", method="ALLO").tolist() == [0.9, 0.5, 0.8]
    assert results.values("cosine", "GridMaze-7", "GGDO").shape == (0,)
    assert results.select("GridMaze-9")[0].numbers == {"cosine": 0.5}


def test_values_of_lists_are_a_table_with_one_row_per_run() -> None:
    results = Results([finished("ALLO", seed, {"cosines": [seed, 0.5, 1]}) for seed in range(2)])
    np.testing.assert_array_equal(results.values("cosines"), [[0.0, 0.5, 1.0], [1.0, 0.5, 1.0]])
    assert results.values("cosines").dtype == np.float64


def test_none_inside_a_list_is_nan() -> None:
    rows = [{"dual": [None, 0.5]}, {"dual": [0.1, None]}]
    results = Results([finished("ALLO", seed, numbers) for seed, numbers in enumerate(rows)])
    np.testing.assert_array_equal(results.values("dual"), [[np.nan, 0.5], [0.1, np.nan]])


def test_runs_that_have_no_such_number_are_left_out() -> None:
    rows = [{"cosine": 0.5, "dual": [0.1, 0.2]}, {"collapsed": "to 2 components"}, {"cosine": None, "dual": None}]
    results = Results([finished("ALLO", seed, numbers) for seed, numbers in enumerate(rows)])
    np.testing.assert_array_equal(results.values("cosine"), [0.5])
    np.testing.assert_array_equal(results.values("dual"), [[0.1, 0.2]])
    assert results.values("squared_norms").shape == (0,)


def test_curves_reach_as_far_as_the_shortest_history() -> None:
    long = [{"step": 10.0 * i, "cosine": 0.1 * i} for i in range(1, 5)]
    short = [{"step": 10.0 * i, "cosine": 0.2 * i} for i in range(1, 3)]
    results = Results([finished("ALLO", 0, {}, long), finished("ALLO", 1, {}, short), finished("ALLO", 2, {})])
    steps, values = results.curves("cosine", "GridMaze-7", "ALLO")
    np.testing.assert_array_equal(steps, [10.0, 20.0])
    np.testing.assert_allclose(values, [[0.1, 0.2], [0.2, 0.4]])


def test_a_column_that_a_history_lacks_is_nan_and_no_history_is_empty() -> None:
    results = Results([finished("ALLO", 0, {}, [{"step": 1.0, "loss": 2.0}])])
    steps, values = results.curves("cosine", "GridMaze-7", "ALLO")
    assert steps.tolist() == [1.0]
    assert np.isnan(values).all()
    steps, values = results.curves("cosine", "GridMaze-9", "ALLO")
    assert (steps.shape, values.shape) == ((0,), (0, 0))
