"""docs/paper_map.md and the docstrings name the same equations, lemmas, tables and figures."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
MAP = ROOT / "docs" / "paper_map.md"

SECTIONS = {"Background": "2", "Theoretical results": "4", "Experiments": "5"}

_NUMBER = r"\d+[A-Z]?"
_LIST = rf"{_NUMBER}(?:-{_NUMBER})?(?:(?:, | and ){_NUMBER}(?:-{_NUMBER})?)*"
_NUMBERED = re.compile(rf"(Eq|Lemma|Theorem|Corollary|Proposition|Figure|Table|Section)s?\.? ({_LIST})")
_NAMED = re.compile(r'(Section|Appendix) "([^"]+)"')


def citations(text: str) -> set[str]:
    """Every item of the paper that a text names, one by one: ``Eq. 1-2`` is Eq. 1 and Eq. 2."""
    text = " ".join(text.split())
    found = set()
    for kind, numbers in _NUMBERED.findall(text):
        for part in re.split(r", | and ", numbers):
            first, _, last = part.partition("-")
            span = [first] if not last else [str(n) for n in range(int(first), int(last) + 1)]
            found |= {f"{kind} {number}" for number in span}
    for kind, name in _NAMED.findall(text):
        found.add(f"Section {SECTIONS[name]}" if kind == "Section" and name in SECTIONS else f'{kind} "{name}"')
    if '"Barrier Dynamics"' in text:
        found.add('"Barrier Dynamics"')
    return found


def mapped() -> list[tuple[str, str]]:
    """(item, dotted name) for every function in the table of the map."""
    rows = []
    for line in MAP.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 4:
            continue
        names = re.findall(r"`(lapwing(?:_paper)?\.[\w.]+)`", cells[2])
        rows += [(item, name) for item in sorted(citations(cells[0])) for name in names]
    return rows


def documented() -> Iterator[tuple[str, str, str]]:
    """(module, dotted name, docstring) of every module, class and function in the package."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from _documented(ast.parse(path.read_text(encoding="utf-8")), module, module)


def _documented(node: ast.AST, module: str, name: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield module, name, ast.get_docstring(node) or ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            yield from _documented(child, module, f"{name}.{child.name}")


def find(name: str) -> Any:
    """The object of a dotted name, whether or not parts of it are modules that share a name with a function."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            found = getattr(found, attribute)
        return found
    raise ModuleNotFoundError(name)


ROWS = mapped()
CITING = [(module, name, item) for module, name, text in documented() for item in sorted(citations(text))]


def test_the_map_names_functions_for_every_equation_with_an_objective() -> None:
    items = {item for item, _ in ROWS}
    assert {"Eq. 1", "Eq. 2", "Eq. 4", "Eq. 5", "Eq. 6", "Lemma 1", "Lemma 2", "Theorem 1"} <= {
        item.replace("Eq ", "Eq. ") for item in items
    }


def test_a_function_in_the_map_exists_and_cites_what_the_map_says() -> None:
    wrong = [(item, name) for item, name in ROWS if item not in citations(inspect.getdoc(find(name)) or "")]
    assert not wrong, "the map gives these functions for these items, but their docstrings do not cite them"


def is_mapped(module: str, name: str, item: str) -> bool:
    """Whether the map has an item for the docstring of a name; private names need any row, modules one of their own."""
    names = {mapped_name for mapped_item, mapped_name in ROWS if mapped_item == item}
    last = name.rsplit(".", 1)[-1]
    if last.startswith("_") and not last.startswith("__"):
        return bool(names)
    return any(other.startswith(module) for other in names) if name == module else name in names


def test_a_docstring_that_cites_the_paper_is_in_the_map() -> None:
    missing = [(name, item) for module, name, item in CITING if not is_mapped(module, name, item)]
    assert not missing, f"these docstrings cite the paper: add them to {MAP.name}"
