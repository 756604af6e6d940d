# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The ascent-descent dynamics of the objective, its derivatives, and what the paper says of their eigenvalues.

Here as in the paper the inner product is the plain dot product: a component ``u`` stands for the table ``sqrt(n) u``
of the package, whose inner product is ``E_rho`` with the uniform ``rho``. Call inside ``jax.enable_x64(True)``. Points
are flat: the components one after the other, then the duals row by row, ``beta_11, beta_21, beta_22, ...``.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike, NDArray

from lapwing.objectives import AlloState, BarrierState, Objective, State, Values, allo

STABLE_ABOVE = 1e-10
"""Real parts above this are positive, beyond the rounding of an eigenvalue solver."""

SMALLEST_BARRIER = 1e-8
"""A barrier as good as none: where it is stable, any positive one is."""

BISECTIONS = 45

Matrix = NDArray[np.float64]
Spectrum = NDArray[np.complex128]


class Eigensystem(NamedTuple):
    """A symmetric Laplacian, its eigenvalues in ascending order and its orthonormal eigenvectors as columns."""

    laplacian: Matrix
    values: Matrix
    vectors: Matrix


def eigensystem(laplacian: Matrix) -> Eigensystem:
    """Eigenvalues and eigenvectors by a dense solver.

    Args:
        laplacian: (n, n) symmetric.

    Returns:
        The matrix with its (n,) eigenvalues and (n, n) eigenvectors.
    """
    values, vectors = np.linalg.eigh(laplacian)
    return Eigensystem(laplacian, values, vectors)


def exact_loss(
    objective: Objective, state: State, u: Float[Array, "n d"], laplacian: Float[Array, "n n"]
) -> tuple[Float[Array, ""], Float[Array, "d d"]]:
    """The package's own loss on all states at once, and the constraint errors it saw.

    Args:
        objective: any objective whose auxiliary output has ``errors``.
        state: of the objective.
        u: (n, d) components with ``u' u`` as inner product.
        laplacian: (n, n) symmetric.

    Returns:
        The loss, and (d, d) constraint errors.
    """
    size = u.shape[0]
    table = u * np.sqrt(size)
    weights = jnp.full(size, 1.0 / size)
    loss, evaluation = objective.loss(state, Values.of_table(table, table - laplacian @ table, weights))
    return loss, evaluation.aux.errors


@partial(jax.jit, static_argnames=("dim", "stop_gradient"))
def package_field(
    flat: Float[Array, " m"],
    barrier: Float[Array, ""],
    laplacian: Float[Array, "n n"],
    dim: int,
    stop_gradient: bool = True,
) -> Float[Array, " m"]:
    """Descent direction for ``u`` and minus the ascent direction for the duals, from the package's objective.

    Args:
        flat: (m,) components and duals as :func:`pack` orders them.
        barrier: ``b``.
        laplacian: (n, n) symmetric.
        dim: number of components, ``d``.
        stop_gradient: hold the second factor of the constraints constant, as ALLO does.

    Returns:
        (m,) directions; zero at an equilibrium.
    """
    u, duals = unpack(flat, laplacian.shape[0], dim)
    state = AlloState(duals, BarrierState(barrier, jnp.zeros(())))
    objective = allo(stop_gradient=stop_gradient)
    slope, errors = jax.grad(lambda components: exact_loss(objective, state, components, laplacian), has_aux=True)(u)
    return _flat(slope, -errors)


def lagrangian(
    u: Float[Array, "n d"],
    held: Float[Array, "n d"],
    duals: Float[Array, "d d"],
    barrier: Float[Array, ""],
    laplacian: Float[Array, "n n"],
) -> Float[Array, ""]:
    """The objective (paper, Eq. 6) with the factor inside the stop-gradient as an argument of its own.

    Args:
        u: (n, d) components.
        held: (n, d) the factor that a stop-gradient would hold constant; ``u`` for the value of the objective.
        duals: (d, d) lower triangular.
        barrier: ``b``.
        laplacian: (n, n) symmetric.

    Returns:
        The value.
    """
    errors = u.T @ held - jnp.eye(u.shape[1])
    return jnp.sum(u * (laplacian @ u)) + jnp.sum(duals * errors) + barrier * jnp.sum(jnp.tril(errors**2))


