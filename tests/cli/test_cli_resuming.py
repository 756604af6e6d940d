"""Runs on the command line that are resumed after a kill, Ctrl-C or a full disk; damaged and forged run files."""

import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest

from lapwing.cli import learn_command
from lapwing.cli.learn_command import LearnCommand
from lapwing.environments.registry import make_world
from lapwing.storage import checkpoints
from lapwing.storage.checkpoints import checkpoint_files
from lapwing.storage.folders import locked
from lapwing.storage.run_configuration import (
    CHECKPOINTS,
    FINISHED,
    RUN_FILE,
    UNFINISHED,
    RunConfiguration,
    read_configuration,
    write_configuration,
)
from lapwing.training import loop

pytestmark = pytest.mark.slow

LEARN = "learn GridMaze-7 --dim 3 --data-steps 30000 --steps 60 --log-every 10 --all-steps --no-report"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(loop, "SECONDS_BETWEEN", 0.0)


def stop_after(monkeypatch: pytest.MonkeyPatch, count: int, error: BaseException) -> None:
    """Let so many checkpoints be written, then fail."""
    write, written = checkpoints.write_bytes, []

    def failing(path: Path, content: bytes) -> Path:
        if len(written) == count:
            raise error
        written.append(path)
        return write(path, content)

    monkeypatch.setattr(checkpoints, "write_bytes", failing)


class KilledError(BaseException):
    """Stands for a kill: nothing may catch it."""


def interrupted(run: Any, monkeypatch: pytest.MonkeyPatch, out: str = "run", more: str = "") -> None:
    with monkeypatch.context() as patched:
        stop_after(patched, 2, KilledError())
        with pytest.raises(KilledError):
            run(f"{LEARN} {more} --out {out}")
    assert [path.name[5:15] for path in checkpoint_files(Path(out) / CHECKPOINTS)] == ["0000000020", "0000000010"]


def same_result(one: str, other: str) -> bool:
    return all(
        (Path(one) / name).read_bytes() == (Path(other) / name).read_bytes()
        for name in ("model.safetensors", "metrics.csv", "spectrum.csv")
    )


