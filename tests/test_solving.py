"""Exact answers against the paper's table, closed forms, and a dense solver."""

import csv
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from closed_forms import birth_death, random_chain, ring, ring_mu, room_eigenvalues, room_eigenvectors, same_span
from lapwing import solving
from lapwing.data import collect
from lapwing.data.loading import from_arrays
from lapwing.definitions import one_step, successor
from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import OBSERVATION_MODES
from lapwing.environments.layouts import Layout
from lapwing.environments.registry import make_world
from lapwing.errors import ArgumentError, LapwingError, LapwingWarning, UnknownNameError
from lapwing.operators import eigensolver
from lapwing.operators.clusters import canonical_signs
from lapwing.operators.operator import Operator, operator_from_matrix
from lapwing.solving import operator, solve

PAPER_TABLE = Path(__file__).resolve().parents[2] / "shared" / "paper" / "eigenvalues.csv"
OWN_LAYOUTS = ["GridRoom-1", "GridRoomSym-4", "GridMaze-7", "GridMaze-9", "GridMaze-17"]
ALL_TWELVE = [
    *OWN_LAYOUTS,
    "GridRoom-4",
    "GridRoom-16",
    "GridRoom-32",
    "GridRoom-64",
    "GridMaze-19",
    "GridMaze-26",
    "GridMaze-32",
]
TWO_ROOMS = "XXXXXXX\nX  X  X\nX  X  X\nXXXXXXX"


@pytest.fixture(scope="module")
def paper() -> dict[str, NDArray[np.float64]]:
    if not PAPER_TABLE.is_file():
        pytest.skip(f"the paper's tables are not at {PAPER_TABLE}")
    with PAPER_TABLE.open() as stream:
        rows = list(csv.DictReader(stream))
    return {
        name: np.array([float(row["true"]) for row in rows if row["environment"] == name])
        for name in {row["environment"] for row in rows}
    }


@pytest.mark.parametrize("name", OWN_LAYOUTS)
def test_worlds_that_carry_the_papers_names_have_the_papers_spectra(
    name: str, paper: dict[str, NDArray[np.float64]]
) -> None:
    found = solve(name, dim=11).eigenvalues_in("successor(0.9)")
    np.testing.assert_allclose(found, paper[name], rtol=0, atol=5.1e-5)


@pytest.mark.parametrize("name", ALL_TWELVE)
def test_the_authors_layouts_have_the_papers_spectra(
    name: str, paper: dict[str, NDArray[np.float64]], authors_layouts: Path
) -> None:
    assert set(paper) == set(ALL_TWELVE)
    with warnings.catch_warnings():
        if name == "GridMaze-32":
            warnings.simplefilter("ignore", LapwingWarning)
        found = solve(name, dim=11, layouts=authors_layouts).eigenvalues_in(successor(0.9))
    np.testing.assert_allclose(found, paper[name], rtol=0, atol=5.1e-5)


@pytest.mark.parametrize(("name", "rows", "columns"), [("GridRoom-1", 15, 15), ("GridMaze-17", 87, 1)])
def test_one_room_and_one_corridor_have_their_closed_forms(name: str, rows: int, columns: int) -> None:
    found = solve(name, dim=11)
    expected = room_eigenvalues(rows, columns)[:11]
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=0, atol=1e-13)
    paper_units = 0.9 * expected / (1.0 - 0.9 * (1.0 - expected))
    np.testing.assert_allclose(found.eigenvalues_in("successor(0.9)"), paper_units, rtol=0, atol=1e-12)


def test_a_cross_of_corridors_has_the_spectrum_of_its_matrix_written_by_hand() -> None:
    matrix = np.zeros((17, 17))
    for arm in range(4):
        cells = [0, *range(1 + 4 * arm, 5 + 4 * arm)]
        for one, other in itertools.pairwise(cells):
            matrix[one, other] = matrix[other, one] = 0.25
    matrix += np.diag(1.0 - matrix.sum(axis=1))
    expected = np.linalg.eigvalsh(np.eye(17) - matrix)
    np.testing.assert_allclose(solve("GridMaze-11", dim=17).eigenvalues, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 1), (5, 8), (7, 7), (1, 30)])
