"""The graph drawing objective (paper, Eq. 2): it finds the right span, but any rotation of it is as good."""

from lapwing.objectives.base import Objective
from lapwing.objectives.penalty import fixed_penalty


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
    return fixed_penalty(barrier, asymmetric=False)
