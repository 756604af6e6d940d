"""Spectra known by hand, and small chains, written without the package."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def room_eigenvalues(rows: int, columns: int) -> Array:
    """All one-step eigenvalues of an empty room under four uniform moves, ascending; a corridor has width 1."""
    down, across = np.cos(np.pi * np.arange(rows) / rows), np.cos(np.pi * np.arange(columns) / columns)
    return np.sort(1.0 - (down[:, None] + across[None, :]).ravel() / 2.0)


def room_eigenvectors(rows: int, columns: int) -> Array:
    """(rows * columns, rows * columns) the eigenvectors, mode (k, l) in column k * columns + l, mean square one."""

    def axis(size: int) -> Array:
        values = np.cos(np.pi * np.outer(np.arange(size) + 0.5, np.arange(size)) / size)
        return values / np.sqrt((values**2).mean(axis=0))

    return np.kron(axis(rows), axis(columns))


def ring(size: int, forward: float, backward: float = 0.0) -> Array:
    """A ring with a probability for each direction, and the rest for staying: doubly stochastic, not reversible."""
    identity = np.eye(size)
    stay = 1.0 - forward - backward
    return stay * identity + forward * np.roll(identity, 1, axis=1) + backward * np.roll(identity, -1, axis=1)


def ring_mu(size: int, forward: float, backward: float = 0.0) -> NDArray[np.complex128]:
    """The complex eigenvalues of :func:`ring`, in the order of the Fourier modes."""
    angle = 2.0 * np.pi * np.arange(size) / size
    return 1.0 - forward - backward + forward * np.exp(1j * angle) + backward * np.exp(-1j * angle)


def random_chain(size: int, seed: int) -> Array:
    """A full, non-reversible transition matrix whose stationary distribution is far from uniform."""
    rng = np.random.default_rng(seed)
    return np.array([rng.dirichlet(np.geomspace(0.1, 3.0, size)) for _ in range(size)]) * 0.9 + 0.1 / size


def stationary_by_dense_eig(matrix: Array) -> Array:
    """The left eigenvector of eigenvalue 1."""
    values, vectors = np.linalg.eig(matrix.T)
    vector = np.real(vectors[:, np.argmin(np.abs(values - 1.0))])
    return vector / vector.sum()


def birth_death(size: int, up: float, down: float) -> Array:
    """A corridor with a drift: reversible, its stationary weights are powers of up / down."""
    matrix = np.diag(np.full(size - 1, up), 1) + np.diag(np.full(size - 1, down), -1)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def same_span(one: Array, other: Array) -> float:
    """The largest sine of an angle between the spans of two sets of orthonormal columns."""
    return float(np.linalg.norm(one - other @ (other.T @ one), ord=2))
