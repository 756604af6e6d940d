"""Devices and processes: the one place that knows how many there are, and what lies where.

With one device there is no mesh and nothing here does anything. With several, in one process or in many that
``jax.distributed`` has joined, all of them run the same program on a mesh of two axes: seeds are divided over the
first, the rows that a step encodes over the second. Sources of batches lie on every device, and what a step draws is
a function of its key, so all of them draw the same rows, and each encodes its share.
"""

import hashlib
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lapwing.errors import ArgumentError, LapwingError

SEEDS, ROWS = "seeds", "rows"

COORDINATOR, PROCESSES, PROCESS = "LAPWING_COORDINATOR", "LAPWING_PROCESSES", "LAPWING_PROCESS"
# How long a process that has ended waits for the others: JAX's own five minutes are long where one has failed.
SHUTDOWN_SECONDS = 30

# Images whose layers stay in a processor's cache: ten times as many go through a CPU at a third of the speed.
IMAGES_IN_CACHE = 64

Tree = TypeVar("Tree")


def images_at_once() -> int | None:
    """How many images a network should take at once.

    Returns:
        As many as stay in the cache of a CPU; None for a whole batch, as accelerators want it.
    """
    return IMAGES_IN_CACHE if jax.default_backend() == "cpu" else None


def device_mesh(seeds: int = 1) -> Mesh | None:
    """All devices that JAX sees, of all processes: as many groups as divide the seeds, the rest for rows.

    Args:
        seeds: how many are trained together.

    Returns:
        A mesh of the axes ``seeds`` and ``rows``; None for a single device.
    """
    devices = jax.devices()
    if len(devices) == 1:
        return None
    groups = math.gcd(seeds, len(devices))
    shape = (groups, len(devices) // groups)
    return jax.make_mesh(shape, (SEEDS, ROWS), axis_types=(AxisType.Auto,) * 2, devices=devices)


def state_sharding(mesh: Mesh) -> NamedSharding:
    """How the arrays of a training state lie: by their leading axis of seeds if groups divide it, else everywhere.

    Args:
        mesh: from :func:`device_mesh`.

    Returns:
        A sharding.
    """
    return _sharding(mesh, SEEDS) if mesh.shape[SEEDS] > 1 else everywhere(mesh)


def everywhere(mesh: Mesh) -> NamedSharding:
    """A copy of each array on every device.

    Args:
        mesh: from :func:`device_mesh`.

    Returns:
        A sharding.
    """
    return _sharding(mesh)


def placed(tree: Tree, sharding: NamedSharding) -> Tree:
    """The same arrays, laid over the devices of a sharding.

    Args:
        tree: of arrays; with several processes, the same in each.
        sharding: of every array in it.

    Returns:
        The tree.

    Raises:
        LapwingError: if processes hold different numbers.
    """
    if jax.process_count() == 1:
        return jax.device_put(tree, sharding)
    _require_same(tree)
    # Unlike `device_put`, this sends nothing: each process has the whole of every array.
    return jax.tree.map(lambda leaf: _global_array(leaf, sharding), tree)


def fetched(tree: Tree) -> Tree:
    """The same arrays in the memory of each process.

    Args:
        tree: of arrays, wherever they are.

    Returns:
        The tree, with NumPy arrays; random keys stay JAX's.
    """
    if jax.process_count() > 1:
        tree = jax.tree.map(_gathered, tree)
    local: Tree = jax.device_get(tree)
    return local


def encoded_by_rows(encode: Callable[[jax.Array], jax.Array], mesh: Mesh | None) -> Callable[[jax.Array], jax.Array]:
    """An encoder of which each device computes a share of the rows; their number need not divide.

    The values, few numbers per row, are gathered, so an objective sees those of the whole batch; XLA adds up the
    gradients of the weights over the devices.

    Args:
        encode: from (n, ...) observations to (n, d) components.
        mesh: from :func:`device_mesh`; None changes nothing.

    Returns:
        The same function, to be called inside a compiled step.
    """
    if mesh is None:
        return encode
    rows, whole = _sharding(mesh, ROWS), everywhere(mesh)

    def shared(observations: jax.Array) -> jax.Array:
        # By rows at the end as well: else XLA gathers the wider input of the last layer, which all devices then repeat.
        values = _constrained(encode(_constrained(observations, rows)), rows)
        return _constrained(values, whole)

    return shared


def drawn_everywhere(draws: Tree, mesh: Mesh | None) -> Tree:
    """What steps draw, by every device for itself; else XLA would divide the draws and gather those of each step.

    Args:
        draws: of a source.
        mesh: from :func:`device_mesh`; None changes nothing.

    Returns:
        The draws.
    """
    return draws if mesh is None else _constrained(draws, everywhere(mesh))


# --- several processes ------------------------------------------------------------------------------------------------


def join_processes() -> None:
    """Join the processes that environment variables describe; without them, or if they have been joined, do nothing.

    ``LAPWING_COORDINATOR`` is host and port of the first process, ``LAPWING_PROCESSES`` how many there are, and
    ``LAPWING_PROCESS`` which of them this is, counted from 0. To be called before JAX is used.
    """
    coordinator = os.environ.get(COORDINATOR)
    if coordinator is None or jax.distributed.is_initialized():
        return
    try:
        count, number = (int(os.environ[name]) for name in (PROCESSES, PROCESS))
    except (KeyError, ValueError) as error:
        raise ArgumentError(f"with {COORDINATOR}, {PROCESSES} and {PROCESS} must be whole numbers ({error})") from None
    if not 0 <= number < count or ":" not in coordinator:
        raise ArgumentError(
            f"{COORDINATOR} must be HOST:PORT and {PROCESS} below {PROCESSES}; got {coordinator}, {number} and {count}"
        )
    jax.distributed.initialize(
        coordinator,
        count,
        number,
        cluster_detection_method="deactivate",
        shutdown_timeout_seconds=SHUTDOWN_SECONDS,
    )


def is_first_process() -> bool:
    """Whether this process is the one that writes files; a single one is.

    Returns:
        True in one process.
    """
    return jax.process_index() == 0


def largest_of_processes(number: int) -> int:
    """The largest of the numbers that all processes give; a decision by one of them is then that of all.

    Args:
        number: of 32 bits.

    Returns:
        The same number in every process.
    """
    return number if jax.process_count() == 1 else int(_from_all(np.int32(number)).max())


@contextmanager
def first_process_first() -> Iterator[None]:
    """Let the first process go through a block before the others, which do not begin if it fails.

    Yields:
        Nothing.

    Raises:
        LapwingError: in the other processes, if the first has failed.
    """
    if not is_first_process() and not largest_of_processes(0):
        raise LapwingError("the first process has failed; its own message says why")
    passed = False
    try:
        yield
        passed = True
    finally:
        if is_first_process():
            largest_of_processes(int(passed))


def _require_same(tree: Any) -> None:
    """Raise an error in every process unless all of them hold the same arrays."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tree):
        plain = np.ascontiguousarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
        digest.update(f"{plain.dtype.str} {plain.shape}".encode())
        digest.update(plain.reshape(-1).view(np.uint8).data)
    found = _from_all(np.frombuffer(digest.digest(), dtype=np.int32))
    if (found != found[0]).any():
        raise LapwingError(
            "the processes do not learn from the same data with the same configuration; give all of them the same"
        )


def _from_all(numbers: Any) -> Any:
    """What each process gives, in the order of processes."""
    return multihost_utils.process_allgather(numbers)


def _global_array(leaf: Any, sharding: NamedSharding) -> jax.Array:
    if _is_key(leaf):
        return jax.random.wrap_key_data(_global_array(jax.random.key_data(leaf), sharding))
    local = np.asarray(leaf)
    return jax.make_array_from_callback(local.shape, sharding, lambda index: local[index])


def _gathered(leaf: Any) -> Any:
    """An array that this process can read: where others hold parts of it, all of them on every device."""
    if not isinstance(leaf, jax.Array) or leaf.is_fully_addressable or leaf.is_fully_replicated:
        return leaf
    if _is_key(leaf):
        return jax.random.wrap_key_data(_gathered(jax.random.key_data(leaf)))
    return jax.device_put(leaf, everywhere(leaf.sharding.mesh))  # type: ignore[attr-defined]


def _constrained(tree: Tree, sharding: NamedSharding) -> Tree:
    laid: Tree = jax.lax.with_sharding_constraint(tree, sharding)  # type: ignore[no-untyped-call]
    return laid


def _sharding(mesh: Mesh, *axes: str) -> NamedSharding:
    return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
