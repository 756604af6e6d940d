"""``lapwing export``: files, and wrong input."""

from pathlib import Path
from typing import Any

import pytest

import lapwing as lw


@pytest.fixture(autouse=True)
def in_a_folder_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lw.learn(lw.collect("room:3x3", 200, seed=0), dim=2, steps=4, refine="none", seed=0).save("run")


def test_files_are_written_and_named(run: Any) -> None:
    result = run("export run network.py")
    assert (result.code, result.out) == (0, "network.safetensors\nnetwork.py\n")
    assert run("export run out/model.onnx --json").json == {"files": ["out/model.onnx"]}
    assert Path("out/model.onnx").stat().st_size > 1000


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("export run model.pt", ".onnx"),
        ("export nowhere model.onnx", "nowhere"),
        ("export run run/model.py", "saved model"),
        ("export run", "FILE"),
    ],
)
def test_wrong_input_is_one_message_and_no_file(run: Any, line: str, words: str) -> None:
    before = sorted(Path().rglob("*"))
    result = run(line)
    assert result.code in (1, 2)
    assert words in result.err
    assert sorted(Path().rglob("*")) == before
