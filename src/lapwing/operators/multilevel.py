"""Multilevel eigensolver: coarsen the states, solve, prolong, and improve by preconditioned block iterations.

The problem is ``L u = lambda M u`` with the graph Laplacian ``L = D - (D P + P^T D)/2`` and the weights ``M = D`` of
states, so that the constant vector is (nearly) in the null space on every level. Three ways of coarsening:

* **merging** 2 x 2 cells of a regular grid, of which neither matrix nor factors are ever stored;
* **eliminating** states with at most two neighbours, which is exact: a maze collapses to its junctions, a tree to
  nothing (as in Livne and Brandt's Lean Algebraic Multigrid, 2012);
* **aggregating** neighbourhoods with smoothed interpolation (Vanek, Mandel and Brezina, 1996), their centres being a
  maximal set of states at least three steps apart (Bell, Dalton and Olson, 2012).

The coarsest problem is solved densely. On the way back, its eigenvectors are prolonged and improved on each level by
locally optimal block preconditioned conjugate gradients (Knyazev, 2001) with one V-cycle as preconditioner.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import coo_array, csr_array, diags_array

from lapwing.errors import ArgumentError
from lapwing.operators.clusters import EXACT_TOLERANCE
from lapwing.operators.eigensolver import ROUNDING, Eigenpairs, Say

Needed = Callable[[NDArray[np.float64]], int]
"""From the current estimates of eigenvalues to how many leading ones have to converge."""

Array = NDArray[Any]

COARSEST = 600  # states of the level that is solved densely
# Added to the Laplacian, per unit of weight, to make it positive definite: well below the eigenvalues of 10^7 states.
SHIFT = 1e-12
VALUE_ERROR = 1e-7  # relative error of an eigenvalue that residuals may leave (Kato-Temple: residual^2 / gap)
LARGEST_ANGLE = 0.02  # sine of the angle to the eigenvector that residuals may leave (Davis-Kahan)
RESIDUAL_FLOOR = 2e-14  # what rounding leaves of a residual
# An eigenvalue this small is 0: its vector is known by the smallness of its residual, which rounding makes grow with n.
NULL_VALUE, NULL_FLOOR = 5e-12, 1e-12
COARSE_SWEEPS = 8
MAX_SWEEPS = 200
STRIP = 1 << 14  # states for which products are formed at a time
GROUP = 4  # columns that go through a V-cycle at a time
STIRRED = 3  # last columns to which random numbers are added
SMOOTHING = 3  # degree of the Chebyshev polynomial before and after each coarse correction
SMOOTHED_SHARE = 8.0  # it damps the part of the spectrum above this fraction of its upper end
STRONG = 0.05  # neighbours whose entry is smaller than this, relative to the diagonal, are not merged
LEAST_ELIMINATED = 0.2  # elimination goes on while it removes this share of the states
MERGED_GAIN = 2.0  # piecewise constant interpolation over 2 x 2 cells doubles the energy of smooth functions


class Grid:
    """The Laplacian of the uniform walk on the free cells of a rectangle, without a matrix; every cell has weight 1.

    Vectors are (rows * columns, k) over the whole rectangle, zero at walls.

    Args:
        free: (rows, columns) where states are.
    """

    # Corrections are directions: they need not be exact, and half the memory is theirs.
    directions = np.float32

    def __init__(self, free: NDArray[np.bool_]) -> None:
        """Count the neighbours of each cell."""
        self.free = free
        self.size = free.size
        self.degree = np.zeros(free.shape, dtype=np.float32)
        self.degree[1:] += free[:-1]
        self.degree[:-1] += free[1:]
        self.degree[:, 1:] += free[:, :-1]
        self.degree[:, :-1] += free[:, 1:]
        self.degree *= free
        self.has_walls = not free.all()
        self.mass = None  # 1 each; at walls every vector is 0
        self.bound = 2.0
        # Walls and cells without neighbours are left alone.
        self.inverse_diagonal = (4.0 / np.where(self.degree > 0, self.degree, np.inf)).astype(np.float32).ravel()

    def strips(self) -> Iterator[slice]:
        """Ranges of states, whole rows of the rectangle."""
        columns = self.free.shape[1]
        step = max(1, STRIP // columns) * columns
        return (slice(start, min(start + step, self.size)) for start in range(0, self.size, step))

    def product(self, block: Array, rows: slice, dtype: Any = np.float64) -> Array:
        """``(L + SHIFT M) block`` at some states.

        Args:
            block: (size, k).
            rows: one of :meth:`strips`.
            dtype: to compute in.

        Returns:
            (states, k) the product there.
        """
        height, columns = self.free.shape
        x = block.reshape(height, columns, -1)
        first, last = rows.start // columns, rows.stop // columns
        here = x[first:last]
        y = self.degree[first:last, :, None] * here.astype(dtype, copy=False)
        y[:, 1:] -= here[:, :-1]
        y[:, :-1] -= here[:, 1:]
        above, below = max(first, 1), min(last, height - 1)
        y[above - first :] -= x[above - 1 : last - 1]
        y[: below - first] -= x[first + 1 : below + 1]
        y *= dtype(0.25)
        y += dtype(SHIFT) * here
        if self.has_walls:
            y *= self.free[first:last, :, None]
        return y.reshape(rows.stop - rows.start, -1)

    def multiply(self, block: Array) -> Array:
        """The whole product.

        Args:
            block: (size, k).

        Returns:
            (size, k), in the type of the block.
        """
        out = np.empty_like(block)
        for rows in self.strips():
            out[rows] = self.product(block, rows, block.dtype.type)
        return out


class Graph:
    """A sparse symmetric matrix ``L + SHIFT M`` with the weights of its states.

    Args:
        matrix: (n, n).
        mass: (n,) positive weights.
    """

    directions = np.float64

    def __init__(self, matrix: csr_array, mass: NDArray[np.float64]) -> None:
        """Keep the matrix, its diagonal and a bound of the spectrum of its scaled form."""
        self.matrix = matrix
        self.mass = mass
        self.size = len(mass)
        diagonal = matrix.diagonal()
        self.inverse_diagonal = 1.0 / diagonal
        self.bound = float((abs(matrix).sum(axis=1) / diagonal).max())

    def strips(self) -> Iterator[slice]:
        """Ranges of states."""
        return (slice(start, min(start + STRIP, self.size)) for start in range(0, self.size, STRIP))

    def product(self, block: Array, rows: slice) -> Array:
        """The product at some states.

        Args:
            block: (size, k).
            rows: which.

        Returns:
            (states, k).
        """
        return self.matrix[rows] @ block

    def multiply(self, block: Array) -> Array:
        """The whole product.

        Args:
            block: (size, k).

        Returns:
            (size, k).
        """
        return self.matrix @ block


@dataclass
class Merged:
    """Grid cells in blocks of 2 x 2, each one state of the coarse level."""

    fine: Grid
    blocks: NDArray[np.bool_]  # which blocks of the coarse rectangle have a free cell
    coarse: Any = None

    def restrict(self, fine: Array) -> Array:
        """The adjoint of :meth:`prolong`: one step of the walk, then sums over blocks."""
        height, columns = self.fine.free.shape
        x = (fine - self.fine.multiply(fine)).reshape(height, columns, -1)
        sums = np.zeros((*self.blocks.shape, x.shape[2]))
        for part in (x[a::2, b::2] for a in (0, 1) for b in (0, 1)):
            sums[: part.shape[0], : part.shape[1]] += part
        return sums[self.blocks]

    def prolong(self, coarse: Array) -> Array:
        """The same value in all cells of a block, then one step of the walk, which leaves linear functions linear."""
        height, columns = self.fine.free.shape
        sums = np.zeros((*self.blocks.shape, coarse.shape[1]), dtype=coarse.dtype)
        sums[self.blocks] = coarse
        x = np.empty((height, columns, coarse.shape[1]), dtype=coarse.dtype)
        for a in (0, 1):
            for b in (0, 1):
                part = x[a::2, b::2]
                part[...] = sums[: part.shape[0], : part.shape[1]]
        if self.fine.has_walls:
            x *= self.fine.free[..., None]
        flat = x.reshape(self.fine.size, -1)
        flat -= self.fine.multiply(flat)
        return flat

    def solve(self, right: Array) -> Array:
        """One V-cycle."""
        return _corrected(self, right)


@dataclass
class Aggregated:
    """Neighbourhoods, each one state of the coarse level, with smoothed interpolation."""

    fine: Graph
    interpolation: csr_array
    coarse: Any = None

    def restrict(self, fine: Array) -> Array:
        """The adjoint of interpolation."""
        return self.interpolation.T @ fine

    def prolong(self, coarse: Array) -> Array:
        """Interpolation."""
        return self.interpolation @ coarse

    def solve(self, right: Array) -> Array:
        """One V-cycle."""
        return _corrected(self, right)


@dataclass
class Eliminated:
    """Some states, no two of them neighbours, expressed by the others: exact."""

    fine: Graph | None  # None inside a chain of eliminations, where nothing is improved
    kept: NDArray[np.int64]
    gone: NDArray[np.int64]
    weights: csr_array  # (gone, kept)
    inverse: NDArray[np.float64]
    coarse: Any = None

    def restrict(self, fine: Array) -> Array:
        """The right-hand side of the others."""
        return fine[self.kept] + self.weights.T @ fine[self.gone]

    def prolong(self, coarse: Array) -> Array:
        """The harmonic extension."""
        fine = np.empty((len(self.kept) + len(self.gone), coarse.shape[1]))
        fine[self.kept] = coarse
        fine[self.gone] = self.weights @ coarse
        return fine

    def solve(self, right: Array) -> Array:
        """Solve for the others, then for these."""
        out = self.prolong(self.coarse.solve(self.restrict(right)))
        out[self.gone] += self.inverse[:, None] * right[self.gone]
        return out


class Coarsest:
    """The last level, solved densely.

    Args:
        fine: its matrix and weights.
    """

    def __init__(self, fine: Graph) -> None:
        """Factorise."""
        self.fine = fine
        self.dense = fine.matrix.toarray()
        self.factor = cho_factor(self.dense)

    def solve(self, right: Array) -> Array:
        """Exactly."""
        return cho_solve(self.factor, right)

    def eigenvectors(self, count: int) -> Array:
        """(n, count) those with the smallest eigenvalues, as many as there are."""
        root = np.sqrt(self.fine.mass)
        scaled = self.dense / root[:, None] / root
        return eigh(scaled, subset_by_index=[0, min(count, len(root)) - 1])[1] / root[:, None]


def graph_eigenpairs(
    matrix: csr_array,
    rho: NDArray[np.float64],
    count: int,
    needed: Needed,
    say: Say | None = None,
    *,
    largest_mu: float = 1.0,
) -> Eigenpairs:
    """The ``count`` smallest eigenpairs of ``I - S``, S being P symmetrised in the inner product of rho.

    Args:
        matrix: (n, n) row-stochastic P, sparse.
        rho: (n,) positive weights that sum to one.
        count: how many pairs.
        needed: how many leading pairs have to converge, given estimates of all; the others help them to.
        say: called with a short message when a long stage begins.
        largest_mu: no eigenvalue of S exceeds this; 1 where rho is stationary.

    Returns:
        The eigenpairs, eigenvalues ascending, vectors orthonormal: ``u = v / sqrt(rho)`` is the eigenfunction.
    """
    mass = rho * len(rho)
    flow = csr_array(diags_array(mass) @ matrix)
    shift = SHIFT + max(largest_mu - 1.0, 0.0)
    top = Graph(csr_array(diags_array((1.0 + shift) * mass) - (flow + flow.T) / 2.0), mass)
    del flow
    values, vectors, residuals = _eigenpairs(
        top, _hierarchy(top, count, say), count, lambda values: needed(values - shift), say
    )
    return Eigenpairs(_without_shift(values, shift), vectors * np.sqrt(mass)[:, None], residuals)


def grid_eigenpairs(free: NDArray[np.bool_], count: int, needed: Needed, say: Say | None = None) -> Eigenpairs:
    """The ``count`` smallest eigenpairs of ``I - P``, P being the uniform walk on a grid; no matrix of it is stored.

    Args:
        free: (rows, columns) where states are; they are numbered row by row.
        count: how many pairs.
        needed: how many leading pairs have to converge, given estimates of all; the others help them to.
        say: called with a short message when a long stage begins.

    Returns:
        The eigenpairs, eigenvalues ascending.
    """
    inside = [np.flatnonzero(free.any(axis=axis)) for axis in (1, 0)]
    cut = free[inside[0][0] : inside[0][-1] + 1, inside[1][0] : inside[1][-1] + 1]
    top = Grid(cut)
    values, vectors, residuals = _eigenpairs(
        top, _merged(top, count, say), count, lambda values: needed(values - SHIFT), say
    )
    if top.has_walls:
        vectors = vectors[cut.ravel()]
    return Eigenpairs(_without_shift(values, SHIFT), vectors, residuals)


def is_open(free: NDArray[np.bool_]) -> bool:
    """Whether most cells of a grid have more than two neighbours, so that elimination would not get far.

    Args:
        free: (rows, columns) where states are.

    Returns:
        Whether to merge cells rather than to eliminate them.
    """
    inner = np.zeros(free.shape, dtype=np.int8)
    inner[1:] += free[:-1]
    inner[:-1] += free[1:]
    inner[:, 1:] += free[:, :-1]
    inner[:, :-1] += free[:, 1:]
    return bool(np.count_nonzero((inner > 2) & free) > np.count_nonzero(free) / 2)


def _without_shift(values: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    values = values - shift
    return np.where(np.abs(values) < ROUNDING, 0.0, values)


def _merged(top: Grid, count: int, say: Say | None) -> Merged:
    """The first coarse level of a grid as a graph, and the levels below."""
    free = top.free
    height, columns = (-(-size // 2) for size in free.shape)
    counts = np.zeros((height, columns))
    for part in (free[a::2, b::2] for a in (0, 1) for b in (0, 1)):
        counts[: part.shape[0], : part.shape[1]] += part
    blocks = counts > 0
    level = Merged(top, blocks)
    numbers = np.full(blocks.shape, -1, dtype=np.int32)
    numbers[blocks] = np.arange(np.count_nonzero(blocks), dtype=np.int32)
    # Pairs of free cells on both sides of a border between blocks.
    across = (free[:, 1:-1:2] & free[:, 2::2]).astype(np.float64)
    across = np.add.reduceat(across, np.arange(0, len(across), 2), axis=0)
    down = (free[1:-1:2] & free[2::2]).astype(np.float64)
    down = np.add.reduceat(down, np.arange(0, down.shape[1], 2), axis=1) if len(down) else np.zeros((0, columns))
    here = np.concatenate([numbers[:, :-1][across > 0], numbers[:-1][down > 0]])
    there = np.concatenate([numbers[:, 1:][across > 0], numbers[1:][down > 0]])
    flow = np.concatenate([across[across > 0], down[down > 0]]) / (4.0 * MERGED_GAIN)
    mass = counts[blocks]
    size = len(mass)
    joined = coo_array((flow, (here, there)), shape=(size, size)).tocsr()
    joined = joined + joined.T
    degree = np.asarray(joined.sum(axis=1)).ravel()
    graph = Graph(csr_array(diags_array(degree + SHIFT * mass) - joined), mass)
    level.coarse = _hierarchy(graph, count, say)
    return level


def _hierarchy(top: Graph, count: int, say: Say | None) -> Any:
    """The levels of a graph, eliminated or aggregated until few states are left."""
    levels: list[Any] = []
    graph, depth, rng = top, 0, np.random.default_rng(0)
    least = max(COARSEST, 3 * count)
    while graph.size > least:
        level: Any = _eliminated(graph, rng)
        if level is not None:
            following = _schur(graph, level)
            # A chain of eliminations is exact: only its first level is iterated on, if it is the finest of all.
            level.fine = graph if not levels else None
        else:
            level = _aggregated(graph, STRONG * 0.5**depth, rng)
            depth += 1
            following = _galerkin(graph, level)
            # Too few would not hold the eigenvectors; hardly fewer would not be worth a level.
            if not 2 * count <= following.size <= 0.8 * graph.size:
                break
        levels.append(level)
        graph = following
    if graph.size > 10 * least:
        raise ArgumentError(
            f"the multilevel engine cannot coarsen this below {graph.size:,} states, because they are hardly "
            "connected; use engine='scipy'"
        )
    if say:
        say(f"{len(levels) + 1} levels from {top.size:,} to {graph.size:,} states")
    below: Any = Coarsest(graph)
    for level in reversed(levels):
        level.coarse = below
        below = level
    return below


def _eliminated(graph: Graph, rng: np.random.Generator) -> Eliminated | None:
    """States with one or two neighbours of which no two are neighbours; None where they are not many.

    A state without neighbours stays: it is a part of the world, and has an eigenvector of its own.
    """
    counts = np.diff(graph.matrix.indptr) - 1
    candidate = (counts == 1) | (counts == 2)
    if np.count_nonzero(candidate) < LEAST_ELIMINATED * graph.size:
        return None
    # Between neighbours the larger random number wins.
    draw = np.where(candidate, rng.permutation(graph.size), -1)
    rows = np.flatnonzero(candidate)
    best = _largest_near(graph.matrix, draw, rows)
    chosen = np.zeros(graph.size, dtype=bool)
    chosen[rows[best <= draw[rows]]] = True
    kept, gone = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    inverse = graph.inverse_diagonal[gone]
    weights = csr_array(diags_array(-inverse) @ graph.matrix[gone][:, kept])
    return Eliminated(None, kept, gone, weights, inverse)


def _largest_near(matrix: csr_array, numbers: Array, rows: NDArray[np.int64] | None = None) -> Array:
    """The largest of the numbers of each state and its neighbours; the diagonal of the matrix is full."""
    if rows is not None:
        matrix = matrix[rows]
    return np.maximum.reduceat(numbers[matrix.indices], matrix.indptr[:-1])


def _schur(graph: Graph, level: Eliminated) -> Graph:
    """The matrix of the states that are left."""
    across = graph.matrix[level.gone][:, level.kept]
    matrix = csr_array(graph.matrix[level.kept][:, level.kept] + across.T @ level.weights)
    return Graph(matrix, graph.mass[level.kept] + level.weights.T @ graph.mass[level.gone])


def _aggregated(graph: Graph, strong: float, rng: np.random.Generator) -> Aggregated:
    """Neighbourhoods of states that are at least three steps apart, with interpolation smoothed once."""
    matrix = graph.matrix
    entries = coo_array(matrix)
    root = np.sqrt(graph.inverse_diagonal)
    close = np.abs(entries.data) * root[entries.row] * root[entries.col] >= strong
    near = coo_array((np.ones(close.sum(), dtype=np.int8), (entries.row[close], entries.col[close])), matrix.shape)
    near = near.tocsr()
    del entries, close
    # Centres: a maximal set in which no two have a common neighbour. 1 + number: undecided; 0: not; above: a centre.
    draw = 1 + rng.permutation(graph.size).astype(np.int64)
    centre_bonus = graph.size + 1
    state = draw.copy()
    while True:
        undecided = (state > 0) & (state < centre_bonus)
        if not undecided.any():
            break
        best = _largest_near(near, _largest_near(near, state))
        state[undecided & (best == state)] += centre_bonus
        state[undecided & (best >= centre_bonus)] = 0
        best = _largest_near(near, _largest_near(near, state))
        state[(state < centre_bonus) & (best >= centre_bonus)] = 0
    centres = np.flatnonzero(state >= centre_bonus)
    label = np.full(graph.size, -1, dtype=np.int64)
    label[centres] = np.arange(len(centres))
    for _ in range(2):
        label = np.where(label >= 0, label, _largest_near(near, label))
    rows = np.arange(graph.size)
    constant = csr_array((np.ones(graph.size), label, np.arange(graph.size + 1)), shape=(len(rows), len(centres)))
    damped = diags_array(4.0 / (3.0 * graph.bound) * graph.inverse_diagonal)
    return Aggregated(graph, csr_array(constant - damped @ (matrix @ constant)))


def _galerkin(graph: Graph, level: Aggregated) -> Graph:
    """The matrix between neighbourhoods; their weights are lumped."""
    between = level.interpolation
    matrix = csr_array(between.T @ csr_array(graph.matrix @ between))
    return Graph(csr_array((matrix + matrix.T) / 2.0), np.maximum(between.T @ graph.mass, 1e-300))


def _corrected(level: Any, right: Array) -> Array:
    """Smoothing, a correction from the coarse level, and smoothing again."""
    fine = level.fine
    guess = _smoothed(fine, None, right)
    rest = right - fine.multiply(guess)
    guess += level.prolong(level.coarse.solve(level.restrict(rest)).astype(right.dtype, copy=False))
    del rest
    return _smoothed(fine, guess, right)


def _smoothed(fine: Grid | Graph, guess: Array | None, right: Array | None) -> Array:
    """A Chebyshev polynomial of the scaled matrix that damps the upper part of its spectrum.

    Args:
        fine: the matrix.
        guess: (n, k) where to begin; None for zeros.
        right: (n, k) right-hand side; None for zeros.

    Returns:
        (n, k).
    """
    kind = (right if right is not None else guess).dtype.type  # type: ignore[union-attr]
    scale = fine.inverse_diagonal[:, None]
    low, high = fine.bound / SMOOTHED_SHARE, fine.bound * 1.05
    middle, half = (high + low) / 2.0, (high - low) / 2.0

    def rest(x: Array) -> Array:
        y = fine.multiply(x)
        return np.negative(y, out=y) if right is None else np.subtract(right, y, out=y)

    step = (right.copy() if right is not None else None) if guess is None else rest(guess)
    assert step is not None
    step *= scale
    step *= kind(1.0 / middle)
    out = step.copy() if guess is None else guess + step
    ratio = half / middle
    for _ in range(SMOOTHING - 1):
        following = 1.0 / (2.0 * middle / half - ratio)
        change = rest(out)
        change *= scale
        change *= kind(2.0 * following / half)
        step *= kind(following * ratio)
        step += change
        out += step
        ratio = following
    return out


def _eigenpairs(
    top: Grid | Graph, level: Any, count: int, needed: Needed, say: Say | None
) -> tuple[NDArray[np.float64], Array, NDArray[np.float64]]:
    """Eigenpairs of the finest level, from those of the coarsest."""
    stack = []
    while not isinstance(level, Coarsest):
        stack.append(level)
        level = level.coarse
    x = level.eigenvectors(count)
    rng = np.random.default_rng(2)
    for number, level in reversed(list(enumerate(stack))):
        x = level.prolong(x)
        if level.fine is None:
            continue
        finest = number == 0
        if not isinstance(level, Eliminated):
            x = _smoothed(level.fine, x, None)
        _stir(level.fine, x[:, -STIRRED:], rng)
        if say:
            say(f"improving {x.shape[1]} vectors of {level.fine.size:,} states")
        x, values, residuals = _improved(level.fine, level.solve, x, needed if finest else None, say)
    if not stack:
        x, values, residuals = _improved(top, level.solve, x, needed, say)
    return values, x, residuals


def _stir(fine: Grid | Graph, guards: Array, rng: np.random.Generator) -> None:
    """Add a little of everything to the guards, in case the coarse levels have missed an eigenvector."""
    for rows in fine.strips():
        noise = 0.1 * rng.standard_normal((rows.stop - rows.start, guards.shape[1]))
        if isinstance(fine, Grid):
            noise *= fine.free.ravel()[rows, None]
        guards[rows] += noise / np.sqrt(fine.size)


def _improved(
    fine: Grid | Graph,
    precondition: Callable[[Array], Array],
    x: Array,
    needed: Needed | None,
    say: Say | None,
) -> tuple[Array, NDArray[np.float64], NDArray[np.float64]]:
    """Locally optimal block preconditioned conjugate gradients; where nothing is needed, a few sweeps."""
    count = x.shape[1]
    values, mix = _ritz(fine, [x], count)
    _rotate(fine, [x], mix, None)
    previous: Array | None = None
    active = np.arange(count)
    for sweep in range(COARSE_SWEEPS if needed is None else MAX_SWEEPS):
        step = np.empty((fine.size, count), dtype=fine.directions)
        residuals, forms = _residuals(fine, x, values, step)
        sizes, gaps = np.abs(values), _gaps(values)
        limits = np.minimum(np.sqrt(VALUE_ERROR * sizes * np.minimum(gaps, sizes)), LARGEST_ANGLE * gaps)
        floors = np.where(np.abs(values) < NULL_VALUE, NULL_FLOOR, RESIDUAL_FLOOR)
        done = residuals <= np.maximum(limits, floors)
        if needed is not None:
            wanted = needed(values)
            if say and sweep:
                say(f"sweep {sweep}: {done[:wanted].sum()} of {wanted} converged")
            if done[:wanted].all():
                return x, values, residuals
        still = np.flatnonzero(~done)
        if len(still) < count:
            step = _columns(step, still)
        for start in range(0, len(still), GROUP):
            some = slice(start, start + GROUP)
            step[:, some] = precondition(np.ascontiguousarray(step[:, some]))
        _project_out(fine, x, step)
        if previous is not None and len(still) < len(active):
            previous = _columns(previous, np.flatnonzero(np.isin(active, still)))
        active = still
        blocks = [x, step] + ([] if previous is None else [previous])
        values, mix = _ritz(fine, blocks, count, forms)
        _rotate(fine, blocks, mix, active)
        previous = step
    if needed is not None:
        raise ArgumentError(
            f"the multilevel engine has not converged in {MAX_SWEEPS} sweeps (residuals up to "
            f"{residuals[:wanted].max():.1e}); use engine='scipy'"
        )
    return x, values, residuals


def _columns(block: Array, chosen: NDArray[np.int64]) -> Array:
    """Some columns of a contiguous block, contiguous again and in its own memory: products of strips need that."""
    kept = block.reshape(-1)[: len(block) * len(chosen)].reshape(len(block), len(chosen))
    for start in range(0, len(block), STRIP):
        rows = slice(start, start + STRIP)
        # A row moves towards the beginning of the memory, so that nothing is overwritten that is still to be read.
        kept[rows] = block[rows][:, chosen]
    return kept


def _gaps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance of each eigenvalue to the nearest one that does not count as equal."""
    apart = np.abs(values[:, None] - values)
    apart[apart <= EXACT_TOLERANCE * np.abs(values)] = np.inf
    return apart.min(axis=1)


