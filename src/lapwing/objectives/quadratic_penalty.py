"""The graph drawing objective with stop-gradients (paper, Eq. 5): ordered components, shortened by the penalty."""

from lapwing.objectives.gdo import fixed_penalty
from lapwing.objectives.objective import Objective


def quadratic_penalty(barrier: float = 2.0) -> Objective:
    """The stop-gradient quadratic penalty (paper, Eq. 5).

    Loss: ``sum_i <u_i, L u_i> + b sum_{k <= j} (<u_j, [[u_k]]> - delta_jk)^2``; nothing to update. ALLO without
    duals and with a fixed barrier is the same function.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1; exact at the equilibrium.

    Args:
        barrier: ``b``. At the equilibrium ``|u_i|^2 = 1 - lambda_i / b``, and modes with ``lambda_i >= b`` vanish.

    Returns:
        The objective.

    Example:
        >>> quadratic_penalty(barrier=2.0).init(4)
        ()
    """
    return fixed_penalty(barrier, asymmetric=True)
