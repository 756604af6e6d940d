"""Where runs are carried out: processes on this machine, one thread each, or a Ray cluster; same numbers in both."""

import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import threadpoolctl

from lapwing.errors import ArgumentError
from lapwing.ray_cluster import connect_ray
from lapwing_paper.run_store import Outcome, StudyRun, checked

Task = Callable[[dict[str, Any]], Outcome]

# An error may quote a whole array.
LONGEST_MESSAGE = 500
# The threads of this process, on Linux.
THREADS = "/proc/self/task"


class Reply(NamedTuple):
    """The result of a run: an outcome or, without one, an error message; plain data that survives pickling."""

    outcome: Outcome | None
    error: str
    seconds: float


class Executor(Protocol):
    """Carries out runs."""

    workers: int

    def submit(self, run: StudyRun) -> "Future[Reply]":
        """Start a run."""
        ...

    def close(self) -> None:
        """Stop all runs."""
        ...


class LocalExecutor:
    """Processes on this machine, each computing with one thread.

    One thread per run makes the most of small networks, and makes the numbers independent of the number of cores:
    sums are split the same way everywhere. Workers share nothing but compiled programs, in a folder that is removed at
    the end: if one is killed no other run is affected, and it is replaced.
    """

    def __init__(self, workers: int | None = None, task: Task | None = None) -> None:
        """As many workers as cores by default; ``task`` is the function that they apply to a specification."""
        self.workers = len(usable_cores()) if workers is None else workers
        if type(self.workers) is not int or self.workers < 1:
            raise ArgumentError(f"a study needs at least one worker, got {workers!r}")
        self._programs = tempfile.TemporaryDirectory(prefix="lapwing-programs-", ignore_cleanup_errors=True)
        self.processes = [WorkerProcess(task or perform, self._programs.name) for _ in range(self.workers)]
        self._threads = ThreadPoolExecutor(self.workers)
        self._free: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for process in self.processes:
            self._free.put(process)

    def submit(self, run: StudyRun) -> "Future[Reply]":
        """Start a run on a free worker."""
        return self._threads.submit(self._carry_out, run.specification())

    def close(self) -> None:
        """Stop the workers at once."""
        for process in self.processes:
            process.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._programs.cleanup()

    def _carry_out(self, specification: dict[str, Any]) -> Reply:
        process = self._free.get()
        try:
            return process.ask(specification)
        finally:
            self._free.put(process)


class WorkerProcess:
    """One worker process at a time: started when there is work, and started anew if it has died."""

    def __init__(self, task: Task, programs: str | None = None) -> None:
        """Start nothing yet; ``programs`` is the folder of :func:`share_programs`."""
        self.process: Any = None
        self._task, self._programs = task, programs
        self._pipe: Any = None
        self._closed = False
        self._starting = threading.Lock()

    def ask(self, specification: dict[str, Any]) -> Reply:
        """Carry out a run and wait for it."""
        started = time.perf_counter()
        try:
            if self.process is None or not self.process.is_alive():
                self._start()
            self._pipe.send(specification)
            reply: Reply = self._pipe.recv()
            return reply
        except (EOFError, OSError):
            return Reply(None, self._end_of_process(), time.perf_counter() - started)

    def close(self) -> None:
        """Stop the worker at once, and start no other."""
        with self._starting:
            self._closed = True
            if self.process is not None:
                self.process.kill()
                self.process.join()

    def _start(self) -> None:
        # A forked child would inherit JAX's threads in an unknown state.
        context = multiprocessing.get_context("spawn")
        with self._starting, _interrupts_blocked():
            if self._closed:
                raise EOFError
            self._pipe, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, self._task, self._programs), daemon=True)
            process.start()
            self.process = process
            # With no copy left on this side, the death of the worker shows as the end of the pipe.
            theirs.close()

    def _end_of_process(self) -> str:
        if self._closed:
            return "the study was stopped"
        self.process.join(timeout=10.0)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"the worker was killed ({signal_name(-code)})"
        return f"the worker ended during the run (exit code {code})"


class RayExecutor:
    """Tasks on a Ray cluster: ``ray`` starts one on this machine, ``ray://host:port`` joins one."""

    def __init__(self, address: str, workers: int | None = None) -> None:
        """Connect."""
        ray = self._ray = connect_ray(address, workers)
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._remote = ray.remote(num_cpus=1, max_retries=0)(attempt_with_one_thread)

    def submit(self, run: StudyRun) -> "Future[Reply]":
        """Start a run on the cluster."""
        future: Future[Reply] = self._remote.remote(run.specification()).future()
        return future

    def close(self) -> None:
        """Leave the cluster."""
        self._ray.shutdown()


