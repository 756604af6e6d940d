"""An implementation of ALLO as `lapwing check-loss` takes it: functions of arrays, each argument by its name."""

import jax
import jax.numpy as jnp

import lapwing as lw

DUAL_RATE = 1e-3


def errors(batch: jax.Array) -> jax.Array:
    """``<u_j, [[u_k]]> - delta_jk`` for k <= j: both factors from the same rows, the second one held constant."""
    products = batch.T @ jax.lax.stop_gradient(batch) / len(batch)
    return jnp.tril(products - jnp.eye(batch.shape[1]))


def loss(
    start: jax.Array, end: jax.Array, first: jax.Array, second: jax.Array, duals: jax.Array, barrier: float
) -> jax.Array:
    """Graph term with its half, dual term, and the square as a product of two independent batches' errors."""
    graph = 0.5 * jnp.mean((start - end) ** 2, axis=0).sum()
    error_first, error_second = errors(first), errors(second)
    dual = jnp.sum(duals * (error_first + error_second)) / 2
    return graph + dual + barrier * jnp.sum(error_first * error_second)


def update(duals: jax.Array, error_first: jax.Array, error_second: jax.Array) -> jax.Array:
    """Plain ascent, outside the encoder's optimiser, with bounds on both sides of zero."""
    return jnp.clip(duals + DUAL_RATE * (error_first + error_second) / 2, -8.0, 8.0)


def eigenvalues(duals: jax.Array) -> jax.Array:
    """The graph term has its half, so the multipliers are -2 lambda."""
    return -jnp.diagonal(duals) / 2


if __name__ == "__main__":
    print(lw.check_loss(loss, update, eigenvalues=eigenvalues))
