"""What a checked claim is, and the case it is checked on: one graph, all orders of its eigenvectors, random points."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares, linear_sum_assignment

from lapwing_paper.theory.jacobians import Eigensystem, Matrix, equilibrium

ROUNDING = 1e-9
"""What should be zero stays below this in float64."""

EIGENVALUE_ROUNDING = 1e-6
"""The same for eigenvalues of a matrix that is not symmetric: two that nearly meet lose half of their digits."""

NO_EQUILIBRIUM = 1e-4
"""A gradient above this is not zero: at rotations it is of the order of the eigenvalues' gaps, 1e-2 or more."""

NO_PERMUTATION = 0.3
"""A rotation this far from every permutation, signs aside, is none; nearer ones have small gradients by right."""

SAMPLES = 200
"""Random points and rotations that a claim about all of them is tried on."""

SEARCHES = 20
"""Random starts of a search for equilibria."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and what the numbers say of it.

    Attributes:
        name: short identifier.
        paper: where the paper says it.
        statement: what was checked, and in brackets what the deviation is.
        held: whether what the paper says held.
        deviation: the largest deviation from what the paper says, or the number that the statement names.
        note: where the paper is off and what is right; empty where it held.
    """

    name: str
    paper: str
    statement: str
    held: bool
    deviation: float
    note: str = ""


def claim(name: str, paper: str, statement: str, held: bool, deviation: float, note: str) -> Claim:
    """A claim whose note is kept only where it is needed.

    Args:
        name: short identifier.
        paper: where the paper says it.
        statement: what was checked, and in brackets what the deviation is.
        held: whether it held.
        deviation: the largest deviation from what the paper says.
        note: what is right instead.

    Returns:
        The claim; its note is empty where it held.
    """
    return Claim(name, paper, statement, bool(held), float(deviation), "" if held else note)


@dataclass(frozen=True)
class Case:
    """One graph and everything that claims are tried on.

    Attributes:
        system: the Laplacian and its eigenvectors.
        dim: number of components, ``d``.
        barriers: the barriers that claims about any barrier are tried on.
        orders: every injection of the components into the states; the first is the identity.
        seed: all random points are functions of it.
    """

    system: Eigensystem
    dim: int
    barriers: tuple[float, ...]
    orders: tuple[tuple[int, ...], ...]
    seed: int

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.system.values)

    @property
    def num_variables(self) -> int:
        """Entries of a flat point: components and duals."""
        return self.size * self.dim + self.dim * (self.dim + 1) // 2

    @property
    def identity(self) -> tuple[int, ...]:
        """The first ``d`` eigenvectors in ascending order."""
        return self.orders[0]

    def equilibria(self) -> Matrix:
        """(orders, m) flat points, one per order."""
        return np.array([equilibrium(self.system, order) for order in self.orders])

    def random_points(self, length: int) -> Matrix:
        """(samples, length) normal numbers."""
        return np.random.default_rng([self.seed, length]).normal(size=(SAMPLES, length))

    def rotations(self, dim: int) -> Matrix:
        """(samples, dim, dim) random orthogonal matrices, those that nearly permute left out."""
        drawn = np.linalg.qr(np.random.default_rng([self.seed, dim]).normal(size=(SAMPLES, dim, dim)))[0]
        return np.array([rotation for rotation in drawn if distance_from_permutations(rotation) > NO_PERMUTATION])


def zeros_found(function: Callable[[Matrix], Matrix], derivative: Callable[[Matrix], Matrix], starts: Matrix) -> Matrix:
    """Zeros of a vector field that a search from each start leads to; starts that lead to none are left out.

    Args:
        function: the field, (m,) to (m,).
        derivative: its Jacobian, (m,) to (m, m).
        starts: (k, m) points.

    Returns:
        (found, m) zeros.
    """
    searches = [
        least_squares(function, start, jac=derivative, method="lm", xtol=1e-15, ftol=1e-15, gtol=1e-15)
        for start in starts
    ]
    return np.array([search.x for search in searches if largest(search.fun) < ROUNDING])


def distance_from_permutations(rotation: Matrix) -> float:
    """Frobenius distance of an orthogonal matrix from the nearest permutation matrix with signs.

    Args:
        rotation: (d, d) orthogonal.

    Returns:
        A distance, 0 for permutations with signs.

    Example:
        >>> distance_from_permutations(np.array([[0.0, 1.0], [-1.0, 0.0]]))
        0.0
    """
    magnitudes = np.abs(rotation)
    matched = magnitudes[linear_sum_assignment(magnitudes, maximize=True)].sum()
    return float(np.sqrt(max(0.0, 2.0 * (len(rotation) - matched))))


def largest(values: object) -> float:
    """The largest magnitude among numbers.

    Args:
        values: an array, or nested sequences of numbers; not empty.

    Returns:
        The maximum of the absolute values.
    """
    return float(np.abs(np.asarray(values)).max())
