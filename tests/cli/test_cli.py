"""The command line: each command, invalid arguments, bad input, exit codes, and nothing half-written."""

import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing import representation, solving
from lapwing.cli import main as cli

COMMANDS = (
    "worlds",
    "collect",
    "audit",
    "solve",
    "learn",
    "online",
    "score",
    "report",
    "plot",
    "reproduce",
    "export",
    "certify",
    "check-loss",
    "doctor",
)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run_as_a_program(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "lapwing", *shlex.split(line)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- each command at work ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_learn_writes_a_run_that_loads_and_scores(run: Any, tmp_path: Path) -> None:
    result = run("learn GridMaze-7 --dim 4 --data-steps 20000 --steps 400 --seed 3 --out run --json")
    assert result.code == 0
    assert result.json["config"]["seed"] == 3
    assert result.json["scores"]["learned"]["subspace_cosine"] > 0.99
    assert result.json["scores"]["baseline"]["subspace_cosine"] > 0.99
    others = {".lock", "run.json", "checkpoints", "ground_truth", "episodes"}
    names = {path.name for path in (tmp_path / "run").iterdir()} - others
    wanted = {"model.json", "model.safetensors", "config.json", "metrics.csv", "spectrum.csv"}
    wanted |= {"audit.json", "scores.json", "provenance.json", "report.html"}
    assert wanted | {"curves.png", "spectrum.png", "eigenvectors.png"} == names
    assert set(result.json["files"]) == names
    assert lw.load("run").dim == 4
    assert run("score run").code == 0


@pytest.mark.slow
def test_learn_takes_a_data_folder_and_shows_error_bars_and_verdicts(run: Any) -> None:
    run("collect GridMaze-7 --steps 20000 --out data")
    result = run("learn data --dim 3 --steps 200")
    assert result.code == 0
    assert "+- one_step" in result.out
    assert "tabular estimate" in result.out
    assert "trusted" in result.out


@pytest.mark.slow
def test_learn_from_the_exact_operator_has_no_error_bars(run: Any) -> None:
    result = run("learn GridMaze-7 --exact --dim 3 --steps 200 --json").json
    assert not any(name.startswith("+-") for name in result["spectrum"][0])
    assert result["scores"]["learned"]["mean_eigenvalue_error"] < 0.01


@pytest.mark.slow
def test_learn_says_when_components_have_not_converged(run: Any) -> None:
    result = run("learn GridRoom-1 --exact --dim 11 --steps 5")
    assert result.code == 0
    assert "not converged" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("GridMaze-7 --objective alo", "allo"),
        ("GridMaze-7 --dim 12", "number of states"),
        ("GridMaze-7 --exact --batches sampled", "experience"),
        ("GridMaze-7 --learning-rate -1", "learning_rate"),
        ("GridMaze7", "GridMaze-7"),
        ("gym:NoSuchThing-v0", "NoSuchThing"),
    ],
)
def test_learn_refuses_bad_input_and_writes_nothing(run: Any, tmp_path: Path, options: str, words: str) -> None:
    result = run(f"learn {options} --data-steps 1000 --steps 10 --out run")
    assert result.code == 1
    assert words in result.err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [("o.toml", "dim = 3\nsteps = 40\nbatch_size = 7\n"), ("o.json", '{"dim": 3, "steps": 40, "batch_size": 7}')],
)
def test_a_configuration_file_stands_between_the_preset_and_the_flags(run: Any, name: str, content: str) -> None:
    Path(name).write_text(content)
    result = run(f"learn GridMaze-7 --exact --config {name} --steps 20 --no-report --out run --json")
    assert result.code == 0, result.err
    assert [result.json["config"][key] for key in ("dim", "steps", "batch_size", "seed")] == [3, 20, 7, 0]
    assert json.loads(Path("run/run.json").read_text())["options"] == {"dim": 3, "steps": 40, "batch_size": 7}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("o.toml", "stepps = 3", "did you mean steps"),
        ("o.json", '{"preset": "papper"}', "did you mean paper"),
        ("o.toml", "steps = ", "o.toml"),
        ("o.toml", "a = " + "[" * 5000, "o.toml"),
        ("o.json", '{"steps": 1, "steps": 2}', "o.json"),
        ("o.yaml", "steps: 1", "a .json or .toml file"),
    ],
)
def test_a_bad_configuration_file_is_refused(run: Any, name: str, content: str, message: str) -> None:
    Path(name).write_text(content)
    result = run(f"learn GridMaze-7 --exact --config {name} --out run")
    assert result.code == 1
    assert message in result.err
    assert result.err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == [name]


