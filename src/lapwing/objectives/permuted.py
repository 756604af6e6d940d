# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Objectives made from objectives: the paper's permutation study without compiling anything anew."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from lapwing.errors import ArgumentError
from lapwing.objectives.objective import Details, Evaluation, Objective, State, Values


class PermutedState(NamedTuple):
    """The wrapped objective's state, which output plays which component, and the steps made so far."""

    inner: State
    permutation: Int[Array, " d"]
    step: Int[Array, ""]


def permuted(objective: Objective, every: int = 20_000, seed: int = 0) -> Objective:
    """The same objective, its outputs randomly permuted every ``every`` steps (paper, Appendix "random permutations").

    The outputs change places while duals and barrier stay, as in the paper: component ``i`` of the objective is output
    ``permutation[i]`` of the encoder. The permutation is data in the state, so a new one compiles nothing. Aux and
    eigenvalues come in the objective's order; ``details(state).order`` brings outputs into it.

    Args:
        objective: the objective to wrap.
        every: steps between permutations.
        seed: the permutations are a function of it and of the step alone; runs that share it are permuted alike.

    Returns:
        The wrapped objective.

    Example:
        >>> from lapwing.objectives import gdo
        >>> wrapped = permuted(gdo(), every=100)
        >>> wrapped.details(wrapped.init(3)).order
        Array([0, 1, 2], dtype=int32)
    """
    if every < 1:
        raise ArgumentError(f"the steps between permutations must be at least 1, got {every}")

    def init(dim: int) -> PermutedState:
        return PermutedState(objective.init(dim), jnp.arange(dim, dtype=jnp.int32), jnp.zeros((), dtype=jnp.int32))

    def loss(state: PermutedState, values: Values) -> tuple[jax.Array, Evaluation]:
        return objective.loss(state.inner, values.reordered(state.permutation))

    def update(state: PermutedState, aux: Any) -> PermutedState:
        step = state.step + 1
        key = jax.random.fold_in(jax.random.key(seed), step)
        permutation = jax.lax.cond(
            step % every == 0, lambda order: jax.random.permutation(key, order), lambda order: order, state.permutation
        )
        return PermutedState(objective.update(state.inner, aux), permutation, step)

    def eigenvalues(state: PermutedState, aux: Any) -> jax.Array:
        return objective.eigenvalues(state.inner, aux)

    def details(state: PermutedState) -> Details:
        inner = objective.details(state.inner)
        order = state.permutation if inner.order is None else state.permutation[inner.order]
        return inner._replace(order=order)

    return Objective(init, loss, update, eigenvalues, details)
