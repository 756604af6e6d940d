"""Times between states against closed forms and one linear solve per goal."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lapwing as lw
from lapwing.applications import (
    bottleneck_scores,
    commute_times,
    distances,
    hitting_times,
    largest_hitting_time,
    mean_hitting_time,
    reversible_hitting_times,
    walk_cover_time,
)
from lapwing.errors import ArgumentError, DataError
from worlds_by_kind import DIRECTED, GRIDS

SMALL = ("GridMaze-7", "GridMaze-9", "GridMaze-11", "GridMaze-17", "GridRoomSym-4", "FourRooms", "Maze-19")


def solved_goal_by_goal(matrix: np.ndarray) -> np.ndarray:
    """Hitting times by their definition: h = 1 + P h off the goal, and 0 on it."""
    count = len(matrix)
    times = np.zeros((count, count))
    for goal in range(count):
        rows = np.delete(np.arange(count), goal)
        times[rows, goal] = np.linalg.solve(np.eye(count - 1) - matrix[np.ix_(rows, rows)], np.ones(count - 1))
    return times


def random_chain(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(count, 0.3), size=count) * 0.9 + 0.1 / count


def random_reversible_chain(count: int, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).gamma(0.5, size=(count, count)) + 0.01
    flow = weights + weights.T
    return flow / flow.sum(axis=1, keepdims=True)


def directed_cycle(count: int) -> np.ndarray:
    return np.roll(np.eye(count), 1, axis=1)


def relative_error(found: np.ndarray, wanted: np.ndarray) -> float:
    return float((np.abs(found - wanted) / np.where(wanted > 0, wanted, 1.0)).max())


# --- commute times and the embedding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_commute_times_with_all_components_equal_linear_solves(name: str) -> None:
    operator = lw.operator(name)
    times = solved_goal_by_goal(operator.matrix.toarray())
    model = lw.solve(name, operator.num_states)
    assert relative_error(commute_times(model, operator.observations), times + times.T) < 1e-8
    assert relative_error(reversible_hitting_times(model, operator.observations), times) < 1e-8


@pytest.mark.parametrize("name", sorted({*GRIDS} - {*SMALL, *DIRECTED, "Rooms-64"}))
def test_commute_times_with_all_components_equal_hitting_times_both_ways_in_larger_worlds(name: str) -> None:
    operator = lw.operator(name)
    times = hitting_times(operator)
    found = commute_times(lw.solve(name, operator.num_states), operator.observations)
    assert relative_error(found, times + times.T) < 1e-6


@given(st.integers(2, 12), st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_identities_hold_for_any_reversible_walk_whatever_its_stationary_distribution(n: int, seed: int) -> None:
    operator = lw.operator(random_reversible_chain(n, seed))
    times = solved_goal_by_goal(operator.matrix.toarray())
    model = lw.solve(operator, n)
    assert relative_error(commute_times(model, operator.observations), times + times.T) < 1e-7
    assert relative_error(reversible_hitting_times(model, operator.observations), times) < 1e-7
    # The mean hitting time from a stationary start.
    scores = bottleneck_scores(model, operator.observations)
    np.testing.assert_allclose(scores, operator.rho @ times, rtol=1e-8, atol=1e-9)


def test_in_a_windy_world_the_walk_is_reversible_though_its_matrix_is_not_symmetric() -> None:
    operator = lw.operator("WindyRooms")
    assert operator.is_reversible()
    # Down has probability 1/2 and up 1/6, so that each row weighs three times as much as the one above.
    rows = lw.make_world("WindyRooms").layout.cells[:, 0]  # type: ignore[attr-defined]
    np.testing.assert_allclose(operator.rho, 3.0**rows / (3.0**rows).sum(), rtol=1e-9)
    times = hitting_times(operator)
    model = lw.solve(operator, operator.num_states)
    assert relative_error(reversible_hitting_times(model, operator.observations), times) < 1e-6


@pytest.mark.parametrize("name", ["OneWayRooms", "PortalRooms"])
def test_symmetrising_directed_dynamics_makes_no_commute_time_smaller(name: str) -> None:
    operator = lw.operator(name)
    times = hitting_times(operator)
    symmetrised = commute_times(lw.solve(operator, operator.num_states), operator.observations)
    assert (symmetrised >= (times + times.T) * (1 - 1e-9)).all()
    assert (symmetrised - times - times.T).max() > 50


def test_commute_times_in_a_corridor_have_a_closed_form() -> None:
    world = lw.make_world("room:1x9")
    table = world.table()
    assert table is not None
    cells = np.arange(9)
    # A tree: four steps per edge and state.
    wanted = 4.0 * 9 * np.abs(cells[:, None] - cells[None, :])
    np.testing.assert_allclose(commute_times(lw.solve(world, 9), table), wanted, atol=1e-9)


def test_fewer_components_give_smaller_commute_times() -> None:
    table = lw.operator("FourRooms").observations
    few, more = (commute_times(lw.solve("FourRooms", dim), table) for dim in (5, 30))
    assert (few <= more + 1e-9).all()
    assert few.max() < more.max()


def test_two_sets_of_observations_give_a_block_of_the_table() -> None:
    model, table = lw.solve("FourRooms", 11), lw.operator("FourRooms").observations
    for function in (commute_times, reversible_hitting_times):
        np.testing.assert_allclose(function(model, table[:3], table[50:54]), function(model, table)[:3, 50:54])


def test_doors_are_the_most_central_states_with_few_components() -> None:
    world = lw.make_world("FourRooms")
    doors = [world.layout.index[cell] for cell in ((3, 6), (6, 2), (7, 9), (10, 6))]  # type: ignore[attr-defined]
    ranks = {}
    for dim in (4, 11, 104):
        scores = bottleneck_scores(lw.solve(world, dim), lw.operator(world).observations)
        ranks[dim] = sorted((np.argsort(np.argsort(scores)) + 1)[doors].tolist())
    assert ranks == {4: [1, 2, 3, 4], 11: [1, 2, 3, 6], 104: [4, 11, 19, 27]}


@pytest.mark.slow
def test_a_learned_model_gives_the_distances_of_the_exact_one() -> None:
    operator = lw.operator("GridMaze-9")
    learned = lw.learn(operator, dim=4, steps=400, seed=0)
    exact = lw.solve(operator, 4)
    wanted = commute_times(exact, operator.observations)
    found = commute_times(learned, operator.observations)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, wanted, atol=0.01 * wanted.max())


# --- hitting times ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SMALL, *DIRECTED])
def test_hitting_times_equal_one_linear_solve_per_goal_both_ways(name: str) -> None:
    operator = lw.operator(name)
    wanted = solved_goal_by_goal(operator.matrix.toarray())
    assert relative_error(hitting_times(operator), wanted) < 1e-9
    assert relative_error(hitting_times(operator, operator.num_states), wanted) < 1e-6


@given(st.integers(2, 12), st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_hitting_times_of_any_directed_chain_equal_linear_solves_both_ways(n: int, seed: int) -> None:
    matrix = random_chain(n, seed)
    wanted = solved_goal_by_goal(matrix)
    assert relative_error(hitting_times(lw.operator(matrix)), wanted) < 1e-9
    assert relative_error(hitting_times(lw.operator(matrix), n), wanted) < 1e-6


@pytest.mark.parametrize("count", [3, 4, 9])
def test_round_a_directed_cycle_hitting_times_count_the_steps(count: int) -> None:
    states = np.arange(count)
    wanted = (states[None, :] - states[:, None]) % count
    operator = lw.operator(directed_cycle(count))
    np.testing.assert_allclose(hitting_times(operator), wanted, atol=1e-9)
    np.testing.assert_allclose(hitting_times(operator, count), wanted, atol=1e-9)


def test_in_a_corridor_the_hitting_time_of_the_end_is_quadratic() -> None:
    found = hitting_times(lw.operator("room:1x9"))
    cells = np.arange(9)
    np.testing.assert_allclose(found[0], 2.0 * cells * (cells + 1), atol=1e-9)


def test_a_complex_pair_is_never_split() -> None:
    operator = lw.operator(0.9 * directed_cycle(7) + 0.1 / 7)
    # mu = 1, then three complex pairs.
    for whole in (3, 5, 7):
        np.testing.assert_array_equal(hitting_times(operator, whole - 1), hitting_times(operator, whole))
    assert not np.allclose(hitting_times(operator, 3), hitting_times(operator, 5))


def test_of_a_reversible_walk_both_spectral_forms_agree_at_every_dimension() -> None:
    operator = lw.operator("WindyRooms")
    for dim in (4, 8, 20):
        found = reversible_hitting_times(lw.solve(operator, dim), operator.observations)
        np.testing.assert_allclose(hitting_times(operator, dim), found, rtol=1e-6, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize(
    ("matrix", "wanted"),
    [
        ([[0, 1, 0], [0, 0, 1], [0, 0, 1]], [[0, 1, 2], [np.inf, 0, 1], [np.inf, np.inf, 0]]),
        ([[1, 0], [0, 1]], [[0, np.inf], [np.inf, 0]]),
        # From the first state half of the walks are lost to the second, and the goal is missed with them.
        ([[0, 0.5, 0.5], [0, 1, 0], [0, 0, 1]], [[0, np.inf, np.inf], [np.inf, 0, np.inf], [np.inf, np.inf, 0]]),
        # The goal is passed on the way out: it is reached, and then left for ever.
        ([[0.5, 0.5, 0], [0, 0, 1], [0, 0, 1]], [[0, 2, 3], [np.inf, 0, 1], [np.inf, np.inf, 0]]),
        ([[1.0]], [[0]]),
    ],
)
def test_a_goal_that_may_be_missed_is_infinitely_far(matrix: Any, wanted: Any) -> None:
    found = hitting_times(lw.operator(matrix, rho="uniform"))
    np.testing.assert_allclose(found, np.array(wanted, dtype=float))


def test_where_states_do_not_all_meet_finite_times_equal_linear_solves() -> None:
    # A transient part of three states that leads into a closed one of four.
    matrix = np.zeros((7, 7))
    matrix[:3] = random_chain(7, 0)[:3]
    matrix[3:, 3:] = random_chain(4, 1)
    found = hitting_times(lw.operator(matrix, rho="uniform"))
    inside = solved_goal_by_goal(matrix[3:, 3:])
    np.testing.assert_allclose(found[3:, 3:], inside, rtol=1e-9)
    from_outside = np.linalg.solve(np.eye(3) - matrix[:3, :3], 1.0 + matrix[:3, 3:] @ inside)
    np.testing.assert_allclose(found[:3, 3:], from_outside, rtol=1e-9)
    assert np.isinf(found[3:, :3]).all()
    assert not np.isnan(found).any()


# --- from experience -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["OneWayRooms", "PortalRooms"])
def test_hitting_times_are_counted_from_experience_of_directed_worlds(name: str) -> None:
    operator = lw.operator(lw.collect(name, 1_000_000, seed=0), directed=True)
    assert not operator.exact
    assert operator.metadata["states_left_out"] == 0
    wanted = hitting_times(lw.operator(name))
    assert np.median(np.abs(hitting_times(operator) - wanted)) < 0.03 * wanted.mean()
    assert not operator.is_reversible()


# --- diffusion and cover times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "published"), [("room:10x10", 271.965), ("FourRooms", 620.769)])
def test_diffusion_times_are_those_of_the_literature_and_of_the_eigenvalues(name: str, published: float) -> None:
    operator = lw.operator(name)
    count = operator.num_states
    found = mean_hitting_time(operator)
    assert found == pytest.approx(published, abs=1e-3)
    inverse = (1.0 / lw.solve(name, count).eigenvalues[1:]).sum()
    assert found == pytest.approx(count / (count - 1) * inverse, rel=1e-9)


@pytest.mark.parametrize(("name", "wanted"), [("room:9x9", 452.0), ("FourRooms", 1107.5)])
def test_largest_hitting_times_are_what_covering_options_call_cover_times(name: str, wanted: float) -> None:
    assert largest_hitting_time(lw.operator(name)) == pytest.approx(wanted, abs=0.05)


def test_times_of_an_unconnected_world_are_infinite() -> None:
    operator = lw.operator(lw.Layout.from_text("  X  "))
    assert mean_hitting_time(operator) == largest_hitting_time(operator) == np.inf


def test_cover_times_match_closed_forms() -> None:
    count = 8
    cycle = (directed_cycle(count) + directed_cycle(count).T) / 2.0
    complete = (np.ones((count, count)) - np.eye(count)) / (count - 1)
    harmonic = (1.0 / np.arange(1, count)).sum()
    for matrix, wanted in ((cycle, count * (count - 1) / 2), (complete, (count - 1) * harmonic)):
        found = walk_cover_time(lw.operator(matrix), walks=20_000, seed=1)
        assert abs(found.mean - wanted) < 4 * found.standard_error < 0.03 * wanted
    assert walk_cover_time(lw.operator(directed_cycle(5)), walks=10) == (4.0, 0.0)


def test_cover_times_have_seeds() -> None:
    operator = lw.operator("GridMaze-7")
    first, again, other = (walk_cover_time(operator, 50, seed) for seed in (3, 3, 4))
    assert first == again != other


# --- bad input -------------------------------------------------------------------------------------------------------

OPERATOR = lw.operator("GridMaze-7")
MODEL = lw.solve("GridMaze-7", 4)
TABLE = OPERATOR.observations


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: commute_times("FourRooms", TABLE), "LaplacianRepresentation is needed"),
        (lambda: commute_times(OPERATOR, TABLE), "LaplacianRepresentation is needed"),
        (lambda: bottleneck_scores(None, TABLE), "LaplacianRepresentation is needed"),
        (lambda: commute_times(MODEL, TABLE, TABLE + 7.0), "not in the table"),
        (lambda: lw.solve("GridMaze-7", 1).embedding(TABLE), "take dim=2"),
        (lambda: commute_times(lw.solve("GridMaze-7", 1), TABLE), "take dim=2"),
        (lambda: commute_times(lw.solve("WindyRooms", 5, rho="uniform"), TABLE), "rho is not stationary"),
        (lambda: hitting_times("FourRooms"), "an Operator is needed"),
        (lambda: hitting_times(MODEL), "an Operator is needed"),
        (lambda: hitting_times(OPERATOR, 1), "dim must be a whole number from 2"),
        (lambda: hitting_times(OPERATOR, 12), "the number of states, 11"),
        (lambda: hitting_times(OPERATOR, 2.5), "dim must be a whole number"),
        (lambda: hitting_times(lw.operator("room:70x70")), "the limit is 4,000"),
        (lambda: hitting_times(lw.operator(np.eye(2), rho="uniform"), 2), "do not all reach one another"),
        (lambda: mean_hitting_time(lw.operator([[1.0]])), "one state only"),
        (lambda: largest_hitting_time(lw.operator([[1.0]])), "one state only"),
        (lambda: walk_cover_time(lw.operator(np.eye(2), rho="uniform")), "no walk covers them"),
        (lambda: walk_cover_time(OPERATOR, walks=1), "walks must be"),
        (lambda: walk_cover_time(OPERATOR, walks="many"), "walks must be"),
        (lambda: walk_cover_time(OPERATOR, seed=-1), "a seed is"),
        (lambda: walk_cover_time(OPERATOR, longest=0), "longest must be"),
        (lambda: walk_cover_time(OPERATOR, longest=12), "had not been everywhere"),
    ],
)
def test_bad_input_is_explained(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(lw.LapwingError, match=words):
        call()


def test_an_unconnected_world_has_a_plain_embedding_and_no_scaled_one() -> None:
    world = lw.make_world(lw.Layout.from_text("   X  "))
    table = lw.operator(world).observations
    with pytest.warns(lw.LapwingWarning):
        model = lw.solve(world, 3)
    assert model.embedding(table, scaled=False).shape == (5, 2)
    for call in (lambda: model.embedding(table), lambda: commute_times(model, table)):
        with pytest.raises(ArgumentError, match="unconnected parts"):
            call()


def test_dynamics_without_enough_eigenvectors_are_refused() -> None:
    # mu = 1, and a Jordan block of mu = 0.
    matrix = np.full((4, 4), 0.25) + 0.1 * np.outer([1, -1, 0, 0], [0, 0, 1, -1])
    with pytest.raises(DataError, match="hardly span the space"):
        hitting_times(lw.operator(matrix), 4)
    assert relative_error(hitting_times(lw.operator(matrix)), solved_goal_by_goal(matrix)) < 1e-12


def test_pairs_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distances, "MAX_PAIRS", 100)
    with pytest.raises(ArgumentError, match="do not fit"):
        commute_times(MODEL, TABLE)
