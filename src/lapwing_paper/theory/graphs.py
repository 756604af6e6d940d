"""Small graphs whose Laplacians the theory is checked on: random ones, two-sided ones, and rings."""

import numpy as np
from numpy.typing import NDArray

from lapwing.definitions import Definition, as_definition
from lapwing.errors import ArgumentError
from lapwing.operators import laplacian, operator_from_matrix

SMALLEST_GAP = 1e-2
"""Eigenvalues of the random graphs lie at least this far apart: simple beyond any rounding."""

MAX_DRAWS = 1000
"""Graphs drawn before giving up on gaps this wide; large graphs have too many eigenvalues in [0, 2] for them."""

EDGE_PROBABILITY = 0.5
LIGHTEST_EDGE = 0.2


def random_laplacian(seed: int, size: int, definition: Definition | str = "one_step") -> NDArray[np.float64]:
    """(size, size) symmetric ``I - f(P)`` of a random connected weighted graph with simple eigenvalues.

    ``P = I - (D - W) / c`` with ``c`` the largest degree: symmetric, so the uniform distribution is stationary, and
    with no more staying than some state needs, so that it has negative eigenvalues too.

    Args:
        seed: the graph is a function of it.
        size: number of states, at least 2.
        definition: which Laplacian of ``P``.

    Returns:
        A symmetric matrix with zero row sums for ``one_step``.

    Example:
        >>> random_laplacian(0, 4).sum(axis=1).round(12) + 0.0
        array([0., 0., 0., 0.])
    """
    if size < 2:
        raise ArgumentError(f"a graph needs at least 2 states, got size {size}")
    rng = np.random.default_rng(seed)
    for _ in range(MAX_DRAWS):
        weights = _connected_weights(rng, size)
        degrees = weights.sum(axis=1)
        matrix = np.eye(size) - (np.diag(degrees) - weights) / degrees.max()
        found = _symmetric_laplacian(matrix, definition)
        if _has_simple_spectrum(found):
            return found
    raise ArgumentError(f"found no graph of {size} states with eigenvalues {SMALLEST_GAP} apart; take a smaller size")


def bipartite_laplacian(seed: int, size: int) -> NDArray[np.float64]:
    """(size, size) ``I - P`` where each step crosses between two halves: simple eigenvalues, the largest exactly 2.

    Args:
        seed: the graph is a function of it.
        size: number of states, even.

    Returns:
        A symmetric matrix.

    Example:
        >>> np.linalg.eigvalsh(bipartite_laplacian(0, 4))[[0, -1]].round(12) + 0.0
        array([0., 2.])
    """
    if size < 2 or size % 2:
        raise ArgumentError(f"two halves need an even number of states, got size {size}")
    rng = np.random.default_rng(seed)
    half = size // 2
    for _ in range(MAX_DRAWS):
        crossing = _doubly_stochastic(rng, half)
        none = np.zeros((half, half))
        found = _symmetric_laplacian(np.block([[none, crossing], [crossing.T, none]]), "one_step")
        if _has_simple_spectrum(found):
            return found
    raise ArgumentError(f"found no two-sided graph of {size} states with eigenvalues {SMALLEST_GAP} apart")


def ring_laplacian(size: int) -> NDArray[np.float64]:
    """(size, size) ``I - P`` of a ring walked both ways: eigenvalues ``1 - cos(2 pi k / size)``, most of them double.

    Args:
        size: number of states, at least 3.

    Returns:
        A symmetric matrix.

    Example:
        >>> np.linalg.eigvalsh(ring_laplacian(4)).round(12) + 0.0
        array([0., 1., 1., 2.])
    """
    if size < 3:
        raise ArgumentError(f"a ring needs at least 3 states, got size {size}")
    identity = np.eye(size)
    return identity - (np.roll(identity, 1, axis=1) + np.roll(identity, -1, axis=1)) / 2.0


def _connected_weights(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """Symmetric weights without loops: a path through all states in random order, and random edges beside it."""
    present = np.triu(rng.random((size, size)) < EDGE_PROBABILITY, 1)
    order = rng.permutation(size)
    present[np.minimum(order[:-1], order[1:]), np.maximum(order[:-1], order[1:])] = True
    upper = present * rng.uniform(LIGHTEST_EDGE, 1.0, (size, size))
    return upper + upper.T


def _doubly_stochastic(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """A random mixture of permutation matrices."""
    shares = rng.dirichlet(np.ones(2 * size))
    return sum(share * np.eye(size)[rng.permutation(size)] for share in shares)


def _symmetric_laplacian(matrix: NDArray[np.float64], definition: Definition | str) -> NDArray[np.float64]:
    found = laplacian(operator_from_matrix(matrix), as_definition(definition))
    return (found + found.T) / 2.0


def _has_simple_spectrum(matrix: NDArray[np.float64]) -> bool:
    return bool(np.diff(np.linalg.eigvalsh(matrix)).min() >= SMALLEST_GAP)
