"""The graph drawing objective (paper, Eq. 2): it finds the right span, but any rotation of it is as good."""

import jax
import jax.numpy as jnp

from lapwing.objectives.constraints import Constraints, rayleigh_quotients, require_positive
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless, strong_float


def gdo(barrier: float = 2.0) -> Objective:
    """The graph drawing objective of Wu et al. (2019) (paper, Eq. 2).

    Loss: ``sum_i <u_i, L u_i> + b sum_jk (<u_j, u_k> - delta_jk)^2`` over all d x d pairs; nothing to update.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1; of the rotation that was found, so they are
    eigenvalues only where that rotation happens to be none.

    Args:
        barrier: ``b``. The minimum shrinks the mode of eigenvalue lambda to ``|u|^2 = 1 - lambda / (2 b)``; modes with
            ``lambda >= 2 b`` vanish.

    Returns:
        The objective.

    Example:
        >>> gdo(barrier=2.0).init(4)
        ()
    """
    return fixed_penalty(barrier, asymmetric=False)


def fixed_penalty(barrier: float, asymmetric: bool) -> Objective:
    """``sum_i <u_i, L u_i> + b sum_jk e_jk^2`` over all pairs, or asymmetric: over k <= j, u_k held constant there.

    Args:
        barrier: ``b``.
        asymmetric: GDO, or its variant with stop-gradients.

    Returns:
        The objective; its eigenvalues are Rayleigh quotients, factor 1.
    """
    require_positive("barrier", barrier)

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        aux = Constraints.of(values, strong_float(barrier), stop_gradient=asymmetric)
        graph = jnp.sum(aux.energies)
        penalty = barrier * jnp.sum(jnp.tril(aux.squares) if asymmetric else aux.squares)
        return graph + penalty, aux.evaluation(graph=graph, penalty=penalty)

    return stateless(loss, lambda aux: rayleigh_quotients(aux.energies, aux.norms))
