"""Exact tables: energies and gradients against float64 formulas, dense and sparse."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

import lapwing as lw
from lapwing.errors import DataError
from lapwing.operators.lags import LagDistribution, geometric_lags
from lapwing.operators.operator import Operator
from lapwing.training import batches as exact
from lapwing.training.batches import ExactTable, dense_operator, exact_table

LAGS = geometric_lags([0.9, 0.98])


@pytest.fixture(scope="module")
def counted() -> Operator:
    """Counts of few, short episodes: rho is far from uniform."""
    operator = lw.operator(lw.collect("GridMaze-9", steps=400, episode_length=(3, 9), seed=1))
    assert operator.rho.max() > 2.0 * operator.rho.min()
    return operator


@pytest.fixture(scope="module")
def values(counted: Operator) -> NDArray[np.float64]:
    return np.random.default_rng(0).standard_normal((counted.num_states, 3))


def mixed(operator: Operator, lags: LagDistribution) -> NDArray[np.float64]:
    """f(P) without symmetrising anything: a counted P is reversible, so that f(P) is as well."""
    p, identity = operator.matrix.toarray(), np.eye(operator.num_states)
    if lags.weights is not None:
        return np.asarray(sum(w * np.linalg.matrix_power(p, k) for k, w in enumerate(lags.weights, 1)))
    pairs = zip(lags.discounts, lags.shares, strict=True)
    return np.asarray(sum(share * (1.0 - g) * p @ np.linalg.inv(identity - g * p) for g, share in pairs))


def energies_of(operator: Operator, f: NDArray[np.float64], u: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((operator.rho[:, None] * u * (u - f @ u)).sum(axis=0))


def energies_in(table: ExactTable) -> Callable[[NDArray[np.float64]], jax.Array]:
    return lambda u: table.values(lambda observations: jnp.asarray(u)).energies()


def make(
    operator: Operator, sparse: bool, monkeypatch: pytest.MonkeyPatch, lags: LagDistribution = LAGS
) -> tuple[ExactTable, LagDistribution]:
    if sparse:
        monkeypatch.setattr(exact, "DENSE_STATES", 0)
    return exact_table(operator, lags)


@pytest.mark.parametrize("sparse", [False, True])
def test_energies_are_those_of_the_reported_operator(
    counted: Operator, values: NDArray[np.float64], sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, lags = make(counted, sparse, monkeypatch)
    assert (lags.weights is not None) == sparse
    expected = energies_of(counted, mixed(counted, lags), values)
    np.testing.assert_allclose(energies_in(table)(values.astype(np.float32)), expected, rtol=2e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_is_that_of_finite_differences(
    counted: Operator, values: NDArray[np.float64], sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, lags = make(counted, sparse, monkeypatch)
    f = mixed(counted, lags)
    coefficients = np.array([1.0, 2.0, -0.5])
    energies = energies_in(table)
    gradient = jax.grad(lambda u: jnp.dot(energies(u), coefficients.astype(np.float32)))(values.astype(np.float32))
    step = 1e-4
    differences = np.empty_like(values)
    for place in np.ndindex(*values.shape):
        moved = np.zeros_like(values)
        moved[place] = step
        up, down = (energies_of(counted, f, values + sign * moved) @ coefficients for sign in (1.0, -1.0))
        differences[place] = (up - down) / (2.0 * step)
    np.testing.assert_allclose(gradient, differences, atol=1e-5 * np.abs(differences).max())


def test_the_sparse_path_agrees_with_the_dense_one_up_to_the_tail(
    counted: Operator, values: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    lags = geometric_lags([0.9])
    dense = energies_in(make(counted, False, monkeypatch, lags)[0])(values.astype(np.float32))
    cut, kept = make(counted, True, monkeypatch, lags)
    assert kept.weights is not None
    # A thousandth of the lags is moved, and no lag changes an energy by more than twice the norm.
    assert 0.9 ** len(kept.weights) <= exact.TAIL
    norms = (counted.rho[:, None] * values**2).sum(axis=0)
    difference = np.abs(np.asarray(energies_in(cut)(values.astype(np.float32))) - np.asarray(dense))
    assert (difference <= 2.0 * exact.TAIL * norms).all()
    assert difference.max() > 0.0


def test_long_horizons_are_cut_to_a_bounded_number_of_powers(
    counted: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = make(counted, True, monkeypatch, geometric_lags([0.999]))[1].weights
    assert cut is not None
    assert len(cut) == exact.MAX_TERMS
    np.testing.assert_allclose(cut, 0.999 ** np.arange(512) / (0.999 ** np.arange(512)).sum(), rtol=1e-10)


def test_constraints_are_measured_on_all_states_with_their_weights(
    counted: Operator, values: NDArray[np.float64], monkeypatch: pytest.MonkeyPatch
) -> None:
    u = jnp.asarray(values, dtype=jnp.float32)
    for sparse in (False, True):
        found = make(counted, sparse, monkeypatch)[0].values(lambda observations: u)
        assert found.exact
        assert found.first is found.second is u
        np.testing.assert_allclose(found.weights, counted.rho, rtol=1e-6)


def test_a_known_matrix_saves_computing_it(counted: Operator, values: NDArray[np.float64]) -> None:
    own, given = (exact_table(counted, LAGS, matrix)[0] for matrix in (None, dense_operator(counted, LAGS)))
    u = values.astype(np.float32)
    np.testing.assert_array_equal(energies_in(own)(u), energies_in(given)(u))


def test_the_constant_has_no_energy(counted: Operator) -> None:
    ones = np.ones((counted.num_states, 1), dtype=np.float32)
    assert abs(float(energies_in(exact_table(counted, LAGS)[0])(ones)[0])) < 1e-6


@pytest.mark.parametrize("sparse", [False, True])
def test_weights_that_are_not_stationary_are_refused(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Their operator has eigenvalues above 1, whose powers grow without bound.
    policy = np.random.default_rng(0).dirichlet(np.ones(4), size=13)
    operator = lw.operator("GridMaze-9", policy=policy, rho="uniform")
    assert lw.solve(operator, 1).mu[0] > 1.0
    with pytest.raises(DataError):
        make(operator, sparse, monkeypatch)
