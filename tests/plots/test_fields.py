"""Worlds and functions on them as images: rows, columns, colours."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.environments.world import FIELD_CELLS
from lapwing.plots import draw_field, draw_world, field_values
from lapwing.plots.fields import UNKNOWN, WALL

# Four rows and six columns of tiles, and not symmetric in any way.
HOOK = lw.Layout.from_text("XXXXXX\nX...XX\nX.XXXX\nXXXXXX", name="hook")
WORLD = lw.make_world(HOOK)


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


def test_a_world_is_drawn_row_by_row_with_row_0_at_the_top(ax: Axes) -> None:
    image = draw_world(ax, WORLD).get_array()
    assert image.shape == (4, 6, 3)
    np.testing.assert_allclose(image[HOOK.free], 1.0)
    np.testing.assert_allclose(image[~HOOK.free], np.broadcast_to(WALL, (20, 3)))
    bottom, top = ax.get_ylim()
    assert bottom > top
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0


def test_each_number_of_a_field_lies_on_its_own_cell_and_unknown_ones_are_grey(ax: Axes) -> None:
    canvas = draw_field(ax, WORLD, np.array([1.0, np.nan, 3.0, -4.0])).get_array()
    assert canvas.shape == HOOK.shape
    assert (canvas[1, 1], canvas[1, 3], canvas[2, 1]) == (1.0, 3.0, -4.0)
    assert np.ma.getmaskarray(canvas).sum() == 21
    background = ax.images[0].get_array()
    np.testing.assert_allclose(background[1, 2], UNKNOWN)
    np.testing.assert_allclose(background[0, 0], WALL)
    assert not any(spine.get_visible() for spine in ax.spines.values())


@pytest.mark.parametrize(
    ("values", "limit", "expected"),
    [([1.0, 2.0, 3.0, -4.0], None, 4.0), ([1.0] * 4, None, 2.0), ([1.0] * 4, 7.0, 7.0), ([np.nan] * 4, None, 2.0)],
)
def test_the_colours_are_centred_at_zero(ax: Axes, values: list[float], limit: float | None, expected: float) -> None:
    assert draw_field(ax, WORLD, np.array(values), limit).get_clim() == (-expected, expected)


def test_the_first_axis_of_a_box_runs_downwards_and_the_second_across(ax: Axes) -> None:
    world = lw.BoxWorld((2.0, 1.0), 0.1)
    points = world.field_points()
    image = draw_field(ax, world, points[:, 0])
    raster = np.asarray(image.get_array())
    assert raster.shape == (FIELD_CELLS, FIELD_CELLS)
    assert (np.diff(raster[:, 0]) > 0).all()
    np.testing.assert_array_equal(raster[0], raster[0, 0])
    left, right, bottom, top = image.get_extent()
    assert (right - left, bottom - top) == (1.0, 2.0)
    assert (np.diff(np.asarray(draw_field(ax, world, points[:, 1]).get_array())[0]) > 0).all()


def test_a_box_of_one_dimension_is_a_strip(ax: Axes) -> None:
    world = lw.BoxWorld((1.0,), 0.1)
    values = field_values(lw.solve(world, dim=2), world.field_points())[:, 1]
    raster = np.asarray(draw_field(ax, world, values).get_array())
    assert raster.shape == (FIELD_CELLS, 1)
    # cos(pi x) falls from one end to the other.
    assert (np.diff(raster[:, 0]) < 0).all()


def test_values_on_a_grid_are_the_eigenvectors_state_by_state() -> None:
    model = lw.solve(WORLD, dim=3)
    np.testing.assert_array_equal(field_values(model, WORLD.field_points()), model.transform(WORLD.field_points()))


def test_states_that_are_not_in_the_data_have_no_value() -> None:
    world = lw.make_world("GridMaze-9")
    points = world.field_points()
    values = field_values(lw.solve(lw.from_arrays([points[[0, 1, 0]]]), dim=2), points)
    assert values.shape == (13, 2)
    assert np.isfinite(values[:2]).all()
    assert np.isnan(values[2:]).all()
