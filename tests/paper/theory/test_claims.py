"""The checks of the theory, against derivations by hand, finite differences and simulated dynamics; wrong ones fail."""

import json
from dataclasses import asdict
from functools import partial
from itertools import permutations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing_paper.theory import cases, stability
from lapwing_paper.theory.cases import Case, distance_from_permutations, zeros_found
from lapwing_paper.theory.claims import Claim, check_claims, needed_barrier
from lapwing_paper.theory.graphs import bipartite_laplacian, random_laplacian, ring_laplacian
from lapwing_paper.theory.jacobians import (
    Matrix,
    eigensystem,
    equilibrium,
    field,
    jacobian,
    pack,
    package_field,
    smallest_real_part,
    spectrum,
    unpack,
)

pytestmark = pytest.mark.slow

SIZE, DIM = 4, 2
NOT_HELD = {
    "lemma-1-dual",
    "lemma-1-only-rotations",
    "lemma-2-last-line",
    "corollary-1-only-if",
    "corollary-1-if",
    "ggdo-rotations",
    "ggdo-stability",
    "theorem-1-cross-blocks",
    "theorem-1-dual-columns",
    "theorem-1-condition-sign",
    "theorem-1-order-eigenvalues",
    "theorem-1-norm-eigenvalues",
    "theorem-1-pair-eigenvalues",
    "theorem-1-repeated",
}
HELD = {
    "lemma-1-kkt",
    "lemma-1-rotations",
    "lemma-1-minimum",
    "lemma-2-gradient",
    "lemma-2-equilibria",
    "lemma-2-rotations",
    "lemma-2-only",
    "corollary-1-eigenvectors",
    "theorem-1-own-blocks",
    "theorem-1-dual-rows",
    "theorem-1-corrected-spectrum",
    "theorem-1-others-unstable",
    "theorem-1-two-suffices",
    "theorem-1-needed-barrier",
    "theorem-1-bound-exact",
    "theorem-1-two-needed",
}


def by_name(claims: list[Claim]) -> dict[str, Claim]:
    return {claim.name: claim for claim in claims}


def small_case(seed: int = 0, dim: int = DIM, barriers: tuple[float, ...] = (0.3, 1.7)) -> Case:
    system = eigensystem(random_laplacian(seed, SIZE))
    return Case(system, dim, barriers, tuple(permutations(range(SIZE), dim)), seed)


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return check_claims(0)


def test_the_claims_that_hold_and_those_that_do_not_are_known(claims: list[Claim]) -> None:
    assert {claim.name for claim in claims if claim.held} == HELD
    assert {claim.name for claim in claims if not claim.held} == NOT_HELD


@pytest.mark.parametrize("definition", ["one_step", "successor(0.5)"])
def test_other_graphs_and_definitions_give_the_same_verdicts(definition: str) -> None:
    verdicts = {claim.name: claim.held for claim in check_claims(1, SIZE, DIM, definition=definition)}
    assert verdicts == {name: name in HELD for name in HELD | NOT_HELD}


def test_claims_are_plain_data_with_a_note_exactly_where_the_paper_is_off(claims: list[Claim]) -> None:
    assert json.loads(json.dumps([asdict(claim) for claim in claims]))
    for claim in claims:
        assert type(claim.held) is bool
        assert np.isfinite(claim.deviation)
        assert bool(claim.note) is not claim.held
        assert claim.paper.startswith(("Lemma", "Corollary", "Theorem", "Eq.", "Section"))


def test_the_same_seed_gives_the_same_claims(claims: list[Claim]) -> None:
    assert check_claims(0) == claims


