"""The examples in the docstrings run and give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

from lapwing.errors import MissingExtraError

SOURCE = Path(__file__).resolve().parents[1] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    results = doctest.testmod(module, raise_on_error=False)
    assert results.failed == 0


def test_there_are_examples_to_run() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(name) for name in MODULES if name != "lapwing.applications.sb3"]
    found = [test for module in modules for test in finder.find(module) if test.examples]
    assert len(found) >= 15
