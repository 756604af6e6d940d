"""Files written long ago still load and give the same numbers; see golden/README.md."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import LapwingError
from lapwing.report import write_report
from lapwing.storage.checkpoints import read_checkpoint

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
# A network computes in float32, and each processor rounds in its own way.
TOLERANCE = {"model-lookup": 1e-6, "model-box": 1e-6, "model-learned": 1e-5, "run": 1e-5}


def test_no_golden_folder_goes_untested() -> None:
    formats = {path.name for path in GOLDEN.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert formats == {*EXPECTED, "run-interrupted", "trajectories-named"}
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.suffix != ".pyc") < 150_000


@pytest.mark.parametrize("name", TOLERANCE)
def test_a_golden_model_gives_the_numbers_of_its_day(name: str) -> None:
    model, expected = lw.load(GOLDEN / name), EXPECTED[name]
    points = np.array(expected["points"], dtype=np.float32)
    np.testing.assert_allclose(
        model.transform(points), expected["components"], rtol=TOLERANCE[name], atol=TOLERANCE[name]
    )
    np.testing.assert_allclose(model.eigenvalues, expected["eigenvalues"], rtol=1e-6, atol=1e-9)
    assert list(model.certificate().verdicts) == expected["verdicts"]


@pytest.mark.parametrize("name", ["model-lookup", "model-learned", "model-box"])
def test_a_golden_model_saved_again_is_the_same_model(name: str, tmp_path: Path) -> None:
    model = lw.load(GOLDEN / name)
    again = lw.load(model.save(tmp_path / "again"))
    for array, other in zip(model.encoder.arrays().values(), again.encoder.arrays().values(), strict=True):
        np.testing.assert_array_equal(array, other)
    assert again.metadata == model.metadata


@pytest.mark.parametrize("mmap", [False, True])
def test_golden_trajectories_of_version_2_have_every_array(mmap: bool) -> None:
    data = lw.Trajectories.load(GOLDEN / "trajectories-named", mmap=mmap)
    assert data.keys == ("place", "image")
    assert data.actions is not None and data.actions.tolist() == [0, 1, 0, 1, 2, 3]  # noqa: PT018
    assert data.rewards is not None and data.rewards.tolist() == [0.0, 0.5, 0.0, 0.5, 1.0, 1.5]  # noqa: PT018
    assert data.terminated.tolist() == [True, False]
    place = data.select("place")
    assert place.episode(1).ravel().tolist() == [50.0, 51.0, 52.0, 53.0, 54.0]
    assert place.next_observations is not None
    assert place.next_observations[0].ravel().tolist() == [31.0, 32.0]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize(("name", "tabulated"), [("trajectories-table", True), ("trajectories-rows", False)])
def test_golden_trajectories_hold_the_episodes_of_their_day(name: str, tabulated: bool, mmap: bool) -> None:
    data, expected = lw.Trajectories.load(GOLDEN / name, mmap=mmap), EXPECTED[name]
    assert data.has_table is tabulated
    assert data.lengths.tolist() == expected["lengths"]
    np.testing.assert_allclose(data.episode(data.num_episodes - 1), expected["last"], rtol=1e-6)


def test_a_golden_run_has_a_page_with_its_numbers(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "run", tmp_path / "run")
    page = write_report([tmp_path / "run"], tmp_path / "page.html").read_text(encoding="utf-8")
    assert f'data-value="{EXPECTED["run"]["subspace_cosine"]!r}"' in page
    assert "lapwing learn GridMaze-7" in page


def test_a_checkpoint_of_version_0_1_is_refused_and_left_alone(tmp_path: Path) -> None:
    # docs/trust.md: models and data sets of 0.1 load; its interrupted runs are not resumed.
    folder = shutil.copytree(GOLDEN / "run-interrupted" / "checkpoints", tmp_path / "checkpoints")
    (path,) = folder.iterdir()
    with pytest.raises(LapwingError, match="format version '1'"):
        read_checkpoint(path)
    assert [path] == list(folder.iterdir())
