"""Worlds and functions on them as images: rows, columns, colours."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.plots import fields

# Four rows and six columns of tiles, and not symmetric in any way.
NON_SQUARE = lw.Layout.from_text("XXXXXX\nX...XX\nX.XXXX\nXXXXXX", name="hook")


@pytest.fixture
def ax() -> fields.Axes:
    return Figure().subplots()


def test_a_layout_is_drawn_row_by_row_with_row_0_at_the_top(ax: fields.Axes) -> None:
    fields.draw_layout(ax, NON_SQUARE)
    image = ax.images[0].get_array()
    assert image.shape == (4, 6, 3)
    np.testing.assert_allclose(image[NON_SQUARE.free], 1.0)
    np.testing.assert_allclose(image[~NON_SQUARE.free], np.broadcast_to(fields.WALL, (20, 3)))
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_each_number_of_a_grid_field_lies_on_its_own_cell(ax: fields.Axes) -> None:
    image = fields.draw_grid_field(ax, NON_SQUARE, np.array([1.0, 2.0, 3.0, -4.0]))
    canvas = np.ma.filled(image.get_array(), np.nan)
    assert canvas.shape == NON_SQUARE.shape
    np.testing.assert_array_equal(canvas[1, 1:4], [1.0, 2.0, 3.0])
    assert canvas[2, 1] == -4.0
    assert np.isnan(canvas).sum() == 20


def test_the_colours_are_centred_at_zero(ax: fields.Axes) -> None:
    image = fields.draw_grid_field(ax, NON_SQUARE, np.array([1.0, 2.0, 3.0, -4.0]))
    assert image.get_clim() == (-4.0, 4.0)
    assert fields.draw_grid_field(ax, NON_SQUARE, np.ones(4)).get_clim() == (-2.0, 2.0)
    assert fields.draw_grid_field(ax, NON_SQUARE, np.ones(4), limit=7.0).get_clim() == (-7.0, 7.0)


def test_states_without_a_number_are_grey_and_walls_dark(ax: fields.Axes) -> None:
    fields.draw_grid_field(ax, NON_SQUARE, np.array([1.0, np.nan, 3.0, -4.0]))
    backdrop, field = (image.get_array() for image in ax.images)
    np.testing.assert_allclose(backdrop[1, 2], to_rgb("#b9b4a7"))
    np.testing.assert_allclose(backdrop[0, 0], fields.WALL)
    assert np.ma.getmaskarray(field)[1, 2]
    assert not np.ma.getmaskarray(field)[1, 1]


def test_a_field_of_unknown_states_alone_still_has_colours(ax: fields.Axes) -> None:
    assert fields.draw_grid_field(ax, NON_SQUARE, np.full(4, np.nan)).get_clim() == (-2.0, 2.0)


def test_the_first_axis_of_a_box_runs_downwards_and_the_second_across(ax: fields.Axes) -> None:
    world = lw.BoxWorld((2.0, 1.0), 0.1)
    points = fields.box_points(world)
    image = fields.draw_box_field(ax, world, points[:, 0].astype(np.float64))
    raster = np.asarray(image.get_array())
    assert raster.shape == (fields.BOX_RESOLUTION, fields.BOX_RESOLUTION)
    assert (np.diff(raster[:, 0]) > 0).all()
    np.testing.assert_array_equal(raster[0], raster[0, 0])
    assert tuple(image.get_extent()) == (0.0, 1.0, 2.0, 0.0)
    second = np.asarray(fields.draw_box_field(ax, world, points[:, 1].astype(np.float64)).get_array())
    assert (np.diff(second[0]) > 0).all()


@pytest.mark.parametrize(("sides", "count"), [((1.0,), 96), ((1.0, 0.8), 96**2), ((1.0, 0.8, 0.65), 96**2)])
def test_box_points_are_inside_the_box_whatever_its_dimension(sides: tuple[float, ...], count: int) -> None:
    points = fields.box_points(lw.BoxWorld(sides, 0.1))
    assert points.shape == (count, len(sides))
    assert (np.abs(points) < 0.5).all()
    np.testing.assert_array_equal(points[:, 2:], -0.25)


def test_a_box_of_one_dimension_is_a_strip(ax: fields.Axes) -> None:
    world = lw.BoxWorld((1.0,), 0.1)
    model = lw.solve(world, dim=2)
    image = fields.draw_component(ax, model, world, fields.values_on_world(model, world)[:, 1])
    raster = np.asarray(image.get_array())
    assert raster.shape == (fields.BOX_RESOLUTION, 1)
    # cos(pi x) falls from one end to the other.
    assert (np.diff(raster[:, 0]) < 0).all()


def test_values_on_a_grid_are_the_eigenvectors_state_by_state() -> None:
    world = lw.make_world(NON_SQUARE)
    model = lw.solve(world, dim=3)
    np.testing.assert_array_equal(fields.values_on_world(model, world), model.transform(world.observations()))


def test_states_that_data_never_saw_have_no_value() -> None:
    world = lw.make_world("GridMaze-9")
    seen = world.observations()
    data = lw.from_arrays([seen[[0, 1, 0]]])
    values = fields.values_on_world(lw.solve(data, dim=2), world)
    assert values.shape == (13, 2)
    assert np.isfinite(values[:2]).all()
    assert np.isnan(values[2:]).all()


def test_bare_axes_have_neither_ticks_nor_frame(ax: fields.Axes) -> None:
    fields.bare(ax)
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert not any(spine.get_visible() for spine in ax.spines.values())
