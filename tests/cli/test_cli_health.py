"""The exit code and the lines of a result that must not be trusted."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw

pytestmark = pytest.mark.slow

LEARN = "learn GridMaze-7 --exact --dim 3 --no-report --out run"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def names(result: Any) -> list[str]:
    return [problem["name"] for problem in result.json["problems"]]


def test_a_result_in_good_health_is_zero(run: Any) -> None:
    result = run(f"{LEARN} --steps 200 --json")
    assert (result.code, names(result)) == (0, [])
    assert "trusted" not in result.err


def test_few_steps_are_what_was_asked_for(run: Any) -> None:
    result = run("learn GridMaze-17 --exact --dim 5 --steps 2 --no-report --out run")
    assert result.code == 0
    assert "note: not converged: components" in result.err
    assert "must not be trusted" not in result.err


def test_duals_at_their_bounds_are_three_and_said_once(run: Any) -> None:
    result = run(f"{LEARN} --steps 100 --objective allo(dual_rate=1000)")
    assert result.code == 3
    assert result.err.count("lapwing: this result must not be trusted: duals at their bounds") == 1
    assert result.err.count("note: duals at their bounds:") == 1
    assert "wrote run/model.json" in result.out
    assert lw.load("run").problems()[0].name == "duals at their bounds"


def test_divergence_writes_the_last_good_model_and_is_three(run: Any) -> None:
    result = run(f"{LEARN} --steps 20 --log-every 1 --learning-rate 1e4 --json")
    assert result.code == 3
    assert names(result)[0] == "diverged"
    assert lw.load("run").metadata["steps"] == result.json["steps"] < 20


def test_divergence_that_leaves_nothing_is_one_and_writes_nothing(run: Any) -> None:
    result = run(f"{LEARN} --steps 20 --learning-rate 1e30")
    assert result.code == 1
    assert "Lower learning_rate or barrier_rate; nothing is left" in result.err
    assert not Path("run").exists()


def test_a_collapsed_network_writes_what_is_left_of_it_and_is_three(run: Any) -> None:
    result = run(f"{LEARN} --steps 300 --objective gdo(barrier=0.02) --json")
    assert result.code == 3
    assert names(result)[0] == "collapsed"
    assert lw.load("run").problems()[0].name == "collapsed"


def test_solving_too_few_data_is_three_in_words_and_in_json(run: Any) -> None:
    run("collect GridMaze-9 --steps 500 --out data")
    result = run("solve data --dim 3 --out run")
    assert result.code == 3
    assert "lapwing: this result must not be trusted: too few data" in result.err
    assert "transitions in place of 500" in result.err
    again = run("solve data --dim 3 --out run --json")
    assert (again.code, names(again)) == (3, ["too few data"])
    assert again.json["problems"][0]["components"] == [2, 3]


def test_a_score_of_such_a_result_says_so_and_is_zero(run: Any) -> None:
    run("collect GridMaze-9 --steps 500 --out data")
    run("solve data --dim 3 --out run")
    result = run("score run --json")
    assert result.code == 0
    assert result.json["model"]["cosine"] > 0
    assert "must not be trusted: too few data" in result.err


def test_a_data_set_of_one_state_is_refused_and_the_audit_says_why(run: Any) -> None:
    run("collect room:1x1 --steps 50 --out data")
    for command in ("learn data --dim 1 --out run", "solve data --dim 1 --out run"):
        result = run(command)
        assert result.code == 1
        assert "lapwing: one state: all observations of this data set are the same" in result.err
        assert not Path("run").exists()
    assert "only one state was visited" in run("audit data").err
