"""The exact expectation over a finite data set: no sampling, every observation encoded once per step."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse as jax_sparse
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from lapwing.errors import LapwingError
from lapwing.objectives.base import Values
from lapwing.operators.lags import GapDistribution
from lapwing.operators.operator import Operator
from lapwing.training.batches import Batches, Encode

DENSE_STATES = 4000
MAX_TERMS = 512
TAIL = 1e-3
LARGEST_DRIFT = 1e-6


class DenseData(NamedTuple):
    """The observations, their weights, and f(P) as a matrix."""

    observations: jax.Array
    rho: jax.Array
    operator: jax.Array


class SparseData(NamedTuple):
    """The observations, their weights, P as a sparse matrix, and the probabilities of the gaps."""

    observations: jax.Array
    rho: jax.Array
    operator: jax_sparse.BCOO
    gap_weights: jax.Array


def exact_batches(operator: Operator, gaps: GapDistribution, matrix: NDArray[np.float64] | None = None) -> Batches:
    """Energies and inner products over all states at once; f(P) dense for small tables, sparse powers for large ones.

    For a large table the gaps are cut where their tail falls below a thousandth (or at 512 steps) and renormalised;
    the distribution that results is the one reported.

    Args:
        operator: the one-step operator.
        gaps: endless distribution of gaps.
        matrix: what :func:`dense_operator` gives, where it is known already.
    """
    rho = jnp.asarray(operator.rho, dtype=jnp.float32)
    observations = jnp.asarray(operator.observations)
    if operator.num_states <= DENSE_STATES:
        known = dense_operator(operator, gaps) if matrix is None else matrix
        data: DenseData | SparseData = DenseData(observations, rho, jnp.asarray(known, dtype=jnp.float32))
        return Batches(data, _no_draw, _dense_values, gaps, operator.num_states, "exact")
    cut, symmetric = sparse_operator(operator, gaps)
    data = SparseData(
        observations,
        rho,
        jax_sparse.BCOO.from_scipy_sparse(symmetric.astype(np.float32)),
        jnp.asarray(cut.weights, dtype=jnp.float32),
    )
    return Batches(data, _no_draw, _sparse_values, cut, operator.num_states, "exact")


def dense_operator(operator: Operator, gaps: GapDistribution) -> NDArray[np.float64]:
    """f of the symmetrised P, acting on functions: ``D^-1/2 f(S) D^1/2`` with S symmetric."""
    _require_stationary(operator)
    root = np.sqrt(operator.rho)
    return gaps.dense(operator.symmetrised().toarray()) * root[None, :] / root[:, None]


def sparse_operator(operator: Operator, gaps: GapDistribution) -> tuple[GapDistribution, csr_array]:
    """The gaps cut to finitely many, and (P + P*)/2 in the rho inner product, sparse, whose powers they weigh."""
    _require_stationary(operator)
    root = np.sqrt(operator.rho)
    return _cut(gaps), csr_array(diags_array(1.0 / root) @ operator.symmetrised() @ diags_array(root))


def _require_stationary(operator: Operator) -> None:
    """Under other weights (P + P*)/2 has an eigenvalue above 1, whose powers grow, and f(P) means nothing."""
    drift = float(np.abs(operator.matrix.T @ operator.rho - operator.rho).sum())
    if drift > LARGEST_DRIFT:
        raise LapwingError(
            f"the weights rho are not stationary: a step moves {drift:.1e} of them. Learning looks many steps ahead, "
            "so it needs the stationary ones; leave rho out, or use solve(), which looks one step ahead"
        )


def _no_draw(key: jax.Array, data: DenseData | SparseData) -> tuple[()]:
    return ()


def _dense_values(encode: Encode, data: DenseData, draw: tuple[()]) -> Values:
    values = encode(data.observations)
    return Values.of_table(values, data.operator @ values, data.rho)


def _sparse_values(encode: Encode, data: SparseData, draw: tuple[()]) -> Values:
    values = encode(data.observations)

    def apply(u: jax.Array) -> jax.Array:
        def horner(total: jax.Array, weight: jax.Array) -> tuple[jax.Array, None]:
            return data.operator @ (total + weight * u), None

        return jax.lax.scan(horner, jnp.zeros_like(u), data.gap_weights[::-1])[0]

    return Values.of_table(values, apply(values), data.rho)


def _cut(gaps: GapDistribution) -> GapDistribution:
    if gaps.weights is not None:
        raise LapwingError("exact batches over a large table take endless gaps; leave the truncation to sampling")
    numbers = np.arange(1, MAX_TERMS + 1)
    shares = zip(gaps.discounts, gaps.shares, strict=True)
    weights = sum(share * (1.0 - g) * g ** (numbers - 1.0) for g, share in shares)
    enough = int(np.searchsorted(np.cumsum(weights), 1.0 - TAIL)) + 1
    kept = np.asarray(weights)[:enough]
    return GapDistribution(gaps.discounts, gaps.shares, kept / kept.sum())
