# ruff: noqa: F722  # jaxtyping writes shapes as strings
"""The augmented Lagrangian Laplacian objective (paper, Eq. 6): ordered eigenvectors, and eigenvalues from its duals."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lapwing.checks import as_real, shown
from lapwing.errors import ArgumentError
from lapwing.objectives.constraints import Barrier, BarrierState, Constraints, require_not_negative, require_positive
from lapwing.objectives.objective import Details, Evaluation, Objective, Values


class AlloState(NamedTuple):
    """The duals, lower-triangular (d, d) with zeros above the diagonal, and the barrier."""

    duals: Float[Array, "d d"]
    barrier: BarrierState


def allo(
    barrier: float = 2.0,
    barrier_rate: float = 0.01,
    dual_rate: float = 0.01,
    duals: bool = True,
    stop_gradient: bool = True,
    max_barrier: float = 1e4,
    max_dual: float = 4.0,
    error_average_rate: float = 0.1,
    initial_dual: float = 0.0,
) -> Objective:
    """The augmented Lagrangian Laplacian objective (paper, Eq. 6), with parts that switch off one by one.

    With ``e_jk = <u_j, [[u_k]]> - delta_jk`` the loss is
    ``sum_i <u_i, L u_i> + sum_{k <= j} beta_jk e_jk + b sum_{k <= j} e_jk^2``; its gradient with respect to ``u_i`` is
    ``2 L u_i + sum_{k <= i} (beta_ik + 2 b e_ik) u_k`` (paper, Lemma 2). The square is the product of the two batches'
    errors. After each step ``beta_jk <- clip(beta_jk + dual_rate e_jk)`` for ``k <= j`` and ``b`` grows.
    Eigenvalues: the multipliers without lag, ``-(beta_ii + 2 b e_ii) / 2``; see :func:`multiplier_eigenvalues`, and
    :func:`dual_eigenvalues` for the raw ``-beta_ii / 2``. At the equilibrium ``beta_ii = -2 lambda_i`` (Lemma 2).

    Args:
        barrier: ``b`` at the start; above 2 the equilibrium is stable whatever the operator (Theorem 1).
        barrier_rate: growth of ``b``, see :class:`Barrier`; 0 keeps it fixed.
        dual_rate: step of the dual ascent; the duals follow the multipliers with a lag of ``2 b / dual_rate`` steps.
        duals: False leaves the duals at 0 (ablation); the eigenvalues are then ``-b e_ii``, the penalty's own estimate.
        stop_gradient: False drops the stop-gradient (ablation): a plain augmented Lagrangian, for which rotations are
            equilibria, ``beta_ii = -lambda_i`` (Lemma 1) and the eigenvalues are read with factor 1, not 1/2.
        max_barrier: ``b`` stops growing here.
        max_dual: duals stay in [-max_dual, max_dual]. No eigenvalue of ``I - f(P)`` exceeds 2: 4 cuts off nothing real.
        error_average_rate: rate of the running mean of squared errors that ``b`` grows with.
        initial_dual: ``beta_ii`` at the start, not above 0: every component begins as if its eigenvalue were
            ``-initial_dual / 2``, and is pushed away from zero before the barrier is felt.

    Returns:
        The objective.

    Note:
        Where the graph term lacks its half, ``b``, its rate, the dual rate and the duals are twice as large for the
        same dynamics: the authors' 0.5, 0.01 and 1e-4 are
        ``allo(barrier=0.25, barrier_rate=0.005, dual_rate=5e-5)``. Wayfarer (Lintunen and Machado, 2026), whose code is
        not public, has a fixed ``b = 0.5`` and diagonal duals from -2. Its ``b`` is that of the authors' code, and the
        graph term of the one public port lacks its half. So in these units, with the authors' dual rate, it is
        ``allo(barrier=0.25, barrier_rate=0.0, dual_rate=5e-5, initial_dual=-1.0)``; its networks end in
        ``outputs="symlog"``. Until its dual has moved, a mode with ``lambda >= b - initial_dual / 2`` vanishes.

    Example:
        >>> allo(barrier=2.0).init(2).duals
        Array([[0., 0.],
               [0., 0.]], dtype=float32)
    """
    growth = Barrier(barrier, barrier_rate, error_average_rate, max_barrier)
    require_not_negative("dual_rate", dual_rate)
    require_positive("max_dual", max_dual)
    start, lowest = as_real(initial_dual), -float(max_dual)
    if start is None or not lowest <= start <= 0:
        raise ArgumentError(f"initial_dual must lie in [-max_dual, 0], here [{lowest}, 0]; got {shown(initial_dual)}")

    def init(dim: int) -> AlloState:
        return AlloState(start * jnp.eye(dim, dtype=jnp.result_type(float)), growth.init())

    def loss(state: AlloState, values: Values) -> tuple[jax.Array, Evaluation]:
        aux = Constraints.of(values, state.barrier.coefficient, stop_gradient)
        graph = jnp.sum(aux.energies)
        # The duals are lower-triangular, so the linear term needs no mask.
        linear = jnp.sum(state.duals * (aux.errors_first + aux.errors_second)) / 2
        penalty = state.barrier.coefficient * jnp.sum(jnp.tril(aux.squares))
        return graph + linear + penalty, aux.evaluation(graph=graph, dual=linear, penalty=penalty)

    def update(state: AlloState, aux: Constraints) -> AlloState:
        rate = dual_rate if duals else 0.0
        ascended = jnp.clip(state.duals + rate * jnp.tril(aux.errors), -max_dual, max_dual)
        return AlloState(ascended.astype(state.duals.dtype), growth.grow(state.barrier, aux))

    def eigenvalues(state: AlloState, aux: Constraints) -> jax.Array:
        return multiplier_eigenvalues(state, aux, stop_gradient)

    def details(state: AlloState) -> Details:
        stopped = (jnp.abs(state.duals) >= max_dual * (1 - 1e-6)).any(axis=1)
        raw = dual_eigenvalues(state, stop_gradient)
        return Details({"dual": raw}, {"duals": stopped, "barrier": growth.stopped(state.barrier)})

    return Objective(init, loss, update, eigenvalues, details)


def dual_eigenvalues(state: AlloState, stop_gradient: bool = True) -> Float[Array, " d"]:
    """Eigenvalues read from the duals alone, ``-beta_ii / 2`` (paper, Lemma 2): ``2 b / dual_rate`` steps late.

    Without the stop-gradient the diagonal constraint is differentiated on both sides, and the estimate is ``-beta_ii``.

    Args:
        state: of :func:`allo`.
        stop_gradient: whether the objective has its stop-gradient.

    Returns:
        (d,) eigenvalues of the training operator.

    Example:
        >>> dual_eigenvalues(allo().init(2)._replace(duals=jnp.diag(jnp.array([-0.2, -0.5]))))
        Array([0.1 , 0.25], dtype=float32)
    """
    return -jnp.diagonal(state.duals) / (2 if stop_gradient else 1)


def multiplier_eigenvalues(state: AlloState, aux: Constraints, stop_gradient: bool = True) -> Float[Array, " d"]:
    """Eigenvalues read without the duals' lag, ``-(beta_ii + 2 b e_ii) / 2`` (paper, Lemma 2).

    Wherever the gradient with respect to ``u_i`` vanishes, ``2 L u_i + sum_{k <= i} (beta_ik + 2 b e_ik) u_k = 0``: the
    whole bracket is the multiplier, however far the duals have come. Without the stop-gradient the factor is 1.

    Args:
        state: the one that ``aux`` was computed with, or the next one: they differ by one dual step.
        aux: errors and barrier of an evaluation of the loss.
        stop_gradient: whether the objective has its stop-gradient.

    Returns:
        (d,) eigenvalues of the training operator.
    """
    multipliers = jnp.diagonal(state.duals + 2 * aux.barrier * aux.errors)
    return -multipliers / (2 if stop_gradient else 1)
