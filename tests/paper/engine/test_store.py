"""Runs as files: read back exactly as written, complete or not there, and damage is explained."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing_paper.engine import store as store_module
from lapwing_paper.engine.places import place
from lapwing_paper.engine.runs import Outcome, Run
from lapwing_paper.engine.store import DAMAGED, DONE, FAILED, MISSING, RunStore

RUN = Run("ALLO", place("GridMaze-7", None), 0, {"options": {"steps": 5}})
OTHER = Run("ALLO", place("GridMaze-7", None), 1, {"options": {"steps": 5}})


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
    arrays = {"components": rng.normal(size=(11, 3)).astype(np.float32), "other": np.zeros((0, 2), np.float32)}
    return Outcome(numbers, history, arrays)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "deep" / "runs")


@pytest.fixture
def written(store: RunStore) -> RunStore:
    store.write(RUN, outcome(), 1.25)
    return store


def change_manifest(store: RunStore, **changes: Any) -> None:
    """Change what a run says of itself, as it was written before there were checksums."""
    path = store.folder(RUN) / "run.json"
    content = json.loads(path.read_text())
    changes = {"checksums": None, "digest": None, **changes}
    for name, value in changes.items():
        if value is None:
            content.pop(name, None)
        else:
            content[name] = value
    path.write_text(json.dumps(content))


def test_everything_is_read_back_exactly_as_it_was_written(written: RunStore) -> None:
    found = written.read(RUN)
    assert found.run == RUN
    assert found.numbers == outcome().numbers
    assert found.outcome.history == outcome().history
    assert set(found.outcome.arrays) == {"components", "other"}
    for name, array in outcome().arrays.items():
        assert found.outcome.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.outcome.arrays[name], array)
    assert written.status(RUN) == DONE
    assert written.seconds(RUN) == 1.25


def test_a_run_without_history_or_arrays_is_read_back_too(store: RunStore) -> None:
    store.write(RUN, Outcome({"claims": []}), 0.5)
    assert store.read(RUN).outcome == Outcome({"claims": []})


@pytest.mark.parametrize("order", [1, -1])
def test_a_history_whose_reports_have_not_all_the_same_columns_is_read_back_too(store: RunStore, order: int) -> None:
    # A report has no cosine while the network has fewer independent components than were asked for.
    history = [{"step": 1.0, "cosine": 0.5}, {"step": 2.0}][::order]
    store.write(RUN, Outcome({}, history), 0.5)
    found = store.read(RUN).outcome.history
    assert [row["step"] for row in found] == [row["step"] for row in history]
    cosines = [row.get("cosine", np.nan) for row in found]
    np.testing.assert_array_equal(cosines, [row.get("cosine", np.nan) for row in history])


def test_the_file_says_what_was_done_with_what_and_when(written: RunStore) -> None:
    content = json.loads((written.folder(RUN) / "run.json").read_text())
    assert content["run"] == {**RUN.order(), "origin": "own layout, same geometry"}
    assert written.versions(RUN)["numpy"] == np.__version__
    assert {"python", "lapwing", "jax", "machine"} <= set(written.versions(RUN))
    assert len(written.date(RUN)) == len("2024-01-31T12:00:00+00:00")


def test_a_run_that_was_never_made_is_missing(store: RunStore) -> None:
    assert store.status(RUN) == MISSING
    assert store.results([RUN, OTHER]).finished == []
    with pytest.raises(LapwingError, match="does not exist"):
        store.read(RUN)


@pytest.fixture(params=["run.json", "components.npy", "metrics.csv"])
def interrupting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ctrl-C comes in the moment when one of the files is to take its name."""
    real = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if Path(target).name == request.param:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    return str(request.param)


