"""The smallest eigenpairs of ``I - S`` for symmetric S: dense for small, shift-invert Lanczos for large."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, SuperLU, eigsh, splu

from lapwing.errors import ArgumentError

DENSE_LIMIT = 500
DENSE_LIMIT_FILLED = 6000
FILLED_SHARE = 0.05
# Just below a spectrum that begins at 0: close enough to tell eigenvalues of 1e-6 apart, far enough not to be singular.
SHIFT = -1e-6
ROUNDING = 1e-14
LANCZOS_TOLERANCE = 1e-10
MISSED_TOLERANCE = 1e-6
CHECK_VECTORS = 60
LOWEST_MARGIN = 0.01

Say = Callable[[str], None]


class Eigenpairs(NamedTuple):
    """Ascending eigenvalues of I - S, orthonormal eigenvectors as columns, and residual norms."""

    values: NDArray[np.float64]
    vectors: NDArray[np.float64]
    residuals: NDArray[np.float64]


def smallest_eigenpairs(
    symmetric: csr_array, count: int, say: Say | None = None, *, largest_mu: float = 1.0, factorise: bool = True
) -> Eigenpairs:
    """The ``count`` smallest eigenpairs of I - S.

    Args:
        symmetric: S, sparse, symmetric.
        count: how many pairs.
        say: called with a short message when a long stage begins.
        largest_mu: no eigenvalue of S exceeds this; 1 for every S in the inner product of its stationary rho.
        factorise: False where rows have hundreds of entries, as in discretised kernels: the factors of I - S would
            fill memory, while eigenvalues lie far enough apart for Lanczos without them.

    Returns:
        The eigenpairs, eigenvalues ascending.
    """
    size = symmetric.shape[0]
    if not 1 <= count <= size:
        raise ArgumentError(f"asked for {count} eigenvectors of {size} states; ask for 1 to {size}")
    laplacian = csr_array(eye_array(size) - symmetric)
    # A matrix that is nearly full, or a good part of all eigenvectors, does not suit a sparse solver.
    heavy = laplacian.nnz > FILLED_SHARE * size**2 or count > size // 4
    if size <= DENSE_LIMIT or (factorise and heavy and size <= DENSE_LIMIT_FILLED):
        values, vectors = eigh(laplacian.toarray(), subset_by_index=[0, count - 1])
    elif count > size // 4:
        raise ArgumentError(
            f"{count} of {size} eigenvectors are too many for a sparse solver; ask for at most {size // 4}"
        )
    elif not factorise:
        values, vectors = _lanczos(symmetric, count, say or (lambda _: None))
    else:
        shift = SHIFT - max(largest_mu - 1.0, 0.0)
        values, vectors = _shift_invert(laplacian, count, shift, say or (lambda _: None))
    values = np.where(np.abs(values) < ROUNDING, 0.0, values)
    residuals = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals)


def lowest_mu(symmetric: csr_array) -> float:
    """A lower bound of the eigenvalues of S, good to about a hundredth.

    Args:
        symmetric: S, sparse, symmetric.

    Returns:
        A number that no eigenvalue is below.
    """
    size = symmetric.shape[0]
    if size <= DENSE_LIMIT:
        return float(eigh(symmetric.toarray(), eigvals_only=True, subset_by_index=[0, 0])[0])
    start = np.random.default_rng(0).standard_normal(size)
    # Tolerances are relative, and 1 - mu is never near zero here.
    laplacian = csr_array(eye_array(size) - symmetric)
    found = eigsh(laplacian, k=1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)
    return 1.0 - float(found[0]) - LOWEST_MARGIN


def _lanczos(symmetric: csr_array, count: int, say: Say) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    size = symmetric.shape[0]
    say(f"Lanczos for {count} eigenvectors of {size:,} states")
    start = np.random.default_rng(0).standard_normal(size)
    values, vectors = eigsh(
        symmetric, k=count, which="LA", v0=start, ncv=min(size, 3 * count + 20), tol=LANCZOS_TOLERANCE
    )
    order = np.argsort(-values)
    return _with_missed_copies(
        1.0 - values[order], vectors[:, order], lambda x: symmetric @ x, lambda mu: 1.0 - mu, LANCZOS_TOLERANCE, say
    )


def _shift_invert(
    laplacian: csr_array, count: int, shift: float, say: Say
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    size = laplacian.shape[0]
    say(f"factorising {size:,} states")
    # I - S - shift is positive definite, so pivots stay on the diagonal and the fill stays that of Cholesky.
    factor: SuperLU = splu(
        csr_array(laplacian - shift * eye_array(size)).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    inverse = LinearOperator((size, size), matvec=factor.solve, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    say(f"Lanczos for {count} eigenvectors")
    values, vectors = eigsh(laplacian, k=count, sigma=shift, OPinv=inverse, v0=start)
    order = np.argsort(values)
    return _with_missed_copies(
        values[order], vectors[:, order], factor.solve, lambda inverse: shift + 1.0 / inverse, MISSED_TOLERANCE, say
    )


def _with_missed_copies(
    values: NDArray[np.float64],
    vectors: NDArray[np.float64],
    apply: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    value_of: Callable[[float], float],
    tolerance: float,
    say: Say,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Lanczos can miss copies of a repeated eigenvalue: look in the complement until nothing smaller is left there."""
    size, count = vectors.shape
    start = np.random.default_rng(1).standard_normal(size)
    say("checking that no repeated eigenvalue was missed")
    for _ in range(count):
        basis = vectors

        def complement(x: NDArray[np.float64], basis: NDArray[np.float64] = basis) -> NDArray[np.float64]:
            y = apply(x - basis @ (basis.T @ x))
            return y - basis @ (basis.T @ y)

        outside = LinearOperator((size, size), matvec=complement, dtype=np.float64)
        wide = min(size, CHECK_VECTORS)
        largest, vector = eigsh(outside, k=1, which="LA", v0=start, tol=MISSED_TOLERANCE, ncv=wide)
        value = value_of(float(largest[0]))
        if value >= values[-1] - 1e-9 * max(abs(values[-1]), 1e-6):
            return values, vectors
        if tolerance < MISSED_TOLERANCE:
            largest, vector = eigsh(outside, k=1, which="LA", v0=vector[:, 0], tol=tolerance, ncv=wide)
            value = value_of(float(largest[0]))
        place = int(np.searchsorted(values, value))
        values = np.insert(values, place, value)[:count]
        vectors = np.insert(vectors, place, vector[:, 0], axis=1)[:, :count]
    raise ArgumentError("the sparse solver kept finding missed eigenvectors; ask for fewer components")
