"""Imports follow the flow of data and never point backwards; no code is hidden in files; modules stay small."""

import ast
import importlib
from pathlib import Path

import pytest

import lapwing

PACKAGE = Path(lapwing.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
MAX_LINES = 350

VOCABULARY = {"errors", "checks", "reading", "records", "files", "locks", "folders", "definitions", "model_files"}
BELOW_TRAINING = {
    "environments", "trajectories", "spectral", "batches", "objectives", "encoders", "health", "representation",
}  # fmt: skip
BELOW_EXPERIMENTS = BELOW_TRAINING | {"exact", "training", "evaluation", "learning"}
BELOW_COMMANDS = BELOW_EXPERIMENTS | {"theory", "studies", "experiments", "plots", "report"}

# Each module or folder of the package and what it may import, beside itself and the shared vocabulary.
ARROWS: dict[str, set[str]] = {
    "errors": set(),
    "checks": set(),
    "reading": set(),
    "records": set(),
    "files": {"reading"},
    "locks": set(),
    "folders": {"files", "locks"},
    "definitions": {"checks"},
    "environments": set(),
    "trajectories": {"environments"},
    "spectral": {"environments", "trajectories"},
    "batches": {"trajectories", "spectral", "objectives"},
    "objectives": set(),
    "encoders": {"environments"},
    "health": {"spectral"},
    "model_files": {"files", "reading", "records"},
    "representation": {"spectral", "encoders", "health", "model_files"},
    "exact": {"environments", "trajectories", "spectral", "encoders", "health", "representation"},
    "training": BELOW_TRAINING,
    "evaluation": {"environments", "representation", "spectral", "exact", "encoders", "trajectories"},
    "learning": BELOW_TRAINING | {"training", "evaluation"},
    "theory": {"objectives", "spectral"},
    "studies": BELOW_EXPERIMENTS | {"theory"},
    "experiments": BELOW_EXPERIMENTS | {"studies"},
    "plots": BELOW_EXPERIMENTS | {"studies"},
    "report": BELOW_EXPERIMENTS | {"studies", "experiments", "plots"},
    "notebook": BELOW_EXPERIMENTS | {"plots"},
    "sinks": {"training"},
    "doctor": BELOW_EXPERIMENTS,
    "orders": set(),
    "runs": BELOW_COMMANDS | {"orders"},
    "reproduction": BELOW_COMMANDS,
    "terminal": BELOW_COMMANDS,
    "words": set(),
    "commands": BELOW_COMMANDS | {"terminal", "cli", "words", "runs", "reproduction", "orders", "sinks", "doctor"},
    "cli": BELOW_COMMANDS | {"terminal", "words", "commands"},
}

every_module = pytest.mark.parametrize("module", MODULES, ids=str)


def home(parts: tuple[str, ...]) -> str:
    """The module or folder directly under the package that a file or dotted name belongs to."""
    return parts[0].removesuffix(".py")


def imported_names(source: str, package: tuple[str, ...]) -> set[str]:
    """Dotted names of everything that source text imports, relative imports resolved against its package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            found.add(base)
            # `from lapwing import terminal` imports a module, not a name.
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def arrows_out_of(source: str, package: tuple[str, ...]) -> set[str]:
    """Modules and folders of the package that source text imports."""
    names = [name.split(".") for name in imported_names(source, package)]
    found = {parts[1] for parts in names if parts[0] == "lapwing" and len(parts) > 1} - {"__version__"}
    # A public name taken through the front door leads to where it lives.
    return {lapwing._HOMES.get(name, name).split(".")[0] for name in found}


def backward_arrows(source: str, place: str, package: tuple[str, ...]) -> set[str]:
    allowed = ARROWS[place] | {place, "errors"}
    if place not in VOCABULARY:
        allowed |= VOCABULARY
    return arrows_out_of(source, package) - allowed


@every_module
def test_no_import_points_backwards(module: Path) -> None:
    if module == Path("__init__.py"):
        pytest.skip("the front door names everything")
    place = home(module.parts)
    assert place in ARROWS, f"{place} is new: say in ARROWS what it may import"
    package = ("lapwing", *module.parts[:-1])
    assert not backward_arrows((PACKAGE / module).read_text(), place, package)


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("environments", "from lapwing.trajectories.collect import collect"),
        ("environments", "import lapwing.spectral.operators"),
        ("objectives", "from lapwing.encoders import table"),
        ("spectral", "def f():\n    from lapwing.exact import solve"),
        ("representation", "from lapwing import evaluation"),
        ("encoders", "from ..representation import load"),
        ("errors", "from lapwing.files import write_json"),
        ("environments", "from lapwing import solve"),
        ("trajectories", "if True:\n    from lapwing.spectral import ritz as quiet"),
    ],
    ids=str,
)
def test_an_arrow_that_points_backwards_is_noticed(place: str, source: str) -> None:
    assert backward_arrows(source, place, ("lapwing", place))


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("environments", "from lapwing.environments.box import BoxWorld\nfrom lapwing.errors import LapwingError"),
        ("encoders", "from .base import Encoder\nimport numpy.typing\nfrom lapwing.environments.box import BoxWorld"),
        ("cli", "from lapwing import __version__, commands"),
    ],
    ids=str,
)
def test_an_arrow_that_points_forwards_is_let_pass(place: str, source: str) -> None:
    assert not backward_arrows(source, place, ("lapwing", place))


def test_the_allowed_arrows_have_no_circle_below_the_command_line() -> None:
    left = {place: set(allowed) for place, allowed in ARROWS.items() if place not in ("cli", "commands")}
    while left:
        free = {place for place, allowed in left.items() if not allowed & set(left)}
        assert free, f"these import one another in a circle: {sorted(left)}"
        left = {place: allowed for place, allowed in left.items() if place not in free}


def pickling(source: str) -> list[str]:
    """Whatever in source text could run code hidden in a file."""
    suspects = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    found = [name for name in imported_names(source, ()) if name.split(".")[0] in suspects]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append(f"allow_pickle at line {node.value.lineno}")
    return found


@every_module
def test_nothing_is_pickled(module: Path) -> None:
    assert not pickling((PACKAGE / module).read_text())


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from pickle import loads", "np.load(path, allow_pickle=True)", "np.load(p, allow_pickle=x)"],
)
def test_pickling_is_noticed(source: str) -> None:
    assert pickling(source)
    assert not pickling("np.load(path, allow_pickle=False)")


@every_module
def test_modules_stay_small(module: Path) -> None:
    assert len((PACKAGE / module).read_text().splitlines()) <= MAX_LINES, "split this module"


def test_the_public_names_are_those_that_have_a_home() -> None:
    assert set(lapwing.__all__) == set(lapwing._HOMES)
    assert len(lapwing.__all__) == len(set(lapwing.__all__))
    assert set(lapwing.__all__) <= set(dir(lapwing))


@pytest.mark.parametrize("name", lapwing.__all__)
def test_every_public_name_resolves_to_what_its_home_defines(name: str) -> None:
    module = importlib.import_module(f"lapwing.{lapwing._HOMES[name]}")
    assert getattr(lapwing, name) is getattr(module, name)


def test_type_checkers_are_told_of_the_same_public_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    told = {
        alias.asname or alias.name: f"{node.module}"
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == {name: f"lapwing.{place}" for name, place in lapwing._HOMES.items()}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lapwing.nonsense  # noqa: B018
