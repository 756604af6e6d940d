# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The terms that objectives share, each written once: energies, inner products, errors, Rayleigh quotients."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.objectives.base import Info, Values

COLLAPSED = 1e-6
"""A squared norm that float32 cannot tell from zero after the subtraction of 1 in the errors."""


def graph_drawing_energy(
    start: Float[Array, "n d"], end: Float[Array, "n d"], weights: Float[Array, " n"] | None = None
) -> Float[Array, " d"]:
    """Graph-drawing energy of each component over sampled pairs, ``1/2 E (u(s) - u(s'))^2`` (paper, Eq. 1-2).

    With the half it estimates ``<u_i, L u_i>`` itself, so an orthonormal eigenvector has its eigenvalue as energy.

    Args:
        start: (n, d) values at the first states of the pairs.
        end: (n, d) values at the second states.
        weights: (n,) probabilities of the pairs; None for a plain mean.

    Example:
        >>> import jax.numpy as jnp
        >>> graph_drawing_energy(jnp.array([[0.0], [1.0]]), jnp.array([[2.0], [1.0]]))
        Array([1.], dtype=float32)
    """
    return 0.5 * expectation((start - end) ** 2, weights)


def exact_graph_drawing_energy(
    values: Float[Array, "n d"],
    apply_operator: Callable[[Float[Array, "n d"]], Float[Array, "n d"]],
    weights: Float[Array, " n"] | None = None,
) -> Float[Array, " d"]:
    """Graph-drawing energy of each component without sampling, ``sum_s rho_s u(s) (u - f(P) u)(s)`` (paper, Eq. 1).

    It equals ``1/2 E (u(s) - u(s'))^2`` with ``s ~ rho`` and ``s' ~ f(P)(s, .)`` whenever ``rho`` is stationary under
    ``f(P)``, and its gradient is ``2 rho (u - f(P) u)`` when ``f(P)`` is also reversible with respect to ``rho``.

    Args:
        values: (n, d) values at every state.
        apply_operator: ``u -> f(P) u`` on (n, d) arrays; linear.
        weights: (n,) the stationary ``rho``; None for the uniform one.

    Example:
        >>> import jax.numpy as jnp
        >>> flip = jnp.array([[0.0, 1.0], [1.0, 0.0]])
        >>> exact_graph_drawing_energy(jnp.array([[1.0], [-1.0]]), lambda u: flip @ u)
        Array([2.], dtype=float32)
    """
    return expectation(values * (values - apply_operator(values)), weights)


def inner_products(
    values: Float[Array, "n d"], weights: Float[Array, " n"] | None = None, stop_gradient: bool = False
) -> Float[Array, "d d"]:
    """(d, d) inner products ``<u_j, u_k> = E_rho[u_j u_k]``; with the stop-gradient ``<u_j, [[u_k]]>`` (paper, Eq. 5).

    Args:
        values: (n, d) values on one batch.
        weights: (n,) probabilities of the rows; None for a plain mean.
        stop_gradient: hold the second factor, the one of the column index, constant in derivatives.

    Example:
        >>> import jax.numpy as jnp
        >>> inner_products(jnp.array([[1.0, 1.0], [1.0, -1.0]]))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    fixed = jax.lax.stop_gradient(values) if stop_gradient else values
    if weights is None:
        return values.T @ fixed / values.shape[0]
    return (values * weights[:, None]).T @ fixed


def orthogonality_error(
    values: Float[Array, "n d"], weights: Float[Array, " n"] | None = None, stop_gradient: bool = False
) -> Float[Array, "d d"]:
    """(d, d) constraint errors ``e_jk = <u_j, u_k> - delta_jk`` (paper, Eq. 1; with the stop-gradient, Eq. 5).

    Example:
        >>> import jax.numpy as jnp
        >>> orthogonality_error(jnp.array([[2.0], [0.0]]))
        Array([[1.]], dtype=float32)
    """
    products = inner_products(values, weights, stop_gradient)
    return products - jnp.eye(products.shape[0], dtype=products.dtype)


def constraint_errors(values: Values, stop_gradient: bool) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
    """The errors on both batches, whose entrywise product is an unbiased estimate of the squared errors.

    Independent batches give ``E[e1 e2] = E[e]^2`` and ``E[grad(e1 e2)] = 2 E[e] E[grad e]``, where the square of one
    batch's error would add its variance. Exact batches are one and the same array, and the product is the square.
    """
    first = orthogonality_error(values.first, values.weights, stop_gradient)
    if values.second is values.first:
        return first, first
    return first, orthogonality_error(values.second, values.weights, stop_gradient)


def rayleigh_quotients(info: Info) -> Float[Array, " d"]:
    """Energies over squared norms, ``<u_i, L u_i> / <u_i, u_i>``: exact at any multiple of an eigenvector.

    The division matters for penalty methods: their components come out shorter than 1 (Corollary 1). A component that
    has collapsed to nothing has no quotient and reads 0.
    """
    norms = 1 + jnp.diagonal(info.errors)
    return jnp.where(norms > COLLAPSED, info.energies / jnp.maximum(norms, COLLAPSED), 0)


def expectation(rows: Float[Array, "n d"], weights: Float[Array, " n"] | None) -> Float[Array, " d"]:
    """Mean over the rows, weighted by their probabilities where given."""
    return jnp.mean(rows, axis=0) if weights is None else weights @ rows
