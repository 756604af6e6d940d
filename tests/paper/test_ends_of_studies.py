"""Studies that are killed, terminated or interrupted in the middle: no process stays, and the same command resumes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fabricated import Fake
from lapwing_paper import reproduction

pytestmark = pytest.mark.slow

STUDY = Path(__file__).with_name("interrupted_study.py")
WORDS = ["reproduce", "theory", "--seeds", "4", "--workers", "1"]

ENDS = {
    "kill": (-signal.SIGKILL, None),
    "terminate": (143, "lapwing: terminated; nothing was left half-written, and the same command continues the study"),
    "interrupt": (
        130,
        "lapwing: interrupted; nothing was left half-written, and the same command continues a study",
    ),
}


def begin(words: list[str]) -> "subprocess.Popen[str]":
    path = os.pathsep.join([str(STUDY.parents[2]), *sys.path])
    return subprocess.Popen(
        [sys.executable, str(STUDY), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def end(process: "subprocess.Popen[str]", how: str) -> None:
    if how == "interrupt":
        # A terminal sends Ctrl-C to everyone.
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGTERM)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int, str]]:
    """Studies stopped when one run was done and one under way, all at the same time: where, exit code, words."""
    folders = {how: tmp_path_factory.mktemp(how) / "out" for how in ENDS}
    started = {how: begin([*WORDS, "--out", str(out)]) for how, out in folders.items()}
    found = {}
    for how, process in started.items():
        with process:
            assert process.stdout is not None
            asleep = process.stdout.readline()
            assert asleep == "asleep\n"
            end(process, how)
            # The pipe ends with the last process that has it: a worker that stays behind would hold this up.
            printed, _ = process.communicate(timeout=60.0)
        found[how] = folders[how], process.returncode, printed
    return found


@pytest.mark.parametrize("how", list(ENDS))
def test_nothing_stays_behind_and_at_most_one_line_is_said(ended: Any, how: str) -> None:
    out, code, printed = ended[how]
    expected, line = ENDS[how]
    assert code == expected
    assert printed.splitlines() == ([] if line is None else [line])
    assert [path.parent.name[:12] for path in out.glob("runs/*/run.json")] == ["theory-seed0"]
    assert not list(out.glob("runs/*/.*"))


@pytest.mark.parametrize("how", list(ENDS))
def test_it_is_completed_by_its_name_alone_in_its_size_and_keeps_what_was_done(
    ended: Any, run: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    out = ended[how][0]
    (kept,) = out.glob("runs/*/run.json")
    before = kept.read_bytes()
    fake = Fake()
    monkeypatch.setattr(reproduction, "make_executor", fake)
    assert run(f"reproduce theory --resume --out {out}").code == 0
    assert [one.seed for one in fake.made] == [1, 2, 3]
    assert kept.read_bytes() == before
    assert "on 4 random graphs" in (out / "theory" / "theory.md").read_text()
