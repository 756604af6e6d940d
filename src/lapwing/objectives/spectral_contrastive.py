"""The spectral contrastive loss (HaoChen et al., 2021): it finds the span, scaled by the roots of the eigenvalues."""

import jax
import jax.numpy as jnp

from lapwing.objectives.nesting import Products
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless


def low_rank_loss(products: Products) -> jax.Array:
    """``-2 tr <u, f(P) u> + |<u, u>|^2``: the squared distance of ``u u*`` from ``f(P)``, but for a constant.

    Args:
        products: of the components.

    Returns:
        A scalar; the square is the product of the two batches, so that it is not biased.
    """
    return -2 * jnp.trace(products.moved) + jnp.sum(products.first * products.second)


def spectral_contrastive() -> Objective:
    """The spectral contrastive loss of HaoChen et al. (2021).

    Loss: ``-2 sum_i <u_i, f(P) u_i> + sum_jk <u_j, u_k>^2``, in their notation
    ``-2 E[u(s) . u(s')] + E[(u(x) . u(y))^2]`` with pairs (s, s') and independent x and y. Its minima are
    ``u = Q diag(sqrt(mu_i)) phi_i`` with any rotation Q: components are ordered by Rayleigh-Ritz (``refine="ritz"``).
    Eigenvalues: one minus those of ``<u, u>``, ascending; not in the order of the outputs.

    Returns:
        The objective.

    Note:
        Sampled gradients are unbiased. Modes whose eigenvalue ``mu`` of ``f(P)`` is not positive vanish.

    Example:
        >>> u = jnp.eye(3)[:, :2] * 1.5**0.5
        >>> loss, evaluation = spectral_contrastive().loss((), Values.of_table(u, 0.5 * u))
        >>> spectral_contrastive().eigenvalues((), evaluation.aux).round(3)
        Array([0.5, 0.5], dtype=float32)
    """

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        products = Products.of(values)
        return low_rank_loss(products), Evaluation(products.inner, {})

    return stateless(loss, lambda inner: 1 - jnp.linalg.eigvalsh(inner)[::-1])
