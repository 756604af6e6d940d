"""One-step operators: the rho-adjoint, stationary distributions, counting, and dense Laplacians."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

import lapwing as lw
from closed_forms import birth_death, random_chain, ring, ring_mu, stationary_by_dense_eig
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import Definition, geometric, one_step, successor, truncated
from lapwing.environments.registry import make_world
from lapwing.errors import ArgumentError, DataError, LapwingError
from lapwing.operators import operator as operators
from lapwing.operators.operator import (
    Operator,
    laplacian,
    operator_from_matrix,
    operator_from_trajectories,
    operator_from_world,
    stationary_distribution,
)

every_seed = pytest.mark.parametrize("seed", [0, 1, 2])
every_definition = pytest.mark.parametrize(
    "definition",
    [one_step(), successor(0.9), geometric(0.9), geometric(0.3), truncated(0.9, 50), truncated(0.5, 1)],
    ids=str,
)


def adjoint(matrix: NDArray[np.float64], rho: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.diag(1.0 / rho) @ matrix.T @ np.diag(rho)


def small_data() -> Trajectories:
    """0 -> 1 -> 1 -> 3 and 3 -> 1; state 4 was seen once, without a transition; state 2 never."""
    return Trajectories(
        observations=np.arange(10.0).reshape(5, 2),
        offsets=np.array([0, 4, 5, 7]),
        terminated=np.zeros(3, dtype=bool),
        truncated=np.ones(3, dtype=bool),
        ids=np.array([0, 1, 1, 3, 4, 3, 1], dtype=np.int32),
    )


@every_seed
def test_symmetrised_is_the_mean_of_the_matrix_and_its_rho_adjoint(seed: int) -> None:
    matrix = random_chain(9, seed)
    operator = operator_from_matrix(matrix)
    root = np.sqrt(operator.rho)
    expected = np.diag(root) @ (matrix + adjoint(matrix, operator.rho)) / 2.0 @ np.diag(1.0 / root)
    symmetric = operator.symmetrised().toarray()
    np.testing.assert_allclose(symmetric, expected, rtol=0, atol=1e-14)
    assert (symmetric == symmetric.T).all()


@every_seed
def test_the_adjoint_moves_the_matrix_to_the_other_side_of_the_inner_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = random_chain(8, seed)
    operator = operator_from_matrix(matrix, rho=rng.random(8) + 0.1)
    root = np.sqrt(operator.rho)
    twice_symmetrised = 2.0 * np.diag(1.0 / root) @ operator.symmetrised().toarray() @ np.diag(root)
    found = twice_symmetrised - matrix
    u, v = rng.standard_normal((2, 8))
    assert np.sum(operator.rho * u * (matrix @ v)) == pytest.approx(np.sum(operator.rho * (found @ u) * v), abs=1e-13)


@every_seed
def test_constants_are_an_eigenvector_of_eigenvalue_one_where_rho_is_stationary(seed: int) -> None:
    operator = operator_from_matrix(random_chain(9, seed))
    root = np.sqrt(operator.rho)
    np.testing.assert_allclose(operator.symmetrised() @ root, root, rtol=0, atol=1e-14)
    assert np.linalg.eigvalsh(operator.symmetrised().toarray())[-1] == pytest.approx(1.0, abs=1e-13)


def test_constants_are_no_eigenvector_where_rho_is_not_stationary() -> None:
    operator = operator_from_matrix(random_chain(9, 0), rho="uniform")
    ones = np.ones(9)
    assert np.abs(operator.symmetrised() @ ones - ones).max() > 0.1


@every_seed
def test_uniform_rho_gives_the_papers_mean_with_the_transpose(seed: int) -> None:
    matrix = random_chain(7, seed)
    operator = operator_from_matrix(matrix, rho="uniform")
    np.testing.assert_allclose(operator.symmetrised().toarray(), (matrix + matrix.T) / 2.0, rtol=0, atol=1e-15)


@every_seed
def test_the_graph_term_is_half_the_mean_squared_step(seed: int) -> None:
    matrix = random_chain(8, seed)
    operator = operator_from_matrix(matrix)
    u = np.random.default_rng(seed).standard_normal(8)
    flow = operator.rho[:, None] * matrix
    energy = 0.5 * np.sum(flow * (u[:, None] - u[None, :]) ** 2)
    assert np.sum(operator.rho * u * (laplacian(operator, one_step()) @ u)) == pytest.approx(energy, rel=1e-12)


@every_seed
def test_the_largest_eigenvalue_is_bounded(seed: int) -> None:
    matrix = random_chain(9, seed)
    assert operator_from_matrix(matrix).largest_possible_mu() == pytest.approx(1.0, abs=1e-12)
    uniform = operator_from_matrix(matrix, rho="uniform")
    largest = np.linalg.eigvalsh(uniform.symmetrised().toarray())[-1]
    assert 1.0 < largest <= uniform.largest_possible_mu()


@every_seed
def test_the_stationary_distribution_is_the_dense_left_eigenvector(seed: int) -> None:
    matrix = random_chain(12, seed)
    expected = stationary_by_dense_eig(matrix)
    assert expected.max() > 5 * expected.min()
    np.testing.assert_allclose(stationary_distribution(csr_array(matrix)), expected, rtol=1e-10)


@pytest.mark.parametrize(("up", "down"), [(0.6, 0.2), (0.2, 0.6), (0.3, 0.29)])
def test_a_drift_gives_stationary_weights_in_powers_of_its_odds(up: float, down: float) -> None:
    weights = stationary_distribution(csr_array(birth_death(100, up, down)))
    np.testing.assert_allclose(np.diff(np.log(weights)), np.log(up / down), rtol=0, atol=1e-11)
    assert weights.sum() == pytest.approx(1.0)


def test_the_heaviest_state_may_lie_anywhere() -> None:
    towards_the_middle = birth_death(101, 0.1, 0.7)
    towards_the_middle[:50] = birth_death(101, 0.7, 0.1)[:50]
    weights = stationary_distribution(csr_array(towards_the_middle))
    np.testing.assert_allclose(weights @ towards_the_middle, weights, rtol=1e-12)
    assert weights.min() > 0


def test_a_periodic_chain_has_its_stationary_distribution_too() -> None:
    star = np.zeros((4, 4))
    star[0, 1:], star[1:, 0] = 1.0 / 3.0, 1.0
    np.testing.assert_allclose(stationary_distribution(csr_array(star)), [0.5, 1 / 6, 1 / 6, 1 / 6], atol=1e-15)


def test_weights_too_small_for_floating_point_are_an_error_and_not_zero_or_negative() -> None:
    with pytest.raises(LapwingError, match="so rarely"):
        stationary_distribution(csr_array(birth_death(400, 0.1, 0.8)))


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]],
        [[0.5, 0.5, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.2, 0.8]],
    ],
    ids=["transient states", "two closed classes"],
)
def test_a_reducible_chain_needs_weights_from_the_user(matrix: list[list[float]]) -> None:
    with pytest.raises(LapwingError, match="rho='uniform'"):
        operator_from_matrix(matrix)
    assert operator_from_matrix(matrix, rho="uniform").rho == pytest.approx(1.0 / len(matrix))


def test_a_disconnected_but_doubly_stochastic_chain_keeps_the_uniform_distribution() -> None:
    assert (operator_from_matrix(np.eye(3)).rho == 1.0 / 3.0).all()


def test_own_weights_are_scaled_to_sum_to_one() -> None:
    np.testing.assert_allclose(operator_from_matrix(np.full((2, 2), 0.5), rho=[1, 3]).rho, [0.25, 0.75])


@pytest.mark.parametrize(
    "rho", ["stationary", [0.5, 0.5], [0.5, 0.5, 0.0], [1.0, 1.0, np.nan], [1.0, -1.0, 1.0]], ids=str
)
def test_weights_that_are_none_are_refused(rho: str | list[float]) -> None:
    with pytest.raises(LapwingError, match="rho must be"):
        operator_from_matrix(np.eye(3), rho=rho)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 0.0], [0.3, 0.3]], "row 1 .* sums to 0.6"),
        ([[1.5, -0.5], [0.0, 1.0]], "at least 0"),
        ([[np.nan, 1.0], [0.0, 1.0]], "finite"),
        (np.ones((2, 3)) / 3.0, "square"),
        (np.ones((0, 0)), "square and not empty"),
        (np.ones(3), "square"),
        (np.ones((2, 2, 2)), "not a matrix|square"),
        ([["a", "b"], ["c", "d"]], "not a matrix of real numbers"),
        ([[1.0], [0.5, 0.5]], "not a matrix of real numbers"),
        (np.eye(2) + 0j, "complex"),
    ],
    ids=["row sum", "negative", "nan", "not square", "empty", "one axis", "three axes", "words", "ragged", "complex"],
)
def test_what_is_no_transition_matrix_is_refused(matrix: object, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        operator_from_matrix(matrix)  # type: ignore[arg-type]


def test_row_sums_off_by_rounding_are_repaired() -> None:
    matrix = random_chain(50, 0).astype(np.float32)
    assert np.abs(matrix.sum(axis=1, dtype=np.float64) - 1.0).max() > 1e-9
    np.testing.assert_allclose(operator_from_matrix(matrix).matrix.sum(axis=1), 1.0, rtol=0, atol=1e-15)


def test_the_users_own_matrix_is_neither_changed_nor_shared() -> None:
    given = csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    operator = operator_from_matrix(given)
    assert given.nnz == 3
    given.data[:] = 7.0
    np.testing.assert_array_equal(operator.matrix.toarray(), np.eye(2))


def test_a_stored_zero_joins_nothing() -> None:
    given = csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert operator_from_matrix(given).num_components() == 2


def test_states_of_a_matrix_are_known_by_their_numbers_or_by_given_observations() -> None:
    assert operator_from_matrix(np.eye(3)).observations.tolist() == [[0], [1], [2]]
    own = np.arange(6.0).reshape(3, 2)
    assert operator_from_matrix(np.eye(3), observations=own).observations is own
    for bad in (np.zeros(3), np.zeros((2, 2))):
        with pytest.raises(LapwingError, match="one per state"):
            operator_from_matrix(np.eye(3), observations=bad)


def test_reversibility_is_judged_in_the_inner_product() -> None:
    corridor = birth_death(6, 0.5, 0.2)
    assert operator_from_matrix(corridor).is_reversible()
    assert not operator_from_matrix(corridor, rho="uniform").is_reversible()
    assert not operator_from_matrix(ring(5, 1.0)).is_reversible()
    assert operator_from_matrix(ring(5, 0.5, 0.5)).is_reversible()


def test_a_grid_world_under_the_uniform_policy_is_reversible_with_uniform_weights() -> None:
    operator = operator_from_world(make_world("FourRooms"))
    assert operator.is_reversible()
    assert operator.exact
    assert (operator.rho == 1.0 / operator.num_states).all()


def test_counting_uses_both_directions_and_leaves_out_states_without_transitions() -> None:
    operator = operator_from_trajectories(small_data())
    # Transitions 0-1, 1-1, 1-3, 3-1, both ways: N + N^T over states 0, 1, 3.
    flow = np.array([[0.0, 1.0, 0.0], [1.0, 2.0, 2.0], [0.0, 2.0, 0.0]])
    np.testing.assert_allclose(operator.matrix.toarray(), flow / flow.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(operator.rho, flow.sum(axis=1) / 8.0)
    np.testing.assert_array_equal(operator.observations, small_data().observations[[0, 1, 3]])
    assert not operator.exact
    assert operator.is_reversible()
    assert operator.metadata["transitions"] == 4


@pytest.mark.parametrize("matrix", [birth_death(8, 0.5, 0.2), ring(7, 0.5, 0.5)], ids=["drift", "ring"])
@every_definition
def test_every_definition_of_a_reversible_operator_is_a_map_of_its_one_step_eigenvalues(
    matrix: NDArray[np.float64], definition: Definition
) -> None:
    operator = operator_from_matrix(matrix)
    mu = np.linalg.eigvalsh(operator.symmetrised().toarray())
    found = np.sort(np.linalg.eigvals(laplacian(operator, definition)).real)
    np.testing.assert_allclose(found, np.sort(definition.from_mu(mu)), rtol=0, atol=1e-12)


@every_seed
@every_definition
def test_every_laplacian_is_self_adjoint_and_sends_constants_to_zero(seed: int, definition: Definition) -> None:
    operator = operator_from_matrix(random_chain(8, seed))
    dense = laplacian(operator, definition)
    flow = operator.rho[:, None] * dense
    np.testing.assert_allclose(flow, flow.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(dense.sum(axis=1), 0.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("forward", "backward"), [(1.0, 0.0), (0.6, 0.1)])
def test_the_laplacians_of_a_directed_ring_have_their_closed_forms(forward: float, backward: float) -> None:
    operator = operator_from_matrix(ring(9, forward, backward))
    mu, g = ring_mu(9, forward, backward), 0.8
    expected = {
        one_step(): 1.0 - mu.real,
        successor(g): 1.0 - ((1 - g) / (1 - g * mu)).real,
        geometric(g): 1.0 - ((1 - g) * mu / (1 - g * mu)).real,
    }
    for definition, values in expected.items():
        found = np.linalg.eigvalsh(laplacian(operator, definition))
        np.testing.assert_allclose(found, np.sort(values), rtol=0, atol=1e-13)


@pytest.mark.parametrize("definition", [successor(0.9), geometric(0.9), truncated(0.9, 50)], ids=str)
def test_the_maps_of_eigenvalues_do_not_hold_for_a_non_reversible_operator(definition: Definition) -> None:
    operator = operator_from_matrix(ring(9, 1.0))
    mapped = np.sort(definition.from_mu(ring_mu(9, 1.0).real))
    found = np.linalg.eigvalsh(laplacian(operator, definition))
    assert np.abs(found - mapped).max() > 0.1


def test_the_truncated_laplacian_is_what_episodes_of_that_length_sample() -> None:
    matrix, discount, horizon = random_chain(5, 3), 0.7, 4
    operator = operator_from_matrix(matrix)
    mixture = np.zeros((5, 5))
    for start in range(horizon):
        gaps = np.arange(1, horizon - start + 1)
        chances = discount**gaps / np.sum(discount**gaps)
        for gap, chance in zip(gaps, chances, strict=True):
            mixture += chance / horizon * np.linalg.matrix_power(matrix, gap)
    expected = np.eye(5) - (mixture + adjoint(mixture, operator.rho)) / 2.0
    found = laplacian(operator, truncated(discount, horizon))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_a_dense_laplacian_of_too_many_states_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "MAX_DENSE_STATES", 5)
    assert laplacian(operator_from_matrix(np.eye(5)), one_step()).shape == (5, 5)
    with pytest.raises(LapwingError, match="does not fit"):
        laplacian(operator_from_matrix(np.eye(6)), one_step())


def test_an_operator_counts_the_parts_that_no_step_joins() -> None:
    blocks = np.kron(np.eye(3), ring(4, 1.0))
    assert operator_from_matrix(blocks).num_components() == 3
    assert isinstance(operator_from_matrix(blocks), Operator)


def broken_indices() -> csr_array:
    matrix = csr_array(np.eye(3))
    matrix.indices = np.array([0, 7, 1], dtype=matrix.indices.dtype)
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        broken_indices(),
        np.ma.masked_array(np.eye(2), mask=[[1, 0], [0, 0]]),
        np.array([["1"]]),
        np.zeros((2, 2), dtype="M8[s]"),
        np.array([[10**400]], dtype=object),
        coo_array(np.eye(2) * 1j),
    ],
    ids=["indices outside", "masked", "text", "dates", "too large a number", "sparse complex"],
)
def test_a_matrix_of_anything_but_real_numbers_is_refused_and_crashes_nothing(matrix: Any) -> None:
    with pytest.raises(LapwingError, match="not a matrix of real numbers"):
        operator_from_matrix(matrix)


@pytest.mark.parametrize(
    ("rho", "words"),
    [
        (["a", "b"], "2 positive finite weights"),
        ([1j, 1.0], "2 positive finite weights"),
        (10**400, "2 positive finite weights"),
        ({"a": 1}, "2 positive finite weights"),
        ([1e308, 1e308], "orders of magnitude"),
        ([1e-320, 1.0], "orders of magnitude"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(rho: Any, words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        operator_from_matrix(np.full((2, 2), 0.5), rho)


def test_a_state_that_is_as_good_as_never_left_is_refused_in_words() -> None:
    matrix = [[1.0, 1e-17, 0.0, 0.0], [1e-39, 0.0, 0.5, 0.5], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    with pytest.raises(LapwingError, match="lost in rounding"):
        operator_from_matrix(matrix)


def test_index_pointers_that_shrink_and_coordinates_outside_are_refused() -> None:
    shrinking = csr_array(np.eye(1))
    shrinking.indptr = np.array([0, -1], dtype=shrinking.indptr.dtype)
    outside = coo_array(np.eye(2))
    outside.coords = (np.array([0, 9]), np.array([0, 1]))
    for matrix in (shrinking, outside):
        with pytest.raises(LapwingError, match="not a matrix of real numbers"):
            operator_from_matrix(matrix)


def drifting_chain(states: int, up: float, down: float) -> np.ndarray:
    matrix = np.diag(np.full(states - 1, up), 1) + np.diag(np.full(states - 1, down), -1)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def test_a_known_rho_is_kept_and_leads_to_the_true_operator_from_any_starts() -> None:
    # Episodes of two states from uniform starts: visits are not those of the stationary distribution.
    states = 6
    true = drifting_chain(states, 0.4, 0.2)
    rho = 2.0 ** np.arange(states)
    rng = np.random.default_rng(0)
    starts = rng.integers(0, states, 400_000)
    ends = (rng.random(len(starts))[:, None] > np.cumsum(true, axis=1)[starts]).sum(axis=1)
    pairs = np.stack([starts, ends], axis=1).reshape(-1, 1)
    data = lw.from_arrays(pairs.astype(np.int64), lengths=np.full(len(starts), 2))
    order = np.asarray(data.observations).ravel().astype(int)
    built = lw.operator(data, rho=rho[order])
    np.testing.assert_allclose(built.rho @ built.matrix, built.rho, rtol=1e-12)
    assert built.is_reversible()
    np.testing.assert_allclose(built.matrix.toarray(), true[np.ix_(order, order)], atol=0.01)
    as_visited = lw.operator(data).matrix.toarray()
    assert np.abs(as_visited - true[np.ix_(order, order)]).max() > 0.05


def test_a_known_rho_leaves_room_for_no_more_flow_than_it_has() -> None:
    data = lw.from_arrays([[[0.0], [1.0]], [[1.0], [2.0]], [[2.0], [0.0]], [[0.0], [2.0]]])
    built = lw.operator(data, rho="uniform")
    np.testing.assert_allclose(built.matrix.sum(axis=1), 1.0)
    assert built.matrix.toarray().min() >= 0.0
    with pytest.raises(ArgumentError, match="rho must be"):
        lw.operator(data, rho=[1.0, 2.0])


def test_a_known_rho_needs_observations_that_repeat() -> None:
    with pytest.raises(DataError, match="repeat"):
        lw.operator(lw.collect("Box-2", 1_000, seed=0), rho="uniform")


def test_states_that_are_never_reached_again_are_left_out_of_directed_counts() -> None:
    data = lw.from_arrays([[[0.0], [1.0], [2.0], [1.0], [2.0], [1.0], [3.0]]])
    operator = lw.operator(data, directed=True)
    assert operator.observations.ravel().tolist() == [1.0, 2.0]
    assert operator.metadata["states_left_out"] == 2
    np.testing.assert_allclose(operator.matrix.toarray(), [[0.0, 1.0], [1.0, 0.0]])


def test_data_that_never_return_have_no_directed_operator() -> None:
    with pytest.raises(DataError, match="reach one another"):
        lw.operator(lw.from_arrays([[[0.0], [1.0], [2.0]]]), directed=True)
    with pytest.raises(ArgumentError, match="rho"):
        lw.operator(lw.collect("GridMaze-7", 1000), directed=True, rho="uniform")
