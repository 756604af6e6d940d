"""The command line to look at: report, plot, the overview, completion, the table at the end of learning."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import lapwing as lw
from lapwing.cli import main as cli
from lapwing.cli.plot_command import component_numbers
from lapwing.cli.results import summary
from lapwing.report.run_folder import write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs and a folder of something else."""
    base = tmp_path_factory.mktemp("runs")
    truth = lw.solve("GridMaze-7", dim=4)
    write_run(truth, base / "exact")
    data = lw.collect("GridMaze-7", 5_000, seed=0)
    write_run(lw.learn(data, 4, steps=40, log_every=20, truth=truth), base / "learned")
    write_run(lw.solve(data, 3), base / "counted")
    (base / "other").mkdir()
    (base / "other" / "thesis.txt").write_text("mine")
    return base


@pytest.fixture(autouse=True)
def beside_the_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(line: str) -> tuple[int, str, str]:
        try:
            code = cli.main(shlex.split(line))
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[Path], Path]]:
    """In place of the real page, which has tests of its own: what it was asked for."""
    asked: list[tuple[list[Path], Path]] = []

    def write_report(runs: Sequence[Path], out: Path, models: Any = None) -> Path:
        asked.append((list(runs), out))
        out.write_text("<html>")
        return out

    monkeypatch.setattr("lapwing.report.write_report", write_report)
    return asked


# --- report -------------------------------------------------------------------------------------------------------


def test_report_writes_a_page_and_says_where_it_is(run: Any) -> None:
    code, out, err = run("report learned")
    assert (code, err) == (0, "")
    assert "wrote learned/report.html" in out
    assert Path("learned/report.html").resolve().as_uri() in out
    assert "<html" in Path("learned/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "runs", "page"),
    [
        ("report exact", ["exact"], "exact/report.html"),
        ("report exact learned counted", ["exact", "learned", "counted"], "report.html"),
        ("report exact --out pages.html", ["exact"], "pages.html"),
    ],
)
def test_report_chooses_where_to_write(
    run: Any, pages: list[tuple[list[Path], Path]], words: str, runs: list[str], page: str
) -> None:
    code, out, _ = run(f"{words} --json")
    assert code == 0
    assert json.loads(out) == {"report": page, "runs": runs}
    assert pages == [([Path(name) for name in runs], Path(page))]


# --- plot ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("plot learned", "learned/eigenvectors.pdf"),
        ("plot learned --what spectrum --out figures/one.svg", "figures/one.svg"),
        ("plot learned --what curves --out c.png --width 3.25", "c.png"),
        ("plot exact learned --what comparison --components 1-3", "comparison.pdf"),
        ("plot exact counted --components 2,3", "eigenvectors.pdf"),
    ],
)
def test_plot_writes_a_figure(run: Any, words: str, file: str) -> None:
    code, out, err = run(words)
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {file} (")
    assert Path(file).stat().st_size > 1_000


def test_plot_says_in_json_what_it_drew(run: Any) -> None:
    _, out, _ = run("plot learned --what curves --width 3.25 --out c.pdf --json")
    found = json.loads(out)
    assert (found["figure"], found["what"], found["width"]) == ("c.pdf", "curves", 3.25)


def test_a_run_with_a_figure_in_it_can_be_written_again(run: Any) -> None:
    assert run("plot exact")[0] == 0
    assert run("solve GridMaze-7 --dim 3 --out exact")[0] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("report", "name a run"),
        ("report nowhere", "there is no run folder nowhere"),
        ("report other", "other is not a run folder: it holds no model.json"),
        ("report exact other/thesis.txt", "there is no run folder other/thesis.txt"),
        ("report exact ./exact", "the same run is named twice"),
        ("report exact --out page.pdf", "page.pdf: a report is an .html file"),
        ("plot", "name a run"),
        ("plot nowhere", "there is no run folder nowhere"),
        ("plot other", "other is not a run folder"),
        ("plot exact --components 3-5", "exact has components 1 to 4; there is no component 5"),
        ("plot exact --components 0", "there is no component 0"),
        ("plot exact --components two", "--components is a list such as 1-6 or 1,3,5-7"),
        ("plot exact --components 4-2", "--components 4-2 runs backwards; write 2-4"),
        ("plot exact --what curves", "not learned step by step"),
        ("plot exact --what comparison", "at least two runs"),
        ("plot exact --what trajectories", "exact keeps no experience; name the data set to draw: --data DATA"),
        ("plot exact learned --what trajectories", "shows one run"),
        ("plot exact --what spectrum --data nowhere", "--data is for the eigenvectors and the trajectories"),
        ("plot exact learned --what spectrum", "shows one run"),
        ("plot exact --width 0", "width must be between"),
        ("plot exact --out picture.gif", "figures are written as .pdf, .png or .svg"),
    ],
)
def test_bad_input_is_one_line_exit_code_1_and_no_file(run: Any, line: str, message: str) -> None:
    before = sorted(Path().rglob("*"))
    code, out, err = run(line)
    assert code == 1
    assert message in err
    assert err.startswith("lapwing: ")
    assert out == ""
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("damage", ["not JSON", '{"format": "something else"}'])
@pytest.mark.parametrize("command", ["plot", "report"])
def test_a_damaged_run_is_refused_by_name(run: Any, command: str, damage: str) -> None:
    Path("exact/model.json").write_text(damage)
    code, _, err = run(f"{command} exact --out out.{'pdf' if command == 'plot' else 'html'}")
    assert code == 1
    assert "exact/model.json" in err
    assert not list(Path().glob("out.*"))


