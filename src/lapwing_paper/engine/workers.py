"""What a worker is: one thread, one order after the other, replies of plain data; it ends with who started it."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import threadpoolctl

from lapwing_paper.engine.runs import Outcome, checked

Task = Callable[[dict[str, Any]], Outcome]

# Longer words are no longer read; an error may quote a whole array.
MAX_WORDS = 500


class Reply(NamedTuple):
    """What came of an order: an outcome or, without one, the words of an error; plain data that anyone can read."""

    outcome: Outcome | None
    error: str
    seconds: float


def perform(order: dict[str, Any]) -> Outcome:
    """Carry out an order from :meth:`Run.order`; what that needs is imported by workers alone."""
    from lapwing_paper.engine import tasks

    return tasks.perform(order)


def attempt(order: dict[str, Any], task: Task = perform) -> Reply:
    """Carry out an order in this process, with the seconds it took; whatever it raises becomes words.

    The error itself may not survive the way to another process, and some would end this one.
    """
    started = time.perf_counter()
    outcome, error = None, ""
    try:
        outcome = checked(task(order))
    except BaseException as raised:  # MemoryError, SystemExit: the run has failed, the worker has not
        error = describe(raised)
    seconds = time.perf_counter() - started
    if "jax" in sys.modules:
        # Thousands of programs would fill the memory of a worker that never forgets one.
        sys.modules["jax"].clear_caches()
    return Reply(outcome, error, seconds)


def attempt_with_one_thread(order: dict[str, Any]) -> Reply:
    """The same in a process that was not ours to set up."""
    compute_with_one_thread()
    return attempt(order)


def serve(orders: "Connection[Any, Any]", task: Task = perform) -> None:
    """The life of a local worker: orders in, replies out, until nobody is at the other end."""
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    compute_with_one_thread()
    with suppress(EOFError, OSError):
        while True:
            orders.send(attempt(orders.recv(), task))


def end_with_parent() -> None:
    """End this process as soon as the one that started it has ended, however that was: its work is for nobody."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def compute_with_one_thread() -> None:
    """Make JAX and NumPy compute with a single thread in this process, wherever the system then runs it.

    JAX counts the cores once, when it wakes up: it is woken while the process may use only one, and all threads are let
    go afterwards. Where a process cannot be held to a core (macOS) JAX uses all of them.
    """
    threadpoolctl.threadpool_limits(limits=1)
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    import jax

    jax.devices()
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # threads end when they like
            os.sched_setaffinity(int(thread), cores)


def describe(error: BaseException) -> str:
    """An error in one line: its name and what it says.

    Example:
        >>> describe(ZeroDivisionError("by\\nzero")), describe(MemoryError())
        ('ZeroDivisionError: by zero', 'MemoryError')
    """
    name = type(error).__name__
    try:
        words = " ".join(str(error).split())
    except Exception:  # an error that cannot even say what it is
        words = ""
    # Half of a surrogate pair fits in a string and in no file.
    words = words.encode("utf-8", "replace").decode("utf-8")
    words = words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]} ..."
    return f"{name}: {words}" if words else name