def test_an_empty_room_has_its_closed_form(rows: int, columns: int) -> None:
    found = solve(f"room:{rows}x{columns}", dim=rows * columns)
    np.testing.assert_allclose(found.eigenvalues, room_eigenvalues(rows, columns), rtol=0, atol=1e-13)


def test_the_eigenvectors_of_an_empty_room_are_products_of_cosines() -> None:
    found = solve("room:5x8", dim=40)
    values, cosines = found.transform(found.encoder.support()[0]), room_eigenvectors(5, 8)
    modes = np.cos(np.pi * np.arange(5) / 5)[:, None] + np.cos(np.pi * np.arange(8) / 8)
    order = np.argsort(1.0 - modes.ravel() / 2.0, kind="stable")
    for position in (0, 1, 2, 3, 4, 39):
        overlap = np.abs(values[:, position] @ cosines[:, order[position]]) / 40.0
        assert overlap == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize(("forward", "backward"), [(1.0, 0.0), (0.7, 0.1), (0.5, 0.5)])
def test_a_directed_ring_has_its_closed_form(forward: float, backward: float) -> None:
    found = solve(ring(11, forward, backward), dim=11)
    expected = np.sort(1.0 - ring_mu(11, forward, backward).real)
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=0, atol=1e-13)
    assert found.metadata["reversible"] is (forward == backward)
    fourier = np.exp(2j * np.pi * np.outer(np.arange(11), [1, 10]) / 11) / np.sqrt(11)
    pair = found.transform(np.arange(11))[:, 1:3] / np.sqrt(11)
    assert np.linalg.norm(pair - (fourier @ (fourier.conj().T @ pair)).real) < 1e-10


@pytest.mark.parametrize("sides", [(1.0,), (1.0, 0.8), (1.0, 0.8, 0.65)])
def test_a_box_has_its_closed_form(sides: tuple[float, ...]) -> None:
    found = solve(BoxWorld(sides, 0.1), dim=9)
    numbers = np.stack(np.meshgrid(*[np.arange(12)] * len(sides), indexing="ij"), axis=-1).reshape(-1, len(sides))
    every = np.sort(1.0 - np.prod(np.sinc(numbers * 0.1 / np.array(sides)), axis=1))
    np.testing.assert_allclose(found.eigenvalues, every[:9], rtol=0, atol=1e-14)
    assert found.exact
    assert set(found.certificate().verdicts) <= {"trusted", "degenerate"}


def test_a_square_box_keeps_the_whole_of_its_last_cluster() -> None:
    found = solve(BoxWorld((1.0, 1.0), 0.1), dim=2)
    assert found.encoder.dim == 3
    assert found.transform([[0.1, 0.2]]).shape == (1, 2)
    assert found.certificate().verdicts == ("trusted", "degenerate")


def test_a_box_whose_eigenvalues_crowd_at_one_is_solved_all_the_same() -> None:
    found = solve(BoxWorld((1.0,), 0.9), dim=40)
    assert found.encoder.dim >= 40
    assert (np.diff(found.mu) <= 0).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_components_of_a_non_reversible_chain_are_orthonormal_under_its_own_distribution(seed: int) -> None:
    matrix = random_chain(10, seed)
    found = solve(matrix, dim=10)
    rho = found.encoder.support()[1]
    np.testing.assert_allclose(rho @ matrix, rho, rtol=0, atol=1e-14)
    values = found.transform(np.arange(10))
    np.testing.assert_allclose(values.T @ (values * rho[:, None]), np.eye(10), rtol=0, atol=1e-12)
    mean = (matrix + np.diag(1 / rho) @ matrix.T @ np.diag(rho)) / 2.0
    np.testing.assert_allclose(values - mean @ values, values * found.eigenvalues, rtol=0, atol=1e-12)
    np.testing.assert_allclose(values[:, 0], 1.0, rtol=0, atol=1e-12)
    assert found.orthonormality_error is not None
    assert found.orthonormality_error < 1e-12


