"""Fitting the network to eigenvectors that were solved, of a table or of cells of the representation.

Where observations are too many for exact batches, sampled gradients leave a network rough and its slow components
mixed. A solver has no such trouble, but needs states that repeat: distinct observations do, and so do cells of the
representation itself, by k-means in ``u_i / sqrt(lambda_i)``, where distances are those of diffusion.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from lapwing.data.cells import k_means_centres, nearest_cells
from lapwing.data.trajectories import Trajectories
from lapwing.objectives import Evaluation, Objective, Values
from lapwing.operators.eigensolver import smallest_eigenpairs
from lapwing.operators.lagged import lagged_moments
from lapwing.operators.operator import Operator
from lapwing.operators.ritz import ritz_from_forms
from lapwing.training.batches import Encode, Streamed, rows_of

# Visits that a cell needs for its counts to say more than noise, and as many cells as are still solved fast.
STATES_PER_CELL = 300
MOST_CELLS = 2000
# Rounds before the last only have to find better cells; the last one's targets are averages over partitions.
PARTITIONS = 4
# Lag of the counts while components are noisy: what an observation has in noise is gone after a step.
NOISY_LAG = 5
# One-step energies this much above the eigenvalues mean noise in the components.
NOISY_SHARE = 0.25
# Draws from the weights of a table, spread evenly.
TABLE_DRAWS = 1 << 22
ALIGNED_ROWS = 1 << 17


class Targets(NamedTuple):
    """What the network is fitted to: the sum over partitions of a table's rows.

    Attributes:
        labels: (partitions, n) the cell of each row of the observations, in each partition.
        tables: (partitions, cells, m) contributions of the cells; values are of mean square one.
        mu: (m,) one-step Rayleigh quotients of the values; of a table, the eigenvalues.
    """

    labels: NDArray[np.int32]
    tables: NDArray[np.float32]
    mu: NDArray[np.float64]

    @property
    def num_rows(self) -> int:
        """How many observations there are."""
        return self.labels.shape[1]

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The wanted values.

        Args:
            rows: (k,) of the observations.

        Returns:
            (k, m).
        """
        parts = [table[cells[rows]] for table, cells in zip(self.tables, self.labels, strict=True)]
        return np.sum(parts, axis=0, dtype=np.float64)


class FitBatch(eqx.Module):
    """Observations, and the values that the network should have there.

    Attributes:
        observations: (n, ...) a batch.
        targets: (n, d) wanted values.
    """

    observations: jax.Array
    targets: jax.Array

    def values(self, encode: Encode) -> Values:
        """The network's values as ``here``, the wanted ones as ``there``.

        Args:
            encode: from (n, ...) observations to (n, d) components.

        Returns:
            Values for :data:`REGRESSION`; the constraint batches are not used.
        """
        here = encode(self.observations)
        return Values(here, self.targets, here, here)


class FitSource(eqx.Module):
    """Batches of random states with their targets.

    Attributes:
        observations: (n, ...) the table of distinct observations, or one row per state.
        labels: (partitions, n) the cell of each row.
        tables: (partitions, cells, d) what each cell adds to the targets of its rows.
        rows: (draws,) rows of the observations as often as they are visited; None where every row is one visit.
        batch_size: states per step.
    """

    kind: ClassVar[str] = "fit"
    observations: jax.Array
    labels: jax.Array
    tables: jax.Array
    rows: jax.Array | None
    batch_size: int = eqx.field(static=True)

    def draw(self, key: jax.Array) -> jax.Array:
        """Rows of one batch.

        Args:
            key: of the step.

        Returns:
            (batch_size,) row numbers.
        """
        count = len(self.observations) if self.rows is None else len(self.rows)
        drawn = jax.random.randint(key, (self.batch_size,), 0, count)
        return drawn if self.rows is None else self.rows[drawn]

    def batch(self, draw: jax.Array) -> FitBatch:
        """The batch of these rows.

        Args:
            draw: from :meth:`draw`.

        Returns:
            Observations and targets.
        """
        parts = [self.tables[number][self.labels[number, draw]] for number in range(len(self.tables))]
        return FitBatch(self.observations[draw], sum(parts[1:], parts[0]))


def fit_source(
    observations: NDArray[Any] | jax.Array, targets: Targets, batch_size: int, rows: NDArray[np.int32] | None = None
) -> FitSource:
    """Batches of random states with their targets, on the device.

    Args:
        observations: (n, ...) as in :class:`FitSource`.
        targets: at these observations.
        batch_size: states per step.
        rows: (draws,) rows as often as they are visited; None where every row is one visit.

    Returns:
        The source.
    """
    visits = None if rows is None else jnp.asarray(rows)
    tables, labels = jnp.asarray(targets.tables), jnp.asarray(targets.labels)
    return FitSource(jnp.asarray(observations), labels, tables, visits, batch_size)