def test_double_precision_stays_inside(claims: list[Claim]) -> None:
    assert jnp.zeros(1).dtype == jnp.float32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dim": 1}, "2 <= dim < size"),
        ({"size": 3, "dim": 3}, "2 <= dim < size"),
        ({"size": 9, "dim": 5}, "orders"),
        ({"barriers": ()}, "positive"),
        ({"barriers": (1.0, 0.0)}, "positive"),
    ],
)
def test_settings_that_cannot_be_checked_are_refused(arguments: dict, words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        check_claims(0, **arguments)


# The Jacobian.


def exact_differences(directions, point: Matrix) -> Matrix:
    """Derivative of a cubic: with these weights central differences of any step are exact."""
    columns = []
    for step in np.eye(len(point)):
        near, far = (np.asarray(directions(point + h * step) - directions(point - h * step)) for h in (1.0, 2.0))
        columns.append((8.0 * near - far) / 12.0)
    return np.array(columns).T


@pytest.mark.parametrize("barrier", [0.4, 3.0])
def test_the_jacobian_is_the_finite_differences_of_the_packages_own_directions(barrier: float) -> None:
    case = small_case()
    directions = partial(package_field, barrier=barrier, laplacian=case.system.laplacian, dim=DIM)
    with jax.enable_x64(True):
        for point in case.random_points(case.num_variables)[:3]:
            found = np.asarray(jacobian(point, barrier, case.system.laplacian, DIM))
            np.testing.assert_allclose(found, exact_differences(directions, point), atol=1e-11)


def test_a_jacobian_taken_through_the_stop_gradient_would_be_another() -> None:
    case = small_case()
    with jax.enable_x64(True):
        point = jnp.asarray(case.random_points(case.num_variables)[0])
        naive = jax.jacfwd(partial(package_field, barrier=1.0, laplacian=case.system.laplacian, dim=DIM))(point)
        assert np.abs(naive - jacobian(point, 1.0, case.system.laplacian, DIM)).max() > 0.1


def two_states(rate: float) -> Matrix:
    return rate * np.array([[1.0, -1.0], [-1.0, 1.0]])


@pytest.mark.parametrize(("rate", "barrier"), [(0.3, 0.2), (1.0, 2.5)])
def test_two_states_have_the_jacobian_derived_by_hand(rate: float, barrier: float) -> None:
    # Order of the variables: u_1 along e_1, e_2; u_2 along e_1, e_2; beta_11, beta_21, beta_22. Eigenvalues 0, 2 rate.
    a, b = 4.0 * rate, barrier
    by_hand = np.array(
        [
            [4 * b, 0, 0, 0, 1, 0, 0],
            [0, a, 0, 0, 0, 0, 0],
            [0, 2 * b, 2 * b - a, 0, 0, 1, 0],
            [0, 0, 0, 4 * b, 0, 0, 1],
            [-2, 0, 0, 0, 0, 0, 0],
            [0, -1, -1, 0, 0, 0, 0],
            [0, 0, 0, -2, 0, 0, 0],
        ]
    )
    system = eigensystem(two_states(rate))
    basis = np.eye(7)
    basis[:4, :4] = np.kron(np.eye(2), system.vectors)
    with jax.enable_x64(True):
        found = np.asarray(jacobian(equilibrium(system, [0, 1]), barrier, system.laplacian, 2))
    np.testing.assert_allclose(basis.T @ found @ basis, by_hand, atol=1e-12)


def test_two_states_and_one_component_have_the_three_eigenvalues_derived_by_hand() -> None:
    values = np.array([0.0, 0.8])
    np.testing.assert_allclose(np.sort(spectrum(values, [0], 1.0).real), np.sort([1.6, 2 + 2**0.5, 2 - 2**0.5]))
    np.testing.assert_allclose(spectrum(values, [1], 0.5), [-1.6, 1 + 1j, 1 - 1j])


def test_the_flat_point_unpacks_to_what_was_packed() -> None:
    u, duals = np.arange(12.0).reshape(4, 3), np.tril(np.arange(9.0).reshape(3, 3) + 1.0)
    with jax.enable_x64(True):
        for found, given in zip(unpack(pack(u, duals), 4, 3), (u, duals), strict=True):
            np.testing.assert_array_equal(found, given)


# Wrong formulas are noticed.


def wrong_norms(values: Matrix, order: tuple[int, ...], barrier: float) -> np.ndarray:
    right = spectrum(values, order, barrier)
    return np.where(np.isclose(right.real, 2.0 * barrier), right * 1.01, right)


def reversed_differences(values: Matrix, order: tuple[int, ...], barrier: float) -> np.ndarray:
    return spectrum(-values, order, barrier)


@pytest.mark.parametrize("formula", [wrong_norms, reversed_differences])
def test_a_wrong_spectrum_is_noticed(formula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "spectrum", formula)
    assert not by_name(check_claims(0, SIZE, DIM))["theorem-1-corrected-spectrum"].held


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_duals_with_a_wrong_factor_are_no_equilibrium(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "equilibrium", partial(equilibrium, factor=factor))
    assert not by_name(check_claims(0, SIZE, DIM))["lemma-2-equilibria"].held


def test_a_printed_formula_that_is_right_would_be_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stability, "paper_norm_eigenvalues", lambda values, order, b: np.roots([1.0, -4.0 * b, 2.0]))
    assert by_name(check_claims(0, SIZE, DIM))["theorem-1-norm-eigenvalues"].held


# Stability.