@partial(jax.jit, static_argnames="dim")
def field(
    flat: Float[Array, " m"], barrier: Float[Array, ""], laplacian: Float[Array, "n n"], dim: int
) -> Float[Array, " m"]:
    """The vector field of :func:`package_field` in a form whose own derivative is the true one.

    ``jax.lax.stop_gradient`` stops the derivatives of every order: a Jacobian taken through it would miss that the
    direction changes with the held factor too.

    Args:
        flat: (m,) components and duals as :func:`pack` orders them.
        barrier: ``b``.
        laplacian: (n, n) symmetric.
        dim: number of components, ``d``.

    Returns:
        (m,) directions.
    """
    u, duals = unpack(flat, laplacian.shape[0], dim)
    slope = jax.grad(lagrangian)(u, u, duals, barrier, laplacian)
    return _flat(slope, jnp.eye(dim) - u.T @ u)


@partial(jax.jit, static_argnames="dim")
def jacobian(
    flat: Float[Array, " m"], barrier: Float[Array, ""], laplacian: Float[Array, "n n"], dim: int
) -> Float[Array, "m m"]:
    """Derivative of :func:`field` at a point: row = entry of the field, column = entry of the point.

    Args:
        flat: (m,) components and duals as :func:`pack` orders them.
        barrier: ``b``.
        laplacian: (n, n) symmetric.
        dim: number of components, ``d``.

    Returns:
        (m, m) derivatives, not symmetric.
    """
    return jax.jacfwd(field)(flat, barrier, laplacian, dim)


@partial(jax.jit, static_argnames="dim")
def jacobians(
    flats: Float[Array, "k m"], barrier: Float[Array, ""], laplacian: Float[Array, "n n"], dim: int
) -> Float[Array, "k m m"]:
    """:func:`jacobian` at many points.

    Args:
        flats: (k, m) points.
        barrier: ``b``.
        laplacian: (n, n) symmetric.
        dim: number of components, ``d``.

    Returns:
        (k, m, m) derivatives.
    """
    return jax.vmap(lambda flat: jacobian(flat, barrier, laplacian, dim))(flats)


def pack(u: Matrix, duals: Matrix) -> Matrix:
    """A flat point from components (n, d) and lower-triangular duals (d, d).

    Args:
        u: (n, d) components.
        duals: (d, d); entries above the diagonal are not used.

    Returns:
        (m,) with m = n d + d (d + 1) / 2: component after component, then the duals row by row.
    """
    return np.concatenate([u.T.ravel(), duals[np.tril_indices(u.shape[1])]])


def unpack(flat: "ArrayLike", size: int, dim: int) -> tuple[Float[Array, "n d"], Float[Array, "d d"]]:
    """Components and duals of a flat point: the inverse of :func:`pack`.

    Args:
        flat: (m,) a point.
        size: number of states, n.
        dim: number of components, ``d``.

    Returns:
        (n, d) components and (d, d) lower-triangular duals.
    """
    point = jnp.asarray(flat)
    duals = jnp.zeros((dim, dim), dtype=point.dtype).at[np.tril_indices(dim)].set(point[size * dim :])
    return point[: size * dim].reshape(dim, size).T, duals


def equilibrium(system: Eigensystem, order: Sequence[int], factor: float = 2.0) -> Matrix:
    """The flat point ``u_i = e_order(i)``, ``beta_ii = -factor lambda_order(i)`` (paper, Lemma 2: factor 2).

    Args:
        system: the Laplacian and its eigenvectors.
        order: the eigenvector that each component is.
        factor: of the duals.

    Returns:
        (m,) a flat point.
    """
    chosen = list(order)
    return pack(system.vectors[:, chosen], np.diag(-factor * system.values[chosen]))


