"""Batches of training, sampled pairs or an exact table, each giving Values; and the sources they are drawn from."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse as jax_sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from lapwing.data.trajectories import Trajectories
from lapwing.errors import DataError
from lapwing.objectives import Values
from lapwing.operators.lags import LagDistribution, states_by_steps_left, states_with_steps_left
from lapwing.operators.operator import Operator
from lapwing.storage.reading import forget_pages

DENSE_STATES = 4000
MAX_TERMS = 512
ROWS_READ = 1 << 12
TAIL = 1e-3
LARGEST_DRIFT = 1e-6

Encode = Callable[[jax.Array], jax.Array]


class Batch(Protocol):
    """The input of a training step: a pytree of arrays."""

    def values(self, encode: Encode) -> Values:
        """The values of an encoder's components on this batch, differentiable.

        Args:
            encode: from (n, ...) observations to (n, d) components.

        Returns:
            What an objective takes.
        """
        ...


class Source(Protocol):
    """Where ``learn`` draws batches from: a pytree of arrays that stay on the device."""

    kind: ClassVar[str]

    def draw(self, key: jax.Array) -> Any:
        """The random part of one step.

        Args:
            key: of the step.

        Returns:
            A pytree of arrays; empty for exact expectations.
        """
        ...

    def batch(self, draw: Any) -> Batch:
        """The batch that a draw describes.

        Args:
            draw: from :meth:`draw`.

        Returns:
            The batch.
        """
        ...


class Pairs(eqx.Module):
    """Observations at both ends of sampled pairs, and on two constraint batches.

    Attributes:
        start: (n, ...) observations of states ``s``.
        end: (n, ...) observations some steps later, ``s'``.
        first: (n1, ...) observations drawn independently from the data.
        second: (n2, ...) the same, independent of ``first``.
    """

    start: jax.Array
    end: jax.Array
    first: jax.Array
    second: jax.Array

    def values(self, encode: Encode) -> Values:
        """Values of all rows, encoded in one call.

        Args:
            encode: from (n, ...) observations to (n, d) components.

        Returns:
            Sampled values.
        """
        parts = (self.start, self.end, self.first, self.second)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        here, there, first, second = jnp.split(encode(jnp.concatenate(parts)), ends)
        return Values(here, there, first, second)


class Rows(NamedTuple):
    """Rows of a table of observations: the parts of :class:`Pairs`; without the last two, halves of the first serve."""

    start: jax.Array
    end: jax.Array
    first: jax.Array | None = None
    second: jax.Array | None = None


class TablePairs(eqx.Module):
    """Pairs given as rows of a table of observations.

    Attributes:
        observations: (rows, ...) the table.
        rows: which of them.
        encode_table: encode the whole table and pick from the result, rather than encode the rows picked.
    """

    observations: jax.Array
    rows: Rows
    encode_table: bool = eqx.field(static=True)

    def values(self, encode: Encode) -> Values:
        """Values of all rows.

        Args:
            encode: from (n, ...) observations to (n, d) components.

        Returns:
            Sampled values.
        """
        parts = [part for part in self.rows if part is not None]
        picked = jnp.concatenate(parts)
        encoded = encode(self.observations)[picked] if self.encode_table else encode(self.observations[picked])
        if len(parts) == 4:
            here, there, first, second = jnp.split(encoded, 4)
            return Values(here, there, first, second)
        here, there = jnp.split(encoded, 2)
        # Pairs are independent of each other, so one half of them is of the other.
        half = len(here) // 2
        first, second = (jnp.concatenate([here[part], there[part]]) for part in (np.s_[:half], np.s_[half:]))
        return Values(here, there, first, second)


class ExactTable(eqx.Module):
    """All states at once: expectations without sampling, every observation encoded once per step.

    Attributes:
        observations: (n, ...) of all states.
        rho: (n,) their stationary weights.
        operator: (n, n) ``f(P)``, dense; or, with ``lag_weights``, ``P`` itself, sparse.
        lag_weights: (K,) probabilities of the lags 1 to K, of which ``f(P)`` is made; None where it is given whole.
    """

    kind: ClassVar[str] = "exact"
    observations: jax.Array
    rho: jax.Array
    operator: Any
    lag_weights: jax.Array | None = None

    def values(self, encode: Encode) -> Values:
        """``u`` and ``f(P) u`` at all states.

        Args:
            encode: from (n, ...) observations to (n, d) components.

        Returns:
            Exact values.
        """
        u = encode(self.observations)
        return Values.of_table(u, self._moved(u), self.rho)

    def _moved(self, u: jax.Array) -> jax.Array:
        if self.lag_weights is None:
            moved: jax.Array = self.operator @ u
            return moved

        def horner(total: jax.Array, weight: jax.Array) -> tuple[jax.Array, None]:
            return self.operator @ (total + weight * u), None

        return jax.lax.scan(horner, jnp.zeros_like(u), self.lag_weights[::-1])[0]

    def draw(self, key: jax.Array) -> tuple[()]:
        """Nothing is random.

        Args:
            key: not used.

        Returns:
            An empty pytree.
        """
        return ()

    def batch(self, draw: tuple[()]) -> "ExactTable":
        """The table itself.

        Args:
            draw: empty.

        Returns:
            The same table at every step.
        """
        return self


def exact_table(
    operator: Operator, lags: LagDistribution, matrix: NDArray[np.float64] | None = None
) -> tuple[ExactTable, LagDistribution]:
    """All states of an operator; f(P) dense for small tables, sparse powers for large ones.

    For a large table the lags are cut where their tail falls below a thousandth (or at 512 steps) and renormalised.

    Args:
        operator: the one-step operator.
        lags: with an infinite horizon.
        matrix: what :func:`dense_operator` gives, where it is known already.

    Returns:
        The table, and the lags that it really has.
    """
    rho = jnp.asarray(operator.rho, dtype=jnp.float32)
    observations = jnp.asarray(operator.observations)
    if operator.num_states <= DENSE_STATES:
        known = dense_operator(operator, lags) if matrix is None else matrix
        return ExactTable(observations, rho, jnp.asarray(known, dtype=jnp.float32)), lags
    cut, symmetric = sparse_operator(operator, lags)
    powers = jax_sparse.BCOO.from_scipy_sparse(symmetric.astype(np.float32))
    return ExactTable(observations, rho, powers, jnp.asarray(cut.weights, dtype=jnp.float32)), cut


def dense_operator(operator: Operator, lags: LagDistribution) -> NDArray[np.float64]:
    """f of the symmetrised P, acting on functions: ``D^-1/2 f(S) D^1/2`` with S symmetric.

    Args:
        operator: the one-step operator.
        lags: which f.

    Returns:
        (n, n) matrix.
    """
    _require_stationary(operator)
    root = np.sqrt(operator.rho)
    return lags.dense(operator.symmetrised().toarray()) * root[None, :] / root[:, None]


def sparse_operator(operator: Operator, lags: LagDistribution) -> tuple[LagDistribution, csr_array]:
    """The lags cut to finitely many, and (P + P*)/2 in the rho inner product, sparse, whose powers they weigh.

    Args:
        operator: the one-step operator.
        lags: with an infinite horizon.

    Returns:
        Lags with weights, and an (n, n) matrix.
    """
    _require_stationary(operator)
    root = np.sqrt(operator.rho)
    symmetric = csr_array(diags_array(1.0 / root) @ operator.symmetrised() @ diags_array(root))
    return lags.cut(TAIL, MAX_TERMS), symmetric


def _require_stationary(operator: Operator) -> None:
    """Under other weights (P + P*)/2 has an eigenvalue above 1, whose powers grow, and f(P) means nothing."""
    drift = float(np.abs(operator.matrix.T @ operator.rho - operator.rho).sum())
    if drift > LARGEST_DRIFT:
        raise DataError(
            f"the weights rho are not stationary: a step moves {drift:.1e} of them. Learning looks many steps ahead, "
            "so it needs the stationary ones; leave rho out, or use solve(), which looks one step ahead"
        )


class PairSampler(eqx.Module):
    """Pairs drawn at random from experience (paper, Section 5), a step's randomness a function of its key.

    Attributes:
        observations: the table of distinct observations, or one row per state.
        rows: (states,) row of ``observations`` for each state.
        starts: (transitions,) position of every state that has a successor, those with most steps left first.
        left: (states,) steps left in the state's episode.
        logs: (mixture,) logarithms of the discounts.
        cumulative: (mixture,) cumulated shares of the discounts.
        counts: (longest,) how many of the starts have at least k steps left.
        batch_size: pairs per step, and rows of each constraint batch.
        unbiased: keep the lags' geometric shape, instead of cutting them at episodes' ends.
        encode_table: encode each distinct observation once per step and pick from the result.
        separate: draw the constraint batches apart from the pairs, as the paper does; else halves of the pairs serve.
    """

    kind: ClassVar[str] = "sampled"
    observations: jax.Array
    rows: jax.Array
    starts: jax.Array
    left: jax.Array
    logs: jax.Array
    cumulative: jax.Array
    counts: jax.Array
    batch_size: int = eqx.field(static=True)
    unbiased: bool = eqx.field(static=True)
    encode_table: bool = eqx.field(static=True)
    separate: bool = eqx.field(static=True)

    def draw(self, key: jax.Array) -> Rows:
        """Rows of the pairs and, where they are separate, of two constraint batches.

        Truncated lags are drawn to fit their start, unbiased ones before it: the start is then uniform among those
        where the lag fits, so that no lag is favoured and no pair is lost.

        Args:
            key: of the step.

        Returns:
            Two or four arrays of ``batch_size`` rows.
        """
        # All random numbers of a step in one call: on small worlds it is the number of calls that costs time.
        bits = jax.random.bits(key, (5 if self.separate else 3, self.batch_size))
        chosen = (_unit_interval(bits[0])[:, None] >= self.cumulative[:-1]).sum(axis=1)
        log_discount, uniform = self.logs[chosen], _unit_interval(bits[1])
        if self.unbiased:
            lag = _geometric_lag(uniform, log_discount, self.counts.shape[0])
            start = self.starts[_below(bits[2], self.counts[lag - 1])]
        else:
            start = self.starts[_below(bits[2], self.starts.shape[0])]
            lag = _geometric_lag(uniform, log_discount, self.left[start])
        constraints = [self.rows[_below(row, self.rows.shape[0])] for row in bits[3:]]
        return Rows(self.rows[start], self.rows[start + lag], *constraints)

    def batch(self, draw: Rows) -> TablePairs:
        """The pairs of these rows.

        Args:
            draw: from :meth:`draw`.

        Returns:
            A batch that shares the table of observations.
        """
        return TablePairs(self.observations, draw, self.encode_table)


def pair_sampler(
    data: Trajectories,
    lags: LagDistribution,
    batch_size: int = 1024,
    unbiased: bool = False,
    encode_table: bool | None = None,
    separate: bool = True,
    held: bool = True,
) -> PairSampler:
    """A sampler of pairs from experience (paper, Section 5).

    Args:
        data: the experience.
        lags: with an infinite horizon; episodes cut it, see :func:`lapwing.operators.lags.lags_inside_episodes`.
        batch_size: pairs per step, and rows of each constraint batch.
        unbiased: keep the lags' geometric shape, instead of cutting them at episodes' ends.
        encode_table: encode each distinct observation once per step, rather than all 4 x batch_size rows; None does
            so where there are fewer distinct ones.
        separate: draw two constraint batches apart from the pairs; else each is one half of the pairs, both ends, and
            half as many rows are encoded. A single pair has no halves.
        held: hold the observations; without them only rows can be drawn.

    Returns:
        The sampler.
    """
    left, order = states_by_steps_left(np.asarray(data.offsets))
    starts = order[: data.num_transitions].astype(np.int32)
    del order
    distinct = len(data.observations) if data.has_table else data.num_states
    rows = np.arange(data.num_states, dtype=np.int32) if data.ids is None else np.asarray(data.ids, dtype=np.int32)
    observations = jnp.asarray(np.asarray(data.observations if held else data.observations[:0]))
    forget_pages(data.observations)
    return PairSampler(
        observations=observations,
        rows=jnp.asarray(rows),
        starts=jnp.asarray(starts),
        left=jnp.asarray(left),
        logs=jnp.asarray(np.log(lags.discounts), dtype=jnp.float32),
        cumulative=jnp.asarray(np.cumsum(lags.shares), dtype=jnp.float32),
        counts=jnp.asarray(states_with_steps_left(np.asarray(data.lengths)), dtype=jnp.int32),
        batch_size=batch_size,
        unbiased=unbiased,
        encode_table=distinct <= 4 * batch_size if encode_table is None else encode_table,
        separate=separate or batch_size < 2,
    )


class PairPool(eqx.Module):
    """Pairs on the device, drawn beforehand from experience that is too large for it.

    Attributes:
        observations: (blocks * size, ...) starts of the pairs, then their ends, then rows of two constraint batches
            where those are separate; or distinct ones, which are then encoded once per step.
        size: rows of each block.
        batch_size: pairs per step, and rows of each constraint batch.
        rows: (blocks * size,) row of the distinct observations for each of those; None where all are given.
    """

    kind: ClassVar[str] = "sampled"
    observations: jax.Array
    size: int = eqx.field(static=True)
    batch_size: int = eqx.field(static=True)
    rows: jax.Array | None = None

    def draw(self, key: jax.Array) -> Rows:
        """Rows of some of the pairs.

        Args:
            key: of the step.

        Returns:
            Two or four arrays of ``batch_size`` rows.
        """
        blocks = len(self.observations if self.rows is None else self.rows) // self.size
        drawn = _below(jax.random.bits(key, (max(blocks - 1, 1), self.batch_size)), self.size)
        constraints = [drawn[number - 1] + number * self.size for number in range(2, blocks)]
        places = Rows(drawn[0], drawn[0] + self.size, *constraints)
        rows = self.rows
        return places if rows is None else jax.tree.map(lambda part: rows[part], places)

    def batch(self, draw: Rows) -> TablePairs:
        """The pairs of these rows.

        Args:
            draw: from :meth:`draw`.

        Returns:
            A batch that shares the observations.
        """
        return TablePairs(self.observations, draw, encode_table=self.rows is not None)


class Streamed(NamedTuple):
    """Batches from experience that is larger than what may be held: each chunk of steps has another part of it.

    Attributes:
        kind: of its batches.
        part: from the number of a chunk's first step to a source, of the same shapes for every chunk.
    """

    kind: str
    part: Callable[[int], Source]


def streamed_pairs(sampler: PairSampler, observations: NDArray[Any], held_bytes: int, seed: int = 0) -> Streamed:
    """Pairs as a sampler draws them, of which as many are held as fit.

    Args:
        sampler: without observations, which stay where they are.
        observations: (states, ...) in memory or on disk.
        held_bytes: what the observations of one part may take.
        seed: of what each part holds; a part is a function of its number and of this.

    Returns:
        The source.
    """
    blocks = 4 if sampler.separate else 2
    size = max(sampler.batch_size, held_bytes // max(blocks * observations[:1].nbytes, 1))
    drawing = replace(sampler, batch_size=size)

    def part(step: int) -> PairPool:
        rows = drawing.draw(jax.random.fold_in(jax.random.key(seed), step))
        picked = np.concatenate([np.asarray(block) for block in rows if block is not None])
        return PairPool(jnp.asarray(rows_of(observations, picked)), size, sampler.batch_size)

    return Streamed(PairPool.kind, part)


def rows_of(observations: NDArray[Any], rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
    """Rows in any order, read in the order in which they lie.

    Args:
        observations: (n, ...) in memory or on disk.
        rows: (k,) which.

    Returns:
        (k, ...) a copy.
    """
    distinct, places = np.unique(rows, return_inverse=True)
    read = np.empty((len(distinct), *observations.shape[1:]), dtype=observations.dtype)
    for begin in range(0, len(distinct), ROWS_READ):
        read[begin : begin + ROWS_READ] = observations[distinct[begin : begin + ROWS_READ]]
        forget_pages(observations)
    return read[places]


def _unit_interval(bits: jax.Array) -> jax.Array:
    """Numbers in [0, 1) of 24 random bits each, all that float32 holds."""
    return (bits >> 8).astype(jnp.float32) * (1.0 / (1 << 24))


def _below(bits: jax.Array, count: jax.Array | int) -> jax.Array:
    """Whole numbers below ``count``; of 32 random bits, so the first ones are favoured by less than count / 2^32."""
    return (bits % jnp.asarray(count, dtype=jnp.uint32)).astype(jnp.int32)


def _geometric_lag(uniform: jax.Array, log_discount: jax.Array, longest: jax.Array | int) -> jax.Array:
    """The inverse of the geometric distribution function, renormalised to 1 .. longest."""
    lag = 1 + jnp.floor(jnp.log1p(uniform * jnp.expm1(longest * log_discount)) / log_discount).astype(jnp.int32)
    return jnp.clip(lag, 1, longest)
