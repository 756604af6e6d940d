"""The VAMP-2 score (Wu and Noe, 2020): it finds the span, whatever basis of it the outputs are."""

import jax
import jax.numpy as jnp

from lapwing.objectives.constraints import require_not_negative
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless


def vamp2(ridge: float = 1e-4) -> Objective:
    """The VAMP-2 score of Wu and Noe (2020), maximised by VAMPnets (Mardt et al., 2018).

    Loss: ``-|K|^2`` with ``K = M^-1/2 <u, f(P) u> M^-1/2`` and ``M = <u, u>``, the sum of the squared eigenvalues of
    ``f(P)`` in the span. Any basis of the span gives the same, of any lengths: components are ordered by Rayleigh-Ritz
    (``refine="ritz"``).
    Eigenvalues: one minus those of K, ascending; not in the order of the outputs.

    Args:
        ridge: added to the diagonal of M, in units of its mean: whitening divides by M, which may be singular.

    Returns:
        The objective.

    Note:
        VAMP has two sets of functions and singular values, for dynamics that are not reversible; here ``f(P)`` is
        symmetrised, both sets are one, and M is over both ends of the pairs. Large negative eigenvalues count as much
        as large positive ones, in one-step operators of grids for example. Sampled scores are biased upwards, because
        whitening divides by what was sampled; more so the smaller the batch is for the number of components.

    Example:
        >>> u = jnp.eye(3)[:, :2]
        >>> loss, evaluation = vamp2(ridge=0.0).loss((), Values.of_table(u, 0.5 * u))
        >>> vamp2().eigenvalues((), evaluation.aux).round(3)
        Array([0.5, 0.5], dtype=float32)
    """
    require_not_negative("ridge", ridge)

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        inner = values.pair_products()
        scale = jnp.mean(jnp.diagonal(inner))
        factor = jnp.linalg.cholesky(inner + ridge * scale * jnp.eye(len(inner), dtype=inner.dtype))
        half = jax.scipy.linalg.solve_triangular(factor, values.operator_products(), lower=True)
        whitened = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
        return -jnp.sum(whitened**2), Evaluation(whitened, {})

    return stateless(loss, lambda whitened: 1 - jnp.linalg.eigvalsh(whitened)[::-1])
