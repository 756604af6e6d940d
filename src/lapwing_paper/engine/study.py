"""Carrying out the runs of a study: those that are missing, in parallel, each kept as soon as it is done."""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import NamedTuple

from lapwing.errors import LapwingError, LapwingWarning
from lapwing_paper.engine.executors import Executor, RunError, Timed
from lapwing_paper.engine.runs import Run, checked
from lapwing_paper.engine.store import DAMAGED, DONE, FAILED, MISSING, Entry, RunStore
from lapwing_paper.engine.workers import describe


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


def pending(runs: list[Run], store: RunStore, again: bool = False, resume: bool = False) -> list[Run]:
    """The runs that are still to be made, each once: those that are missing or damaged; failed ones only to resume."""
    return _pending(_survey(runs, store), runs, again, resume)


def carry_out(
    runs: list[Run],
    store: RunStore,
    executor: Executor,
    *,
    again: bool = False,
    resume: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> list[Failure]:
    """Make the runs that are missing or damaged and keep them; the failures among all of the runs asked for.

    Args:
        runs: all runs of the study.
        store: where finished ones are, and new ones go.
        executor: who carries them out.
        again: make finished runs again.
        resume: make failed runs again.
        report: called whenever a run begins or ends.
    """
    entries = _survey(runs, store)
    todo = _pending(entries, runs, again, resume)
    _tell_of_damage(todo, entries)
    # The longest first, as far as known from the steps, so that no worker idles at the end.
    todo.sort(key=lambda run: -_size(run))
    states = {key: entry.status for key, entry in entries.items()} | {run.key: MISSING for run in todo}
    # A full disk may take no record of a failure; it is remembered here.
    errors = {key: entry.error for key, entry in entries.items() if entry.status == FAILED}
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
            errors[run.key] = _keep(run, future, store, time.perf_counter() - begun)
            states[run.key] = FAILED if errors[run.key] else DONE
            clock.ended += 1
    _say(report, states, 0, clock)
    return [Failure(run, errors[run.key]) for run in _distinct(runs) if errors.get(run.key)]


def failures(runs: list[Run], store: RunStore) -> list[Failure]:
    """The failed and damaged ones among the runs, each once."""
    entries = _survey(runs, store)
    words = {FAILED: "", DAMAGED: "damaged: "}
    found = [(run, entries[run.key]) for run in _distinct(runs)]
    return [Failure(run, words[entry.status] + entry.error) for run, entry in found if entry.status in words]


def _distinct(runs: list[Run]) -> list[Run]:
    return list({run.key: run for run in runs}.values())


def _survey(runs: list[Run], store: RunStore) -> dict[str, Entry]:
    return {run.key: store.look(run) for run in _distinct(runs)}


def _pending(entries: dict[str, Entry], runs: list[Run], again: bool, resume: bool) -> list[Run]:
    wanted = {MISSING, DAMAGED, *([DONE, FAILED] if again else []), *([FAILED] if resume else [])}
    return [run for run in _distinct(runs) if entries[run.key].status in wanted]


def _tell_of_damage(todo: list[Run], entries: dict[str, Entry]) -> None:
    for run in todo:
        if entries[run.key].status == DAMAGED:
            words = f"{run.method}, {run.world_label}, seed {run.seed} is made again, for what was there is damaged"
            warnings.warn(f"{words}: {entries[run.key].error}", LapwingWarning, stacklevel=3)


def _keep(run: Run, future: "Future[Timed]", store: RunStore, waited: float) -> str:
    """Write a finished run, or the error of one that failed, whatever it was: the others go on. The error, if any."""
    error = future.exception()
    if error is None:
        outcome, seconds = future.result()
        try:
            outcome = checked(outcome)
        except LapwingError as refused:
            error = refused
    if error is not None:
        words = str(error) if isinstance(error, RunError) else describe(error)
        with suppress(LapwingError, OSError):
            store.write_failure(run, words, waited)
        return words
    try:
        store.write(run, outcome, seconds)
    except (LapwingError, OSError) as refused:
        # Not a failure of the run: no record of one, and what was there before stays.
        return f"not written: {store.without_folder(str(refused))}"
    return ""


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
