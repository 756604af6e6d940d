"""Claims about the Jacobian of the dynamics: its blocks, its eigenvalues, and which equilibria are stable."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from lapwing_paper.theory.cases import EIGENVALUE_ROUNDING, ROUNDING, Case, Claim, claim, largest
from lapwing_paper.theory.graphs import bipartite_laplacian, ring_laplacian
from lapwing_paper.theory.jacobians import (
    STABLE_ABOVE,
    Matrix,
    Spectrum,
    eigensystem,
    equilibrium,
    jacobian,
    jacobians,
    needed_barrier,
    paper_blocks,
    paper_dual_blocks,
    paper_norm_eigenvalues,
    paper_order_eigenvalues,
    paper_pair_eigenvalues,
    smallest_real_part,
    spectrum,
    unpack,
)

Formula = Callable[[Matrix, Sequence[int], float], Spectrum]
"""Eigenvalues of the Jacobian from those of the Laplacian, the order and the barrier."""

Found = dict[float, Spectrum]
"""For each barrier the (orders, m) eigenvalues of the Jacobian at every equilibrium."""

ABOVE_TWO = (2.001, 2.5, 10.0, 100.0)
"""Barriers that the paper's ``b > 2`` is tried on."""

SLIGHTLY = 1e-3
"""How far above a threshold a barrier is tried."""


def block_claims(case: Case) -> list[Claim]:
    """The blocks of the Jacobian at a random point against those printed (paper, proof of Theorem 1).

    Args:
        case: the graph and the points.

    Returns:
        One claim per printed block.
    """
    own, cross, columns, rows = np.max([_block_deviations(case, barrier) for barrier in case.barriers], axis=0)
    return [
        claim(
            "theorem-1-own-blocks",
            "Theorem 1, proof: J_ij for i = j",
            "the derivative of g_i by u_i is as printed (deviation: largest entry's difference)",
            own < ROUNDING,
            own,
            "the printed block is not the derivative",
        ),
        claim(
            "theorem-1-cross-blocks",
            "Theorem 1, proof: J_ij for i != j",
            "J_ij, the derivative of g_j by u_i, is 0 for i < j and beta_ij I + 2 b (<u_i, u_j> I + u_i u_j') for i > j"
            " (deviation: largest entry's difference, by this reading or as derivative of g_i by u_j, if that is less)",
            cross < ROUNDING,
            cross,
            "the cases are exchanged: g_j depends on u_i for i <= j only. Right: d g_i / d u_j ="
            " (beta_ij + 2 b <u_i, u_j>) I + 2 b u_j u_i' for j < i, and 0 for j > i; without consequence further on",
        ),
        claim(
            "theorem-1-dual-columns",
            "Theorem 1, proof: J_{beta_jk i}",
            "the derivative of g_i by beta_jk is 2 u_i for i = j = k and u_k for i = j > k"
            " (deviation: largest entry's difference)",
            columns < ROUNDING,
            columns,
            "for i = j = k it is u_i: under the stop-gradient beta_ii enters g_i once. This is why the printed"
            " eigenvalues 2 b +- 2 sqrt(b^2 - 1) are off",
        ),
        claim(
            "theorem-1-dual-rows",
            "Theorem 1, proof: J_{k beta_ij} and J_{beta beta}",
            "the derivative of minus the constraint error e_ij by u_k is -u_j delta_ik - u_i delta_jk, by the duals 0"
            " (deviation: largest entry's difference)",
            rows < ROUNDING,
            rows,
            "the printed rows are not the derivative",
        ),
        _first_condition(case),
    ]


