# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The interface of objectives: pure functions of encoded values (docs/design.md, "Places where it grows")."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

State = Any
"""What the next step of an objective needs: a pytree of arrays whose shapes never change."""


class Values(eqx.Module):
    """The input of an objective: components at both ends of pairs of states, and on two constraint batches.

    Attributes:
        here: (n, d) components ``u(s)`` at the first states of sampled pairs; exact: ``u`` at all states.
        there: (n, d) components ``u(s')`` at the second states of the pairs; exact: ``f(P) u`` at all states.
        first: (n1, d) components on the first batch that constraints are measured on; exact: the same as ``here``.
        second: (n2, d) components on a second, independent batch; exact: the same as ``here``.
        weights: (n,) probabilities of the rows (exact: the data's ``rho``), or None for plain means.
        exact: whether ``there`` is ``f(P) u`` itself rather than a sample of it.

    Example:
        >>> flip = jnp.array([[0.0, 1.0], [1.0, 0.0]])
        >>> u = jnp.array([[1.0], [-1.0]])
        >>> Values.of_table(u, flip @ u).energies()
        Array([2.], dtype=float32)
        >>> Values(u, flip @ u, u, u).energies()
        Array([2.], dtype=float32)
    """

    here: Float[Array, "n d"]
    there: Float[Array, "n d"]
    first: Float[Array, "n1 d"]
    second: Float[Array, "n2 d"]
    weights: Float[Array, " n"] | None = None
    exact: bool = eqx.field(static=True, default=False)

    @classmethod
    def of_table(
        cls, u: Float[Array, "n d"], moved: Float[Array, "n d"], weights: Float[Array, " n"] | None = None
    ) -> "Values":
        """Exact values, from the components at all states.

        Args:
            u: (n, d) components at all states.
            moved: (n, d) ``f(P) u``.
            weights: (n,) the stationary ``rho``; None for the uniform one.

        Returns:
            Values whose energies and products are expectations without sampling noise.
        """
        return cls(u, moved, u, u, weights, exact=True)

    def energies(self) -> Float[Array, " d"]:
        """Graph-drawing energies ``<u_i, L u_i>`` with ``L = I - f(P)`` (paper, Eq. 1-2).

        Exact: ``E_rho[u (u - f(P) u)]``. Sampled: ``1/2 E (u(s) - u(s'))^2``, which has the same expectation when
        ``rho`` is stationary. With the half, an orthonormal eigenvector has its eigenvalue as energy.

        Returns:
            (d,) energies, differentiable with respect to the encoder.
        """
        if self.exact:
            return expectation(self.here * (self.here - self.there), self.weights)
        return 0.5 * expectation((self.here - self.there) ** 2, self.weights)

    def operator_products(self, stop_gradient: bool = False) -> Float[Array, "d d"]:
        """Products ``<u_i, f(P) u_j>`` of all pairs of components.

        Sampled ones average both directions of a pair, as do the exact ones of a reversible ``f(P)``.

        Args:
            stop_gradient: hold the second factor, the one of the column index, constant in derivatives.

        Returns:
            (d, d) products; symmetric where sampled.
        """
        here, there = jax.lax.stop_gradient((self.here, self.there)) if stop_gradient else (self.here, self.there)
        forward = cross_products(self.here, there, self.weights)
        return forward if self.exact else (forward + cross_products(self.there, here, self.weights)) / 2

    def pair_products(self) -> Float[Array, "d d"]:
        """Inner products ``<u_j, u_k>`` over both ends of the pairs, whose noise is that of the operator's products.

        Returns:
            (d, d) products; no quotient of :meth:`operator_products` by them exceeds 1 in magnitude.
        """
        here = inner_products(self.here, self.weights)
        return here if self.exact else (here + inner_products(self.there, self.weights)) / 2

    def inner_products(self, stop_gradient: bool = False) -> tuple[Float[Array, "d d"], Float[Array, "d d"]]:
        """Inner products ``<u_j, u_k>`` on both constraint batches (with the stop-gradient: paper, Eq. 5).

        Independent batches make products of entries unbiased: ``E[a1 a2] = E[a]^2``, where the square of one batch's
        entry would add its variance.

        Args:
            stop_gradient: hold the second factor, the one of the column index, constant in derivatives.

        Returns:
            (d, d) on the first and (d, d) on the second batch; exact: the same array twice.
        """
        first = inner_products(self.first, self.weights, stop_gradient)
        if self.exact or self.second is self.first:
            return first, first
        return first, inner_products(self.second, self.weights, stop_gradient)

    def reordered(self, order: Int[Array, " d"]) -> "Values":
        """The same values with the components in another order.

        Args:
            order: (d,) which component comes at each place.

        Returns:
            Values of the same shapes.
        """
        here, there = self.here[:, order], self.there[:, order]
        if self.exact:
            return Values.of_table(here, there, self.weights)
        return Values(here, there, self.first[:, order], self.second[:, order], self.weights)


