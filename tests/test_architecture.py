"""The packages stand in one order and a module imports only what comes before it; the paper uses public names only."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lapwing

SOURCE = Path(lapwing.__file__).parents[1]
LAPWING = sorted((SOURCE / "lapwing").rglob("*.py"))
PAPER = sorted((SOURCE / "lapwing_paper").rglob("*.py"))

# The order in which data flow. A module may import its own package and those before it.
ORDER = (
    "errors", "checks", "html_tables", "devices", "ray_cluster", "definitions", "storage", "environments", "data",
    "operators", "objectives", "encoders", "exporting", "diagnostics", "representation", "solving", "evaluation",
    "training", "sklearn", "applications", "plots", "report", "cli",
)  # fmt: skip

# The one import that points backwards, inside the functions that a notebook calls: a representation draws itself.
EXCEPTIONS = {
    ("representation", "lapwing.report.notebook.plot_model"),
    ("representation", "lapwing.report.notebook.model_html"),
}


def imported_names(source: str) -> set[str]:
    """Dotted names of everything that source text imports; the package has no relative imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "use absolute imports"
            # `from lapwing import plots` may import a module, not a name.
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def backward_imports(source: str, package: str) -> set[str]:
    """What source text of a package imports from the same level or above."""
    allowed = ORDER[: ORDER.index(package) + 1]
    found = set()
    for name in imported_names(source):
        parts = name.split(".")
        if parts[0] == "lapwing_paper":
            found.add(name)
        elif name == "lapwing":
            # All public names, each loaded when it is used: only what stands above everything may import that.
            found |= set() if package == ORDER[-1] else {name}
        elif parts[0] == "lapwing" and parts[1] != "__version__":
            # A public name imported from the top of the package leads to where it lives.
            home = lapwing._HOMES.get(parts[1], f"lapwing.{parts[1]}").split(".")[1]
            found |= set() if home in allowed or (package, name) in EXCEPTIONS else {name}
    return found


def test_no_import_points_backwards() -> None:
    wrong = {}
    for path in LAPWING:
        package = path.relative_to(SOURCE / "lapwing").parts[0].removesuffix(".py")
        if package not in ("__init__", "__main__"):
            wrong[str(path)] = backward_imports(path.read_text(), package)
    assert not {path: names for path, names in wrong.items() if names}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("environments", "from lapwing.data import collect"),
        ("operators", "def f():\n    from lapwing.solving import solve"),
        ("representation", "from lapwing import evaluation"),
        ("environments", "from lapwing import solve"),
        ("plots", "import lapwing as lw"),
        ("cli", "import lapwing_paper"),
    ],
)
def test_a_backward_import_is_found(package: str, source: str) -> None:
    assert backward_imports(source, package)


def test_forward_imports_pass() -> None:
    assert not backward_imports("from lapwing.environments.box import BoxWorld\nimport numpy.typing", "encoders")


def private_imports(source: str) -> set[str]:
    """What source text imports of lapwing besides the public names of the package and of its parts."""
    found = set()
    for name in imported_names(source):
        module, _, attribute = name.rpartition(".")
        if name.split(".")[0] != "lapwing":
            continue
        if module.count(".") > 1 or attribute not in getattr(importlib.import_module(module or name), "__all__", ()):
            found.add(name)
    return found


def test_the_paper_imports_public_names_only() -> None:
    assert not {str(path): found for path in PAPER if (found := private_imports(path.read_text()))}


@pytest.mark.parametrize(
    "source",
    [
        "import lapwing.solving",
        "from lapwing.environments.grid import GridWorld",
        "from lapwing.storage import files",
        "from lapwing.errors import os",
    ],
)
def test_an_import_of_a_private_name_is_found(source: str) -> None:
    assert private_imports(source)
    assert not private_imports("from lapwing import solve\nfrom lapwing.errors import DataError")


def pickling(source: str) -> list[str]:
    """Whatever in source text could run code hidden in a file."""
    suspects = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
    found = [name for name in imported_names(source) if name.split(".")[0] in suspects]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
            found.append(f"allow_pickle at line {node.value.lineno}")
    return found


