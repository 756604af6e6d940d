"""Whole figures: what is on them, how large they are, and files that are written atomically with the same bytes."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.errors import ArgumentError, UnknownNameError
from lapwing.plots import PRINT, SCREEN, Style, representation_figure, save_figure, worlds_figure
from lapwing.plots.figures import curve_panels


def history(last_cosine: float | None) -> list[dict[str, float]]:
    rows = [{"step": 100.0 * k, "loss": 5.0 - k, "graph": 1.0, "error": 0.1 / k, "angle": 1.0 / k} for k in (1, 2, 3)]
    if last_cosine is not None:
        for k, row in enumerate(rows, start=1):
            row["cosine"] = last_cosine * k / 3
    return rows


@pytest.fixture(scope="module")
def room() -> lw.LaplacianRepresentation:
    return lw.solve("GridRoom-1", dim=8)


@pytest.fixture(scope="module")
def learned(room: lw.LaplacianRepresentation) -> lw.LaplacianRepresentation:
    metadata = {**room.metadata, "history": history(0.9)}
    return dataclasses.replace(room, metadata=metadata, mu_errors=np.full(len(room.mu), 1e-3))


def visible(figure: Any) -> list[Any]:
    return [ax for ax in figure.axes if ax.get_visible()]


def test_eigenvectors_fill_the_width_with_their_eigenvalues_below(room: Any) -> None:
    figure = representation_figure({"room": room}, "eigenvectors")
    assert figure.get_size_inches()[0] == pytest.approx(5.5)
    labels = [ax.get_xlabel() for ax in visible(figure)]
    assert labels == [rf"$\lambda_{{{i + 1}}}$ = {value:.3g}" for i, value in enumerate(room.eigenvalues)]


def test_chosen_components_are_drawn_in_that_order_with_their_own_values(room: Any) -> None:
    first, second = visible(representation_figure({"room": room}, "eigenvectors", [4, 2]))
    assert first.get_xlabel().startswith(r"$\lambda_{4}$")
    world = lw.make_world("GridRoom-1")
    cells = np.asarray(first.images[-1].get_array())[world.layout.free]
    np.testing.assert_allclose(cells, room.transform(world.table())[:, 3])
    assert second.get_xlabel().startswith(r"$\lambda_{2}$")


def test_several_runs_are_rows_with_their_names(room: Any, learned: Any) -> None:
    figure = representation_figure({"exact": room, "learned": learned}, "eigenvectors", [1, 2, 3])
    assert [ax.get_ylabel() for ax in visible(figure)] == ["exact", "", "", "learned", "", ""]


def test_a_wider_figure_has_more_panels_side_by_side(room: Any) -> None:
    def side_by_side(width: float) -> int:
        figure = representation_figure({"room": room}, "eigenvectors", width=width)
        return len({round(ax.get_position().x0, 3) for ax in visible(figure)})

    assert side_by_side(3.25) < side_by_side(5.5) < side_by_side(11.0)


def test_a_tall_world_gets_tall_panels() -> None:
    tall, wide = (
        representation_figure({"": lw.solve(name, dim=1)}).get_size_inches() for name in ("room:30x5", "room:5x30")
    )
    assert tall[1] / tall[0] > wide[1] / wide[0]


def test_on_a_screen_titles_tell_the_world_the_source_and_repeated_eigenvalues() -> None:
    data = lw.collect("GridMaze-7", steps=2000, seed=0)
    title = representation_figure({"": lw.solve(data, dim=2)}, style=SCREEN).get_suptitle()
    assert title == "GridMaze-7: Laplacian eigenvectors, from data ($\\lambda$: one_step)"
    # The last cluster goes on beyond the last component.
    figure = representation_figure({"": lw.solve("GridRoom-1", dim=5)}, style=SCREEN)
    assert [ax.get_xlabel().endswith("(2-fold)") for ax in visible(figure)] == [False, True, True, False, True]
    assert "exact" in figure.get_suptitle()


def test_no_more_panels_are_drawn_than_the_style_allows() -> None:
    style = Style(width=6.0, panel=1.0, panels=3, titles=False)
    assert len(visible(representation_figure({"": lw.solve("room:3x3", dim=5)}, style=style))) == 3


def test_a_representation_without_a_world_has_no_map() -> None:
    with pytest.raises(ArgumentError):
        representation_figure({"": lw.solve(np.full((3, 3), 1 / 3), dim=1)})


def test_a_spectrum_has_two_standard_errors_where_it_comes_from_data(room: Any, learned: Any) -> None:
    (ax,) = representation_figure({"learned": learned}, "spectrum").axes
    points = ax.lines[-1]
    np.testing.assert_allclose(points.get_ydata(), learned.eigenvalues)
    (bars,) = ax.collections
    lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(lengths, 4.0 * learned.error_bars_in(learned.definition), rtol=1e-6)
    (exact,) = representation_figure({"room": room}, "spectrum").axes
    assert not exact.collections


def test_a_spectrum_of_chosen_components_joins_the_repeated_ones(room: Any) -> None:
    (ax,) = representation_figure({"room": room}, "spectrum", [2, 3, 5], style=SCREEN).axes
    joined, points = ax.lines
    assert joined.get_xdata().tolist() == [2, 3]
    assert points.get_xdata().tolist() == [2, 3, 5]
    np.testing.assert_allclose(points.get_ydata(), room.eigenvalues[[1, 2, 4]])
    assert ax.get_title().startswith("GridRoom-1: smallest eigenvalues")


@pytest.mark.parametrize(("cosine", "panels"), [(0.9, 4), (None, 3)])
def test_curves_show_what_was_recorded(learned: Any, cosine: float | None, panels: int) -> None:
    model = dataclasses.replace(learned, metadata={**learned.metadata, "history": history(cosine)})
    axes = visible(representation_figure({"run": model}, "curves"))
    assert len(axes) == panels
    assert axes[0].get_ylabel() == ("cosine to the ground truth" if cosine else "largest angle (sine)")
    assert [line.get_label() for line in axes[-2].lines] == ["loss", "graph term"]
    assert list(axes[0].lines[0].get_xdata()) == [100.0, 200.0, 300.0]


def test_panels_hold_the_columns_of_the_history_and_metrics_of_any_objective() -> None:
    rows = [{"step": 1.0, "loss": 2.0, "dual_10": 0.1, "dual_2": 0.1, "entropy": 3.0, "angle": float("nan")}]
    panels = curve_panels(rows)
    assert set(panels) == {"loss", "duals", "others"}
    assert list(panels["duals"].lines.values()) == ["dual 2", "dual 10"]
    assert panels["others"].lines == {"entropy": "entropy"}


def test_a_comparison_has_one_colour_per_run_on_both_axes(room: Any, learned: Any) -> None:
    figure = representation_figure({"exact": room, "learned": learned}, "comparison")
    spectra, curves = figure.axes
    colours = {line.get_label(): line.get_color() for line in spectra.lines if not line.get_label().startswith("_")}
    assert set(colours) == {"exact", "learned"}
    assert len(set(colours.values())) == 2
    assert [(line.get_label(), line.get_color()) for line in curves.lines] == [("learned", colours["learned"])]
    assert [text.get_text() for text in figure.legends[0].texts] == ["exact", "learned"]


def test_a_comparison_is_in_one_definition_and_of_solved_ones_has_no_curves(room: Any) -> None:
    other = dataclasses.replace(room, definition=lw.successor(0.9))
    (ax,) = representation_figure({"a": room, "b": other}, "comparison").axes
    first, second = ax.lines[:2]
    np.testing.assert_allclose(first.get_ydata(), second.get_ydata())


def test_a_comparison_shows_angles_where_a_run_has_no_ground_truth(learned: Any) -> None:
    blind = dataclasses.replace(learned, metadata={**learned.metadata, "history": history(None)})
    figure = representation_figure({"a": learned, "b": blind}, "comparison")
    assert figure.axes[1].get_ylabel() == "largest angle (sine)"
    assert len(figure.axes[1].lines) == 2


@pytest.mark.parametrize("what", ["eigenvectors", "spectrum", "curves"])
def test_print_has_no_titles_and_its_own_fonts_and_settings_stay(learned: Any, what: Any) -> None:
    before = dict(matplotlib.rcParams)
    figure = representation_figure({"run": learned}, what)
    assert dict(matplotlib.rcParams) == before
    assert figure.get_suptitle() == ""
    assert all(ax.get_title() == "" for ax in figure.axes)
    assert {ax.xaxis.label.get_fontsize() for ax in figure.axes} == {PRINT.settings["font.size"]}
    ticks = [tick.label1.get_fontsize() for ax in visible(figure) for tick in ax.xaxis.get_major_ticks()]
    assert set(ticks) <= {PRINT.settings["xtick.labelsize"]}


def test_the_sheet_of_worlds_has_one_picture_and_title_each() -> None:
    names = ["GridRoom-1", "Rooms-64", "Box-1", "Box-3"]
    figure = worlds_figure([lw.make_world(name) for name in names], columns=3)
    assert [ax.get_title() for ax in visible(figure)] == [
        "GridRoom-1\n225 states",
        "Rooms-64\n1,088 states",
        "Box-1\ncontinuous",
        "Box-3\ncontinuous",
    ]


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("PNG", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_figure_is_the_same_file(learned: Any, tmp_path: Path, kind: str, start: bytes) -> None:
    one, two = (
        save_figure(representation_figure({"run": learned}, "spectrum"), tmp_path / name / f"f.{kind}").read_bytes()
        for name in ("one", "two")
    )
    assert one.startswith(start)
    assert one == two


def test_a_pdf_is_as_wide_as_asked_and_embeds_its_fonts(room: Any, tmp_path: Path) -> None:
    figure = representation_figure({"r": room}, "spectrum", width=3.25)
    content = save_figure(figure, tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", content)
    assert box is not None
    assert float(box[1]) == pytest.approx(3.25 * 72)
    assert b"/Type3" not in content  # which journals refuse
    assert b"/CIDFontType2" in content


@pytest.mark.parametrize(
    ("models", "what", "components", "width"),
    [
        ("room", "eigenvectors", [9], 5.5),
        ("room", "eigenvectors", [], 5.5),
        ("room", "spectrum", None, 0.2),
        ("room", "spectrum", None, float("nan")),
        ("room", "curves", None, 5.5),
        ("learned", "curves", [1], 5.5),
        ("room", "comparison", None, 5.5),
        ("both", "spectrum", None, 5.5),
        ("both", "curves", None, 5.5),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    room: Any, learned: Any, models: str, what: Any, components: Any, width: float
) -> None:
    given = {"room": {"room": room}, "learned": {"run": learned}, "both": {"room": room, "learned": learned}}[models]
    with pytest.raises(ArgumentError):
        representation_figure(given, what, components, width=width)


def test_an_unknown_figure_offers_the_nearest(room: Any) -> None:
    with pytest.raises(UnknownNameError, match="eigenvectors"):
        representation_figure({"room": room}, "eigenvecters")  # type: ignore[arg-type]


def test_an_unknown_format_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError):
        save_figure(Figure(), tmp_path / "deep" / "a.gif")
    assert not list(tmp_path.iterdir())


def test_a_figure_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"old")

    def broken(self: Figure, where: Path, **_: object) -> None:
        Path(where).write_bytes(b"half")
        raise RuntimeError("out of ink")

    monkeypatch.setattr(Figure, "savefig", broken)
    with pytest.raises(RuntimeError, match="out of ink"):
        save_figure(Figure(), path)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == {"a.png": b"old"}
