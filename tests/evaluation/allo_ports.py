"""ALLO written several times, each with one of the errors that are found in public implementations."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

RATE = 1e-4


class Functions(NamedTuple):
    """The arguments of ``check_loss``."""

    loss: Any
    update: Any = None
    init: Any = None
    eigenvalues: Any = None
    gradient: Any = None


def make_loss(graph_factor: float = 0.5, hold: Callable[[Any], Any] = jax.lax.stop_gradient) -> Any:
    """ALLO with or without the half of the graph term and the stop-gradient."""

    def loss(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> Any:
        identity = jnp.eye(first.shape[1])
        one, two = (jnp.tril(batch.T @ hold(batch) / len(batch) - identity) for batch in (first, second))
        # The authors hold duals and barrier constant; their gradients are never used.
        held = jax.lax.stop_gradient(duals)
        graph = graph_factor * jnp.sum(jnp.mean((start - end) ** 2, axis=0))
        return graph + jnp.sum(held * (one + two)) / 2 + barrier * jnp.sum(one * two)

    return loss


def gram_of_two_batches(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> Any:
    error = jnp.tril(first.T @ jax.lax.stop_gradient(second) / len(first) - jnp.eye(first.shape[1]))
    graph = 0.5 * jnp.sum(jnp.mean((start - end) ** 2, axis=0))
    return graph + jnp.sum(duals * error) + barrier * jnp.sum(error**2)


def square_of_one_batch(start: Any, end: Any, first: Any, duals: Any, barrier: Any) -> Any:
    error = jnp.tril(first.T @ jax.lax.stop_gradient(first) / len(first) - jnp.eye(first.shape[1]))
    graph = 0.5 * jnp.sum(jnp.mean((start - end) ** 2, axis=0))
    return graph + jnp.sum(duals * error) + barrier * jnp.sum(error**2)


def graph_term_averaged(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> Any:
    """The mean over components where the other terms are sums."""
    return make_loss(0.0)(start, end, first, second, duals, barrier) + 0.5 * jnp.mean((start - end) ** 2)


def ascent(duals: Any, error_first: Any, error_second: Any) -> Any:
    return duals + RATE * (error_first + error_second) / 2


def ascent_from_components(duals: Any, barrier: Any, first: Any, second: Any) -> tuple[Any, Any]:
    """The same from components, in NumPy; the barrier grows."""
    one, two = (np.tril(batch.T @ batch / len(batch) - np.eye(len(duals))) for batch in (first, second))
    duals += RATE * (one + two) / 2
    return duals, barrier + 0.01 * (one * two).mean()


def not_below_zero(duals: Any, error_first: Any, error_second: Any) -> Any:
    return jnp.clip(ascent(duals, error_first, error_second), 0.0, 100.0)


def descent_on_duals(duals: Any, error_first: Any, error_second: Any) -> Any:
    return duals - RATE * (error_first + error_second) / 2


def with_weight_decay(duals: Any, error_first: Any, error_second: Any) -> Any:
    return (1 - 0.01 * RATE) * ascent(duals, error_first, error_second)


OPTIMISER = optax.adam(1e-3)


def optimiser_init(dim: int) -> tuple[Any, Any, Any]:
    duals = jnp.zeros((dim, dim))
    return duals, None, OPTIMISER.init(duals)


def inside_the_optimiser(duals: Any, error_first: Any, error_second: Any, state: Any) -> tuple[Any, Any, Any]:
    """Duals as parameters of Adam, their gradient negated and multiplied by a dual rate."""
    updates, state = OPTIMISER.update(-RATE * (error_first + error_second) / 2, state)
    return optax.apply_updates(duals, updates), None, state


def whole_triangle_at_minus_two(dim: int) -> Any:
    return -2 * jnp.tril(jnp.ones((dim, dim)))


def read_half(duals: Any) -> Any:
    return -jnp.diagonal(duals) / 2


def read_quarter(duals: Any) -> Any:
    return -jnp.diagonal(duals) / 4


def numpy_errors(batch: Any) -> Any:
    return np.tril(batch.T @ batch / len(batch) - np.eye(batch.shape[1]))


def numpy_loss(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> float:
    one, two = numpy_errors(first), numpy_errors(second)
    graph = 0.5 * np.sum(np.mean((start - end) ** 2, axis=0))
    return float(graph + np.sum(duals * (one + two)) / 2 + barrier * np.sum(one * two))


def numpy_gram_of_two_batches(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> float:
    error = np.tril(first.T @ second / len(first) - np.eye(first.shape[1]))
    graph = 0.5 * np.sum(np.mean((start - end) ** 2, axis=0))
    return float(graph + np.sum(duals * error) + barrier * np.sum(error**2))


def numpy_gradient(start: Any, end: Any, first: Any, second: Any, duals: Any, barrier: Any) -> list[Any]:
    """Written by hand, with the stop-gradient: only the first factor of a product moves."""
    rows = len(start)
    by_first, by_second = (duals / 2 + barrier * numpy_errors(other) for other in (second, first))
    return [(start - end) / rows, (end - start) / rows, first @ by_first.T / rows, second @ by_second.T / rows]
