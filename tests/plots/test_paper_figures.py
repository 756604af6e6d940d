"""Figures for papers: what is on them, how large they are, and the same bits each time."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

import lapwing as lw
from lapwing.plots.papers import PRINT, paper_figure, save_for_print


def history(last_cosine: float | None) -> list[dict[str, float]]:
    rows = [{"step": 100.0 * k, "loss": 5.0 - k, "error": 0.1 / k, "angle": 1.0 / k} for k in (1, 2, 3)]
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
    figure = paper_figure({"room": room}, "eigenvectors")
    assert figure.get_size_inches()[0] == pytest.approx(5.5)
    labels = [ax.get_xlabel() for ax in visible(figure)]
    assert labels == [rf"$\lambda_{{{i + 1}}}$ = {value:.3g}" for i, value in enumerate(room.eigenvalues)]


def test_chosen_components_are_drawn_in_that_order_with_their_own_values(room: Any) -> None:
    figure = paper_figure({"room": room}, "eigenvectors", [4, 2])
    (first, second) = visible(figure)
    assert first.get_xlabel().startswith(r"$\lambda_{4}$")
    cells = first.images[-1].get_array()
    free = lw.make_world("GridRoom-1").layout.free
    expected = room.transform(lw.make_world("GridRoom-1").observations())[:, 3]
    np.testing.assert_allclose(np.asarray(cells)[free], expected)
    assert second.get_xlabel().startswith(r"$\lambda_{2}$")


def test_several_runs_are_rows_with_their_names(room: Any, learned: Any) -> None:
    figure = paper_figure({"exact": room, "learned": learned}, "eigenvectors", [1, 2, 3])
    assert [ax.get_ylabel() for ax in visible(figure)] == ["exact", "", "", "learned", "", ""]


def test_a_column_holds_fewer_panels_side_by_side(room: Any) -> None:
    def side_by_side(width: float) -> int:
        figure = paper_figure({"room": room}, "eigenvectors", width=width)
        return len({round(ax.get_position().x0, 3) for ax in visible(figure)})

    assert side_by_side(3.25) < side_by_side(5.5) < side_by_side(11.0)


def test_a_spectrum_has_two_standard_errors_where_it_comes_from_data(room: Any, learned: Any) -> None:
    (ax,) = paper_figure({"learned": learned}, "spectrum").axes
    (points,) = [line for line in ax.lines if len(line.get_xdata()) == 8 and line.get_marker() == "o"]
    np.testing.assert_allclose(points.get_ydata(), learned.eigenvalues)
    (bars,) = ax.collections
    lengths = [segment[1, 1] - segment[0, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(lengths, 4.0 * learned.error_bars_in(learned.definition), rtol=1e-6)
    (exact,) = paper_figure({"room": room}, "spectrum").axes
    assert not exact.collections


def test_a_spectrum_of_some_components_has_only_those(room: Any) -> None:
    (ax,) = paper_figure({"room": room}, "spectrum", [2, 5]).axes
    assert ax.lines[0].get_xdata().tolist() == [2, 5]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), room.eigenvalues[[1, 4]])


@pytest.mark.parametrize(("cosine", "panels"), [(0.9, 4), (None, 3)])
def test_curves_show_what_was_recorded(learned: Any, cosine: float | None, panels: int) -> None:
    model = dataclasses.replace(learned, metadata={**learned.metadata, "history": history(cosine)})
    axes = visible(paper_figure({"run": model}, "curves"))
    assert len(axes) == panels
    assert axes[0].get_ylabel() == ("cosine to the truth" if cosine else "largest angle (sine)")
    assert list(axes[0].lines[0].get_xdata()) == [100.0, 200.0, 300.0]


def test_a_comparison_has_one_colour_per_run_on_both_axes(room: Any, learned: Any) -> None:
    figure = paper_figure({"exact": room, "learned": learned}, "comparison")
    spectra, curves = figure.axes
    colours = {line.get_label(): line.get_color() for line in spectra.lines if not line.get_label().startswith("_")}
    assert set(colours) == {"exact", "learned"}
    assert len(set(colours.values())) == 2
    assert [(line.get_label(), line.get_color()) for line in curves.lines] == [("learned", colours["learned"])]
    assert [text.get_text() for text in figure.legends[0].texts] == ["exact", "learned"]


def test_a_comparison_is_in_one_definition(room: Any) -> None:
    other = dataclasses.replace(room, definition=lw.successor(0.9))
    (ax,) = paper_figure({"a": room, "b": other}, "comparison").axes
    first, second = ax.lines[:2]
    np.testing.assert_allclose(first.get_ydata(), second.get_ydata())


def test_a_comparison_takes_angles_where_not_all_know_the_truth(learned: Any) -> None:
    blind = dataclasses.replace(learned, metadata={**learned.metadata, "history": history(None)})
    figure = paper_figure({"a": learned, "b": blind}, "comparison")
    assert figure.axes[1].get_ylabel() == "largest angle (sine)"
    assert len(figure.axes[1].lines) == 2


def test_a_comparison_of_solved_ones_is_their_spectra_alone(room: Any) -> None:
    assert len(paper_figure({"a": room, "b": room}, "comparison").axes) == 1


@pytest.mark.parametrize("what", ["eigenvectors", "spectrum", "curves"])
def test_there_are_no_titles_and_fonts_are_those_of_print(learned: Any, what: Any) -> None:
    figure = paper_figure({"run": learned}, what)
    assert figure.get_suptitle() == ""
    assert all(ax.get_title() == "" for ax in figure.axes)
    assert {ax.xaxis.label.get_fontsize() for ax in figure.axes} == {PRINT["axes.labelsize"]}
    ticks = [tick.label1.get_fontsize() for ax in visible(figure) for tick in ax.xaxis.get_major_ticks()]
    assert set(ticks) <= {PRINT["xtick.labelsize"]}


def test_settings_are_left_as_they_were(learned: Any) -> None:
    before = dict(matplotlib.rcParams)
    paper_figure({"run": learned}, "curves")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_same_figure_is_the_same_file(learned: Any, tmp_path: Path, kind: str, start: bytes) -> None:
    for name in ("one", "two"):
        save_for_print(paper_figure({"run": learned}, "spectrum"), tmp_path / f"{name}.{kind}")
    one, two = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
    assert one.startswith(start)
    assert one == two


def test_a_pdf_is_as_wide_as_asked_and_embeds_its_fonts(room: Any, tmp_path: Path) -> None:
    content = save_for_print(paper_figure({"r": room}, "spectrum", width=3.25), tmp_path / "f.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", content)
    assert box is not None
    assert float(box[1]) == pytest.approx(3.25 * 72)
    assert b"/Type3" not in content  # which journals refuse
    assert b"/CIDFontType2" in content


@pytest.mark.parametrize(
    ("models", "what", "components", "width", "message"),
    [
        ("room", "eigenvecters", None, 5.5, "did you mean eigenvectors"),
        ("room", "eigenvectors", [9], 5.5, "room has components 1 to 8; there is no component 9"),
        ("room", "eigenvectors", [], 5.5, "no component is chosen"),
        ("room", "spectrum", None, 0.2, "width must be between 1 and 40"),
        ("room", "spectrum", None, float("nan"), "width must be between 1 and 40"),
        ("room", "curves", None, 5.5, "not learned step by step"),
        ("learned", "curves", [1], 5.5, "leave the components out"),
        ("room", "comparison", None, 5.5, "at least two runs"),
        ("both", "spectrum", None, 5.5, "drawn of one run"),
        ("both", "curves", None, 5.5, "drawn of one run"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(
    room: Any, learned: Any, models: str, what: Any, components: Any, width: float, message: str
) -> None:
    given = {"room": {"room": room}, "learned": {"run": learned}, "both": {"room": room, "learned": learned}}[models]
    with pytest.raises(lw.LapwingError, match=message):
        paper_figure(given, what, components, width)


def test_an_unknown_ending_writes_nothing(room: Any, tmp_path: Path) -> None:
    with pytest.raises(lw.LapwingError, match=r"written as \.pdf, \.png or \.svg"):
        save_for_print(paper_figure({"r": room}, "spectrum"), tmp_path / "f.gif")
    assert not list(tmp_path.iterdir())