def paper_blocks(u: Matrix, duals: Matrix, barrier: float, laplacian: Matrix) -> Matrix:
    """(d, d, n, n) the blocks ``J_ij`` of the Jacobian between components, as printed (paper, proof of Theorem 1).

    Args:
        u: (n, d) components.
        duals: (d, d) lower triangular.
        barrier: ``b``.
        laplacian: (n, n) symmetric.

    Returns:
        (d, d, n, n) blocks; zero where ``j > i``.
    """
    size, dim = u.shape
    identity = np.eye(size)
    blocks = np.zeros((dim, dim, size, size))
    for i in range(dim):
        error = u[:, i] @ u[:, i] - 1.0
        blocks[i, i] = 2.0 * laplacian + duals[i, i] * identity
        blocks[i, i] += 2.0 * barrier * (error * identity + 2.0 * np.outer(u[:, i], u[:, i]) + u[:, :i] @ u[:, :i].T)
        for j in range(i):
            products = (u[:, i] @ u[:, j]) * identity + np.outer(u[:, i], u[:, j])
            blocks[i, j] = duals[i, j] * identity + 2.0 * barrier * products
    return blocks


def paper_dual_blocks(u: Matrix) -> tuple[Matrix, Matrix]:
    """Columns (nd, t) and rows (t, nd + t) of the Jacobian that belong to duals, as printed (paper, Theorem 1).

    Args:
        u: (n, d) components.

    Returns:
        (nd, t) derivatives by the duals and (t, nd + t) derivatives of the duals' directions, t = d (d + 1) / 2.
    """
    size, dim = u.shape
    pairs = list(zip(*np.tril_indices(dim), strict=True))
    columns = np.zeros((dim, size, len(pairs)))
    rows = np.zeros((len(pairs), dim, size))
    for at, (j, k) in enumerate(pairs):
        columns[j, :, at] = (2.0 if j == k else 1.0) * u[:, k]
        rows[at, j] -= u[:, k]
        rows[at, k] -= u[:, j]
    between = np.zeros((len(pairs), len(pairs)))
    return columns.reshape(dim * size, -1), np.hstack([rows.reshape(len(pairs), -1), between])


def paper_order_eigenvalues(values: Matrix, order: Sequence[int], barrier: float) -> Spectrum:
    """``2 (lambda_order(j) - lambda_i)`` for ``i <= d``, ``j > i``, as printed (paper, proof of Theorem 1).

    Args:
        values: (n,) eigenvalues of the Laplacian, ascending.
        order: the eigenvector that each component is.
        barrier: not used; every formula has the same arguments.

    Returns:
        (k,) eigenvalues, one for each pair.
    """
    return _order_eigenvalues(values[complete_order(order, len(values))], values, len(order))


def paper_norm_eigenvalues(values: Matrix, order: Sequence[int], barrier: float) -> Spectrum:
    """``2 b +- 2 sqrt(b^2 - 1)`` for each component, as printed (paper, proof of Theorem 1).

    Args:
        values: not used; every formula has the same arguments.
        order: the eigenvector that each component is.
        barrier: ``b``.

    Returns:
        (2 d,) eigenvalues, complex where ``b < 1``.
    """
    return np.tile(_roots(2.0 * barrier, 4.0), len(order))


def paper_pair_eigenvalues(values: Matrix, order: Sequence[int], barrier: float) -> Spectrum:
    """``D + b +- sqrt((D + b)^2 - 1)``, ``D = lambda_order(j) - lambda_i``, ``j < i``, printed (paper, Theorem 1).

    Args:
        values: (n,) eigenvalues of the Laplacian, ascending.
        order: the eigenvector that each component is.
        barrier: ``b``.

    Returns:
        (d (d - 1),) eigenvalues, two for each pair.
    """
    return _pair_eigenvalues(values[list(order)], values, len(order), barrier)


