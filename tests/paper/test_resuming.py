"""A study is resumed by its name alone: in its own size, with what is missing, failed or damaged; others stay out."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabricated import Fake
from lapwing.errors import LapwingError, LapwingWarning
from lapwing.storage.folders import locked
from lapwing_paper import reproduction
from lapwing_paper.reproduction import reproduce
from lapwing_paper.study_request import StudyRequest, read_request, write_request

OUT = Path("study")
BEGIN = f"reproduce brittle-ggdo --worlds GridMaze-7 --seeds 2 --steps 20 --out {OUT}"
RESUME = f"reproduce brittle-ggdo --resume --out {OUT}"


@pytest.fixture(autouse=True)
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.chdir(tmp_path)
    executor = Fake()
    monkeypatch.setattr(reproduction, "make_executor", executor)
    # Figures take seconds and are not the point here.
    monkeypatch.setattr("lapwing_paper.drawings.StudyFigure.draw", lambda figure: None)
    monkeypatch.setattr(reproduction, "save_figure", lambda figure, path: path)
    return executor


def made(fake: Fake) -> list[tuple[str, int]]:
    found = sorted((run.method, run.seed) for run in fake.made)
    fake.made.clear()
    return found


def page() -> str:
    return (OUT / "brittle-ggdo" / "brittle-ggdo.md").read_text()


def test_name_and_folder_are_enough_to_complete_a_study_in_its_own_size(run: Any, fake: Fake) -> None:
    fake.errors = {"b = 2": ValueError("no memory")}
    assert run(BEGIN).code == 1
    whole = {*made(fake)}
    assert len(whole) == 8
    shutil.rmtree(next(OUT.glob("runs/*seed1*")))
    fake.errors = {}
    result = run(RESUME)
    assert result.code == 0, result.err
    again = made(fake)
    assert {("b = 2", 0), ("b = 2", 1)} <= {*again} < whole
    assert "`lapwing reproduce brittle-ggdo --quick --seeds 2 --steps 20 --worlds GridMaze-7`" in page()
    assert ": 8 runs, " in page()


def test_a_run_that_fails_again_is_named_again(run: Any, fake: Fake) -> None:
    fake.errors = {"b = 2": ValueError("no memory")}
    run(BEGIN)
    result = run(RESUME)
    assert result.code == 1
    assert "failed: b = 2, GridMaze-7, seed 1: ValueError: no memory" in result.err
    assert f"2 of the runs failed; `lapwing reproduce brittle-ggdo --resume --out {OUT}` repeats them" in result.err


def test_the_same_words_may_be_said_again_and_others_are_refused(run: Any, fake: Fake) -> None:
    run(BEGIN)
    made(fake)
    assert run(f"{BEGIN} --resume --quick").code == 0
    for words, then in (
        ("--seeds 3", "--seeds 2"),
        ("--steps 21", "--steps 20"),
        ("--full", "--quick"),
        ("--worlds GridMaze-9", "--worlds GridMaze-7"),
    ):
        result = run(f"{RESUME} {words}")
        assert result.code == 1
        assert f"this study was started with {then}, not {words}: leave that out" in result.err
    assert made(fake) == []


def test_another_size_asked_for_without_resuming_is_the_one_that_is_resumed(run: Any, fake: Fake) -> None:
    run(BEGIN)
    fake.errors = {"b = 2": ValueError("no")}
    run(BEGIN.replace("--seeds 2", "--seeds 3"))
    made(fake)
    fake.errors = {}
    assert run(RESUME).code == 0
    assert made(fake) == [("b = 2", 2)]


def test_failed_runs_of_a_study_from_before_there_was_a_record_are_resumed_too(run: Any, fake: Fake) -> None:
    fake.errors = {"b = 2": ValueError("no")}
    run(BEGIN)
    (OUT / "brittle-ggdo" / "study.json").unlink()
    result = run(RESUME)
    assert result.code == 1
    assert "no study of brittle-ggdo was started in study; leave --resume out" in result.err
    fake.errors = {}
    made(fake)
    assert run(BEGIN).code == 1
    assert run(RESUME).code == 0
    assert made(fake) == [("b = 2", 0), ("b = 2", 1)]


def test_layouts_that_are_others_now_are_noticed(run: Any, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("layouts").mkdir()
    Path("layouts/GridMaze-7.txt").write_text("XXXXX\nX   X\nX X X\nX   X\nXXXXX\n")
    monkeypatch.setenv("LAPWING_LAYOUTS", "layouts")
    run(BEGIN)
    monkeypatch.delenv("LAPWING_LAYOUTS")
    result = run(RESUME)
    assert result.code == 1
    assert "--layouts DIR as before" in result.err
    assert run(f"{RESUME} --layouts layouts").code == 0


def test_resuming_and_rebuilding_exclude_one_another() -> None:
    with pytest.raises(LapwingError, match="leave one of the two out"):
        reproduce("theory", resume=True, rebuild=True)


# --- damage ----------------------------------------------------------------------------------------------------------


def flip(folder: Path) -> None:
    (path,) = folder.glob("components-*.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(folder: Path) -> None:
    path = folder / "run.json"
    path.write_bytes(path.read_bytes()[:100])


def rename(folder: Path) -> None:
    other = next(path for path in folder.parent.iterdir() if path != folder)
    shutil.rmtree(folder)
    shutil.copytree(other, folder)


def newer(folder: Path) -> None:
    content = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**content, "version": 99}))


def lose(folder: Path) -> None:
    next(folder.glob("components-*.npy")).unlink()


damages = pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip, ".npy is damaged"),
        (cut, "run.json is not readable JSON"),
        (rename, "describes another run"),
        (newer, "format version 99"),
        (lose, "cannot read"),
    ],
)


@damages
@pytest.mark.parametrize("line", [BEGIN, RESUME])
def test_a_damaged_run_is_named_and_made_again(
    run: Any, fake: Fake, damage: Callable[[Path], None], words: str, line: str
) -> None:
    run(BEGIN)
    tables = json.loads((OUT / "brittle-ggdo" / "brittle-ggdo.json").read_text())
    made(fake)
    damage(sorted(OUT.glob("runs/*"))[0])
    result = run(line)
    assert result.code == 0, result.err
    assert "is repeated because it is damaged: " in result.err
    assert words in result.err
    assert len(made(fake)) == 1
    assert json.loads((OUT / "brittle-ggdo" / "brittle-ggdo.json").read_text()) == tables
    assert run(line).err == ""


@damages
def test_rebuilding_names_a_damaged_run_and_leaves_it_out(
    run: Any, fake: Fake, damage: Callable[[Path], None], words: str
) -> None:
    run(BEGIN)
    made(fake)
    damage(sorted(OUT.glob("runs/*"))[0])
    result = run(f"{BEGIN} --rebuild")
    assert result.code == 1
    assert ": damaged: " in result.err
    assert words in result.err
    assert "only 7 of 8 runs finished" in page()
    assert words in page()
    assert made(fake) == []


def test_every_run_may_be_damaged(fake: Fake) -> None:
    reproduce("theory", seeds=3, out=OUT)
    for folder in OUT.glob("runs/*"):
        cut(folder)
    with pytest.raises(LapwingError, match="no finished run"):
        reproduce("theory", seeds=3, out=OUT, rebuild=True)
    with pytest.warns(LapwingWarning, match="is repeated") as told:
        assert len(reproduce("theory", out=OUT, resume=True).results.finished) == 3
    assert len(told) == 3


# --- two at a time ---------------------------------------------------------------------------------------------------


def test_the_second_process_in_a_folder_is_refused_unless_it_makes_no_run(run: Any, fake: Fake) -> None:
    run(BEGIN)
    made(fake)
    shutil.rmtree(next(OUT.glob("runs/*seed1*")))
    with locked(OUT):
        for line in (BEGIN, RESUME, f"{BEGIN} --overwrite"):
            result = run(line)
            assert (result.code, result.err.count("\n")) == (1, 1)
            assert "another process is at work in study" in result.err
        assert run(f"{BEGIN} --rebuild").code == 0
    assert made(fake) == []
    assert run(RESUME).code == 0
    assert len(made(fake)) == 1


# --- the record ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"format": "lapwing-study-run", "version": 1}',
        '{"format": "lapwing-study", "version": 2}',
        '{"format": "lapwing-study", "version": 1}',
        '{"format": "lapwing-study", "version": 1, "study": "theory"}',
        '{"format": "lapwing-study", "version": 1, "study": "theory", "request": {"seeds": 2}}',
        '{"format": "lapwing-study", "version": 1, "study": "fair-ggdo", "request": {}}',
    ],
)
def test_a_record_that_is_damaged_or_foreign_is_a_clear_error(run: Any, fake: Fake, content: str) -> None:
    path = OUT / "theory" / "study.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    result = run(f"reproduce theory --resume --out {OUT}")
    assert result.code == 1
    assert "study.json" in result.err
    assert result.err.count("\n") == 1
    assert fake.made == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("seeds", "2"), ("seeds", True), ("steps", 1.5), ("worlds", "GridMaze-7"), ("worlds", [1]), ("full", 1)],
)
def test_a_record_of_the_wrong_types_is_a_clear_error(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "study.json"
    write_request(path, "theory", StudyRequest(), [])
    content = json.loads(path.read_text())
    content["request"][name] = value
    path.write_text(json.dumps(content))
    with pytest.raises(LapwingError, match="is damaged"):
        read_request(path, "theory")


def test_a_request_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    request = StudyRequest(True, 3, 20, ("GridMaze-7", "maze:2x3:1"), str(tmp_path / "layouts"))
    write_request(tmp_path / "study.json", "theory", request, [])
    assert read_request(tmp_path / "study.json", "theory")[0] == request
    assert StudyRequest().completed_by(request) == request