class Evaluation(NamedTuple):
    """What ``loss`` returns beside the scalar.

    Attributes:
        aux: a pytree of the objective's own, which its ``update`` and ``eigenvalues`` read.
        metrics: scalars to log, by name. ``error`` is by convention the largest constraint error.
    """

    aux: Any
    metrics: dict[str, jax.Array]


class Details(NamedTuple):
    """What an objective's state holds beyond eigenvalues, for the read-out and for diagnostics.

    Attributes:
        eigenvalues: further (d,) estimates of the eigenvalues, by name, e.g. ALLO's raw ``dual``.
        at_bounds: by name of a quantity, booleans that say where it has stopped at a bound: (d,) or scalar.
        order: (d,) which output of the encoder each component is; None where they are in order.
    """

    eigenvalues: dict[str, jax.Array]
    at_bounds: dict[str, jax.Array]
    order: Int[Array, " d"] | None = None


def no_details(state: State) -> Details:
    """The default of :attr:`Objective.details`: nothing to add.

    Args:
        state: of any objective.

    Returns:
        Empty details.
    """
    return Details({}, {})


class Objective(NamedTuple):
    """A named tuple of pure functions; hyper-parameters live in the factory that made them.

    Attributes:
        init: ``(dim) -> state``, of final shapes and types from the start.
        loss: ``(state, values) -> (scalar, Evaluation)``; descend on its gradient with respect to the encoder.
        update: ``(state, aux) -> state`` after each descent step: dual ascent, barrier growth.
        eigenvalues: ``(state, aux) -> (dim,)`` the objective's own estimate of the eigenvalues of the operator it is
            trained with; each factory's docstring states the factor.
        details: ``(state) -> Details``, optional.

    Example:
        >>> import jax
        >>> from lapwing.objectives import Values, allo
        >>> objective = allo()
        >>> state = objective.init(3)
        >>> u = jax.random.normal(jax.random.key(0), (4, 8, 3))
        >>> loss, evaluation = objective.loss(state, Values(*u))
        >>> state = objective.update(state, evaluation.aux)
        >>> objective.eigenvalues(state, evaluation.aux).shape
        (3,)
    """

    init: Callable[[int], State]
    loss: Callable[[State, Values], tuple[jax.Array, Evaluation]]
    update: Callable[[State, Any], State]
    eigenvalues: Callable[[State, Any], jax.Array]
    details: Callable[[State], Details] = no_details


def stateless(
    loss: Callable[[Values], tuple[jax.Array, Evaluation]], eigenvalues: Callable[[Any], jax.Array]
) -> Objective:
    """An objective that is a function of the values alone.

    Args:
        loss: from values to a scalar and an :class:`Evaluation`.
        eigenvalues: from the evaluation's aux to (d,) eigenvalues of the training operator.

    Returns:
        The objective; its state is empty.
    """
    return Objective(
        init=lambda dim: (),
        loss=lambda state, values: loss(values),
        update=lambda state, aux: state,
        eigenvalues=lambda state, aux: eigenvalues(aux),
    )


def inner_products(
    values: Float[Array, "n d"], weights: Float[Array, " n"] | None = None, stop_gradient: bool = False
) -> Float[Array, "d d"]:
    """(d, d) inner products ``<u_j, u_k> = E_rho[u_j u_k]``; with the stop-gradient ``<u_j, [[u_k]]>`` (paper, Eq. 5).

    Args:
        values: (n, d) values on one batch.
        weights: (n,) probabilities of the rows; None for a plain mean.
        stop_gradient: hold the second factor, the one of the column index, constant in derivatives.

    Returns:
        (d, d) products.

    Example:
        >>> inner_products(jnp.array([[1.0, 1.0], [1.0, -1.0]]))
        Array([[1., 0.],
               [0., 1.]], dtype=float32)
    """
    return cross_products(values, jax.lax.stop_gradient(values) if stop_gradient else values, weights)


def cross_products(
    left: Float[Array, "n d"], right: Float[Array, "n e"], weights: Float[Array, " n"] | None = None
) -> Float[Array, "d e"]:
    """(d, e) products ``E[left_j right_k]`` over rows.

    Args:
        left: (n, d) values.
        right: (n, e) values on the same rows.
        weights: (n,) probabilities of the rows; None for a plain mean.

    Returns:
        (d, e) products.
    """
    if weights is None:
        return left.T @ right / left.shape[0]
    return (left * weights[:, None]).T @ right


def expectation(rows: Float[Array, "n d"], weights: Float[Array, " n"] | None) -> Float[Array, " d"]:
    """Mean over the rows.

    Args:
        rows: (n, d) numbers.
        weights: (n,) probabilities of the rows; None for a plain mean.

    Returns:
        (d,) means.
    """
    return jnp.mean(rows, axis=0) if weights is None else weights @ rows


def strong_float(value: float) -> Float[Array, ""]:
    """A scalar of JAX's default float type, never weakly typed: a weak one would make a scanned step compile twice.

    Args:
        value: any number.

    Returns:
        A scalar array.
    """
    return jnp.array(value, dtype=jnp.result_type(float))
