"""Any matrix, weights and options for ``operator`` and ``solve``."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from odd_values import CHEAP, odd_things, result_or_error
from scipy.sparse import coo_array, csr_array

import lapwing as lw
from lapwing.errors import LapwingError, LapwingWarning

pytestmark = pytest.mark.slow

DTYPES = ["f8", "f4", "f2", "c16", "i8", "u1", "?", "O", "U2", "S2", "M8[s]"]
any_arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays(
        np.dtype(dtype),
        array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.none() | st.text(max_size=2) | st.floats() if dtype == "O" else None,
    )
)


@st.composite
def nearly_stochastic(draw: st.DrawFn) -> np.ndarray:
    """Rows that sum to one, as far apart as floats go, and now and then one spoiled entry."""
    size = draw(st.integers(1, 6))
    entries = st.sampled_from([0.0, 0.0, 1.0, 0.5, 1e-3, 1e-9, 1e-17, 1e-300, 5e-324]) | st.floats(0, 1)
    rows = draw(arrays(np.float64, (size, size), elements=entries))
    rows += np.eye(size) * (rows.sum(axis=1) == 0)
    rows /= rows.sum(axis=1, keepdims=True)
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)))
        rows[place] = draw(st.sampled_from([np.nan, np.inf, -0.1, 2.0, 1e308]))
    return rows


def solved(source: Any, dim: Any = 2, **options: Any) -> Any:
    """The representation, or why there is none; a solution that is not one fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        found = result_or_error(lambda: lw.solve(source, dim, **options))
    if isinstance(found, LapwingError):
        return found
    assert np.isfinite(found.mu).all()
    assert (np.diff(found.eigenvalues) >= -1e-9).all()
    assert len(found.certificate().verdicts) == found.dim
    return found


@CHEAP
@given(any_arrays, st.sampled_from([None, "csr", "coo", "list", "tuple"]))
def test_any_array_is_refused_or_solved(array: np.ndarray, form: str | None) -> None:
    makers = {
        "csr": csr_array,
        "coo": coo_array,
        "list": np.ndarray.tolist,
        "tuple": lambda given: tuple(given.tolist()),
    }
    try:
        source = array if form is None else makers[form](array)
    except (TypeError, ValueError, IndexError):
        return  # SciPy has no such matrix, so nobody can give it to us
    solved(source, 1)


@CHEAP
@given(nearly_stochastic(), st.sampled_from([None, "uniform"]), st.integers(1, 3))
def test_any_chain_is_refused_or_solved_in_order_with_finite_numbers(
    matrix: np.ndarray, rho: str | None, dim: int
) -> None:
    solved(matrix, dim, rho=rho)
    solved(csr_array(matrix), dim, rho=rho)


@settings(max_examples=300)
@given(
    st.sampled_from(["dim", "definition", "observation", "slip", "policy", "rho", "layouts"]),
    odd_things | arrays(np.float64, array_shapes(max_dims=2, max_side=12)),
)
def test_any_option_of_solve_is_refused_or_taken(option: str, value: object) -> None:
    solved("GridMaze-7", **{option: value})


@settings(max_examples=300)
@given(odd_things)
def test_anything_to_make_an_operator_from_is_refused_or_taken(source: object) -> None:
    found = result_or_error(lambda: lw.operator(source))
    assert isinstance(found, LapwingError | lw.Operator)


@settings(max_examples=300)
@given(st.integers(1, 5), st.data())
def test_a_sparse_matrix_with_broken_parts_is_refused_and_crashes_nothing(size: int, data: st.DataObject) -> None:
    matrix = csr_array(np.eye(size))
    part = data.draw(st.sampled_from(["data", "indices", "indptr"]))
    damaged = getattr(matrix, part).copy()
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(-9, 9))
    setattr(matrix, part, damaged)
    solved(matrix, 1)
