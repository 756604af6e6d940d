"""Regions, ways between them, and local planners with and without a simulator."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import lapwing as lw
from lapwing.applications import Planner, RegionGraph, region_graph
from lapwing.environments import ContinuousMaze
from lapwing.errors import ArgumentError, DataError

MAZE = lw.make_world("GridMaze-17")  # one folded corridor, 73 cells
SMALL_U = """\
XXXXX
X   X
XXX X
X   X
XXXXX"""
UMAZE = ContinuousMaze(lw.Layout.from_text(SMALL_U, "small U"), 0.5)


@pytest.fixture(scope="module")
def corridor_data() -> lw.Trajectories:
    return lw.collect(MAZE, 20_000, seed=0, record="actions")


@pytest.fixture(scope="module")
def of_umaze() -> lw.LaplacianRepresentation:
    return lw.solve(UMAZE, dim=6)


def line(count: int) -> RegionGraph:
    """Regions in a row, joined one way: 0 to 1 to 2 ..."""
    steps = csr_array(np.diag(np.ones(count - 1), 1))
    return RegionGraph(lambda seen: np.asarray(seen, float), np.arange(count, dtype=np.float32)[:, None], steps)


def test_ways_follow_the_direction_of_observed_steps() -> None:
    graph = line(4)
    assert graph.path([0.2], [3.1]) == [0, 1, 2, 3]
    assert graph.path([2.0], [2.0]) == [2]
    with pytest.raises(DataError, match="no way"):
        graph.path([3.0], [0.0])
    assert graph.next_regions(np.array([3, 0])).tolist() == [[1, 2, 3, 3], [0, -1, -1, -1]]


def test_the_shortest_way_counts_distances_not_edges() -> None:
    # From 0 to 2 straight is one long edge; by way of 1, off the line, it is longer still; 3 is a detour.
    centres = np.array([[0.0, 0.0], [1.0, 5.0], [2.0, 0.0], [1.0, 0.1]], dtype=np.float32)
    steps = np.zeros((4, 4))
    steps[[0, 1, 0, 3], [1, 2, 3, 2]] = 0.5
    graph = RegionGraph(lambda seen: np.asarray(seen, float), centres, csr_array(steps))
    assert graph.path([0.0, 0.0], [2.0, 0.0]) == [0, 3, 2]


def test_regions_of_a_corridor_are_intervals_in_order(corridor_data: lw.Trajectories) -> None:
    model = lw.solve(MAZE, dim=8)
    graph = region_graph(model, corridor_data, 6)
    along = np.argsort(model.transform(MAZE.table())[:, 1])  # the second component orders a corridor
    labels = graph.regions_of(MAZE.table())[along]
    assert (np.diff(labels) != 0).sum() == len(graph.centres) - 1
    path = graph.path(MAZE.table()[along[0]], MAZE.table()[along[-1]])
    assert path == list(dict.fromkeys(labels.tolist()))


def test_rare_steps_are_pruned() -> None:
    # Of a hundred steps that leave the first state, one leads to the third.
    episodes = [[0.0, 1.0]] * 99 + [[0.0, 2.0]] + [[1.0, 2.0], [2.0, 0.0]]
    data = lw.from_arrays(np.concatenate(episodes).reshape(-1, 1), lengths=[2] * len(episodes))
    for kept, edges in ((0.95, 1), (1.0, 2)):
        graph = region_graph(lambda seen: np.asarray(seen, float), data, 3, kept=kept)
        first = int(graph.regions_of([[0.0]])[0])
        assert graph.probabilities[[first]].nnz == edges


def test_numbered_actions_lead_through_a_corridor(corridor_data: lw.Trajectories) -> None:
    model = lw.solve(MAZE, dim=8)
    starts, goals = np.array([0, 72, 30]), np.array([72, 0, 31])
    for simulator in (MAZE, corridor_data):
        planner = Planner(model, simulator, region_graph(model, corridor_data, 8), horizon=3, samples=48)
        made = planner.travel(MAZE, starts, goals, most_steps=400)
        assert made.reached.all()
        np.testing.assert_array_equal(made.observations[-1], MAZE.table()[goals])
        assert made.steps.max() < 400


def test_psi_leads_round_walls_where_coordinates_get_stuck(of_umaze: lw.LaplacianRepresentation) -> None:
    # From one arm of the U to the other, on both sides of the wall.
    starts, goals = np.array([[1.8, 1.2], [1.5, 1.6]]), np.array([[3.2, 1.2], [3.5, 1.6]])
    radius = 0.1
    by_psi = Planner(of_umaze, UMAZE).travel(UMAZE, starts, goals, radius=radius, most_steps=60)
    coordinates = Planner(lambda seen: np.asarray(seen, float), UMAZE, horizon=1)
    by_place = coordinates.travel(UMAZE, starts, goals, radius=radius, most_steps=60)
    assert by_psi.reached.all()
    assert not by_place.reached.any()


def test_the_same_seed_makes_the_same_journey_and_the_goal_may_be_the_start(
    of_umaze: lw.LaplacianRepresentation,
) -> None:
    starts, goals = np.array([[1.5, 1.5], [1.5, 2.5]]), np.array([[1.5, 1.5], [3.5, 1.5]])
    one, other = (Planner(of_umaze, UMAZE, seed=3).travel(UMAZE, starts, goals, radius=0.1) for _ in range(2))
    np.testing.assert_array_equal(one.observations, other.observations)
    assert one.steps[0] == 0
    assert one.reached[0]
    assert one.steps[1] > 0


def test_bad_input_is_refused(corridor_data: lw.Trajectories) -> None:
    model = lw.solve(MAZE, dim=4)
    for options in ({"regions": 0}, {"kept": 0.0}, {"seed": -1}, {"regions": 10**9}):
        with pytest.raises(ArgumentError):
            region_graph(model, corridor_data, **options)  # type: ignore[arg-type]
    for options in ({"horizon": 0}, {"elites": 65}, {"samples": 1.5}, {"seed": -1}, {"graph": "graph"}):
        with pytest.raises(ArgumentError):
            Planner(model, MAZE, **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="dim >= 2"):
        Planner(lw.solve(MAZE, dim=1), MAZE)
    with pytest.raises(DataError, match="no actions"):
        Planner(model, lw.collect(MAZE, 100))
    with pytest.raises(ArgumentError, match="pair up"):
        Planner(model, MAZE).travel(MAZE, [0], [1, 2])
    with pytest.raises(ArgumentError, match="radius"):
        Planner(model, MAZE).travel(MAZE, [0], [1], radius=float("nan"))
    with pytest.raises(ArgumentError, match="pair up"):
        Planner(model, MAZE).travel(MAZE, 0, 1)
    with pytest.raises(ArgumentError, match="simulator"):
        Planner(model, None)  # type: ignore[arg-type]
    recorded = Planner(lambda seen: np.asarray(seen, float)[:, :1], corridor_data)
    with pytest.raises(ArgumentError, match="recorded"):
        recorded.actions(np.zeros((1, 3)), np.zeros((1, 3)), np.random.default_rng(0))
    with pytest.raises(ArgumentError):
        region_graph("model", corridor_data)  # type: ignore[arg-type]
    for wrong in (lambda seen: seen * np.nan, lambda seen: np.zeros(len(seen))):
        with pytest.raises(ArgumentError, match="finite numbers"):
            region_graph(wrong, corridor_data, 2)
    assert Planner(model, MAZE, horizon=5.0).horizon == 5  # type: ignore[arg-type]


def test_a_disconnected_world_has_no_plan() -> None:
    with pytest.warns(lw.LapwingWarning, match="unconnected|parts"):
        model = lw.solve(lw.operator(np.eye(4)), dim=3)
    with pytest.raises(ArgumentError, match="unconnected"):
        Planner(model, MAZE).targets(np.zeros((1, 1)), np.zeros((1, 1)))
