"""The graph drawing objective with stop-gradients (paper, Eq. 5): ordered components, shortened by the penalty."""

import jax
import jax.numpy as jnp

from lapwing.objectives.barrier import require_positive
from lapwing.objectives.base import Info, Objective, State, Values, strong_float
from lapwing.objectives.terms import constraint_errors, rayleigh_quotients


def quadratic_penalty(barrier: float = 2.0) -> Objective:
    """The stop-gradient quadratic penalty (paper, Eq. 5).

    Loss: ``sum_i <u_i, L u_i> + b sum_{k <= j} (<u_j, [[u_k]]> - delta_jk)^2``; nothing to update. ALLO without
    duals and with a fixed barrier is the same function.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1; exact at the equilibrium.

    Args:
        barrier: ``b``. At the equilibrium ``|u_i|^2 = 1 - lambda_i / b``, and modes with ``lambda_i >= b`` vanish.

    Example:
        >>> quadratic_penalty(barrier=2.0).init(4)
        ()
    """
    require_positive("barrier", barrier)

    def init(dim: int) -> State:
        return ()

    def loss(state: State, values: Values) -> tuple[jax.Array, Info]:
        first, second = constraint_errors(values, stop_gradient=True)
        graph = jnp.sum(values.energies)
        penalty = barrier * jnp.sum(jnp.tril(first * second))
        none = jnp.zeros_like(graph)
        return graph + penalty, Info(values.energies, first, second, graph, none, penalty, strong_float(barrier))

    def update(state: State, info: Info) -> State:
        return state

    def eigenvalues(state: State, info: Info) -> jax.Array:
        return rayleigh_quotients(info)

    return Objective(init, loss, update, eigenvalues)
