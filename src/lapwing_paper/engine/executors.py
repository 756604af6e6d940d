"""Where runs are carried out: processes on this machine, one core each, or a Ray cluster; the numbers are the same."""

import importlib
import multiprocessing
import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, Protocol

from lapwing.checks import as_whole, shown
from lapwing.errors import LapwingError
from lapwing_paper.engine.runs import Outcome, Run
from lapwing_paper.engine.workers import Reply, Task, attempt_with_one_thread, perform, serve

Timed = tuple[Outcome, float]

KILLED = "the worker was killed"


class RunError(Exception):
    """Why a run failed, in words that stand for themselves."""


class Executor(Protocol):
    """Takes runs and promises outcomes."""

    workers: int

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run; its future gives the outcome and the seconds it took, or raises why the run failed."""
        ...

    def close(self) -> None:
        """Stop whatever still runs."""
        ...


class LocalExecutor:
    """Processes on this machine, each computing with one thread.

    One thread per run makes the most of small networks, and makes the numbers independent of how many cores there are:
    sums are split the same way everywhere. Workers share nothing: one that is killed takes no other run with it, and
    another takes its place.
    """

    def __init__(self, workers: int | None = None, task: Task = perform) -> None:
        """As many workers as cores unless said; ``task`` is what they do with an order."""
        whole = len(usable_cores()) if workers is None else as_whole(workers)
        if whole is None or whole < 1:
            raise LapwingError(f"a study needs at least one worker, got {shown(workers)}")
        self.workers = whole
        self.lanes = [Lane(task) for _ in range(self.workers)]
        self._free = self.lanes[::-1]

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run on a worker that is free."""
        future: Future[Timed] = Future()
        lane, order = self._free.pop(), run.order()

        def ask() -> Reply:
            try:
                return lane.ask(order)
            finally:
                self._free.append(lane)

        threading.Thread(target=_settle, args=(future, ask), daemon=True).start()
        return future

    def close(self) -> None:
        """Stop the workers at once."""
        for lane in self.lanes:
            lane.close()


class Lane:
    """One worker process at a time: started when there is work, and again if it has died."""

    def __init__(self, task: Task) -> None:
        """Start nothing yet."""
        self.process: Any = None
        self._task = task
        self._pipe: Any = None
        self._closed = False
        self._starting = threading.Lock()

    def ask(self, order: dict[str, Any]) -> Reply:
        """Have an order carried out, and wait for it."""
        if self.process is None or not self.process.is_alive():
            self._start()
        try:
            self._pipe.send(order)
            reply: Reply = self._pipe.recv()
            return reply
        except (EOFError, OSError):
            raise RunError(self._how_it_ended()) from None

    def close(self) -> None:
        """Stop the worker at once, and start no other."""
        with self._starting:
            self._closed = True
            if self.process is not None:
                self.process.kill()
                self.process.join()

    def _start(self) -> None:
        # A forked child would inherit JAX's threads in mid-air.
        context = multiprocessing.get_context("spawn")
        with self._starting, _deaf_to_interrupts():
            if self._closed:
                raise RunError("the study was stopped")
            self._pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, self._task), daemon=True)
            process.start()
            self.process = process
            # With no copy left on this side, a worker that dies is noticed as the end of the pipe.
            theirs.close()

    def _how_it_ended(self) -> str:
        self.process.join(timeout=10.0)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"{KILLED} ({signal.Signals(-code).name})"
        return f"the worker ended in the middle of the run (exit code {code})"


class RayExecutor:
    """Tasks on a Ray cluster: ``ray`` starts one on this machine, ``ray://host:port`` joins one."""

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Connect."""
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise LapwingError("--on ray needs Ray: pip install 'lapwing[ray]'") from error
        self._ray = ray
        joined = address if address.startswith("ray://") else None
        # No telemetry; and workers on this machine need not give way to whatever else runs on it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if joined is None:
            options |= {"num_cpus": workers, "include_dashboard": False}
        try:
            if not ray.is_initialized():
                with _own_end(), warnings.catch_warnings():
                    # JAX fears for forked children; those of Ray become other programs at once.
                    warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
                    # Before 2.60 it warns of what a later one does about accelerators; runs here ask for none.
                    warnings.filterwarnings("ignore", message="Tip: In future versions of Ray", category=FutureWarning)
                    ray.init(address=joined, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise LapwingError(f"cannot reach Ray at {address!r}: {error}") from error
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote = ray.remote(num_cpus=1, max_retries=0)(attempt_with_one_thread)

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run on the cluster."""
        future: Future[Timed] = Future()

        def settle(reply: "Future[Reply]") -> None:
            _settle(future, lambda: self._reply(reply))

        self._remote.remote(run.order()).future().add_done_callback(settle)
        return future

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()

    def _reply(self, future: "Future[Reply]") -> Reply:
        try:
            return future.result()
        except self._ray.exceptions.WorkerCrashedError:
            raise RunError(KILLED) from None
        except Exception as error:
            # Ray wraps what went wrong on the way, with a traceback full of that machine's paths.
            raise (getattr(error, "cause", None) or error) from None


def make_executor(on: str, workers: int | None = None) -> Executor:
    """``local``, ``ray`` or ``ray://host:port``."""
    if not isinstance(on, str):
        raise LapwingError(f"studies run on local, ray or ray://host:port; got {shown(on)}")
    if on == "local":
        return LocalExecutor(workers)
    if on == "ray" or on.startswith("ray://"):
        return RayExecutor(on, workers)
    raise LapwingError(f"studies run on local, ray or ray://host:port; got {on!r}")


def usable_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _settle(future: "Future[Timed]", ask: Callable[[], Reply]) -> None:
    """Put what a worker replied into a future."""
    try:
        outcome, error, seconds = ask()
        if outcome is None:
            raise RunError(error)
        future.set_result((outcome, seconds))
    except BaseException as failed:  # a future that is never settled would hold up the study for ever
        future.set_exception(failed)


@contextmanager
def _own_end() -> Iterator[None]:
    """Keep what this process does when it is terminated: Ray puts an exit of its own in its place."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes begun in here never hear Ctrl-C, not even while they wake up; this one hears it a little later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Started later it would let the signal through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