@pytest.mark.parametrize("more", ["", "--batches sampled --batch-size 64"])
def test_a_run_that_was_interrupted_goes_on_to_the_same_files(
    run: Any, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    assert run(f"{LEARN} {more} --out whole").code == 0
    interrupted(run, monkeypatch, more=more)
    result = run("learn --resume run")
    assert result.code == 0, result.err
    assert same_result("run", "whole")
    provenance = json.loads(Path("run/provenance.json").read_text())
    assert provenance["command"] == ["lapwing", *shlex.split(f"{LEARN} {more} --out run")]
    again = run("learn --resume run --json")
    assert again.code == 0
    assert len(again.json["spectrum"]) == 3
    assert "had ended" in run("learn --resume run").err


def test_a_process_that_is_told_to_stop_says_how_to_go_on(run: Any) -> None:
    words = [*shlex.split(LEARN.replace("--steps 60", "--steps 100000")), "--out", "my run"]
    process = subprocess.Popen([sys.executable, "-m", "lapwing", *words], stderr=subprocess.PIPE, text=True)
    with process:
        while not checkpoint_files(Path("my run") / CHECKPOINTS):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
    assert process.returncode == 130
    assert "stopping at the end of this chunk" in error
    assert "of 100,000 steps; resume with: lapwing learn --resume 'my run'" in " ".join(error.split())
    configuration = read_configuration(Path("my run"))
    assert configuration is not None
    assert configuration.status == UNFINISHED


def test_what_was_learned_is_not_lost_to_the_same_words_typed_again(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(run, monkeypatch)
    for words in (LEARN, "solve GridMaze-7 --dim 3"):
        result = run(f"{words} --out run")
        assert result.code == 1
        assert "lapwing learn --resume run" in result.err
    assert len(checkpoint_files(Path("run") / CHECKPOINTS)) == 2
    assert run(f"{LEARN} --out run --overwrite").code == 0
    assert run("solve GridMaze-7 --dim 3 --out run").code == 0
    assert not (Path("run") / CHECKPOINTS).exists()
    assert not (Path("run") / RUN_FILE).exists()


def test_a_full_disk_says_how_to_go_on_and_nothing_is_lost(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 8:
            raise OSError(28, os.strerror(28))
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        result = run(f"{LEARN} --out run")
    assert result.code == 1
    assert "No space left on device" in result.err
    assert "resume with: lapwing learn --resume run" in result.err
    assert not list(Path("run").rglob(".step-*"))
    assert run("learn --resume run").code == 0
    assert run(f"{LEARN} --out whole").code == 0
    assert same_result("run", "whole")


def test_a_damaged_checkpoint_is_said_aloud(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(run, monkeypatch)
    newest = checkpoint_files(Path("run") / CHECKPOINTS)[0]
    newest.write_bytes(newest.read_bytes()[:-1])
    result = run("learn --resume run")
    assert result.code == 0
    assert "is damaged: its checksum is not the one in its name; the one before it is used" in result.err


def test_a_run_of_other_data_does_not_go_on(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mine.txt").write_text(make_world("GridMaze-7").layout.to_text())
    with monkeypatch.context() as patched:
        stop_after(patched, 1, KilledError())
        with pytest.raises(KilledError):
            run(f"{LEARN.replace('GridMaze-7', 'mine.txt')} --out run")
    Path("mine.txt").write_text(make_world("GridMaze-9").layout.to_text())
    result = run("learn --resume run")
    assert result.code == 1
    assert "checkpoints of another run: data was" in result.err
    assert len(checkpoint_files(Path("run") / CHECKPOINTS)) == 1


def test_a_second_process_is_refused(run: Any) -> None:
    with locked(Path("run")):
        for words in (LEARN, "solve GridMaze-7 --dim 3"):
            result = run(f"{words} --out run")
            assert result.code == 1
            assert "another process is at work in run" in result.err


def test_experience_of_other_environments_is_kept_and_not_collected_twice(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "learn gym:FrozenLake-v1 --dim 2 --data-steps 300 --steps 30 --log-every 10 --all-steps --no-report --out run"
    )
    with monkeypatch.context() as patched:
        stop_after(patched, 1, KilledError())
        with pytest.raises(KilledError):
            run(words)
    before = Path("run/experience/observations.npy").stat().st_mtime_ns
    result = run("learn --resume run")
    assert result.code in (0, 3), result.err
    assert Path("run/experience/observations.npy").stat().st_mtime_ns == before


class Corridor(gymnasium.Env[Any, Any]):
    """Nine places in a row."""

    observation_space = gymnasium.spaces.Box(0, 8, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.time = 4, 0
        return np.array([self.place], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place, self.time = min(max(self.place + 2 * int(action) - 1, 0), 8), self.time + 1
        return np.array([self.place], np.float32), 0.0, False, self.time == 20, {}


gymnasium.register("Corridor-v0", Corridor)


@pytest.mark.parametrize("source", [f"gym:{__name__}:Corridor-v0", f"gym:Corridor-v0 --wrappers {__name__}:Same"])
def test_a_run_whose_experience_is_kept_is_resumed_without_the_code_that_it_names(
    run: Any, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    words = f"learn {source} --dim 2 --data-steps 300 --steps 30 --log-every 10 --all-steps --no-report"
    with monkeypatch.context() as patched:
        stop_after(patched, 1, KilledError())
        with pytest.raises(KilledError):
            run(f"{words} --out run")
    assert run(f"{words} --out whole").code in (0, 3)
    import_module = importlib.import_module

    def imported(name: str) -> Any:
        return pytest.fail("the module was imported") if name == __name__ else import_module(name)

    with monkeypatch.context() as patched:
        patched.setattr(gymnasium, "make", lambda *_, **__: pytest.fail("the environment was made again"))
        patched.setattr("importlib.import_module", imported)
        result = run("learn --resume run")
        assert result.code in (0, 3), result.err
        assert "had ended" in run("learn --resume run").err
    assert same_result("run", "whole")


class Same(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Changes nothing."""


@pytest.mark.parametrize("more", ["--steps 5", "GridMaze-9", "--out elsewhere", "--overwrite", "--all-steps"])
def test_a_run_goes_on_with_its_own_words_alone(run: Any, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    interrupted(run, monkeypatch)
    result = run(f"learn {more} --resume run")
    assert result.code == 1
    assert "uses the arguments that run was started with; leave" in result.err


def test_without_a_run_there_is_nothing_to_go_on_with(run: Any) -> None:
    assert "holds no run that `lapwing learn` started" in run("learn --resume nowhere").err
    result = run("learn")
    assert result.code == 1
    assert "name what to learn" in result.err
    assert not list(Path().iterdir())


def stored(**changes: Any) -> RunConfiguration:
    """What ``lapwing learn GridMaze-7`` keeps, with some arguments changed; ``...`` takes one away."""
    arguments = learn_command._stored(LearnCommand("GridMaze-7", dim=3, seed=0, steps=20)) | changes
    kept = {name: value for name, value in arguments.items() if value is not ...}
    return RunConfiguration("learn", kept, {}, ["lapwing", "learn", "GridMaze-7"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"source": "Nowhere-3"}, "Nowhere-3"),
        ({"steps": "many"}, "is damaged"),
        ({"steps": ...}, "is damaged"),
        ({"resume": "elsewhere"}, "is damaged"),
        ({"out": "elsewhere"}, "is damaged"),
        ({"config": "elsewhere"}, "is damaged"),
        ({"layouts": 3}, "is damaged"),
        ({"log": ["/etc"]}, "is damaged"),
        ({"source": ""}, "is damaged"),
        ({"dim": None}, "is damaged"),
        ({"seeds": 999999999999}, "is damaged"),
        ({"source": "gym:evil_module:Env-v0"}, "names code to import"),
        ({"wrappers": ["evil_module:Wrapper"]}, "names code to import"),
    ],
    ids=str,
)
def test_a_forged_run_file_is_a_clear_error_and_runs_no_code(
    run: Any, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], complaint: str
) -> None:
    Path("evil_module.py").write_text("open('executed', 'w')")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    Path("run").mkdir()
    write_configuration(Path("run"), stored(**changes))
    result = run("learn --resume run")
    assert result.code == 1
    assert complaint in result.err
    assert not Path("executed").exists()
    assert sorted(path.name for path in Path().iterdir()) == ["evil_module.py", "run"]


@pytest.mark.parametrize("changes", [{"version": 3}, {"command": "solve"}, {"options": {"stepps": 3}}], ids=str)
def test_other_fields_of_a_run_file_are_checked_too(run: Any, changes: dict[str, Any]) -> None:
    write_configuration(Path("run"), stored())
    content = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps(content | changes))
    assert run("learn --resume run").code == 1
    assert not list(Path("run").glob("model*"))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"format": "lapwing-run", "version": 2}',
        '{"format": "lapwing-run", "version": 2, "command": "learn", "arguments": [], "options": {}, "typed": ["a"]}',
        '{"format": "lapwing-run", "version": 2, "command": 3, "arguments": {}, "options": {}, "typed": ["a"]}',
        '{"format": "lapwing-run", "version": 2, "command": "learn", "arguments": {}, "options": {}, "typed": [3]}',
        '{"format": "lapwing-run", "version": 2, "command": "learn", "arguments": {}, "options": {}, "typed": ["a"],'
        ' "status": "gone"}',
    ],
)
def test_a_damaged_run_file_is_a_clear_error(run: Any, content: str) -> None:
    Path("run").mkdir()
    (Path("run") / RUN_FILE).write_text(content)
    result = run("learn --resume run")
    assert result.code == 1
    assert RUN_FILE in result.err


def test_learning_that_cannot_begin_leaves_no_trace(run: Any) -> None:
    for words in (
        "learn GridMaze-7 --dim 300 --out run",
        "learn Nowhere-3 --out run",
        f"{LEARN} --batches no --out run",
    ):
        assert run(words).code == 1
        assert not Path("run").exists()


def test_a_run_in_a_folder_named_after_its_world_goes_on(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("GridMaze-7").mkdir()
    interrupted(run, monkeypatch, "GridMaze-7")
    assert run("learn --resume GridMaze-7").code == 0


def test_only_the_files_of_a_run_are_removed_with_it(run: Any) -> None:
    for name in (CHECKPOINTS, "experience"):
        (Path("run") / name).mkdir(parents=True)
        (Path("run") / name / "notes.txt").write_text("mine")
    write_configuration(Path("run"), msgspec.structs.replace(stored(), status=FINISHED))
    (Path("run") / CHECKPOINTS / "step-1.safetensors").write_bytes(b"ours")
    assert run("solve GridMaze-7 --dim 3 --out run").code == 0
    left = sorted(str(path.relative_to("run")) for path in Path("run").glob("*/*"))
    assert left == [f"{CHECKPOINTS}/notes.txt", "experience/notes.txt"]


def test_half_written_files_of_a_kill_are_swept_away(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(run, monkeypatch)
    for name in (".model.next.safetensors.abcd_123", ".curves.png.abcd_123"):
        (Path("run") / name).write_bytes(b"half")
    (Path("run") / ".mine").write_bytes(b"mine")
    assert run("learn --resume run").code == 0
    assert sorted(path.name for path in Path("run").glob(".*")) in ([".lock", ".mine"], [".mine"])


def test_a_termination_before_learning_begins_leaves_no_trace() -> None:
    words = f"{sys.executable} -m lapwing learn Rooms-64 --data-steps 60000000 --out run"
    process = subprocess.Popen(shlex.split(words), stderr=subprocess.PIPE, text=True)
    while not Path("run/run.json").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 143
    assert said.startswith("lapwing: interrupted")
    assert not Path("run").exists()


def test_a_finished_run_that_was_saved_over_is_shown_all_the_same(run: Any) -> None:
    import lapwing as lw

    assert run(f"{LEARN} --out run").code == 0
    lw.solve("GridMaze-7", 3).save("run")
    result = run("learn --resume run")
    assert (result.code, "Traceback" in result.err) == (0, False)
