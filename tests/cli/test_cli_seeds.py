"""Several seeds of one command: a run each, one page, and one set of checkpoints to resume from."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.cli.learn_command import MAX_SEEDS
from lapwing.report.page import MAX_RUNS
from lapwing.report.stored_run import read_run
from lapwing.storage import checkpoints
from lapwing.storage.run_configuration import CHECKPOINTS
from lapwing.training import loop

pytestmark = pytest.mark.slow

LEARN = "learn GridMaze-7 --dim 3 --data-steps 30000 --steps 60 --log-every 10 --all-steps --seed 4 --seeds 2"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from lapwing.cli import main as cli

    folder = tmp_path_factory.mktemp("template") / "run"
    assert cli.main([*LEARN.split(), "--out", str(folder)]) == 0
    return folder


@pytest.fixture
def learned(template: Path) -> Path:
    """A finished run of two seeds."""
    return Path(shutil.copytree(template, "run"))


def test_each_seed_is_a_run_of_its_own_and_one_page_shows_all(learned: Path) -> None:
    assert sorted(path.name for path in learned.glob("[!.]*")) == [
        CHECKPOINTS, "report.html", "run.json", "seed-4", "seed-5"
    ]  # fmt: skip
    runs = [read_run(learned / f"seed-{seed}") for seed in (4, 5)]
    assert [run.model.metadata["seed"] for run in runs] == [4, 5]
    assert all(run.scores.learned is not None and run.scores.learned.subspace_cosine > 0.9 for run in runs)
    assert runs[0].history[-1]["cosine"] == pytest.approx(runs[0].scores.learned.subspace_cosine, abs=1e-3)
    assert runs[0].history[0]["loss"] != runs[1].history[0]["loss"]
    page = (learned / "report.html").read_text()
    assert "seed-4" in page
    assert "seed-5" in page


def test_the_table_has_a_row_for_each_seed_their_mean_and_counting(run: Any) -> None:
    result = run(f"{LEARN} --no-report --out run")
    assert result.code == 0
    assert [word for word in ("4", "5", "mean", "tabular estimate") if f"│ {word} " in result.out] == [
        "4", "5", "mean", "tabular estimate"
    ]  # fmt: skip
    assert "wrote run/seed-4 (11 files)" in result.out
    assert not Path("run/report.html").exists()


def test_a_finished_run_is_shown_again_and_nothing_is_written(learned: Path, run: Any) -> None:
    before = {path: path.stat().st_mtime_ns for path in learned.rglob("*.*")}
    result = run("learn --resume run --json")
    assert [found["folder"] for found in result.json["seeds"]] == ["run/seed-4", "run/seed-5"]
    assert result.json["files"] == ["report.html"]
    shown = run("learn --resume run")
    assert "wrote" not in shown.out
    assert "nothing was left to do" in shown.err
    assert {path: path.stat().st_mtime_ns for path in learned.rglob("*.*")} == before


class KilledError(BaseException):
    """Stands for a kill: nothing may catch it."""


@pytest.mark.parametrize("batches", ["exact", "sampled"])
def test_a_kill_is_gone_on_from_to_the_same_bits_of_every_seed(
    run: Any, monkeypatch: pytest.MonkeyPatch, batches: str
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN", 0.0)
    words = f"{LEARN} --no-report --batches {batches} --batch-size 64"
    assert run(f"{words} --out whole").code == 0
    write = checkpoints.write_bytes
    with monkeypatch.context() as patched:

        def until_the_third(path: Path, content: bytes) -> Path:
            if path.name.startswith("step-0000000030"):
                raise KilledError
            return write(path, content)

        patched.setattr(checkpoints, "write_bytes", until_the_third)
        with pytest.raises(KilledError):
            run(f"{words} --out run")
    assert not list(Path("run").glob("seed-*"))
    assert run("learn --resume run").code == 0
    for seed in (4, 5):
        for name in ("model.safetensors", "metrics.csv", "spectrum.csv"):
            kept, wanted = (Path(folder) / f"seed-{seed}" / name for folder in ("run", "whole"))
            assert kept.read_bytes() == wanted.read_bytes()


def test_runs_of_other_commands_are_not_cleared(learned: Path, run: Any) -> None:
    """Neither one with an order of its own, nor what a link leads to, nor a number that was not asked for."""
    assert run("learn GridMaze-7 --exact --dim 3 --steps 20 --no-report --out run/seed-4").code == 0
    shutil.rmtree("run/seed-5")
    assert run("solve GridMaze-7 --dim 3 --out precious").code == 0
    Path("run/seed-5").symlink_to(Path("precious").resolve())
    assert run("solve GridMaze-7 --dim 3 --out run/seed-7").code == 0
    assert run("learn GridMaze-7 --exact --dim 3 --steps 20 --no-report --out run").code == 0
    for name in ("run", "run/seed-4", "run/seed-7", "precious"):
        assert lw.load(name).dim == 3


def test_fewer_seeds_in_the_same_folder_leave_nothing_of_the_others(learned: Path, run: Any) -> None:
    (learned / "seed-4" / "thesis.txt").write_text("mine")
    assert run("learn GridMaze-7 --exact --dim 3 --steps 20 --no-report --out run").code == 0
    assert lw.load("run").dim == 3
    assert [path.name for path in (learned / "seed-4").iterdir()] == ["thesis.txt"]
    assert not (learned / "seed-5").exists()
    assert run(f"{LEARN} --no-report --out run").code == 0
    assert not (learned / "model.json").exists()
    assert not (learned / "curves.png").exists()
    assert lw.load("run/seed-5").metadata["seed"] == 5


def test_the_folder_stands_for_its_seeds_in_reports_and_figures(learned: Path, run: Any) -> None:
    (learned / "report.html").unlink()
    assert run("report run --json").json == {"report": "run/report.html", "runs": ["run/seed-4", "run/seed-5"]}
    assert (learned / "report.html").exists()
    assert run("plot run --what comparison").code == 0
    assert (learned / "comparison.pdf").exists()


def test_one_seed_that_must_not_be_trusted_is_named_and_decides_the_exit_code(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = iter([[], [1]])
    monkeypatch.setattr("lapwing.training.loop._not_finite", lambda *_: next(chunks))
    result = run(f"{LEARN} --no-report --out run")
    assert result.code == 3
    assert "lapwing: seed 5: this result must not be trusted: diverged" in result.err
    assert "seed 4: this result" not in result.err
    assert lw.load("run/seed-4").metadata["steps"] == lw.load("run/seed-5").metadata["steps"] == 10


def test_as_many_seeds_as_a_page_shows() -> None:
    assert MAX_SEEDS == MAX_RUNS


@pytest.mark.parametrize("seeds", ["0", "-1", "25", "9" * 30])
def test_a_number_of_seeds_that_cannot_be_is_refused_before_any_work(run: Any, seeds: str) -> None:
    result = run(f"learn GridMaze-7 --seeds {seeds} --out run")
    assert result.code == 1
    assert "--seeds is how many, from 1 to 24" in result.err
    assert not Path("run").exists()
