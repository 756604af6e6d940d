"""Sampled pairs as in the paper: geometric gaps inside one episode, and two uniform batches for the constraints."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapwing.batches.base import Batches, Encode
from lapwing.batches.gaps import GapDistribution, fitting_shares, gaps_inside_episodes
from lapwing.objectives.base import Values
from lapwing.objectives.terms import graph_drawing_energy
from lapwing.trajectories.container import Trajectories


class SampledData(NamedTuple):
    """The data set on the device.

    Attributes:
        observations: the table of distinct observations, or one row per state.
        rows: (states,) row of ``observations`` for each state.
        starts: (transitions,) position of every state that has a successor.
        left: (states,) steps left in the state's episode.
        logs: (mixture,) logarithms of the discounts.
        cumulative: (mixture,) cumulated shares of the discounts.
        correction: (longest,) inverse share of starts that have k steps left; empty where gaps are truncated.
    """

    observations: jax.Array
    rows: jax.Array
    starts: jax.Array
    left: jax.Array
    logs: jax.Array
    cumulative: jax.Array
    correction: jax.Array


class Draw(NamedTuple):
    """Rows of a step: first and second states of the pairs, weights of the pairs (or None), two constraint batches."""

    start: jax.Array
    end: jax.Array
    weights: jax.Array | None
    first: jax.Array
    second: jax.Array


def sampled_batches(
    data: Trajectories, gaps: GapDistribution, batch_size: int = 1024, unbiased: bool = False, once: bool | None = None
) -> Batches:
    """Batches drawn at random from experience (paper, Section 5), a step's randomness a function of its key.

    Args:
        data: the experience.
        gaps: endless distribution of gaps; episodes cut it.
        batch_size: pairs per step, and rows of each constraint batch.
        unbiased: weight pairs so that gaps keep their geometric shape, instead of cutting them at episodes' ends.
        once: encode each distinct observation once per step and pick from the result, rather than encoding all
            4 x batch_size rows; None does so where there are fewer distinct ones.
    """
    lengths = np.asarray(data.lengths)
    positions = np.concatenate(list(data.pair_positions(1)))
    ends = np.repeat(np.asarray(data.offsets[1:]), np.diff(data.offsets))
    distinct = len(data.observations) if data.has_table else data.num_states
    rows = np.arange(data.num_states, dtype=np.int32) if data.ids is None else np.asarray(data.ids, dtype=np.int32)
    correction = 1.0 / fitting_shares(lengths) if unbiased else np.zeros(0)
    arrays = SampledData(
        observations=jnp.asarray(np.asarray(data.observations)),
        rows=jnp.asarray(rows),
        starts=jnp.asarray(positions, dtype=jnp.int32),
        left=jnp.asarray(ends - 1 - np.arange(data.num_states), dtype=jnp.int32),
        logs=jnp.asarray(np.log(gaps.discounts), dtype=jnp.float32),
        cumulative=jnp.asarray(np.cumsum(gaps.shares), dtype=jnp.float32),
        correction=jnp.asarray(correction, dtype=jnp.float32),
    )
    encode_once = distinct <= 4 * batch_size if once is None else once

    def draw(key: jax.Array, arrays: SampledData) -> Draw:
        return draw_pairs(key, arrays, batch_size, unbiased)

    values = _values_encoded_once if encode_once else _values_encoded_by_row
    encoded = distinct if encode_once else 4 * batch_size
    return Batches(arrays, draw, values, gaps_inside_episodes(gaps, lengths, unbiased), encoded, "sampled")


def draw_pairs(key: jax.Array, data: SampledData, count: int, unbiased: bool) -> Draw:
    """Rows of ``count`` pairs and of two constraint batches."""
    key_start, key_gap, key_mixture, key_constraints = jax.random.split(key, 4)
    start = data.starts[jax.random.randint(key_start, (count,), 0, data.starts.shape[0])]
    left = data.left[start]
    chosen = jnp.searchsorted(data.cumulative[:-1], jax.random.uniform(key_mixture, (count,)), side="right")
    log_discount = data.logs[chosen]
    longest = data.correction.shape[0] if unbiased else left
    # Inverse of the geometric distribution function, renormalised to 1..longest.
    uniform = jax.random.uniform(key_gap, (count,))
    gap = 1 + jnp.floor(jnp.log1p(uniform * jnp.expm1(longest * log_discount)) / log_discount).astype(jnp.int32)
    gap = jnp.clip(gap, 1, longest)
    weights = None
    if unbiased:
        # Only pairs that fit count, each for all that would have fitted elsewhere.
        weights = jnp.where(gap <= left, data.correction[gap - 1], 0.0) / count
        gap = jnp.minimum(gap, left)
    both = jax.random.randint(key_constraints, (2, count), 0, data.rows.shape[0])
    return Draw(data.rows[start], data.rows[start + gap], weights, data.rows[both[0]], data.rows[both[1]])


def _values_encoded_once(encode: Encode, data: SampledData, draw: Draw) -> Values:
    table = encode(data.observations)
    return _assemble(table[draw.start], table[draw.end], draw.weights, table[draw.first], table[draw.second])


def _values_encoded_by_row(encode: Encode, data: SampledData, draw: Draw) -> Values:
    rows = jnp.concatenate([draw.start, draw.end, draw.first, draw.second])
    start, end, first, second = jnp.split(encode(data.observations[rows]), 4)
    return _assemble(start, end, draw.weights, first, second)


def _assemble(
    start: jax.Array, end: jax.Array, weights: jax.Array | None, first: jax.Array, second: jax.Array
) -> Values:
    return Values(graph_drawing_energy(start, end, weights), first, second)