def test_worlds_lists_every_shipped_world(run: Any) -> None:
    result = run("worlds")
    assert result.code == 0
    assert all(name in result.out for name in lw.world_names())


def test_worlds_prints_json_and_nothing_else(run: Any) -> None:
    rows = run("worlds --json").json
    assert [row["name"] for row in rows] == lw.world_names()
    assert next(row for row in rows if row["name"] == "Rooms-64")["canvas"] == "41 x 41"


def test_worlds_draws_pictures_in_the_terminal(run: Any) -> None:
    result = run("worlds --pictures")
    assert result.code == 0
    assert "█▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀█" in result.out  # the top of GridRoom-1


def test_worlds_writes_a_sheet_of_pictures(run: Any) -> None:
    result = run("worlds --out sheets/worlds.png")
    assert result.code == 0
    assert Path("sheets/worlds.png").read_bytes().startswith(b"\x89PNG")


def test_worlds_shows_a_layouts_folder_and_how_many_parts_a_layout_has(run: Any) -> None:
    Path("mine").mkdir()
    Path("mine/Two.txt").write_text("XXXXX\nX X X\nXXXXX\n")
    rows = {row["name"]: row for row in run("worlds --layouts mine --json").json}
    assert (rows["Two"]["source"], rows["Two"]["states"], rows["Two"]["parts"]) == ("layouts folder", "2", "2")
    assert rows["Rooms-16"]["source"] == "shipped"


def test_collect_audit_solve_and_score_go_together(run: Any) -> None:
    collected = run("collect GridRoomSym-4 --steps 20000 --episode-length 20-80 --seed 3 --out data --json").json
    assert collected["transitions"] == 20_000
    assert collected["distinct_observations"] == 104
    looked_over = run("audit data --json").json
    assert looked_over["visited"] == 104
    assert looked_over["shortest"] >= 1
    assert looked_over["longest"] <= 80
    assert run("solve data --dim 4 --out counted").code == 3
    assert run("solve GridRoomSym-4 --dim 4 --out exact").code == 0
    by_world = run("score counted --data data --json").json
    assert by_world["model"]["cosine"] > 0.98
    assert by_world["baseline"]["subspace_cosine"] == pytest.approx(by_world["model"]["subspace_cosine"])
    by_folder = run("score counted --truth exact --json").json
    assert by_folder["model"] == by_world["model"]


def test_the_same_seed_writes_the_same_data(run: Any) -> None:
    for folder in ("one", "two"):
        assert run(f"collect GridMaze-9 --steps 500 --seed 7 --out {folder}").code == 0
    assert files_below(Path("one")) == files_below(Path("two"))


def test_tables_without_json_show_the_same_facts(run: Any) -> None:
    assert "500" in run("collect GridMaze-9 --steps 500 --out data").out
    table = run("audit data")
    assert "states visited" in table.out
    assert "13 of 13" in table.out
    assert "note: lags at discount 0.9 are cut off" in table.err
    assert run("solve data --dim 3 --out model").code == 3
    scored = run("score model --data data")
    assert scored.code == 0
    assert "this result must not be trusted: too few data" in scored.err
    assert "tabular estimate" in scored.out
    assert "clusters within 0.01" in scored.out


def test_solve_writes_a_model_a_spectrum_and_pictures(run: Any) -> None:
    result = run('solve GridMaze-7 --dim 3 --definition "successor(0.9)" --out out --json')
    assert sorted(path.name for path in Path("out").iterdir()) == [
        ".lock",
        "eigenvectors.png",
        "model.json",
        "model.safetensors",
        "provenance.json",
        "spectrum.csv",
        "spectrum.png",
    ]
    values = [row["successor(0.9)"] for row in result.json["spectrum"]]
    assert np.round(values, 4).tolist() == [0.0, 0.1833, 0.4622]
    lines = Path("out/spectrum.csv").read_text().splitlines()
    assert lines[0] == "component,successor(0.9),one_step,residual,verdict"
    assert len(lines) == 4
    assert lw.load("out").eigenvalues.round(4).tolist() == [0.0, 0.1833, 0.4622]


