"""Claims about objectives without duals, GDO and GGDO: what their equilibria are, and which of them are stable."""

from functools import partial

import jax
import numpy as np

from lapwing.objectives import Objective, gdo, ggdo
from lapwing_paper.theory.cases import NO_EQUILIBRIUM, ROUNDING, SEARCHES, Case, Claim, claim, largest, zeros_found
from lapwing_paper.theory.jacobians import STABLE_ABOVE, Matrix, exact_loss

PENALTY_BARRIER = 2.5
"""``b`` of both objectives: above half of any eigenvalue, so that no eigenvector collapses to nothing."""

GDO, GGDO = gdo(PENALTY_BARRIER), ggdo(PENALTY_BARRIER)


def penalty_claims(case: Case) -> list[Claim]:
    """Equilibria without duals: what they violate, their rotations, their stability (paper, Corollary 1).

    Args:
        case: the graph and the points.

    Returns:
        One claim per part of the corollary.
    """
    return [
        _equilibria_violate(case),
        _violations_are_equilibria(case),
        _eigenvectors_are_no_equilibrium(case),
        _rotations_are_equilibria(case),
        _other_orders_are_stable(case),
    ]


def _equilibria_violate(case: Case) -> Claim:
    shrunk = _shrunk(case, case.identity)
    residual = max(largest(_slope(shrunk, case.system.laplacian, objective)) for objective in (GDO, GGDO))
    violated = float(np.abs(shrunk.T @ shrunk - np.eye(case.dim)).max(axis=1).min())
    alone = largest(_slope(case.system.vectors[:, :1], case.system.laplacian, GDO))
    return claim(
        "corollary-1-only-if",
        "Corollary 1",
        "at equilibria of GDO and GGDO, e.g. eigenvectors shrunk to |u_i|^2 = 1 - lambda_i / (2 b), each u_i violates"
        " some constraint (deviation: the violation of the component that violates least)",
        residual < ROUNDING < violated,
        violated,
        f"the gradient there is {residual:.1e}, and the component of eigenvalue 0 violates none, as L u_i = 0 needs no"
        " force to balance it. Right: every i with L u_i != 0 violates one, on a connected graph all but at most one;"
        f" with d = 1 the equilibrium is e_1 itself (gradient {alone:.1e})",
    )


def _violations_are_equilibria(case: Case) -> Claim:
    points = case.random_points(case.size * case.dim).reshape(-1, case.size, case.dim)
    smallest = _smallest_slope(case, points, GDO, GGDO)
    return claim(
        "corollary-1-if",
        "Corollary 1",
        "wherever each component violates some constraint there is an equilibrium"
        " (deviation: the smallest gradient norm at random points, which violate all)",
        smallest < ROUNDING,
        smallest,
        "of the 'if and only if' only one direction can be meant: violation is necessary, not sufficient",
    )


def _eigenvectors_are_no_equilibrium(case: Case) -> Claim:
    smallest = _smallest_slope(case, case.system.vectors[None, :, : case.dim], GDO, GGDO)
    return claim(
        "corollary-1-eigenvectors",
        "Corollary 1",
        "the orthonormal eigenvectors e_1, ..., e_d are no equilibrium (deviation: the gradient norm there)",
        smallest > NO_EQUILIBRIUM,
        smallest,
        "they are one",
    )


def _rotations_are_equilibria(case: Case) -> Claim:
    turned = _shrunk(case, case.identity) @ case.rotations(case.dim)
    plain = max(largest(_slope(u, case.system.laplacian, GDO)) for u in turned)
    generalised = _smallest_slope(case, turned, GGDO)
    residual, count = _generalised_equilibria(case)
    return claim(
        "ggdo-rotations",
        "Section 2, after Eq. 4; Section 4, before Corollary 1",
        "rotations of the eigenvectors, shrunk as above, are equilibria of GGDO"
        " (deviation: the smallest gradient norm over random rotations)",
        generalised < ROUNDING,
        generalised,
        f"true of GDO (gradient {plain:.1e}), not of GGDO: with strictly decreasing coefficients its equilibria are"
        " orthogonal eigenvectors of squared norm 1 - lambda / (2 b), or 0; so are the"
        f" {count} that {SEARCHES} searches from random points found, to {residual:.1e}",
    )


def _other_orders_are_stable(case: Case) -> Claim:
    """GGDO is a true loss: an equilibrium is stable where the Hessian's smallest eigenvalue is positive."""
    shrunk = [_shrunk(case, order) for order in case.orders]
    curvatures = [float(np.linalg.eigvalsh(_hessian(u, case.system.laplacian, GGDO))[0]) for u in shrunk]
    others = max(curvatures[1:])
    return claim(
        "ggdo-stability",
        "Section 4, before Theorem 1",
        "in contrast with ALLO, under GGDO some other order of the eigenvectors is stable or the right one is not"
        " (deviation: the largest over the other orders of the smallest curvature; negative where all are unstable)",
        others > -STABLE_ABOVE or curvatures[0] < STABLE_ABOVE,
        others,
        f"under GGDO too the right order alone is stable (smallest curvature {curvatures[0]:.3g}), whenever"
        " b > lambda_d / 2. GGDO misses the eigenvectors' length, not their order",
    )


def _generalised_equilibria(case: Case) -> tuple[float, int]:
    """How far equilibria of GGDO that searches found are from orthogonal shrunk eigenvectors, and their number."""
    laplacian, shape = case.system.laplacian, (case.size, case.dim)
    found = zeros_found(
        lambda flat: np.asarray(_slope(flat.reshape(shape), laplacian, GGDO)).ravel(),
        lambda flat: np.asarray(_hessian(flat.reshape(shape), laplacian, GGDO)),
        case.random_points(case.size * case.dim)[:SEARCHES],
    )
    residuals = []
    for u in found.reshape(-1, *shape):
        gram = u.T @ u
        levels = 2.0 * PENALTY_BARRIER * (1.0 - np.diag(gram))
        residuals += [largest(gram - np.diag(np.diag(gram))), largest(laplacian @ u - u * levels)]
    return max(residuals, default=0.0), len(found)


def _shrunk(case: Case, order: tuple[int, ...]) -> Matrix:
    """Eigenvectors of squared norm ``1 - lambda / (2 b)``, where the penalty balances the energy."""
    chosen = list(order)
    return case.system.vectors[:, chosen] * np.sqrt(1.0 - case.system.values[chosen] / (2.0 * PENALTY_BARRIER))


def _smallest_slope(case: Case, points: Matrix, *objectives: Objective) -> float:
    """The smallest gradient norm of any of the objectives at any of the points."""
    slopes = [_slope(u, case.system.laplacian, objective) for objective in objectives for u in points]
    return min(float(np.linalg.norm(slope)) for slope in slopes)


@partial(jax.jit, static_argnames="objective")
def _slope(u: jax.Array, laplacian: jax.Array, objective: Objective) -> jax.Array:
    state = objective.init(u.shape[1])
    return jax.grad(lambda components: exact_loss(objective, state, components, laplacian)[0])(u)


@partial(jax.jit, static_argnames="objective")
def _hessian(u: jax.Array, laplacian: jax.Array, objective: Objective) -> jax.Array:
    """(nd, nd) second derivatives, in the order of ``u.ravel()``."""
    return jax.jacfwd(lambda components: _slope(components, laplacian, objective))(u).reshape(u.size, u.size)
