"""Runs as files: read back exactly as written, complete or not there, and damage is explained."""

import errno
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import CannotWriteError, DataError, LapwingError
from lapwing_paper import run_store as store_module
from lapwing_paper.run_store import (
    DAMAGED,
    DONE,
    FAILED,
    MISSING,
    Outcome,
    RunStore,
    StudyRun,
    record_checksum,
    without_layout,
)
from lapwing_paper.study_worlds import study_world

RUN = StudyRun("ALLO", study_world("GridMaze-7", None), 0, {"options": {"steps": 5}})
OTHER = StudyRun("ALLO", study_world("GridMaze-7", None), 1, {"options": {"steps": 5}})
FILES = ["run.json", "components-"]


def outcome(seed: int = 0) -> Outcome:
    rng = np.random.default_rng(seed)
    numbers = {
        "cosine": 0.1 + 0.2,
        "cosines": rng.random(4).tolist(),
        "dual": [None, 5e-324, -1e300],
        "steps": 5,
        "config": {"refine": "none", "hidden": [256, 256]},
    }
    history = [{"step": float(i), "cosine": float(rng.normal()), "loss": float(np.nextafter(i, 9))} for i in range(3)]
    return Outcome(numbers, history, rng.normal(size=(11, 3)).astype(np.float32))


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "deep" / "runs")


@pytest.fixture
def written(store: RunStore) -> RunStore:
    store.write(RUN, outcome(), 1.25)
    return store


def components_file(store: RunStore) -> Path:
    (found,) = store.folder(RUN).glob("components-*.npy")
    return found


def same(found: Outcome, wanted: Outcome) -> bool:
    np.testing.assert_array_equal(found.components, wanted.components)
    return (found.numbers, found.history) == (wanted.numbers, wanted.history)


def test_everything_is_read_back_exactly_as_it_was_written(written: RunStore) -> None:
    found = written.read(RUN)
    assert found.run == RUN
    assert same(found.outcome, outcome())
    assert found.outcome.components is not None
    assert found.outcome.components.dtype == np.float32
    assert found.record is not None
    assert (found.record.status, found.record.seconds) == (DONE, 1.25)


def test_a_run_without_history_or_components_is_read_back_too(store: RunStore) -> None:
    store.write(RUN, Outcome({"claims": []}), 0.5)
    assert store.read(RUN).outcome == Outcome({"claims": []})


@pytest.mark.parametrize("order", [1, -1])
def test_a_history_whose_reports_lack_columns_is_read_back_too(store: RunStore, order: int) -> None:
    # A report has no cosine while the network has fewer independent components than were asked for.
    history = [{"step": 1.0, "cosine": 0.5}, {"step": 2.0}, {"step": 3.0, "cosine": float("nan")}][::order]
    store.write(RUN, Outcome({}, history), 0.5)
    found = store.read(RUN).outcome.history
    assert [row["step"] for row in found] == [row["step"] for row in history]
    assert sorted(row.get("cosine", -1.0) for row in found) == [-1.0, -1.0, 0.5]


def test_the_record_states_what_was_done_with_what_and_when(written: RunStore) -> None:
    content = json.loads((written.folder(RUN) / "run.json").read_text())
    assert content["run"] == {**without_layout(RUN.specification()), "origin": "own layout, same geometry"}
    assert content["versions"]["numpy"] == np.__version__
    assert {"python", "lapwing", "jax", "machine"} <= set(content["versions"])
    assert len(content["date"]) == len("2024-01-31T12:00:00+00:00")


def test_a_kept_run_carries_the_digest_of_its_layout_and_not_the_layout(written: RunStore) -> None:
    path = written.folder(RUN) / "run.json"
    kept = json.loads(path.read_text())["run"]["world"]["layout"]
    text = RUN.specification()["world"]["layout"]
    assert kept == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert not any(line in path.read_text() for line in text.splitlines())


def test_a_run_that_was_kept_with_its_layout_is_read_and_another_layout_is_not_this_run(written: RunStore) -> None:
    path = written.folder(RUN) / "run.json"
    record = json.loads(path.read_text())
    for layout, status in ((RUN.specification()["world"]["layout"], DONE), ("XXX", DAMAGED)):
        record["run"]["world"]["layout"] = layout
        record.pop("checksum", None)
        path.write_text(json.dumps({**record, "checksum": record_checksum(record)}))
        assert written.look(RUN).status == status


def test_a_run_that_was_never_made_is_missing(store: RunStore) -> None:
    assert store.look(RUN).status == MISSING
    assert store.results([RUN, OTHER]).finished == []
    with pytest.raises(LapwingError, match="missing"):
        store.read(RUN)


