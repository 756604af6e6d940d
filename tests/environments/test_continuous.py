"""The walk in a continuous maze against its own discretisation, symmetry, and the limit of small steps."""

import math

import numpy as np
import pytest

import lapwing as lw
from lapwing.environments import ContinuousMaze, Layout, make_world, room, world_from_description
from lapwing.errors import LapwingError
from lapwing.operators.eigensolver import smallest_eigenpairs

CORNER = Layout.from_text("...\n.X.\n..X", name="corner")
KINDS = pytest.mark.parametrize("steps", ["gaussian", "uniform"])
MAZES = ("UMaze", "MediumMaze", "LargeMaze", "ContinuousFourRooms", "LShape")
# Neumann eigenvalues of the Laplacian on [-1, 1]^2 without one quadrant.
L_SHAPE = np.array([0.0, 1.4756, 3.5340, 9.8696, 9.8696, 11.3895])


def brute_force(maze: ContinuousMaze, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Whether any of many points on the way lies in a wall."""
    shares = np.linspace(0, 1, 2001)[:, None, None]
    cells = np.floor(starts + shares * (ends - starts)).astype(int)
    inside = ((cells >= 0) & (cells < maze.layout.shape)).all(axis=-1)
    clipped = np.clip(cells, 0, np.array(maze.layout.shape) - 1)
    return (~(inside & maze.layout.free[clipped[..., 0], clipped[..., 1]])).any(axis=0)


@pytest.mark.parametrize("deviation", [0.05, 0.4, 1.2])
def test_a_segment_is_blocked_just_where_it_meets_a_wall(deviation: float) -> None:
    maze = ContinuousMaze(make_world("MediumMaze").layout, deviation)
    rng = np.random.default_rng(0)
    starts = maze.reset(500, rng)
    ends = starts + maze.max_step * rng.uniform(-1, 1, starts.shape)
    found, expected = maze.blocked(starts, ends), brute_force(maze, starts, ends)
    # Points on the way miss what a segment cuts off a corner by less than their distance, and nothing else.
    assert not (expected & ~found).any()
    assert (found & ~expected).sum() <= 3
    free = ~brute_force(maze, ends, ends)
    np.testing.assert_array_equal(found[free], maze.blocked(ends[free], starts[free]))
    assert 0.02 < found.mean() < 0.95


def test_no_step_passes_a_thin_wall_or_a_corner() -> None:
    maze = ContinuousMaze(Layout.from_text(".X.\n..X"), 0.5)
    assert maze.blocked(np.array([[0.5, 0.9]]), np.array([[0.5, 2.1]])).all()
    # From the upper left cell over the free lower left one: above the corner through the wall, below it free.
    assert maze.blocked(np.array([[0.8, 0.95]]), np.array([[1.1, 1.2]])).all()
    assert not maze.blocked(np.array([[0.95, 0.8]]), np.array([[1.2, 1.1]])).any()


@KINDS
def test_the_walk_stays_in_free_cells_and_keeps_the_uniform_density(steps: str) -> None:
    maze = ContinuousMaze(CORNER, 0.3, steps)
    rng = np.random.default_rng(1)
    points = maze.reset(40_000, rng)
    for _ in range(20):
        points, made = maze.step(points, None, rng)
        assert np.abs(made).max() <= 1
    cells = np.floor(points).astype(int)
    assert CORNER.free[cells[:, 0], cells[:, 1]].all()
    counts = np.bincount(CORNER.index[cells[:, 0], cells[:, 1]], minlength=7)
    assert np.abs(counts - 40_000 / 7).max() < 5 * math.sqrt(40_000 / 7)
    observed = maze.observe(points)
    assert observed.dtype == np.float32
    assert np.abs(observed).max() <= 0.5


@KINDS
def test_steps_have_the_standard_deviation_asked_for(steps: str) -> None:
    maze = ContinuousMaze(room(40, 40), 0.3, steps)
    start = np.full((200_000, 2), 21.0)
    moved = maze.step(start, None, np.random.default_rng(0))[0] - start
    np.testing.assert_allclose(moved.std(axis=0), 0.3, rtol=0.01)
    assert np.abs(moved).max() <= maze.max_step


@KINDS
def test_step_frequencies_match_the_discretised_matrix(steps: str) -> None:
    maze = ContinuousMaze(CORNER, 0.25, steps)
    grid = maze.discretisation(12)
    u = np.sin(5 * grid.observations[:, 0]) + np.cos(3 * grid.observations[:, 1]) ** 2
    expected = np.asarray(grid.matrix @ u)
    middle, side = maze._box
    rng = np.random.default_rng(2)
    chosen = rng.choice(len(u), 40, replace=False)
    starts = np.repeat(grid.observations[chosen].astype(float) * side + middle, 4000, axis=0)
    seen = maze.observe(maze.step(starts, None, rng)[0])
    values = (np.sin(5 * seen[:, 0]) + np.cos(3 * seen[:, 1]) ** 2).reshape(40, 4000)
    errors = values.std(axis=1) / math.sqrt(4000)
    # The grid's own error beside the noise.
    assert (np.abs(values.mean(axis=1) - expected[chosen]) < 5 * errors + 0.01).all()
    # The share of steps that fail.
    stays = (seen == maze.observe(starts)).all(axis=1).reshape(40, 4000).mean(axis=1)
    assert np.abs(stays - grid.matrix.diagonal()[chosen]).max() < 0.06


@KINDS
def test_the_discretised_matrix_is_symmetric_stochastic_and_joined_by_free_ways_only(steps: str) -> None:
    maze = ContinuousMaze(CORNER, 0.5, steps)
    matrix = maze.discretisation(8).matrix
    assert abs(matrix - matrix.T).max() == 0
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert matrix.min() >= 0
    # Upper right and lower left hang together through the upper left alone.
    grid = maze.discretisation(4)
    numbers = grid.numbers[8:, :4].ravel()[:, None], grid.numbers[:4, 8:].ravel()[None, :]
    assert np.abs(grid.matrix.toarray()[numbers]).max() == 0


@pytest.mark.parametrize("name", MAZES)
def test_a_shipped_maze_is_one_piece_with_its_name_and_survives_its_description(name: str) -> None:
    maze = make_world(name)
    assert isinstance(maze, ContinuousMaze)
    assert maze.name == name
    assert maze.layout.num_components == 1
    again = world_from_description(maze.describe())
    assert again is not None
    assert again.describe() == maze.describe()
    assert len(maze.field_points()) == (~np.ma.getmaskarray(maze.field_image(np.zeros(len(maze.field_points()))))).sum()


@pytest.mark.parametrize(
    ("name", "cells"), [("continuous:maze:4x4:1", 31), ("continuous:Rooms-16", 271), ("continuous:room:2x3", 6)]
)
def test_any_layout_is_a_continuous_maze_by_prefix(name: str, cells: int) -> None:
    maze = make_world(name)
    assert isinstance(maze, ContinuousMaze)
    assert (maze.name, maze.layout.num_cells) == (name, cells)
    assert lw.collect(name, 200, episode_length=20).num_transitions == 200


def test_a_file_is_a_continuous_maze_by_prefix_and_a_box_is_not(tmp_path) -> None:
    (tmp_path / "Own.txt").write_text("..\n.X\n")
    assert make_world(f"continuous:{tmp_path / 'Own.txt'}").name == "continuous:Own"
    with pytest.raises(LapwingError, match="goes before the name of a grid world"):
        make_world("continuous:Box-2")
    with pytest.raises(LapwingError, match="unknown world 'nothing'"):
        make_world("continuous:nothing")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("text",), "is made from a layout"),
        ((CORNER, 0.0), "must be positive"),
        ((CORNER, float("nan")), "must be positive"),
        ((CORNER, 3.0), "its reach at most 8 cells"),
        ((CORNER, 0.1, "cauchy"), "unknown kind of steps"),
    ],
)
def test_a_maze_that_cannot_be_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        ContinuousMaze(*arguments)


def test_a_maze_takes_no_slip_and_only_fitting_actions() -> None:
    with pytest.raises(LapwingError, match="UMaze is continuous"):
        make_world("UMaze", slip=0.1)
    maze = ContinuousMaze(CORNER, 0.25)
    with pytest.raises(LapwingError, match=r"finite actions of shape \(3, 2\)"):
        maze.step(maze.reset(3, np.random.default_rng(0)), np.zeros((3, 1)), np.random.default_rng(0))
    start = np.array([[0.5, 0.5]])
    moved, made = maze.step(start, np.array([[0.0, 7.0]]), np.random.default_rng(0))
    np.testing.assert_allclose(moved - start, [[0.0, 1.0]])
    assert made.tolist() == [[0.0, 1.0]]


def test_a_ground_truth_beyond_memory_is_refused() -> None:
    with pytest.raises(LapwingError, match="too large beside its steps for a ground truth"):
        ContinuousMaze(room(30, 30), 0.01).discretisation()


@KINDS
def test_small_steps_in_an_l_shape_have_the_neumann_spectrum(steps: str) -> None:
    # Errors of the walk are of first and second order in the step (at walls half of the steps fail).
    layout, found = make_world("LShape").layout, []
    for deviation in (0.04, 0.08, 0.12):
        grid = ContinuousMaze(layout, deviation, steps).discretisation(math.ceil(2 / deviation))
        found.append(smallest_eigenpairs(grid.matrix, 6, factorise=False).values / (deviation**2 / 2))
    extrapolated = 3 * found[0] - 3 * found[1] + found[2]
    np.testing.assert_allclose(extrapolated, L_SHAPE, rtol=0.004, atol=1e-8)


def test_the_ground_truth_of_a_maze_is_that_of_its_walk() -> None:
    maze = ContinuousMaze(CORNER, 0.5)
    truth = lw.solve(maze, dim=5)
    data = lw.collect(maze, 200_000, seed=1, episode_length=20)
    values = truth.transform(data.observations)
    positions = np.concatenate(list(data.pair_positions(1)))
    energies = ((values[positions] - values[positions + 1]) ** 2 / 2).reshape(data.num_episodes, 20, -1).mean(axis=1)
    errors = energies.std(axis=0) / math.sqrt(data.num_episodes)
    assert (np.abs(energies.mean(axis=0) - truth.eigenvalues) < 4.5 * errors + 0.003 * truth.eigenvalues + 1e-12).all()
    assert (errors[1:] < 0.02 * truth.eigenvalues[1:]).all()


def test_the_operator_of_a_maze_is_its_discretisation() -> None:
    maze = ContinuousMaze(CORNER, 1.0, "uniform")
    built = lw.operator(maze)
    assert built.num_states == len(built.observations) == maze.discretisation().matrix.shape[0]
    assert built.is_reversible()
    dense = np.linalg.eigvalsh(built.matrix.toarray())[::-1][:4]
    np.testing.assert_allclose(lw.solve(maze, dim=4).mu[:4], dense, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UMaze", "MediumMaze", "LShape"])
def test_eigenvalues_of_shipped_mazes_are_converged_to_three_tenths_of_a_percent(name: str) -> None:
    maze = make_world(name)
    fine = lw.solve(maze, dim=11)
    points = maze._points_per_cell()
    coarse = round(points / 1.5)
    object.__setattr__(maze, "_points_per_cell", lambda: coarse)
    rough = lw.solve(maze, dim=11)
    # The error falls with the square of the spacing.
    a, b = rough.eigenvalues[1:] / points**2, fine.eigenvalues[1:] / coarse**2
    limit = (b - a) / (1 / coarse**2 - 1 / points**2)
    assert np.abs(fine.eigenvalues[1:] / limit - 1).max() < 0.003
    assert fine.eigenvalues[-1] < 0.25
