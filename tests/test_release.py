"""One version everywhere, a complete wheel, workflows whose commands exist, and a recipe with our requirements."""

import re
import runpy
import shlex
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import lapwing as lw

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

every_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def recipe() -> dict[str, Any]:
    """The conda recipe with its template filled in."""
    text = (ROOT / "conda" / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    values = dict(re.findall(r'{% set (\w+) = "([^"]+)" %}', text)) | {"name|lower": "lapwing", "PYTHON": "python"}
    lines = [line for line in text.splitlines() if not line.startswith("{%")]
    return yaml.safe_load(re.sub(r"{{ ([\w|]+) }}", lambda match: values[match[1]], "\n".join(lines)))


# --- the version ------------------------------------------------------------------------------------------------------


def test_the_version_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (\S+) - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {PROJECT["version"], lw.__version__, citation["version"], recipe()["package"]["version"]} == {headings[0][0]}
    assert headings[0][1] == str(citation["date-released"])


# --- the wheel --------------------------------------------------------------------------------------------------------


def test_a_wheel_is_refused_unless_it_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    expected = RELEASE["expected_files"]()
    assert {"lapwing/py.typed", "lapwing/__init__.pyi", "lapwing/report/templates/base.html"} <= expected
    assert "lapwing_paper/published/eigenvalues.csv" in expected
    metadata = f"lapwing-{PROJECT['version']}.dist-info"
    wheel = tmp_path / "some.whl"

    def problems(names: set[str]) -> list[str]:
        with zipfile.ZipFile(wheel, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        return RELEASE["content_problems"](wheel, expected)

    complete = expected | {f"{metadata}/{name}" for name in ("METADATA", "entry_points.txt", "licenses/LICENSE")}
    assert problems(complete) == []
    assert problems(complete - {"lapwing/py.typed"}) == ["some.whl lacks lapwing/py.typed"]
    assert len(problems(complete | {"tests/test_solving.py", "stray.txt"})) == 2
    assert len(problems(complete - {f"{metadata}/entry_points.txt"})) == 1


# --- the workflows ----------------------------------------------------------------------------------------------------


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test"]


@every_workflow
def test_commands_of_a_workflow_exist(path: Path) -> None:
    for job in jobs(path).values():
        for line in [step["run"] for step in job["steps"] if "run" in step]:
            words = shlex.split(line)
            if words[0] == "make":
                assert set(words[1:]) <= TARGETS
            for word in words:
                if re.match(r"(tests|\.ci|docs)/|constraints\.txt$", word):
                    assert (ROOT / word).exists(), word


@every_workflow
def test_jobs_wait_for_jobs_that_exist_and_have_a_system(path: Path) -> None:
    found = jobs(path)
    for job in found.values():
        needs = job.get("needs", [])
        assert set([needs] if isinstance(needs, str) else needs) <= set(found)
        assert "runs-on" in job
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)


def test_every_declared_python_is_tested_on_three_systems() -> None:
    matrix = jobs(ROOT / ".github" / "workflows" / "test.yml")["test"]["strategy"]["matrix"]
    declared = [line.split(" :: ")[-1] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert matrix["python"] == declared == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={declared[0]}"
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_the_tests_of_a_workflow_are_those_of_make_test() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = jobs(ROOT / ".github" / "workflows" / "test.yml")["test"]["steps"]
    assert steps[-1]["run"].removeprefix("python ") in makefile


# --- the conda recipe -------------------------------------------------------------------------------------------------


def test_the_recipe_has_the_requirements_of_the_package() -> None:
    renamed = {"matplotlib-base": "matplotlib"}
    run = [line.partition(" ") for line in recipe()["requirements"]["run"]]
    ours = {Requirement(line).name: set(map(str, Requirement(line).specifier)) for line in PROJECT["dependencies"]}
    ours["python"] = {PROJECT["requires-python"]}
    assert {renamed.get(name, name): set(versions.split(",")) for name, _, versions in run} == ours


def test_the_recipe_has_the_entry_points_and_the_build_system() -> None:
    found = recipe()
    assert found["build"]["entry_points"] == [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert found["build"]["noarch"] == "python"
    system = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    assert {line.replace(" ", "") for line in found["requirements"]["host"]} >= set(system)
    assert found["source"]["path"].endswith(f"lapwing-{PROJECT['version']}.tar.gz")
    assert " ".join(found["about"]["summary"].split()) == PROJECT["description"]