def _residuals(
    fine: Grid | Graph, x: Array, values: NDArray[np.float64], out: Array
) -> tuple[NDArray[np.float64], tuple[Array, Array]]:
    """Residual norms ``|M^-1 K x - value x|_M``, the residuals ``K x - M x value`` in ``out``, and both forms of x.

    Args:
        fine: K and M.
        x: (n, k).
        values: (k,) eigenvalues.
        out: (n, k), written to.

    Returns:
        (k,) norms; ``x^T M x`` and ``x^T K x``, (k, k) each.
    """
    squares = np.zeros(len(values))
    gram, energy = np.zeros((2, len(values), len(values)))
    for rows in fine.strips():
        here, rest = x[rows], fine.product(x, rows)
        mass = None if fine.mass is None else fine.mass[rows, None]
        weighted = here if mass is None else here * mass
        gram += here.T @ weighted
        energy += here.T @ rest
        rest -= weighted * values
        squares += np.einsum("ij,ij->j", rest if mass is None else rest / mass, rest)
        out[rows] = rest
    return np.sqrt(squares), (gram, energy)


def _project_out(fine: Grid | Graph, x: Array, step: Array) -> None:
    """Take the components along x out of a step: near a null space, rounding makes them larger than all others."""
    along = np.zeros((x.shape[1], step.shape[1]))
    for rows in fine.strips():
        along += (x[rows] if fine.mass is None else x[rows] * fine.mass[rows, None]).T @ step[rows]
    for rows in fine.strips():
        step[rows] -= x[rows] @ along


