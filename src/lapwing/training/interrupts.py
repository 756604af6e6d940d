"""Ctrl-C and termination, deferred to the end of a chunk of steps, when a checkpoint is written."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


class LearningInterruptedError(KeyboardInterrupt):
    """Learning was stopped from outside at the end of a chunk, and can be resumed from ``folder``.

    A ``KeyboardInterrupt``, so that nothing which handles errors takes it for one. ``signal`` is what stopped it.
    """

    def __init__(self, step: int, steps: int, folder: Path, number: int) -> None:
        """The message has the steps done and how to resume."""
        super().__init__(f"stopped after {step:,} of {steps:,} steps; the same call with checkpoints={folder} resumes")
        self.step, self.steps, self.folder, self.signal = step, steps, folder, number


class StoppedError(KeyboardInterrupt):
    """Ctrl-C or a termination that is obeyed at once; ``signal`` is which."""

    def __init__(self, number: int, message: str = "") -> None:
        """Keep which one it was."""
        super().__init__(*([message] if message else []))
        self.signal = number


@contextmanager
def termination_as_interrupt(message: str = "") -> Iterator[None]:
    """Let a termination from outside clean up as Ctrl-C does, instead of ending the process where it stands.

    Args:
        message: of the :class:`StoppedError` that is raised.

    Yields:
        Nothing; the previous handler is back when the block ends. Outside the main thread nothing is changed.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise StoppedError(number, message)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def deferred_signals() -> Iterator[Callable[[], int | None]]:
    """Note the first Ctrl-C or termination instead of obeying at once; the second is obeyed.

    Yields:
        A function that gives the number of the signal noted, or None. In a thread other than the main one signals
        cannot be caught, and nothing changes.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            raise StoppedError(number)
        noted.append(number)
        print("stopping at the end of this chunk of steps, with a checkpoint; once more: at once", file=sys.stderr)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: noted[0] if noted else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
