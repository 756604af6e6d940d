"""Energies and products of values against the definitions that they abbreviate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from reversible_chains import Chain

from lapwing.objectives import Values, inner_products


def exact(table: np.ndarray, chain: Chain) -> Values:
    return Values.of_table(jnp.asarray(table), jnp.asarray(chain.operator @ table), jnp.asarray(chain.rho))


def sampled(table: np.ndarray, start: np.ndarray, end: np.ndarray, weights: np.ndarray | None = None) -> Values:
    here, there = jnp.asarray(table[start]), jnp.asarray(table[end])
    return Values(here, there, here, there, None if weights is None else jnp.asarray(weights))


def test_the_exact_energy_is_the_expected_half_squared_difference(chain: Chain) -> None:
    table = np.random.default_rng(0).normal(size=(8, 3))
    differences = (table[:, None, :] - table[None, :, :]) ** 2
    expected = 0.5 * np.einsum("s,st,std->d", chain.rho, chain.operator, differences)
    np.testing.assert_allclose(exact(table, chain).energies(), expected, rtol=1e-5)


def test_sampled_pairs_estimate_the_exact_energies_and_products(chain: Chain) -> None:
    table = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    joint = (chain.rho[:, None] * chain.operator).ravel()
    pairs = np.random.default_rng(2).choice(64, size=200_000, p=joint / joint.sum())
    found = sampled(table, pairs // 8, pairs % 8)
    np.testing.assert_allclose(found.energies(), exact(table, chain).energies(), rtol=0.02)
    np.testing.assert_allclose(found.operator_products(), exact(table, chain).operator_products(), atol=0.01)


def test_all_pairs_with_their_probabilities_are_exact(chain: Chain) -> None:
    table = np.random.default_rng(3).normal(size=(8, 2))
    start, end = np.divmod(np.arange(64), 8)
    weighted = sampled(table, start, end, (chain.rho[:, None] * chain.operator).ravel())
    np.testing.assert_allclose(weighted.energies(), exact(table, chain).energies(), rtol=1e-5)
    products = chain.inner(table, chain.operator @ table)
    np.testing.assert_allclose(weighted.operator_products(), products, atol=1e-5)
    np.testing.assert_allclose(exact(table, chain).operator_products(), products, atol=1e-5)


def test_eigenvectors_have_their_eigenvalues_as_energies_and_no_other_products(chain: Chain) -> None:
    values = exact(chain.eigenvectors, chain)
    np.testing.assert_allclose(values.energies(), chain.eigenvalues, atol=1e-5)
    np.testing.assert_allclose(values.operator_products(), np.diag(1 - chain.eigenvalues), atol=1e-5)
    for products in values.inner_products():
        np.testing.assert_allclose(products, np.eye(8), atol=1e-5)


def test_values_pass_through_jit_and_stay_exact(chain: Chain) -> None:
    values = exact(chain.eigenvectors, chain)
    np.testing.assert_allclose(jax.jit(lambda v: v.energies())(values), values.energies(), atol=1e-6)


def test_uniform_weights_are_the_plain_mean() -> None:
    values = jax.random.normal(jax.random.key(0), (6, 3))
    np.testing.assert_allclose(inner_products(values), inner_products(values, jnp.full((6,), 1 / 6)), rtol=1e-5)
    np.testing.assert_allclose(inner_products(values), values.T @ values / 6, rtol=1e-5)


def test_the_stop_gradient_changes_derivatives_and_not_values() -> None:
    values = jax.random.normal(jax.random.key(1), (6, 3))
    np.testing.assert_array_equal(inner_products(values), inner_products(values, stop_gradient=True))
    # <u_2, [[u_0]]> pulls on u_2 alone.
    gradient = jax.grad(lambda u: inner_products(u, stop_gradient=True)[2, 0])(values)
    np.testing.assert_allclose(gradient[:, 2], values[:, 0] / 6, rtol=1e-6)
    assert not gradient[:, :2].any()
    # On the diagonal half of the derivative is gone.
    whole = jax.grad(lambda u: inner_products(u)[1, 1])(values)
    half = jax.grad(lambda u: inner_products(u, stop_gradient=True)[1, 1])(values)
    np.testing.assert_allclose(whole, 2 * half, rtol=1e-6)


def test_the_stated_shapes_hold() -> None:
    checked = jaxtyped(inner_products, typechecker=beartype)
    checked(jnp.ones((5, 2)), jnp.ones(5))
    with pytest.raises(TypeCheckError):
        checked(jnp.ones((5, 2)), jnp.ones((5, 3)))