@pytest.fixture(params=FILES)
def interrupting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ctrl-C arrives when one of the files is about to get its name."""
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if Path(target).name.startswith(request.param):
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return str(request.param)


def test_a_run_that_was_interrupted_while_it_was_written_is_missing(store: RunStore, interrupting: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        store.write(RUN, outcome(), 1.0)
    assert store.look(RUN).status == MISSING
    assert not list(store.root.rglob("*"))


def test_a_repeated_run_that_was_interrupted_leaves_the_old_one(written: RunStore, interrupting: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        written.write(RUN, outcome(seed=1), 1.0)
    assert same(written.read(RUN).outcome, outcome())
    assert len(list(written.folder(RUN).iterdir())) == 2


def test_what_a_killed_process_left_is_removed_with_the_next_result(store: RunStore) -> None:
    store.folder(RUN).mkdir(parents=True)
    for name in (".run.json.ab12cd34", ".components-12.npy.ab12cd34", "components-12.npy", ".mine", "notes.txt"):
        (store.folder(RUN) / name).touch()
    store.write(RUN, outcome(), 1.0)
    left = {path.name for path in store.folder(RUN).iterdir()}
    assert left == {"run.json", components_file(store).name, ".mine", "notes.txt"}


def test_writing_again_replaces_all_of_it(written: RunStore) -> None:
    written.write(RUN, outcome(seed=1), 2.0)
    assert same(written.read(RUN).outcome, outcome(seed=1))
    assert components_file(written).is_file()


def test_results_leave_out_what_is_missing_or_failed(written: RunStore) -> None:
    written.write_failure(OTHER, "LapwingError: no", 0.1)
    third = StudyRun("ALLO", RUN.world, 2, RUN.settings)
    assert [one.run.seed for one in written.results([OTHER, RUN, third]).finished] == [0]


def test_failures_and_results_replace_one_another(written: RunStore) -> None:
    written.write_failure(RUN, "LapwingError: dim=12 is larger than “11”", 3.5)
    assert written.look(RUN)[:2] == (FAILED, "LapwingError: dim=12 is larger than “11”")
    with pytest.raises(LapwingError, match=r"failed.*dim=12"):
        written.read(RUN)
    written.write(RUN, outcome(), 1.0)
    assert same(written.read(RUN).outcome, outcome())


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"format": "other", "version": 1}', b'{"version": 99}']
)
def test_a_damaged_record_is_explained(written: RunStore, content: bytes) -> None:
    (written.folder(RUN) / "run.json").write_bytes(content)
    assert written.look(RUN).status == DAMAGED
    assert written.look(RUN).error.startswith(f"{RUN.key}/run.json")


@pytest.mark.parametrize("name", FILES)
def test_a_byte_changed_in_any_file_is_noticed(written: RunStore, name: str) -> None:
    (path,) = written.folder(RUN).glob(f"{name}*")
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 150)):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        path.write_bytes(changed)
        try:
            equal = name == "run.json" and json.loads(changed) == json.loads(content)
        except ValueError:
            equal = False
        assert written.look(RUN).status == (DONE if equal else DAMAGED), at
    path.write_bytes(content)
    assert written.look(RUN).status == DONE


def test_the_files_of_another_run_under_the_name_of_this_one_are_noticed(written: RunStore) -> None:
    written.folder(RUN).rename(written.folder(OTHER))
    assert written.look(OTHER).status == DAMAGED
    assert written.look(RUN).status == MISSING
    written.write(OTHER, outcome(seed=1), 1.0)
    assert written.look(OTHER).status == DONE


@pytest.mark.parametrize(
    "wrong",
    [
        Outcome({"cosine": float("nan")}),
        Outcome({"cosine": float("inf")}),
        Outcome({}, [], np.full((2, 2), np.nan, np.float32)),
    ],
)
def test_numbers_that_are_not_finite_are_not_written(written: RunStore, wrong: Outcome) -> None:
    for run in (RUN, OTHER):
        with pytest.raises(DataError):
            written.write(run, wrong, 1.0)
    assert same(written.read(RUN).outcome, outcome())
    assert written.look(OTHER).status == MISSING


@pytest.mark.parametrize("name", FILES)
def test_a_result_that_does_not_fit_on_the_disk_leaves_the_old_one_whole(
    written: RunStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def failing(real: Any) -> Any:
        def write(path: Path, content: Any) -> Any:
            if path.name.startswith(name):
                raise CannotWriteError(f"cannot write {path}: {errno.ENOSPC}")
            return real(path, content)

        return write

    for writer in ("write_json", "write_bytes"):
        monkeypatch.setattr(store_module, writer, failing(getattr(store_module, writer)))
    for run in (RUN, OTHER):
        with pytest.raises(CannotWriteError):
            written.write(run, outcome(seed=1), 2.0)
    assert same(written.read(RUN).outcome, outcome())
    assert not written.folder(OTHER).exists()


@pytest.mark.parametrize("length", [0, 5, 100, -4, None])
def test_components_cut_short_or_lost_are_explained(written: RunStore, length: int | None) -> None:
    path = components_file(written)
    content = path.read_bytes()
    path.unlink()
    if length is not None:
        path.write_bytes(content[:length])
    assert written.look(RUN).status == DAMAGED
    assert path.name in written.look(RUN).error