def test_a_run_that_was_interrupted_while_it_was_written_is_missing(store: RunStore, interrupting: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        store.write(RUN, outcome(), 1.0)
    assert not (store.folder(RUN) / interrupting).exists()
    assert store.status(RUN) == MISSING
    assert store.results([RUN]).finished == []
    assert not list(store.root.rglob(".*"))


def test_a_run_made_again_and_interrupted_is_not_a_mixture_of_both(written: RunStore, interrupting: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        written.write(RUN, outcome(seed=1), 1.0)
    assert written.status(RUN) == MISSING
    assert not (written.folder(RUN) / "run.json").exists()


def test_what_a_killed_process_left_is_swept_away_with_the_next_result(store: RunStore) -> None:
    store.folder(RUN).mkdir(parents=True)
    for name in (".run.json.ab12cd34", ".metrics.csv.ab12cd34", ".components.npy.ab12cd34", ".mine", "notes.txt"):
        (store.folder(RUN) / name).touch()
    store.write(RUN, outcome(), 1.0)
    left = {path.name for path in store.folder(RUN).iterdir()}
    assert left == {"run.json", "metrics.csv", "components.npy", "other.npy", ".mine", "notes.txt"}


def test_writing_again_replaces_all_of_it(written: RunStore) -> None:
    written.write(RUN, outcome(seed=1), 2.0)
    found = written.read(RUN)
    assert found.outcome.history == outcome(seed=1).history
    np.testing.assert_array_equal(found.outcome.arrays["components"], outcome(seed=1).arrays["components"])
    assert written.seconds(RUN) == 2.0


def test_results_leave_out_what_is_missing_or_failed(written: RunStore) -> None:
    written.write_failure(OTHER, "LapwingError: no", 0.1)
    third = Run("ALLO", RUN.place, 2, RUN.settings)
    assert [one.run.seed for one in written.results([OTHER, RUN, third]).finished] == [0]


def test_a_failure_is_kept_with_its_error(store: RunStore) -> None:
    store.write_failure(RUN, "LapwingError: dim=12 is larger than “11”", 3.5)
    assert store.status(RUN) == FAILED
    assert store.look(RUN).error == "LapwingError: dim=12 is larger than “11”"
    assert store.seconds(RUN) == 3.5
    with pytest.raises(LapwingError, match=r"did not finish.*dim=12"):
        store.read(RUN)


def test_a_failure_takes_the_place_of_a_result_and_a_result_that_of_a_failure(written: RunStore) -> None:
    written.write_failure(RUN, "killed", 0.1)
    assert written.status(RUN) == FAILED
    written.write(RUN, outcome(), 1.0)
    assert written.status(RUN) == DONE
    assert written.read(RUN).numbers == outcome().numbers


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe\x00", b'{"format": "something else", "version": 1}'])
def test_a_damaged_manifest_is_explained(written: RunStore, content: bytes) -> None:
    (written.folder(RUN) / "run.json").write_bytes(content)
    with pytest.raises(LapwingError, match=r"run\.json"):
        written.read(RUN)
    assert written.look(RUN).status == DAMAGED
    assert written.look(RUN).error.startswith(f"{RUN.key}/run.json")


@pytest.mark.parametrize("version", [2, 0, "1", 1.5])
def test_another_version_of_the_format_is_refused(written: RunStore, version: Any) -> None:
    change_manifest(written, version=version)
    with pytest.raises(LapwingError, match="format version"):
        written.read(RUN)


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": None},
        {"arrays": None},
        {"history": None},
        {"numbers": 3},
        {"numbers": ["cosine"]},
        {"arrays": 3},
        {"arrays": [3]},
        {"arrays": ["components", "not there"]},
        {"numbers": {"cosine": float("nan")}},
        {"run": None},
        {"run": "GridMaze-7"},
        {"run": OTHER.order()},
        {"seconds": "long"},
        {"versions": None},
        {"status": "nearly"},
    ],
)
def test_a_manifest_with_damaged_contents_is_explained(written: RunStore, changes: dict[str, Any]) -> None:
    change_manifest(written, **changes)
    with pytest.raises(LapwingError, match=r"damaged|did not finish"):
        written.read(RUN)
    assert written.status(RUN) == DAMAGED
    assert written.results([RUN]).finished == []


def test_runs_that_were_written_before_there_were_checksums_are_read(written: RunStore) -> None:
    change_manifest(written)
    assert written.look(RUN).finished is not None
    assert written.read(RUN).numbers == outcome().numbers


