"""Whatever a run does to its worker, it alone has failed, and its error is named; real processes."""

import os
import signal
import time
from typing import Any

import numpy as np
import pytest

from lapwing_paper.executors import LONGEST_MESSAGE, LocalExecutor, attempt, describe
from lapwing_paper.run_store import DONE, FAILED, Outcome, RunStore, StudyRun
from lapwing_paper.scheduling import Failure, carry_out

pytestmark = pytest.mark.slow


class ForgetfulError(Exception):
    """An error that another process cannot put together again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class StuckError(Exception):
    """An error that does not even leave its process."""

    def __init__(self) -> None:
        super().__init__("held back")
        self.held = lambda: None


class MuteError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


ERRORS: dict[str, BaseException] = {
    "ValueError: no": ValueError("no"),
    "MemoryError": MemoryError(),
    "SystemExit: 3": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "GeneratorExit": GeneratorExit(),
    "ForgetfulError: one two": ForgetfulError("one", "two"),
    "StuckError: held back": StuckError(),
    "MuteError": MuteError(),
    "OSError: [Errno 28] No space left on device": OSError(28, "No space left on device"),
    "ValueError: half a ?": ValueError("half a \ud800"),
}

ANSWERS: dict[str, Any] = {
    "DataError: the run returned something that is not a finite number (Object of type function": Outcome(
        {"cosine": describe}
    ),
    "DataError: the run returned something that is not a finite number (Out of range float": Outcome(
        {"cosine": float("nan")}
    ),
    "DataError: the run returned something that is not a finite number (float() argument": Outcome(
        {}, [{"step": None}]
    ),  # type: ignore[dict-item]
    "DataError: the run returned components that are not finite": Outcome({}, [], np.array([np.nan], np.float32)),
    "DataError: the run returned something that is not a finite number (ufunc 'isfinite'": Outcome(
        {}, [], np.array([describe], dtype=object)
    ),
    "DataError: the run returned NoneType, not an Outcome": None,
}

ENDS = {
    "the worker ended during the run (exit code 3)": "exit",
    "the worker was killed (SIGKILL)": "kill",
}


def misbehave(order: dict[str, Any]) -> Outcome:
    """What workers do in these tests: as the order says."""
    wanted = order["settings"]["fault"]
    if wanted in ERRORS:
        raise ERRORS[wanted]
    if ENDS.get(wanted) == "exit":
        os._exit(3)
    if ENDS.get(wanted) == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60.0)
    if wanted in ANSWERS:
        answer: Outcome = ANSWERS[wanted]
        return answer
    deaf = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return Outcome({"pid": os.getpid(), "deaf": deaf}, [{"step": 1.0}], np.eye(2, dtype=np.float32))


FAULTS = [*ERRORS, *ANSWERS, *ENDS]
SOUND = [f"sound {number}" for number in range(4)]


def make_run(fault: str) -> StudyRun:
    return StudyRun("m", None, 0, {"fault": fault}, "misbehave")


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStore, dict[str, Failure]]:
    """A study of faults, with sound runs before, between and after them, on two workers."""
    middle = len(FAULTS) // 2
    words = [*SOUND[:2], *FAULTS[:middle], SOUND[2], *FAULTS[middle:], SOUND[3]]
    store, executor = RunStore(tmp_path_factory.mktemp("faulty")), LocalExecutor(2, misbehave)
    found = carry_out([make_run(fault) for fault in words], store, executor)
    pids = [worker.process.pid for worker in executor.processes]
    executor.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids), "a worker outlived its executor"
    return store, {failure.run.key: failure for failure in found}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_run_has_failed_with_an_error_that_is_named(faulty: Any, fault: str) -> None:
    store, found = faulty
    run = make_run(fault)
    assert store.look(run).status == FAILED
    assert found[run.key].error.startswith(fault)
    assert store.look(run).error == found[run.key].error


def test_every_other_run_is_intact(faulty: Any) -> None:
    store, found = faulty
    runs = [make_run(word) for word in SOUND]
    assert [store.look(run).status for run in runs] == [DONE] * len(runs)
    assert len(found) == len(FAULTS)


def test_workers_do_not_hear_an_interrupt_not_even_while_they_wake_up(faulty: Any) -> None:
    assert all(faulty[0].read(make_run(word)).numbers["deaf"] for word in SOUND)


def test_what_survives_in_a_worker_costs_no_new_one(faulty: Any) -> None:
    # Two workers to begin with, and one for each that ended.
    pids = {faulty[0].read(make_run(word)).numbers["pid"] for word in SOUND}
    assert len(pids) <= 2 + len(ENDS)


def test_an_attempt_gives_plain_data_whatever_happens() -> None:
    reply = attempt({"settings": {"fault": "StuckError: held back"}}, misbehave)
    assert (reply.outcome, reply.error) == (None, "StuckError: held back")
    assert reply.seconds >= 0.0


def test_an_error_that_quotes_half_the_memory_is_cut_short() -> None:
    words = describe(ValueError("x" * 1_000_000))
    assert words.startswith("ValueError: xxx")
    assert len(words) < LONGEST_MESSAGE + 30
