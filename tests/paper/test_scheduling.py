"""Carrying out a study: what is missing once, what failed on request, what is finished never; errors stop nothing."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from lapwing_paper.executors import Reply
from lapwing_paper.run_store import DONE, FAILED, MISSING, Outcome, RunStore, StudyRun
from lapwing_paper.scheduling import StudyProgress, carry_out, failures, pending
from lapwing_paper.study_worlds import study_world

MAZE = study_world("GridMaze-7", None)


def make_run(seed: int, method: str = "ALLO", steps: int = 10) -> StudyRun:
    return StudyRun(method, MAZE, seed, {"options": {"steps": steps}})


def answer(run: StudyRun) -> Outcome:
    """Something that shows whose answer it is."""
    return Outcome({"seed": run.seed}, [{"step": 1.0}], np.full((2, 2), run.seed, np.float32))


class Immediate:
    """Carries out runs at once, and remembers which; those in ``fail`` raise, and the one in ``stop_at`` interrupts."""

    def __init__(self, workers: int = 1, fail: dict[int, Exception] | None = None, stop_at: int | None = None) -> None:
        self.workers, self.fail, self.stop_at = workers, fail or {}, stop_at
        self.made: list[StudyRun] = []

    def submit(self, run: StudyRun) -> "Future[Reply]":
        if self.stop_at == len(self.made):
            raise KeyboardInterrupt
        self.made.append(run)
        future: Future[Reply] = Future()
        if run.seed in self.fail:
            future.set_exception(self.fail[run.seed])
        else:
            future.set_result(Reply(answer(run), "", 0.25))
        return future

    def close(self) -> None:
        pass

    @property
    def seeds(self) -> list[int]:
        return sorted(run.seed for run in self.made)


class Threaded:
    """Carries out runs in threads that end in no particular order."""

    def __init__(self, workers: int, work: Callable[[StudyRun], Outcome] = answer) -> None:
        self.workers, self.work = workers, work
        self.made: list[str] = []
        self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(workers)

    def submit(self, run: StudyRun) -> "Future[Reply]":
        self.made.append(run.key)
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        return self._pool.submit(self._carry_out, run)

    def _carry_out(self, run: StudyRun) -> Reply:
        time.sleep(0.002 * (run.seed * 7 % 3))
        try:
            return Reply(self.work(run), "", 0.5)
        finally:
            with self._lock:
                self._now -= 1

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def check(reports: list[StudyProgress], total: int) -> None:
    """Numbers that add up in every report, never go back, and are complete in the last one."""
    for now in reports:
        assert now.total == total
        assert min(now.done, now.running, now.failed) >= 0
        assert now.done + now.failed + now.running <= total
        assert now.seconds_left is None or now.seconds_left >= 0.0
    ended = [now.done + now.failed for now in reports]
    assert ended == sorted(ended)
    assert (ended[-1], reports[-1].running) == (total, 0)


@pytest.mark.parametrize("workers", [1, 3, 20])
def test_every_missing_run_is_made_exactly_once(store: RunStore, workers: int) -> None:
    runs = [make_run(seed) for seed in range(7)]
    executor = Immediate(workers)
    assert carry_out(runs, store, executor) == []
    assert executor.seeds == list(range(7))
    assert [one.numbers["seed"] for one in store.results(runs).finished] == list(range(7))
    assert store.read(runs[0]).record.seconds == 0.25  # type: ignore[union-attr]


def test_threads_that_end_out_of_order_each_keep_their_own_result(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(12)]
    executor, reports = Threaded(3), []
    carry_out(runs, store, executor, report=reports.append)
    executor.close()
    assert sorted(executor.made) == sorted(run.key for run in runs)
    assert executor.most_at_once <= 3
    check(reports, 12)
    for run in runs:
        found = store.read(run)
        assert found.numbers == {"seed": run.seed}
        np.testing.assert_array_equal(found.outcome.components, run.seed)


def test_never_more_runs_are_in_hand_than_there_are_workers(store: RunStore) -> None:
    both = threading.Barrier(2)

    def work(run: StudyRun) -> Outcome:
        both.wait(timeout=30.0)  # until another one is in hand as well
        return answer(run)

    reports: list[StudyProgress] = []
    executor = Threaded(2, work)
    assert carry_out([make_run(seed) for seed in range(6)], store, executor, report=reports.append) == []
    executor.close()
    assert max(now.running for now in reports) == 2
    assert executor.most_at_once == 2


def test_finished_runs_are_not_made_again_unless_asked(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(4)]
    carry_out(runs[:3], store, Immediate())
    second, third, fourth = Immediate(), Immediate(), Immediate()
    carry_out(runs, store, second)
    assert second.seeds == [3]
    carry_out(runs, store, third)
    assert third.seeds == []
    carry_out(runs, store, fourth, overwrite=True)
    assert fourth.seeds == [0, 1, 2, 3]


def test_failed_runs_are_made_again_only_on_request(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(3)]
    carry_out(runs, store, Immediate(fail={1: ValueError("no")}))
    plain, retried = Immediate(), Immediate()
    assert [failure.run.seed for failure in carry_out(runs, store, plain)] == [1]
    assert plain.seeds == []
    assert carry_out(runs, store, retried, resume=True) == []
    assert retried.seeds == [1]


def test_again_makes_failed_runs_too(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(2)]
    carry_out(runs, store, Immediate(fail={1: ValueError("no")}))
    executor = Immediate()
    assert carry_out(runs, store, executor, overwrite=True) == []
    assert executor.seeds == [0, 1]


def test_the_same_run_under_two_names_is_made_once_and_found_under_both(store: RunStore) -> None:
    runs = [make_run(0, "as in Figure 1"), make_run(0, "as in Figure 3"), make_run(1)]
    executor, reports = Immediate(), []
    carry_out(runs, store, executor, report=reports.append)
    assert executor.seeds == [0, 1]
    check(reports, 2)
    results = store.results(runs)
    assert [one.run.method for one in results.finished] == ["as in Figure 1", "as in Figure 3", "ALLO"]


@pytest.mark.parametrize("workers", [1, 4])
def test_a_run_that_raises_is_kept_with_its_error_and_the_others_go_on(store: RunStore, workers: int) -> None:
    runs = [make_run(seed) for seed in range(5)]
    reports: list[StudyProgress] = []
    executor = Immediate(workers, fail={2: ZeroDivisionError("by zero"), 4: KeyError("cosine")})
    found = carry_out(runs, store, executor, report=reports.append)
    assert {failure.run.seed: failure.error for failure in found} == {
        2: "ZeroDivisionError: by zero",
        4: "KeyError: 'cosine'",
    }
    assert [store.look(run).status for run in runs] == [DONE, DONE, FAILED, DONE, FAILED]
    check(reports, 5)
    assert (reports[-1].done, reports[-1].failed) == (3, 2)
    assert failures(runs, pending(runs, store)[1]) == found


def test_a_failure_asked_for_twice_is_listed_once(store: RunStore) -> None:
    runs = [make_run(0, "one"), make_run(0, "two")]
    assert len(carry_out(runs, store, Immediate(fail={0: ValueError("no")}))) == 1


def test_progress_counts_what_was_there_before(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(5)]
    carry_out(runs[:2], store, Immediate(fail={1: ValueError("no")}))
    reports: list[StudyProgress] = []
    carry_out(runs, store, Immediate(), report=reports.append)
    check(reports, 5)
    assert (reports[0].done, reports[0].failed, reports[0].running) == (1, 1, 1)
    assert reports[0].seconds_left is None
    assert reports[-1].seconds_left == 0.0


def test_progress_of_runs_made_again_starts_from_nothing(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(3)]
    carry_out(runs, store, Immediate())
    reports: list[StudyProgress] = []
    carry_out(runs, store, Immediate(), overwrite=True, report=reports.append)
    check(reports, 3)
    assert reports[0].done == 0


def test_a_study_with_nothing_to_do_says_so_once(store: RunStore) -> None:
    runs = [make_run(0)]
    carry_out(runs, store, Immediate())
    reports: list[StudyProgress] = []
    carry_out(runs, store, Immediate(), report=reports.append)
    check(reports, 1)
    assert len(reports) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_study_goes_on_where_it_stopped(store: RunStore, workers: int) -> None:
    runs = [make_run(seed) for seed in range(6)]
    first, second = Immediate(workers, stop_at=2), Immediate(workers)
    with pytest.raises(KeyboardInterrupt):
        carry_out(runs, store, first)
    assert [store.look(run).status for run in runs].count(DONE) == 2
    assert [store.look(run).status for run in runs].count(MISSING) == 4
    reports: list[StudyProgress] = []
    carry_out(runs, store, second, report=reports.append)
    assert sorted(first.seeds + second.seeds) == list(range(6))
    assert len(second.seeds) == 4
    check(reports, 6)


def test_the_longest_runs_are_begun_first(store: RunStore) -> None:
    large = StudyRun("ALLO", study_world("GridRoom-1", None), 3, {"options": {"steps": 10}})
    runs = [make_run(0, steps=10), make_run(1, steps=1000), make_run(2, steps=100), large]
    executor = Immediate()
    carry_out(runs, store, executor)
    assert [run.seed for run in executor.made] == [1, 2, 3, 0]


def test_runs_without_a_world_or_options_are_carried_out_too(store: RunStore) -> None:
    runs = [StudyRun("claims", None, seed, {"size": 6, "dim": 3}, "theory") for seed in range(2)]
    executor = Immediate()
    carry_out(runs, store, executor)
    assert executor.seeds == [0, 1]


def test_pending_is_what_a_study_would_make(store: RunStore) -> None:
    runs = [make_run(seed) for seed in range(3)]
    carry_out(runs[:2], store, Immediate(fail={1: ValueError("no")}))

    def seeds(**options: bool) -> list[int]:
        return [run.seed for run in pending([*runs, *runs], store, **options)[0]]

    assert seeds() == [2]
    assert seeds(resume=True) == [1, 2]
    assert seeds(overwrite=True) == [0, 1, 2]
