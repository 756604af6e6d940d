"""A disk that fills: what fits is kept, what does not is named, and resuming completes it once there is room."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fabricated import Fake, fabricate
from lapwing_paper import reproduction
from lapwing_paper import run_store as store_module
from lapwing_paper.reproduction import PageNotWrittenError, reproduce
from lapwing_paper.run_store import DONE, MISSING, Outcome, RunStore, StudyRun
from lapwing_paper.scheduling import carry_out

pytestmark = pytest.mark.slow

RUNS = [StudyRun("claims", None, seed, {"size": 6, "dim": 3}, "theory") for seed in range(6)]
FULL = "No space left on device"


class Heavy(Fake):
    """Results of 50 kB each."""

    def outcome(self, run: StudyRun) -> Outcome:
        found = fabricate(run)
        return replace(found, numbers={**found.numbers, "padding": "x" * 50_000})


def mount(folder: Path, *options: str) -> bool:
    words = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 kB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or not mount(folder, "size=256k"):
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> Heavy:
    executor = Heavy()
    monkeypatch.setattr(reproduction, "make_executor", executor)
    return executor


def fill(path: Path) -> None:
    """Write until nothing more fits."""
    with suppress(OSError), path.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"x" * 4096)


def temporaries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.name != ".lock"]


def test_a_study_on_a_small_disk_keeps_what_fits_names_the_rest_and_is_completed_later(
    small_disk: Path, heavy: Heavy
) -> None:
    out = small_disk / "out"
    done = reproduce("theory", seeds=6, out=out)
    kept = len(done.results.finished)
    assert 2 <= kept <= 5
    assert len(heavy.made) == 6
    assert [one.run.seed for one in done.failures] == list(range(kept, 6))
    for one in done.failures:
        assert one.error.startswith(f"not written: cannot write {one.run.key}/run.json: {FULL}")
        assert str(small_disk) not in one.error
    assert not temporaries(out)
    assert f"only {kept} of 6 runs finished" in (out / "theory" / "theory.md").read_text()
    assert mount(small_disk, "remount", "size=2m")
    done = reproduce("theory", out=out, resume=True)
    assert done.failures == []
    assert [run.seed for run in heavy.made[6:]] == list(range(kept, 6))
    assert len(done.results.finished) == 6


def test_a_disk_without_room_for_the_page_is_a_clear_error_and_the_runs_stay(
    small_disk: Path, heavy: Heavy, run: Any
) -> None:
    out = small_disk / "out"
    reproduce("theory", seeds=1, out=out, pages=small_disk.parent / "pages")
    filler = small_disk / "filler"
    fill(filler)
    with pytest.raises(PageNotWrittenError, match=FULL) as caught:
        reproduce("theory", out=out, resume=True)
    assert len(caught.value.done.results.finished) == 1
    result = run(f"reproduce theory --resume --out {out}")
    assert result.code == 1
    assert "the page was not written: cannot write" in result.err
    assert f"`lapwing reproduce theory --resume --out {out}` writes it" in result.err.replace("\n", " ")
    assert not temporaries(out)
    filler.unlink()
    assert run(f"reproduce theory --resume --out {out}").code == 0
    assert (out / "theory" / "theory.md").is_file()
    assert len(heavy.made) == 1


def test_a_study_that_cannot_even_begin_on_a_full_disk_says_so(small_disk: Path, heavy: Heavy, run: Any) -> None:
    fill(small_disk / "filler")
    result = run(f"reproduce theory --seeds 2 --out {small_disk / 'out'}")
    assert result.code == 1
    assert FULL in result.err
    assert result.err.count("\n") == 1
    assert heavy.made == []


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A writer that has no room for runs from the third on, nor for records of failures."""
    real, written = store_module.write_json, [0]

    def full(path: Path, content: Any) -> None:
        written[0] += 1
        if written[0] > 2:
            raise OSError(errno.ENOSPC, FULL)
        real(path, content)

    monkeypatch.setattr(store_module, "write_json", full)
    return written


def test_failures_that_no_disk_has_room_for_are_named_from_memory(tmp_path: Path, no_room: list[int]) -> None:
    store, executor = RunStore(tmp_path), Fake()
    broken = replace(RUNS[4], method="broken")
    executor.errors = {"broken": ValueError("no graph")}
    found = carry_out([*RUNS[:4], broken, RUNS[5]], store, executor)
    assert [(one.run.seed, one.error) for one in found] == [
        (2, f"not written: [Errno {errno.ENOSPC}] {FULL}"),
        (3, f"not written: [Errno {errno.ENOSPC}] {FULL}"),
        (4, "ValueError: no graph"),
        (5, f"not written: [Errno {errno.ENOSPC}] {FULL}"),
    ]
    assert [store.look(run).status for run in RUNS] == [DONE, DONE, MISSING, MISSING, MISSING, MISSING]


def test_a_run_made_again_that_does_not_fit_leaves_the_one_before(tmp_path: Path, no_room: list[int]) -> None:
    store = RunStore(tmp_path)
    assert carry_out(RUNS[:2], store, Fake()) == []
    before = {path: path.read_bytes() for path in tmp_path.rglob("run.json")}
    assert len(carry_out(RUNS[:2], store, Fake(), overwrite=True)) == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("run.json")} == before
    assert len(store.results(RUNS[:2]).finished) == 2
