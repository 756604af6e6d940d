"""Real processes: the same bits from one worker, two, and Ray; a worker that dies takes no other run with it."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing_paper.executors import LocalExecutor, make_executor, usable_cores
from lapwing_paper.run_store import DONE, FAILED, Outcome, RunStore, StudyRun
from lapwing_paper.scheduling import Failure, StudyProgress, carry_out
from lapwing_paper.study_worlds import study_world

pytestmark = pytest.mark.slow

MAZE = study_world("GridMaze-7", None)
TOO_MANY = "ProblemError: above the rank: dim=12 is larger than the number of states, 11; ask for at most 11"


def make_run(seed: int, **options: Any) -> StudyRun:
    plain = {"dim": 3, "steps": 20, "oversampling": 0, "stop_when_converged": False}
    return StudyRun("ALLO", MAZE, seed, {"preset": "default", "transitions": 0, "options": {**plain, **options}})


PAIR = [make_run(0), make_run(1)]
IMPOSSIBLE = make_run(0, dim=12, steps=1)
DIVERGING = make_run(0, learning_rate=1e30)
DOOMED = make_run(2, steps=1000)  # the longest is begun first, on the first lane


def kill_the_first_worker(executor: LocalExecutor) -> None:
    waited_until = time.monotonic() + 60.0
    while executor.processes[0].process is None and time.monotonic() < waited_until:
        time.sleep(0.01)
    os.kill(executor.processes[0].process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def one_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalExecutor, RunStore]]:
    """Two runs, one after the other in one process, which is still there."""
    store, executor = RunStore(tmp_path_factory.mktemp("one")), LocalExecutor(1)
    assert carry_out(PAIR, store, executor) == []
    yield executor, store
    executor.close()


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStore, dict[str, str], list[StudyProgress]]:
    """The same on two workers, beside a run that cannot work, one that diverges, and one whose worker is killed."""
    store, executor = RunStore(tmp_path_factory.mktemp("two")), LocalExecutor(2)
    reports: list[StudyProgress] = []

    def watch(now: StudyProgress) -> None:
        if not reports:
            kill_the_first_worker(executor)
        reports.append(now)

    try:
        found = carry_out([*PAIR, IMPOSSIBLE, DIVERGING, DOOMED], store, executor, report=watch)
    finally:
        executor.close()
    return store, {failure.run.key: failure.error for failure in found}, reports


def same_bits(one: Outcome, two: Outcome) -> bool:
    numbers = [{name: value for name, value in found.numbers.items() if name != "seconds"} for found in (one, two)]
    np.testing.assert_array_equal(one.components, two.components)
    assert one.history == two.history
    assert numbers[0] == numbers[1]
    return True


def test_two_workers_give_the_same_bits_as_one(one_worker: Any, two_workers: Any) -> None:
    for run in PAIR:
        assert same_bits(one_worker[1].read(run).outcome, two_workers[0].read(run).outcome)


def test_other_seeds_give_other_bits(one_worker: Any) -> None:
    first, second = (one_worker[1].read(run).outcome.components for run in PAIR)
    assert first.shape == second.shape == (MAZE.world.num_states, 3)
    assert not np.array_equal(first, second)


def test_the_time_that_a_run_took_is_kept(one_worker: Any) -> None:
    store = one_worker[1]
    for run in PAIR:
        assert 0.0 < store.read(run).numbers["seconds"] <= store.read(run).record.seconds


def test_a_run_whose_worker_was_killed_has_failed_and_the_others_finish(two_workers: Any) -> None:
    store, errors, reports = two_workers
    assert errors[DOOMED.key] == "the worker was killed (SIGKILL)"
    assert [store.look(run).status for run in PAIR] == [DONE, DONE]
    assert (reports[-1].done, reports[-1].failed, reports[-1].running) == (2, 3, 0)


def test_an_error_in_a_worker_is_kept_in_its_own_words(two_workers: Any) -> None:
    store, errors, _ = two_workers
    assert store.look(IMPOSSIBLE).status == FAILED
    assert errors[IMPOSSIBLE.key] == TOO_MANY


def test_a_run_that_diverges_is_not_taken_for_a_worker_that_was_killed(two_workers: Any) -> None:
    assert "learning diverged between steps 0 and 20" in two_workers[1][DIVERGING.key]


def test_a_worker_that_dies_between_two_runs_is_replaced(one_worker: Any, tmp_path: Path) -> None:
    executor = one_worker[0]
    first = executor.processes[0].process
    kill_the_first_worker(executor)
    first.join(timeout=60.0)
    assert not first.is_alive()
    store = RunStore(tmp_path)
    assert carry_out([IMPOSSIBLE], store, executor) == [Failure(IMPOSSIBLE, TOO_MANY)]
    assert executor.processes[0].process is not first


def test_ray_gives_the_same_bits_and_the_same_errors(one_worker: Any, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    before = signal.getsignal(signal.SIGTERM)
    store, executor = RunStore(tmp_path), make_executor("ray", 1)
    assert signal.getsignal(signal.SIGTERM) is before, "Ray decides what happens when this process is terminated"
    try:
        found = carry_out([*PAIR, IMPOSSIBLE], store, executor)
    finally:
        executor.close()
    for run in PAIR:
        assert same_bits(one_worker[1].read(run).outcome, store.read(run).outcome)
    assert [failure.error for failure in found] == [TOO_MANY]


def test_there_are_as_many_workers_as_cores_unless_said() -> None:
    with closing(LocalExecutor()) as executor, closing(make_executor("local", 3)) as three:
        assert executor.workers == len(usable_cores()) >= 1
        assert three.workers == 3


def test_compiled_programs_are_shared_until_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    with closing(LocalExecutor(1)) as executor:
        assert carry_out(PAIR[:1], RunStore(tmp_path), executor) == []
        folder = Path(executor._programs.name)
        assert folder.stat().st_mode & 0o077 == 0
        assert list(folder.iterdir())
    assert not folder.exists()


@pytest.mark.parametrize("workers", [0, -1])
def test_a_study_needs_a_worker(workers: int) -> None:
    with pytest.raises(LapwingError, match="at least one worker"):
        make_executor("local", workers)


@pytest.mark.parametrize("on", ["nonsense", "", "Ray", "ray:10001"])
def test_an_unknown_place_to_run_on_is_an_error_that_names_the_known_ones(on: str) -> None:
    with pytest.raises(LapwingError, match=r"local, ray or ray://"):
        make_executor(on)