def streamed_fit(
    observations: NDArray[Any], targets: Targets, batch_size: int, held_bytes: int, seed: int = 0
) -> Streamed:
    """What :func:`fit_source` gives, of which as many states are held as fit.

    Args:
        observations: (n, ...) one row per visit, in memory or on disk.
        targets: at these observations.
        batch_size: states per step.
        held_bytes: what the observations of one part may take.
        seed: of what each part holds; a part is a function of its number and of this.

    Returns:
        The source.
    """
    size = min(len(observations), max(batch_size, held_bytes // max(observations[:1].nbytes, 1)))

    def part(step: int) -> FitSource:
        rows = np.random.default_rng([seed, step]).choice(len(observations), size, replace=False, shuffle=False)
        some = targets._replace(labels=targets.labels[:, rows])
        return fit_source(rows_of(observations, rows), some, batch_size)

    return Streamed(FitSource.kind, part)


def _squared_error(state: Any, values: Values) -> tuple[jax.Array, Evaluation]:
    squares = jnp.mean((values.here - values.there) ** 2, axis=0)
    return jnp.mean(squares), Evaluation((), {"misfit": jnp.sqrt(jnp.max(squares))})


REGRESSION = Objective(jnp.zeros, _squared_error, lambda state, aux: state, lambda state, aux: state)
"""Least squares towards the targets of a :class:`FitBatch`; the state are eigenvalues, which it only repeats. Its
metric ``misfit`` is the largest root mean square over components."""


def table_targets(operator: Operator, count: int) -> Targets:
    """The solved eigenvectors of an operator's states, without the constant one.

    Args:
        operator: exact, or counted.
        count: how many.

    Returns:
        Targets at the operator's own observations.
    """
    pairs = smallest_eigenpairs(operator.symmetrised(), count + 1, largest_mu=operator.largest_possible_mu())
    values = pairs.vectors / np.sqrt(operator.rho)[:, None]
    labels = np.arange(operator.num_states, dtype=np.int32)
    return Targets(labels[None], values[None, :, 1:].astype(np.float32), 1.0 - pairs.values[1:])


def table_draws(weights: NDArray[np.float64]) -> NDArray[np.int32]:
    """Row numbers as often as their weights ask for, spread evenly.

    Args:
        weights: (n,) positive, with sum 1.

    Returns:
        (draws,) row numbers.
    """
    count = max(TABLE_DRAWS, 4 * len(weights))
    middles = (np.arange(count) + 0.5) / count
    found: NDArray[np.int32] = np.searchsorted(np.cumsum(weights) / np.sum(weights), middles).astype(np.int32)
    return np.minimum(found, len(weights) - 1)


def with_constant(values: NDArray[Any]) -> NDArray[np.float64]:
    """Functions behind the constant one, the eigenfunction of the eigenvalue 0.

    Args:
        values: (n, d).

    Returns:
        (n, 1 + d) with a first column of 1.
    """
    return np.concatenate([np.ones((len(values), 1)), np.asarray(values, dtype=np.float64)], axis=1)


def cell_targets(
    values: NDArray[np.float32],
    data: Trajectories,
    dim: int,
    count: int,
    partitions: int,
    rng: np.random.Generator,
    longest_lag: int = NOISY_LAG,
) -> Targets:
    """Eigenvectors of counted transitions between cells of the representation, without the constant one.

    Args:
        values: (states, d) of the representation.
        data: trajectories without a table.
        dim: how many components to measure distances with.
        count: how many eigenvectors.
        partitions: how many to average.
        rng: source of randomness.
        longest_lag: at which transitions may be counted where the representation is noisy; 1 for directed dynamics,
            whose symmetrised steps are not those of longer lags.

    Returns:
        Targets at the data's observations.
    """
    points, lag = _diffusion_points(values, data, dim, longest_lag)
    size = min(MOST_CELLS, max(2 * count, data.num_states // STATES_PER_CELL))
    labels = [nearest_cells(points, k_means_centres(points, size, rng)) for _ in range(partitions)]
    tables = [_solved_cells(_flow(cells, data, lag), count) for cells in labels]
    return _averaged(labels, tables, data, lag, rng)


def of_neighbours(targets: Targets, data: Trajectories) -> Targets:
    """At each state the mean of what is wanted at the states after and before it in its episode.

    An eigenfunction's mean over the states one step away is its value but for a factor. Their noise is not that of the
    state itself, so a network fitted to it learns nothing of the noise in its own input; and steps of the targets from
    cell to cell are smoothed.

    Args:
        targets: at every state.
        data: the trajectories, without a table.

    Returns:
        Targets of twice as many partitions.
    """
    first, last = np.asarray(data.offsets[:-1]), np.asarray(data.offsets[1:]) - 1
    after, before = np.roll(targets.labels, -1, axis=1), np.roll(targets.labels, 1, axis=1)
    after[:, last], before[:, first] = before[:, last], after[:, first]
    halves = (np.concatenate([targets.tables] * 2) / 2.0).astype(np.float32)
    return Targets(np.concatenate([after, before]), halves, targets.mu)


def _diffusion_points(
    values: NDArray[np.float32], data: Trajectories, dim: int, longest_lag: int
) -> tuple[NDArray[np.float32], int]:
    """Components over the square roots of their eigenvalues, and the lag at which to count between cells of them."""
    longest = max(1, min(longest_lag, int(data.lengths.max()) // 2))
    mean = values.mean(axis=0, dtype=np.float64)
    moments = lagged_moments(lambda rows: values[rows] - mean, data, (1, longest))
    found = ritz_from_forms(moments.grams[1], moments.products[1], cut=1e-6)
    slow = np.maximum(1.0 - np.maximum(found.mu, 1e-9) ** (1.0 / longest), 1e-6)
    gram, moved = (found.rotation.T @ part[0] @ found.rotation for part in (moments.grams, moments.products))
    excess = 1.0 - np.diag(moved) / np.maximum(np.diag(gram), 1e-12) - slow
    used = min(dim - 1, len(slow)) or 1
    noisy = float(np.median(excess[:used] / slow[:used])) > NOISY_SHARE
    matrix = found.rotation[:, :used] / np.sqrt(slow[:used])
    return (values - mean.astype(np.float32)) @ matrix.astype(np.float32), longest if noisy else 1


def _flow(labels: NDArray[np.int32], data: Trajectories, lag: int) -> csr_array:
    """(cells, cells) symmetrised counts."""
    size = int(labels.max()) + 1
    total = csr_array((size, size), dtype=np.float64)
    for positions in data.pair_positions(lag):
        pairs = (labels[positions], labels[positions + lag])
        total = total + csr_array((np.ones(len(positions)), pairs), shape=(size, size))
    return csr_array((total + total.T) / 2.0)


def _solved_cells(flow: csr_array, count: int) -> NDArray[np.float64]:
    """(cells, count) eigenvectors of mean square one, 0 in cells without a count; 0 where cells are too few."""
    degree = np.asarray(flow.sum(axis=1)).ravel()
    seen = np.flatnonzero(degree > 0)
    rho = degree[seen] / degree.sum()
    scale = diags_array(1.0 / np.sqrt(degree[seen]))
    vectors = smallest_eigenpairs(csr_array(scale @ flow[seen][:, seen] @ scale), min(count + 1, len(seen))).vectors
    table = np.zeros((len(degree), count))
    table[seen, : vectors.shape[1] - 1] = vectors[:, 1:] / np.sqrt(rho)[:, None]
    return table


def _averaged(
    labels: Sequence[NDArray[np.int32]],
    tables: Sequence[NDArray[np.float64]],
    data: Trajectories,
    lag: int,
    rng: np.random.Generator,
) -> Targets:
    """The mean of the partitions' solutions, each turned towards the first; orthonormal."""
    size, count = max(map(len, tables)), tables[0].shape[1]
    padded = np.stack([np.pad(table, ((0, size - len(table)), (0, 0))) for table in tables]) / len(tables)
    rows = rng.integers(0, data.num_states, min(ALIGNED_ROWS, data.num_states))
    first = padded[0][labels[0][rows]]
    for number in range(1, len(padded)):
        left, _, right = np.linalg.svd(padded[number][labels[number][rows]].T @ first)
        padded[number] = padded[number] @ (left @ right)
    mean = Targets(np.stack(labels), padded.astype(np.float32), np.zeros(count))
    moments = lagged_moments(mean.at, data, (lag, 1))
    turned = ritz_from_forms(moments.grams[0], moments.products[0]).rotation
    rotation, mu = np.zeros((count, count)), np.zeros(count)
    rotation[:, : turned.shape[1]] = turned
    quotients = [np.diag(turned.T @ form[1] @ turned) for form in (moments.products, moments.grams)]
    mu[: turned.shape[1]] = quotients[0] / quotients[1]
    return mean._replace(tables=(padded @ rotation).astype(np.float32), mu=mu)
