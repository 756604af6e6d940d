"""The tutorials: notebooks that run, and whose stored outputs are complete, small, and free of what changes."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
NAMES = {
    "paper_in_ten_minutes", "your_own_environment", "continuous_worlds", "options_and_shaping", "pixels", "online",
    "writing_an_objective",
}  # fmt: skip

every_tutorial = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def outputs(notebook: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output for cell in notebook for output in cell.get("outputs", [])]


def text_of(output: dict[str, Any]) -> str:
    """All text of an output; pictures are left out."""
    data = {kind: content for kind, content in output.get("data", {}).items() if not kind.startswith("image/")}
    return "".join(map("".join, [output.get("text", []), *data.values()]))


def test_all_tutorials_are_there_and_small() -> None:
    assert {path.stem for path in TUTORIALS} == NAMES
    assert sum(path.stat().st_size for path in TUTORIALS) < 3_000_000


@every_tutorial
def test_a_tutorial_begins_with_a_title_and_explains_its_code(path: Path) -> None:
    first, *rest = cells(path)
    assert first["cell_type"] == "markdown"
    assert "".join(first["source"]).startswith("# ")
    kinds = [cell["cell_type"] for cell in rest]
    assert kinds.count("markdown") >= 4
    assert kinds.count("code") >= 4


@every_tutorial
def test_stored_outputs_are_complete_and_hold_nothing_of_a_machine(path: Path) -> None:
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        # Of a definition there is nothing to see.
        assert cell["outputs"] or re.search(r"^(import|def|class|\w+ = )", "".join(cell["source"]), re.MULTILINE)
    assert any("image/png" in output.get("data", {}) for output in outputs(code))
    for output in outputs(code):
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr", "a warning; avoid it, or explain it and switch it off"
        assert not re.search(r"/(home|root|tmp|work|usr|Users)/|0x[0-9a-f]{6}|\.py:\d", text_of(output))


@every_tutorial
def test_a_tutorial_uses_public_names_only(path: Path) -> None:
    source = "\n".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code")
    modules = set(re.findall(r"^from (lapwing[.\w]*) import", source, re.MULTILINE))
    assert modules <= {"lapwing.applications", "lapwing.objectives"}
    assert "import lapwing as lw" in source


@pytest.mark.slow
@every_tutorial
def test_a_tutorial_runs_and_shows_what_is_stored(path: Path) -> None:
    pytest.importorskip("nbclient")
    run = runpy.run_path(str(ROOT / "docs" / "run_tutorials.py"))["run"]
    found, stored = run(path)["cells"], cells(path)
    assert not [output for output in outputs(found) if output["output_type"] == "error"]
    # The same kinds of output in each cell; digits may differ between machines.
    kinds = [[sorted(output.get("data", {"text": ""})) for output in cell.get("outputs", [])] for cell in found]
    assert kinds == [
        [sorted(output.get("data", {"text": ""})) for output in cell.get("outputs", [])] for cell in stored
    ]
