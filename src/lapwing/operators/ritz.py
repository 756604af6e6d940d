"""Rayleigh-Ritz: the best eigenpairs inside the span of any set of functions over a data set."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from lapwing.checks import as_reals, shown
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError
from lapwing.operators.operator import Operator, operator_and_rows

Functions = Callable[[NDArray[Any]], ArrayLike] | ArrayLike

CHUNK_PAIRS = 1 << 16


class Ritz(NamedTuple):
    """One-step eigenvalues mu (m,), largest first, and the rotation (k, m): ``values @ rotation`` are the functions.

    They are orthonormal under the data; m is the rank of the k functions given.
    """

    mu: NDArray[np.float64]
    rotation: NDArray[np.float64]


def rayleigh_ritz(functions: "Functions", data: Trajectories | Operator) -> Ritz:
    """Rotate functions to the eigenfunctions of the one-step operator as far as their span allows.

    Args:
        functions: a function from observations (n, ...) to values (n, k), or the values themselves, one row per
            row of ``data.observations``.
        data: experience, or an operator.

    Returns:
        Eigenvalues and the rotation.

    Example:
        >>> from lapwing.environments import make_world
        >>> from lapwing.operators.operator import operator_from_world
        >>> operator = operator_from_world(make_world("room:4x4"))
        >>> rayleigh_ritz(lambda xy: np.column_stack([xy, np.ones(len(xy))]), operator).mu.round(2)
        array([1.  , 0.85, 0.85])
    """
    gram, cross = quadratic_forms(functions, data)
    return ritz_from_forms(gram, cross)


def ritz_from_forms(gram: NDArray[np.float64], cross: NDArray[np.float64], cut: float = 1e-10) -> Ritz:
    """Solve the k x k problem ``cross w = mu gram w``, leaving out directions in which the functions vanish.

    Args:
        gram: (k, k) ``<u_i, u_j>``, symmetric.
        cross: (k, k) ``<u_i, P u_j>``; its symmetric part is used.
        cut: directions whose eigenvalue of the normalised gram is below this share of the largest are left out.

    Returns:
        (r,) eigenvalues, descending, and the (k, r) rotation; r < k where directions were left out.

    Raises:
        DataError: where a form is not finite, or every function is zero.
    """
    if not (np.isfinite(gram).all() and np.isfinite(cross).all()):
        raise DataError("the functions take values that are NaN or infinite on the data")
    scale = np.sqrt(np.diag(gram))
    if not (scale > 0).any():
        raise DataError("all functions are zero on the data: there is nothing to rotate")
    scale = np.where(scale > 0, scale, 1.0)
    sizes, directions = eigh(gram / np.outer(scale, scale))
    keep = sizes > cut * sizes[-1]
    whitening = directions[:, keep] / np.sqrt(sizes[keep]) / scale[:, None]
    mu, inner = eigh(whitening.T @ ((cross + cross.T) / 2.0) @ whitening)
    return Ritz(mu[::-1].copy(), (whitening @ inner)[:, ::-1].copy())


def quadratic_forms(
    functions: Functions, data: Trajectories | Operator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``<u_j, u_k>`` and ``<u_j, P u_k>`` symmetrised, under the data's own distribution, both ends of a step alike.

    Args:
        functions: a function from observations (n, ...) to values (n, k), or the values themselves, one row per
            row of ``data.observations``.
        data: experience, or an operator.

    Returns:
        (k, k) gram and (k, k) cross, both symmetric.
    """
    if not isinstance(data, (Trajectories, Operator)):
        raise ArgumentError(f"the data must be Trajectories or an Operator, got {shown(data)}")
    if isinstance(data, Trajectories):
        data.require_one_key()
    if not callable(functions) and as_reals(functions) is None:
        raise ArgumentError(f"functions are a function or an array of their values, got {shown(functions)}")
    if isinstance(data, Trajectories) and not data.has_table:
        return _forms_over_pairs(functions, data)
    operator, rows = (data, None) if isinstance(data, Operator) else operator_and_rows(data)
    if not callable(functions) and rows is not None:
        # Values are given per row of the table, of which the operator keeps those with a transition.
        functions = _checked_values(np.asarray(functions), len(data.observations))[rows]
    given = functions(operator.observations) if callable(functions) else functions
    values = _checked_values(np.asarray(given, dtype=np.float64), operator.num_states)
    weighted = values * operator.rho[:, None]
    cross = weighted.T @ (operator.matrix @ values)
    return values.T @ weighted, (cross + cross.T) / 2.0


def _forms_over_pairs(functions: Functions, data: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    gram: NDArray[np.float64] | float = 0.0
    cross: NDArray[np.float64] | float = 0.0
    table = None if callable(functions) else _checked_values(np.asarray(functions), len(data.observations))
    for positions in data.pair_positions(1, chunk=CHUNK_PAIRS):
        before, after = (_values_at(functions, table, data.observations, rows) for rows in (positions, positions + 1))
        gram = gram + (before.T @ before + after.T @ after) / 2.0
        cross = cross + (before.T @ after + after.T @ before) / 2.0
    return np.asarray(gram) / data.num_transitions, np.asarray(cross) / data.num_transitions


def _values_at(
    functions: Functions, table: NDArray[Any] | None, observations: NDArray[Any], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    if table is not None:
        return np.asarray(table[rows], dtype=np.float64)
    assert callable(functions)
    return _checked_values(np.asarray(functions(np.asarray(observations[rows])), dtype=np.float64), len(rows))


def _checked_values(values: NDArray[Any], rows: int) -> NDArray[Any]:
    if values.ndim != 2 or len(values) != rows:
        raise DataError(f"the functions must give values of shape ({rows}, k), got {values.shape}")
    return values
