"""Where runs are carried out: processes on this machine, one core each, or a Ray cluster; the numbers are the same."""

import importlib
import multiprocessing
import os
import signal
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, Protocol

import threadpoolctl

from lapwing.errors import LapwingError
from lapwing.studies.runs import Outcome, Run

Timed = tuple[Outcome, float]


class Executor(Protocol):
    """Takes runs and promises outcomes."""

    workers: int

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run; its future gives the outcome and the seconds it took, or raises what the run raised."""
        ...

    def close(self) -> None:
        """Stop whatever still runs."""
        ...


class LocalExecutor:
    """Processes on this machine, each computing with one thread.

    One thread per run makes the most of small networks, and makes the numbers independent of how many cores there are:
    sums are split the same way everywhere. Each worker is a pool of its own, so that one that is killed takes no other
    run with it.
    """

    def __init__(self, workers: int | None = None) -> None:
        """As many workers as cores unless said."""
        self.workers = len(usable_cores()) if workers is None else workers
        if self.workers < 1:
            raise LapwingError(f"a study needs at least one worker, got {workers}")
        self._lanes: list[ProcessPoolExecutor | None] = [None] * self.workers
        self._busy: list[Future[Timed] | None] = [None] * self.workers

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run on a worker that is free."""
        lane = next(i for i, future in enumerate(self._busy) if future is None or future.done())
        try:
            future = self._lane(lane).submit(timed, run.order())
        except BrokenProcessPool:
            # The last worker of this lane was killed, at work or idle: a new one takes its place.
            self._lanes[lane] = None
            future = self._lane(lane).submit(timed, run.order())
        self._busy[lane] = future
        return future

    def close(self) -> None:
        """Stop the workers at once."""
        for pool in self._lanes:
            if pool is not None:
                for process in list((pool._processes or {}).values()):
                    with suppress(ProcessLookupError):
                        process.kill()
                pool.shutdown(wait=False, cancel_futures=True)

    def _lane(self, number: int) -> ProcessPoolExecutor:
        pool = self._lanes[number]
        if pool is None:
            # A forked child would inherit JAX's threads in mid-air.
            context = multiprocessing.get_context("spawn")
            pool = self._lanes[number] = ProcessPoolExecutor(1, context, prepare_worker)
        return pool


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
                with warnings.catch_warnings():
                    # JAX fears for forked children; those of Ray become other programs at once.
                    warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
                    ray.init(address=joined, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise LapwingError(f"cannot reach Ray at {address!r}: {error}") from error
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote = ray.remote(num_cpus=1, max_retries=0)(timed_with_one_thread)

    def submit(self, run: Run) -> "Future[Timed]":
        """Begin a run on the cluster."""
        future: Future[Timed] = self._remote.remote(run.order()).future()
        return future

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()


def make_executor(on: str, workers: int | None = None) -> Executor:
    """``local``, ``ray`` or ``ray://host:port``."""
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


def prepare_worker() -> None:
    """Set a worker up: one thread, and deaf to Ctrl-C, which is for the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    compute_with_one_thread()


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


def timed(order: dict[str, Any]) -> Timed:
    """Carry out an order in this process, with the seconds it took."""
    from lapwing.studies.tasks import perform

    started = time.perf_counter()
    outcome = perform(order)
    seconds = time.perf_counter() - started
    import jax

    # Thousands of programs would fill the memory of a worker that never forgets one.
    jax.clear_caches()  # type: ignore[no-untyped-call]
    return outcome, seconds


def timed_with_one_thread(order: dict[str, Any]) -> Timed:
    """The same in a process that was not ours to set up."""
    compute_with_one_thread()
    return timed(order)