def test_solve_chooses_a_folder_where_none_is_given(run: Any) -> None:
    assert run("solve room:3x4 --dim 2").code == 0
    assert (Path("runs") / "solve-room_3x4" / "model.json").is_file()


def test_solve_names_the_data_folder_it_stands_in(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("collect GridMaze-7 --steps 300 --out data")
    monkeypatch.chdir(tmp_path / "data")
    assert run("solve . --dim 2 --out ../model --json").json["world"] == "data"


def test_solve_takes_a_matrix_and_draws_it_by_the_numbers_of_its_states(run: Any) -> None:
    np.save("ring.npy", np.roll(np.eye(5), 1, axis=1))
    result = run("solve ring.npy --dim 3 --out out --json")
    assert result.code == 0
    assert "eigenvectors.png" in result.json["files"]
    # The symmetrised directed ring: 1 - cos(2 pi k / 5).
    assert result.json["spectrum"][1]["one_step"] == pytest.approx(1.0 - np.cos(2.0 * np.pi / 5.0))


def test_solve_takes_slip_policy_rho_and_observation(run: Any) -> None:
    np.save("policy.npy", np.tile([0.4, 0.2, 0.2, 0.2], (11, 1)))
    options = "--policy policy.npy --slip 0.2 --rho uniform --observation one_hot"
    assert run(f"solve GridMaze-7 --dim 2 {options} --out out").code == 0
    assert lw.load("out").transform(np.eye(11, dtype=np.float32)).shape == (11, 2)


def test_solve_knows_the_closed_form_of_a_box(run: Any) -> None:
    result = run("solve Box-2 --dim 4 --out out --json")
    assert result.json["spectrum"][0]["one_step"] == 0.0
    assert Path("out/eigenvectors.png").is_file()


def test_solve_says_that_a_world_is_disconnected_and_goes_on(run: Any) -> None:
    Path("two.txt").write_text("XXXXXX\nX  X X\nXXXXXX\n")
    result = run("solve two.txt --dim 2 --out out")
    assert result.code == 0
    assert "note: two falls into 2 unconnected parts" in result.err


def test_a_layouts_folder_can_be_named_by_the_environment(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine").mkdir()
    Path("mine/Corridor.txt").write_text("XXXX\nX..X\nXXXX\n")
    monkeypatch.setenv("LAPWING_LAYOUTS", "mine")
    assert len(run("solve Corridor --dim 2 --out out --json").json["spectrum"]) == 2


def test_collect_takes_a_gymnasium_environment(run: Any) -> None:
    facts = run("collect gym:lapwing/GridMaze-9-v0 --steps 200 --episode-length 20 --out data --json").json
    assert (facts["transitions"], facts["episodes"]) == (200, 10)


def test_solving_again_into_the_same_folder_replaces_the_result(run: Any) -> None:
    assert run("solve GridMaze-7 --dim 2 --out out").code == 0
    assert run("solve GridMaze-9 --dim 3 --out out").code == 0
    assert lw.load("out").metadata["world"]["name"] == "GridMaze-9"


# --- help, version, and invalid arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_that_its_parser_takes(run: Any, command: str) -> None:
    result = run(f"{command} --help")
    assert result.code == 0
    text = result.out.split("Example: lapwing ")[1].splitlines()[0]
    assert type(cli.parse(shlex.split(text))) is cli.commands()[command].load()


def test_no_words_at_all_show_the_help(run: Any) -> None:
    result = run("")
    assert result.code == 0
    assert all(f"\n  {command} " in result.out for command in COMMANDS)
    assert "lapwing learn Rooms-16 --dim 11 --out demo\n" in result.out


def test_version_is_the_packages(run: Any) -> None:
    assert run("--version").out == f"lapwing {lw.__version__}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("solve Rooms-16 --dimm 3", "--dim"),
        ("frobnicate", "audit, certify, check-loss, collect, doctor, export"),
        ("lern Rooms-16", "did you mean learn?"),
        ("plot run --what spectra", "--what"),
        ("learn Rooms-16 --log mlflow", "--log"),
        ("solve", "SOURCE"),
        ("collect Rooms-16 --steps many", "--steps"),
        ("solve Rooms-16 --observation sound", "--observation"),
        ("solve Rooms-16 --rho mine", "--rho"),
        ("learn Rooms-16 --again", "use --overwrite instead"),
        ("reproduce theory --again", "use --overwrite instead"),
        ("learn Rooms-16 --dual_rate 3", "use --objective 'allo(dual_rate=...)' instead"),
        ("learn Rooms-16 --spare=3", "use --oversampling instead"),
    ],
)
def test_invalid_arguments_are_explained_with_exit_code_2(run: Any, line: str, words: str) -> None:
    result = run(line)
    assert result.code == 2
    assert words in result.err + result.out
    assert not list(Path().iterdir())


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solve Room-16", "unknown world 'Room-16'; did you mean Rooms-16"),
        ("collect gridroom-1 --steps 10", "did you mean GridRoom-1"),
        ("solve GridMaze-7 --dim 12", "dim=12 is larger than the number of states, 11"),
        ("solve GridMaze-7 --dim 0", "dim must be a whole number of at least 1"),
        ('solve GridMaze-7 --definition "succesor(0.9)"', "did you mean successor?"),
        ('solve GridMaze-7 --definition "successor(1.5)"', "strictly between 0 and 1"),
        ("solve GridMaze-7 --slip 2", "slip is a probability"),
        ("solve missing.txt", "cannot read missing.txt: No such file"),
        ("solve missing.npy", "cannot read missing.npy"),
        ("solve Box-2 --slip 0.1", "slip"),
        ("solve room:3", "room takes 2 sizes"),
        ("collect Rooms-16 --steps 0", "steps must be at least 1"),
        ("collect Rooms-16 --seed -1", "seed must be a whole number"),
        ("collect Rooms-16 --episode-length abc", "--episode-length is a number such as 50"),
        ("collect Rooms-16 --episode-length 80-20", "low <= high"),
        ("collect gym:Nope-v0", "Gymnasium cannot make 'Nope-v0'"),
        ("audit nowhere", "nowhere/trajectories.json does not exist"),
        ("score nowhere", "nowhere/model.json does not exist"),
        ("worlds --layouts nowhere", "which is not a folder"),
        ("worlds --out worlds.gif", "written as .pdf, .png or .svg"),
    ],
)
def test_bad_input_is_one_line_exit_code_1_and_no_file(run: Any, line: str, message: str) -> None:
    result = run(line)
    assert result.code == 1
    assert message in result.err
    assert result.err.startswith("lapwing: ")
    assert "Traceback" not in result.err
    assert result.out == ""
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("XXXX\nX  X\nXXX\n", "ragged: row 2 ends at column 3, row 0 at column 4"),
        ("XXXX\nX ?X\nXXXX\n", "row 1, column 2: unknown character '?'"),
        ("XXXX\nXXXX\n", "has no free cell"),
    ],
)
def test_a_bad_layout_is_named_with_the_place(run: Any, text: str, message: str) -> None:
    Path("bad.txt").write_text(text)
    result = run("solve bad.txt --out out")
    assert result.code == 1
    assert message in result.err
    assert [path.name for path in Path().iterdir()] == ["bad.txt"]