@pytest.mark.parametrize(
    ("text", "numbers"), [("3", [3]), ("1-3", [1, 2, 3]), ("5, 1-2", [5, 1, 2]), ("1-3,2-4", [1, 2, 3, 4])]
)
def test_components_are_read_in_the_order_given_each_once(text: str, numbers: list[int]) -> None:
    assert component_numbers(text) == numbers


# --- learn --------------------------------------------------------------------------------------------------------

TINY = "learn GridMaze-7 --exact --dim 3 --steps 40 --log-every 20 --out run"


def test_learn_writes_the_page_into_the_run_and_says_where(run: Any, pages: list[tuple[list[Path], Path]]) -> None:
    code, out, _ = run(TINY)
    assert code == 0
    assert pages == [([Path("run")], Path("run/report.html"))]
    assert out.splitlines()[-2] == "wrote run/report.html"
    assert Path("run/report.html").resolve().as_uri() in out


def test_learn_leaves_the_page_out_if_told_and_takes_an_old_one_away(
    run: Any, pages: list[tuple[list[Path], Path]]
) -> None:
    assert run(TINY)[0] == 0
    code, out, _ = run(f"{TINY} --no-report")
    assert code == 0
    assert len(pages) == 1
    assert "report.html" not in out
    assert not Path("run/report.html").exists()


def test_learn_keeps_its_command_with_the_run(run: Any) -> None:
    assert run(f"{TINY} --no-report")[0] == 0
    kept = json.loads(Path("run/provenance.json").read_text())["command"]
    assert kept == ["lapwing", *shlex.split(TINY), "--no-report"]


def test_learn_ends_with_a_summary(run: Any) -> None:
    _, out, _ = run("learn GridMaze-7 --dim 3 --data-steps 5000 --steps 40 --out run --no-report")
    end = out[out.index("against the ground truth") :]
    words = (
        "learned",
        "tabular estimate",
        "cosine (the paper's)",
        "subspace cosine",
        "mean eigenvalue error",
        "steps",
    )
    assert all(word in end for word in (*words, "seconds", "verdicts"))


def test_the_summary_counts_verdicts_and_needs_no_truth() -> None:
    model = lw.load("learned")
    columns, rows = summary(model, {})
    found = {row[0]: row[1] for row in rows}
    assert columns == ["", "learned"]
    assert found["steps"] == "40"
    assert found["expected cosine"] == f"{model.certificate().expected_cosine:.4f}"
    counted = sum(int(part.split()[0]) for part in found["verdicts"].split(", "))
    assert counted == model.dim