def eigenvalue_claims(case: Case) -> list[Claim]:
    """The printed eigenvalues of the Jacobian and the corrected ones, at every order (paper, proof of Theorem 1).

    Args:
        case: the graph and the points.

    Returns:
        One claim per printed formula, and one for the corrected spectrum.
    """
    found = eigenvalues_found(case)
    corrected = spectrum_deviation(case, found, spectrum)
    return [
        _order_eigenvalues(case, found),
        _norm_eigenvalues(case, found),
        _pair_eigenvalues(case, found),
        claim(
            "theorem-1-corrected-spectrum",
            "Theorem 1, corrected here",
            "with these corrections the three formulas give the whole spectrum, multiplicities included, at every order"
            " (deviation: largest distance between matched eigenvalues)",
            corrected < EIGENVALUE_ROUNDING,
            corrected,
            "the corrected formulas are not the spectrum either",
        ),
    ]


def stability_claims(case: Case) -> list[Claim]:
    """Which equilibria are stable, and from which barrier on (paper, Theorem 1).

    Args:
        case: the graph and the points.

    Returns:
        One claim per statement of the theorem, and one for repeated eigenvalues.
    """
    others = max(float(rows[1:].real.min(axis=1).max()) for rows in eigenvalues_found(case).values())
    above_two = min(smallest_real_part(case.system, case.identity, barrier) for barrier in ABOVE_TWO)
    return [
        claim(
            "theorem-1-others-unstable",
            "Theorem 1",
            "all orders of any d eigenvectors but the identity are unstable, whatever b"
            " (deviation: the largest over orders and barriers of the smallest real part; negative: unstable)",
            others < -STABLE_ABOVE,
            others,
            "some other order has no eigenvalue of negative real part",
        ),
        claim(
            "theorem-1-two-suffices",
            "Theorem 1",
            "for any b > 2 the identity is stable"
            " (deviation: the smallest real part over several b > 2; positive: stable)",
            above_two > STABLE_ABOVE,
            above_two,
            "some b > 2 is not enough",
        ),
        *_barrier_claims(case),
        _repeated(case),
    ]


def eigenvalues_found(case: Case) -> Found:
    """Eigenvalues of the Jacobian, by automatic differentiation and a dense solver.

    Args:
        case: the graph, its barriers and its orders.

    Returns:
        For each barrier the (orders, m) complex eigenvalues.
    """
    points, laplacian = case.equilibria(), case.system.laplacian
    return {
        barrier: np.linalg.eigvals(np.asarray(jacobians(points, barrier, laplacian, case.dim)))
        for barrier in case.barriers
    }


def formula_deviation(case: Case, found: Found, formula: Formula, orders: int | None = None) -> float:
    """Largest distance of a formula's values to the nearest eigenvalue found, over all orders or the first few.

    Args:
        case: the graph and its orders.
        found: from :func:`eigenvalues_found`.
        formula: gives some of the eigenvalues at an order.
        orders: how many orders to try; None for all.

    Returns:
        The distance; 0 where each value of the formula is an eigenvalue.
    """
    worst = 0.0
    for barrier, rows in found.items():
        for order, eigenvalues in zip(case.orders[:orders], rows[:orders], strict=True):
            values = formula(case.system.values, order, barrier)
            worst = max(worst, float(np.abs(values[:, None] - eigenvalues[None, :]).min(axis=1).max()))
    return worst


def spectrum_deviation(case: Case, found: Found, formula: Formula) -> float:
    """Largest distance between a formula's values and the eigenvalues found, matched one to one, over all orders.

    Args:
        case: the graph and its orders.
        found: from :func:`eigenvalues_found`.
        formula: gives all m eigenvalues at an order.

    Returns:
        The distance; 0 where the formula gives the spectrum with its multiplicities.
    """
    worst = 0.0
    for barrier, rows in found.items():
        for order, eigenvalues in zip(case.orders, rows, strict=True):
            distances = np.abs(eigenvalues[:, None] - formula(case.system.values, order, barrier)[None, :])
            worst = max(worst, float(distances[linear_sum_assignment(distances)].max()))
    return worst