def make_executor(on: str, workers: int | None = None) -> Executor:
    """The executor for ``local``, ``ray`` or ``ray://host:port``.

    Args:
        on: ``local``, ``ray`` or ``ray://host:port``.
        workers: runs at a time; as many as cores by default.

    Returns:
        An executor, to be closed after use.
    """
    if on == "local":
        return LocalExecutor(workers)
    if isinstance(on, str) and (on == "ray" or on.startswith("ray://")):
        return RayExecutor(on, workers)
    raise ArgumentError(f"studies run on local, ray or ray://host:port; got {on!r}")


def usable_cores() -> list[int]:
    """The cores that this process may use.

    Returns:
        Their numbers, ascending.
    """
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def perform(specification: dict[str, Any]) -> Outcome:
    """Carry out a run in this process; what that needs is imported by workers only.

    Args:
        specification: from :meth:`StudyRun.specification`.

    Returns:
        The outcome of the run.
    """
    from lapwing_paper import tasks

    return tasks.perform(specification)


def attempt(specification: dict[str, Any], task: Task = perform) -> Reply:
    """Carry out a run in this process; any exception becomes a message.

    The exception itself may not survive pickling, and some would end this process.

    Args:
        specification: from :meth:`StudyRun.specification`.
        task: the function that carries it out.

    Returns:
        The outcome or an error message, and the seconds it took.
    """
    started = time.perf_counter()
    outcome, error = None, ""
    try:
        outcome = checked(task(specification))
    except BaseException as raised:  # MemoryError, SystemExit: the run has failed, the worker has not
        error = describe(raised)
    seconds = time.perf_counter() - started
    if "jax" in sys.modules:
        # Otherwise thousands of compiled programs would fill the memory of a worker.
        sys.modules["jax"].clear_caches()
    return Reply(outcome, error, seconds)


def attempt_with_one_thread(specification: dict[str, Any]) -> Reply:
    """The same in a process that Ray has started.

    Args:
        specification: from :meth:`StudyRun.specification`.

    Returns:
        See :func:`attempt`.
    """
    compute_with_one_thread()
    return attempt(specification)


def serve(pipe: "Connection[Any, Any]", task: Task = perform, programs: str | None = None) -> None:
    """The main function of a local worker: specifications in, replies out, until the other end is closed.

    Args:
        pipe: the worker's end of the connection.
        task: what is done with each specification.
        programs: the folder of :func:`share_programs`; None for none.
    """
    # Ctrl-C is for the process that started this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    if programs is not None:
        share_programs(programs)
    compute_with_one_thread()
    with suppress(EOFError, OSError):
        while True:
            pipe.send(attempt(pipe.recv(), task))


def compute_with_one_thread() -> None:
    """Make JAX and NumPy compute with a single thread in this process, on whichever core the system runs it.

    JAX counts the cores once, when it is initialised: that happens here while the process may use only one, and all
    threads are released afterwards. Where threads cannot be bound to cores (macOS, Windows) JAX uses all of them.
    """
    threadpoolctl.threadpool_limits(limits=1)
    if not hasattr(os, "sched_setaffinity") or not os.path.isdir(THREADS):
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    import jax

    jax.devices()
    for thread in os.listdir(THREADS):
        with suppress(ProcessLookupError):  # the thread has ended meanwhile
            os.sched_setaffinity(int(thread), cores)


def share_programs(folder: str) -> None:
    """Keep the programs that JAX compiles in a folder, where other runs find them: the same method, another seed.

    It must come before JAX is imported. A cache that the environment names (``JAX_COMPILATION_CACHE_DIR``) is used
    instead, and outlives the study.

    Args:
        folder: only the user's own, because what lies there is executed.
    """
    # One that another worker is writing at this moment is compiled instead.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry")
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


def signal_name(number: int) -> str:
    """What a signal is called on this system.

    Args:
        number: such as 15.

    Returns:
        Its name; ``signal 9`` where the system has no such signal.

    Example:
        >>> signal_name(15), signal_name(1000)
        ('SIGTERM', 'signal 1000')
    """
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def describe(error: BaseException) -> str:
    """An exception in one line: its name and its message.

    Args:
        error: any exception.

    Returns:
        ``Name: message``, cut if it is long.

    Example:
        >>> describe(ZeroDivisionError("by\\nzero")), describe(MemoryError())
        ('ZeroDivisionError: by zero', 'MemoryError')
    """
    name = type(error).__name__
    try:
        message = " ".join(str(error).split())
    except Exception:  # its __str__ fails too
        message = ""
    # Half of a surrogate pair fits in a string but not in a file.
    message = message.encode("utf-8", "replace").decode("utf-8")
    message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]} ..."
    return f"{name}: {message}" if message else name


def _exit_with_parent() -> None:
    """End this process as soon as its parent has ended, however it ended: its results have no reader."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Processes started in here never receive Ctrl-C, not even while they start; this one receives it afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker  # of systems with signal masks only

    # Started later it would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
