"""Flipped, cut and inserted bytes in every file that is read again, and any JSON where a manifest should be."""

import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import json_documents, result_or_error
from test_fuzz_trajectories import same_content

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.errors import LapwingError
from lapwing.report.stored_run import read_run
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.reading import read_array
from lapwing_paper.run_store import Outcome, RunStore, StudyRun

pytestmark = pytest.mark.slow

MUTANTS = 300
STUDY_RUN = StudyRun("fuzz", None, seed=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything that is kept in files, small."""
    place = tmp_path_factory.mktemp("saved")
    data = lw.collect("GridMaze-7", 40, episode_length=8)
    data.save(place / "table")
    lw.collect("Box-1", 40, episode_length=8).save(place / "rows")
    lw.solve("GridMaze-7", 3).save(place / "solved")
    lw.solve("Box-2", 3).save(place / "box")
    learned = lw.learn(data, dim=2, oversampling=1, steps=1, hidden=(4,), log_every=1, encoder="mlp")
    learned.save(place / "learned")
    numbers = {"cosine": 1.0}
    RunStore(place / "runs").write(STUDY_RUN, Outcome(numbers, [{"step": 1.0}], np.eye(2, dtype=np.float32)), 0.5)
    return place


def mutated(content: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, cut out, put in or doubled, or the end cut off."""
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        place, kind = rng.randrange(len(changed) + 1), rng.randrange(5)
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del changed[place : place + rng.randrange(1, 9)]
        elif kind == 2:
            changed[place:place] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            changed[place:place] = changed[place : place + rng.randrange(1, 40)]
        else:
            del changed[place:]
    return bytes(changed)


def same_model(one: LaplacianRepresentation, other: LaplacianRepresentation) -> bool:
    """Whether two representations hold the same numbers, bit for bit, and say the same of themselves."""
    arrays = [{**model.encoder.arrays(), "mu": model.mu} for model in (one, other)]
    keys = [json.dumps([m.dim, str(m.definition), m.exact, m.metadata, m.encoder.config()]) for m in (one, other)]
    return keys[0] == keys[1] and all(arrays[0][name].tobytes() == arrays[1][name].tobytes() for name in arrays[1])


def check_mutants(
    folder: Path, name: str, copy: Path, load: Callable[[Path], Any], same: Callable[[Any, Any], bool]
) -> None:
    """Every mutant of one file is refused, or is read as exactly what was saved; something must be refused."""
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    original, content = load(folder), (folder / name).read_bytes()
    rng, refused = random.Random(name), 0
    for _ in range(MUTANTS):
        (copy / name).write_bytes(mutated(content, rng))
        found = result_or_error(lambda: load(copy))
        refused += isinstance(found, LapwingError)
        assert isinstance(found, LapwingError) or same(found, original) or name.endswith(".json")
    assert refused > MUTANTS / 2


@pytest.mark.parametrize("name", ["observations.npy", "ids.npy", "offsets.npy", "terminated.npy", "truncated.npy"])
def test_a_damaged_array_of_a_data_set_is_refused_or_the_same(saved: Path, tmp_path: Path, name: str) -> None:
    for kind in ("table", "rows"):
        if (saved / kind / name).exists():
            check_mutants(saved / kind, name, tmp_path / kind, Trajectories.load, same_content)


@pytest.mark.parametrize("name", ["observations.npy", "offsets.npy"])
def test_a_damaged_array_that_is_mapped_is_refused_or_read(saved: Path, tmp_path: Path, name: str) -> None:
    check_mutants(
        saved / "table", name, tmp_path / "copy", lambda path: Trajectories.load(path, mmap=True), lambda a, b: True
    )


@pytest.mark.parametrize("kind", ["solved", "box", "learned"])
@pytest.mark.parametrize("name", ["model.safetensors", "model.json"])
def test_a_damaged_representation_is_refused_or_the_same(saved: Path, tmp_path: Path, kind: str, name: str) -> None:
    check_mutants(saved / kind, name, tmp_path / "copy", lw.load, same_model)


def test_a_damaged_manifest_of_a_data_set_is_refused_or_read(saved: Path, tmp_path: Path) -> None:
    check_mutants(saved / "table", "trajectories.json", tmp_path / "copy", Trajectories.load, same_content)


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.binary(max_size=120).map(lambda end: b"\x93NUMPY\x01\x00v\x00" + end))
def test_any_bytes_are_refused_or_are_an_array(content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        Path(file.name).write_bytes(content)
        for mmap in (False, True):
            found = result_or_error(lambda mmap=mmap: read_array(Path(file.name), mmap=mmap))
            assert isinstance(found, LapwingError | np.ndarray)


def with_changes(content: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A sound manifest with some values replaced by anything, at the top or one level below, or left out."""
    inner = [name for name, value in content.items() if isinstance(value, dict)]
    swaps = st.dictionaries(st.sampled_from(sorted(content)), json_documents, max_size=2)
    deep = st.tuples(st.sampled_from(inner), st.text(max_size=6) | st.sampled_from(["kind", "config"]), json_documents)

    def changed(swap: dict[str, Any], below: tuple[str, str, Any] | None, dropped: str | None) -> dict[str, Any]:
        new = json.loads(json.dumps({**content, **swap}))
        if below is not None and isinstance(new.get(below[0]), dict):
            keys = [*new[below[0]], below[1]]
            new[below[0]][keys[len(below[1]) % len(keys)]] = below[2]
        new.pop(dropped, None)
        return new

    return st.builds(changed, swaps, st.none() | deep, st.none() | st.sampled_from(sorted(content)))


MANIFESTS = {
    "table/trajectories.json": Trajectories.load,
    "rows/trajectories.json": Trajectories.load,
    "solved/model.json": lw.load,
    "learned/model.json": lw.load,
    f"runs/{STUDY_RUN.key}/run.json": lambda folder: RunStore(folder.parent).read(STUDY_RUN),
}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda name: name.replace("/", " "))
def test_any_json_as_a_manifest_is_refused_or_read(saved: Path, tmp_path_factory: Any, manifest: str) -> None:
    home = tmp_path_factory.mktemp("manifest")
    shutil.copytree((saved / manifest).parent, home / Path(manifest).parent)
    path, load = home / manifest, MANIFESTS[manifest]
    sound = json.loads(path.read_text())

    @settings(max_examples=150)
    @given(with_changes(sound) | json_documents)
    def check(content: Any) -> None:
        path.write_text(json.dumps(content))
        result_or_error(lambda: load(path.parent))

    check()


RECORDS = ["audit.json", "scores.json", "provenance.json", "config.json"]


@settings(max_examples=150)
@given(name=st.sampled_from(RECORDS), content=json_documents, table=st.text(max_size=40))
def test_any_records_beside_a_model_are_refused_or_read(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, name: str, content: Any, table: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "records"
    shutil.copytree(saved / "solved", folder, dirs_exist_ok=True)
    (folder / name).write_text(json.dumps(content))
    (folder / "metrics.csv").write_text(table, encoding="utf-8")
    result_or_error(lambda: read_run(folder))
