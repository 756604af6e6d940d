"""docs/reproduction.md and docs/results agree with the registry of studies."""

import re
from pathlib import Path

import pytest

from lapwing_paper.studies.catalogue import STUDIES, overview

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_holds_the_overview_as_it_is() -> None:
    assert overview() in (DOCS / "reproduction.md").read_text(encoding="utf-8"), "write overview() into the page anew"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_a_result_with_its_command_and_date(name: str) -> None:
    page = (DOCS / "results" / f"{name}.md").read_text(encoding="utf-8")
    assert f"Made with `lapwing reproduce {name} --quick` on 20" in page
    assert "only" not in page.split("\n", 4)[2], "some of its runs had not finished"
    for picture in re.findall(r"\]\(([^)]+\.png)\)", page):
        assert (DOCS / "results" / picture).is_file()


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_no_page_names_a_folder_of_one_machine(path: Path) -> None:
    assert not re.search(r"(?<![\w.])/(?:work|tmp|home|root|Users)/", path.read_text(encoding="utf-8"))
