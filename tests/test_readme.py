"""What the README, the guide, the files to copy and the examples show is run as it stands."""

import os
import re
import runpy
import shlex
import sys
import warnings
from pathlib import Path

import pytest

from lapwing.cli import main as cli

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted([*(ROOT / "examples").glob("*.py"), *(ROOT / "docs" / "skeletons").glob("*.py")])


def blocks(page: str, language: str) -> list[str]:
    """Fenced blocks of a page, without those that include a file, which is run by itself."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in found if "--8<--" not in block]


PAGES = ("README.md", "docs/index.md", "docs/start.md", "docs/guide.md", "docs/online.md")
PAGES += ("docs/choose_d.md", "docs/choose_lags.md", "docs/read_a_certificate.md", "docs/eigenvalue_definitions.md")
# Pages whose code needs an extra: the modules that must be there.
NEEDS = {
    "docs/environments/minigrid.md": "minigrid",
    "docs/environments/mazes.md": "gymnasium_robotics",
    "docs/environments/atari.md": "ale_py",
    "docs/environments/minari.md": "minari",
    "docs/other_libraries.md": "onnxruntime",
}
PAGES += ("docs/environments/classic_control.md", *NEEDS)
PYTHON = [(page, block) for page in PAGES for block in blocks(page, "python")]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run() -> None:
    assert blocks("README.md", "python")
    assert blocks("README.md", "bash")
    assert len(EXAMPLES) >= 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")
@pytest.mark.parametrize(("page", "block"), PYTHON, ids=[f"{page}-{number}" for number, (page, _) in enumerate(PYTHON)])
def test_a_python_block_runs_as_it_stands(page: str, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", os.environ.get("MINARI_DATASETS_PATH", ""))  # a page sets it
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
        warnings.simplefilter("ignore")  # those of other packages
    exec(compile(block, page, "exec"), {"__name__": "page"})


@pytest.mark.slow
def test_the_commands_of_the_readme_run_one_after_the_other() -> None:
    lines = [line for block in blocks("README.md", "bash") for line in block.splitlines() if line.strip()]
    assert all(line.startswith("lapwing ") for line in lines)
    for line in lines:
        assert cli.main(shlex.split(line, comments=True)[1:]) in (0, 3), line


def test_the_example_of_the_readme_is_the_quickstart() -> None:
    quickstart = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert quickstart.endswith(blocks("README.md", "python")[0])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_and_stays_in_its_folder(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(path)])
    before = set(os.listdir(path.parent))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out or path.parent.name == "skeletons"
    assert set(os.listdir(path.parent)) == before


def test_every_file_that_a_page_links_to_exists() -> None:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            # The API reference is made when the site is built.
            known = "://" in target or target.startswith(("api/", "../api/")) or (page.parent / target).exists()
            assert known, f"{page.name} links to {target}"


def test_every_benchmark_and_make_target_that_the_pages_name_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"benchmarks/(\w+\.py)", text):
            assert (ROOT / "benchmarks" / name).is_file(), f"{page} names benchmarks/{name}"
        for target in re.findall(r"^make (\w+)|`make (\w+)`", text, flags=re.MULTILINE):
            assert f"\n{''.join(target)}:" in makefile, f"{page} names make {''.join(target)}"
