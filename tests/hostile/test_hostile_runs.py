"""Hostile run folders: a page is made of sound records or not at all, and text in them stays text."""

import json
import os
import re
import shutil
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import JSON_BOMBS, array_bombs, edit_json, saved

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.report import write_report

pytestmark = pytest.mark.slow

Copied = Callable[[str], Path]
RECORDS = ("audit.json", "scores.json", "provenance.json")


def refused(folder: Path, words: str | None = None) -> None:
    with pytest.raises(LapwingError, match=words) as error:
        write_report([folder], folder / "report.html")
    assert len(str(error.value)) < 700
    assert "\n" not in str(error.value)
    assert not (folder / "report.html").exists()


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_a_hostile_record_is_refused(copied: Copied, name: str, bomb: str) -> None:
    folder = copied("run")
    (folder / name).write_bytes(JSON_BOMBS[bomb])
    if (name, bomb) == ("provenance.json", "a huge number"):
        refused(folder, "digits")
    else:
        refused(folder, re.escape(name))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("audit.json", {"transitions": "<script>"}),
        ("audit.json", {"transitions": -1}),
        ("audit.json", {"transitions": 1.5}),
        ("audit.json", {"episodes": ...}),
        ("audit.json", {"median_length": [1]}),
        ("audit.json", {"entropy": None}),
        ("audit.json", {"warnings": "text"}),
        ("audit.json", {"warnings": [1]}),
        ("audit.json", {"visits": None}),
        ("audit.json", {"visits": ...}),
        ("audit.json", {"visits": "many"}),
        ("audit.json", {"visits": [1, "<script>"]}),
        ("audit.json", {"visits": []}),
        ("audit.json", {"visits_of": 3}),
        ("audit.json", {"visits_of": "<script>"}),
        ("audit.json", {"visits_of": "cells", "visits_shape": [10**9, 10**9]}),
        ("audit.json", {"visits_of": "cells", "visits_shape": "ab"}),
        ("audit.json", {"episode_lengths": [1]}),
        ("audit.json", {"episode_lengths": {"counts": [1, 2], "lengths": [1]}}),
        ("audit.json", {"episode_lengths": {"counts": [1, 2]}}),
        ("audit.json", {"episode_lengths": {"counts": [1, 2], "edges": ["a", "b", "c"]}}),
        ("scores.json", {"learned": [1]}),
        ("scores.json", {"learned": {"cosine": 1.0}}),
        ("scores.json", {"baseline": {"subspace_cosine": "high"}}),
        ("scores.json", {"baseline": 3}),
        ("scores.json", {"baseline_eigenvalues": [1]}),
        ("scores.json", {"baseline_eigenvalues": {"definition": "one_step", "values": "abc"}}),
        ("provenance.json", {"command": "rm -rf"}),
        ("provenance.json", {"command": [["a"]]}),
        ("provenance.json", {"versions": ["a"]}),
        ("provenance.json", {"date": 3}),
    ],
    ids=str,
)
def test_a_hostile_field_is_refused(copied: Copied, name: str, changes: dict[str, Any]) -> None:
    folder = copied("run")
    edit_json(folder / name, **changes)
    refused(folder, re.escape(name))


@pytest.mark.parametrize(
    "changes",
    [
        {"seconds": "long"},
        {"seconds": 10**99},
        {"steps": "<script>"},
        {"steps": [1]},
        {"eigenvalue_estimates": 3},
        {"eigenvalue_estimates": {"dual": "abc"}},
        {"eigenvalue_estimates": {"dual": [[1.0], [2.0]]}},
        {"config": 3},
        {"config": {"discounts": "abc"}},
        {"config": {"discounts": [2.0]}},
        {"method": ["learn"]},
        {"world": "text"},
        {"world": {"kind": "gymnasium", "name": ["a"]}},
        {"policy": {"a": 1}},
        {"seed": [1]},
    ],
    ids=str,
)
def test_metadata_that_are_not_needed_are_left_out_or_shown_as_text(copied: Copied, changes: dict[str, Any]) -> None:
    folder = copied("run")
    metadata = json.loads((folder / "model.json").read_text())["metadata"]
    edit_json(folder / "model.json", metadata=metadata | changes)
    page = write_report([folder], folder / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    write_report([folder, shutil.copytree(folder, folder.parent / "again")], folder.parent / "page.html")


@pytest.mark.parametrize(
    "history",
    [3, "abc", [1], [{"loss": 1.0}], [{"step": "<script>"}], [{"step": 1.0, "loss": "<script>"}], [{"step": 1.0}, []]],
    ids=str,
)
def test_a_hostile_history_is_refused(copied: Copied, run: Any, history: Any) -> None:
    folder = copied("run")
    metadata = json.loads((folder / "model.json").read_text())["metadata"]
    edit_json(folder / "model.json", metadata=metadata | {"history": history})
    refused(folder, "learning history")
    result = run("plot run --what curves")
    assert (result.code, result.err.count("\n")) == (1, 1)


def test_rows_of_a_history_that_lack_a_number_are_drawn_with_a_gap(copied: Copied, run: Any) -> None:
    folder = copied("run")
    metadata = json.loads((folder / "model.json").read_text())["metadata"]
    rows = [{"step": 1.0, "loss": 0.5}, {"step": 2.0}, {"step": 3.0, "loss": None, "angle": 0.5}]
    edit_json(folder / "model.json", metadata=metadata | {"history": rows})
    assert run("plot run --what curves").code == 0
    assert run("report run").code == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"step,loss\n1,<script>\n",
        b"step,loss\n1,2,3\n",
        b"step,loss\n1\n",
        b"step,step\n1,2\n",
        b'step,loss\n1,"2\n',
        b"step,loss\n1,\x00\n",
        b"step\n" + b"9" * 200_000 + b"\n",
        b"\xff\xfe",
    ],
)
def test_a_hostile_table_of_metrics_is_refused_or_empty(copied: Copied, content: bytes) -> None:
    folder = copied("run")
    metadata = json.loads((folder / "model.json").read_text())["metadata"]
    edit_json(folder / "model.json", metadata={name: value for name, value in metadata.items() if name != "history"})
    (folder / "metrics.csv").write_bytes(content)
    if content:
        refused(folder, r"metrics\.csv")
    else:
        write_report([folder], folder / "report.html")


