"""The multilevel eigensolver against dense solvers, closed forms and the engine of SciPy."""

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse import random as random_sparse

import lapwing as lw
from closed_forms import room_eigenvalues
from lapwing.environments import Layout
from lapwing.errors import ArgumentError
from lapwing.operators import multilevel
from lapwing.operators.clusters import group_degenerate
from lapwing.operators.eigensolver import Eigenpairs
from lapwing.operators.multilevel import graph_eigenpairs, grid_eigenpairs, is_open
from lapwing.operators.operator import Operator, operator_from_matrix, operator_from_world

COUNT = 12


@pytest.fixture(autouse=True)
def several_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small worlds get a hierarchy too."""
    monkeypatch.setattr(multilevel, "COARSEST", 40)


def everything(values: NDArray[np.float64]) -> int:
    return min(COUNT, len(values))


def solved(built: Operator, count: int = COUNT + 4) -> Eigenpairs:
    return graph_eigenpairs(built.matrix, built.rho, count, everything, largest_mu=built.largest_possible_mu())


def assert_same_as_dense(found: Eigenpairs, symmetric: csr_array) -> None:
    """Eigenvalues one by one, eigenvectors by the span of each whole cluster."""
    values, vectors = eigh(np.eye(symmetric.shape[0]) - symmetric.toarray())
    np.testing.assert_allclose(found.values[:COUNT], values[:COUNT], rtol=1e-6, atol=1e-12)
    for cluster in group_degenerate(values[: COUNT + 8], 1e-6):
        if cluster.stop <= COUNT:
            columns = slice(cluster.start, cluster.stop)
            overlaps = np.linalg.svd(vectors[:, columns].T @ found.vectors[:, columns], compute_uv=False)
            assert overlaps.min() > 1 - 1e-6
    gram = found.vectors.T @ found.vectors
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-10)


@pytest.mark.parametrize("name", ["maze:12x15:3", "maze:20x9:1", "room:20x20", "room:17x31", "rooms:4x5x5:2"])
def test_grid_worlds_agree_with_a_dense_solver(name: str) -> None:
    built = operator_from_world(lw.make_world(name))
    assert_same_as_dense(solved(built), built.symmetrised())


@pytest.mark.parametrize("name", ["room:20x20", "room:17x31", "room:2x300", "rooms:4x5x5:2", "room:40x1"])
def test_without_a_matrix_the_same_eigenpairs_are_found(name: str) -> None:
    world = lw.make_world(name)
    cells = world.walked_cells()
    assert cells is not None
    found = grid_eigenpairs(cells, COUNT + 4, everything)
    assert_same_as_dense(found, operator_from_world(world).symmetrised())


def test_a_square_room_has_its_cosines_with_every_copy() -> None:
    cells = lw.make_world("room:60x60").walked_cells()
    assert cells is not None
    found = grid_eigenpairs(cells, 24, lambda values: 20)
    np.testing.assert_allclose(found.values[:20], room_eigenvalues(60, 60)[:20], rtol=1e-8, atol=1e-13)


def test_the_matrix_free_product_is_that_of_the_matrix() -> None:
    world = lw.make_world("rooms:3x4x5:1")
    cells = world.walked_cells()
    assert cells is not None
    grid = multilevel.Grid(cells)
    values = np.random.default_rng(0).standard_normal((world.num_states, 3))
    canvas = np.zeros((grid.size, 3))
    canvas[cells.ravel()] = values
    laplacian = np.eye(world.num_states) - world.transition_matrix().toarray()
    np.testing.assert_allclose(grid.multiply(canvas)[cells.ravel()], laplacian @ values, atol=1e-11)
    assert not grid.multiply(canvas)[~cells.ravel()].any()


def test_a_world_in_parts_has_a_null_vector_for_each() -> None:
    free = np.zeros((40, 50), dtype=bool)
    free[1:15, 1:20] = free[20:38, 1:25] = free[5:8, 30:40] = True
    free[30, 40] = True
    world = lw.make_world(Layout("parts", free))
    built = operator_from_world(world)
    found = solved(built)
    assert np.count_nonzero(found.values == 0.0) == 4
    assert_same_as_dense(found, built.symmetrised())
    assert_same_as_dense(grid_eigenpairs(free, COUNT + 4, everything), built.symmetrised())


def test_a_torus_is_solved_with_its_clusters_of_four() -> None:
    rows, columns = 24, 24
    numbers = np.arange(rows * columns).reshape(rows, columns)
    matrix = np.zeros((rows * columns,) * 2)
    for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
        matrix[numbers.ravel(), np.roll(numbers, shift, axis).ravel()] += 0.25
    built = operator_from_matrix(csr_array(matrix))
    assert_same_as_dense(solved(built), built.symmetrised())


@pytest.mark.parametrize("seed", range(3))
def test_weights_that_differ_between_states_are_taken_into_account(seed: int) -> None:
    rng = np.random.default_rng(seed)
    flow = random_sparse(400, 400, 0.006, random_state=seed, data_rvs=lambda n: rng.lognormal(0, 2, n))
    path = diags_array([np.ones(399), np.ones(399)], offsets=[-1, 1])
    flow = csr_array(flow + flow.T + path)
    matrix = csr_array(diags_array(1.0 / flow.sum(axis=1)) @ flow)
    built = operator_from_matrix(matrix)
    assert_same_as_dense(solved(built), built.symmetrised())
    other = operator_from_matrix(matrix, rng.random(400) + 0.1)  # not what the matrix keeps
    assert_same_as_dense(solved(other), other.symmetrised())


def test_counted_transitions_give_the_same_as_scipy() -> None:
    data = lw.collect("maze:12x12:1", 50_000, seed=0)
    found, other = (lw.solve(data, 6, engine=engine) for engine in ("multilevel", "scipy"))
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-6, atol=1e-12)
    assert lw.score(found, other).subspace_cosine > 1 - 1e-6
    assert found.certificate().converged


def test_elimination_solves_a_tree_exactly() -> None:
    built = operator_from_world(lw.make_world("maze:30x30:7"))
    mass = built.rho * built.num_states
    flow = diags_array(mass) @ built.matrix
    graph = multilevel.Graph(csr_array(diags_array((1 + 1e-6) * mass) - flow), mass)
    levels = multilevel._hierarchy(graph, 4, None)
    right = np.random.default_rng(0).standard_normal((graph.size, 2))
    np.testing.assert_allclose(graph.multiply(levels.solve(right)), right, atol=1e-8)


def test_open_grids_are_told_from_corridors() -> None:
    open_room, corridors = (lw.make_world(name).walked_cells() for name in ("room:9x9", "maze:9x9:0"))
    assert open_room is not None
    assert corridors is not None
    assert is_open(open_room)
    assert not is_open(corridors)


def test_a_graph_that_cannot_be_coarsened_is_refused() -> None:
    alone = operator_from_matrix(csr_array(np.eye(2000)), "uniform")
    with pytest.raises(ArgumentError, match="hardly connected"):
        graph_eigenpairs(alone.matrix, alone.rho, 5, lambda values: 5)


def test_a_run_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilevel, "MAX_SWEEPS", 1)
    with pytest.raises(ArgumentError, match="not converged in 1 sweeps"):
        solved(operator_from_world(lw.make_world("room:30x31")))


def test_a_grid_world_in_parts_is_said_to_be_so() -> None:
    free = np.zeros((30, 40), dtype=bool)
    free[1:10, 1:39] = free[12:29, 1:39] = True
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = lw.solve(Layout("halves", free), 4, engine="multilevel")
    assert any("2 unconnected parts" in str(warning.message) for warning in seen)
    np.testing.assert_allclose(model.eigenvalues[:2], 0.0)
