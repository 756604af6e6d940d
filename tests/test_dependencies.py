"""Dependencies: bounds as docs/dependencies.md has them, pins that fit them, licences that are permissive."""

import re
import runpy
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOWER_BOUNDS = runpy.run_path(str(ROOT / ".ci" / "lower_bounds.py"))
DIRECT = [Requirement(line) for line in LOWER_BOUNDS["direct_requirements"]()]
PINS = [Requirement(line) for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]

# By how a licence's name begins, in any of the ways in which packages write it.
PERMISSIVE = ("mit", "bsd", "3-clause bsd", "0bsd", "apache", "psf", "python software foundation", "isc", "hpnd")
PERMISSIVE += ("historical permission", "zlib", "cc0", "unlicense", "new bsd", "modified bsd")
# Of a file that is changed the changes stay open, and nothing else is asked for; in extras and tests only.
BY_FILE = ("mpl-2.0", "mozilla public license 2.0")
# Environments under the GPL, in an extra of their own and in tests; lapwing never imports them by name.
COPYLEFT = {"ale-py": "ale_py"}
# What an environment of an extra draws with, under the LGPL; lapwing never imports it.
DRAWN_WITH = {"pygame-ce"}

every_direct = pytest.mark.parametrize("requirement", DIRECT, ids=lambda requirement: requirement.name)


def needed(extra: str = "") -> dict[str, Distribution]:
    """Every installed package that lapwing, or lapwing with one extra, needs, however indirectly."""
    found: dict[str, Distribution] = {}
    seen, waiting = set(), [("lapwing", ""), ("lapwing", extra)]
    while waiting:
        name, part = waiting.pop()
        if (name, part) in seen:
            continue
        seen.add((name, part))
        found[name] = distribution(name)
        for requirement in map(Requirement, found[name].requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": part}):
                waiting += [(canonicalize_name(requirement.name), wanted) for wanted in ("", *requirement.extras)]
    return found


def needed_or_skip(extra: str) -> dict[str, Distribution]:
    try:
        return needed(extra)
    except PackageNotFoundError as missing:
        pytest.skip(f"the extra {extra} is not installed: {missing}")


def licences(package: Distribution) -> list[str]:
    """What a package's metadata say: an SPDX expression, else classifiers, else the first line of free text."""
    expression = package.metadata.get("License-Expression")
    if expression:
        return re.split(r" AND | OR ", expression.replace("(", "").replace(")", ""))
    classifiers = [line for line in package.metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    named = [line.split(" :: ")[-1] for line in classifiers if not line.endswith("OSI Approved")]
    return named or (package.metadata.get("License") or "none given").splitlines()[:1]


def refused(packages: dict[str, Distribution], allowed: tuple[str, ...]) -> dict[str, list[str]]:
    found = {name: licences(package) for name, package in packages.items()}
    return {name: given for name, given in found.items() if not all(word.lower().startswith(allowed) for word in given)}


def rows_of_the_table() -> Iterator[list[str]]:
    for line in (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 6:
            yield cells


# --- bounds -----------------------------------------------------------------------------------------------------------


@every_direct
def test_every_dependency_has_one_lower_bound_and_at_most_one_cap(requirement: Requirement) -> None:
    kinds = sorted(part.operator for part in requirement.specifier)
    assert kinds in ([">="], ["<", ">="])


@every_direct
def test_every_pin_lies_within_the_bounds(requirement: Requirement) -> None:
    pins = [pin for pin in PINS if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
    assert pins
    for pin in pins:
        (version,) = pin.specifier
        assert requirement.specifier.contains(version.version), str(pin)


def test_a_dependency_without_a_lower_bound_is_refused() -> None:
    with pytest.raises(SystemExit, match="no lower bound"):
        LOWER_BOUNDS["lower_bound"]("numpy<3")


def test_lower_bounds_are_constraints_without_extras_and_caps() -> None:
    lines = LOWER_BOUNDS["constraints"]()
    assert len(lines) == len(DIRECT)
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    assert LOWER_BOUNDS["lower_bound"]("minari[hdf5]>=0.5.2,<2") == ("minari", "0.5.2")


def test_the_table_repeats_the_bounds_of_every_dependency() -> None:
    table = {cells[0].strip("`"): (cells[3], cells[4]) for cells in rows_of_the_table()}
    bounds = {}
    for requirement in DIRECT:
        by_kind = {part.operator: part.version for part in requirement.specifier}
        bounds[requirement.name] = (by_kind[">="], f"< {by_kind['<']}" if "<" in by_kind else "")
    assert table == bounds


def test_pins_are_exact_and_sorted_and_from_nowhere_in_particular() -> None:
    assert all([part.operator for part in pin.specifier] == ["=="] and pin.url is None for pin in PINS)
    names = [pin.name for pin in PINS]
    assert names == sorted(names)


def test_everything_that_is_installed_for_us_is_pinned() -> None:
    packages = needed() | needed_or_skip("test")
    pinned = {(canonicalize_name(pin.name), next(iter(pin.specifier)).version) for pin in PINS}
    direct = {canonicalize_name(requirement.name) for requirement in map(Requirement, PROJECT["dependencies"])}
    if any((name, packages[name].version) not in pinned for name in direct):
        pytest.skip("other versions than those of constraints.txt are installed")
    assert packages.keys() - {name for name, _ in pinned} == {"lapwing"}


# --- licences, and what must not come along -------------------------------------------------------------------------


def test_every_licence_of_what_lapwing_needs_is_permissive() -> None:
    assert refused(needed(), PERMISSIVE) == {}


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_no_extra_brings_a_licence_that_reaches_further_than_its_own_files(extra: str) -> None:
    allowed = DRAWN_WITH | (COPYLEFT.keys() if extra in ("atari", "test") else set())
    assert refused(needed_or_skip(extra), PERMISSIVE + BY_FILE).keys() <= allowed


def test_what_is_under_the_gpl_is_imported_by_no_module() -> None:
    assert set(PROJECT["optional-dependencies"]["atari"]) == {"ale-py>=0.11"}
    for path in (ROOT / "src").rglob("*.py"):
        for module in COPYLEFT.values():
            assert not re.search(rf"^\s*(import|from) {module}\b", path.read_text(encoding="utf-8"), re.MULTILINE), path


@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_nothing_pulls_in_another_framework(extra: str) -> None:
    assert not {"torch", "tensorflow", "flax", "pandas"} & needed_or_skip(extra).keys()


@pytest.mark.parametrize(
    "licence", ["GPL-3.0-only", "GNU Lesser General Public License v3 (LGPLv3)", "AGPL-3.0", "none given"]
)
def test_other_licences_are_refused(licence: str) -> None:
    assert not licence.lower().startswith(PERMISSIVE + BY_FILE)
