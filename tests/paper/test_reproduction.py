"""A study from its name to its page: what is written, what is not made twice, what fails, and the command line."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fabricated import Fake, forge
from lapwing.cli import main as cli
from lapwing.environments.registry import LAYOUTS_VARIABLE
from lapwing.errors import LapwingError
from lapwing_paper import reproduction
from lapwing_paper.reproduction import Reproduction, reproduce
from lapwing_paper.scheduling import StudyProgress
from lapwing_paper.studies.catalogue import STUDIES

pytestmark = pytest.mark.slow

SMALL: dict[str, Any] = {"worlds": ["GridMaze-7"], "seeds": 2, "steps": 20}
WORDS = "reproduce brittle-ggdo --worlds GridMaze-7 --seeds 2 --steps 20"
METHODS = ("b = 0.1", "b = 0.5", "b = 2", "b = 10")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(LAYOUTS_VARIABLE, raising=False)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    executor = Fake()
    monkeypatch.setattr(reproduction, "make_executor", executor)
    yield executor
    assert executor.closed == len(executor.asked), "an executor was left open"


def no_executor(on: str, workers: int | None) -> Fake:
    raise AssertionError("no run was to be made")


def page_of(done: Reproduction) -> str:
    return next(path for path in done.files if path.suffix == ".md").read_text()


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- what is written -----------------------------------------------------------------------------------------------


def test_a_study_is_a_page_with_tables_and_figures_in_files(fake: Fake, tmp_path: Path) -> None:
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path / "study")
    names = {f"brittle-ggdo{ending}" for ending in (".md", ".tex", ".json", "-figure-1.png", "-figure-1.pdf")}
    folder = tmp_path / "study" / "brittle-ggdo"
    assert {path.name for path in folder.iterdir()} == names | {"study.json"}
    assert set(done.files) == {folder / name for name in names}
    assert len(list((tmp_path / "study" / "runs").iterdir())) == len(fake.made) == len(METHODS) * 2
    assert done.failures == []
    assert len(done.results.finished) == len(METHODS) * 2
    for path in done.files:
        head = {".png": b"\x89PNG", ".pdf": b"%PDF", ".md": b"# ", ".tex": b"\\begin{table}", ".json": b"{"}[
            path.suffix
        ]
        assert path.read_bytes().startswith(head)


def test_the_page_says_how_it_was_made_and_what_differs_from_the_paper(fake: Fake, tmp_path: Path) -> None:
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    page = page_of(done)
    spec = STUDIES["brittle-ggdo"]
    assert page.startswith(f"# {spec.title} (quick: 2 seeds of 60, 20 steps of 50,000)\n")
    assert "Figure 1 of the paper" in page
    assert "`lapwing reproduce brittle-ggdo --quick --seeds 2 --steps 20 --worlds GridMaze-7`" in page
    dates = {json.loads(path.read_text())["date"][:10] for path in (tmp_path / "runs").glob("*/run.json")}
    assert all(date in page for date in dates)
    assert ": 8 runs, 8.0 minutes of one core in all" in page
    assert f"numpy {np.__version__}" in page
    assert all(f"* {deviation}" in page for deviation in spec.deviations)
    assert "Layouts: own layout, same geometry: GridMaze-7." in page
    (table,) = done.tables
    rows = [f"| {' | '.join(row)} |" for row in table.rows]
    assert len(rows) == len(METHODS) + 1  # and counting
    assert all(row in page.replace("**", "") for row in rows)
    assert "(brittle-ggdo-figure-1.png)" in page
    assert "failed" not in page


def test_the_command_on_the_page_is_understood_and_asks_for_the_same(fake: Fake, tmp_path: Path) -> None:
    folder = tmp_path / "my layouts"
    folder.mkdir()
    (folder / "Mine.txt").write_text("XXXXX\nX   X\nX X X\nX   X\nXXXXX\n")
    asked: dict[str, Any] = {"full": True, "worlds": ["Mine", "maze:2x3:1"], "seeds": 1, "steps": 7}
    done = reproduce("brittle-ggdo", **asked, layouts=folder, out=tmp_path / "out")
    found = re.search(r"`lapwing (reproduce .*?)`", page_of(done))
    assert found is not None
    words: Any = cli.parse(shlex.split(found[1]))
    assert (words.name, words.full, words.quick) == ("brittle-ggdo", True, False)
    assert (words.seeds, words.steps, list(words.worlds)) == (1, 7, ["Mine", "maze:2x3:1"])
    assert words.layouts == Path("DIR")


def test_nothing_that_is_written_to_be_read_names_a_folder_of_this_machine(fake: Fake, tmp_path: Path) -> None:
    folder = tmp_path / "layouts"
    folder.mkdir()
    (folder / "GridMaze-7.txt").write_text("XXXXX\nX   X\nX X X\nX   X\nXXXXX\n")
    done = reproduce("brittle-ggdo", **SMALL, layouts=folder, out=tmp_path / "out")
    assert "authors' layout: GridMaze-7" in page_of(done)
    for path in done.files:
        if path.suffix in (".md", ".tex", ".json"):
            text = path.read_text()
            assert str(tmp_path) not in text
            assert not re.search(r"(?<![\w:/.])/(tmp|home|root|work|Users)/", text)
    for text in ((path.read_text()) for path in (tmp_path / "out" / "runs").rglob("run.json")):
        assert str(tmp_path) not in text


def test_json_and_latex_hold_the_same_tables_as_the_page(fake: Fake, tmp_path: Path) -> None:
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    content = json.loads((tmp_path / "brittle-ggdo" / "brittle-ggdo.json").read_text())
    (table,) = done.tables
    assert content["study"] == "brittle-ggdo"
    assert content["command"].startswith("lapwing reproduce brittle-ggdo")
    assert content["tables"] == {"figure-1": table.records}
    assert (tmp_path / "brittle-ggdo" / "brittle-ggdo.tex").read_text().strip() == table.latex().strip()


def test_pages_may_go_elsewhere_than_runs(fake: Fake, tmp_path: Path) -> None:
    done = reproduce("theory", seeds=1, out=tmp_path / "out", pages=tmp_path / "docs")
    assert {path.parent for path in done.files} == {tmp_path / "docs"}
    assert [path.name for path in (tmp_path / "out" / "theory").iterdir()] == ["study.json"]


def test_a_study_of_our_own_says_so(fake: Fake, tmp_path: Path) -> None:
    page = page_of(reproduce("fair-ggdo", **SMALL, out=tmp_path))
    assert "A study of our own." in page
    assert "**How it was done**" in page
    assert "of the paper. Made with" not in page


def test_where_and_how_wide_runs_are_made_is_passed_on(fake: Fake, tmp_path: Path) -> None:
    reproduce("theory", seeds=1, out=tmp_path, on="ray://somewhere:1", workers=7)
    assert fake.asked == [("ray://somewhere:1", 7)]


# --- what is made, and what is not -----------------------------------------------------------------------------------


def test_finished_runs_are_not_made_again(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    page = page_of(first)
    monkeypatch.setattr(reproduction, "make_executor", no_executor)
    second = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    assert page_of(second) == page
    assert second.tables == first.tables


def test_more_seeds_make_only_the_new_ones(fake: Fake, tmp_path: Path) -> None:
    reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    fake.made.clear()
    reproduce("brittle-ggdo", **{**SMALL, "seeds": 3}, out=tmp_path)
    assert {run.seed for run in fake.made} == {2}


def test_overwriting_repeats_everything(fake: Fake, tmp_path: Path) -> None:
    reproduce("theory", seeds=2, out=tmp_path)
    reproduce("theory", seeds=2, out=tmp_path, overwrite=True)
    assert [run.seed for run in fake.made] == [0, 1, 0, 1]


def test_studies_in_one_folder_share_their_runs(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce("comparison-xy", **SMALL, out=tmp_path)
    assert len(fake.made) == 3 * 2
    monkeypatch.setattr(reproduction, "make_executor", no_executor)
    assert len(reproduce("eigenvalues", **SMALL, out=tmp_path).results.finished) == 3 * 2


def test_rebuilding_makes_no_run_and_the_same_page_byte_by_byte(
    fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    before = files_below(tmp_path)
    for path in done.files:
        path.unlink()
    monkeypatch.setattr(reproduction, "make_executor", no_executor)
    reproduce("brittle-ggdo", **SMALL, out=tmp_path, rebuild=True)
    after = files_below(tmp_path)
    assert set(after) == set(before)
    assert {name for name in after if after[name] != before[name]} <= {
        name for name in after if name.endswith((".pdf", ".png"))
    }


def test_rebuilding_from_a_part_of_the_runs_gives_a_page_of_that_part(fake: Fake, tmp_path: Path) -> None:
    fake.stop_at = 3
    with pytest.raises(KeyboardInterrupt):
        reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path, rebuild=True)
    assert len(done.results.finished) == 3
    assert "only 3 of 8 runs finished" in page_of(done)
    assert not done.plan.is_whole
    assert len(fake.made) == 3
    fake.stop_at = None
    assert reproduce("brittle-ggdo", **SMALL, out=tmp_path).plan.is_whole


def test_rebuilding_without_runs_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="holds no finished run of theory"):
        reproduce("theory", out=tmp_path / "out", rebuild=True)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_study_goes_on_where_it_stopped(fake: Fake, tmp_path: Path) -> None:
    fake.stop_at = 3
    with pytest.raises(KeyboardInterrupt):
        reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    assert fake.closed == 1
    fake.stop_at = None
    reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    assert len(fake.made) == len({run.key for run in fake.made}) == len(METHODS) * 2


def test_progress_is_reported_until_all_is_done(fake: Fake, tmp_path: Path) -> None:
    reports: list[StudyProgress] = []
    fake.errors = {"b = 2": ValueError("no")}
    reproduce("brittle-ggdo", **SMALL, out=tmp_path, report=reports.append)
    assert all(now.done + now.failed + now.running <= now.total == 8 for now in reports)
    assert reports[-1][:4] == (6, 0, 2, 8)


# --- failures --------------------------------------------------------------------------------------------------------


def test_failures_are_listed_on_the_page_and_the_rest_is_shown(fake: Fake, tmp_path: Path) -> None:
    fake.errors = {"b = 2": RuntimeError("no memory")}
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    assert [(one.run.method, one.run.seed, one.error) for one in done.failures] == [
        ("b = 2", seed, "RuntimeError: no memory") for seed in (0, 1)
    ]
    page = page_of(done)
    for seed in (0, 1):
        assert f"* b = 2, GridMaze-7, seed {seed}: RuntimeError: no memory\n" in page
    rows = {record["method"]: record["GridMaze-7"] for record in done.tables[0].records}
    assert rows["b = 2"] == "–"
    assert "only 6 of 8 runs finished" in page


def test_a_failure_whose_error_has_many_lines_is_one_item_of_the_list(fake: Fake, tmp_path: Path) -> None:
    fake.errors = {"b = 2": RuntimeError("first line\n\n# second line\nthird")}
    page = page_of(reproduce("brittle-ggdo", **SMALL, out=tmp_path))
    listed = page.split("**Runs that failed**")[1].strip().splitlines()
    assert len(listed) == 2
    assert all(line.startswith("* b = 2, GridMaze-7, seed") for line in listed)


def test_an_error_is_text_on_the_page_and_no_mark_up(fake: Fake, tmp_path: Path) -> None:
    fake.errors = {"b = 2": RuntimeError("<script>alert(1)</script> *bold*")}
    page = page_of(reproduce("brittle-ggdo", **SMALL, out=tmp_path))
    assert r"RuntimeError: \<script>alert(1)\</script> \*bold\*" in page


def test_resuming_mends_the_page(fake: Fake, tmp_path: Path) -> None:
    fake.errors = {"b = 2": RuntimeError("no memory")}
    reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    fake.errors, fake.made = {}, []
    assert "no memory" in page_of(reproduce("brittle-ggdo", **SMALL, out=tmp_path))
    assert fake.made == []
    done = reproduce("brittle-ggdo", **SMALL, out=tmp_path, resume=True)
    assert [run.method for run in fake.made] == ["b = 2", "b = 2"]
    assert done.failures == []
    assert "failed" not in page_of(done)


def test_a_study_of_which_every_run_failed_has_no_page(fake: Fake, tmp_path: Path) -> None:
    fake.errors = {"claims": ValueError("no graph")}
    done = reproduce("theory", seeds=2, out=tmp_path)
    assert (done.tables, done.files, done.results.finished) == ([], [], [])
    assert [one.error for one in done.failures] == ["ValueError: no graph"] * 2
    assert [path.name for path in (tmp_path / "theory").iterdir()] == ["study.json"]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("brittle-ggdo", {"steps": 0}, "steps must be a whole number from 1"),
        ("brittle-ggdo", {"seeds": 0}, "seeds must be a whole number from 1"),
        ("brittle-ggdo", {"seeds": -2}, "seeds must be a whole number from 1"),
        ("theory", {"worlds": ["GridMaze-7"]}, "theory is not about worlds"),
        ("brittle-ggdo", {"worlds": ["GridMaze7"]}, "GridMaze-7"),
        ("brittle-ggdo", {"worlds": ["GridRoom-16", "Rooms-16"]}, "twice"),
        ("brittle-ggdo", {"layouts": "nowhere"}, "not a folder"),
        ("brittle_ggdo", {}, "did you mean brittle-ggdo"),
        ("comparisonxy", {}, "comparison-xy"),
        ("zzz", {}, "known: .*theory"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(reproduction, "make_executor", no_executor)
    with pytest.raises(LapwingError, match=words):
        reproduce(name, **options, out=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_executor_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="local, ray or ray://"):
        reproduce("theory", out=tmp_path / "out", on="cloud")
    assert not list(tmp_path.iterdir())


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_makes_a_real_study_and_makes_no_run_twice(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GridMaze-7 has 11 states, as many as there are components; more seeds or steps would only take longer.
    line = f"reproduce brittle-ggdo --worlds GridMaze-7 --seeds 1 --steps 20 --out {shlex.quote(str(tmp_path / 'out'))}"
    result = run(line)
    assert result.code == 0, result.err
    folder = tmp_path / "out" / "brittle-ggdo"
    assert f"wrote {folder / 'brittle-ggdo.md'}" in result.out.replace("\n", "")
    page = (folder / "brittle-ggdo.md").read_bytes()
    cells = json.loads((folder / "brittle-ggdo.json").read_text())["tables"]["figure-1"]
    assert [cell["method"] for cell in cells] == [*METHODS, "counting"]
    assert all(0.0 < float(cell["GridMaze-7"]) <= 1.0 for cell in cells)
    assert all(cell["GridMaze-7"] in result.out for cell in cells)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")}
    monkeypatch.setattr(reproduction, "make_executor", no_executor)
    assert run(line).code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "runs").rglob("*")} == made
    assert (folder / "brittle-ggdo.md").read_bytes() == page


def test_the_list_names_everything(run: Any) -> None:
    result = run("reproduce --list")
    assert result.code == 0
    assert all(name in result.out for name in STUDIES)
    assert not list(Path().iterdir())


def test_the_list_as_json_is_json_and_nothing_else(run: Any) -> None:
    result = run("reproduce --list --json")
    assert result.code == 0
    rows = json.loads(result.out)
    assert [row["name"] for row in rows] == list(STUDIES)
    assert all(row["title"] for row in rows)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("reproduce", "--list"),
        ("reproduce theory --quick --full", "exclude one another"),
        ("reproduce brittle_ggdo", "did you mean brittle-ggdo"),
        ("reproduce theory --seeds 0", "seeds must be a whole number from 1"),
        ("reproduce brittle-ggdo --steps 0", "steps must be a whole number from 1"),
        ("reproduce theory --worlds GridMaze-7", "not about worlds"),
        ("reproduce theory --on cloud", "local, ray or ray://"),
        ("reproduce theory --workers 0", "at least one worker"),
        ("reproduce theory --rebuild", "no finished run"),
    ],
)
def test_bad_words_are_one_line_exit_code_1_and_no_file(run: Any, line: str, words: str) -> None:
    result = run(line)
    assert result.code == 1
    assert words in result.err
    assert result.err.startswith("lapwing: ")
    assert "Traceback" not in result.err
    assert not list(Path().iterdir())


def test_the_command_prints_tables_and_files(run: Any, fake: Fake) -> None:
    result = run(WORDS)
    assert result.code == 0
    assert len(fake.made) == len(METHODS) * 2
    assert all(method in result.out for method in METHODS)
    assert "wrote reproduction/brittle-ggdo/brittle-ggdo.md" in result.out
    assert result.err == ""


def test_the_command_prints_json_and_nothing_else(run: Any, fake: Fake) -> None:
    fake.errors = {"b = 2": ValueError("no")}
    result = run(f"{WORDS} --json")
    content = json.loads(result.out)
    assert content["study"] == "brittle-ggdo"
    assert [row["method"] for row in content["tables"]["figure-1"]] == [*METHODS, "counting"]
    assert [(one["method"], one["seed"], one["error"]) for one in content["failed"]] == [
        ("b = 2", 0, "ValueError: no"),
        ("b = 2", 1, "ValueError: no"),
    ]
    assert all(Path(file).is_file() for file in content["files"])


def test_failed_runs_end_with_exit_code_1_and_what_to_do(run: Any, fake: Fake) -> None:
    fake.errors = {"b = 2": ValueError("no memory")}
    result = run(WORDS)
    assert result.code == 1
    assert "note: failed: b = 2, GridMaze-7, seed 0: ValueError: no memory" in result.err
    assert "2 of the runs failed" in result.err
    assert "--resume" in result.err
    assert "b = 10" in result.out
    fake.errors = {}
    assert run(WORDS).code == 1
    assert run(f"{WORDS} --resume").code == 0


def test_a_study_of_which_every_run_failed_ends_with_exit_code_1(run: Any, fake: Fake) -> None:
    fake.errors = {"claims": ValueError("no graph")}
    result = run("reproduce theory --seeds 1")
    assert result.code == 1
    assert "no graph" in result.err
    assert "--resume" in result.err


def test_an_interrupted_command_ends_with_130_and_says_how_to_go_on(run: Any, fake: Fake) -> None:
    fake.stop_at = 2
    result = run(WORDS)
    assert result.code == 130
    assert "same command" in result.err
    fake.stop_at = None
    assert run(WORDS).code == 0
    assert len(fake.made) == len({run.key for run in fake.made}) == len(METHODS) * 2


def test_options_of_the_command_reach_the_study(run: Any, fake: Fake) -> None:
    line = "reproduce theory --full --seeds 2 --out here --pages there --on ray --workers 3"
    assert run(line).code == 0
    assert fake.asked == [("ray", 3)]
    assert [path.name for path in Path("here/theory").iterdir()] == ["study.json"]
    assert "`lapwing reproduce theory --full --seeds 2`" in Path("there/theory.md").read_text()
    assert run(f"{line} --overwrite").code == 0
    assert len(fake.made) == 4
    assert run(f"{line} --rebuild").code == 0
    assert len(fake.made) == 4


@pytest.mark.parametrize("numbers", [{"cosine": "x"}, {"cosine": {"a": 1}}])
def test_runs_changed_to_hold_something_else_are_a_clear_error(fake: Fake, tmp_path: Path, numbers: Any) -> None:
    reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    for path in (tmp_path / "runs").glob("*/run.json"):
        forge(path, numbers=numbers)
    with pytest.raises(LapwingError, match="no table can be made of"):
        reproduce("brittle-ggdo", **SMALL, out=tmp_path, rebuild=True)


def test_versions_and_dates_are_text_on_the_page(fake: Fake, tmp_path: Path) -> None:
    reproduce("brittle-ggdo", **SMALL, out=tmp_path)
    for path in (tmp_path / "runs").glob("*/run.json"):
        forge(path, versions={"<script>alert(1)</script>": "\n\n<img src=x>"}, date="<b>2024")
    page = page_of(reproduce("brittle-ggdo", **SMALL, out=tmp_path, rebuild=True))
    assert not re.search(r"(?<!\\)<(script|img|b)", page)


@pytest.mark.parametrize("size", [{"seeds": 10**12}, {"seeds": 2.5}, {"steps": float("nan")}, {"seeds": "2"}])
def test_a_size_that_cannot_be_is_refused_before_any_plan(tmp_path: Path, size: dict[str, Any]) -> None:
    with pytest.raises(LapwingError, match="must be a whole number from 1 to"):
        reproduce("theory", **size, out=tmp_path)
