"""Eigenfunctions one after another, each penalised for its overlap with those before: NeuralEF and mu-EigenGame."""

import jax
import jax.numpy as jnp

from lapwing.objectives.constraints import COLLAPSED, rayleigh_quotients
from lapwing.objectives.nesting import Products
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless

SMALLEST_DIVISOR = 1e-2
"""``R_ii`` below this are taken for it: early in training they may be zero or negative."""


def neural_ef(unbiased: bool = False) -> Objective:
    """NeuralEF of Deng et al. (2022), or mu-EigenGame of Gemp et al. (2022) with ``unbiased=True``.

    With ``phi_i = u_i / |u_i|`` and ``R_ij = <phi_i, f(P) [[phi_j]]>`` the loss is
    ``sum_i <phi_i, L phi_i> + sum_{i < l} R_li^2 / R_ii``; its gradient with respect to ``phi_l`` is
    ``-2 f(P) phi_l + 2 sum_{i < l} (R_li / R_ii) f(P) phi_i``, half of theirs. mu-EigenGame replaces ``R_li / R_ii`` by
    ``<phi_l, phi_i>``, which at the solution is the same.
    Eigenvalues: Rayleigh quotients ``<phi_i, L phi_i>``, factor 1.

    Args:
        unbiased: mu-EigenGame.

    Returns:
        The objective.

    Note:
        Of sampled batches NeuralEF's penalty is biased: it squares a sampled product and divides by another. That of
        mu-EigenGame is not, if the constraint batches are drawn apart from the pairs (``separate_constraints=True``).
        In both, components are normalised by the batch, which leaves a bias of order 1 / batch size. Only a positive
        ``f(P)`` has the eigenvectors as a minimum; long lags make it nearly so.

    Example:
        >>> u = jnp.eye(3)[:, :2]
        >>> loss, evaluation = neural_ef().loss((), Values.of_table(u, 0.5 * u))
        >>> neural_ef().eigenvalues((), evaluation.aux)
        Array([0.5, 0.5], dtype=float32)
    """

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        squared_norms = jnp.diagonal(values.pair_products())
        quotients = rayleigh_quotients(values.energies(), squared_norms)
        norms = jnp.sqrt(jnp.maximum(squared_norms, COLLAPSED))
        lengths = norms[:, None] * jax.lax.stop_gradient(norms)
        products = values.operator_products(stop_gradient=True) / lengths
        if unbiased:
            overlaps = 2 * jax.lax.stop_gradient(Products.of(values).inner / lengths)
        else:
            overlaps = products / jnp.maximum(jax.lax.stop_gradient(1 - quotients), SMALLEST_DIVISOR)
        graph, penalty = jnp.sum(quotients), jnp.sum(jnp.tril(overlaps * products, -1))
        return graph + penalty, Evaluation(quotients, {"graph": graph, "penalty": penalty})

    return stateless(loss, lambda quotients: quotients)
