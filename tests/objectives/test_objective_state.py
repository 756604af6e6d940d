"""Duals, barrier, read-outs and permutations: what is updated, by how much, and within which bounds."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing.objectives import (
    Info,
    Objective,
    Values,
    allo,
    dual_eigenvalues,
    gdo,
    ggdo,
    multiplier_eigenvalues,
    output_order,
    permuted,
    quadratic_penalty,
)
from lapwing.objectives.wrappers import PermutedState, reordered

ERRORS = jnp.array([[0.5, 9.0], [0.25, -0.5]])


def info_with(first: jax.Array, second: jax.Array | None = None, barrier: float = 2.0) -> Info:
    none = jnp.zeros(())
    return Info(jnp.ones(2), first, first if second is None else second, none, none, none, jnp.asarray(barrier))


def test_duals_ascend_on_the_lower_triangle_of_the_mean_error() -> None:
    objective = allo(dual_rate=0.1)
    state = objective.update(objective.init(2), info_with(ERRORS, ERRORS + 0.2))
    np.testing.assert_allclose(state.duals, 0.1 * np.array([[0.6, 0.0], [0.35, -0.4]]), rtol=1e-6)


def test_the_barrier_grows_with_the_running_mean_over_all_entries() -> None:
    objective = allo(barrier=1.0, barrier_rate=0.5, error_average_rate=0.1)
    state = objective.init(2)
    squared = (0.5**2 + 0.25**2 + 0.5**2) / 4
    running, barrier = 0.0, 1.0
    for _ in range(3):
        state = objective.update(state, info_with(ERRORS))
        running = 0.9 * running + 0.1 * squared
        barrier += 0.5 * running
        np.testing.assert_allclose(state.barrier.coefficient, barrier, rtol=1e-6)


def test_the_papers_setting_is_the_same_dynamics_in_half_the_units() -> None:
    """Un-halved graph term, b = 0.5, rates 0.01 and 1e-4: twice our loss at every step, twice our duals and barrier."""
    ours = allo(barrier=0.25, barrier_rate=0.005, dual_rate=5e-5)
    theirs = allo(barrier=0.5, barrier_rate=0.01, dual_rate=1e-4)
    states = [ours.init(3), theirs.init(3)]
    for key in jax.random.split(jax.random.key(0), 5):
        first, second = jax.random.normal(key, (2, 6, 3))
        energies = jnp.abs(first[0])
        half, info = ours.loss(states[0], Values(energies, first, second))
        whole, their_info = theirs.loss(states[1], Values(2 * energies, first, second))
        np.testing.assert_allclose(2 * half, whole, rtol=1e-5)
        states = [ours.update(states[0], info), theirs.update(states[1], their_info)]
    np.testing.assert_allclose(2 * states[0].duals, states[1].duals, rtol=1e-5)
    np.testing.assert_allclose(2 * states[0].barrier.coefficient, states[1].barrier.coefficient, rtol=1e-5)


def test_duals_and_barrier_stay_within_their_bounds() -> None:
    objective = allo(barrier=1.0, barrier_rate=10.0, dual_rate=10.0, max_barrier=3.0, max_dual=1.5)
    state = objective.init(2)
    for _ in range(20):
        state = objective.update(state, info_with(ERRORS))
    np.testing.assert_array_equal(state.duals, [[1.5, 0.0], [1.5, -1.5]])
    assert state.barrier.coefficient == 3.0


@pytest.mark.parametrize("objective", [allo(barrier_rate=0.5), ggdo(barrier_rate=0.5)], ids=["allo", "ggdo"])
def test_the_barrier_never_decreases(objective: Objective) -> None:
    state = objective.init(2)
    barriers = []
    for seed in range(30):
        first, second = np.random.default_rng(seed).normal(size=(2, 2, 2))
        state = objective.update(state, info_with(jnp.asarray(first), jnp.asarray(second)))
        barriers.append(float(jax.tree.leaves(state)[-2]))
    assert min(np.diff(barriers)) >= 0
    assert barriers[-1] > 2.0
    # Products of two batches' errors are negative at times; those steps must not have grown the barrier either.
    assert any(np.diff(barriers) == 0)


def test_parts_of_allo_switch_off() -> None:
    without_duals = allo(duals=False)
    state = without_duals.update(without_duals.init(2), info_with(ERRORS))
    assert not state.duals.any()
    assert state.barrier.coefficient > 2.0
    fixed = allo(barrier_rate=0.0)
    state = fixed.update(fixed.init(2), info_with(ERRORS))
    assert state.duals.any()
    assert state.barrier.coefficient == 2.0


def test_eigenvalues_are_read_raw_and_without_lag() -> None:
    state = allo().init(2)._replace(duals=jnp.array([[-0.4, 0.0], [0.1, -1.0]]))
    info = info_with(ERRORS, barrier=3.0)
    np.testing.assert_allclose(dual_eigenvalues(state), [0.2, 0.5])
    np.testing.assert_allclose(multiplier_eigenvalues(state, info), [0.2 - 1.5, 0.5 + 1.5], rtol=1e-6)
    np.testing.assert_allclose(allo().eigenvalues(state, info), multiplier_eigenvalues(state, info))
    np.testing.assert_allclose(dual_eigenvalues(state, stop_gradient=False), [0.4, 1.0])
    np.testing.assert_allclose(multiplier_eigenvalues(state, info, stop_gradient=False), [0.4 - 3, 1 + 3], rtol=1e-6)


@pytest.mark.parametrize("objective", [gdo(), ggdo(), quadratic_penalty()], ids=["gdo", "ggdo", "quadratic_penalty"])
def test_penalty_methods_read_rayleigh_quotients(objective: Objective) -> None:
    np.testing.assert_allclose(objective.eigenvalues(objective.init(2), info_with(ERRORS)), [1 / 1.5, 1 / 0.5])
    collapsed = info_with(-jnp.eye(2))
    np.testing.assert_array_equal(objective.eigenvalues(objective.init(2), collapsed), [0, 0])


def test_ggdo_weighs_energies_and_pairs_as_in_equation_4() -> None:
    c = np.array([3.0, 0.5])
    loss, info = ggdo(2.0, coefficients=c).loss(
        ggdo(2.0).init(2), Values(jnp.array([0.1, 0.4]), jnp.ones((4, 2)), jnp.ones((4, 2)))
    )
    np.testing.assert_allclose(info.graph, 3.0 * 0.1 + 0.5 * 0.4, rtol=1e-6)
    np.testing.assert_allclose(info.penalty, 2.0 * 2 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(loss, info.graph + info.penalty)


def test_permutations_come_on_time_and_repeat_with_the_seed() -> None:
    def orders(seed: int) -> list[tuple[int, ...]]:
        objective = permuted(gdo(), every=3, seed=seed)
        state, update, info = objective.init(5), jax.jit(objective.update), info_with(ERRORS)
        seen = []
        for _ in range(9):
            state = update(state, info)
            seen.append(tuple(np.asarray(output_order(state, 5)).tolist()))
        return seen

    one = orders(0)
    assert one[0] == one[1] == (0, 1, 2, 3, 4)
    assert one[2] == one[3] == one[4] != one[1]
    assert one[5] != one[4]
    assert one == orders(0) != orders(1)


def test_permuting_twice_composes() -> None:
    inner, outer = jnp.array([1, 2, 0]), jnp.array([2, 1, 0])
    state = PermutedState(PermutedState((), inner, jnp.array(0)), outer, jnp.array(0))
    values = Values(jnp.arange(3.0), jnp.arange(6.0).reshape(2, 3), jnp.arange(6.0).reshape(2, 3))
    twice = reordered(reordered(values, outer), inner)
    np.testing.assert_array_equal(values.energies[output_order(state, 3)], twice.energies)
    np.testing.assert_array_equal(values.first[:, output_order(state, 3)], twice.first)


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: gdo(barrier=0.0), "barrier must be positive"),
    (lambda: gdo(barrier=float("nan")), "barrier must be positive"),
    (lambda: gdo(barrier=10**400), "barrier must be positive"),
    (lambda: gdo(barrier="2"), "barrier must be positive"),
    (lambda: allo(dual_rate=None), "dual_rate must be zero or more"),
    (lambda: quadratic_penalty(barrier=-1.0), "barrier must be positive"),
    (lambda: ggdo(barrier_rate=-0.1), "barrier_rate must be zero or more"),
    (lambda: ggdo(coefficients=[1.0, 2.0]), "strictly decreasing"),
    (lambda: ggdo(coefficients=[2.0, 2.0]), "strictly decreasing"),
    (lambda: ggdo(coefficients=[1.0, 0.0]), "positive"),
    (lambda: ggdo(coefficients=[2.0, 1.0]).init(3), "2 coefficients for 3 components"),
    (lambda: allo(dual_rate=-1e-4), "dual_rate must be zero or more"),
    (lambda: allo(barrier_rate=float("inf")), "barrier_rate must be zero or more"),
    (lambda: allo(max_dual=0.0), "max_dual must be positive"),
    (lambda: allo(barrier=5.0, max_barrier=4.0), "above max_barrier"),
    (lambda: allo(error_average_rate=0.0), "error_average_rate"),
    (lambda: permuted(gdo(), every=0), "at least 1"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_hyper_parameters_are_refused_in_words(make: Callable[[], object], message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        make()
