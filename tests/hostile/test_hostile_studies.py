"""Hostile runs of a study: the store reads numbers or says that a run is damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forging import JSON_BOMBS, array_bombs, edit_json

from lapwing.errors import LapwingError
from lapwing_paper.engine.places import place as world
from lapwing_paper.engine.runs import Run
from lapwing_paper.engine.store import RunStore

Copied = Callable[[str], Path]
RUN = Run("ALLO", world("GridMaze-7", None), 0, {"options": {"steps": 5}})


@pytest.fixture
def store(copied: Copied) -> RunStore:
    return RunStore(copied("study"))


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_a_hostile_manifest_is_refused(store: RunStore, bomb: str) -> None:
    (store.folder(RUN) / "run.json").write_bytes(JSON_BOMBS[bomb])
    with pytest.raises(LapwingError, match=r"run\.json"):
        store.read(RUN)


@pytest.mark.parametrize("bomb", sorted(array_bombs(Path("unused"))))
def test_a_hostile_array_is_refused(store: RunStore, trace: Path, bomb: str) -> None:
    (store.folder(RUN) / "components.npy").write_bytes(array_bombs(trace)[bomb])
    with pytest.raises(LapwingError, match=r"components\.npy"):
        store.read(RUN)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 99},
        {"status": "failed", "error": "<script>"},
        {"numbers": 3},
        {"numbers": ...},
        {"arrays": 3},
        {"arrays": ["nowhere"]},
        {"arrays": ["../../../precious"]},
        {"arrays": [["components"]]},
        {"history": ...},
    ],
    ids=str,
)
def test_a_hostile_field_is_refused(store: RunStore, changes: dict[str, Any]) -> None:
    edit_json(store.folder(RUN) / "run.json", **changes)
    with pytest.raises(LapwingError):
        store.read(RUN)