def _order_eigenvalues(case: Case, found: Found) -> Claim:
    deviation = formula_deviation(case, found, paper_order_eigenvalues)
    here = formula_deviation(case, found, paper_order_eigenvalues, orders=1)
    swapped = paper_order_eigenvalues(case.system.values, (1, 0, *case.identity[2:]), 1.0).real.min()
    return claim(
        "theorem-1-order-eigenvalues",
        "Theorem 1, proof: third condition",
        "2 (lambda_sigma(j) - lambda_i), i < j, are eigenvalues of the Jacobian at every order sigma"
        " (deviation: largest distance to the nearest eigenvalue)",
        deviation < EIGENVALUE_ROUNDING,
        deviation,
        f"lambda_i must read lambda_sigma(i). As printed it is right at the identity (to {here:.1e}), but with e_1 and"
        f" e_2 exchanged the smallest would be {swapped:.1g}, not negative, and no instability would follow",
    )


def _norm_eigenvalues(case: Case, found: Found) -> Claim:
    deviation = formula_deviation(case, found, paper_norm_eigenvalues)
    return claim(
        "theorem-1-norm-eigenvalues",
        "Theorem 1, proof: second condition",
        "2 b +- 2 sqrt(b^2 - 1) are eigenvalues of the Jacobian"
        " (deviation: largest distance to the nearest eigenvalue)",
        deviation < EIGENVALUE_ROUNDING,
        deviation,
        "right: 2 b +- sqrt(4 b^2 - 2), the roots of x^2 - 4 b x + 2; real from b = 1 / sqrt(2) on, not from b = 1."
        " The real parts are positive for every b > 0 all the same",
    )


def _pair_eigenvalues(case: Case, found: Found) -> Claim:
    deviation = formula_deviation(case, found, paper_pair_eigenvalues)
    here = formula_deviation(case, found, paper_pair_eigenvalues, orders=1)
    return claim(
        "theorem-1-pair-eigenvalues",
        "Theorem 1, proof: first condition",
        "D + b +- sqrt((D + b)^2 - 1), D = lambda_sigma(j) - lambda_i, j < i, are eigenvalues of the Jacobian at every"
        " order sigma (deviation: largest distance to the nearest eigenvalue)",
        deviation < EIGENVALUE_ROUNDING,
        deviation,
        f"lambda_i must read lambda_sigma(i); as printed it is right at the identity (to {here:.1e})",
    )


def _barrier_claims(case: Case) -> list[Claim]:
    """The barrier that is needed, by bisection, beside the paper's bounds."""
    bound = float(np.ptp(case.system.values[: case.dim]))
    needed = needed_barrier(case.system.laplacian, case.dim)
    above = smallest_real_part(case.system, case.identity, bound + SLIGHTLY)
    even = case.size + case.size % 2
    most = needed_barrier(bipartite_laplacian(case.seed, even), even)
    return [
        claim(
            "theorem-1-needed-barrier",
            "Theorem 1, end of the proof",
            "b above the largest difference of the first d eigenvalues is enough"
            " (deviation: the barrier that is needed, by bisection)",
            above > STABLE_ABOVE,
            needed,
            f"slightly above that difference, {bound:.6g}, the smallest real part is {above:.3g}",
        ),
        claim(
            "theorem-1-bound-exact",
            "Theorem 1, how sharp that is (not in the paper)",
            "and nothing less is enough: the barrier needed is lambda_d - lambda_1 (deviation: difference of the two)",
            abs(needed - bound) < EIGENVALUE_ROUNDING,
            abs(needed - bound),
            f"the barrier needed is {needed:.6g}, lambda_d - lambda_1 is {bound:.6g}",
        ),
        claim(
            "theorem-1-two-needed",
            "Theorem 1, how sharp b > 2 is (not in the paper)",
            "no bound below 2 serves all graphs: a two-sided graph with as many components as states needs 2"
            " (deviation: the barrier that is needed there, by bisection)",
            abs(most - 2.0) < EIGENVALUE_ROUNDING,
            most,
            "less is enough there",
        ),
    ]


