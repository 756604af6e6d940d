# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Objectives made from objectives: the paper's permutation study without compiling anything anew."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from lapwing.errors import LapwingError
from lapwing.objectives.base import Info, Objective, State, Values


class PermutedState(NamedTuple):
    """The wrapped objective's state, which output plays which component, and the steps made so far."""

    inner: State
    permutation: Int[Array, " d"]
    step: Int[Array, ""]


def permuted(objective: Objective, every: int = 20_000, seed: int = 0) -> Objective:
    """The same objective, its outputs randomly permuted every ``every`` steps (paper, Appendix "random permutations").

    The outputs change places while duals and barrier stay, as in the paper: component ``i`` of the objective is output
    ``permutation[i]`` of the encoder. The permutation is data in the state, so a new one compiles nothing. Info and
    eigenvalues come in the objective's order; bring outputs into it with :func:`output_order`.

    Args:
        objective: the objective to wrap.
        every: steps between permutations.
        seed: the permutations are a function of it and of the step alone; runs that share it are permuted alike.

    Example:
        >>> from lapwing.objectives import gdo
        >>> wrapped = permuted(gdo(), every=100)
        >>> wrapped.init(3).permutation
        Array([0, 1, 2], dtype=int32)
    """
    if every < 1:
        raise LapwingError(f"the steps between permutations must be at least 1, got {every}")

    def init(dim: int) -> PermutedState:
        return PermutedState(objective.init(dim), jnp.arange(dim, dtype=jnp.int32), jnp.zeros((), dtype=jnp.int32))

    def loss(state: PermutedState, values: Values) -> tuple[jax.Array, Info]:
        return objective.loss(state.inner, reordered(values, state.permutation))

    def update(state: PermutedState, info: Info) -> PermutedState:
        step = state.step + 1
        key = jax.random.fold_in(jax.random.key(seed), step)
        permutation = jax.lax.cond(
            step % every == 0, lambda order: jax.random.permutation(key, order), lambda order: order, state.permutation
        )
        return PermutedState(objective.update(state.inner, info), permutation, step)

    def eigenvalues(state: PermutedState, info: Info) -> jax.Array:
        return objective.eigenvalues(state.inner, info)

    return Objective(init, loss, update, eigenvalues)


def reordered(values: Values, order: Int[Array, " d"]) -> Values:
    """The same values with the components in another order; a batch that is shared stays shared."""
    first = values.first[:, order]
    second = first if values.second is values.first else values.second[:, order]
    return Values(values.energies[order], first, second, values.weights)


def output_order(state: State, dim: int) -> Int[Array, " d"]:
    """(dim,) which output of the encoder each component of the objective is: ``outputs[:, order]`` is in its order.

    Example:
        >>> from lapwing.objectives import allo
        >>> output_order(allo().init(3), 3)
        Array([0, 1, 2], dtype=int32)
    """
    if isinstance(state, PermutedState):
        return state.permutation[output_order(state.inner, dim)]
    return jnp.arange(dim, dtype=jnp.int32)
