"""The shared terms against the definitions they abbreviate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from beartype import beartype
from jaxtyping import TypeCheckError, jaxtyped
from reversible_chains import Chain

from lapwing.objectives import (
    exact_graph_drawing_energy,
    graph_drawing_energy,
    inner_products,
    orthogonality_error,
)

TERMS = [graph_drawing_energy, inner_products, orthogonality_error]


def test_the_exact_energy_is_the_expected_half_squared_difference(chain: Chain) -> None:
    table = np.random.default_rng(0).normal(size=(8, 3))
    differences = (table[:, None, :] - table[None, :, :]) ** 2
    expected = 0.5 * np.einsum("s,st,std->d", chain.rho, chain.operator, differences)
    actual = exact_graph_drawing_energy(
        jnp.asarray(table), lambda u: jnp.asarray(chain.operator) @ u, jnp.asarray(chain.rho)
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_sampled_pairs_estimate_the_exact_energy(chain: Chain) -> None:
    table = np.random.default_rng(1).normal(size=(8, 2)).astype(np.float32)
    joint = (chain.rho[:, None] * chain.operator).ravel()
    pairs = np.random.default_rng(2).choice(64, size=200_000, p=joint / joint.sum())
    sampled = graph_drawing_energy(jnp.asarray(table[pairs // 8]), jnp.asarray(table[pairs % 8]))
    exact = exact_graph_drawing_energy(
        jnp.asarray(table), lambda u: jnp.asarray(chain.operator) @ u, jnp.asarray(chain.rho)
    )
    np.testing.assert_allclose(sampled, exact, rtol=0.02)


def test_weighted_pairs_are_the_exact_energy(chain: Chain) -> None:
    table = jnp.asarray(np.random.default_rng(3).normal(size=(8, 2)))
    start, end = np.divmod(np.arange(64), 8)
    joint = jnp.asarray((chain.rho[:, None] * chain.operator).ravel())
    exact = exact_graph_drawing_energy(table, lambda u: jnp.asarray(chain.operator) @ u, jnp.asarray(chain.rho))
    np.testing.assert_allclose(graph_drawing_energy(table[start], table[end], joint), exact, rtol=1e-5)


def test_an_eigenvector_has_its_eigenvalue_as_energy(chain: Chain) -> None:
    energies = exact_graph_drawing_energy(
        jnp.asarray(chain.eigenvectors), lambda u: jnp.asarray(chain.operator) @ u, jnp.asarray(chain.rho)
    )
    np.testing.assert_allclose(energies, chain.eigenvalues, atol=1e-5)
    errors = orthogonality_error(jnp.asarray(chain.eigenvectors), jnp.asarray(chain.rho))
    np.testing.assert_allclose(errors, 0, atol=1e-5)


def test_uniform_weights_are_the_plain_mean() -> None:
    values = jax.random.normal(jax.random.key(0), (6, 3))
    weights = jnp.full((6,), 1 / 6)
    np.testing.assert_allclose(inner_products(values), inner_products(values, weights), rtol=1e-5)
    np.testing.assert_allclose(inner_products(values), values.T @ values / 6, rtol=1e-5)


def test_the_stop_gradient_changes_derivatives_and_not_values() -> None:
    values = jax.random.normal(jax.random.key(1), (6, 3))
    np.testing.assert_array_equal(inner_products(values), inner_products(values, stop_gradient=True))
    # <u_2, [[u_0]]> pulls on u_2 alone.
    gradient = jax.grad(lambda u: orthogonality_error(u, stop_gradient=True)[2, 0])(values)
    np.testing.assert_allclose(gradient[:, 2], values[:, 0] / 6, rtol=1e-6)
    assert not gradient[:, :2].any()
    # On the diagonal half of the derivative is gone.
    whole = jax.grad(lambda u: orthogonality_error(u)[1, 1])(values)
    half = jax.grad(lambda u: orthogonality_error(u, stop_gradient=True)[1, 1])(values)
    np.testing.assert_allclose(whole, 2 * half, rtol=1e-6)


@pytest.mark.parametrize("term", TERMS, ids=[term.__name__ for term in TERMS])
def test_the_stated_shapes_hold(term) -> None:
    checked = jaxtyped(term, typechecker=beartype)
    values = jnp.ones((5, 2))
    checked(values, values) if term is graph_drawing_energy else checked(values, jnp.ones(5))
    with pytest.raises(TypeCheckError):
        checked(values, jnp.ones((5, 3)))
