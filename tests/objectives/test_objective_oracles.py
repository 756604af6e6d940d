"""Descent on a table of values with exact batches, against a dense eigensolver, on a chain with a non-uniform rho."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reversible_chains import Chain

from lapwing.objectives import (
    Objective,
    Values,
    agdo,
    allo,
    dual_eigenvalues,
    gdo,
    ggdo,
    nested_lora,
    neural_ef,
    omm,
    permuted,
    quadratic_penalty,
    spectral_contrastive,
    vamp2,
)

DIM = 4


def descend(
    objective: Objective, chain: Chain, steps: int, rate: float = 0.5, start: jax.Array | None = None, state: Any = None
) -> tuple[np.ndarray, Any, Any]:
    """Plain gradient descent in float64; call inside ``enable_x64``. Gives the table, the state and the last aux."""
    operator, rho = jnp.asarray(chain.operator), jnp.asarray(chain.rho)

    def loss(table: jax.Array, state: Any) -> Any:
        return objective.loss(state, Values.of_table(table, operator @ table, rho))

    def step(carry: Any, _: None) -> Any:
        table, state = carry
        (_, seen), gradient = jax.value_and_grad(loss, has_aux=True)(table, state)
        return (table - rate * gradient, objective.update(state, seen.aux)), None

    table = jax.random.normal(jax.random.key(0), (8, DIM)) * 0.5 if start is None else start
    state = objective.init(DIM) if state is None else state
    (table, state), _ = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=steps))((table, state))
    return np.asarray(table), state, jax.jit(loss)(table, state)[1].aux


def sign_free_error(table: np.ndarray, chain: Chain) -> float:
    truth = chain.eigenvectors[:, : table.shape[1]]
    signs = np.sign(np.sum(chain.rho[:, None] * table * truth, axis=0))
    return float(np.abs(table * signs - truth).max())


def cosines(table: np.ndarray, chain: Chain) -> np.ndarray:
    truth = chain.eigenvectors[:, : table.shape[1]]
    return np.abs(np.diag(chain.inner(table, truth))) / np.sqrt(np.diag(chain.inner(table, table)))


def span_error(table: np.ndarray, chain: Chain) -> float:
    truth = chain.eigenvectors[:, : table.shape[1]]
    return float(np.abs(table - truth @ chain.inner(truth, table)).max())


@pytest.mark.parametrize("barrier_rate", [0.0, 0.01], ids=["fixed", "growing"])
def test_allo_reaches_the_eigenvectors_and_its_duals_the_eigenvalues(chain: Chain, barrier_rate: float) -> None:
    with jax.enable_x64(True):
        objective = allo(2.5, barrier_rate, dual_rate=0.05)
        table, state, aux = descend(objective, chain, 8_000)
        assert sign_free_error(table, chain) < 1e-5
        np.testing.assert_allclose(state.duals, -2 * np.diag(chain.eigenvalues[:DIM]), atol=1e-5)
        np.testing.assert_allclose(dual_eigenvalues(state), chain.eigenvalues[:DIM], atol=1e-5)
        np.testing.assert_allclose(objective.eigenvalues(state, aux), chain.eigenvalues[:DIM], atol=1e-5)


def test_the_multipliers_are_right_long_before_the_duals(chain: Chain) -> None:
    with jax.enable_x64(True):
        objective = allo(2.5, 0.0, dual_rate=1e-5)
        _, state, aux = descend(objective, chain, 8_000)
        truth = chain.eigenvalues[:DIM]
        assert np.abs(dual_eigenvalues(state) - truth).max() > 0.1
        assert np.abs(objective.eigenvalues(state, aux) - truth).max() < 2e-3


def test_the_quadratic_penalty_orders_but_shortens_as_predicted(chain: Chain) -> None:
    with jax.enable_x64(True):
        objective = quadratic_penalty(2.5)
        table, state, aux = descend(objective, chain, 8_000)
        truth = chain.eigenvalues[:DIM]
        np.testing.assert_allclose(cosines(table, chain), 1, atol=1e-8)
        np.testing.assert_allclose(np.diag(chain.inner(table, table)), 1 - truth / 2.5, atol=1e-6)
        np.testing.assert_allclose(objective.eigenvalues(state, aux), truth, atol=1e-6)


def test_gdo_reaches_the_span_only(chain: Chain) -> None:
    with jax.enable_x64(True):
        table, _, aux = descend(gdo(2.5), chain, 8_000)
        assert span_error(table, chain) < 1e-5
        assert cosines(table, chain).min() < 0.95
        lengths = np.linalg.eigvalsh(chain.inner(table, table))[::-1]
        np.testing.assert_allclose(lengths, 1 - chain.eigenvalues[:DIM] / 5, atol=1e-6)
        assert np.abs(aux.errors).max() > 1e-2


def test_ggdo_reaches_the_eigenvectors_shortened(chain: Chain) -> None:
    with jax.enable_x64(True):
        objective = ggdo(2.5)
        table, state, aux = descend(objective, chain, 20_000, rate=0.1)
        truth = chain.eigenvalues[:DIM]
        np.testing.assert_allclose(cosines(table, chain), 1, atol=1e-6)
        np.testing.assert_allclose(np.diag(chain.inner(table, table)), 1 - truth / 5, atol=1e-5)
        np.testing.assert_allclose(objective.eigenvalues(state, aux), truth, atol=1e-5)


def test_a_small_barrier_makes_ggdo_lose_the_upper_modes(chain: Chain) -> None:
    with jax.enable_x64(True):
        barrier = float(chain.eigenvalues[2] + chain.eigenvalues[3]) / 4
        objective = ggdo(barrier)
        table, state, aux = descend(objective, chain, 20_000, rate=0.3)
        lengths = np.diag(chain.inner(table, table))
        assert lengths[3] < 0.01 < 0.1 < lengths[:3].min()
        assert np.isfinite(objective.eigenvalues(state, aux)).all()


def test_growth_of_the_barrier_brings_the_penalty_methods_nearer(chain: Chain) -> None:
    with jax.enable_x64(True):
        for make in (lambda r: ggdo(1.0, barrier_rate=r), lambda r: allo(1.0, r, duals=False)):
            fixed = descend(make(0.0), chain, 8_000, rate=0.05)[0]
            grown = descend(make(0.1), chain, 8_000, rate=0.05)[0]
            assert sign_free_error(grown, chain) < 0.7 * sign_free_error(fixed, chain)


def test_without_the_stop_gradient_the_span_is_found_but_not_the_eigenvectors(chain: Chain) -> None:
    with jax.enable_x64(True):
        table, _, aux = descend(allo(2.5, 0.0, dual_rate=0.05, stop_gradient=False), chain, 8_000, rate=0.2)
        assert span_error(table, chain) < 1e-5
        assert np.abs(aux.errors).max() < 1e-5
        assert cosines(table, chain).min() < 0.95


def test_from_a_wrong_order_allo_recovers(chain: Chain) -> None:
    with jax.enable_x64(True):
        noise = 1e-3 * np.random.default_rng(1).normal(size=(8, DIM))
        start = jnp.asarray(chain.eigenvectors[:, [3, 1, 0, 2]] + noise)
        table, _, _ = descend(allo(2.5, 0.0, dual_rate=0.05), chain, 10_000, start=start)
        assert sign_free_error(table, chain) < 1e-5


def test_permuted_outputs_are_recovered_from(chain: Chain) -> None:
    with jax.enable_x64(True):
        period = 6_000
        objective = permuted(allo(2.5, 0.0, dual_rate=0.05), every=period, seed=1)
        table, state, _ = descend(objective, chain, period)
        order = np.asarray(objective.details(state).order)
        assert sorted(order) == list(range(DIM))
        assert not np.array_equal(order, np.arange(DIM))
        assert sign_free_error(table, chain) < 1e-4
        assert sign_free_error(table[:, order], chain) > 0.5
        table, state, aux = descend(objective, chain, period - 1, start=jnp.asarray(table), state=state)
        np.testing.assert_array_equal(objective.details(state).order, order)
        assert sign_free_error(table[:, order], chain) < 1e-4
        np.testing.assert_allclose(objective.eigenvalues(state, aux), chain.eigenvalues[:DIM], atol=1e-4)


# Orders above 1 are flat at their minimum, so that the last digits take long.
ORDERED: dict[str, tuple[Objective, float, int]] = {
    "agdo": (agdo(), 0.3, 8_000),
    "allo_wayfarer": (allo(2.5, 0.0, dual_rate=0.05, initial_dual=-1.0), 0.5, 8_000),
    "omm": (omm(), 0.2, 10_000),
    "omm_joint": (omm(sequential=False), 0.2, 20_000),
    "omm_of_order_2": (omm(order=2), 0.1, 40_000),
    "omm_of_order_2_joint": (omm(order=2, sequential=False), 0.2, 80_000),
    "nested_lora": (nested_lora(), 0.2, 10_000),
    "nested_lora_joint": (nested_lora(sequential=False), 0.2, 20_000),
    "neural_ef": (neural_ef(), 0.3, 10_000),
    "mu_eigengame": (neural_ef(unbiased=True), 0.3, 10_000),
}


@pytest.mark.parametrize("name", ORDERED)
def test_rivals_that_fix_the_order_reach_the_eigenvectors(name: str, chain: Chain) -> None:
    with jax.enable_x64(True):
        objective, rate, steps = ORDERED[name]
        table, state, aux = descend(objective, chain, steps, rate)
        np.testing.assert_allclose(cosines(table, chain), 1, atol=1e-4)
        np.testing.assert_allclose(objective.eigenvalues(state, aux), chain.eigenvalues[:DIM], atol=1e-4)


@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "joint"])
def test_the_lengths_of_nested_lora_are_the_eigenvalues_of_the_operator(chain: Chain, sequential: bool) -> None:
    with jax.enable_x64(True):
        table, _, _ = descend(nested_lora(sequential), chain, 20_000, rate=0.2)
        np.testing.assert_allclose(chain.inner(table, table), np.diag(1 - chain.eigenvalues[:DIM]), atol=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_omm_is_orthonormal_at_its_minimum_without_a_constraint(chain: Chain, order: int) -> None:
    with jax.enable_x64(True):
        table, _, _ = descend(omm(order), chain, 20_000, rate=0.1)
        np.testing.assert_allclose(chain.inner(table, table), np.eye(DIM), atol=1e-8 if order == 1 else 0.05)


@pytest.mark.parametrize("objective", [vamp2(1e-9), spectral_contrastive()], ids=["vamp2", "spectral_contrastive"])
def test_rivals_without_an_order_reach_the_span_and_its_ritz_values(objective: Objective, chain: Chain) -> None:
    with jax.enable_x64(True):
        # VAMP-2 prefers large negative eigenvalues; two steps at once have none.
        twice = chain._replace(operator=chain.operator @ chain.operator)
        table, state, aux = descend(objective, twice, 20_000, rate=0.3)
        eigenvalues = np.sort(1 - (1 - chain.eigenvalues) ** 2)[:DIM]
        leading = np.argsort(1 - (1 - chain.eigenvalues) ** 2)[:DIM]
        spanned = chain._replace(eigenvectors=chain.eigenvectors[:, leading])
        assert span_error(table, spanned) < 1e-5
        assert cosines(table, spanned).min() < 0.95
        np.testing.assert_allclose(objective.eigenvalues(state, aux), eigenvalues, atol=1e-5)
