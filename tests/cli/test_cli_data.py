"""Recorded experience on the command line: parts of a data set, OGBench files, functions certified on it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shards(steps: int = 3_000) -> list[str]:
    for seed in range(3):
        lw.collect("GridMaze-7", steps, seed=seed).save(f"part-{seed}")
    return [f"part-{seed}" for seed in range(3)]


def test_parts_of_a_data_set_are_solved_together(run: Any) -> None:
    parts = shards()
    result = run(f"solve {' '.join(parts)} --dim 3 --out run --json")
    assert result.code == 0, result.err
    whole = lw.Trajectories.concatenate([lw.Trajectories.load(part) for part in parts])
    wanted = lw.solve(whole, 3)
    model = lw.load("run")
    np.testing.assert_array_equal(model.mu[:3], wanted.mu[:3])
    assert model.metadata["transitions"] == 9_000
    # Nobody has looked all parts over at once, so there is no audit; episodes to show come from the first.
    assert not Path("run/audit.json").exists()
    assert Path("run/episodes/trajectories.json").is_file()


@pytest.mark.slow
def test_a_run_of_several_parts_has_a_report(run: Any) -> None:
    assert run(f"solve {' '.join(shards())} --dim 3 --out run").code == 0
    assert run("report run").code == 0


def test_one_folder_is_solved_as_before(run: Any) -> None:
    part = shards(20_000)[0]
    assert run(f"solve {part} --dim 2 --out run").code == 0
    assert json.loads(Path("run/audit.json").read_text())["transitions"] == 20_000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("solve part-0 part-9 --out run", "part-9"),
        ("solve part-0 part-0 --out run", "named twice"),
        ("solve part-0 GridMaze-7 --out run", "GridMaze-7"),
        ("solve part-0 part-1 --on moon --out run", "local, ray or ray://"),
        ("solve part-0 other --out run", "other has observations of shape"),
    ],
)
def test_parts_that_do_not_fit_are_named_and_nothing_is_written(run: Any, line: str, message: str) -> None:
    shards(100)
    lw.collect("GridMaze-7", 100, observation="one_hot").save("other")
    result = run(line)
    assert result.code != 0
    assert message in result.err
    assert not Path("run").exists()


def ogbench_file() -> Path:
    """A walk in a maze, written as OGBench writes its files."""
    data = lw.collect("GridMaze-7", 20_000, seed=0, episode_length=100)
    np.savez_compressed(
        "maze-test-v0.npz",
        observations=data.states().astype(np.float32),
        actions=np.zeros((data.num_states, 2), dtype=np.float32),
        terminals=data.last_states(),
    )
    return Path("maze-test-v0.npz")


def test_ogbench_files_are_audited_and_solved(run: Any) -> None:
    path = ogbench_file()
    audit = run(f"audit {path} --json")
    assert audit.code == 0, audit.err
    assert audit.json["transitions"] == 20_000
    assert run(f"solve {path} --dim 3 --out run").code == 0
    wanted = lw.solve(lw.collect("GridMaze-7", 20_000, seed=0, episode_length=100), 3)
    np.testing.assert_allclose(lw.load("run").eigenvalues, wanted.eigenvalues, atol=1e-12)


@pytest.mark.slow
def test_ogbench_files_are_learned_from(run: Any) -> None:
    result = run(f"learn {ogbench_file()} --dim 3 --steps 40 --out run --no-report")
    assert result.code in (0, 3), result.err
    assert lw.load("run").metadata["world"] == {"kind": "ogbench", "name": "maze-test-v0"}


def test_a_file_that_is_not_of_ogbench_is_named(run: Any) -> None:
    np.savez("other.npz", a=np.zeros(3))
    result = run("audit other.npz")
    assert result.code != 0
    assert "other.npz has no terminals" in result.err


FUNCTIONS = """
import lapwing as lw

truth = lw.solve("FourRooms", 3)


def rotated(observations):
    values = truth.transform(observations)
    return values[:, 1:] @ [[0.8, 0.6], [-0.6, 0.8]]
"""


def test_functions_are_certified_by_name(run: Any) -> None:
    Path("my_functions.py").write_text(FUNCTIONS)
    good = run("certify my_functions:truth FourRooms --json")
    assert good.code == 0, good.err
    assert [row["verdict"] for row in good.json["functions"]] == ["trusted"] * 3
    mixed = run("certify my_functions:rotated FourRooms")
    assert mixed.code == 3
    assert mixed.out.count("mixed") == 2
    assert "after Rayleigh-Ritz" in mixed.out


def test_a_saved_representation_is_certified_on_other_data(run: Any) -> None:
    lw.solve("rooms:2x3x4:1", 2).save("model")
    lw.collect("rooms:2x3x4:1", 300_000, seed=5).save("held_out")
    result = run("certify model held_out --json")
    assert result.code == 0, result.out
    assert result.json["all_trusted"] is True
    assert all(row["error_bar"] > 0 for row in result.json["functions"][1:])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("certify nothing FourRooms", "MODULE:NAME"),
        ("certify missing_module:f FourRooms", "cannot be imported"),
        ("certify math:pi FourRooms", "functions are a function"),
        ("certify math:tau nowhere", "nowhere"),
        ("certify math:sin FourRooms --discounts 2", "discounts"),
    ],
)
def test_functions_that_cannot_be_certified_are_an_error(run: Any, line: str, message: str) -> None:
    result = run(line)
    assert result.code not in (0, 3)
    assert message in result.err
