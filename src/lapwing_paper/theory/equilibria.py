"""Claims about where the gradient vanishes: in the constrained problem, and under ascent and descent with duals."""

from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from lapwing_paper.theory.cases import NO_EQUILIBRIUM, ROUNDING, SEARCHES, Case, Claim, claim, largest, zeros_found
from lapwing_paper.theory.graphs import ring_laplacian
from lapwing_paper.theory.jacobians import (
    Matrix,
    eigensystem,
    equilibrium,
    field,
    jacobian,
    pack,
    package_field,
    unpack,
)


def constrained_problem_claims(case: Case) -> list[Claim]:
    """The eigenvectors, their rotations and their multipliers as solutions of the problem (paper, Lemma 1).

    Args:
        case: the graph and the points.

    Returns:
        One claim per part of the lemma.
    """
    laplacian = case.system.laplacian
    plain = partial(package_field, barrier=0.0, laplacian=laplacian, dim=case.dim, stop_gradient=False)
    return [
        _kkt(case, plain),
        _rotations_are_solutions(case, plain),
        _minimum(case),
        _dual_solution(case, plain),
        _only_rotations(case),
    ]


def dynamics_claims(case: Case) -> list[Claim]:
    """Where the directions with stop-gradients vanish, and where not (paper, Lemma 2).

    Args:
        case: the graph and the points.

    Returns:
        One claim per part of the lemma.
    """
    return [
        _gradient_formula(case),
        _orders_are_equilibria(case),
        _last_line_of_the_proof(case),
        _rotations_are_no_equilibria(case),
        _no_other_equilibria(case),
    ]


def _kkt(case: Case, plain: Callable[[Matrix], jax.Array]) -> Claim:
    residual = largest(plain(equilibrium(case.system, case.identity, factor=1.0)))
    return claim(
        "lemma-1-kkt",
        "Lemma 1",
        "without stop-gradients u_i = e_i, beta_jk = -lambda_j delta_jk satisfies the KKT conditions"
        " (deviation: largest entry of the gradient and of the constraint errors)",
        residual < ROUNDING,
        residual,
        "the conditions are not satisfied",
    )


def _rotations_are_solutions(case: Case, plain: Callable[[Matrix], jax.Array]) -> Claim:
    first, levels = case.system.vectors[:, : case.dim], np.diag(case.system.values[: case.dim])
    differences = []
    for rotation in case.rotations(case.dim):
        u, mixed = first @ rotation, rotation.T @ levels @ rotation
        # A multiplier below the diagonal stands for a symmetric pair of entries, hence twice.
        differences.append(largest(plain(pack(u, np.diag(np.diag(mixed)) - 2.0 * mixed))))
        differences.append(abs(_energy(u, case.system.laplacian) - levels.sum()))
    return claim(
        "lemma-1-rotations",
        "Lemma 1",
        "every rotation R of the first d eigenvectors has the same objective value and, with the multipliers"
        " -(R' Lambda R), doubled below the diagonal, satisfies the KKT conditions (deviation: largest difference)",
        max(differences) < ROUNDING,
        max(differences),
        "some rotation is not as good",
    )


def _minimum(case: Case) -> Claim:
    frames = case.rotations(case.size)[:, :, : case.dim]
    best = case.system.values[: case.dim].sum()
    below = best - min(_energy(frame, case.system.laplacian) for frame in frames)
    return claim(
        "lemma-1-minimum",
        "Lemma 1",
        "no orthonormal vectors have a smaller objective value than the first d eigenvectors"
        " (deviation: how far the best of random ones lie below; negative where they lie above)",
        below < ROUNDING,
        below,
        "some orthonormal vectors are better",
    )


def _dual_solution(case: Case, plain: Callable[[Matrix], jax.Array]) -> Claim:
    count = case.size * case.dim
    derivative = np.asarray(jax.jacfwd(plain)(equilibrium(case.system, case.identity, factor=1.0)))
    curvature = float(np.linalg.eigvalsh(derivative[:count, :count])[0])
    gap = float(np.sum(case.system.values[: case.dim] - case.system.values[0]))
    return claim(
        "lemma-1-dual",
        "Lemma 1",
        "the multipliers -lambda_j delta_jk solve the dual problem, so u = e minimises the Lagrangian there"
        " (deviation: the most negative curvature of the Lagrangian in u, sign dropped)",
        curvature > -ROUNDING,
        -curvature,
        "the pair satisfies the KKT conditions and no more: there the Lagrangian is unbounded below along"
        " u_i = t e_1 wherever lambda_i > lambda_1. The dual problem is solved by beta_jk = -lambda_1 delta_jk; its"
        f" value is d lambda_1 and the duality gap sum_i (lambda_i - lambda_1) = {gap:.6g}",
    )


def _only_rotations(case: Case) -> Claim:
    """On a ring the second and third eigenvalue are equal, and either eigenvector may be the second component."""
    ring = eigensystem(ring_laplacian(case.size))
    chosen, exchanged = ring.vectors[:, :2], ring.vectors[:, [0, 2]]
    difference = abs(_energy(chosen, ring.laplacian) - _energy(exchanged, ring.laplacian))
    sine = float(np.linalg.norm(exchanged - chosen @ (chosen.T @ exchanged), ord=2))
    return claim(
        "lemma-1-only-rotations",
        "Lemma 1",
        "with repeated eigenvalues too, primal solutions are rotations of the first d eigenvectors: a ring with d = 2"
        " (deviation: sine of the angle between the spans of e_1, e_2 and of e_1, e_3, where those are as good)",
        difference > ROUNDING or sine < ROUNDING,
        sine,
        f"(e_1, e_3) is as good as (e_1, e_2) to {difference:.1e} and spans another space. Right where"
        " lambda_d < lambda_{d+1}; otherwise up to the choice of eigenvectors of lambda_d",
    )


