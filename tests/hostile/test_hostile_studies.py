"""Hostile runs of a study: the store reads numbers or says that a run is damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import JSON_BOMBS, array_bombs

from fabricated import forge
from lapwing.errors import LapwingError
from lapwing_paper.run_store import Outcome, RunStore, StudyRun, checksum
from lapwing_paper.study_worlds import study_world

pytestmark = pytest.mark.slow

RUN = StudyRun("ALLO", study_world("GridMaze-7", None), 0, {"options": {"steps": 5}})


@pytest.fixture
def store(place: Path) -> RunStore:
    found = RunStore(place / "study")
    found.write(RUN, Outcome({"cosine": 0.5}, [{"step": 1.0}], np.eye(11, 3, dtype=np.float32)), 1.5)
    return found


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_a_hostile_manifest_is_refused(store: RunStore, bomb: str) -> None:
    (store.folder(RUN) / "run.json").write_bytes(JSON_BOMBS[bomb])
    with pytest.raises(LapwingError, match=r"run\.json"):
        store.read(RUN)


@pytest.mark.parametrize("bomb", sorted(array_bombs(Path("unused"))))
def test_a_hostile_array_is_refused(store: RunStore, trace: Path, bomb: str) -> None:
    content = array_bombs(trace)[bomb]
    (components,) = store.folder(RUN).glob("components-*.npy")
    components.write_bytes(content)
    with pytest.raises(LapwingError, match=r"components-.*\.npy"):
        store.read(RUN)
    # An attacker can make the checksums agree.
    name = f"components-{checksum(content)}.npy"
    components.rename(components.with_name(name))
    forge(store.folder(RUN) / "run.json", components=name)
    with pytest.raises(LapwingError):
        store.read(RUN)


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 99},
        {"status": "failed", "error": "<script>"},
        {"status": "nearly"},
        {"numbers": 3},
        {"seconds": "long"},
        {"versions": ...},
        {"run": {}},
        {"components": 3},
        {"components": "nowhere.npy"},
        {"components": "../../../precious.txt"},
        {"components": ["components"]},
        {"history": [{"step": "one"}]},
    ],
    ids=str,
)
def test_a_hostile_field_is_refused(store: RunStore, changes: dict[str, Any]) -> None:
    forge(store.folder(RUN) / "run.json", **changes)
    with pytest.raises(LapwingError):
        store.read(RUN)
    assert store.results([RUN]).finished == []
