"""Nested low-rank approximation (Ryu et al., 2024): ordered components whose lengths are the eigenvalues."""

import jax
import jax.numpy as jnp

from lapwing.objectives.nesting import Products, nested_loss
from lapwing.objectives.objective import Evaluation, Objective, Values, stateless
from lapwing.objectives.spectral_contrastive import low_rank_loss


def nested_lora(sequential: bool = True) -> Objective:
    """Nested low-rank approximation of ``f(P)``, NestedLoRA of Ryu et al. (2024).

    Loss: ``-2 sum_i <u_i, f(P) u_i> + sum_jk <u_j, u_k>^2`` of the first l components, for every l
    (:func:`nested_loss`). Its minimum is ``u_i = sqrt(mu_i) phi_i`` with the eigenvectors phi_i of ``f(P)`` in order.
    Eigenvalues: ``1 - <u_i, u_i>``, factor 1.

    Args:
        sequential: each component descends given those before it; else all jointly, the d losses averaged.

    Returns:
        The objective.

    Note:
        Sampled gradients are unbiased: the square is the product of two independent batches. Modes whose eigenvalue
        ``mu`` of ``f(P)`` is not positive vanish, and components near that limit are short; the read-out scales them.

    Example:
        >>> u = jnp.eye(3)[:, :2] * 1.5**0.5
        >>> loss, evaluation = nested_lora().loss((), Values.of_table(u, 0.5 * u))
        >>> nested_lora().eigenvalues((), evaluation.aux).round(3)
        Array([0.5, 0.5], dtype=float32)
    """

    def loss(values: Values) -> tuple[jax.Array, Evaluation]:
        eigenvalues = 1 - jnp.diagonal(Products.of(values).inner)
        return nested_loss(low_rank_loss, values, sequential), Evaluation(eigenvalues, {})

    return stateless(loss, lambda eigenvalues: eigenvalues)
