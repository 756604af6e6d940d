"""What a run directory holds, so that a page can be made from it alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.plots.time_series import MOST_EPISODES, MOST_STATES
from lapwing.report.run_folder import MAX_OBSERVATIONS, RUN_FILES, audit_record, write_run
from lapwing.report.stored_run import read_run

pytestmark = pytest.mark.slow


def record(folder: Path, name: str) -> dict[str, Any]:
    found = json.loads((folder / name).read_text())
    assert isinstance(found, dict)
    return found


def test_the_audit_counts_visits_and_episode_lengths(learned: Path) -> None:
    found = record(learned, "audit.json")
    assert found["visits_of"] == "states"
    assert len(found["visits"]) == lw.make_world("GridRoomSym-4").num_states  # type: ignore[union-attr]
    assert sum(found["visits"]) == found["transitions"] + found["episodes"]
    lengths = found["episode_lengths"]
    assert sum(lengths["counts"]) == found["episodes"]
    assert np.dot(lengths["lengths"], lengths["counts"]) == found["transitions"]


def test_scores_hold_both_and_the_counted_eigenvalues(learned: Path) -> None:
    found = record(learned, "scores.json")
    assert set(found) == {"learned", "baseline", "baseline_eigenvalues"}
    assert found["learned"]["subspace_cosine"] > 0.4
    truth = lw.solve("GridRoomSym-4", 6)
    assert found["baseline_eigenvalues"]["definition"] == "one_step"
    np.testing.assert_allclose(found["baseline_eigenvalues"]["values"][1:], truth.eigenvalues[1:], rtol=0.3)


def test_how_it_was_made_is_kept_without_places_of_this_machine(learned: Path) -> None:
    found = record(learned, "provenance.json")
    assert found["command"][:3] == ["lapwing", "learn", "GridRoomSym-4"]
    assert {"python", "lapwing", "jax", "numpy", "scipy", "equinox", "optax"} == set(found["versions"])
    assert (found["seed"], found["preset"], found["steps"]) == (0, "default", 60)
    assert found["date"].endswith("+00:00")
    for name in ("provenance.json", "scores.json", "audit.json", "config.json", "model.json"):
        assert str(learned.parent) not in (learned / name).read_text()


def test_the_short_call_still_writes_a_run(solved: Path) -> None:
    assert (solved / "spectrum.csv").is_file()
    assert record(solved, "provenance.json")["command"] is None
    assert not {"audit.json", "scores.json", "config.json"} & {path.name for path in solved.iterdir()}


def test_files_of_an_earlier_run_are_removed(tmp_path: Path) -> None:
    data = lw.collect("GridMaze-7", steps=500)
    truth = lw.solve("GridMaze-7", 2)
    counted = lw.solve(data, 2)
    write_run(counted, tmp_path, data=data, scores={"learned": lw.score(counted, truth)})
    (tmp_path / "report.html").write_text("of an earlier model")
    written = write_run(truth, tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {path.name for path in written}
    assert left <= set(RUN_FILES) | {"model.json", "model.safetensors"}


def test_visits_of_a_box_are_counted_over_a_raster() -> None:
    data = lw.collect("Box-2", steps=1000, seed=0)
    found = audit_record(data)
    assert (found["visits_of"], found["visits_shape"]) == ("cells", [40, 40])
    assert sum(found["visits"]) == data.num_states
    line = audit_record(lw.collect("Box-1", steps=200, seed=0))
    assert (line["visits_shape"], len(line["visits"])) == ([1, 40], 40)


def test_states_never_visited_count_none() -> None:
    data = lw.collect("GridRoom-1", steps=20, episode_length=20, seed=0)
    found = audit_record(data)
    assert len(found["visits"]) == 225
    assert sum(found["visits"]) == 21


def test_many_different_lengths_are_binned() -> None:
    found = audit_record(lw.collect("GridMaze-7", steps=20_000, episode_length=(10, 300), seed=0))
    assert len(found["episode_lengths"]["edges"]) == len(found["episode_lengths"]["counts"]) + 1
    assert sum(found["episode_lengths"]["counts"]) == found["episodes"]


def test_observations_are_kept_where_nothing_else_has_them(foreign: Path, learned: Path, matrix: Path) -> None:
    kept = np.load(foreign / "observations.npy", allow_pickle=False)
    assert 1 < len(kept) <= MAX_OBSERVATIONS
    assert lw.load(foreign).transform(kept).shape == (len(kept), 3)
    assert not (learned / "observations.npy").exists()
    assert not (matrix / "observations.npy").exists()


def test_a_few_episodes_are_kept_of_any_data(foreign: Path, learned: Path, solved: Path, tmp_path: Path) -> None:
    for folder in (foreign, learned):
        kept = lw.Trajectories.load(folder / "episodes")
        assert 1 < kept.num_episodes <= MOST_EPISODES
        assert kept.num_states <= MOST_STATES
        assert np.isfinite(lw.load(folder).transform(kept.observations)).all()
    assert not (solved / "episodes").exists()
    write_run(lw.solve("GridRoomSym-4", 3), Path(shutil.copytree(learned, tmp_path / "run")))
    assert not (tmp_path / "run" / "episodes").exists()


def test_episodes_of_large_observations_stay_within_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.report.run_folder.MAX_OBSERVATION_BYTES", 1_000)
    data = lw.collect("UMaze", steps=500, seed=0)
    write_run(lw.solve("UMaze", 3), tmp_path / "run", data=data)
    kept = lw.Trajectories.load(tmp_path / "run" / "episodes")
    assert kept.observations.nbytes <= 1_000


def test_experience_of_before_episodes_were_kept_is_drawn(foreign: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(foreign, tmp_path / "run"))
    (run / "episodes").rename(run / "experience")
    assert read_run(run).episodes is not None


@pytest.mark.parametrize("name", ["audit.json", "scores.json", "provenance.json"])
def test_records_are_strict_json(learned: Path, name: str) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    json.loads((learned / name).read_text(), parse_constant=refuse)
