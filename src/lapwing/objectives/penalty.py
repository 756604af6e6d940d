"""What GDO and its stop-gradient variant share: a graph term and a quadratic penalty of fixed weight."""

import jax
import jax.numpy as jnp

from lapwing.objectives.barrier import require_positive
from lapwing.objectives.base import Info, Objective, State, Values, strong_float
from lapwing.objectives.terms import constraint_errors, rayleigh_quotients


def fixed_penalty(barrier: float, asymmetric: bool) -> Objective:
    """``sum_i <u_i, L u_i> + b sum_jk e_jk^2`` over all pairs, or asymmetric: over k <= j, u_k held constant there.

    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1.
    """
    require_positive("barrier", barrier)

    def init(dim: int) -> State:
        return ()

    def loss(state: State, values: Values) -> tuple[jax.Array, Info]:
        first, second = constraint_errors(values, stop_gradient=asymmetric)
        graph = jnp.sum(values.energies)
        squares = first * second
        penalty = barrier * jnp.sum(jnp.tril(squares) if asymmetric else squares)
        none = jnp.zeros_like(graph)
        return graph + penalty, Info(values.energies, first, second, graph, none, penalty, strong_float(barrier))

    def update(state: State, info: Info) -> State:
        return state

    def eigenvalues(state: State, info: Info) -> jax.Array:
        return rayleigh_quotients(info)

    return Objective(init, loss, update, eigenvalues)
