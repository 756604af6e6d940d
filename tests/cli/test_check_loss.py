"""``lapwing check-loss``: functions by their names, exit codes, what is printed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "skeletons" / "port.py"
ALL = "--update update --eigenvalues eigenvalues"


@pytest.fixture(autouse=True)
def in_a_folder_with_the_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLE, tmp_path / "example_port.py")


def test_the_example_of_the_page_conforms(run: Any) -> None:
    result = run(f"check-loss example_port:loss {ALL}")
    assert result.code == 0, result.out + result.err
    assert result.out.endswith("example_port:loss conforms to ALLO\n")
    assert result.err == ""
    assert "fail" not in result.out
    assert "not applicable" not in result.out


def test_what_was_not_checked_is_said(run: Any) -> None:
    in_numpy = EXAMPLE.read_text().replace("jax.numpy as jnp", "numpy as jnp").replace("jax.lax.stop_gradient", "")
    Path("numpy_port.py").write_text(in_numpy)
    result = run(f"check-loss numpy_port:loss {ALL}")
    assert result.code == 0, result.err
    assert result.out.endswith("numpy_port:loss conforms to ALLO; not checked: stop-gradient, order\n")


def test_a_loss_that_does_not_conform_has_exit_code_3_and_advice(run: Any) -> None:
    Path("pinned_port.py").write_text(EXAMPLE.read_text().replace("-8.0, 8.0", "0.0, 8.0"))
    result = run(f"check-loss pinned_port:loss {ALL}")
    assert result.code == 3
    assert "note: negative duals: multipliers are -2 lambda" in result.err
    assert "lapwing: pinned_port:loss does not conform to ALLO: negative duals, " in result.err


def test_an_objective_is_named_like_a_function_and_printed_as_json(run: Any) -> None:
    Path("my_objective.py").write_text("import lapwing as lw\n\nobjective = lw.gdo()\n")
    result = run("check-loss my_objective:objective --json")
    assert result.code == 3
    assert result.err == ""
    assert result.json["conforms"] is False
    assert result.json["gradients"] == "jax.grad"
    order = next(finding for finding in result.json["findings"] if finding["name"] == "order")
    assert order["status"] == "fail"
    assert order["measured"] < 0.9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("example_port:los", "example_port has no 'los'; did you mean loss?"),
        ("no_such_port:loss", "no_such_port cannot be imported"),
        ("broken_port:loss", "broken_port cannot be imported: ZeroDivisionError"),
        ("example_port", "name the loss as MODULE:NAME"),
        (":loss", "cannot be imported"),
        ("example_port:loss --update updat", "--update example_port:updat: example_port has no 'updat'"),
        ("example_port:loss --update os.path:join", "the update has an argument 'a'"),
        ("example_port:errors", "the loss has an argument 'batch'"),
        ("example_port:DUAL_RATE", "the loss must be a function"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_1(run: Any, line: str, message: str) -> None:
    Path("broken_port.py").write_text("1 / 0\n")
    result = run(f"check-loss {line}")
    assert result.code == 1
    assert message in result.err
    assert result.err.startswith("lapwing: ")
    assert result.err.count("\n") == 1
    assert result.out == ""
