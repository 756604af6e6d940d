"""A connection to a Ray cluster, and a function applied to many arguments there."""

import importlib
import importlib.util
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from lapwing.errors import ArgumentError, LapwingError, MissingExtraError

__all__ = ["connect_ray", "map_on_ray"]

Argument = TypeVar("Argument")
Result = TypeVar("Result")

# Tasks that wait or run at a time for each core: enough to keep it busy, few enough that results do not pile up.
TASKS_PER_CORE = 2


def connect_ray(address: str, workers: int | None = None) -> Any:
    """Join a Ray cluster, or start one on this machine; one that this process has joined already is kept.

    Args:
        address: ``ray`` for this machine, ``ray://host:port`` for a cluster.
        workers: cores to use on this machine; all unless given.

    Returns:
        The module ``ray``.

    Raises:
        MissingExtraError: without Ray.
        LapwingError: where there is no cluster at the address.
    """
    if not isinstance(address, str) or not (address == "ray" or address.startswith("ray://")):
        raise ArgumentError(f"a Ray cluster is named ray (this machine) or ray://host:port, got {address!r}")
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("running on Ray needs an extra: pip install 'lapwing[ray]'") from error
    joined = address if address.startswith("ray://") else None
    # No telemetry; and workers on this machine keep their priority.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    options: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
    if joined is None:
        options |= {"num_cpus": workers, "include_dashboard": False}
    try:
        if not ray.is_initialized():
            with _termination_handler_kept(), warnings.catch_warnings():
                # JAX warns about forks; Ray's children replace themselves at once.
                warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
                # Before 2.60 it announces changes about accelerators; tasks here ask for none.
                warnings.filterwarnings("ignore", message="Tip: In future versions of Ray", category=FutureWarning)
                ray.init(address=joined, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise LapwingError(f"cannot reach Ray at {address!r}: {error}") from error
    return ray


def map_on_ray(function: Callable[[Argument], Result], arguments: Iterable[Argument], address: str) -> Iterator[Result]:
    """Apply a function to each argument as a task of its own, on one core each.

    Args:
        function: of the package, which the machines of the cluster must have installed. A task whose machine dies is
            started again by Ray.
        arguments: in the order in which results are wanted; a few tasks per core are under way at a time.
        address: as for :func:`connect_ray`. A cluster that was not joined before is left at the end.

    Returns:
        Iterator over the results, in the order of the arguments.

    Raises:
        LapwingError: the first error of the function, or of the cluster.
    """
    module = importlib.util.find_spec("ray")
    already = module is not None and importlib.import_module("ray").is_initialized()
    ray = connect_ray(address)
    try:
        remote = ray.remote(num_cpus=1)(_attempt)
        most = TASKS_PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting: deque[Any] = deque()
        for argument in arguments:
            waiting.append(remote.remote(function, argument))
            if len(waiting) == most:
                yield _result(ray, waiting.popleft())
        while waiting:
            yield _result(ray, waiting.popleft())
    finally:
        if not already:
            ray.shutdown()


def _attempt(function: Callable[[Any], Any], argument: Any) -> tuple[Any, LapwingError | None]:
    """The function's result, or its error as plain data: Ray would wrap it in one of its own."""
    try:
        return function(argument), None
    except LapwingError as error:
        return None, error


def _result(ray: Any, task: Any) -> Any:
    try:
        found, error = ray.get(task)
    except ray.exceptions.RayError as failure:
        raise LapwingError(f"a task failed on the Ray cluster: {str(failure).strip().splitlines()[-1]}") from failure
    if error is not None:
        raise error
    return found


@contextmanager
def _termination_handler_kept() -> Iterator[None]:
    """Keep this process's handler of SIGTERM: Ray installs its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
