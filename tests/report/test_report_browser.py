"""The page in a real browser: it opens without a complaint or a request, and answers to mouse and keyboard."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr

import lapwing as lw
from browser import launched
from lapwing.applications import eigenoptions
from lapwing.report import write_report

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[1] / "golden"
PageOf = Callable[..., Path]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


class Opened:
    """A page with its complaints and requests written down."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: (self.complaints.append("a dialog"), dialog.dismiss()))
        self.page.goto(path.as_uri())
        self.own = path.as_uri()

    def show(self, selector: str) -> Any:
        """Scroll to a figure and wait until it is drawn."""
        figure = self.page.locator(selector).first
        figure.scroll_into_view_if_needed()
        self.page.wait_for_function("s => document.querySelector(s).dataset.drawn === 'yes'", arg=selector)
        self.page.wait_for_function("s => document.querySelector(s).querySelector('.plot-container')", arg=selector)
        return figure

    def show_all(self) -> None:
        """Scroll past every figure that is not hidden."""
        count = self.page.locator("[data-figure]").count()
        for number in range(count):
            figure = self.page.locator("[data-figure]").nth(number)
            if figure.is_visible():
                figure.scroll_into_view_if_needed()
                handle = figure.element_handle()
                self.page.wait_for_function("e => e.dataset.drawn === 'yes'", arg=handle)

    def drawn(self, selector: str) -> list[list[float | None]]:
        """The matrix of a heat map as it is drawn."""
        found: list[list[float | None]] = self.page.evaluate(
            "s => document.querySelector(s).data.filter(t => t.type === 'heatmap').at(-1).z", selector
        )
        return found

    def finish(self) -> None:
        """No complaints, and no request but for the page itself."""
        assert self.complaints == []
        assert [url for url in self.requests if url != self.own and not url.startswith("blob:")] == []
        self.page.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Opened]]:
    pages: list[Opened] = []

    def open_page(path: Path, **options: Any) -> Opened:
        pages.append(Opened(browser, path, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.finish()


def distances(source: str) -> str:
    return f'[data-figure="distance"][data-source="{source}"]'


def click_cell(opened: Opened, selector: str, state: int) -> None:
    """Click the middle of a state's cell."""
    size = opened.page.evaluate(
        "s => { const r = DATA.runs[explored.run], e = document.querySelector(s).getBoundingClientRect();"
        "return [r.rows, r.columns, e.width, e.height, r.cells] }",
        selector,
    )
    rows, columns, width, height, cells = size
    row, column = divmod(cells[state], columns)
    place = {"x": (column + 0.5) * width / columns, "y": (row + 0.5) * height / rows}
    # Plotly clicks where it hovered.
    opened.page.locator(selector).hover(position=place)
    opened.page.wait_for_timeout(120)
    opened.page.locator(selector).click(position=place)


@pytest.mark.parametrize("name", ["learned", "solved", "box", "foreign", "matrix"])
def test_every_figure_is_drawn_without_a_complaint_or_a_request(
    name: str, opened: Callable[..., Opened], page_of: PageOf, request: pytest.FixtureRequest
) -> None:
    page = opened(page_of(request.getfixturevalue(name)))
    page.show_all()
    assert page.page.locator("h1").inner_text()
    assert page.page.locator(".plot-container").count() >= 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_components_over_time_fit_on_a_phone(
    scheme: str, opened: Callable[..., Opened], page_of: PageOf, foreign: Path
) -> None:
    page = opened(page_of(foreign), viewport={"width": 360, "height": 800}, color_scheme=scheme)
    chart = page.show('[data-name="time"]')
    assert chart.bounding_box()["width"] <= 360
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360
    # A panel for each component but the constant one, and text in the colour of the theme.
    assert chart.locator(".ytick").count() >= 2
    ink = page.page.evaluate("document.querySelector('[data-name=time] .annotation-text').style.fill")
    assert ink == ("rgb(233, 235, 239)" if scheme == "dark" else "rgb(27, 31, 39)")
    assert page.page.locator("#eigenvectors .pictures img").count() == 2


def test_figures_out_of_sight_wait(opened: Callable[..., Opened], page_of: PageOf, learned: Path) -> None:
    page = opened(page_of(learned))
    page.show('[data-figure="map"]')
    assert page.page.evaluate("document.querySelector('[data-figure=\"option\"]').dataset.drawn") is None


def test_a_click_on_a_state_changes_the_distance_map(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path
) -> None:
    page = opened(page_of(learned))
    for source in ("plain", "scaled", "steps"):
        page.show(distances(source))
    before = {source: page.drawn(distances(source)) for source in ("plain", "scaled", "steps")}
    click_cell(page, distances("plain"), 0)
    page.page.wait_for_function("explored.state === 0")
    assert page.page.locator("#state").input_value() == "0"
    for source, was in before.items():
        now = page.drawn(distances(source))
        assert now != was
        # The layout has a wall around it: state 0 is row 1, column 1.
        assert now[1][1] == 0
    values = lw.load(learned).transform(lw.make_world("GridRoomSym-4").table())  # type: ignore[union-attr]
    expected = np.linalg.norm(values - values[0], axis=1)
    now_plain = [value for row in page.drawn(distances("plain")) for value in row if value is not None]
    np.testing.assert_allclose(now_plain, expected, rtol=1e-4, atol=1e-5)


def test_the_arrow_keys_and_the_number_move_the_chosen_state(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path
) -> None:
    page = opened(page_of(learned))
    page.page.locator("#state").fill("0")
    page.page.locator("#state").press("Enter")
    page.show(distances("scaled"))
    before = page.drawn(distances("scaled"))
    page.page.locator("#walk").focus()
    page.page.keyboard.press("ArrowRight")
    assert page.page.locator("#chosen").inner_text() == "state 1, row 1, column 2"
    assert page.drawn(distances("scaled")) != before
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowLeft")
    assert page.page.locator("#chosen").inner_text().endswith("row 2, column 1")
    page.page.locator("#state").fill("99999")
    page.page.locator("#state").press("Enter")
    assert int(page.page.locator("#state").input_value()) == lw.make_world("GridRoomSym-4").num_states - 1  # type: ignore[union-attr]


def test_true_steps_and_rank_correlations_are_right(
    opened: Callable[..., Opened], page_of: PageOf, solved: Path
) -> None:
    page = opened(page_of(solved))
    page.page.locator("#state").fill("7")
    page.page.locator("#state").press("Enter")
    page.show(distances("steps"))
    world = lw.make_world("GridRoomSym-4")
    assert isinstance(world, lw.GridWorld)
    # Dense, for SciPy before 1.17.1 takes sparse arrays with indices of 32 bits only.
    steps = shortest_path(world.transition_matrix().toarray(), unweighted=True, indices=7)
    shown = [value for row in page.drawn(distances("steps")) for value in row if value is not None]
    assert shown == steps.tolist()
    model = lw.load(solved)
    values, slow = model.transform(world.table()), model.eigenvalues_in("one_step")
    others = np.arange(world.num_states) != 7
    for source, scaled in (("plain", values), ("scaled", values[:, 1:] / np.sqrt(slow[1:]))):
        expected = spearmanr(np.linalg.norm(scaled - scaled[7], axis=1)[others], steps[others]).statistic
        shown_rank = float(page.page.locator(f"#rank-{source}").get_attribute("data-value"))
        assert shown_rank == pytest.approx(expected, abs=2e-3)


def test_eigenoptions_are_those_of_python(opened: Callable[..., Opened], page_of: PageOf, solved: Path) -> None:
    page = opened(page_of(solved))
    selector = '[data-figure="option"][data-source="values"]'
    page.show(selector)
    world = lw.make_world("GridRoomSym-4")
    assert isinstance(world, lw.GridWorld)
    page.page.locator("#option-next").click()
    page.page.locator("#option-sign").select_option("-1")
    assert page.page.locator("#option-component").input_value() == "2"
    option = eigenoptions(lw.load(solved), world)[3]
    marks = "s => document.querySelector(s).data.filter(t => t.marker && t.x).map(t => [t.marker.symbol, t.x.length])"
    drawn = dict(page.page.evaluate(marks, selector))
    assert (drawn["star"], drawn["arrow"]) == ((option.actions < 0).sum(), (option.actions >= 0).sum())
    # The page counts the steps that the option takes from the chosen state.
    page.page.locator("#state").fill("0")
    page.page.locator("#state").press("Enter")
    state, steps = 0, 0
    while option.actions[state] >= 0:
        state, steps = (
            int(world.step(np.array([state]), option.actions[[state]], np.random.default_rng(0))[0][0]),
            steps + 1,
        )
    assert f"after {steps} step" in page.page.locator("#option-facts-values").inner_text()
    assert page.page.locator("#option-facts-values").inner_text().endswith(f"in state {state}")
    # An arrow to the right is turned by 90 degrees from up.
    angles = page.page.evaluate(
        "s => document.querySelector(s).data.find(t => t.marker?.symbol === 'arrow').marker.angle", selector
    )
    assert angles == [90.0 * (action if action < 3 else -1) for action in option.actions[option.actions >= 0]]


def test_two_or_three_components_make_a_scatter(opened: Callable[..., Opened], page_of: PageOf, learned: Path) -> None:
    page = opened(page_of(learned))
    page.show("#scatter")
    page.page.locator("#axis-x").select_option("3")
    shown = page.page.evaluate("document.getElementById('scatter').data[0].x")
    assert shown == page.page.evaluate("DATA.runs[0].values[3]")
    if page.page.locator("#axis-z").is_enabled():
        page.page.locator("#axis-z").select_option("4")
        assert page.page.evaluate("document.getElementById('scatter').data[0].type") == "scatter3d"


def test_the_numbers_in_sight_are_those_of_the_files(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path
) -> None:
    page = opened(page_of(learned))
    scores = json.loads((learned / "scores.json").read_text())["learned"]
    eigenvalues = json.loads((learned / "model.json").read_text())["eigenvalues"]
    assert page.page.locator('.tile [data-name="subspace_cosine"]').inner_text() == f"{scores['subspace_cosine']:.4f}"
    shown = page.page.locator('#spectrum [data-name="eigenvalue"]').all_inner_texts()
    assert [float(text) for text in shown] == pytest.approx(eigenvalues, rel=1e-4, abs=1e-12)
    page.show('[data-name="spectrum"]')
    drawn = page.page.evaluate("document.querySelector('[data-name=\"spectrum\"]').data.at(-1).y")
    assert drawn == eigenvalues


def test_three_runs_are_compared(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path, learned_again: Path, solved: Path
) -> None:
    page = opened(page_of(learned, learned_again, solved))
    page.show_all()
    assert page.page.locator("#runs tbody tr").count() == 3
    first = '[data-figure="map"][data-run="0"][data-source="values"]'
    before = page.drawn(first)
    page.page.locator("#compared-next").click()
    assert page.drawn(first) != before
    assert page.page.locator('[data-compared="3"]').first.is_visible()
    assert page.page.locator('[data-compared="2"]').first.is_hidden()
    page.show(distances("plain"))
    mine = page.drawn(distances("plain"))
    page.page.locator("#explored-run").select_option("2")
    page.show(distances("plain"))
    assert page.drawn(distances("plain")) != mine
    assert page.page.locator("#option-exact").is_hidden()


def test_worlds_with_and_without_a_picture_can_be_compared(
    opened: Callable[..., Opened], page_of: PageOf, foreign: Path, learned: Path, box: Path
) -> None:
    page = opened(page_of(foreign, learned, box))
    page.show_all()
    assert page.page.locator("#walk").is_hidden()
    for run in ("1", "2"):
        page.page.locator("#explored-run").select_option(run)
        assert page.drawn(distances("steps")) if page.show(distances("steps")) else None


def test_a_run_without_a_truth_shows_its_states(opened: Callable[..., Opened], page_of: PageOf, foreign: Path) -> None:
    page = opened(page_of(foreign))
    page.show("#scatter")
    assert page.page.locator("#walk").is_hidden()
    assert page.page.locator(".map").locator("visible=true").count() == 0
    before = int(page.page.locator("#state").input_value())
    page.page.locator("#scatter").focus()
    page.page.keyboard.press("ArrowLeft" if before else "ArrowRight")
    assert int(page.page.locator("#state").input_value()) == (before - 1 if before else 1)


def test_dark_and_light_follow_the_system_and_the_button(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path
) -> None:
    page = opened(page_of(learned), color_scheme="dark")
    back = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('[data-name=\"spectrum\"]').layout.font.color"
    page.show('[data-name="spectrum"]')
    dark = page.page.evaluate(back), page.page.evaluate(ink)
    page.page.locator("#theme").click()
    light = page.page.evaluate(back), page.page.evaluate(ink)
    assert page.page.locator("#theme").get_attribute("aria-pressed") == "false"
    assert all(was != now for was, now in zip(dark, light, strict=True))
    assert light[0] == "rgb(255, 255, 255)"


@pytest.mark.parametrize("several", [False, True], ids=["one run", "three runs"])
def test_a_phone_never_scrolls_sideways(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path, learned_again: Path, solved: Path, several: bool
) -> None:
    path = page_of(learned, learned_again, solved) if several else page_of(learned)
    page = opened(path, viewport={"width": 360, "height": 740})
    page.show_all()
    assert page.page.evaluate("document.documentElement.scrollWidth") <= 360


def test_the_keyboard_reaches_every_control_and_shows_where_it_is(
    opened: Callable[..., Opened], page_of: PageOf, solved: Path
) -> None:
    page = opened(page_of(solved))
    reached = set()
    for _ in range(60):
        page.page.keyboard.press("Tab")
        name, outline = page.page.evaluate(
            "[document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]"
        )
        if name:
            assert outline != "none", name
            reached.add(name)
    assert {"theme", "state", "walk", "axis-x", "colour", "scatter", "option-next", "option-sign"} <= reached


def test_markup_in_files_does_not_run(
    opened: Callable[..., Opened], page_of: PageOf, learned: Path, tmp_path: Path
) -> None:
    from lapwing.report import write_report

    shutil.copytree(learned, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "model.json").read_text())
    nasty = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    manifest["metadata"]["world"]["name"] = nasty
    (tmp_path / "run" / "model.json").write_text(json.dumps(manifest))
    page = opened(write_report([tmp_path / "run"], tmp_path / "page.html"))
    page.show('[data-figure="map"]')
    assert page.page.locator("h1").inner_text() == nasty
    assert page.page.locator("img").count() == 0


HOSTILE = (
    "</script><script>window.executed = 1</script><img src=x onerror='window.executed = 2'>"
    '"><svg onload="window.executed = 3"><a href="javascript:window.executed = 4">link</a>\u2028'
)


def test_text_from_hostile_files_is_shown_and_never_run(opened: Any, tmp_path: Path) -> None:
    runs = [shutil.copytree(GOLDEN / "run", tmp_path / name) for name in ("one", "other <img src=x onerror=alert(1)>")]
    for run in runs:
        manifest = json.loads((run / "model.json").read_text())
        manifest["metadata"]["world"]["name"] = HOSTILE
        manifest["metadata"]["config"][HOSTILE] = HOSTILE
        manifest["metadata"] |= {"objective": HOSTILE, "policy": HOSTILE}
        (run / "model.json").write_text(json.dumps(manifest))
        made = json.loads((run / "made.json").read_text())
        (run / "made.json").write_text(json.dumps(made | {"command": [HOSTILE], "versions": {HOSTILE: HOSTILE}}))
        audit = json.loads((run / "audit.json").read_text())
        (run / "audit.json").write_text(json.dumps(audit | {"warnings": [HOSTILE]}))
    for folders in (runs[:1], runs):
        page = opened(write_report(folders, tmp_path / f"page{len(folders)}.html"))
        page.show_all()
        page.show('[data-figure="scatter"]')
        assert page.page.evaluate("window.executed === undefined")
        assert page.page.locator("img, iframe, svg[onload], a[href^='javascript']").count() == 0
        assert "window.executed = 1" in page.page.locator("h1").first.inner_text()
