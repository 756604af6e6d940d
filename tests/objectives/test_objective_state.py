"""Duals, barrier, read-outs and permutations: what is updated, by how much, and within which bounds."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.errors import ArgumentError
from lapwing.objectives import (
    Constraints,
    Objective,
    Values,
    agdo,
    allo,
    dual_eigenvalues,
    gdo,
    ggdo,
    multiplier_eigenvalues,
    omm,
    permuted,
    quadratic_penalty,
    vamp2,
)
from lapwing.objectives.permuted import PermutedState

ERRORS = jnp.array([[0.5, 9.0], [0.25, -0.5]])


def aux_with(first: jax.Array, second: jax.Array | None = None, barrier: float = 2.0) -> Constraints:
    return Constraints(jnp.ones(2), first, first if second is None else second, jnp.asarray(barrier))


def test_duals_ascend_on_the_lower_triangle_of_the_mean_error() -> None:
    objective = allo(dual_rate=0.1)
    state = objective.update(objective.init(2), aux_with(ERRORS, ERRORS + 0.2))
    np.testing.assert_allclose(state.duals, 0.1 * np.array([[0.6, 0.0], [0.35, -0.4]]), rtol=1e-6)


def test_the_barrier_grows_with_the_running_mean_over_all_entries() -> None:
    objective = allo(barrier=1.0, barrier_rate=0.5, error_average_rate=0.1)
    state = objective.init(2)
    squared = (0.5**2 + 0.25**2 + 0.5**2) / 4
    running, barrier = 0.0, 1.0
    for _ in range(3):
        state = objective.update(state, aux_with(ERRORS))
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
        # Their energies are twice ours: the pairs' differences are longer by the root of two.
        half, seen = ours.loss(states[0], Values(first, second, first, second))
        whole, theirs_seen = theirs.loss(states[1], Values(2**0.5 * first, 2**0.5 * second, first, second))
        np.testing.assert_allclose(2 * half, whole, rtol=1e-5)
        states = [ours.update(states[0], seen.aux), theirs.update(states[1], theirs_seen.aux)]
    np.testing.assert_allclose(2 * states[0].duals, states[1].duals, rtol=1e-5)
    np.testing.assert_allclose(2 * states[0].barrier.coefficient, states[1].barrier.coefficient, rtol=1e-5)


def test_duals_and_barrier_stay_within_their_bounds() -> None:
    objective = allo(barrier=1.0, barrier_rate=10.0, dual_rate=10.0, max_barrier=3.0, max_dual=1.5)
    state = objective.init(2)
    for _ in range(20):
        state = objective.update(state, aux_with(ERRORS))
    np.testing.assert_array_equal(state.duals, [[1.5, 0.0], [1.5, -1.5]])
    assert state.barrier.coefficient == 3.0


@pytest.mark.parametrize("objective", [allo(barrier_rate=0.5), ggdo(barrier_rate=0.5)], ids=["allo", "ggdo"])
def test_the_barrier_never_decreases(objective: Objective) -> None:
    state = objective.init(2)
    barriers = []
    for seed in range(30):
        first, second = np.random.default_rng(seed).normal(size=(2, 2, 2))
        state = objective.update(state, aux_with(jnp.asarray(first), jnp.asarray(second)))
        barriers.append(float(jax.tree.leaves(state)[-2]))
    assert min(np.diff(barriers)) >= 0
    assert barriers[-1] > 2.0
    # Products of two batches' errors are negative at times; those steps must not have grown the barrier either.
    assert any(np.diff(barriers) == 0)


def test_parts_of_allo_switch_off() -> None:
    without_duals = allo(duals=False)
    state = without_duals.update(without_duals.init(2), aux_with(ERRORS))
    assert not state.duals.any()
    assert state.barrier.coefficient > 2.0
    fixed = allo(barrier_rate=0.0)
    state = fixed.update(fixed.init(2), aux_with(ERRORS))
    assert state.duals.any()
    assert state.barrier.coefficient == 2.0


def test_eigenvalues_are_read_raw_and_without_lag() -> None:
    state = allo().init(2)._replace(duals=jnp.array([[-0.4, 0.0], [0.1, -1.0]]))
    aux = aux_with(ERRORS, barrier=3.0)
    np.testing.assert_allclose(dual_eigenvalues(state), [0.2, 0.5])
    np.testing.assert_allclose(multiplier_eigenvalues(state, aux), [0.2 - 1.5, 0.5 + 1.5], rtol=1e-6)
    np.testing.assert_allclose(allo().eigenvalues(state, aux), multiplier_eigenvalues(state, aux))
    np.testing.assert_allclose(dual_eigenvalues(state, stop_gradient=False), [0.4, 1.0])
    np.testing.assert_allclose(multiplier_eigenvalues(state, aux, stop_gradient=False), [0.4 - 3, 1 + 3], rtol=1e-6)


def test_duals_start_where_asked() -> None:
    objective = allo(initial_dual=-1.0)
    np.testing.assert_array_equal(objective.init(3).duals, -np.eye(3))
    np.testing.assert_array_equal(dual_eigenvalues(objective.init(3)), [0.5, 0.5, 0.5])


@pytest.mark.parametrize("objective", [gdo(), ggdo(), quadratic_penalty()], ids=["gdo", "ggdo", "quadratic_penalty"])
def test_penalty_methods_read_rayleigh_quotients(objective: Objective) -> None:
    np.testing.assert_allclose(objective.eigenvalues(objective.init(2), aux_with(ERRORS)), [1 / 1.5, 1 / 0.5])
    collapsed = aux_with(-jnp.eye(2))
    np.testing.assert_array_equal(objective.eigenvalues(objective.init(2), collapsed), [0, 0])


def test_ggdo_weighs_energies_and_pairs_as_in_equation_4() -> None:
    c = np.array([3.0, 0.5])
    differences = jnp.sqrt(2 * jnp.array([[0.1, 0.4]]))
    values = Values(differences, 0 * differences, jnp.ones((4, 2)), jnp.ones((4, 2)))
    loss, seen = ggdo(2.0, coefficients=c).loss(ggdo(2.0).init(2), values)
    np.testing.assert_allclose(seen.metrics["graph"], 3.0 * 0.1 + 0.5 * 0.4, rtol=1e-6)
    np.testing.assert_allclose(seen.metrics["penalty"], 2.0 * 2 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(loss, seen.metrics["graph"] + seen.metrics["penalty"])


def test_permutations_come_on_time_and_repeat_with_the_seed() -> None:
    def orders(seed: int) -> list[tuple[int, ...]]:
        objective = permuted(gdo(), every=3, seed=seed)
        state, update, aux = objective.init(5), jax.jit(objective.update), aux_with(ERRORS)
        seen = []
        for _ in range(9):
            state = update(state, aux)
            seen.append(tuple(np.asarray(objective.details(state).order).tolist()))
        return seen

    one = orders(0)
    assert one[0] == one[1] == (0, 1, 2, 3, 4)
    assert one[2] == one[3] == one[4] != one[1]
    assert one[5] != one[4]
    assert one == orders(0) != orders(1)


def test_permuting_twice_composes() -> None:
    inner, outer = jnp.array([1, 2, 0]), jnp.array([2, 1, 0])
    objective = permuted(permuted(gdo()))
    order = objective.details(PermutedState(PermutedState((), inner, jnp.array(0)), outer, jnp.array(0))).order
    values = Values(*np.random.default_rng(0).normal(size=(4, 2, 3)))
    twice = values.reordered(outer).reordered(inner)
    np.testing.assert_array_equal(values.energies()[order], twice.energies())
    np.testing.assert_array_equal(values.first[:, order], twice.first)


def test_details_report_raw_duals_and_what_stopped_at_a_bound() -> None:
    objective = allo(barrier=1.0, barrier_rate=10.0, dual_rate=10.0, max_barrier=3.0, max_dual=1.5)
    fresh = objective.details(objective.init(2))
    assert not fresh.at_bounds["barrier"]
    assert not fresh.at_bounds["duals"].any()
    state = objective.init(2)
    for _ in range(20):
        state = objective.update(state, aux_with(ERRORS))
    details = permuted(objective).details(PermutedState(state, jnp.arange(2), jnp.array(0)))
    assert details.at_bounds["barrier"]
    assert details.at_bounds["duals"].all()
    np.testing.assert_allclose(details.eigenvalues["dual"], dual_eigenvalues(state))
    # A barrier that starts at its maximum never grew to it.
    fixed = ggdo(barrier=3.0, max_barrier=3.0)
    assert not fixed.details(fixed.init(2)).at_bounds["barrier"]


BAD: list[Callable[[], object]] = [
    *(lambda barrier=barrier: gdo(barrier=barrier) for barrier in (0.0, float("nan"), 10**400, "2")),
    lambda: quadratic_penalty(barrier=-1.0),
    lambda: ggdo(barrier_rate=-0.1),
    lambda: ggdo(coefficients=[1.0, 2.0]),
    lambda: ggdo(coefficients=[2.0, 2.0]),
    lambda: ggdo(coefficients=[1.0, 0.0]),
    lambda: ggdo(coefficients=[2.0, 1.0]).init(3),
    lambda: allo(dual_rate=None),
    lambda: allo(dual_rate=-1e-4),
    lambda: allo(barrier_rate=float("inf")),
    lambda: allo(max_dual=0.0),
    lambda: allo(barrier=5.0, max_barrier=4.0),
    lambda: allo(error_average_rate=0.0),
    *(lambda start=start: allo(initial_dual=start) for start in (0.5, -5.0, float("nan"), "-1")),
    *(lambda order=order: omm(order=order) for order in (0, 5, 1.5, True)),
    lambda: omm(shift=-1.0),
    lambda: vamp2(ridge=-1e-3),
    lambda: agdo(barrier=0.0),
    lambda: permuted(gdo(), every=0),
]


def test_bad_hyper_parameters_are_argument_errors() -> None:
    for make in BAD:
        with pytest.raises(ArgumentError):
            make()
