"""Loggers: numbers arrive step by step, logs open late and close once, a missing package is named with its extra."""

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lapwing.cli import main as cli
from lapwing.errors import CannotWriteError, MissingExtraError
from lapwing.training import Progress, loggers


def line(step: int, **extra: float) -> Progress:
    metrics = {"loss": np.float32(3.0), "barrier": np.float32(1.5)}
    return Progress(step, 100, metrics, np.array([0.0, 0.5]), [extra])


class Recorder(ModuleType):
    """Stands for both packages: keeps what it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__file__ = "recorder.py"
        self.opened: list[dict[str, Any]] = []
        self.written: list[tuple[str, float, int]] = []
        self.closed = 0

    def SummaryWriter(self, **options: Any) -> Any:  # noqa: N802
        self.opened.append(options)
        add = lambda name, value, step: self.written.append((name, value, step))  # noqa: E731
        return SimpleNamespace(add_scalar=add, flush=lambda: None, close=self._close)

    def init(self, **options: Any) -> Any:
        self.opened.append(options)
        return SimpleNamespace(log=self._log, finish=self._close)

    def Settings(self, **options: Any) -> dict[str, Any]:  # noqa: N802
        return options

    def _log(self, numbers: dict[str, float], step: int) -> None:
        self.written += [(name, value, step) for name, value in numbers.items()]

    def _close(self) -> None:
        self.closed += 1


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    stand_in = Recorder("recorder")
    for name in loggers.PACKAGES.values():
        monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    return stand_in


both = pytest.mark.parametrize("name", ["tensorboard", "wandb"])


@both
def test_every_number_of_a_report_arrives_with_its_step(recorder: Recorder, name: str, tmp_path: Path) -> None:
    with loggers.LOGGERS[name](tmp_path) as logger:
        logger(line(20, cosine=0.9))
        logger(line(40, cosine=0.95))
    assert ("cosine", 0.9, 20) in recorder.written
    assert ("cosine", 0.95, 40) in recorder.written
    assert ("loss", 3.0, 20) in recorder.written
    assert ("barrier", 1.5, 40) in recorder.written
    assert ("eigenvalues/02", 0.5, 40) in recorder.written
    assert "step" not in {name for name, _, _ in recorder.written}


@both
def test_a_log_is_opened_by_the_first_report_and_closed_once(recorder: Recorder, name: str, tmp_path: Path) -> None:
    logger = loggers.LOGGERS[name](tmp_path / "run")
    assert not recorder.opened
    assert not (tmp_path / "run").exists()
    logger.close()
    assert recorder.closed == 0
    logger(line(20))
    logger(line(40))
    logger.close()
    logger.close()
    assert (len(recorder.opened), recorder.closed) == (1, 1)


@both
def test_a_log_is_closed_where_learning_fails(recorder: Recorder, name: str, tmp_path: Path) -> None:
    def fail(report: loggers.Logger) -> None:
        report(line(20))
        raise RuntimeError

    with pytest.raises(RuntimeError), loggers.LOGGERS[name](tmp_path) as logger:
        fail(logger)
    assert recorder.closed == 1


def test_wandb_is_offline_unless_the_environment_says_otherwise(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loggers.wandb(tmp_path)(line(1))
    monkeypatch.setenv("WANDB_MODE", "disabled")
    loggers.wandb(tmp_path)(line(1))
    assert [options["mode"] for options in recorder.opened] == ["offline", "disabled"]


@pytest.mark.parametrize(("given", "kept"), [(None, "false"), ("true", "true")])
def test_wandb_tells_its_makers_nothing_unless_the_environment_says_so(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str | None, kept: str
) -> None:
    # Set first, so that what the logger sets is taken back after the test.
    monkeypatch.setenv("WANDB_ERROR_REPORTING", given or "")
    if given is None:
        monkeypatch.delenv("WANDB_ERROR_REPORTING")
    loggers.wandb(tmp_path)
    assert os.environ["WANDB_ERROR_REPORTING"] == kept


def test_seeds_are_averaged(recorder: Recorder, tmp_path: Path) -> None:
    eigenvalues = np.array([[0.0, 1.0], [1.0, 2.0]])
    loggers.tensorboard(tmp_path)(Progress(5, 10, {"loss": np.array([1.0, 3.0])}, eigenvalues, []))
    assert recorder.written == [("loss", 2.0, 5), ("eigenvalues/01", 0.5, 5), ("eigenvalues/02", 1.5, 5)]


@both
def test_a_missing_package_is_named_with_its_extra(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, loggers.PACKAGES[name], None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'lapwing\[{name}\]'"):
        loggers.LOGGERS[name](tmp_path)


def test_a_folder_of_logs_is_not_taken_for_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wandb").mkdir()
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(MissingExtraError):
        loggers.wandb(tmp_path)
    sys.modules.pop("wandb", None)


def test_a_log_that_cannot_begin_is_one_clear_error(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("no core binary")

    monkeypatch.setattr(recorder, "init", broken)
    with pytest.raises(CannotWriteError, match="no core binary"):
        loggers.wandb(tmp_path)(line(1))


# --- on the command line ------------------------------------------------------------------------------------------

TINY = ["learn", "GridMaze-7", "--exact", "--dim", "3", "--steps", "40", "--log-every", "20", "--no-report"]


@pytest.mark.slow
def test_learning_writes_to_both_loggers(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main([*TINY, "--out", "run", "--log", "tensorboard", "--log", "wandb"]) == 0
    assert [options.get("logdir", options.get("dir")) for options in recorder.opened] == ["run/tensorboard", "run"]
    assert [step for name, _, step in recorder.written if name == "cosine"] == [20, 20, 40, 40]
    assert recorder.closed == 2


def test_a_missing_package_ends_the_command_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert cli.main([*TINY, "--out", "run", "--log", "wandb"]) == 1
    assert "lapwing[wandb]" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_folder_that_holds_only_logs_of_an_interrupted_run_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "tensorboard").mkdir(parents=True)
    assert cli.main([*TINY, "--out", "run"]) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    assert cli.main([*TINY, "--out", "other"]) == 1


# --- the real packages, where they are installed --------------------------------------------------------------------


def test_tensorboard_event_files_hold_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with loggers.tensorboard(tmp_path / "logs") as logger:
        logger(line(20, cosine=0.875))
    (events,) = (tmp_path / "logs").iterdir()
    content = events.read_bytes()
    assert events.name.startswith("events.out.tfevents")
    assert b"cosine" in content
    assert np.float32(0.875).tobytes() in content


def test_wandb_writes_an_offline_run_and_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("wandb")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    with loggers.wandb(tmp_path / "run", config={"dim": 3}) as logger:
        logger(line(20, cosine=0.875))
        logger(line(40, cosine=0.9))
    package.teardown()  # waits for its own process, which writes the last numbers after the run was finished
    (log,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    assert b"cosine" in log.read_bytes()
    assert b"0.875" in log.read_bytes()
