"""Sampled pairs as in the paper: geometric gaps inside one episode, and two uniform batches for the constraints."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lapwing.data.trajectories import Trajectories
from lapwing.objectives.base import Values
from lapwing.operators.lags import GapDistribution, fitting_starts, gaps_inside_episodes, states_by_room
from lapwing.training.batches import Batches, Encode


class SampledData(NamedTuple):
    """The data set on the device.

    Attributes:
        observations: the table of distinct observations, or one row per state.
        rows: (states,) row of ``observations`` for each state.
        starts: (transitions,) position of every state that has a successor, those with most steps left first.
        left: (states,) steps left in the state's episode.
        logs: (mixture,) logarithms of the discounts.
        cumulative: (mixture,) cumulated shares of the discounts.
        fitting: (longest,) how many of the starts have at least k steps left.
    """

    observations: jax.Array
    rows: jax.Array
    starts: jax.Array
    left: jax.Array
    logs: jax.Array
    cumulative: jax.Array
    fitting: jax.Array


class Draw(NamedTuple):
    """Rows of a step: first and second states of the pairs, two constraint batches."""

    start: jax.Array
    end: jax.Array
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
        unbiased: keep the gaps' geometric shape, instead of cutting them at episodes' ends.
        once: encode each distinct observation once per step and pick from the result, rather than encoding all
            4 x batch_size rows; None does so where there are fewer distinct ones.
    """
    lengths = np.asarray(data.lengths)
    left, order = states_by_room(np.asarray(data.offsets))
    starts = order[: data.num_transitions].astype(np.int32)
    del order
    distinct = len(data.observations) if data.has_table else data.num_states
    rows = np.arange(data.num_states, dtype=np.int32) if data.ids is None else np.asarray(data.ids, dtype=np.int32)
    arrays = SampledData(
        observations=jnp.asarray(np.asarray(data.observations)),
        rows=jnp.asarray(rows),
        starts=jnp.asarray(starts),
        left=jnp.asarray(left),
        logs=jnp.asarray(np.log(gaps.discounts), dtype=jnp.float32),
        cumulative=jnp.asarray(np.cumsum(gaps.shares), dtype=jnp.float32),
        fitting=jnp.asarray(fitting_starts(lengths), dtype=jnp.int32),
    )
    encode_once = distinct <= 4 * batch_size if once is None else once

    def draw(key: jax.Array, arrays: SampledData) -> Draw:
        return draw_pairs(key, arrays, batch_size, unbiased)

    values = _values_encoded_once if encode_once else _values_encoded_by_row
    encoded = distinct if encode_once else 4 * batch_size
    return Batches(arrays, draw, values, gaps_inside_episodes(gaps, lengths, unbiased), encoded, "sampled")


def draw_pairs(key: jax.Array, data: SampledData, count: int, unbiased: bool) -> Draw:
    """Rows of ``count`` pairs and of two constraint batches.

    Truncated gaps are drawn to fit their start, unbiased ones before it: the start is then uniform among those where
    the gap fits, so that no gap is favoured and no pair is lost.
    """
    # All random numbers of a step in one call: on small worlds it is the number of calls that costs time.
    bits = jax.random.bits(key, (5, count))
    chosen = (_unit_interval(bits[0])[:, None] >= data.cumulative[:-1]).sum(axis=1)
    log_discount, uniform = data.logs[chosen], _unit_interval(bits[1])
    if unbiased:
        gap = _geometric_gap(uniform, log_discount, data.fitting.shape[0])
        start = data.starts[_below(bits[2], data.fitting[gap - 1])]
    else:
        start = data.starts[_below(bits[2], data.starts.shape[0])]
        gap = _geometric_gap(uniform, log_discount, data.left[start])
    first, second = (data.rows[_below(row, data.rows.shape[0])] for row in bits[3:])
    return Draw(data.rows[start], data.rows[start + gap], first, second)


def _unit_interval(bits: jax.Array) -> jax.Array:
    """Numbers in [0, 1) of 24 random bits each, all that float32 holds."""
    return (bits >> 8).astype(jnp.float32) * (1.0 / (1 << 24))


def _below(bits: jax.Array, count: jax.Array | int) -> jax.Array:
    """Whole numbers below ``count``; of 32 random bits, so the first ones are favoured by less than count / 2^32."""
    return (bits % jnp.asarray(count, dtype=jnp.uint32)).astype(jnp.int32)


def _geometric_gap(uniform: jax.Array, log_discount: jax.Array, longest: jax.Array | int) -> jax.Array:
    """The inverse of the geometric distribution function, renormalised to 1 .. longest."""
    gap = 1 + jnp.floor(jnp.log1p(uniform * jnp.expm1(longest * log_discount)) / log_discount).astype(jnp.int32)
    return jnp.clip(gap, 1, longest)


def _values_encoded_once(encode: Encode, data: SampledData, draw: Draw) -> Values:
    return _values(encode(data.observations)[jnp.concatenate(draw)])


def _values_encoded_by_row(encode: Encode, data: SampledData, draw: Draw) -> Values:
    return _values(encode(data.observations[jnp.concatenate(draw)]))


def _values(encoded: jax.Array) -> Values:
    start, end, first, second = jnp.split(encoded, 4)
    return Values(start, end, first, second)