@pytest.mark.parametrize("bomb", sorted(array_bombs(Path("unused"))))
def test_hostile_observations_are_refused(copied: Copied, trace: Path, bomb: str) -> None:
    folder = copied("run")
    (folder / "observations.npy").write_bytes(array_bombs(trace)[bomb])
    refused(folder, r"observations\.npy")


@pytest.mark.parametrize("array", [np.array(1.0), np.zeros(3), np.zeros((0, 2))])
def test_observations_of_no_shape_are_refused(copied: Copied, array: np.ndarray) -> None:
    folder = copied("run")
    (folder / "observations.npy").write_bytes(saved(array))
    refused(folder, "holds no observations")


@pytest.mark.parametrize("name", [*RECORDS, "metrics.csv", "observations.npy"])
def test_a_folder_or_a_pipe_in_place_of_a_record_is_refused(copied: Copied, name: str) -> None:
    for make in (os.mkdir, os.mkfifo):
        folder = copied("run")
        metadata = json.loads((folder / "model.json").read_text())["metadata"]
        edit_json(folder / "model.json", metadata={n: value for n, value in metadata.items() if n != "history"})
        (folder / name).unlink(missing_ok=True)
        make(folder / name)
        refused(folder, "not a file")
        shutil.rmtree(folder)


NASTY = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover='alert(3)",
    "javascript:alert(4)",
    '<a href="javascript:alert(5)">x</a>',
    "a\u2028b\u2029c",
    "<!--<script>",
    "]]>&lt;b&gt;{{ 7 * 7 }}{% raw %}",
    "$\\frac{$",
    "\x1b[2J\x07\x00",
]

# The data, plotly, and three of ours.
SCRIPTS = 5


class Tags(HTMLParser):
    """Every tag of a page with its attributes, and the text of its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))


def poison(folder: Path, words: str) -> None:
    """Put text into every field of a run that a page could show."""
    manifest = json.loads((folder / "model.json").read_text())
    metadata = manifest["metadata"]
    metadata["world"]["name"] = words
    metadata["config"][words] = words
    metadata |= dict.fromkeys(("objective", "encoder", "batches", "preset", "policy", "seed"), words)
    metadata["history"] = [{**row, words: 1.0} for row in metadata["history"]]
    (folder / "model.json").write_text(json.dumps(manifest))
    edit_json(folder / "provenance.json", command=["lapwing", words], date=words, versions={words: words})
    edit_json(folder / "audit.json", warnings=[words])
    scores = json.loads((folder / "scores.json").read_text())
    scores["learned"]["definition"] = words
    (folder / "scores.json").write_text(json.dumps(scores))


@pytest.mark.parametrize("words", NASTY, ids=ascii)
def test_text_in_files_stays_text_on_the_page(copied: Copied, words: str) -> None:
    clean = copied("run")
    folder = Path(shutil.copytree(clean, clean.parent / f"other {words.replace('/', '_')[:20]}".replace("\x00", "")))
    poison(folder, words)
    for folders in ([folder], [folder, clean]):
        page = write_report(folders, clean.parent / "page.html").read_text(encoding="utf-8")
        own = "".join(part for part in re.split(r"(?<=<script>)|(?=</script>)", page) if len(part) < 1_000_000)
        found = Tags()
        found.feed(own)
        assert not {tag for tag, _ in found.tags} & {"img", "iframe", "object", "embed", "form", "base", "link"}
        assert len([tag for tag, _ in found.tags if tag == "script"]) == SCRIPTS
        for _, attributes in found.tags:
            assert not [name for name in attributes if name.startswith("on")]
            assert not str(attributes.get("href", "#")).strip().lower().startswith("javascript")
        block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
        assert block is not None
        assert not set("<>&\u2028\u2029") & set(block[1])
        assert json.loads(block[1])["runs"][0]["name"] == words
        assert words.replace("\x00", "\ufffd") in unescape(own).replace("\x00", "\ufffd")


@pytest.mark.slow
@pytest.mark.parametrize("words", [*NASTY[:2], *NASTY[-2:]], ids=ascii)
def test_text_in_files_stays_text_in_a_notebook_a_figure_and_a_terminal(copied: Copied, run: Any, words: str) -> None:
    folder = copied("run")
    poison(folder, words)
    model = lw.load(folder)
    found = Tags()
    found.feed(model._repr_html_())
    assert {tag for tag, _ in found.tags} <= {"div", "b", "br", "table", "tr", "th", "td", "span", "img"}
    assert all(str(attributes.get("src", "data:")).startswith("data:") for _, attributes in found.tags)
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    for what in ("eigenvectors", "spectrum", "curves"):
        result = run(f"plot run --what {what} --out figure.png")
        assert result.code == 0, result.err
        assert "\x1b" not in result.out + result.err