@pytest.mark.parametrize("command", ["solve GridMaze-7 --dim 2", "collect GridMaze-7 --steps 100"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([np.nan, 0.5, 0.25, 0.25], "policy row 4 has a negative or non-finite probability"),
        ([0.5, 0.5, 0.5, 0.5], "policy row 4 sums to 2, not to 1"),
    ],
)
def test_a_bad_policy_file_names_its_row(run: Any, command: str, row: list[float], message: str) -> None:
    policy = np.full((11, 4), 0.25)
    policy[4] = row
    np.save("policy.npy", policy)
    result = run(f"{command} --policy policy.npy --out out")
    assert result.code == 1
    assert message in result.err
    assert [path.name for path in Path().iterdir()] == ["policy.npy"]


def test_a_pickled_policy_is_refused(run: Any) -> None:
    np.save("policy.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    result = run("solve GridMaze-7 --policy policy.npy --out out")
    assert result.code == 1
    assert "cannot read policy.npy" in result.err


def test_a_damaged_data_folder_is_refused_by_name(run: Any) -> None:
    run("collect GridMaze-7 --steps 300 --out data")
    path = Path("data/ids.npy")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    result = run("solve data --out out")
    assert result.code == 1
    assert "ids.npy is damaged" in result.err
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ("{", "is not readable JSON"),
        ('{"format": "something else"}', "is not a lapwing-trajectories manifest"),
        ('{"format": "lapwing-trajectories", "version": 99}', "format version 99"),
        ('{"format": "lapwing-trajectories", "version": 1}', "missing required field `checksums`"),
    ],
)
def test_a_foreign_or_broken_manifest_is_refused(run: Any, manifest: str, message: str) -> None:
    Path("data").mkdir()
    Path("data/trajectories.json").write_text(manifest)
    result = run("audit data")
    assert result.code == 1
    assert message in result.err