def _ritz(
    fine: Grid | Graph, blocks: list[Array], count: int, forms: tuple[Array, Array] | None = None
) -> tuple[NDArray[np.float64], Array]:
    """Rayleigh-Ritz in the span of the columns of all blocks; ``forms`` are those of the first block, where known."""
    width = sum(block.shape[1] for block in blocks)
    known = 0 if forms is None else blocks[0].shape[1]
    gram, energy = np.zeros((2, width, width))
    for rows in fine.strips():
        basis = np.concatenate([block[rows] for block in blocks], axis=1, dtype=np.float64)
        images = np.concatenate([fine.product(block, rows) for block in blocks[known > 0 :]], axis=1)
        energy[:, known:] += basis.T @ images
        if fine.mass is not None:
            basis *= np.sqrt(fine.mass[rows, None])
        gram[:, known:] += basis.T @ basis[:, known:]
    if forms is not None:
        for whole, part in zip((gram, energy), forms, strict=True):
            whole[:known, :known] = part
            whole[known:, :known] = whole[:known, known:].T
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    gram, energy = (scale[:, None] * (part + part.T) / 2.0 * scale for part in (gram, energy))
    sizes, directions = np.linalg.eigh(gram)
    kept = sizes > 1e-12 * sizes[-1]
    white = directions[:, kept] / np.sqrt(sizes[kept])
    inside = white.T @ energy @ white
    values, mix = eigh((inside + inside.T) / 2.0, subset_by_index=[0, count - 1])
    return values, scale[:, None] * (white @ mix)


def _rotate(fine: Grid | Graph, blocks: list[Array], mix: Array, active: NDArray[np.int64] | None) -> None:
    """In place: the first block becomes the Ritz vectors, the second what was added to its active columns."""
    count = blocks[0].shape[1]
    for rows in fine.strips():
        new = blocks[0][rows] @ mix[:count]
        if len(blocks) > 1:
            others = np.concatenate([block[rows] for block in blocks[1:]], axis=1, dtype=np.float64)
            added = others @ mix[count:]
            new += added
            blocks[1][rows] = added[:, active]
        blocks[0][rows] = new
