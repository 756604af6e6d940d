"""Gradients against finite differences, against the paper's formula by hand, and against exact expectations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reversible_chains import Chain

from lapwing.objectives import (
    AlloState,
    BarrierState,
    Objective,
    Values,
    allo,
    gdo,
    ggdo,
    nested_lora,
    neural_ef,
    omm,
    quadratic_penalty,
    spectral_contrastive,
    vamp2,
)

DIM = 4


def exact_values(table: jax.Array, chain: Chain) -> Values:
    return Values.of_table(table, jnp.asarray(chain.operator) @ table, jnp.asarray(chain.rho))


def loss_gradient(objective: Objective, state, table: np.ndarray, chain: Chain) -> np.ndarray:
    return np.asarray(jax.jit(jax.grad(lambda u: objective.loss(state, exact_values(u, chain))[0]))(jnp.asarray(table)))


def random_state(dim: int, seed: int) -> AlloState:
    rng = np.random.default_rng(seed)
    duals = jnp.asarray(np.tril(rng.normal(size=(dim, dim))))
    return AlloState(duals, BarrierState(jnp.asarray(1.7), jnp.asarray(0.0)))


def equilibrium_state(eigenvalues: np.ndarray, barrier: float = 2.5) -> AlloState:
    return AlloState(jnp.diag(jnp.asarray(-2 * eigenvalues)), BarrierState(jnp.asarray(barrier), jnp.asarray(0.0)))


SMOOTH = {
    "gdo": gdo(1.3),
    "ggdo": ggdo(1.3),
    "ggdo_coefficients": ggdo(0.7, coefficients=[9.0, 4.0, 1.0, 0.5]),
    "allo_without_stop_gradient": allo(1.3, stop_gradient=False),
    "omm_joint": omm(sequential=False),
    "omm_of_order_2_joint": omm(order=2, sequential=False),
    "nested_lora_joint": nested_lora(sequential=False),
    "vamp2": vamp2(),
    "spectral_contrastive": spectral_contrastive(),
}


@pytest.mark.parametrize("objective", SMOOTH.values(), ids=SMOOTH.keys())
def test_gradients_without_stop_gradient_are_the_finite_differences(objective: Objective, chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(0).normal(size=(8, DIM))
        state = objective.init(DIM)
        if isinstance(state, AlloState):
            state = random_state(DIM, seed=1)
        value = jax.jit(lambda u: objective.loss(state, exact_values(u, chain))[0])
        expected = np.zeros_like(table)
        for index in np.ndindex(table.shape):
            nudge = np.zeros_like(table)
            nudge[index] = 1e-5
            expected[index] = (value(table + nudge) - value(table - nudge)) / 2e-5
        np.testing.assert_allclose(loss_gradient(objective, state, table, chain), expected, rtol=1e-6, atol=1e-7)


def test_allo_descends_along_the_direction_of_the_papers_lemma_2(chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(2).normal(size=(8, DIM))
        state = random_state(DIM, seed=3)
        beta, b = np.asarray(state.duals), float(state.barrier.coefficient)
        errors = chain.inner(table, table) - np.eye(DIM)
        expected = 2 * chain.laplacian @ table
        for i in range(DIM):
            for k in range(i + 1):
                expected[:, i] += beta[i, k] * table[:, k] + 2 * b * errors[i, k] * table[:, k]
        # The derivative by a table's entry carries rho; the gradient in the inner product of rho does not.
        actual = loss_gradient(allo(), state, table, chain) / chain.rho[:, None]
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_without_stop_gradient_the_diagonal_counts_twice_and_later_components_pull(chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(4).normal(size=(8, DIM))
        state = random_state(DIM, seed=5)
        errors = chain.inner(table, table) - np.eye(DIM)
        pull = np.tril(np.asarray(state.duals) + 2 * float(state.barrier.coefficient) * errors)
        expected = 2 * chain.laplacian @ table + table @ (pull + pull.T).T
        actual = loss_gradient(allo(stop_gradient=False), state, table, chain) / chain.rho[:, None]
        np.testing.assert_allclose(actual, expected, rtol=1e-10, atol=1e-12)


def test_allo_without_duals_and_growth_is_the_quadratic_penalty(chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(6).normal(size=(8, DIM))
        plain, ablated = quadratic_penalty(1.1), allo(1.1, barrier_rate=0.0, duals=False)
        state = ablated.init(DIM)
        for _ in range(2):
            np.testing.assert_allclose(
                loss_gradient(ablated, state, table, chain), loss_gradient(plain, (), table, chain), rtol=1e-12
            )
            state = ablated.update(state, ablated.loss(state, exact_values(jnp.asarray(table), chain))[1].aux)


@pytest.mark.parametrize("stop_gradient", [True, False])
def test_the_exact_eigenvectors_are_an_equilibrium(chain: Chain, stop_gradient: bool) -> None:
    with jax.enable_x64(True):
        table, eigenvalues = chain.eigenvectors[:, :DIM], chain.eigenvalues[:DIM]
        # Lemma 2 with the stop-gradient; Lemma 1, half of it, without.
        state = equilibrium_state(eigenvalues if stop_gradient else eigenvalues / 2)
        objective = allo(stop_gradient=stop_gradient)
        assert np.abs(loss_gradient(objective, state, table, chain)).max() < 1e-12
        aux = objective.loss(state, exact_values(jnp.asarray(table), chain))[1].aux
        np.testing.assert_allclose(objective.update(state, aux).duals, state.duals, atol=1e-12)
        np.testing.assert_allclose(objective.eigenvalues(state, aux), eigenvalues, atol=1e-12)


def test_every_permutation_is_an_equilibrium_but_no_rotation(chain: Chain) -> None:
    with jax.enable_x64(True):
        order = np.array([2, 0, 3, 1])
        table, eigenvalues = chain.eigenvectors[:, order], chain.eigenvalues[order]
        assert np.abs(loss_gradient(allo(), equilibrium_state(eigenvalues), table, chain)).max() < 1e-12
        rotation = np.linalg.qr(np.random.default_rng(7).normal(size=(DIM, DIM)))[0]
        rotated = chain.eigenvectors[:, :DIM] @ rotation
        best_duals = equilibrium_state(np.diag(rotation.T @ np.diag(chain.eigenvalues[:DIM]) @ rotation))
        assert np.abs(loss_gradient(allo(), best_duals, rotated, chain)).max() > 1e-2


def test_gdo_is_indifferent_to_rotations(chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(8).normal(size=(8, DIM))
        rotation = np.linalg.qr(np.random.default_rng(9).normal(size=(DIM, DIM)))[0]
        losses = [gdo().loss((), exact_values(jnp.asarray(u), chain))[0] for u in (table, table @ rotation)]
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ggdo", "allo"])
def test_two_batches_give_the_gradient_of_the_exact_square_on_average(name: str, chain: Chain) -> None:
    objective = {"ggdo": ggdo, "allo": allo}[name](2.0)
    with jax.enable_x64(True):
        table = jnp.asarray(np.random.default_rng(10).normal(size=(8, DIM)))
        state = random_state(DIM, seed=11) if name == "allo" else objective.init(DIM)
        none = jnp.zeros((16, DIM))

        draws = np.random.default_rng(12).choice(8, size=(40_000, 2, 16), p=chain.rho)

        def sampled(u: jax.Array, ids: jax.Array, shared: bool) -> jax.Array:
            return objective.loss(state, Values(none, none, u[ids[0]], u[ids[0 if shared else 1]]))[0]

        def average(shared: bool) -> tuple[np.ndarray, np.ndarray]:
            gradients = jax.jit(jax.vmap(lambda ids: jax.grad(sampled)(table, ids, shared)))(draws)
            return np.asarray(gradients.mean(0)), np.asarray(gradients.std(0)) / 200

        exact = np.asarray(
            jax.grad(lambda u: objective.loss(state, Values(0 * u, 0 * u, u, u, jnp.asarray(chain.rho)))[0])(table)
        )
        mean, error = average(shared=False)
        assert np.max(np.abs(mean - exact) / error) < 4.5
        if name == "ggdo":
            biased, error = average(shared=True)
            assert np.max(np.abs(biased - exact) / error) > 20


def test_joint_nesting_weighs_pairs_by_the_smaller_of_their_weights(chain: Chain) -> None:
    """``-2 sum_i m_i A_ii + sum_ij min(m_i, m_j) M_ij A_ij`` with ``m_i = (d - i + 1) / d``, the paper's form."""
    with jax.enable_x64(True):
        table = np.random.default_rng(13).normal(size=(8, DIM))
        inner = chain.inner(table, table)
        products = chain.inner(table, chain.operator @ table) + 0.7 * inner
        weights = np.arange(DIM, 0, -1) / DIM
        pairs = np.minimum(weights[:, None], weights[None, :])
        expected = -2 * weights @ np.diag(products) + np.sum(pairs * inner * products)
        values = exact_values(jnp.asarray(table), chain)
        np.testing.assert_allclose(omm(shift=0.7, sequential=False).loss((), values)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_sequential_nesting_differentiates_each_component_given_those_before(order: int, chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(14).normal(size=(8, DIM))
        actual = loss_gradient(omm(order), (), table, chain)
        for last in range(DIM):
            # Of one component alone, joint and sequential are the same; of several, the joint loss is a mean.
            before = loss_gradient(omm(order, sequential=False), (), table[:, : last + 1], chain) * (last + 1)
            np.testing.assert_allclose(actual[:, last], before[:, last], rtol=1e-9)


def test_neural_ef_descends_along_its_papers_direction(chain: Chain) -> None:
    with jax.enable_x64(True):
        table = np.random.default_rng(15).normal(size=(8, DIM))
        table /= np.sqrt(np.diag(chain.inner(table, table)))
        moved = chain.operator @ table
        products, overlaps = chain.inner(table, moved), chain.inner(table, table)
        for unbiased in (False, True):
            expected = -2 * moved
            for last in range(DIM):
                for i in range(last):
                    factor = overlaps[i, last] if unbiased else products[last, i] / max(products[i, i], 0.01)
                    expected[:, last] += 2 * factor * moved[:, i]
            # Of components of length 1 the norm takes away the part along the component.
            expected -= table * np.diag(chain.inner(table, expected))
            actual = loss_gradient(neural_ef(unbiased), (), table, chain) / chain.rho[:, None]
            np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-10)


def uniform_chain() -> np.ndarray:
    """A symmetric operator: its states are uniformly distributed."""
    steps = np.roll(np.eye(8), 1, axis=1)
    return 0.2 * np.eye(8) + 0.25 * (steps + steps.T) + 0.15 * (steps @ steps + (steps @ steps).T)


UNBIASED = {
    "nested_lora": nested_lora(),
    "nested_lora_joint": nested_lora(sequential=False),
    "spectral_contrastive": spectral_contrastive(),
    "omm": omm(),
    "omm_joint": omm(sequential=False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNBIASED)
def test_rivals_are_unbiased_where_their_papers_say_so(name: str) -> None:
    with jax.enable_x64(True):
        operator, table = uniform_chain(), jnp.asarray(np.random.default_rng(16).normal(size=(8, DIM)))
        mean, error = average_gradient(UNBIASED[name], operator, table)
        exact = jax.grad(lambda u: UNBIASED[name].loss((), Values.of_table(u, jnp.asarray(operator) @ u))[0])(table)
        assert np.max(np.abs(mean - exact) / error) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("objective", [omm(order=2), neural_ef(), vamp2()], ids=["omm_2", "neural_ef", "vamp2"])
def test_the_others_are_biased_as_their_notes_say(objective: Objective) -> None:
    with jax.enable_x64(True):
        operator, table = uniform_chain(), jnp.asarray(np.random.default_rng(16).normal(size=(8, DIM)))
        mean, error = average_gradient(objective, operator, table)
        exact = jax.grad(lambda u: objective.loss((), Values.of_table(u, jnp.asarray(operator) @ u))[0])(table)
        assert np.max(np.abs(mean - exact) / error) > 20


@pytest.mark.slow
def test_mu_eigengame_keeps_only_the_bias_of_the_norms() -> None:
    with jax.enable_x64(True):
        operator, table = uniform_chain(), jnp.asarray(np.random.default_rng(16).normal(size=(8, DIM)))
        bias = {}
        for unbiased in (False, True):
            objective = neural_ef(unbiased)
            exact = jax.grad(lambda u: objective.loss((), Values.of_table(u, jnp.asarray(operator) @ u))[0])(table)  # noqa: B023
            mean, _ = average_gradient(objective, operator, table)
            bias[unbiased] = np.linalg.norm(mean - exact) / np.linalg.norm(exact)
        assert bias[True] < 0.15 < 1 < bias[False]


def average_gradient(objective: Objective, operator: np.ndarray, table: jax.Array) -> tuple[np.ndarray, np.ndarray]:
    """Mean gradient over 40,000 minibatches of 16 pairs with separate constraint batches, and its standard error."""
    rng = np.random.default_rng(17)
    pairs = rng.choice(64, size=(40_000, 16), p=operator.ravel() / 8)
    draws = np.stack([pairs // 8, pairs % 8, *rng.integers(8, size=(2, 40_000, 16))], axis=1)

    def sampled(u: jax.Array, ids: jax.Array) -> jax.Array:
        return objective.loss((), Values(*u[ids]))[0]

    # One after another: factorisations of so large a batch can lock up the few threads that XLA has on a small machine.
    gradients = jax.jit(lambda draws: jax.lax.map(lambda ids: jax.grad(sampled)(table, ids), draws))(draws)
    return np.asarray(gradients.mean(0)), np.asarray(gradients.std(0)) / 200
