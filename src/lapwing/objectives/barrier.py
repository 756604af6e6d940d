# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The barrier coefficient b: fixed, or grown with the squared errors as the paper's "Barrier Dynamics" describes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.checks import as_real, shown
from lapwing.errors import LapwingError
from lapwing.objectives.base import Info, strong_float


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
        if not 0 < self.average_rate <= 1:
            raise LapwingError(f"error_average_rate must lie in (0, 1], got {self.average_rate}; the paper's is 0.1")
        if self.start > self.maximum:
            raise LapwingError(f"barrier {self.start} starts above max_barrier {self.maximum}; raise max_barrier")

    def init(self) -> BarrierState:
        """The coefficient at its start and no errors seen."""
        return BarrierState(strong_float(self.start), strong_float(0.0))

    def grow(self, state: BarrierState, info: Info) -> BarrierState:
        """One step of growth; ``b`` never decreases and never exceeds its maximum."""
        squared = jnp.mean(jnp.tril(info.errors_first * info.errors_second))
        average = (1 - self.average_rate) * state.squared_error + self.average_rate * squared
        grown = jnp.minimum(state.coefficient + self.rate * jnp.maximum(average, 0), self.maximum)
        dtype = state.coefficient.dtype
        return BarrierState(grown.astype(dtype), average.astype(dtype))


def require_positive(name: str, value: float) -> None:
    """Refuse a hyper-parameter that is not a positive, finite number."""
    number = as_real(value)
    if number is None or not (math.isfinite(number) and number > 0):
        raise LapwingError(f"{name} must be positive and finite, got {shown(value)}")


def require_not_negative(name: str, value: float) -> None:
    """Refuse a rate that is negative or not finite."""
    number = as_real(value)
    if number is None or not (math.isfinite(number) and number >= 0):
        raise LapwingError(f"{name} must be zero or more and finite, got {shown(value)}; zero switches it off")
