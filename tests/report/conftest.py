"""Runs to report on, made once: learned on a grid, exact on a grid and a box, and one that belongs to no world."""

from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import lapwing as lw
from lapwing.report import write_report
from lapwing.report.run_folder import write_run

COMMAND = ["lapwing", "learn", "GridRoomSym-4", "--dim", "6", "--steps", "60"]


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def learned(runs: Path) -> Path:
    """Learned from data, with everything a run directory may hold."""
    return _learn(runs / "learned", seed=0)


@pytest.fixture(scope="session")
def learned_again(runs: Path) -> Path:
    """The same with another seed."""
    return _learn(runs / "learned again", seed=1)


@pytest.fixture(scope="session")
def solved(runs: Path) -> Path:
    """The exact answer on the same world; written as before there were records."""
    write_run(lw.solve("GridRoomSym-4", 6), runs / "solved")
    return runs / "solved"


@pytest.fixture(scope="session")
def box(runs: Path) -> Path:
    """The closed form of a box."""
    write_run(lw.solve("Box-2", 5, definition="successor(0.9)"), runs / "box")
    return runs / "box"


@pytest.fixture(scope="session")
def foreign(runs: Path) -> Path:
    """Learned from a Gymnasium environment: no picture and no truth."""
    env = gymnasium.make("FrozenLake-v1")
    data = lw.collect(env, steps=2000, seed=0)
    env.close()
    model = lw.learn(data, dim=3, steps=40, log_every=20)
    write_run(model, runs / "foreign", data=data, command=["lapwing", "learn", "gym:FrozenLake-v1"])
    return runs / "foreign"


@pytest.fixture(scope="session")
def matrix(runs: Path) -> Path:
    """Solved from a plain matrix: a table of states without a picture."""
    chain = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
    chain[0, 1] = chain[1, 0] = 0.25
    write_run(lw.solve(chain / chain.sum(axis=1, keepdims=True), 3), runs / "matrix")
    return runs / "matrix"


@pytest.fixture(scope="session")
def page_of(runs: Path) -> Callable[..., Path]:
    """The page of some runs, written once."""

    def write(*folders: Path) -> Path:
        out = runs / f"{'-'.join(folder.name for folder in folders)}.html"
        return out if out.exists() else write_report(folders, out)

    return write


def _learn(out: Path, seed: int) -> Path:
    data = lw.collect("GridRoomSym-4", steps=20_000, seed=seed, episode_length=(20, 60))
    truth = lw.solve("GridRoomSym-4", 6)
    model = lw.learn(data, dim=6, steps=60, log_every=20, seed=seed, truth=truth)
    baseline = lw.solve(data, 6)
    scores = {"learned": lw.score(model, truth), "baseline": lw.score(baseline, truth)}
    write_run(model, out, data=data, truth=truth, baseline=baseline, scores=scores, command=COMMAND)
    return out