def test_nothing_is_pickled() -> None:
    assert not {str(path): found for path in LAPWING + PAPER if (found := pickling(path.read_text()))}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from pickle import loads", "np.load(path, allow_pickle=True)", "np.load(p, allow_pickle=x)"],
)
def test_pickling_is_found(source: str) -> None:
    assert pickling(source)
    assert not pickling("np.load(path, allow_pickle=False)")


def test_every_public_name_resolves_to_what_its_home_defines() -> None:
    assert (
        {"learn", "solve", "load", "LaplacianRepresentation", "training"} <= set(lapwing.__all__) <= set(dir(lapwing))
    )
    for name, home in lapwing._HOMES.items():
        module = importlib.import_module(home)
        assert getattr(lapwing, name) is (module if home == f"lapwing.{name}" else getattr(module, name))


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = "('jax', 'equinox', 'scipy', 'numpy', 'gymnasium')"
    code = f"import sys, lapwing; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        lapwing.nonsense  # noqa: B018


def repeated(names: list[str]) -> list[str]:
    """Names that occur more than once."""
    return sorted({name for name in names if names.count(name) > 1})


def test_no_file_name_and_no_class_name_occurs_twice() -> None:
    assert not repeated([path.name for path in LAPWING + PAPER if path.name != "__init__.py"])
    parsed = [ast.parse(path.read_text()) for path in LAPWING + PAPER]
    assert not repeated([node.name for tree in parsed for node in tree.body if isinstance(node, ast.ClassDef)])
    assert repeated(["base.py", "grid.py", "base.py"]) == ["base.py"]


def lacks_sections(node: ast.FunctionDef) -> bool:
    """Whether the docstring lacks Args where there are arguments, or Returns where something is returned."""
    docstring = ast.get_docstring(node) or ""
    everything = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    has_arguments = bool({one.arg for one in everything if one} - {"self", "cls"})
    returns = ast.unparse(node.returns) if node.returns else "None"
    return (has_arguments and "Args:\n" not in docstring) or (
        returns not in ("None", "NoReturn") and not re.search(r"(Returns|Yields):\n", docstring)
    )


def undocumented(source: str, public: set[str]) -> list[str]:
    """Public functions of source text, and methods with arguments of its public classes, that lack sections."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and lacks_sections(node):
            found.append(node.name)
        for method in node.body if isinstance(node, ast.ClassDef) and node.name in public else []:
            if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
                takes_arguments = len(method.args.args) + len(method.args.kwonlyargs) > 1
                found += [f"{node.name}.{method.name}"] if takes_arguments and lacks_sections(method) else []
    return found


def test_public_functions_document_their_arguments_and_results() -> None:
    folders = [path.name for path in (SOURCE / "lapwing").iterdir() if (path / "__init__.py").exists()]
    packages = [lapwing, *(importlib.import_module(f"lapwing.{folder}") for folder in folders)]
    public = {name for package in packages for name in getattr(package, "__all__", ())}
    assert {"Trajectories", "World", "TrajectoryBuilder"} <= public
    assert not {str(path): found for path in LAPWING + PAPER if (found := undocumented(path.read_text(), public))}
    no_returns = 'def f(x: int) -> int:\n    """One.\n\n    Args:\n        x: a number.\n    """\n'
    assert undocumented(no_returns + "class C:\n    def m(self, x): ...", {"C"}) == ["f", "C.m"]


def test_signatures_name_types_instead_of_expanding_them() -> None:
    # `help(lw.learn)` prints the union behind ArrayLike in ten lines unless the annotation is a string.
    for name in lapwing.__all__:
        found = getattr(lapwing, name)
        members = vars(found).items() if isinstance(found, type) else [(name, found)]
        for label, member in members:
            if inspect.isfunction(member) and not label.startswith("_"):
                assert not re.search("_Buffer|NestedSequence|Union", str(inspect.signature(member))), (name, label)