@pytest.mark.parametrize("name", ["FourRooms", "GridMaze-17", "Rooms-16"])
def test_eigenvalues_ascend_and_components_have_mean_square_one(name: str) -> None:
    found = solve(name, dim=12)
    points, rho = found.encoder.support()
    assert (np.diff(found.eigenvalues) >= -1e-14).all()
    np.testing.assert_allclose(rho @ found.transform(points) ** 2, 1.0, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.transform(points), canonical_signs(found.transform(points)))


def test_the_same_world_gives_the_same_bits_twice() -> None:
    first, second = (solve("Rooms-16", dim=11) for _ in range(2))
    np.testing.assert_array_equal(first.encoder.arrays()["values"], second.encoder.arrays()["values"])
    np.testing.assert_array_equal(first.mu, second.mu)


def test_the_last_cluster_is_complete_in_the_encoder_and_cut_in_the_answer() -> None:
    found = solve("GridMaze-11", dim=11)
    assert found.encoder.dim == 12
    observations = found.encoder.support()[0]
    assert found.transform(observations).shape == (17, 11)
    assert found.transform_all(observations).shape == (17, 12)
    assert len(found.eigenvalues) == 11
    assert found.mu[11] == pytest.approx(found.mu[10], abs=1e-12)
    assert found.next_mu is not None
    assert found.next_mu < found.mu[11] - 1e-3


def test_a_cluster_longer_than_the_first_search_is_followed_to_its_end() -> None:
    with pytest.warns(LapwingWarning, match="20 unconnected parts"):
        found = solve(np.kron(np.eye(20), ring(3, 0.5, 0.5)), dim=2)
    assert found.encoder.dim == 20
    assert found.next_mu == pytest.approx(-0.5)


def test_asking_for_every_component_leaves_no_next_one() -> None:
    found = solve("GridMaze-7", dim=11)
    assert found.next_mu is None
    assert found.encoder.dim == 11


def test_a_world_in_parts_is_solved_and_said_to_be_in_parts() -> None:
    with pytest.warns(LapwingWarning, match="2 unconnected parts: eigenvalue 0 appears 2 times"):
        found = solve(Layout.from_text(TWO_ROOMS, "two rooms"), dim=3)
    np.testing.assert_allclose(found.eigenvalues, [0.0, 0.0, 0.5], rtol=0, atol=1e-14)
    values = found.transform(found.encoder.support()[0])
    assert (
        same_span(np.repeat(np.eye(2), 4, axis=0)[[0, 1, 4, 5, 2, 3, 6, 7]] / 2.0, values[:, :2] / np.sqrt(8)) < 1e-12
    )


