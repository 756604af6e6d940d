"""Fixtures shared by all tests."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from lapwing.cli import main as cli

# They send signals, make pipes and links, or limit the size of files, which Windows does not have.
ONLY_ON_POSIX = (
    "hostile", "paper/test_ends_of_studies.py", "paper/test_executors.py", "paper/test_faults_of_workers.py",
    "storage/test_files.py", "storage/test_folders.py", "storage/test_locks.py", "test_network.py",
    "training/test_learning_resumed.py", "training/test_training_checkpoints.py",
)  # fmt: skip
collect_ignore = list(ONLY_ON_POSIX) if os.name == "nt" else []

AUTHORS_LAYOUTS = Path(__file__).resolve().parents[2] / "shared" / "layouts"

# The same examples on every run and every machine, and nothing written into the work tree.
settings.register_profile("lapwing", derandomize=True, deadline=None, database=None)
settings.load_profile("lapwing")


def pytest_configure(config: pytest.Config) -> None:
    """One thread of BLAS for each worker, and compiled programs shared by workers, modules and commands."""
    # Workers are as many as cores: more threads than that only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="lapwing-compiled-", ignore_cleanup_errors=True)
    config.add_cleanup(folder.cleanup)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"


@pytest.fixture(autouse=True)
def no_layouts_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own ``LAPWING_LAYOUTS`` must not change what the tests see."""
    monkeypatch.delenv("LAPWING_LAYOUTS", raising=False)


@pytest.fixture(autouse=True, scope="module")
def programs_are_forgotten() -> Iterator[None]:
    """Thousands of compiled programs would fill the memory of a process that never forgets one."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@pytest.fixture
def authors_layouts() -> Path:
    """The folder of the authors' layouts, which are not ours to ship: tests that need it skip where it is absent."""
    if not AUTHORS_LAYOUTS.is_dir():
        pytest.skip(f"the authors' layouts are not at {AUTHORS_LAYOUTS}")
    return AUTHORS_LAYOUTS


class Result:
    """Exit code and the two streams of one command."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command in this process."""

    def call(line: str) -> Result:
        try:
            code = cli.main(shlex.split(line))
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
