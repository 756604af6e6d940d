# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""What the constrained objectives share: errors of ``<u_j, u_k> = delta_jk``, Rayleigh quotients, the barrier b."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.checks import as_real, shown
from lapwing.errors import ArgumentError
from lapwing.objectives.objective import Evaluation, Values, strong_float

COLLAPSED = 1e-6
"""A squared norm that float32 cannot tell from zero after the subtraction of 1 in the errors."""


class Constraints(NamedTuple):
    """The aux of constrained objectives: energies, and the errors of orthonormality (paper, Eq. 1).

    Attributes:
        energies: (d,) ``<u_i, L u_i>``.
        errors_first: (d, d) ``<u_j, u_k> - delta_jk`` on the first batch.
        errors_second: (d, d) the same on the second batch; their entrywise product estimates the square without bias.
        barrier: the ``b`` that was used.
    """

    energies: Float[Array, " d"]
    errors_first: Float[Array, "d d"]
    errors_second: Float[Array, "d d"]
    barrier: Float[Array, ""]

    @classmethod
    def of(cls, values: Values, barrier: Float[Array, ""], stop_gradient: bool) -> "Constraints":
        """Measure the constraints.

        Args:
            values: the input of the objective.
            barrier: the coefficient ``b`` now.
            stop_gradient: hold the second factor of each product constant (paper, Eq. 5).

        Returns:
            Energies and errors, differentiable.
        """
        first, second = values.inner_products(stop_gradient)
        identity = jnp.eye(first.shape[0], dtype=first.dtype)
        errors_first = first - identity
        return cls(values.energies(), errors_first, errors_first if second is first else second - identity, barrier)

    @property
    def errors(self) -> Float[Array, "d d"]:
        """(d, d) constraint errors, both batches averaged."""
        return (self.errors_first + self.errors_second) / 2

    @property
    def norms(self) -> Float[Array, " d"]:
        """(d,) squared norms ``<u_i, u_i>``, both batches averaged."""
        return 1 + jnp.diagonal(self.errors)

    @property
    def squares(self) -> Float[Array, "d d"]:
        """(d, d) unbiased estimates of the squared errors: products of the two batches' errors."""
        return self.errors_first * self.errors_second

    def evaluation(self, **terms: jax.Array) -> Evaluation:
        """This as the second value of an objective's ``loss``.

        Args:
            terms: scalars to log, such as the terms of the loss.

        Returns:
            Itself as aux; the terms, the barrier and the largest error as metrics.
        """
        return Evaluation(self, {**terms, "barrier": self.barrier, "error": jnp.max(jnp.abs(jnp.tril(self.errors)))})


def rayleigh_quotients(energies: Float[Array, " d"], norms: Float[Array, " d"]) -> Float[Array, " d"]:
    """Energies over squared norms, ``<u_i, L u_i> / <u_i, u_i>``: exact at any multiple of an eigenvector.

    The division matters for penalty methods: their components come out shorter than 1 (Corollary 1). A component that
    has collapsed to nothing has no quotient and gives 0.

    Args:
        energies: (d,) ``<u_i, L u_i>``.
        norms: (d,) ``<u_i, u_i>``.

    Returns:
        (d,) quotients.
    """
    return jnp.where(norms > COLLAPSED, energies / jnp.maximum(norms, COLLAPSED), 0)


class BarrierState(NamedTuple):
    """The coefficient ``b`` now, and the running mean of the squared errors that it grows with."""

    coefficient: Float[Array, ""]
    squared_error: Float[Array, ""]


@dataclass(frozen=True)
class Barrier:
    """Growth of the barrier by gradient ascent on ``b`` (paper, "Barrier Dynamics").

    Each step ``m <- (1 - average_rate) m + average_rate q`` and ``b <- min(b + rate max(m, 0), maximum)``; ``q`` is the
    mean over all d x d entries of the lower-triangular squared errors (products of the two batches' errors).

    Note:
        The paper ascends on the sum of squared errors; the mean is what its authors' experiments use, and
        products of two batches' errors may be negative, which never shrinks the barrier.

    Example:
        >>> Barrier(start=2.0, rate=0.01).init().coefficient
        Array(2., dtype=float32)
    """

    start: float
    rate: float = 0.0
    average_rate: float = 0.1
    maximum: float = 1e4

    def __post_init__(self) -> None:
        """Refuse values that would make the penalty a reward or the growth a decay."""
        require_positive("barrier", self.start)
        require_not_negative("barrier_rate", self.rate)
        require_positive("max_barrier", self.maximum)
        require_positive("error_average_rate", self.average_rate)
        if self.average_rate > 1:
            raise ArgumentError(f"error_average_rate must lie in (0, 1], got {self.average_rate}; the paper's is 0.1")
        if self.start > self.maximum:
            raise ArgumentError(f"barrier {self.start} starts above max_barrier {self.maximum}; raise max_barrier")

    def init(self) -> BarrierState:
        """The coefficient at its start and no errors seen.

        Returns:
            Two scalars.
        """
        return BarrierState(strong_float(self.start), strong_float(0.0))

    def grow(self, state: BarrierState, aux: Constraints) -> BarrierState:
        """One step of growth; ``b`` never decreases and never exceeds its maximum.

        Args:
            state: coefficient and running mean.
            aux: the errors to grow with.

        Returns:
            The next state.
        """
        squared = jnp.mean(jnp.tril(aux.squares))
        average = (1 - self.average_rate) * state.squared_error + self.average_rate * squared
        grown = jnp.minimum(state.coefficient + self.rate * jnp.maximum(average, 0), self.maximum)
        dtype = state.coefficient.dtype
        return BarrierState(grown.astype(dtype), average.astype(dtype))

    def stopped(self, state: BarrierState) -> jax.Array:
        """Whether ``b`` has grown to its maximum.

        Args:
            state: coefficient and running mean.

        Returns:
            A scalar boolean.
        """
        top = self.maximum * (1 - 1e-6)
        return (state.coefficient >= top) & (self.start < top)


def require_positive(name: str, value: float) -> None:
    """Refuse a hyper-parameter that is not a positive, finite number.

    Args:
        name: of the hyper-parameter, for the message.
        value: what was given.
    """
    number = as_real(value)
    if number is None or not (math.isfinite(number) and number > 0):
        raise ArgumentError(f"{name} must be positive and finite, got {shown(value)}")


def require_not_negative(name: str, value: float) -> None:
    """Refuse a rate that is negative or not finite.

    Args:
        name: of the rate, for the message.
        value: what was given.
    """
    number = as_real(value)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise ArgumentError(f"{name} must be zero or more and finite, got {shown(value)}; zero switches it off")
