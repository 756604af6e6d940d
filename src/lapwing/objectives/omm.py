"""Orbital minimisation (Ryu et al., 2025): eigenvectors as a minimum without constraints."""

import math

import jax
import jax.numpy as jnp

from lapwing.errors import ArgumentError
from lapwing.objectives.constraints import rayleigh_quotients, require_not_negative
from lapwing.objectives.nesting import Products, nested_loss
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless

HIGHEST_ORDER = 4


def omm(order: int = 1, shift: float = 1.0, sequential: bool = True) -> Objective:
    """The orbital minimisation method of Ryu et al. (2025), nested so that components come in order.

    With ``M = <u, u>`` and ``A = <u, (f(P) + shift) u>``, (d, d) each, the loss of order p is
    ``tr((I - u u*)^2p (f(P) + shift)) - const = sum_{k=1}^{2p} (-1)^k binom(2p, k) tr(M^(k-1) A)``: of order 1
    ``-2 tr A + tr(M A)``, of order 2 ``tr((-4 + 6 M - 4 M^2 + M^3) A)``. Its minima are orthonormal bases of the span
    of the leading eigenvectors; :func:`nested_loss` leaves only the eigenvectors themselves.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1.

    Args:
        order: ``p``, from 1 to 4; higher orders are flatter at the minimum.
        shift: makes ``f(P) + shift`` positive, without which the loss has no minimum; 1 is enough for any ``f(P)``. At
            order 1 it adds ``shift |M - I|^2``, a quadratic penalty.
        sequential: each component descends given those before it; else all jointly, the d losses averaged.

    Returns:
        The objective.

    Note:
        Of sampled batches the loss of order 1 is unbiased if the constraint batches are drawn apart from the pairs
        (``separate_constraints=True``); as halves of the pairs they share their noise with ``<u, f(P) u>``. Of
        higher orders it is biased, because powers of one batch's ``M`` are not powers of its mean. The paper's nesting
        of order 2 is not described in full; here each component sees the whole loss of those up to itself.

    Example:
        >>> objective = omm(order=2)
        >>> u = jnp.eye(3)[:, :2] * 3**0.5
        >>> loss, evaluation = objective.loss((), Values.of_table(u, 0.5 * u))
        >>> objective.eigenvalues((), evaluation.aux)
        Array([0.5, 0.5], dtype=float32)
    """
    if type(order) is not int or not 1 <= order <= HIGHEST_ORDER:
        raise ArgumentError(f"order must be a whole number from 1 to {HIGHEST_ORDER}, got {order!r:.100}")
    require_not_negative("shift", shift)
    coefficients = [(-1) ** k * math.comb(2 * order, k) for k in range(1, 2 * order)]

    def one_way(inner: jax.Array, products: jax.Array) -> jax.Array:
        identity = jnp.eye(len(inner), dtype=inner.dtype)
        polynomial = inner + coefficients[-1] * identity
        for coefficient in reversed(coefficients[:-1]):
            polynomial = inner @ polynomial + coefficient * identity
        return jnp.sum(polynomial * products)

    def unordered(products: Products) -> jax.Array:
        # Each batch in turn gives the powers and the other one the shift, so that their product is not biased.
        first = one_way(products.first, products.moved + shift * products.second)
        second = one_way(products.second, products.moved + shift * products.first)
        return (first + second) / 2

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        products = Products.of(values)
        quotients = rayleigh_quotients(values.energies(), jnp.diagonal(values.pair_products()))
        error = jnp.max(jnp.abs(products.inner - jnp.eye(len(products.inner))))
        return nested_loss(unordered, values, sequential), Evaluation(quotients, {"error": error})

    return stateless(loss, lambda quotients: quotients)