def spectrum(values: Matrix, order: Sequence[int], barrier: float) -> Spectrum:
    """All eigenvalues of the Jacobian at an equilibrium, multiplicities included: the paper's Theorem 1 corrected.

    In the basis of eigenvectors the Jacobian falls into blocks. With ``l_i = lambda_order(i)``:
    ``2 (l_j - l_i)`` for ``i <= d``, ``j > i``, from the component of ``u_i`` along a later eigenvector;
    the roots of ``x^2 - 4 b x + 2`` for each ``i <= d``, from its norm and ``beta_ii``;
    the roots of ``x^2 - 2 (l_j - l_i + b) x + 1`` for each ``j < i <= d``, from ``<u_i, u_j>`` and ``beta_ij``.

    Args:
        values: (n,) eigenvalues of the Laplacian, ascending.
        order: the eigenvector that each component is.
        barrier: ``b``.

    Returns:
        (m,) complex eigenvalues, unordered.

    Example:
        >>> spectrum(np.array([0.0, 2.0]), [0], barrier=1.0).real.round(4)
        array([4.    , 3.4142, 0.5858])
    """
    levels = values[complete_order(order, len(values))]
    dim = len(order)
    norms = np.tile(_roots(2.0 * barrier, 2.0), dim)
    parts = [_order_eigenvalues(levels, levels, dim), norms, _pair_eigenvalues(levels, levels, dim, barrier)]
    return np.concatenate(parts)


def complete_order(order: Sequence[int], size: int) -> list[int]:
    """A selection of states continued to a permutation of all of them; the rest follow in ascending order.

    Args:
        order: different states, at most ``size``.
        size: number of states.

    Returns:
        A permutation of 0 to ``size - 1`` that begins with ``order``.
    """
    return [*order, *(state for state in range(size) if state not in set(order))]


def smallest_real_part(system: Eigensystem, order: Sequence[int], barrier: float) -> float:
    """The smallest real part of the Jacobian's eigenvalues at an equilibrium: positive where it is stable.

    Args:
        system: the Laplacian and its eigenvectors.
        order: the eigenvector that each component is.
        barrier: ``b``.

    Returns:
        A real number.
    """
    with jax.enable_x64(True):
        found = jacobian(equilibrium(system, order), barrier, system.laplacian, len(order))
        return float(np.linalg.eigvals(np.asarray(found)).real.min())


def needed_barrier(laplacian: Matrix, dim: int) -> float:
    """The smallest barrier above which the ordered eigenvectors are a stable equilibrium (paper, Theorem 1).

    Found by bisection on the eigenvalues of the Jacobian: 0 where any positive barrier will do, infinity where none
    does because an eigenvalue among the first ``dim + 1`` is repeated.

    Args:
        laplacian: (n, n) symmetric.
        dim: number of components.

    Returns:
        A barrier, 0 or infinity.

    Example:
        >>> round(needed_barrier(np.array([[0.3, -0.3], [-0.3, 0.3]]), 2), 6)
        0.6
    """
    system = eigensystem(laplacian)
    identity = range(dim)
    low, high = SMALLEST_BARRIER, 1.0 + float(system.values[-1] - system.values[0])
    if smallest_real_part(system, identity, low) > STABLE_ABOVE:
        return 0.0
    if smallest_real_part(system, identity, high) <= STABLE_ABOVE:
        return float("inf")
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        stable = smallest_real_part(system, identity, middle) > STABLE_ABOVE
        low, high = (low, middle) if stable else (middle, high)
    return high


def _flat(slope: Float[Array, "n d"], errors: Float[Array, "d d"]) -> Float[Array, " m"]:
    return jnp.concatenate([slope.T.ravel(), errors[np.tril_indices(slope.shape[1])]])


def _roots(half: float, constant: float) -> Spectrum:
    """The roots of ``x^2 - 2 half x + constant``."""
    root = np.sqrt(complex(half**2 - constant))
    return np.array([half + root, half - root])


def _order_eigenvalues(levels: Matrix, own: Matrix, dim: int) -> Spectrum:
    """``2 (levels_j - own_i)`` for ``i <= dim`` and all later ``j``."""
    return np.array([2.0 * (levels[j] - own[i]) for i in range(dim) for j in range(i + 1, len(levels))], dtype=complex)


def _pair_eigenvalues(levels: Matrix, own: Matrix, dim: int, barrier: float) -> Spectrum:
    """The roots of ``x^2 - 2 (levels_j - own_i + b) x + 1`` for ``j < i <= dim``."""
    pairs = [_roots(levels[j] - own[i] + barrier, 1.0) for i in range(dim) for j in range(i)]
    return np.concatenate(pairs) if pairs else np.zeros(0, dtype=complex)