def test_the_sparse_path_gives_the_same_representation(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = solve("Rooms-16", dim=6)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT_FILLED", 10)
    sparse = solve("Rooms-16", dim=6)
    points = dense.encoder.support()[0]
    np.testing.assert_allclose(sparse.mu[:6], dense.mu[:6], rtol=0, atol=1e-13)
    np.testing.assert_allclose(sparse.transform(points), dense.transform(points), rtol=0, atol=1e-8)


def test_uniform_weights_under_a_policy_agree_on_the_sparse_path(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=180)
    dense = solve("room:12x15", 4, policy=policy, rho="uniform")
    assert dense.eigenvalues[0] < -0.1
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT_FILLED", 10)
    sparse = solve("room:12x15", 4, policy=policy, rho="uniform")
    np.testing.assert_allclose(sparse.eigenvalues, dense.eigenvalues, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dim", [0, -1, 2.5, True, "3", None, np.nan, np.inf, [3]], ids=repr)
def test_a_dimension_that_is_no_positive_whole_number_is_refused(dim: object) -> None:
    for world in ("GridMaze-7", "Box-2"):
        with pytest.raises(LapwingError, match="dim must be a whole number of at least 1"):
            solve(world, dim)  # type: ignore[arg-type]


@pytest.mark.parametrize("dim", [3, 3.0, np.int64(3), np.float32(3.0)], ids=repr)
def test_a_dimension_may_be_any_kind_of_whole_number(dim: int) -> None:
    found = solve("GridMaze-7", dim)
    assert type(found.dim) is int
    assert found.eigenvalues.shape == (3,)


def test_more_components_than_states_are_refused() -> None:
    with pytest.raises(LapwingError, match="dim=12 is larger than the number of states, 11"):
        solve("GridMaze-7", dim=12)


@pytest.mark.parametrize(
    "source", [None, 7, {"P": np.eye(2)}, object(), np.float64(1.0)], ids=["None", "int", "dict", "object", "scalar"]
)
def test_sources_of_an_unknown_kind_are_refused(source: object) -> None:
    with pytest.raises(LapwingError, match="cannot make an operator from"):
        solve(source, 2)


def test_an_unknown_world_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(LapwingError, match="GridMaze-7"):
        solve("GridMaze7", 2)


def test_matrices_may_be_lists_arrays_or_sparse() -> None:
    matrix = birth_death(4, 0.3, 0.2)
    expected = solve(matrix, 4).mu
    tuples = tuple(map(tuple, matrix))
    for source in (matrix.tolist(), tuples, csr_array(matrix), operator_from_matrix(matrix)):
        np.testing.assert_allclose(solve(source, 4).mu, expected, rtol=0, atol=1e-14)
    assert solve(((0.5, 0.5), (0.5, 0.5)), 2).eigenvalues == pytest.approx([0.0, 1.0])
    with pytest.raises(LapwingError, match="row 0 of the transition matrix sums to 2"):
        solve(2.0 * matrix, 2)


def test_the_policy_slip_and_weights_reach_the_operator() -> None:
    world = make_world("GridMaze-9")
    policy = np.random.default_rng(0).dirichlet(np.ones(4), size=13)
    weights = np.arange(1.0, 14.0)
    built = operator("GridMaze-9", policy=policy, slip=0.3, rho=weights)
    by_hand = world.with_options(policy=policy, slip=0.3).transition_matrix()  # type: ignore[union-attr]
    np.testing.assert_array_equal(built.matrix.toarray(), by_hand.toarray())
    np.testing.assert_allclose(built.rho, weights / weights.sum())
    found = solve("GridMaze-9", 5, policy=policy, slip=0.3, rho=weights)
    dense = np.linalg.eigvalsh(np.eye(13) - built.symmetrised().toarray())
    np.testing.assert_allclose(found.eigenvalues, dense[:5], rtol=0, atol=1e-13)
    assert found.metadata["world"]["slip"] == 0.3


def test_slipping_does_nothing_to_a_uniform_policy() -> None:
    np.testing.assert_allclose(solve("GridMaze-9", 5, slip=0.5).mu, solve("GridMaze-9", 5).mu, rtol=0, atol=1e-14)


def test_a_policy_on_a_world_in_parts_has_no_unique_distribution() -> None:
    policy = np.random.default_rng(0).dirichlet(np.ones(4), size=8)
    world = Layout.from_text(TWO_ROOMS, "two rooms")
    with pytest.raises(LapwingError, match="rho='uniform'"):
        solve(world, 2, policy=policy)
    with pytest.warns(LapwingWarning, match="2 unconnected parts"):
        assert solve(world, 2, policy=policy, rho="uniform").dim == 2


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_every_observation_mode_gives_the_same_answer_at_its_own_observations(mode: str) -> None:
    found = solve("GridMaze-9", 4, observation=mode)  # type: ignore[arg-type]
    observations = make_world("GridMaze-9", observation=mode).table()  # type: ignore[arg-type,union-attr]
    plain = solve("GridMaze-9", 4)
    expected = plain.transform(make_world("GridMaze-9").table())  # type: ignore[union-attr]
    np.testing.assert_array_equal(found.transform(observations), expected)


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("Box-2", {"slip": 0.1}),
        ("Box-2", {"observation": "pixels"}),
        ("Box-2", {"rho": "uniform"}),
        ("data", {"observation": "xy"}),
        ("matrix", {"slip": 0.1}),
        ("matrix", {"policy": np.ones((2, 4)) / 4}),
        ("operator", {"rho": "uniform"}),
        ("operator", {"slip": 0.1}),
    ],
    ids=str,
)
def test_an_option_that_would_be_ignored_is_refused(source: str, option: dict[str, object]) -> None:
    sources = {"data": from_arrays([[[0.0], [1.0], [0.0], [1.0]]]), "matrix": np.full((2, 2), 0.5)}
    sources["operator"] = operator_from_matrix(np.full((2, 2), 0.5))
    with pytest.raises(LapwingError):
        solve(sources.get(source, source), 1, **option)  # type: ignore[arg-type]


