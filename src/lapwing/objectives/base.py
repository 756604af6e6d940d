# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""What an objective is: four pure functions of values that are encoded already (docs/design.md, "An objective")."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

State = Any
"""What the next step of an objective needs: a pytree of arrays whose shapes never change."""


class Values(NamedTuple):
    """Everything an objective may look at: the components' energies and two batches of their values.

    Attributes:
        energies: (d,) graph-drawing energies ``<u_i, L u_i> = 1/2 E (u_i(s) - u_i(s'))^2``, half included,
            differentiable with respect to the encoder.
        first: (n1, d) values on the first batch of observations that the constraints are measured on.
        second: (n2, d) values on a second, independent batch; with exact batches the same array as ``first``.
        weights: (n,) probabilities of the rows of both batches (the data's ``rho``), or None for plain means.
    """

    energies: Float[Array, " d"]
    first: Float[Array, "n1 d"]
    second: Float[Array, "n2 d"]
    weights: Float[Array, " n"] | None = None


class Info(NamedTuple):
    """What one evaluation of an objective saw: diagnostics, and the errors that :func:`Objective.update` ascends on.

    Attributes:
        energies: (d,) as in :class:`Values`.
        errors_first: (d, d) ``<u_j, u_k> - delta_jk`` on the first batch.
        errors_second: (d, d) the same on the second batch; their entrywise product estimates the square without bias.
        graph: the graph term of the loss, coefficients included.
        dual: the linear term ``sum beta_jk e_jk`` of the loss; 0 where there are no duals.
        penalty: the quadratic term of the loss, ``b`` included.
        barrier: the ``b`` that was used.
    """

    energies: Float[Array, " d"]
    errors_first: Float[Array, "d d"]
    errors_second: Float[Array, "d d"]
    graph: Float[Array, ""]
    dual: Float[Array, ""]
    penalty: Float[Array, ""]
    barrier: Float[Array, ""]

    @property
    def errors(self) -> Float[Array, "d d"]:
        """(d, d) constraint errors, both batches averaged."""
        return (self.errors_first + self.errors_second) / 2


class Objective(NamedTuple):
    """A named tuple of pure functions; hyper-parameters live in the factory that made them.

    Attributes:
        init: ``(dim) -> state``, of final shapes and types from the start.
        loss: ``(state, values) -> (scalar, info)``; descend on its gradient with respect to the encoder.
        update: ``(state, info) -> state`` after each descent step: dual ascent, barrier growth.
        eigenvalues: ``(state, info) -> (dim,)`` the objective's own reading of the eigenvalues of the operator it is
            trained with; each factory's docstring states the factor.

    Example:
        >>> import jax
        >>> from lapwing.objectives import Values, allo
        >>> objective = allo()
        >>> state = objective.init(3)
        >>> batch = jax.random.normal(jax.random.key(0), (8, 3))
        >>> loss, info = objective.loss(state, Values(jax.numpy.ones(3), batch, batch))
        >>> state = objective.update(state, info)
        >>> objective.eigenvalues(state, info).shape
        (3,)
    """

    init: Callable[[int], State]
    loss: Callable[[State, Values], tuple[jax.Array, Info]]
    update: Callable[[State, Info], State]
    eigenvalues: Callable[[State, Info], jax.Array]


def strong_float(value: float) -> Float[Array, ""]:
    """A scalar of JAX's default float type, never weakly typed: a weak one would make a scanned step compile twice."""
    return jnp.array(value, dtype=jnp.result_type(float))
