"""The generalized graph drawing objective (paper, Eq. 4): coefficients break the symmetry of the minimum."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lapwing.errors import ArgumentError
from lapwing.objectives.constraints import Barrier, BarrierState, Constraints, rayleigh_quotients
from lapwing.objectives.objective import Details, Evaluation, Objective, Values


def ggdo(
    barrier: float = 2.0,
    coefficients: Sequence[float] | None = None,
    barrier_rate: float = 0.0,
    max_barrier: float = 1e4,
    error_average_rate: float = 0.1,
) -> Objective:
    """The generalized graph drawing objective of Wang et al. (2021) (paper, Eq. 4).

    Loss: ``sum_i c_i <u_i, L u_i> + b sum_jk min(c_j, c_k) (<u_j, u_k> - delta_jk)^2``.
    Eigenvalues: Rayleigh quotients ``<u_i, L u_i> / <u_i, u_i>``, factor 1.

    Args:
        barrier: ``b`` at the start. As in GDO, a mode of eigenvalue lambda shrinks to ``1 - lambda / (2 b)``, and
            modes with ``lambda >= 2 b`` vanish.
        coefficients: (d,) strictly decreasing, positive ``c``; None for ``d, ..., 1``.
        barrier_rate: growth of ``b`` (the paper's ablation); 0 keeps it fixed. See :class:`Barrier`.
        max_barrier: ``b`` stops growing here.
        error_average_rate: rate of the running mean of squared errors that ``b`` grows with.

    Returns:
        The objective.

    Example:
        >>> ggdo(coefficients=[3.0, 2.0, 0.5]).init(3).coefficient
        Array(2., dtype=float32)
    """
    growth = Barrier(barrier, barrier_rate, error_average_rate, max_barrier)
    given = None if coefficients is None else _checked_coefficients(coefficients)

    def init(dim: int) -> BarrierState:
        _coefficients_for(dim, given)
        return growth.init()

    def loss(state: BarrierState, values: Values) -> tuple[jax.Array, Evaluation]:
        aux = Constraints.of(values, state.coefficient, stop_gradient=False)
        c = jnp.asarray(_coefficients_for(len(aux.energies), given), dtype=aux.energies.dtype)
        graph = c @ aux.energies
        penalty = state.coefficient * jnp.sum(jnp.minimum(c[:, None], c[None, :]) * aux.squares)
        return graph + penalty, aux.evaluation(graph=graph, penalty=penalty)

    def eigenvalues(state: BarrierState, aux: Constraints) -> jax.Array:
        return rayleigh_quotients(aux.energies, aux.norms)

    def details(state: BarrierState) -> Details:
        return Details({}, {"barrier": growth.stopped(state)})

    return Objective(init, loss, growth.grow, eigenvalues, details)


def _checked_coefficients(coefficients: Sequence[float]) -> np.ndarray:
    """The sequence as an array, refused unless strictly decreasing and positive: else the order is not determined."""
    c = np.asarray(coefficients, dtype=np.float64)
    if c.ndim != 1 or not np.all(np.isfinite(c)) or np.any(np.diff(c) >= 0) or np.any(c <= 0):
        raise ArgumentError(
            f"coefficients must be a strictly decreasing sequence of positive numbers (Eq. 3), got {list(coefficients)}"
        )
    return c


def _coefficients_for(dim: int, given: np.ndarray | None) -> np.ndarray:
    """The given sequence, or the linear one that Wang et al. found best: ``c_i = d - i + 1``."""
    if given is None:
        return np.arange(dim, 0, -1, dtype=np.float64)
    if given.shape[0] != dim:
        raise ArgumentError(f"ggdo was given {given.shape[0]} coefficients for {dim} components; give one for each")
    return given
