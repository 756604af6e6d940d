"""Options as arrows and dots on their world."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.applications import Option, covering_options, eigenoptions, point_options
from lapwing.errors import ArgumentError
from lapwing.plots import SCREEN, draw_option, options_figure

# Four rows and six columns of tiles, and not symmetric in any way.
WORLD = lw.make_world(lw.Layout.from_text("XXXXXX\nX...XX\nX.XXXX\nXXXXXX", name="hook"))


def test_arrows_point_where_the_actions_lead_and_a_dot_marks_the_end() -> None:
    ax = Figure().subplots()
    there, _ = point_options(WORLD, [(3, 2)])
    arrows = draw_option(ax, WORLD, there)
    found = {
        (int(arrows.X[i]), int(arrows.Y[i])): (np.sign(arrows.U[i]), np.sign(arrows.V[i])) for i in range(arrows.N)
    }
    # (across, down), as the axes have it: up from (1, 2), then right along the top.
    assert found == {(1, 2): (0, -1), (1, 1): (1, 0), (2, 1): (1, 0)}
    end, start = ax.collections[1:]
    np.testing.assert_allclose(end.get_offsets(), [[3, 1]])
    np.testing.assert_allclose(start.get_offsets(), [[1, 2]])


def test_a_point_option_is_drawn_only_where_it_passes() -> None:
    world = lw.make_world("room:5x5")
    arrows = draw_option(Figure().subplots(), world, point_options(world, [(0, 4)])[0])
    assert arrows.N == 4


def test_slipping_does_not_turn_the_arrows() -> None:
    world = lw.GridWorld(lw.room(3, 3), slip=0.4)
    option = Option("right", world.table(), np.arange(9) == 4, np.full(9, 1), np.full(9, 0.5))
    arrows = draw_option(Figure().subplots(), world, option)
    middle = int(np.flatnonzero((arrows.X == 2) & (arrows.Y == 2))[0])
    assert arrows.U[middle] > 0
    assert arrows.V[middle] == pytest.approx(0.0, abs=1e-12)


def test_every_option_has_a_panel_with_its_name_and_its_component() -> None:
    model, world = lw.solve("FourRooms", dim=4), lw.make_world("FourRooms")
    options = eigenoptions(model, world, both_signs=False)
    figure = options_figure(world, options, model.transform(world.table())[:, 1:], style=SCREEN)
    shown = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in shown] == ["u2", "u3", "u4"]
    assert all(len(ax.images) == 2 for ax in shown)
    assert options_figure(world, options).get_figwidth() == pytest.approx(5.5)


def test_what_cannot_be_drawn_is_refused() -> None:
    world = lw.make_world("room:3x3")
    options = covering_options(world, 2)
    for call in (
        lambda: options_figure(world, []),
        lambda: options_figure(world, options, np.zeros((9, 3))),
        lambda: options_figure(lw.make_world("Box-3"), options),
        lambda: options_figure(lw.make_world("room:4x4"), options),
        lambda: draw_option(Figure().subplots(), world, options[0], np.zeros(8)),
    ):
        with pytest.raises(ArgumentError):
            call()