@pytest.mark.parametrize("name", ["run.json", "components.npy", "other.npy", "metrics.csv"])
def test_a_byte_changed_in_any_file_is_noticed(written: RunStore, name: str) -> None:
    path = written.folder(RUN) / name
    content = path.read_bytes()
    for at in range(0, len(content), max(1, len(content) // 150)):
        changed = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
        path.write_bytes(changed)
        try:
            same = name == "run.json" and json.loads(changed) == json.loads(content)
        except ValueError:
            same = False
        assert written.status(RUN) == (DONE if same else DAMAGED), at
    path.write_bytes(content)
    assert written.status(RUN) == DONE


def test_a_number_changed_by_hand_is_noticed(written: RunStore) -> None:
    path = written.folder(RUN) / "run.json"
    path.write_text(path.read_text().replace('"steps": 5', '"steps": 6', 1))
    assert "changed after it was written" in written.look(RUN).error


def test_the_files_of_another_run_under_the_name_of_this_one_are_noticed(written: RunStore) -> None:
    written.folder(RUN).rename(written.folder(OTHER))
    assert written.look(OTHER).status == DAMAGED
    assert "tells of another run" in written.look(OTHER).error
    assert written.status(RUN) == MISSING
    written.write(OTHER, outcome(seed=1), 1.0)
    assert written.status(OTHER) == DONE


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_array_that_is_not_finite_is_neither_written_nor_read(written: RunStore, value: float) -> None:
    array = np.full((2, 2), value, np.float32)
    with pytest.raises(LapwingError, match="components that are not finite"):
        written.write(RUN, Outcome({}, [], {"components": array}), 1.0)
    assert written.read(RUN).numbers == outcome().numbers
    change_manifest(written)
    np.save(written.folder(RUN) / "components.npy", array)
    assert "components that are not finite" in written.look(RUN).error


@pytest.mark.parametrize("name", ["run.json", "components.npy", "metrics.csv"])
def test_a_result_that_does_not_fit_on_the_disk_leaves_the_old_one_whole(
    written: RunStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    real = store_module._write_through

    def full(path: Path, content: bytes) -> None:
        if path.name.startswith(f".{name}."):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(store_module, "_write_through", full)
    for run in (RUN, OTHER):
        with pytest.raises(LapwingError, match=rf"cannot write .*{name}: No space left on device"):
            written.write(run, outcome(seed=1), 2.0)
    assert written.seconds(RUN) == 1.25
    np.testing.assert_array_equal(written.read(RUN).outcome.arrays["components"], outcome().arrays["components"])
    assert not written.folder(OTHER).exists()
    assert not list(written.root.rglob(".*"))


@pytest.mark.parametrize("length", [0, 5, 100, -4])
def test_an_array_cut_short_is_explained(written: RunStore, length: int) -> None:
    path = written.folder(RUN) / "components.npy"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(LapwingError, match=r"components\.npy"):
        written.read(RUN)


def test_pickled_objects_are_refused(written: RunStore) -> None:
    np.save(written.folder(RUN) / "components.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(LapwingError, match=r"components\.npy"):
        written.read(RUN)


def test_missing_metrics_are_explained(written: RunStore) -> None:
    (written.folder(RUN) / "metrics.csv").unlink()
    with pytest.raises(LapwingError, match=r"metrics\.csv.*made again"):
        written.read(RUN)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"step,cosine,loss\n",
        b"step,cosine,loss\n0.0,0.5\n",
        b"step,cosine,loss\n0.0,0.5,1.0,2.0\n",
        b"step,cosine,loss\n0.0,high,1.0\n",
        b"\xff\xfe\x00\x81",
        b'step\n"' + b"1" * 200_000 + b'"\n',
    ],
    ids=["empty", "no rows", "few cells", "many cells", "words", "binary", "huge cell"],
)
def test_damaged_metrics_are_explained(written: RunStore, text: bytes) -> None:
    (written.folder(RUN) / "metrics.csv").write_bytes(text)
    with pytest.raises(LapwingError):
        written.read(RUN)


def test_a_manifest_cannot_name_an_array_outside_its_folder(written: RunStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret.npy"
    np.save(secret, np.arange(3.0))
    steps_up = "../" * len(written.folder(RUN).relative_to(tmp_path).parts)
    assert (written.folder(RUN) / f"{steps_up}secret.npy").resolve() == secret.resolve()
    for name in (f"{steps_up}secret", str(tmp_path / "secret"), "../secret", ".."):
        change_manifest(written, arrays=[name])
        with pytest.raises(LapwingError):
            written.read(RUN)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_does_not_know_are_refused_in_words_and_leave_no_finished_run(
    store: RunStore, number: float
) -> None:
    with pytest.raises(LapwingError):
        store.write(RUN, Outcome({"cosine": number}), 1.0)
    assert store.status(RUN) == MISSING