def test_a_box_has_no_matrix() -> None:
    with pytest.raises(LapwingError, match="closed form"):
        operator("Box-2")


def test_the_definition_is_a_choice_of_units_only() -> None:
    plain, chosen = solve("FourRooms", 5), solve("FourRooms", 5, definition="successor(0.9)")
    assert plain.definition == one_step()
    assert chosen.definition == successor(0.9)
    np.testing.assert_array_equal(chosen.mu, plain.mu)
    np.testing.assert_array_equal(chosen.eigenvalues, plain.eigenvalues_in(successor(0.9)))
    with pytest.raises(LapwingError, match="did you mean successor"):
        solve("FourRooms", 5, definition="succesor(0.9)")


def test_experience_is_counted_over_the_states_it_visited() -> None:
    data = collect("Rooms-16", steps=400, seed=0)
    visited = np.unique(data.ids)
    assert len(visited) < len(data.observations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LapwingWarning)
        found = solve(data, 4)
    assert not found.exact
    np.testing.assert_array_equal(found.encoder.support()[0], data.observations[visited])
    unvisited = np.delete(np.arange(len(data.observations)), visited)
    with pytest.raises(LapwingError, match="does not generalise"):
        found.transform(data.observations[unvisited[:1]])


def test_much_experience_comes_close_to_the_exact_answer() -> None:
    counted, exact = solve(collect("GridMaze-9", steps=200_000, seed=0), 6), solve("GridMaze-9", 6)
    np.testing.assert_allclose(counted.eigenvalues, exact.eigenvalues, rtol=0.03, atol=1e-12)
    assert counted.metadata["transitions"] == 200_000
    assert counted.metadata["world"]["name"] == "GridMaze-9"


def test_experience_that_hardly_repeats_cannot_be_counted() -> None:
    with pytest.raises(LapwingError, match="hardly"):
        solve(collect("Box-2", steps=500, seed=0), 2)


def test_an_operator_is_its_own_operator() -> None:
    built = operator("GridMaze-7")
    assert isinstance(built, Operator)
    assert operator(built) is built


def test_long_stages_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT", 10)
    monkeypatch.setattr(eigensolver, "DENSE_LIMIT_FILLED", 10)
    said: list[str] = []
    solve("room:9x9", 3, say=said.append)
    assert said[0] == "factorising 81 states"


@pytest.mark.parametrize("name", ["multilevl", "", "grid", 3, None])
def test_an_unknown_engine_is_refused_by_name(name: Any) -> None:
    with pytest.raises(UnknownNameError, match="unknown engine"):
        solve("GridMaze-7", 3, engine=name)


@pytest.mark.parametrize("name", ["slepc:0", "slepc:", "slepc:-1", "slepc:99999", "scipy:2", "slepc:x"])
def test_a_number_of_processes_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ArgumentError, match="as in slepc:2"):
        solve("GridMaze-7", 3, engine=name)


def test_a_discretised_world_is_left_to_scipy() -> None:
    with pytest.raises(ArgumentError, match="use engine='scipy'"):
        solve("UMaze", 3, engine="multilevel")


def test_large_worlds_go_to_the_multilevel_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "SCIPY_STATES", 500)
    large, small = solve("room:30x31", 5), solve("room:20x21", 5)
    assert large.metadata["engine"] == "multilevel"
    assert "engine" not in small.metadata
    np.testing.assert_allclose(large.eigenvalues, room_eigenvalues(30, 31)[:5], rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(large.transform(make_world("room:30x31").table()).var(axis=0)[1:], 1.0, rtol=1e-6)


def test_factors_of_a_product_are_solved_by_the_engine_asked_for() -> None:
    found, other = (solve("product:maze:8x9:1*room:7x9", 6, engine=name) for name in ("multilevel", "scipy"))
    np.testing.assert_allclose(found.eigenvalues, other.eigenvalues, rtol=1e-6, atol=1e-12)
