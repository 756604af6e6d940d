"""A run that was interrupted with version 1 of the formats can be gone on with for ever."""

import importlib.util
import json
import shutil
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import lapwing as lw
from lapwing.storage.checkpoints import checkpoint_files
from lapwing.storage.run_configuration import CHECKPOINTS

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "run-interrupted" / "expected.json").read_text())


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    found = importlib.util.spec_from_file_location("golden_recipe", GOLDEN / "make.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_golden_checkpoint_is_gone_on_with(tmp_path: Path, recipe: ModuleType) -> None:
    folder = tmp_path / CHECKPOINTS
    shutil.copytree(GOLDEN / "run-interrupted" / CHECKPOINTS, folder)
    assert [path.name[5:15] for path in checkpoint_files(folder)] == ["0000000010"]
    heard: list[int] = []
    with warnings.catch_warnings():
        # Made with other versions of the libraries, it says so.
        warnings.simplefilter("ignore", lw.LapwingWarning)
        model = lw.learn(
            recipe.interrupted_data(),
            callback=lambda line: heard.append(line.step),
            checkpoints=folder,
            **recipe.INTERRUPTED,
        )
    assert heard == [20, 30]
    np.testing.assert_allclose(model.metadata["history"][0]["loss"], EXPECTED["loss"], rtol=1e-12)
    np.testing.assert_allclose(model.eigenvalues, EXPECTED["eigenvalues"], atol=1e-3)