def _repeated(case: Case) -> Claim:
    """On a ring the second and third eigenvalue are equal: among the first d + 1 for d = 2, beyond them for d = 1."""
    ring = eigensystem(ring_laplacian(case.size))
    inside, beyond = (
        np.linalg.eigvals(np.asarray(jacobian(equilibrium(ring, range(dim)), ABOVE_TWO[0], ring.laplacian, dim)))
        for dim in (2, 1)
    )
    zeros = int(np.sum(np.abs(inside) < EIGENVALUE_ROUNDING))
    rest = np.sort(inside.real)[zeros]
    nearest = max(float(np.abs(eigenvalues).min()) for eigenvalues in (inside, beyond))
    return claim(
        "theorem-1-repeated",
        "Theorem 1, footnote of the proof",
        "where an eigenvalue is repeated, 0 is an eigenvalue of the Jacobian and stability is open: a ring, d = 1 and 2"
        " (deviation: the magnitude of the Jacobian's smallest eigenvalue, the larger of both)",
        nearest < EIGENVALUE_ROUNDING,
        nearest,
        "only if it is repeated among the first d + 1: lambda_1 < ... < lambda_{d+1} is all the theorem needs. With"
        f" d = 1 the ring's smallest real part is {beyond.real.min():.3g}: stable. With d = 2 the eigenvalue 0 occurs"
        f" {zeros} time(s), along the circle of equilibria, and the other real parts begin at {rest:.3g}: the circle"
        " as a whole attracts",
    )


def _block_deviations(case: Case, barrier: float) -> tuple[float, float, float, float]:
    """Largest differences between printed and true blocks: own, crossed, columns of the duals, rows of the duals."""
    count = case.size * case.dim
    point = case.random_points(case.num_variables)[0]
    u, duals = (np.asarray(part) for part in unpack(point, case.size, case.dim))
    true = np.asarray(jacobian(point, barrier, case.system.laplacian, case.dim))
    blocks = true[:count, :count].reshape(case.dim, case.size, case.dim, case.size).transpose(0, 2, 1, 3)
    printed = paper_blocks(u, duals, barrier, case.system.laplacian)
    columns, rows = paper_dual_blocks(u)
    own = np.eye(case.dim, dtype=bool)
    # The paper defines J_ij as the derivative of g_j by u_i; the other reading is tried for fairness.
    cross = min(largest((blocks.swapaxes(0, 1) - printed)[~own]), largest((blocks - printed)[~own]))
    return (
        largest((blocks - printed)[own]),
        cross,
        largest(true[:count, count:] - columns),
        largest(true[count:] - rows),
    )


def _first_condition(case: Case) -> Claim:
    """The printed condition against the Jacobian applied to a vector whose components along eigenvectors are ``c``."""
    levels, vectors, point = case.system.values, case.system.vectors, equilibrium(case.system, case.identity)
    vector = case.random_points(case.num_variables)[0]
    deviations = []
    for barrier in case.barriers:
        image = np.asarray(jacobian(point, barrier, case.system.laplacian, case.dim)) @ vector
        (w, nu), (mapped, _) = (map(np.asarray, unpack(flat, case.size, case.dim)) for flat in (vector, image))
        c, true = w.T @ vectors, mapped.T @ vectors
        for i, j in zip(*np.tril_indices(case.dim, -1), strict=True):
            printed = 2.0 * (levels[j] - levels[i] + barrier) * c[i, j] - 2.0 * barrier * c[j, i] + nu[i, j]
            deviations.append(abs(true[i, j] - printed))
    return claim(
        "theorem-1-condition-sign",
        "Theorem 1, proof: first condition",
        "c_ij (2 (lambda_j - lambda_i) + 2 b - eta) = 2 b c_ji - nu_ij for j < i, at the ordered eigenvectors"
        " (deviation: largest difference on a random vector)",
        max(deviations) < ROUNDING,
        max(deviations),
        "a sign: the right-hand side is -2 b c_ji - nu_ij; without consequence, as c_ji = 0 for these eigenvalues",
    )
