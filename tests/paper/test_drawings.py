"""Figures of studies: what their plain description says is what is drawn, in any shape and with any gap."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import same_color, to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import lapwing as lw
from lapwing.environments.grid import GridWorld
from lapwing.environments.world import FIELD_CELLS
from lapwing.plots.figures import save_figure
from lapwing_paper.drawings import MARK, PALE, SOLID, BarPanel, FieldPanel, Line, LinePanel, StudyFigure

X = np.array([1000.0, 2000.0, 3000.0])


def line(label: str, height: float = 0.5, highlighted: bool = False, band: float | None = 0.1) -> Line:
    y = np.linspace(0.0, height, 3)
    if band is None:
        return Line(label, X, y, highlighted=highlighted)
    return Line(label, X, y, y - band, y + band, highlighted)


def curves(*labels: str, title: str = "a world") -> LinePanel:
    return LinePanel(title, tuple(line(label, 0.1 * i) for i, label in enumerate(labels)))


def picture(*panels: LinePanel | BarPanel | FieldPanel, columns: int = 3, **options: object) -> StudyFigure:
    return StudyFigure("figure", "The title", panels, columns, "steps", "cosine", **options)  # type: ignore[arg-type]


def grid(name: str = "GridMaze-7") -> GridWorld:
    world = lw.make_world(name)
    assert isinstance(world, GridWorld)
    return world


def shown(figure: Figure) -> list[Axes]:
    return [ax for ax in figure.axes if ax.get_visible()]


def drawn(figure: Figure) -> Figure:
    """With its layout computed, where Matplotlib gives most of its warnings."""
    figure.draw_without_rendering()
    return figure


def test_lines_and_bands_are_where_their_numbers_say() -> None:
    given = line("ALLO", 0.8)
    ax = drawn(StudyFigure.draw(picture(LinePanel("GridRoom-1", (given,))))).axes[0]
    (found,) = ax.get_lines()
    np.testing.assert_array_equal(found.get_xdata(), X)
    np.testing.assert_array_equal(found.get_ydata(), given.y)
    (band,) = ax.collections
    assert given.low is not None
    corners = band.get_paths()[0].vertices
    np.testing.assert_allclose(
        [corners[:, 1].min(), corners[:, 1].max()], [given.low.min(), given.low.max() + 2 * 0.1], atol=1e-12
    )
    assert ax.get_title() == "GridRoom-1"


def test_a_line_without_a_band_has_none() -> None:
    ax = StudyFigure.draw(picture(LinePanel("w", (line("ALLO", band=None),)))).axes[0]
    assert len(ax.collections) == 0


def test_the_highlighted_line_is_the_thickest_and_on_top() -> None:
    lines = (line("b = 1"), line("b = 2", highlighted=True), line("b = 3"))
    ax = StudyFigure.draw(picture(LinePanel("w", lines))).axes[0]
    widths = [one.get_linewidth() for one in ax.get_lines()]
    heights = [one.get_zorder() for one in ax.get_lines()]
    assert widths[1] > max(widths[0], widths[2])
    assert heights[1] > max(heights[0], heights[2])


@pytest.mark.parametrize("count", [1, 2, 7, 8, 11])
def test_no_two_lines_of_a_panel_look_the_same(count: int) -> None:
    ax = StudyFigure.draw(picture(curves(*(f"b = {i}" for i in range(count))))).axes[0]
    looks = {(to_hex(one.get_color()), one.get_linestyle()) for one in ax.get_lines()}
    assert len(looks) == count


def test_panels_that_share_their_lines_share_one_legend() -> None:
    figure = drawn(StudyFigure.draw(picture(curves("ALLO", "GGDO"), curves("ALLO", "GGDO"))))
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ALLO", "GGDO"]
    assert all(ax.get_legend() is None for ax in figure.axes)


def test_panels_with_lines_of_their_own_have_legends_of_their_own() -> None:
    figure = drawn(StudyFigure.draw(picture(curves("ALLO", "GGDO"), curves("ALLO", "GDO"))))
    assert not figure.legends
    found = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in figure.axes]
    assert found == [["ALLO", "GGDO"], ["ALLO", "GDO"]]


def test_a_single_line_needs_no_legend() -> None:
    figure = StudyFigure.draw(picture(curves("ALLO"), curves("ALLO")))
    assert not figure.legends
    assert all(ax.get_legend() is None for ax in figure.axes)


@pytest.mark.parametrize("position", [0, 1])
def test_a_panel_without_lines_stays_empty_beside_the_others(position: int) -> None:
    panels = [curves("ALLO", "GGDO", title="full"), curves("ALLO", "GGDO", title="full too")]
    panels.insert(position, LinePanel("nothing yet", ()))
    figure = drawn(StudyFigure.draw(picture(*panels)))
    assert [ax.get_title() for ax in shown(figure)][position] == "nothing yet"
    named = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    named += [text.get_text() for ax in figure.axes if ax.get_legend() for text in ax.get_legend().get_texts()]
    assert {"ALLO", "GGDO"} <= set(named)


def test_a_picture_without_panels_is_drawn_empty() -> None:
    figure = drawn(StudyFigure.draw(picture()))
    assert shown(figure) == []
    assert figure.get_suptitle() == "The title"


@pytest.mark.parametrize(("panels", "columns", "rows"), [(1, 3, 1), (3, 3, 1), (4, 3, 2), (12, 4, 3), (5, 1, 5)])
def test_panels_stand_in_rows_and_the_rest_is_hidden(panels: int, columns: int, rows: int) -> None:
    figure = StudyFigure.draw(picture(*(curves("ALLO", title=str(i)) for i in range(panels)), columns=columns))
    assert [ax.get_title() for ax in shown(figure)] == [str(i) for i in range(panels)]
    assert len(figure.axes) == rows * min(columns, panels)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (rows, min(columns, panels))


def test_axes_are_named_once_per_row_and_column() -> None:
    figure = StudyFigure.draw(picture(*(curves("ALLO") for _ in range(5))))
    assert [ax.get_ylabel() for ax in shown(figure)] == ["cosine", "", "", "cosine", ""]
    # The third column ends in the first row.
    assert [ax.get_xlabel() for ax in shown(figure)] == ["", "", "steps", "steps", "steps"]


def test_limits_hold_for_every_panel() -> None:
    figure = StudyFigure.draw(picture(curves("a"), curves("b"), y_limits=(0.0, 1.02)))
    assert [ax.get_ylim() for ax in shown(figure)] == [(0.0, 1.02)] * 2


def test_steps_are_counted_in_thousands() -> None:
    formatter = drawn(StudyFigure.draw(picture(curves("a")))).axes[0].xaxis.get_major_formatter()
    assert (formatter(20_000, 0), formatter(500, 0)) == ("20k", "500")


def bars(title: str = "over worlds", **options: object) -> BarPanel:
    values = np.array([0.3, -0.1, 0.2])
    return BarPanel(title, ("GridMaze-7", "GridRoom-1", "Rooms-16"), values, **options)  # type: ignore[arg-type]


def test_bars_are_as_high_as_their_values_and_dark_where_significant() -> None:
    ax = drawn(StudyFigure.draw(picture(bars(errors=np.array([0.1, 0.2, 0.3]), solid=(True, False, True))))).axes[0]
    assert [patch.get_height() for patch in ax.patches] == [0.3, -0.1, 0.2]
    assert all(same_color(p.get_facecolor(), c) for p, c in zip(ax.patches, (SOLID, PALE, SOLID), strict=True))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["GridMaze-7", "GridRoom-1", "Rooms-16"]


def error_lengths(ax: Axes) -> list[float]:
    """Half the height of each error bar that is drawn."""
    (found,) = (one for one in ax.containers if isinstance(one, ErrorbarContainer))
    segments = found.lines[2][0].get_segments()
    return [float(np.ptp(segment[:, 1])) / 2 for segment in segments if len(segment)]


def test_error_bars_are_as_long_as_their_errors_and_nothing_where_unknown() -> None:
    known = drawn(StudyFigure.draw(picture(bars(errors=np.array([0.1, 0.2, 0.3]))))).axes[0]
    np.testing.assert_allclose(error_lengths(known), [0.1, 0.2, 0.3])
    unknown = drawn(StudyFigure.draw(picture(bars(errors=np.array([0.1, np.nan, np.nan]))))).axes[0]
    np.testing.assert_allclose(error_lengths(unknown), [0.1])


def test_bars_without_values_are_drawn_without_a_warning() -> None:
    nothing = BarPanel("nothing", (), np.zeros(0), np.zeros(0), ())
    unknown = BarPanel("unknown", ("1", "2"), np.full(2, np.nan), np.full(2, np.nan), (False, False))
    drawn(StudyFigure.draw(picture(nothing, unknown)))
    drawn(StudyFigure.draw(picture(nothing)))


def test_long_names_are_slanted_and_numbers_are_not() -> None:
    names = StudyFigure.draw(picture(bars())).axes[0].get_xticklabels()
    numbers = StudyFigure.draw(picture(BarPanel("w", ("1", "11"), np.ones(2)))).axes[0].get_xticklabels()
    assert {text.get_rotation() for text in names} == {40.0}
    assert {text.get_rotation() for text in numbers} == {0.0}


def test_a_field_shows_each_number_on_its_own_cell() -> None:
    world = grid()
    values = np.linspace(-2.0, 1.0, world.num_states)
    ax = drawn(StudyFigure.draw(picture(FieldPanel("second", world, values)))).axes[0]
    canvas = np.ma.filled(ax.images[-1].get_array(), np.nan)
    np.testing.assert_array_equal(canvas[world.layout.free], values)
    assert np.isnan(canvas[~world.layout.free]).all()
    assert ax.images[-1].get_clim() == (-2.0, 2.0)


def test_extrema_are_boxed_on_their_cells_maxima_with_a_full_line() -> None:
    world = grid()
    values = np.linspace(-1.0, 1.0, world.num_states)
    figure = StudyFigure.draw(picture(FieldPanel("f", world, values, maxima=(10,), minima=(0, 4))))
    boxes = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    centres = [(box.get_y() + box.get_height() / 2, box.get_x() + box.get_width() / 2) for box in boxes]
    assert centres == [tuple(world.layout.cells[state]) for state in (10, 0, 4)]
    assert [box.get_linestyle() for box in boxes] == ["-", "--", "--"]
    assert all(same_color(box.get_edgecolor(), MARK) for box in boxes)


def test_a_field_of_zeros_is_white_and_not_an_error() -> None:
    world = grid()
    ax = drawn(StudyFigure.draw(picture(FieldPanel("zero", world, np.zeros(world.num_states))))).axes[0]
    assert ax.images[-1].get_clim() == (-1.0, 1.0)


def test_a_field_on_a_box_is_a_heat_map() -> None:
    world = lw.make_world("Box-2")
    values = np.linspace(-1.0, 1.0, FIELD_CELLS**2)
    ax = drawn(StudyFigure.draw(picture(FieldPanel("box", world, values)))).axes[0]
    np.testing.assert_array_equal(ax.images[-1].get_array(), values.reshape(FIELD_CELLS, FIELD_CELLS))


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_a_picture_is_written_with_its_title_above(tmp_path: Path, kind: str) -> None:
    figure = StudyFigure.draw(picture(curves("ALLO", "GGDO"), curves("ALLO", "GGDO"), curves("ALLO", "GGDO")))
    assert figure.get_suptitle() == "The title"
    path = save_figure(figure, tmp_path / f"figure.{kind}")
    assert path.read_bytes().startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[kind])
