"""Notebook manners: what a cell shows is self-contained, escaped, readable on dark ground, and never fails."""

import base64
import dataclasses
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import lapwing as lw
from lapwing.diagnostics.certificate import DEGENERATE, TRUSTED
from lapwing.report import notebook


@pytest.fixture(scope="module")
def truth() -> lw.LaplacianRepresentation:
    return lw.solve("GridRoom-1", dim=5)


@pytest.fixture(scope="module")
def counted() -> lw.LaplacianRepresentation:
    return lw.solve(lw.collect("GridMaze-7", 5_000, seed=1), 3)


@pytest.fixture(scope="module")
def learned() -> lw.LaplacianRepresentation:
    return lw.learn(lw.collect("GridMaze-7", 50_000, seed=1), 3, steps=40, log_every=20)


CYCLE = (np.roll(np.eye(5), 1, axis=1) + np.roll(np.eye(5), -1, axis=1)) / 2


class FirstTwo:
    """Components that are the first two numbers of an observation, after a constant."""

    dim, kind = 3, "first two"

    def encode(self, points: np.ndarray) -> np.ndarray:
        return np.concatenate([np.ones((len(points), 1)), np.asarray(points, dtype=np.float64)[:, :2]], axis=1)

    def arrays(self) -> dict[str, np.ndarray]:
        return {}


def drifting() -> tuple[lw.LaplacianRepresentation, lw.Trajectories]:
    """A representation of no world of the registry, and experience there."""
    points = np.random.default_rng(0).normal(size=(300, 3))
    model = lw.LaplacianRepresentation(FirstTwo(), np.array([1.0, 0.9, 0.8]), 3)  # type: ignore[arg-type]
    return model, lw.from_arrays(points, lengths=[100, 100, 100])


