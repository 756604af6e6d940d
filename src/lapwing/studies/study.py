"""Carrying out the runs of a study: those that are missing, in parallel, each kept as soon as it is done."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from lapwing.errors import LapwingError
from lapwing.studies.executors import Executor, Timed
from lapwing.studies.runs import Run
from lapwing.studies.store import DONE, FAILED, MISSING, RunStore


class Progress(NamedTuple):
    """How far a study has come; ``seconds_left`` is None until something can be said of it."""

    done: int
    running: int
    failed: int
    total: int
    seconds_left: float | None


class Failure(NamedTuple):
    """A run that failed, and why."""

    run: Run
    error: str


def pending(runs: list[Run], store: RunStore, again: bool = False, retry: bool = False) -> list[Run]:
    """The runs that are still to be made, each once; failed ones only on request, finished ones only if asked again."""
    wanted = {MISSING, *([DONE, FAILED] if again else []), *([FAILED] if retry else [])}
    return [run for run in {run.key: run for run in runs}.values() if store.status(run) in wanted]


def carry_out(
    runs: list[Run],
    store: RunStore,
    executor: Executor,
    *,
    again: bool = False,
    retry: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> list[Failure]:
    """Make the runs that are missing and keep them; the failures among all of the runs asked for.

    Args:
        runs: all runs of the study.
        store: where finished ones are, and new ones go.
        executor: who carries them out.
        again: make finished runs again.
        retry: make failed runs again.
        report: called whenever a run begins or ends.
    """
    todo = pending(runs, store, again, retry)
    # The longest first, as far as known from the steps, so that no worker idles at the end.
    todo.sort(key=lambda run: -_size(run))
    states = {run.key: store.status(run) for run in runs}
    states |= {run.key: MISSING for run in todo}
    clock = _Clock(len(todo))
    flying: dict[Future[Timed], tuple[Run, float]] = {}
    while todo or flying:
        while todo and len(flying) < executor.workers:
            run = todo.pop(0)
            flying[executor.submit(run)] = (run, time.perf_counter())
        _say(report, states, len(flying), clock)
        finished, _ = wait(flying, return_when=FIRST_COMPLETED)
        for future in finished:
            run, begun = flying.pop(future)
            states[run.key] = _keep(run, future, store, time.perf_counter() - begun)
            clock.ended += 1
    _say(report, states, 0, clock)
    return failures(runs, store)


def failures(runs: list[Run], store: RunStore) -> list[Failure]:
    """The failed ones among the runs, each once."""
    distinct = {run.key: run for run in runs}.values()
    return [Failure(run, store.error(run)) for run in distinct if store.status(run) == FAILED]


def _keep(run: Run, future: "Future[Timed]", store: RunStore, waited: float) -> str:
    """Write a finished run, or the error of one that failed, whatever it was: the others go on."""
    error = future.exception()
    if error is None:
        outcome, seconds = future.result()
        try:
            store.write(run, outcome, seconds)
            return DONE
        except LapwingError as refused:
            error = refused
    # Ray wraps what a run raised, with a traceback full of this machine's paths.
    error = getattr(error, "cause", None) or error
    name = type(error).__name__
    words = "the worker was killed" if name == "BrokenProcessPool" else f"{name}: {error}"
    store.write_failure(run, " ".join(words.split()), waited)
    return FAILED


def _say(report: Callable[[Progress], None] | None, states: dict[str, str], running: int, clock: "_Clock") -> None:
    if report is not None:
        found = list(states.values())
        report(Progress(found.count(DONE), running, found.count(FAILED), len(found), clock.seconds_left()))


def _size(run: Run) -> float:
    """A rough measure of how long a run will take."""
    steps = float(run.settings.get("options", {}).get("steps") or 2000)
    states = float(getattr(run.place.world, "num_states", 1)) if run.place is not None else 1.0
    return steps * (states + 100.0)


class _Clock:
    """Time left, from how long the runs so far took."""

    def __init__(self, total: int) -> None:
        self.total, self.ended, self.started = total, 0, time.perf_counter()

    def seconds_left(self) -> float | None:
        if not self.ended:
            return None
        return (time.perf_counter() - self.started) / self.ended * (self.total - self.ended)
