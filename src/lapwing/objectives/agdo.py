"""The asymmetric graph drawing objective: the stop-gradient quadratic penalty under the name of its later paper."""

from lapwing.objectives.gdo import fixed_penalty
from lapwing.objectives.objective import Objective


def agdo(barrier: float = 2.5) -> Objective:
    """The asymmetric graph drawing objective, AGDO (ICML 2025), proposed for policies that change while it learns.

    Loss: ``sum_i <u_i, L u_i> + b sum_{k <= j} (<u_j, [[u_k]]> - delta_jk)^2``: the function of
    :func:`quadratic_penalty`, which is ALLO without duals and with a fixed ``b``.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1; exact at the equilibrium.

    Args:
        barrier: ``b``. At the equilibrium ``|u_i|^2 = 1 - lambda_i / b``, and modes with ``lambda_i >= b`` vanish.

    Returns:
        The objective.

    Note:
        Its authors' graph term lacks its half: their ``b = 5`` is 2.5 here. They prove convergence of projected
        descent; the projection onto a bounded set is left out here. Sampled gradients are unbiased, as ALLO's are.

    Example:
        >>> agdo().init(4)
        ()
    """
    return fixed_penalty(barrier, asymmetric=True)