def _gradient_formula(case: Case) -> Claim:
    points = case.random_points(case.num_variables)[:10]
    deviation = max(_direction_deviation(case, point, barrier) for barrier in case.barriers for point in points)
    return claim(
        "lemma-2-gradient",
        "Eq. 7 and 8 (Lemma 2)",
        "the package's gradient by u_i is 2 L u_i + sum_{k <= i} (beta_ik + 2 b e_ik) u_k, its ascent direction e_jk,"
        " and the field that Jacobians are taken of is the same (deviation: largest difference at random points)",
        deviation < ROUNDING,
        deviation,
        "the formula is not the gradient",
    )


def _orders_are_equilibria(case: Case) -> Claim:
    residual = max(largest(_fields(case, case.equilibria(), barrier)) for barrier in case.barriers)
    return claim(
        "lemma-2-equilibria",
        "Lemma 2",
        "each order sigma of any d eigenvectors, with beta_ii = -2 lambda_sigma(i), is an equilibrium"
        " (deviation: largest entry of the directions over all orders and barriers)",
        residual < ROUNDING,
        residual,
        "the directions do not vanish at some order",
    )


def _last_line_of_the_proof(case: Case) -> Claim:
    duals = np.diag(-2.0 * case.system.values[: case.dim])
    points = np.array([pack(case.system.vectors[:, list(order)], duals) for order in case.orders])
    residual = largest(_fields(case, points, case.barriers[0]))
    return claim(
        "lemma-2-last-line",
        "Lemma 2, last line of the proof",
        "the same with beta_ii = -2 lambda_i (deviation: largest entry of the directions over all orders)",
        residual < ROUNDING,
        residual,
        "a slip: the lemma itself has the right index, beta_ii = -2 lambda_sigma(i)",
    )


def _rotations_are_no_equilibria(case: Case) -> Claim:
    first = case.system.vectors[:, : case.dim]
    rotated = [first @ rotation for rotation in case.rotations(case.dim)]
    # At orthonormal u the barrier has no say, and the best duals project 2 L u_i on u_1, ..., u_i.
    points = np.array([pack(u, -2.0 * u.T @ case.system.laplacian @ u) for u in rotated])
    smallest = float(np.linalg.norm(_fields(case, points, case.barriers[0]), axis=1).min())
    return claim(
        "lemma-2-rotations",
        "Lemma 2",
        "no rotation of the first d eigenvectors but permutations is an equilibrium, whatever the duals"
        " (deviation: the smallest norm of the directions over random rotations and all duals)",
        smallest > NO_EQUILIBRIUM,
        smallest,
        "a rotation is an equilibrium, or too near one to tell",
    )


def _no_other_equilibria(case: Case) -> Claim:
    laplacian, barrier = case.system.laplacian, case.barriers[-1]
    found = zeros_found(
        lambda point: np.asarray(package_field(point, barrier, laplacian, case.dim)),
        lambda point: np.asarray(jacobian(point, barrier, laplacian, case.dim)),
        case.random_points(case.num_variables)[:SEARCHES],
    )
    residuals = []
    for point in found:
        u, duals = (np.asarray(part) for part in unpack(point, case.size, case.dim))
        diagonal = np.diag(duals)
        residuals += [largest(laplacian @ u + u * diagonal / 2.0), largest(duals - np.diag(diagonal))]
    return claim(
        "lemma-2-only",
        "Lemma 2",
        "there are no others: equilibria that searches from random points find are eigenvectors with diagonal duals"
        " (deviation: largest residual of L u_i = -beta_ii u_i / 2 and largest dual off the diagonal)",
        len(found) > 0 and max(residuals) < ROUNDING,
        max(residuals, default=0.0),
        f"of {SEARCHES} searches {len(found)} found an equilibrium, and not all of those are eigenvectors",
    )


def _direction_deviation(case: Case, point: Matrix, barrier: float) -> float:
    """The package's directions, and those that Jacobians are taken of, against the formulas (paper, Lemma 2)."""
    u, duals = (np.asarray(part) for part in unpack(point, case.size, case.dim))
    errors = u.T @ u - np.eye(case.dim)
    slopes = 2.0 * case.system.laplacian @ u
    for i in range(case.dim):
        slopes[:, i] += sum((duals[i, k] + 2.0 * barrier * errors[i, k]) * u[:, k] for k in range(i + 1))
    expected = pack(slopes, -errors)
    found = [directions(point, barrier, case.system.laplacian, case.dim) for directions in (package_field, field)]
    return max(largest(directions - expected) for directions in found)


def _fields(case: Case, points: Matrix, barrier: float) -> Matrix:
    """(points, m) the package's directions at each point."""
    return np.array([package_field(point, barrier, case.system.laplacian, case.dim) for point in points])


def _energy(u: Matrix, laplacian: Matrix) -> float:
    return float(np.sum(u * (laplacian @ u)))
