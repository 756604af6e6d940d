"""The graph drawing objective (paper, Eq. 2): it finds the right span, but any rotation of it is as good."""

import jax
import jax.numpy as jnp

from lapwing.objectives.barrier import require_positive
from lapwing.objectives.base import Info, Objective, State, Values, strong_float
from lapwing.objectives.terms import constraint_errors, rayleigh_quotients


def gdo(barrier: float = 2.0) -> Objective:
    """The graph drawing objective of Wu et al. (2019) (paper, Eq. 2).

    Loss: ``sum_i <u_i, L u_i> + b sum_jk (<u_j, u_k> - delta_jk)^2`` over all d x d pairs; nothing to update.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1; of the rotation that was found, so they are
    eigenvalues only where that rotation happens to be none.

    Args:
        barrier: ``b``. The minimum shrinks the mode of eigenvalue lambda to ``|u|^2 = 1 - lambda / (2 b)``; modes with
            ``lambda >= 2 b`` vanish.

    Example:
        >>> gdo(barrier=2.0).init(4)
        ()
    """
    require_positive("barrier", barrier)

    def init(dim: int) -> State:
        return ()

    def loss(state: State, values: Values) -> tuple[jax.Array, Info]:
        first, second = constraint_errors(values, stop_gradient=False)
        graph = jnp.sum(values.energies)
        penalty = barrier * jnp.sum(first * second)
        none = jnp.zeros_like(graph)
        return graph + penalty, Info(values.energies, first, second, graph, none, penalty, strong_float(barrier))

    def update(state: State, info: Info) -> State:
        return state

    def eigenvalues(state: State, info: Info) -> jax.Array:
        return rayleigh_quotients(info)

    return Objective(init, loss, update, eigenvalues)
