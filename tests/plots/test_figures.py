"""Whole figures: titles, panels, and files that are written whole or not at all."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.plots.figures import (
    MAX_PANELS,
    draw_spectrum,
    eigenvector_figure,
    save_figure,
    spectrum_figure,
    world_of,
    worlds_figure,
)


def visible_titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes if ax.get_visible()]


def test_every_component_has_a_panel_with_its_eigenvalue() -> None:
    model = lw.solve("GridMaze-7", dim=6, definition="successor(0.9)")
    figure = eigenvector_figure(model)
    titles = visible_titles(figure)
    assert len(titles) == 6
    assert titles[1] == f"$u_{{2}}$   $\\lambda$ = {model.eigenvalues[1]:.5g}"
    assert figure.get_suptitle() == "GridMaze-7: Laplacian eigenvectors, exact ($\\lambda$: successor(0.9))"


def test_the_figure_of_counted_data_says_so() -> None:
    counted = lw.solve(lw.collect("GridMaze-7", steps=2000, seed=0), dim=2)
    assert "from data" in eigenvector_figure(counted).get_suptitle()


def test_repeated_eigenvalues_are_marked_even_where_the_last_cluster_is_cut() -> None:
    titles = visible_titles(eigenvector_figure(lw.solve("GridRoom-1", dim=5)))
    assert [title.endswith("(2-fold)") for title in titles] == [False, True, True, False, True]


def test_panels_hold_the_eigenvectors_with_rows_and_columns_right() -> None:
    layout = lw.Layout.from_text("XXXXXX\nX...XX\nX.XXXX\nXXXXXX", name="hook")
    model = lw.solve(layout, dim=2)
    panel = eigenvector_figure(model).axes[1]
    canvas = np.ma.filled(panel.images[-1].get_array(), np.nan)
    expected = np.full(layout.shape, np.nan)
    expected[layout.free] = model.transform(lw.make_world(layout).observations())[:, 1]
    np.testing.assert_array_equal(canvas, expected)


def test_a_tall_world_gets_tall_panels() -> None:
    tall, wide = (eigenvector_figure(lw.solve(name, dim=1)).get_size_inches() for name in ("room:30x5", "room:5x30"))
    assert tall[1] / tall[0] > wide[1] / wide[0]


def test_no_more_panels_are_drawn_than_fit_a_page() -> None:
    model = lw.solve("room:9x9", dim=MAX_PANELS + 5)
    assert len(visible_titles(eigenvector_figure(model))) == MAX_PANELS


def test_what_belongs_to_no_world_cannot_be_drawn_as_a_map() -> None:
    with pytest.raises(lw.LapwingError, match="does not belong to a grid or a box"):
        world_of(lw.solve(np.full((3, 3), 1 / 3), dim=1))


def test_the_spectrum_shows_every_eigenvalue_and_joins_repeated_ones() -> None:
    model = lw.solve("GridRoom-1", dim=5, definition="successor(0.9)")
    ax = draw_spectrum(Figure().subplots(), model)
    *joins, points = ax.lines
    np.testing.assert_allclose(points.get_ydata(), model.eigenvalues)
    assert [line.get_xdata().tolist() for line in joins] == [[2, 3]]
    assert ax.get_ylabel() == "eigenvalue (successor(0.9))"


def test_the_spectrum_figure_names_the_world() -> None:
    title = spectrum_figure(lw.solve("GridMaze-7", dim=3)).axes[0].get_title()
    assert title.startswith("GridMaze-7: smallest eigenvalues")


def test_the_sheet_of_worlds_has_one_picture_and_title_each() -> None:
    names = ["GridRoom-1", "Rooms-64", "Box-1", "Box-3"]
    figure = worlds_figure([lw.make_world(name) for name in names], columns=3)
    assert visible_titles(figure) == [
        "GridRoom-1\n225 states",
        "Rooms-64\n1,088 states",
        "Box-1\ncontinuous",
        "Box-3\ncontinuous",
    ]


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")]
)
def test_the_ending_decides_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    path = save_figure(spectrum_figure(lw.solve("GridMaze-7", dim=2)), tmp_path / "deep" / name)
    assert path.read_bytes().startswith(start)


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(lw.LapwingError, match=r"\.png, \.pdf or \.svg"):
        save_figure(Figure(), tmp_path / "deep" / "a.gif")
    assert not list(tmp_path.iterdir())


def test_a_picture_that_fails_leaves_the_old_one_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def broken(self: Figure, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"half")
        raise RuntimeError("out of ink")

    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(RuntimeError, match="out of ink"):
        save_figure(Figure(), path)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a.png": b"old"}


def test_the_same_model_gives_the_same_picture(tmp_path: Path) -> None:
    model = lw.solve("GridMaze-7", dim=3)
    paths = [save_figure(eigenvector_figure(model), tmp_path / name) for name in ("1.png", "2.png")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_spectrum_learned_from_data_carries_error_bars_and_an_exact_one_none() -> None:
    learned = lw.learn(lw.collect("GridMaze-7", 5000), 3, steps=20, log_every=20)
    with_bars = spectrum_figure(learned).axes[0]
    assert len(with_bars.containers) == 1
    assert not spectrum_figure(lw.solve("GridMaze-7", 3)).axes[0].containers