@pytest.mark.parametrize("barrier", [1e-2, 0.7, 2.0, 30.0])
def test_every_order_but_the_identity_is_unstable_at_any_barrier(barrier: float) -> None:
    case = small_case(seed=3)
    assert all(smallest_real_part(case.system, order, barrier) < -1e-3 for order in case.orders[1:])


@pytest.mark.parametrize("laplacian", [random_laplacian(5, 5), bipartite_laplacian(5, 4)], ids=["random", "two-sided"])
@pytest.mark.parametrize("dim", [2, 3])
def test_the_needed_barrier_divides_stable_from_unstable(laplacian: Matrix, dim: int) -> None:
    system = eigensystem(laplacian)
    needed = needed_barrier(laplacian, dim)
    assert smallest_real_part(system, range(dim), needed * 1.001) > 0
    assert smallest_real_part(system, range(dim), needed * 0.999) < 0
    assert needed == pytest.approx(system.values[dim - 1] - system.values[0], abs=1e-8)


def test_one_component_needs_no_barrier_and_a_repeated_eigenvalue_has_none() -> None:
    assert needed_barrier(random_laplacian(0, SIZE), 1) == 0.0
    assert needed_barrier(ring_laplacian(5), 2) == float("inf")


@pytest.mark.parametrize(("share", "returns"), [(1.2, True), (0.8, False)])
def test_simulated_dynamics_return_to_the_eigenvectors_above_the_needed_barrier_alone(
    share: float, returns: bool
) -> None:
    system = eigensystem(two_states(0.5))
    goal = equilibrium(system, [0, 1])
    barrier = share * needed_barrier(system.laplacian, 2)

    def step(point: jax.Array, _: None) -> tuple[jax.Array, None]:
        return point - 0.01 * field(point, barrier, system.laplacian, 2), None

    with jax.enable_x64(True):
        start = jnp.asarray(goal + 1e-3 * np.random.default_rng(0).normal(size=goal.shape))
        end = jax.lax.scan(step, start, None, length=6000)[0]
        distance = float(jnp.abs(end - goal).max())
    assert (distance < 1e-4) is returns
    assert returns or distance > 1e-2


# What the checks are made of.


def test_random_graphs_are_connected_symmetric_and_simple_and_a_function_of_the_seed() -> None:
    for seed in range(5):
        laplacian = random_laplacian(seed, 6)
        values = np.linalg.eigvalsh(laplacian)
        np.testing.assert_allclose(laplacian, laplacian.T, atol=0)
        np.testing.assert_allclose(laplacian.sum(axis=1), 0, atol=1e-12)
        assert np.all(np.eye(6) - laplacian >= -1e-12)
        assert np.diff(values).min() >= 1e-2
        np.testing.assert_array_equal(laplacian, random_laplacian(seed, 6))
    assert not np.allclose(random_laplacian(0, 6), random_laplacian(1, 6))


def test_two_sided_graphs_reach_the_largest_eigenvalue_and_rings_repeat_theirs() -> None:
    assert np.linalg.eigvalsh(bipartite_laplacian(0, 6))[-1] == pytest.approx(2.0)
    expected = np.sort(1.0 - np.cos(2.0 * np.pi * np.arange(7) / 7))
    np.testing.assert_allclose(np.linalg.eigvalsh(ring_laplacian(7)), expected, atol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda: random_laplacian(0, 1), lambda: bipartite_laplacian(0, 5), lambda: ring_laplacian(2)]
)
def test_graphs_that_cannot_be_are_refused(make) -> None:
    with pytest.raises(LapwingError):
        make()


def test_too_many_states_for_gaps_this_wide_are_refused() -> None:
    with pytest.raises(LapwingError, match="smaller"):
        random_laplacian(0, 40)


def test_the_distance_from_permutations_ignores_signs_and_order() -> None:
    angle = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    assert distance_from_permutations(angle) == pytest.approx(np.linalg.norm(angle - np.eye(2)))
    assert distance_from_permutations(angle[::-1] * [-1, 1]) == pytest.approx(np.linalg.norm(angle - np.eye(2)))


def test_a_search_that_leads_to_no_zero_is_left_out() -> None:
    found = zeros_found(lambda x: x**2 - 4.0, lambda x: np.diag(2.0 * x), np.array([[1.0], [-3.0]]))
    np.testing.assert_allclose(found, [[2.0], [-2.0]])
    assert len(zeros_found(lambda x: x**2 + 1.0, lambda x: np.diag(2.0 * x), np.array([[1.0]]))) == 0
