"""What the README and the examples show is run as it stands."""

import os
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from lapwing.cli import main as cli

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run() -> None:
    assert blocks("python")
    assert blocks("bash")
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_python_block_runs_as_it_stands(number: int) -> None:
    exec(compile(blocks("python")[number], f"README.md, Python block {number + 1}", "exec"), {"__name__": "readme"})


@pytest.mark.parametrize("number", range(len(blocks("bash"))))
def test_the_commands_of_a_shell_block_run_one_after_the_other(number: int) -> None:
    lines = [line for line in blocks("bash")[number].splitlines() if line.strip()]
    assert all(line.startswith("lapwing ") for line in lines)
    for line in lines:
        assert cli.main(shlex.split(line, comments=True)[1:]) == 0, line


def test_the_example_of_the_readme_is_the_quickstart() -> None:
    quickstart = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert quickstart.endswith(blocks("python")[0])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_stays_in_its_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    before = set(os.listdir(ROOT / "examples"))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    assert set(os.listdir(ROOT / "examples")) == before


def test_every_file_that_a_page_links_to_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_benchmark_and_make_target_that_the_pages_name_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"benchmarks/(\w+\.py)", text):
            assert (ROOT / "benchmarks" / name).is_file(), f"{page} names benchmarks/{name}"
        for target in re.findall(r"^make (\w+)|`make (\w+)`", text, flags=re.MULTILINE):
            assert f"\n{''.join(target)}:" in makefile, f"{page} names make {''.join(target)}"