def test_the_summary_has_the_numbers_of_the_scores() -> None:
    model, truth = lw.load("learned"), lw.load("exact")
    scored = lw.score(model, truth)
    columns, rows = summary(model, {"learned": scored, "baseline": lw.score(lw.load("counted"), truth)})
    assert columns == ["", "learned", "tabular estimate"]
    assert all(len(row) == 3 for row in rows)
    assert rows[0][1] == f"{scored.cosine:.4f}"
    assert rows[2][1] == f"{scored.mean_eigenvalue_error:.2%}"


@pytest.mark.parametrize(("truth", "column"), [(True, "similarity"), (False, "largest angle")])
def test_learning_is_watched_by_similarity_or_else_by_the_certificate(
    run: Any, monkeypatch: pytest.MonkeyPatch, truth: bool, column: str
) -> None:
    shown: list[Any] = []

    class Watched:
        def __init__(self, label: str, columns: Sequence[str]) -> None:
            shown.append(list(columns))

        def __enter__(self) -> Any:
            return lambda done, total, cells: shown.append((done, total, list(cells)))

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr("lapwing.cli.terminal.live_table", Watched)
    world = "GridMaze-7 --exact" if truth else "gym:lapwing/GridMaze-7-v0 --data-steps 500"
    code = run(f"learn {world} --dim 3 --steps 40 --log-every 20 --out run --no-report --all-steps")[0]
    assert code == (0 if truth else 3)
    assert shown[0] == ["step", column, "loss", "barrier"]
    assert [line[:2] for line in shown[1:]] == [(20, 40), (40, 40)]
    assert shown[1][2][0] == "20"
    numbers = [float(cell) for cell in shown[1][2][1:] if cell != "-"]
    assert len(numbers) >= 2
    assert truth is False or 0 < numbers[0] <= 1


def test_a_small_window_puts_error_bars_beside_their_numbers(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.cli.terminal.is_narrow", lambda: True)
    _, out, _ = run("learn GridMaze-7 --dim 3 --data-steps 5000 --steps 40 --out run --no-report")
    assert "+- one_step" not in out
    assert " ± " in out
    assert "verdict" in out


# --- help and completion --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["", "-h", "--help"])
def test_the_overview_has_groups_and_an_example_of_every_command(run: Any, words: str) -> None:
    code, out, err = run(words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    for title, names in cli.GROUPS.items():
        for name in names:
            assert lines.index(title) < lines.index(" " * cli.MARGIN + cli.help_of(cli.commands()[name])[1])
    assert "source <(lapwing --tyro-print-completion bash)" in out


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(cli.COMMANDS)


def test_every_command_prints_json_if_asked() -> None:
    for command in cli.commands().values():
        loaded = command.load()
        # `use` has a command of its own for each use.
        kinds = get_args(get_type_hints(loaded)["use"]) if command.name == "use" else (loaded,)
        assert kinds
        assert all("json" in kind.__dataclass_fields__ for kind in kinds)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_is_a_script_that_knows_every_command(run: Any, shell: str) -> None:
    code, out, _ = run(f"--tyro-print-completion {shell}")
    assert code == 0
    assert "lapwing" in out.splitlines()[1 if shell == "bash" else 0]
    assert all(command in out for command in cli.commands())
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=out, text=True, capture_output=True, timeout=60).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
@pytest.mark.parametrize(
    ("typed", "offered"), [("lapwing re", {"report", "reproduce"}), ("lapwing plot --wh", {"--what"})]
)
def test_bash_completes(run: Any, typed: str, offered: set[str]) -> None:
    _, script, _ = run("--tyro-print-completion bash")
    Path("completion.sh").write_text(script)
    words = " ".join(shlex.quote(word) for word in typed.split())
    ask = (
        "source completion.sh; f=$(complete -p lapwing | sed 's/.*-F \\([^ ]*\\).*/\\1/');"
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed.split()) - 1}; $f; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    folder = str(Path(sys.executable).parent)
    done = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, timeout=60, env={"PATH": f"{folder}:/usr/bin:/bin"}
    )
    assert {line.strip() for line in done.stdout.splitlines()} == offered


def test_a_completion_that_cannot_be_written_is_one_line(run: Any) -> None:
    code, _, err = run("--tyro-write-completion bash no/such/folder/lapwing")
    assert (code, err) == (1, "lapwing: no/such/folder/lapwing: No such file or directory\n")
