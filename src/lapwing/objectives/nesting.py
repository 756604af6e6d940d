# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""Order for losses that any rotation leaves unchanged: the same loss on the first l components, for every l.

A loss of the products ``<u, u>`` and ``<u, f(P) u>`` that is smallest on the leading eigenvectors fixes their span. On
every leading subset of components at once, it fixes the components themselves (Ryu et al., 2024).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.objectives.objective import Values


class Products(NamedTuple):
    """All that losses without constraints see of the values.

    Attributes:
        first: (d, d) inner products ``<u_i, u_j>`` on the first batch.
        second: (d, d) the same on the second batch.
        moved: (d, d) operator products ``<u_i, f(P) u_j>``.
    """

    first: Float[Array, "d d"]
    second: Float[Array, "d d"]
    moved: Float[Array, "d d"]

    @classmethod
    def of(cls, values: Values, stop_gradient: bool = False) -> "Products":
        """Measure the products.

        Args:
            values: the input of the objective.
            stop_gradient: hold the factor of the column index constant in derivatives.

        Returns:
            Products, differentiable.
        """
        return cls(*values.inner_products(stop_gradient), values.operator_products(stop_gradient))

    @property
    def inner(self) -> Float[Array, "d d"]:
        """(d, d) inner products, both batches averaged."""
        return (self.first + self.second) / 2


def nested_loss(loss: Callable[[Products], jax.Array], values: Values, sequential: bool) -> jax.Array:
    """``sum_l w_l loss(u_1, ..., u_l)``: its minimum is the leading eigenvectors in order.

    Jointly, ``w_l = 1/d`` and every component descends on all terms that it is in. Sequentially, ``w_l = 1`` and in
    term ``l`` only ``u_l`` is differentiated: each component descends as if those before it were given, and those after
    it did not exist.

    Args:
        loss: of products; it must not change where components that are zero are added.
        values: the input of the objective.
        sequential: sequentially or jointly.

    Returns:
        A scalar.
    """
    products = Products.of(values, stop_gradient=sequential)
    numbers = jnp.arange(len(products.moved))

    def of_leading(last: Array) -> jax.Array:
        kept = (numbers <= last)[:, None] & (numbers <= last)[None, :]
        seen = [_differentiated_by(last, matrix) if sequential else matrix for matrix in products]
        return loss(Products(*(jnp.where(kept, matrix, 0) for matrix in seen)))

    by_last = jax.vmap(of_leading)(numbers)
    return jnp.sum(by_last) if sequential else jnp.mean(by_last)


def _differentiated_by(number: Array, products: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Symmetric products of which only one component is differentiated.

    Args:
        number: of the component.
        products: whose derivatives are those of the component of the row index.

    Returns:
        The same numbers with other derivatives.
    """
    fixed = jax.lax.stop_gradient(products)
    row = jnp.where(jnp.arange(len(products))[:, None] == number, products - fixed, 0)
    return fixed + row + row.T
