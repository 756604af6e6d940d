"""Interpolation on a grid with holes: exact for linear functions, second order, and blind behind walls."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders.interpolated import InterpolatedEncoder
from lapwing.environments import ContinuousMaze, Layout
from lapwing.errors import ArgumentError, DamagedFileError

HOLE = np.ones((6, 5), dtype=bool)
HOLE[2:4, 2] = False


def encoder(free: np.ndarray, function: Any, spacing: float = 0.1) -> InterpolatedEncoder:
    index = np.full(free.shape, -1, dtype=np.int64)
    index[free] = np.arange(free.sum())
    origin = np.full(free.ndim, -0.2)
    points = origin + np.argwhere(free) * spacing
    count = len(points)
    return InterpolatedEncoder(
        function(points), np.full(count, 1 / count), index, origin, np.full(free.ndim, float(spacing))
    )


def linear(points: np.ndarray) -> np.ndarray:
    return np.stack([1 + 0 * points[:, 0], points @ np.arange(2, 2 + points.shape[1])], axis=1)


@pytest.mark.parametrize("free", [HOLE, np.ones(7, dtype=bool)])
def test_linear_functions_are_exact_beside_holes_and_beyond_the_last_points(free: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    places = np.argwhere(free)[rng.integers(free.sum(), size=500)] + rng.uniform(-0.5, 0.5, (500, free.ndim))
    points = -0.2 + 0.1 * places
    np.testing.assert_allclose(encoder(free, linear).encode(points), linear(points), atol=1e-12)


def test_a_grid_gives_its_own_values_at_its_points() -> None:
    made = encoder(HOLE, lambda points: np.random.default_rng(0).normal(size=(len(points), 3)))
    points, weights = made.support()
    np.testing.assert_allclose(made.encode(points), made.values, atol=1e-5)
    assert weights.sum() == pytest.approx(1)


def test_nothing_is_taken_from_behind_a_wall() -> None:
    free = np.ones((5, 7), dtype=bool)
    free[:, 3] = False
    made = encoder(free, lambda points: np.where(points[:, 1:] > 0.1, 1.0, -1.0))
    points = np.stack([np.full(50, 0.0), np.linspace(-0.2, 0.4, 50)], axis=1)
    near = np.abs(points[:, 1] - 0.1) > 0.05
    np.testing.assert_array_equal(made.encode(points[near])[:, 0], np.sign(points[near, 1] - 0.1))
    # Two cells that touch in a corner do not see each other.
    corner = encoder(np.eye(2, dtype=bool), lambda points: np.where(points[:, :1] > -0.15, 1.0, -1.0))
    assert corner.encode(np.array([[-0.155, -0.155], [-0.145, -0.145]])).ravel().tolist() == [-1.0, 1.0]


def test_the_error_falls_with_the_square_of_the_spacing() -> None:
    errors = []
    for cells in (10, 20):
        made = encoder(
            np.ones((cells, cells), dtype=bool), lambda p: np.sin(6 * p).prod(axis=1, keepdims=True), 1 / cells
        )
        points = np.random.default_rng(1).uniform(-0.1, 0.6, (500, 2))
        errors.append(np.abs(made.encode(points) - np.sin(6 * points).prod(axis=1, keepdims=True)).max())
    assert 3 < errors[0] / errors[1] < 5


def test_an_observation_in_a_wall_or_of_another_shape_is_refused() -> None:
    made = encoder(np.pad(HOLE, 3), linear)
    for bad in ([[-0.1, -0.2]], [[9.0, 9.0]], [[np.nan, 0.0]], [[np.inf, 0.0]]):
        with pytest.raises(ArgumentError, match="observation 0 lies in a wall or outside"):
            made.encode(np.array(bad))
    with pytest.raises(ArgumentError, match=r"shape \(n, 2\)"):
        made.encode(np.zeros((3, 1)))


def test_eigenfunctions_of_a_maze_are_interpolated_to_about_one_percent() -> None:
    maze = ContinuousMaze(Layout.from_text("...\n.X.\n..X"), 0.35, "uniform")
    coarse, fine = (lw.solve(_with_points(maze, points), dim=4) for points in (10, 20))
    points = maze.observe(maze.reset(3000, np.random.default_rng(0)))
    a, b = coarse.transform(points), fine.transform(points)
    differences = a * np.sign((a * b).mean(axis=0)) - b
    assert np.sqrt((differences**2).mean(axis=0)).max() < 0.015


def _with_points(maze: ContinuousMaze, points: int) -> ContinuousMaze:
    again = ContinuousMaze(maze.layout, maze.deviation, maze.steps)
    object.__setattr__(again, "_points_per_cell", lambda: points)
    return again


def test_a_discretised_model_is_saved_loaded_and_scored(tmp_path) -> None:
    truth = lw.solve(ContinuousMaze(Layout.from_text("...\n.X.\n..X"), 0.7, "uniform"), dim=4)
    again = lw.load(truth.save(tmp_path))
    points = truth.encoder.support()[0][::7] + np.float32(0.001)
    np.testing.assert_array_equal(truth.transform(points), again.transform(points))
    assert lw.score(again, truth).cosine == pytest.approx(1)
    assert [verdict != "not converged" for verdict in truth.certificate().verdicts] == [True] * 4


@pytest.mark.parametrize(
    "change",
    [
        {"values": None},
        {"index": np.array([[0, 0, 1, 2]])},
        {"index": np.zeros((1, 1, 1), dtype=np.int64)},
        {"spacing": np.array([0.1, 0.0])},
        {"spacing": np.array([0.1])},
        {"weights": np.array([2.0, -1.0])},
        {"values": np.zeros((2, 2), dtype=np.float32)},
    ],
)
def test_a_damaged_grid_is_refused(change: dict[str, Any]) -> None:
    arrays = encoder(np.ones((1, 2), dtype=bool), linear).arrays()
    assert InterpolatedEncoder.from_arrays(arrays).dim == 2
    damaged = {name: array for name, array in {**arrays, **change}.items() if array is not None}
    with pytest.raises(DamagedFileError):
        InterpolatedEncoder.from_arrays(damaged)
