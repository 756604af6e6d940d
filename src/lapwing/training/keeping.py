"""Training that can be killed at any moment: checkpoints after chunks, and going on from the last sound one."""

import time
from collections.abc import Callable
from pathlib import Path

import jax

from lapwing.errors import LapwingError
from lapwing.storage.folders import locked
from lapwing.training.checkpoints import (
    COMPILED,
    DAMAGED,
    Checkpoint,
    checkpoint_files,
    newest_checkpoint,
    write_checkpoint,
)
from lapwing.training.engine import Inspect, Report, run_program, spread_over_devices
from lapwing.training.identity import compiled_digest, identity_of
from lapwing.training.interrupts import LearningInterruptedError, wishes_to_stop
from lapwing.training.job import Job
from lapwing.training.step import Program, TrainState

# Chunks may take milliseconds; writing after each would then cost more than making it again.
SECONDS_BETWEEN = 1.0


def train(
    job: Job,
    program: Program,
    state: TrainState,
    inspect: Inspect | None,
    report: Callable[[Report], None] | None,
    folder: Path | None,
) -> Checkpoint:
    """Run a job's program to its end; with a folder, from the last checkpoint there, leaving new ones.

    The end is the same to the last bit wherever it was interrupted: chunks begin where they would have begun, and what
    a step draws depends on its number alone.

    Raises:
        LearningInterruptedError: after Ctrl-C or a termination, once a checkpoint is written; only with a folder.
    """
    began = time.perf_counter()
    data, steps, every = job.batches.data, job.config.steps, job.config.log_every
    if folder is None:
        reached, history = run_program(program, state, data, steps, every, inspect, report)
        return Checkpoint(reached, history, time.perf_counter() - began, True)
    refuse_other_files(folder)
    with locked(folder), wishes_to_stop() as wish:
        _remove_leftovers(folder)
        identity = identity_of(job)
        if job.custom or job.given is not None:
            identity[COMPILED] = compiled_digest(program, state, data)
        last = None
        if checkpoint_files(folder):
            metrics = jax.eval_shape(lambda: program.run(state, data, min(every, steps))[1])
            last = newest_checkpoint(folder, state, identity, metrics)
        if last is not None and last.finished:
            return last
        before, past = (0.0, []) if last is None else (last.seconds, last.history)
        written = time.perf_counter()

        def spent() -> float:
            return before + time.perf_counter() - began

        def keep(reached: TrainState, history: list[Report], finished: bool) -> None:
            nonlocal written
            stopping = None if finished else wish()
            if finished or stopping is not None or time.perf_counter() - written >= SECONDS_BETWEEN:
                write_checkpoint(folder, Checkpoint(reached, history, spent(), finished), identity)
                written = time.perf_counter()
            if stopping is not None:
                raise LearningInterruptedError(history[-1].step, steps, folder, stopping)

        start = state if last is None else spread_over_devices(last.state, len(job.seeds))
        reached, history = run_program(program, start, data, steps, every, inspect, report, past, keep)
        return Checkpoint(reached, history, spent(), True)


def refuse_other_files(folder: Path) -> None:
    """An error if checkpoints would be mixed with somebody's other files."""
    if folder.exists() and not folder.is_dir():
        raise LapwingError(f"{folder} is a file; checkpoints need a folder")
    foreign = [path.name for path in folder.glob("*") if not path.name.startswith((".", "step-", DAMAGED))]
    if foreign:
        raise LapwingError(f"{folder} holds other files ({foreign[0]}); give checkpoints a folder of their own")


def _remove_leftovers(folder: Path) -> None:
    """Half-written files of a process that was killed; the folder is locked, so nobody is still writing them."""
    for path in folder.glob(".step-*"):
        path.unlink(missing_ok=True)