def test_a_model_is_not_data_and_data_are_no_model(run: Any) -> None:
    run("collect GridMaze-7 --steps 300 --out data")
    run("solve GridMaze-7 --dim 2 --out model")
    assert "trajectories, not a representation" in run("score data").err
    assert run("audit model").code == 1


def test_a_damaged_model_is_refused(run: Any) -> None:
    run("solve GridMaze-7 --dim 2 --out model")
    path = Path("model/model.safetensors")
    path.write_bytes(path.read_bytes()[:-8])
    result = run("score model")
    assert result.code == 1
    assert "checksums differ" in result.err


@pytest.mark.parametrize("command", ["collect GridMaze-7 --steps 100", "solve GridMaze-7 --dim 2"])
@pytest.mark.parametrize("name", ["thesis.txt", "spectrum.csv", "model.json", "trajectories.json"])
def test_a_folder_of_something_else_is_not_touched(run: Any, command: str, name: str) -> None:
    Path("mine").mkdir()
    Path("mine", name).write_text("{}")
    Path("mine", "more.txt").write_text("more")
    before = files_below(Path())
    result = run(f"{command} --out mine")
    assert result.code == 1
    assert "mine" in result.err
    assert files_below(Path()) == before


@pytest.mark.parametrize("command", ["collect GridMaze-7 --steps 100", "solve GridMaze-7 --dim 2"])
def test_a_file_where_a_folder_should_be_is_not_touched(run: Any, command: str) -> None:
    Path("taken").write_text("mine")
    result = run(f"{command} --out taken")
    assert result.code == 1
    assert "is a file; choose" in result.err
    assert files_below(Path()) == {"taken": b"mine"}


def test_collecting_that_fails_on_the_way_leaves_the_old_data_as_they_were(run: Any) -> None:
    run("collect GridMaze-7 --steps 300 --out data")
    before = files_below(Path())
    assert run("collect GridMaze-7 --steps 300 --episode-length 9-3 --out data").code == 1
    assert files_below(Path()) == before


