"""``lapwing online``: a stream of worlds, its report of drift, going on, and wrong input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.cli import main as cli

LINE = "online room:1x12 room:3x4 --dim 3 --data-steps 2000 --every 500 --capacity 1500 --steps 4 --out run"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(line: str) -> int:
    return cli.main(line.split())


def test_a_stream_of_two_worlds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"{LINE} --json") in (0, 3)
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    # The stream passes from one world to the other after about 2,000 states.
    assert any(2000 < moment <= 2600 for moment in facts["drift"]["moments"])
    assert facts["drift"]["seen"] >= 4000
    assert {"drift.png", "eigenvectors.png", "model.json"} <= set(facts["files"])
    model = lw.load("run")
    # What the window holds is of the second world alone.
    assert np.abs(model.eigenvalues - lw.solve("room:3x4", dim=3).eigenvalues).max() < 0.03


def test_it_goes_on_where_it_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    run(LINE)
    first = lw.OnlineLearner.load("run/learner").seen
    capsys.readouterr()
    assert run("online room:3x4 --data-steps 1000 --every 500 --resume --out run") in (0, 3)
    assert "surprising steps" in capsys.readouterr().out
    assert lw.OnlineLearner.load("run/learner").seen > first


def test_recorded_experience_is_streamed_too() -> None:
    lw.collect("GridMaze-7", 2000, seed=0).save("data")
    assert run("online data --dim 3 --every 500 --steps 2 --out run") in (0, 3)
    assert lw.OnlineLearner.load("run/learner").seen == lw.Trajectories.load("data").num_states


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("online", "name at least one world"),
        ("online Roms-16 --out run", "did you mean"),
        ("online room:3x4 --every 0 --out run", "at least 1"),
        ("online room:3x4 --capacity 1 --out run", "capacity"),
        ("online room:3x4 --resume --out run", "holds no online learner"),
        ("online room:1x3 --dim 9 --data-steps 200 --every 100 --out run", "larger than the number"),
        ("online room:3x4 --objective alo --out run", "did you mean"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line) == 1
    assert message in capsys.readouterr().err
    assert not (Path("run") / "model.json").exists()
    assert not list(Path().glob("run/learner/*"))


def test_learning_may_begin_with_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    short = "--dim 3 --data-steps 5000 --hidden 32 --no-report"
    assert run(f"learn GridMaze-7 {short} --steps 100 --out first") in (0, 3)
    assert run(f"learn GridMaze-7 {short} --steps 1 --all-steps --start first --out second") in (0, 3)
    assert run(f"learn GridMaze-7 {short} --steps 1 --all-steps --out third") in (0, 3)
    truth = lw.solve("GridMaze-7", dim=3)
    started, fresh = (lw.score(lw.load(name), truth).subspace_cosine for name in ("second", "third"))
    assert started > fresh
    capsys.readouterr()
    assert run("learn GridMaze-7 --dim 4 --data-steps 5000 --start first --out fourth") == 1
    assert "outputs, but dim" in capsys.readouterr().err
