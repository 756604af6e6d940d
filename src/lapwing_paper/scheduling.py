"""Carrying out the runs of a study: those that are missing, in parallel, each written as soon as it is done."""

import time
import warnings
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from typing import NamedTuple

from lapwing.errors import LapwingError, LapwingWarning
from lapwing_paper.executors import Executor, Reply, describe
from lapwing_paper.run_store import DAMAGED, DONE, FAILED, MISSING, Entry, RunStore, StudyRun

# What a world whose states cannot be listed counts as.
UNLISTED_STATES = 1_000


class StudyProgress(NamedTuple):
    """Progress of a study; ``seconds_left`` is None until it can be estimated."""

    done: int
    running: int
    failed: int
    total: int
    seconds_left: float | None


class Failure(NamedTuple):
    """A run that failed, and why."""

    run: StudyRun
    error: str


def pending(
    runs: list[StudyRun], store: RunStore, overwrite: bool = False, resume: bool = False
) -> tuple[list[StudyRun], dict[str, Entry]]:
    """The runs that are still to be made, each once: those missing or damaged; failed ones only with ``resume``.

    Args:
        runs: all runs of the study.
        store: where finished ones are.
        overwrite: finished runs too.
        resume: failed runs too.

    Returns:
        The runs to be made, and the present state of every run by its key.
    """
    entries = {run.key: store.look(run) for run in distinct(runs)}
    wanted = {MISSING, DAMAGED, *([DONE, FAILED] if overwrite else []), *([FAILED] if resume else [])}
    return [run for run in distinct(runs) if entries[run.key].status in wanted], entries


def carry_out(
    runs: list[StudyRun],
    store: RunStore,
    executor: Executor,
    *,
    overwrite: bool = False,
    resume: bool = False,
    report: Callable[[StudyProgress], None] | None = None,
) -> list[Failure]:
    """Make and keep the runs that are missing or damaged.

    Args:
        runs: all runs of the study.
        store: where finished ones are, and new ones go.
        executor: carries them out.
        overwrite: repeat finished runs.
        resume: repeat failed runs.
        report: called whenever a run starts or ends.

    Returns:
        The failures among all of the runs.
    """
    todo, entries = pending(runs, store, overwrite, resume)
    for run in todo:
        if entries[run.key].status == DAMAGED:
            warnings.warn(f"{run} is repeated because it is damaged: {entries[run.key].error}", LapwingWarning, 2)
    # The longest first, as far as known from the steps, so that no worker idles at the end.
    todo.sort(key=lambda run: -_size(run))
    # A full disk may hold no record of a failure; it is kept here.
    errors = {key: entry.error for key, entry in entries.items() if entry.status == FAILED}
    done = {key for key, entry in entries.items() if entry.status == DONE}
    for run in todo:
        errors.pop(run.key, None)
        done.discard(run.key)
    total, ended, started = len(todo), 0, time.perf_counter()
    flying: dict[Future[Reply], tuple[StudyRun, float]] = {}
    while True:
        while todo and len(flying) < executor.workers:
            run = todo.pop(0)
            flying[executor.submit(run)] = (run, time.perf_counter())
        if report is not None:
            left = (time.perf_counter() - started) / ended * (total - ended) if ended else None
            report(StudyProgress(len(done), len(flying), len(errors), len(entries), left))
        if not flying:
            break
        for future in wait(flying, return_when=FIRST_COMPLETED).done:
            run, begun = flying.pop(future)
            ended += 1
            if error := _keep(run, future, store, time.perf_counter() - begun):
                errors[run.key] = error
            else:
                done.add(run.key)
    return [Failure(run, errors[run.key]) for run in distinct(runs) if run.key in errors]


def failures(runs: list[StudyRun], entries: dict[str, Entry]) -> list[Failure]:
    """The failed and damaged ones among the runs, each once.

    Args:
        runs: all runs of a study.
        entries: their state by key, see :func:`pending`.

    Returns:
        The runs with their errors.
    """
    prefix = {FAILED: "", DAMAGED: "damaged: "}
    found = [(run, entries[run.key]) for run in distinct(runs)]
    return [Failure(run, prefix[entry.status] + entry.error) for run, entry in found if entry.status in prefix]


def distinct(runs: list[StudyRun]) -> list[StudyRun]:
    """The runs, each once.

    Args:
        runs: of one or more studies.

    Returns:
        Runs with different keys, in the same order.
    """
    return list({run.key: run for run in runs}.values())


def _keep(run: StudyRun, future: "Future[Reply]", store: RunStore, waited: float) -> str:
    """Write a finished run or the error of one that failed; the error, if any. Other runs are not affected."""
    error = future.exception()
    if error is None:
        outcome, message, seconds = future.result()
    else:
        # Ray wraps the cause in a traceback full of that machine's paths.
        outcome, message, seconds = None, describe(getattr(error, "cause", None) or error), waited
    if outcome is None:
        with suppress(LapwingError, OSError):
            store.write_failure(run, message, seconds)
        return message
    try:
        store.write(run, outcome, seconds)
    except (LapwingError, OSError) as refused:
        # Not a failure of the run: no record of one, and what was there before stays.
        return f"not written: {store.without_folder(str(refused))}"
    return ""


def _size(run: StudyRun) -> float:
    """A rough measure of how long a run will take."""
    steps = float(run.settings.get("options", {}).get("steps") or 2000)
    states = float(run.world.world.num_states or UNLISTED_STATES) if run.world is not None else 1.0
    return steps * (states + 100.0)
