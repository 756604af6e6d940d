"""The paper's theory checked by numbers on small graphs, claim by claim: whether what it says held, how far off."""

from collections.abc import Sequence
from itertools import permutations
from math import perm

import jax

from lapwing.definitions import Definition
from lapwing.errors import ArgumentError
from lapwing_paper.theory.cases import Case, Claim
from lapwing_paper.theory.equilibria import constrained_problem_claims, dynamics_claims
from lapwing_paper.theory.graphs import random_laplacian
from lapwing_paper.theory.jacobians import eigensystem, needed_barrier
from lapwing_paper.theory.penalties import penalty_claims
from lapwing_paper.theory.stability import block_claims, eigenvalue_claims, stability_claims

__all__ = ["Claim", "check_claims", "needed_barrier"]

MAX_ORDERS = 3000
"""Orders of eigenvectors that are checked one by one; more take minutes."""

PARTS = (constrained_problem_claims, dynamics_claims, penalty_claims, block_claims, eigenvalue_claims, stability_claims)


def check_claims(
    seed: int,
    size: int = 6,
    dim: int = 3,
    barriers: Sequence[float] = (0.1, 0.5, 1.0, 2.5),
    definition: Definition | str = "one_step",
) -> list[Claim]:
    """Check Lemmas 1 and 2, Corollary 1 and Theorem 1 of the paper on one random graph, in float64.

    Args:
        seed: the graph and all random points are functions of it.
        size: number of states.
        dim: number of components, at least 2 and below ``size``; all their injections into the states are tried.
        barriers: the barriers that claims about any ``b`` are tried on.
        definition: which Laplacian of the graph.

    Returns:
        One claim per statement, in the order of the paper.

    Example:
        >>> claims = {claim.name: claim for claim in check_claims(0, size=4, dim=2)}
        >>> claims["lemma-2-equilibria"].held, claims["theorem-1-norm-eigenvalues"].held
        (True, False)
    """
    if not 2 <= dim < size:
        raise ArgumentError(f"the claims need 2 <= dim < size, got dim {dim} and size {size}")
    if not barriers or min(barriers) <= 0:
        raise ArgumentError(f"barriers must be positive numbers, at least one of them, got {list(barriers)}")
    if perm(size, dim) > MAX_ORDERS:
        raise ArgumentError(f"{dim} of {size} states have over {MAX_ORDERS} orders; take fewer states or components")
    system = eigensystem(random_laplacian(seed, size, definition))
    case = Case(system, dim, tuple(barriers), tuple(permutations(range(size), dim)), seed)
    with jax.enable_x64(True):
        return [claim for part in PARTS for claim in part(case)]
