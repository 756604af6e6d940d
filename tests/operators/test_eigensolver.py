"""The eigensolver: the sparse path against the dense one and against closed forms."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array

from closed_forms import random_chain, room_eigenvalues, same_span
from lapwing.environments import ContinuousMaze, room
from lapwing.environments.registry import make_world
from lapwing.errors import LapwingError
from lapwing.operators import eigensolver
from lapwing.operators.clusters import group_degenerate
from lapwing.operators.eigensolver import Eigenpairs, lowest_mu, smallest_eigenpairs
from lapwing.operators.operator import operator_from_matrix, operator_from_world


def symmetrised(name: str) -> csr_array:
    return operator_from_world(make_world(name)).symmetrised()


def several_rooms(count: int) -> csr_array:
    """A world in identical unconnected parts: every eigenvalue appears ``count`` times or more."""
    return csr_array(block_diag([symmetrised("room:4x5")] * count))


def sparse_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT_FILLED", 10)


def assert_same_eigenpairs(found: Eigenpairs, dense: Eigenpairs) -> None:
    """Eigenvalues one by one, eigenvectors by the span of each cluster that is complete in ``found``."""
    count = len(found.values)
    np.testing.assert_allclose(found.values, dense.values[:count], rtol=0, atol=1e-10)
    for cluster in group_degenerate(dense.values, 1e-6):
        if cluster.stop <= count:
            columns = slice(cluster.start, cluster.stop)
            assert same_span(found.vectors[:, columns], dense.vectors[:, columns]) < 1e-8
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(count), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["room:12x17", "room:13x13", "Rooms-16", "GridRoomSym-4", "Maze-19"])
def test_shift_invert_agrees_with_the_dense_solver(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = symmetrised(name)
    dense = smallest_eigenpairs(matrix, 18)
    sparse_only(monkeypatch)
    found = smallest_eigenpairs(matrix, 12)
    assert_same_eigenpairs(found, dense)
    assert found.residuals.max() < 1e-12


def test_both_degenerate_partners_of_a_square_room_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse_only(monkeypatch)
    found = smallest_eigenpairs(symmetrised("room:13x13"), 12)
    np.testing.assert_allclose(found.values, room_eigenvalues(13, 13)[:12], rtol=0, atol=1e-13)
    assert [len(cluster) for cluster in group_degenerate(found.values, 1e-6)][:4] == [1, 2, 1, 2]


def test_every_copy_of_an_unconnected_world_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = several_rooms(7)
    dense = smallest_eigenpairs(matrix, 22)
    sparse_only(monkeypatch)
    found = smallest_eigenpairs(matrix, 21)
    assert (np.abs(found.values[:7]) < 1e-12).all()
    assert found.values[7] > 1e-3
    assert_same_eigenpairs(found, dense)


@pytest.mark.parametrize("dropped", [[0], [3], [0, 1, 2], [8], [2, 9]])
def test_copies_that_lanczos_missed_are_restored(dropped: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = several_rooms(7)
    dense = smallest_eigenpairs(matrix, 22)
    sparse_only(monkeypatch)
    real, calls = eigensolver.eigsh, []

    def forgetful(operator: Any, k: int, **options: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        calls.append(k)
        if len(calls) > 1:
            return real(operator, k=k, **options)
        values, vectors = real(operator, k=k + len(dropped), **options)
        order = np.delete(np.argsort(values), dropped)
        return values[order], vectors[:, order]

    monkeypatch.setattr(eigensolver, "eigsh", forgetful)
    found = smallest_eigenpairs(matrix, 14)
    assert_same_eigenpairs(found, dense)
    # One search for all, one for each missed copy, and one that finds nothing more.
    assert len(calls) == 2 + len(dropped)
    assert found.residuals.max() < 1e-5


def test_a_solver_that_keeps_missing_eigenvectors_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse_only(monkeypatch)
    real = eigensolver.eigsh

    def never_enough(operator: Any, k: int, **options: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        values, vectors = real(operator, k=k, **options)
        return (values, vectors) if "sigma" in options else (np.array([1e9]), vectors)

    monkeypatch.setattr(eigensolver, "eigsh", never_enough)
    with pytest.raises(LapwingError, match="kept finding"):
        smallest_eigenpairs(several_rooms(3), 4)


def test_a_large_room_has_its_closed_form_through_the_sparse_path() -> None:
    matrix = symmetrised("room:200x200")
    stages: list[str] = []
    found = smallest_eigenpairs(matrix, 8, stages.append)
    np.testing.assert_allclose(found.values, room_eigenvalues(200, 200)[:8], rtol=0, atol=1e-13)
    assert found.residuals.max() < 1e-12
    assert stages[0] == "factorising 40,000 states"
    assert len(stages) == 3


def test_weights_that_are_not_stationary_give_the_lowest_eigenvalues_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world("room:14x15")
    policy = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=world.num_states)
    operator = operator_from_world(world.with_options(policy=policy), "uniform")
    dense = smallest_eigenpairs(operator.symmetrised(), 12)
    assert dense.values[0] < -0.1, "this chain was to have eigenvalues below zero"
    sparse_only(monkeypatch)
    found = smallest_eigenpairs(operator.symmetrised(), 8, largest_mu=operator.largest_possible_mu())
    assert_same_eigenpairs(found, dense)


def test_weights_far_from_uniform_agree_with_the_dense_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world("room:12x13")
    policy = np.random.default_rng(1).dirichlet(np.ones(4), size=world.num_states)
    operator = operator_from_world(world.with_options(policy=policy))
    dense = smallest_eigenpairs(operator.symmetrised(), 10)
    sparse_only(monkeypatch)
    assert_same_eigenpairs(smallest_eigenpairs(operator.symmetrised(), 8), dense)


@pytest.mark.parametrize("dense", [True, False])
def test_the_same_matrix_gives_the_same_bits_twice(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not dense:
        sparse_only(monkeypatch)
    matrix = symmetrised("room:13x13")
    first, second = (smallest_eigenpairs(matrix, 9) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_all_eigenpairs_can_be_asked_for() -> None:
    pairs = smallest_eigenpairs(symmetrised("room:4x5"), 20)
    np.testing.assert_allclose(pairs.values, room_eigenvalues(4, 5), rtol=0, atol=1e-13)


@pytest.mark.parametrize("count", [0, -1, 21])
def test_a_count_outside_the_number_of_states_is_refused(count: int) -> None:
    with pytest.raises(LapwingError, match="ask for 1 to 20"):
        smallest_eigenpairs(symmetrised("room:4x5"), count)


def test_too_many_for_the_sparse_solver_are_solved_densely_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = symmetrised("room:6x10")
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    np.testing.assert_allclose(smallest_eigenpairs(matrix, 30).values, room_eigenvalues(6, 10)[:30], rtol=0, atol=1e-13)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT_FILLED", 10)
    with pytest.raises(LapwingError, match="at most 15"):
        smallest_eigenpairs(matrix, 16)


def test_a_full_matrix_is_solved_densely_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    monkeypatch.setattr(eigensolver, "splu", None)
    matrix = operator_from_matrix(random_chain(60, 0)).symmetrised()
    expected = np.linalg.eigvalsh(np.eye(60) - matrix.toarray())[:5]
    np.testing.assert_allclose(smallest_eigenpairs(matrix, 5).values, expected, rtol=0, atol=1e-13)


def test_an_eigenvalue_zero_is_exactly_zero() -> None:
    assert smallest_eigenpairs(symmetrised("FourRooms"), 1).values[0] == 0.0


def test_repeated_eigenvalues_are_found_without_factors_too() -> None:
    # A square room: every eigenvalue of unequal modes is double.
    world = ContinuousMaze(room(3, 3), 0.6, "uniform")
    matrix = world.discretisation(8).matrix
    found = smallest_eigenpairs(matrix, 12, factorise=False)
    np.testing.assert_allclose(1 - found.values, np.linalg.eigvalsh(matrix.toarray())[::-1][:12], atol=1e-9)
    np.testing.assert_allclose(found.vectors.T @ found.vectors, np.eye(12), atol=1e-9)
    assert found.values[2] - found.values[1] < 1e-9


def test_the_lowest_eigenvalue_is_bounded_closely() -> None:
    for world in (make_world("room:6x7"), make_world("room:30x31")):
        symmetric = csr_array(world.transition_matrix())
        sides = np.array(world.layout.shape) - 2
        exact = (np.cos(np.pi * (1 - 1 / sides)) / 2).sum()
        assert exact - 0.03 < lowest_mu(symmetric) <= exact + 1e-12
