"""Any words after ``lapwing``: an exit code that means something, a word of explanation, and nothing half-written."""

import contextlib
import itertools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lapwing as lw
from lapwing.cli import main as cli
from lapwing.cli.online_command import OnlineCommand
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.data.trajectories import Trajectories
from lapwing.report.run_folder import write_run

pytestmark = pytest.mark.slow

CODES = {0, 1, 2, 3}
WRITERS = {0, 3}  # 3: a result was written, and must not be trusted

COMMANDS = {
    "worlds": ["--layouts", "--pictures", "--out", "--json"],
    "collect": ["--steps", "--episode-length", "--observation", "--slip", "--policy", "--seed", "--layouts", "--out"],
    "audit": ["--discount", "--json"],
    "solve": ["--dim", "--definition", "--observation", "--slip", "--policy", "--rho", "--layouts", "--out", "--json"],
    "learn": [
        "--dim",
        "--preset",
        "--exact",
        "--data-steps",
        "--steps",
        "--objective",
        "--discounts",
        "--config",
        "--batches",
        "--out",
    ],
    "online": ["--dim", "--capacity", "--every", "--steps", "--keep", "--data-steps", "--out", "--json"],
    "score": ["--truth", "--data", "--definition", "--tolerance", "--layouts", "--json"],
    "report": ["--out", "--json"],
    "plot": ["--what", "--components", "--out", "--width", "--json"],
    "reproduce": ["--list", "--seeds", "--steps", "--worlds", "--on", "--workers", "--rebuild", "--json"],
    "export": ["--weights", "--json"],
    "certify": ["--discounts", "--seed", "--layouts", "--json"],
    "check-loss": ["--update", "--init", "--eigenvalues", "--gradient", "--json"],
    "doctor": ["--json"],
}
SOURCES = [
    "GridMaze-7",
    "room:2x3",
    "maze:2x2:1",
    "Box-1",
    "data",
    "model",
    "learned",
    "own.txt",
    "chain.npy",
    "theory",
]
ODD_SOURCES = [
    "room:999999999x9",
    "maze:0x0",
    "junk.txt",
    "junk.npy",
    "nowhere",
    "gym:Nothing-v0",
    "gym:",
    "gym:os:x",
    ".",
]
VALUES = [
    "9" * 30,
    "9" * 5000,
    *["0", "1", "2", "3", "-1", "0.5", "nan", "inf", "1e400", "٣", "1-2", "2-1", "1,2", "20-80"],
]
NAMES = [
    "truncated(0.9, 9)",
    *["xy", "pixels", "uniform", "spectrum", "comparison", "paper", "allo", "ggdo", "successor(0.9)"],
]
PLACES = [
    "x" * 300,
    *["new", "new/deep", "data", "model", "junk.txt", "layouts", "policy.npy", "new.html", "new.png", "new.pdf"],
]
JUNK = [
    "",
    " ",
    "\0",
    "\udcff",
    "[bold]x",
    *["-", "--", "---", "-x", "--jsn", "--help", "=", "--dim=2", "--dim=", "%s", "{}", "$(x)"],
]

words = st.sampled_from(SOURCES + ODD_SOURCES + VALUES + NAMES + PLACES + JUNK) | st.text(max_size=6)
some_words = st.lists(words, max_size=4)


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Mostly a command, what it is about and a few of its options with values; else words as they come."""
    if draw(st.integers(0, 9)) == 0:
        return draw(some_words)
    command = draw(st.sampled_from(sorted(COMMANDS)))
    line = [command, draw(st.sampled_from(SOURCES) | words)]
    for _ in range(draw(st.integers(0, 3))):
        line.append(draw(st.sampled_from(COMMANDS[command] + ["--seed", "--log", "--no-report"])))
        line += [draw(st.sampled_from(VALUES + NAMES + PLACES) | words)] if draw(st.booleans()) else []
    return line


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with one of everything that commands read."""
    place = tmp_path_factory.mktemp("template")
    data = lw.collect("GridMaze-7", 60, episode_length=10)
    data.save(place / "data")
    write_run(lw.solve("GridMaze-7", 3), place / "model")
    model = lw.learn(data, dim=2, oversampling=1, steps=2, hidden=(4,), log_every=1)
    write_run(model, place / "learned", data=data)
    (place / "own.txt").write_text("XXXX\nX  X\nXXXX")
    (place / "layouts").mkdir()
    (place / "layouts" / "Own.txt").write_text("X  X")
    np.save(place / "chain.npy", np.full((3, 3), 1 / 3))
    np.save(place / "policy.npy", np.full((11, 4), 0.25))
    (place / "junk.txt").write_bytes(b"\xff\x00junk")
    (place / "junk.npy").write_bytes(b"\x93NUMPY junk")
    return place


@pytest.fixture(scope="module", autouse=True)
def light_work(template: Path) -> Iterator[None]:
    """Training, studies and the doctor's own try read no words and take seconds: they are left out, streams short."""
    learned, pieces = lw.load(template / "learned"), OnlineCommand._pieces
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lapwing.training.learner.Learner.fit_many", lambda _, __, seeds, **___: [learned] * len(seeds))
        patch.setattr(OnlineCommand, "_pieces", lambda *given: itertools.islice(pieces(*given), 1))
        patch.setattr("lapwing_paper.reproduction.carry_out", lambda *_, **__: None)
        patch.setattr(
            "lapwing.cli.doctor_command.tiny_run", lambda: {"solve_seconds": 0.0, "learn_seconds": 0.0, "cosine": 1.0}
        )
        patch.delenv("LAPWING_LAYOUTS", raising=False)
        yield


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def run_inside(line: list[str], place: Path, capsys: Any) -> tuple[int, str, str]:
    """Exit code, output and errors of one command in a folder; any exception but leaving fails the test."""
    capsys.readouterr()
    with contextlib.chdir(place), warnings.catch_warnings():
        try:
            code = cli.main(line)
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def check_what_is_left(place: Path, before: dict[str, bytes], code: int) -> None:
    """Nothing hidden, nothing half-written, and nothing at all where the command was refused."""
    after = contents(place)
    hidden = [name for name in after if any(part.startswith(".") for part in Path(name).parts)]
    assert not [name for name in hidden if not name.endswith(".lock")]
    if code not in WRITERS:
        assert {name for name in after if after[name] != before.get(name)} == set()
    for name in after.keys() - before.keys():
        if name.endswith("model.json"):
            lw.load((place / name).parent)
        elif name.endswith(DATA_MANIFEST):
            Trajectories.load((place / name).parent)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=command_lines())
def test_any_words_end_with_a_code_an_explanation_and_whole_files(
    line: list[str], template: Path, capsys: pytest.CaptureFixture[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as home:
        place = Path(home) / "here"
        shutil.copytree(template, place, copy_function=os.link)
        before = contents(place)
        code, _, explained = run_inside(line, place, capsys)
        assert code in CODES
        assert code == 0 or explained.strip()
        assert "Traceback" not in explained
        assert [path.name for path in Path(home).iterdir()] == ["here"]
        check_what_is_left(place, before, code)