def test_an_interrupt_ends_with_130_and_leaves_nothing(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lapwing.data.collecting._run", interrupted)
    result = run("collect GridMaze-7 --steps 300 --out data")
    assert result.code == 130
    assert "interrupted" in result.err
    assert not list(Path().iterdir())


def test_a_full_disk_is_one_line_and_leaves_nothing(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "data/ids.npy")

    monkeypatch.setattr("lapwing.storage.files.ArrayAppender.append", full)
    result = run("collect GridMaze-7 --steps 300 --out data")
    assert result.code == 1
    assert result.err == "lapwing: data/ids.npy: No space left on device\n"
    assert not list(Path().iterdir())


# --- as a program -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_exit_codes_and_streams_of_the_program() -> None:
    good = run_as_a_program("collect GridMaze-7 --steps 200 --out data --json")
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["transitions"] == 200
    bad = run_as_a_program("solve GridMase-7")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "did you mean GridMaze-7" in bad.stderr
    assert run_as_a_program("solve GridMaze-7 --nonsense").returncode == 2


@pytest.mark.slow
def test_the_program_solves_without_a_warning() -> None:
    done = run_as_a_program("solve GridMaze-7 --dim 3 --out out")
    assert (done.returncode, done.stderr) == (0, "")
    assert "wrote out/eigenvectors.png" in done.stdout


HEAVY = ("jax", "scipy", "gymnasium", "numpy", "matplotlib")


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        ("['solve', '--help']", ("lapwing_paper", "lapwing.cli.plot_command")),
        ("['reproduce', '--help']", ("lapwing_paper.reproduction", "lapwing.cli.plot_command")),
        ("['--help']", ("lapwing_paper.reproduction",)),
        ("[]", ("lapwing_paper.reproduction",)),
    ],
)
def test_help_imports_nothing_heavy_and_no_other_command(words: str, unwanted: tuple[str, ...]) -> None:
    program = (
        "import sys; from lapwing.cli.main import main\n"
        f"try: main({words})\n"
        "except SystemExit: pass\n"
        f"print('loaded:', [name for name in {HEAVY + unwanted} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("loaded: []\n")


# --- commands of other packages -------------------------------------------------------------------------------------

GREET = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Greet:
    \"\"\"Greet somebody.

    Example: lapwing greet --name you
    \"\"\"

    name: str = "world"

    def run(self):
        print("hello", self.name)
        return 3
"""


def with_commands(monkeypatch: pytest.MonkeyPatch, **places: str) -> None:
    found = EntryPoints(EntryPoint(name, place, cli.ENTRY_POINTS) for name, place in places.items())
    monkeypatch.setattr(cli, "entry_points", lambda group: found.select(group=group))


def test_another_package_adds_a_command(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("greeting.py").write_text(GREET)
    monkeypatch.syspath_prepend(".")
    with_commands(monkeypatch, greet="greeting:Greet", learn="greeting:Greet", broken="no_such_module:X")
    result = run("greet --name you")
    assert (result.code, result.out) == (3, "hello you\n")
    overview = run("--help").out
    assert "Greet somebody." in overview
    assert "cannot be loaded from no_such_module:X" in overview
    assert run("broken").code == 1
    assert "hello" not in run("learn").out, "a command of the package is not replaced"


def test_the_command_line_works_without_the_paper(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with_commands(monkeypatch)
    assert "reproduce" not in run("--help").out
    assert run("reproduce theory").code == 2
    assert run("worlds --json").code == 0


@pytest.mark.parametrize("line", ["worlds --pictures", "worlds --json"])
def test_a_reader_that_stops_reading_is_no_error(line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "lapwing", *line.split()],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("word", ["\udcff", "a\0b"], ids=["bytes that are no text", "NUL"])
@pytest.mark.parametrize("line", [["audit"], ["collect", "GridMaze-7", "--out"], ["audit", "x", "--json"]])
def test_a_word_that_is_no_text_is_refused_before_anything_prints_it(
    line: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*line, word]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"{word!a} is not readable text" in captured.err


def test_too_little_memory_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhaust(self: object) -> None:
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr("lapwing.cli.worlds_command.WorldsCommand.run", exhaust)
    assert cli.main(["worlds"]) == 1
    assert "not enough memory for this (Unable to allocate 9 TiB)" in capsys.readouterr().err


def test_one_learn_counts_solves_and_certifies_once(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            made[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, counted)

    count(solving, "smallest_eigenpairs")
    count(lw.Trajectories, "_counted")
    count(representation, "certificate_from_residuals")
    assert run("learn GridMaze-7 --dim 3 --data-steps 20000 --steps 40 --log-every 20 --out run").code == 0
    assert run("report run").code == 0
    # Eigenpairs of the ground truth and of the counted data; a report of its own certifies the model that it loads.
    assert made == {"smallest_eigenpairs": 2, "_counted": 1, "certificate_from_residuals": 2}


def test_solve_takes_an_engine_and_refuses_an_unknown_one(run: Any, tmp_path: Path) -> None:
    result = run("solve maze:9x9:1 --dim 4 --engine multilevel --json --out one")
    assert result.code == 0
    expected = lw.solve("maze:9x9:1", 4).eigenvalues
    np.testing.assert_allclose(lw.load("one").eigenvalues, expected, rtol=1e-6, atol=1e-12)
    refused = run("solve maze:9x9:1 --engine multilevl --out two")
    assert refused.code != 0
    assert "did you mean multilevel?" in refused.err
    assert not (tmp_path / "two" / "model.json").exists()
