"""Prints the lower bound of every direct dependency as a constraint: `numpy>=2.0` in pyproject.toml is `numpy==2.0`."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?(?P<versions>[^;]*)")


def direct_requirements(pyproject: Path = PYPROJECT) -> list[str]:
    """Every requirement of the package and of its extras, but for extras that name the package itself."""
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    requirements = list(project["dependencies"])
    for extra in project.get("optional-dependencies", {}).values():
        requirements += extra
    return [requirement for requirement in requirements if not requirement.startswith(f"{project['name']}[")]


def lower_bound(requirement: str) -> tuple[str, str]:
    """The name and the oldest version allowed: `("jax", "0.8.2")` of `jax>=0.8.2,<0.13`."""
    match = REQUIREMENT.fullmatch(requirement.strip())
    bounds = re.findall(r">=\s*([^,\s]+)", match["versions"]) if match else []
    if not match or len(bounds) != 1:
        raise SystemExit(f"pyproject.toml: {requirement!r} has no lower bound; write it as name>=version")
    return match["name"], bounds[0]


def constraints(pyproject: Path = PYPROJECT) -> list[str]:
    """One line `name==oldest` per direct dependency, sorted."""
    return sorted("==".join(lower_bound(requirement)) for requirement in direct_requirements(pyproject))


if __name__ == "__main__":
    print("\n".join(constraints()))
