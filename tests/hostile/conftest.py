"""A folder to be hostile in, and a watch over everything around it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forging import GOLDEN

Copied = Callable[[str], Path]


def listing(folder: Path) -> dict[str, int]:
    """Every file below a folder, with its size."""
    return {str(path.relative_to(folder)): path.lstat().st_size for path in folder.rglob("*")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only folder a test may change: whatever appears outside it makes the test fail."""
    inside = tmp_path / "outer" / "inner"
    inside.mkdir(parents=True)
    (tmp_path / "precious.txt").write_text("precious")
    monkeypatch.chdir(inside)
    before = listing(tmp_path)
    yield inside
    after = {name: size for name, size in listing(tmp_path).items() if not name.startswith("outer/inner/")}
    assert after.keys() == before.keys()
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.fixture
def trace(place: Path) -> Iterator[Path]:
    """What an executed payload would create."""
    path = place.parent.parent / "executed"
    yield path
    assert not path.exists(), "code in a file was executed"


@pytest.fixture
def copied(place: Path) -> Copied:
    """A copy of a golden folder."""

    def copy(name: str) -> Path:
        folder = Path(shutil.copytree(GOLDEN / name, place / name))
        if (folder / "made.json").exists():  # its name in version 0.1
            (folder / "made.json").rename(folder / "provenance.json")
        return folder

    return copy
