"""The page as a file: whole, small, escaped, and the same numbers as in the results."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.report import write_report
from lapwing.report.page import MAX_RUNS, as_script
from lapwing.report.run_folder import write_run

pytestmark = pytest.mark.slow

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

PageOf = Callable[..., Path]


def data_of(page: str) -> dict[str, Any]:
    """The block of data in a page."""
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def numbers(page: str, name: str) -> list[float]:
    """All numbers of one name, as the page gives them to machines."""
    found = re.findall(rf'data-name="{name}" data-value="([^"]*)"', page)
    return [float(text) for text in found if text]


def without_library(page: str) -> str:
    """The page but for plotly.js, which is by far its largest part."""
    return "".join(part for part in re.split(r"(?<=<script>)|(?=</script>)", page) if len(part) < 1_000_000)


@pytest.fixture(scope="module")
def page(learned: Path, page_of: PageOf) -> str:
    return page_of(learned).read_text(encoding="utf-8")


def test_the_numbers_on_the_page_are_those_of_the_files(page: str, learned: Path) -> None:
    scores = json.loads((learned / "scores.json").read_text())
    model = lw.load(learned)
    # Once under the picture, once in the table.
    assert numbers(page, "eigenvalue") == model.eigenvalues.tolist() * 2
    assert numbers(page, "similarity") == scores["learned"]["subspace_cosines"]
    assert numbers(page, "subspace_cosine") == [scores["learned"]["subspace_cosine"]]
    assert numbers(page, "baseline") == scores["baseline_eigenvalues"]["values"]
    for verdict in model.certificate().verdicts:
        assert verdict in page


def test_the_page_says_how_it_was_made(page: str) -> None:
    assert "lapwing learn GridRoomSym-4 --dim 6 --steps 60" in page
    for word in ("learning_rate", "jax", "transitions", "connected components", "seed"):
        assert word in page


def test_every_figure_has_words_for_those_who_do_not_see_it(page: str) -> None:
    figures = re.findall(r"<div[^>]*data-figure=[^>]*>", page)
    assert len(figures) > 15
    for figure in figures:
        assert re.search(r'aria-label="[^"]{10,}"', figure), figure


@pytest.mark.parametrize("name", ["learned", "box", "foreign", "matrix", "solved"])
def test_every_kind_of_run_has_a_page(name: str, page_of: PageOf, request: pytest.FixtureRequest) -> None:
    text = page_of(request.getfixturevalue(name)).read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert text.rstrip().endswith("</html>")
    data = data_of(text)
    assert len(data["runs"]) == 1
    assert "spectrum" in data["figures"]


def test_a_run_without_a_map_is_drawn_and_shown_over_time(page_of: PageOf, foreign: Path, matrix: Path) -> None:
    text = without_library(page_of(foreign).read_text(encoding="utf-8"))
    assert '<section id="time"' in text
    assert "8 of 259 episodes" in text
    assert text.count("<img") == 2
    for picture in re.findall(r"<img[^>]*>", text):
        assert re.search(r'alt="[^"]{10,}"', picture)
    # A matrix has states and no experience.
    other = without_library(page_of(matrix).read_text(encoding="utf-8"))
    assert '<section id="time"' not in other
    assert other.count("<img") == 2
    both = without_library(page_of(foreign, matrix).read_text(encoding="utf-8"))
    assert both.count('<div class="pictures"') == 4


def test_a_comparison_holds_every_run(page_of: PageOf, learned: Path, learned_again: Path, solved: Path) -> None:
    text = page_of(learned, learned_again, solved).read_text(encoding="utf-8")
    assert [run["label"] for run in data_of(text)["runs"]] == ["learned", "learned again", "solved"]
    scores = [json.loads((run / "scores.json").read_text())["learned"] for run in (learned, learned_again)]
    assert numbers(text, "subspace_cosine") == [score["subspace_cosine"] for score in scores]
    assert len(data_of(text)["figures"]["spectrum-0"]["data"]) == 3
    assert "Where they differ" in text


def test_runs_from_the_same_data_share_one_audit(page_of: PageOf, learned: Path, tmp_path: Path, solved: Path) -> None:
    twin = Path(shutil.copytree(learned, tmp_path / "twin"))
    text = page_of(learned, solved, twin).read_text(encoding="utf-8")
    assert "<h3>learned, twin</h3>" in text
    assert text.count("What is in the data") == 1
    other = Path(shutil.copytree(learned, tmp_path / "other"))
    record = json.loads((other / "audit.json").read_text())
    (other / "audit.json").write_text(json.dumps(record | {"warnings": ["another data set"]}))
    assert page_of(learned, solved, other).read_text(encoding="utf-8").count("What is in the data") == 2


def test_a_large_world_stays_below_the_limit(tmp_path: Path) -> None:
    data = lw.collect("Rooms-64", steps=100_000, seed=0)
    # Counted, so that the exact components are beside it, and both are in the page.
    write_run(lw.solve(data, 11), tmp_path / "run", data=data)
    page = write_report([tmp_path / "run"], tmp_path / "page.html")
    arrays = data_of(page.read_text(encoding="utf-8"))["runs"][0]
    assert (len(arrays["values"]), len(arrays["exact"]), arrays["count"]) == (11, 11, 1088)
    assert page.stat().st_size <= 6_500_000


def test_nothing_from_files_is_taken_for_markup(learned: Path, tmp_path: Path) -> None:
    run = tmp_path / "run <b>"
    shutil.copytree(learned, run)
    manifest = json.loads((run / "model.json").read_text())
    manifest["metadata"]["world"]["name"] = NASTY
    manifest["metadata"]["config"][NASTY] = NASTY
    manifest["metadata"] |= {"objective": NASTY, "policy": NASTY}
    (run / "model.json").write_text(json.dumps(manifest))
    made = json.loads((run / "provenance.json").read_text())
    (run / "provenance.json").write_text(json.dumps(made | {"command": ["lapwing", NASTY], "versions": {NASTY: NASTY}}))
    audit = json.loads((run / "audit.json").read_text())
    (run / "audit.json").write_text(json.dumps(audit | {"warnings": [NASTY]}))
    for folders in ([run], [run, learned, run]):
        text = write_report(folders, tmp_path / "page.html").read_text(encoding="utf-8")
        own = without_library(text)
        assert NASTY not in own
        assert "<script>alert" not in own
        assert "<img" not in own
        assert "run <b>" not in own
        assert NASTY in unescape(own)
        assert data_of(text)["runs"][0]["name"] == NASTY


def test_json_cannot_leave_its_element() -> None:
    text = as_script({"a": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_the_page_asks_for_nothing_from_elsewhere(page: str) -> None:
    own = without_library(page)
    assert not re.findall(r"https?://", own)
    assert not re.findall(r"<(?:link|img|iframe|script[^>]*\ssrc)", own)
    assert "default-src 'none'" in own


def test_the_same_files_give_the_same_page(learned: Path, page: str, tmp_path: Path) -> None:
    assert write_report([learned], tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_a_folder_as_target_takes_the_page(solved: Path, tmp_path: Path) -> None:
    assert write_report([solved], tmp_path) == tmp_path / "report.html"


def test_bad_calls_write_nothing(solved: Path, tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="at least one run"):
        write_report([], tmp_path / "page.html")
    with pytest.raises(LapwingError, match="too many"):
        write_report([solved] * (MAX_RUNS + 1), tmp_path / "page.html")
    with pytest.raises(LapwingError, match="does not exist"):
        write_report([tmp_path / "nowhere"], tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_problems_stand_above_everything_else_and_are_escaped(tmp_path: Path) -> None:
    few = lw.solve(lw.collect("GridMaze-9", 1_000, seed=0), 3)
    seen = {"name": "diverged", "components": [2], "message": NASTY, "advice": NASTY}
    model = replace(few, metadata={**few.metadata, "health": {"problems": [seen]}})
    write_run(model, tmp_path / "ill")
    write_run(lw.solve("GridMaze-9", 3), tmp_path / "well")
    page = without_library(write_report([tmp_path / "ill"], tmp_path / "ill.html").read_text())
    assert NASTY not in page
    banner = unescape(page[page.index('<aside class="problems untrusted"') : page.index("</aside>")])
    assert "This result must not be trusted." in banner
    assert banner.count(NASTY) == 2
    assert banner.index("diverged") < banner.index("too few data")
    assert page.index("</aside>") < page.index('<dl class="tiles">')
    assert "<aside" not in write_report([tmp_path / "well"], tmp_path / "well.html").read_text()
    both = write_report([tmp_path / "ill", tmp_path / "well"], tmp_path / "both.html").read_text()
    assert both.count("<aside") == 1
    assert "ill: This result must not be trusted." in both
