"""What the engine asks of a batch: arrays that stay on the device, a draw per step, and values for the objective."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from lapwing.objectives.base import Values
from lapwing.operators.lags import GapDistribution

Encode = Callable[[jax.Array], jax.Array]


class Batches(NamedTuple):
    """A source of batches as pure functions, so that the engine can scan, map over seeds, and shard.

    Attributes:
        data: a pytree of arrays that the functions below are given; it never changes.
        draw: ``(key, data) -> draw``, the random part of a step; empty for exact expectations.
        values: ``(encode, data, draw) -> Values``, the differentiable part.
        gaps: which f(P) the energies belong to.
        rows: how many observations are encoded per step.
        kind: ``exact`` or ``sampled``.
    """

    data: Any
    draw: Callable[[jax.Array, Any], Any]
    values: Callable[[Encode, Any, Any], Values]
    gaps: GapDistribution
    rows: int
    kind: str
