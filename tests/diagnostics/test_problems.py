"""Problems by name: what a certificate and a record say against a result, and how it is shown."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.diagnostics.problems import NAMES, RECORD, Problem, ProblemError, numbered
from lapwing.errors import LapwingError

FEW, MANY = 2_000, 200_000


@pytest.fixture(scope="module")
def few() -> lw.LaplacianRepresentation:
    return lw.solve(lw.collect("GridMaze-9", FEW, seed=0), 5)


def recorded(model: lw.LaplacianRepresentation, problems: Any, **record: Any) -> lw.LaplacianRepresentation:
    return replace(model, metadata={**model.metadata, RECORD: {"problems": problems, **record}})


@pytest.mark.parametrize("world", ["GridRoom-1", "GridMaze-9", "FourRooms", "Rooms-16", "Box-2"])
def test_exact_solutions_have_no_problem(world: str) -> None:
    assert lw.solve(world, 6).problems() == []


@pytest.mark.parametrize("world", ["GridMaze-9", "GridMaze-17"])
def test_counting_enough_data_has_no_problem(world: str) -> None:
    assert lw.solve(lw.collect(world, MANY, seed=0), 4).problems() == []


def test_too_few_data_are_named_with_the_components_that_suffer(few: lw.LaplacianRepresentation) -> None:
    (problem,) = few.problems()
    verdicts = few.certificate().verdicts
    assert problem.name == "too few data"
    assert problem.components == tuple(i for i, verdict in enumerate(verdicts, 1) if verdict == "too few data")
    assert problem.untrusted
    assert numbered(problem.components) in problem.message


def test_as_many_data_as_advised_are_enough(few: lw.LaplacianRepresentation) -> None:
    (problem,) = few.problems()
    digits = problem.advice.split("about ")[1].split(" transitions")[0]
    wanted = int(digits.replace(",", ""))
    assert wanted > FEW
    # Noise is itself estimated from the data: allow it half as much again.
    assert lw.solve(lw.collect("GridMaze-9", wanted * 3 // 2, seed=1), 5).problems() == []


def test_as_many_components_as_advised_can_be_had(few: lw.LaplacianRepresentation) -> None:
    (problem,) = few.problems()
    kept = problem.components[0] - 1
    assert f"ask for at most {kept} component" in problem.advice
    assert set(few.certificate().verdicts[:kept]) <= {"trusted", "degenerate"}


def test_what_more_data_cannot_show_is_answered_by_fewer_components(few: lw.LaplacianRepresentation) -> None:
    (problem,) = recorded(few, [], unseen=[0.5] * 5).problems()
    assert problem.advice.startswith("ask for at most")
    assert "collect" not in problem.advice


@pytest.mark.parametrize(
    "record",
    [{"transitions": -1}, {"transitions": 0}, {"unseen": [1e300] * 5}, {"unseen": [-1] * 5}],
)
def test_numbers_that_no_record_has_are_no_reason_to_fail(few: lw.LaplacianRepresentation, record: Any) -> None:
    found = recorded(few, [], **record)
    found.metadata["transitions"] = -5
    assert [problem.name for problem in found.problems()] == ["too few data"]


def test_a_record_that_is_no_list_of_numbers_is_left_aside(few: lw.LaplacianRepresentation) -> None:
    assert recorded(few, [], unseen=["a"] * 5).problems() == few.problems()


def test_eigenvalues_that_are_not_numbers_are_named(few: lw.LaplacianRepresentation) -> None:
    mu = few.mu.copy()
    mu[2] = np.nan
    (problem,) = replace(few, mu=mu).problems()
    assert (problem.name, problem.components) == ("not finite", (3,))


def test_values_that_are_not_numbers_are_named(few: lw.LaplacianRepresentation) -> None:
    encoder = type(few.encoder)(few.encoder.observations, few.encoder.values * np.inf, few.encoder.weights)  # type: ignore
    assert [problem.name for problem in replace(few, encoder=encoder).problems()] == ["not finite", "too few data"]


def test_episodes_of_one_transition_leave_nothing_to_judge_by(few: lw.LaplacianRepresentation) -> None:
    (problem,) = replace(few, residuals=np.full(len(few.mu), np.nan)).problems()
    assert (problem.name, problem.components) == ("not converged", (1, 2, 3, 4, 5))
    assert problem.advice == "collect longer episodes"


def test_problems_are_kept_in_the_file_and_come_most_serious_first(
    few: lw.LaplacianRepresentation, tmp_path: Path
) -> None:
    known = [Problem("duals at their bounds", (2,), "seen", "do"), Problem("diverged", (), "seen", "do")]
    model = recorded(few, [one.as_dict() for one in known])
    found = model.problems()
    assert [one.name for one in found] == ["diverged", "duals at their bounds", "too few data"]
    assert lw.load(model.save(tmp_path / "model")).problems() == found


def test_a_record_of_version_0_1_is_read(few: lw.LaplacianRepresentation, tmp_path: Path) -> None:
    old = {"name": "diverged", "components": [2], "words": "the loss was no longer finite", "advice": "lower it"}
    loaded = lw.load(recorded(few, [old]).save(tmp_path / "model"))
    assert loaded.problems()[0] == Problem("diverged", (2,), "the loss was no longer finite", "lower it")


@pytest.mark.parametrize("record", [3, [], {}, {"problems": [3]}, {"problems": [{"name": "bad luck"}]}], ids=str)
def test_a_damaged_record_is_an_error_that_says_so(few: lw.LaplacianRepresentation, record: Any) -> None:
    with pytest.raises(LapwingError, match="damaged"):
        replace(few, metadata={**few.metadata, RECORD: record}).problems()


def test_a_problem_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(LapwingError, match="no problem is called 'bad luck'; known: not finite"):
        Problem("bad luck", (), "", "")


def test_only_what_has_not_converged_may_still_be_what_was_asked_for() -> None:
    trusted = [name for name in NAMES if not Problem(name, (), "seen", "do").untrusted]
    assert trusted == ["not converged"]


@pytest.mark.parametrize(
    ("components", "words"),
    [([2], "component 2"), ([1, 2, 3], "components 1-3"), ([1, 3, 4, 9], "components 1, 3-4 and 9")],
)
def test_components_are_listed_shortly(components: list[int], words: str) -> None:
    assert numbered(components) == words


def test_more_components_than_states_are_refused_by_name() -> None:
    with pytest.raises(
        ProblemError, match="dim=12 is larger than the number of states, 11; ask for at most 11"
    ) as caught:
        lw.solve("GridMaze-7", 12)
    assert caught.value.problem.name == "above the rank"


def test_a_data_set_of_one_state_is_not_solved() -> None:
    still = lw.from_arrays([np.ones((5, 2))])
    with pytest.raises(ProblemError, match="one state: all observations of this data set are the same") as caught:
        lw.solve(still, 1)
    assert caught.value.problem.name == "one state"


def test_a_notebook_shows_problems_escaped(few: lw.LaplacianRepresentation) -> None:
    nasty = Problem("diverged", (), "<script>alert(1)</script>", "<b>do</b>")
    shown = recorded(few, [nasty.as_dict()])._repr_html_()
    assert "<b>diverged</b>: &lt;script&gt;alert(1)&lt;/script&gt;; &lt;b&gt;do&lt;/b&gt;" in shown
    assert "<b>too few data</b>" in shown
    assert "<b>too few data</b>" not in lw.solve("GridMaze-9", 5)._repr_html_()