class Reader(HTMLParser):
    """Collects tags, text and sources; every tag must be closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.sources: list[str] = []
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attributes)
        self.sources += [str(value) for name, value in given.items() if name in ("src", "href")]
        self.styles.append(given.get("style") or "")
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    return reader


def test_it_says_what_it_is_with_every_eigenvalue_and_verdict(truth: Any) -> None:
    page = read(truth._repr_html_())
    text = " ".join(page.words)
    assert "Laplacian representation of GridRoom-1" in text
    assert "exact dynamics" in text
    assert all(f"{value:.5g}" in text for value in truth.eigenvalues)
    assert text.count(TRUSTED) + text.count(DEGENERATE) == 5
    assert page.tags.count("tr") == 6


def test_error_bars_stand_where_eigenvalues_come_from_data(learned: Any, truth: Any) -> None:
    assert f"± {learned.error_bars_in(learned.definition)[1]:.1g}" in " ".join(read(learned._repr_html_()).words)
    assert "±" not in " ".join(read(truth._repr_html_()).words)


def test_verdicts_have_colours_of_their_own(truth: Any) -> None:
    html = truth._repr_html_()
    assert notebook.VERDICT_COLOURS[TRUSTED][1] in html
    assert notebook.VERDICT_COLOURS[DEGENERATE][1] in html


def luminance(colour: str) -> float:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("verdict", notebook.VERDICT_COLOURS)
def test_a_verdict_is_readable_on_its_own_ground(verdict: str) -> None:
    ink, ground = (luminance(colour) for colour in notebook.VERDICT_COLOURS[verdict])
    assert (ground + 0.05) / (ink + 0.05) >= 7


def test_all_other_text_takes_the_notebooks_own_colour(truth: Any) -> None:
    for tag, style in zip(*(lambda page: (page.tags, page.styles))(read(truth._repr_html_())), strict=True):
        if tag not in ("span", "img"):
            assert "color:#" not in style
            assert "background:#" not in style


def test_it_is_one_small_piece_with_an_inline_picture(truth: Any) -> None:
    html = truth._repr_html_()
    (source,) = read(html).sources
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")).startswith(b"\x89PNG")
    assert "<script" not in html
    assert 'alt="the first 5 eigenvectors on GridRoom-1' in html
    assert len(html) < 100_000


def test_a_box_and_a_matrix_have_a_picture_and_a_network_without_a_map_has_none() -> None:
    assert read(lw.solve("Box-2", dim=3)._repr_html_()).sources
    html = lw.solve(CYCLE, 3)._repr_html_()
    assert read(html).sources
    assert "eigenvectors 2 to 3" in html
    page = read(drifting()[0]._repr_html_())
    assert not page.sources
    assert "table" in page.tags


def test_many_components_are_cut_short() -> None:
    page = read(lw.solve("FourRooms", dim=20)._repr_html_())
    assert page.tags.count("tr") == notebook.SHOWN_ROWS + 1
    assert "and 8 more" in page.words


def test_names_are_escaped(truth: Any) -> None:
    world = {**truth.metadata["world"], "name": '<script>alert("x")</script>'}
    html = dataclasses.replace(truth, metadata={"world": world})._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert read(html).sources


def test_without_residuals_nothing_is_certified(truth: Any) -> None:
    page = read(dataclasses.replace(truth, residuals=None)._repr_html_())
    assert page.words.count("not certified") == 5
    assert page.tags.count("tr") == 6


@pytest.mark.parametrize("metadata", [{"world": {"kind": "grid", "name": "<b>"}}, {"method": "learn", "steps": "x"}])
def test_a_damaged_description_falls_back_to_escaped_text(truth: Any, metadata: Any) -> None:
    html = dataclasses.replace(truth, metadata=metadata)._repr_html_()
    assert html.startswith("<pre>")
    assert "LaplacianRepresentation" in html
    assert re.findall(r"<(?!/?pre>)", html) == []


def test_plot_returns_a_figure_that_a_notebook_can_show(truth: Any) -> None:
    figure = truth.plot()
    assert isinstance(figure, Figure)
    assert sum(ax.get_visible() for ax in figure.axes) == 5
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_plot_takes_components_and_what(truth: Any, learned: Any) -> None:
    labels = [ax.get_xlabel() for ax in truth.plot([2, 4]).axes]
    assert [label.split(" ")[0] for label in labels] == [r"$\lambda_{2}$", r"$\lambda_{4}$"]
    assert truth.plot(components=np.arange(1, 4), what="spectrum").axes[0].get_xlabel() == "component"
    assert learned.plot(what="curves").axes[0].get_xlabel() == "step"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"what": "spectrm"}, "did you mean spectrum"),
        ({"components": [6]}, "components 1 to 5; there is no component 6"),
        ({"components": [0]}, "there is no component 0"),
        ({"components": []}, "no component is chosen"),
        ({"components": [1.5]}, "components are numbers from 1"),
        ({"components": 3}, "components are numbers from 1"),
        ({"what": "curves"}, "not learned step by step"),
        ({"what": "comparison"}, "cannot plot 'comparison'"),
    ],
)
def test_what_cannot_be_plotted_is_refused_in_words(truth: Any, arguments: Any, message: str) -> None:
    with pytest.raises(lw.LapwingError, match=message):
        truth.plot(**arguments)


def test_a_matrix_is_drawn_over_the_numbers_of_its_states() -> None:
    figure = lw.solve(CYCLE, 3).plot()
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), np.arange(5))


def test_a_network_without_a_map_is_drawn_at_data_and_over_time() -> None:
    model, data = drifting()
    with pytest.raises(lw.LapwingError, match=r"model\.plot\(data=data\)"):
        model.plot()
    assert len(model.plot(data=data).axes) == 2
    figure = model.plot([2], what="trajectories", data=data)
    assert figure.axes[0].get_xlabel() == "step"
    with pytest.raises(lw.LapwingError, match="components over time need experience"):
        model.plot(what="trajectories")
    with pytest.raises(lw.LapwingError, match="data are Trajectories"):
        model.plot(what="trajectories", data=data.observations)  # type: ignore[arg-type]


def test_looking_draws_with_no_global_state(truth: Any, counted: Any) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    truth.plot()
    counted._repr_html_()
    assert dict(matplotlib.rcParams) == before
