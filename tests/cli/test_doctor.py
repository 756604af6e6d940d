"""The doctor: what it lists, what it calls a problem, and that each problem has advice."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from lapwing.cli import doctor_command as doctor
from lapwing.cli import main as cli

PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
A_TINY_RUN = {"solve_seconds": 0.1, "learn_seconds": 2.0, "cosine": 0.999}


@pytest.fixture
def no_tiny_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "tiny_run", lambda: dict(A_TINY_RUN))
    monkeypatch.delenv("LAPWING_LAYOUTS", raising=False)


def test_the_tiny_run_learns() -> None:
    found = doctor.tiny_run()
    assert found["cosine"] > doctor.TINY_COSINE
    assert found["learn_seconds"] > 0


def test_every_dependency_of_the_package_is_looked_at() -> None:
    wanted = {re.split(r"[<>=!~\[ ]", line)[0] for line in PROJECT["dependencies"]}
    assert wanted <= set(doctor.REQUIRED)


def test_every_extra_of_the_package_is_looked_at() -> None:
    offered = PROJECT["optional-dependencies"].items()
    extras = {name: packages for name, packages in offered if name not in ("test", "fuzz", "docs")}
    assert set(extras) == set(doctor.EXTRAS)
    for name, (package, _) in doctor.EXTRAS.items():
        assert any(line.startswith(package) for line in extras[name])


@pytest.mark.usefixtures("no_tiny_run")
def test_a_sound_installation_is_well_and_says_what_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("python", "jaxlib", "equinox", "minari", "cpu:0", "cores", "LAPWING_LAYOUTS"))
    assert "cosine 0.9990" in out
    assert out.endswith("everything works\n")


@pytest.mark.usefixtures("no_tiny_run")
def test_json_holds_the_same_and_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["healthy"], found["problems"], captured.err) == (True, [], "")
    assert found["packages"]["lapwing"] == PROJECT["version"]
    assert found["tiny_run"] == A_TINY_RUN
    assert found["devices"]
    assert found["cores"] >= 1


@pytest.mark.usefixtures("no_tiny_run")
def test_a_missing_package_is_a_problem_with_advice_and_no_run_is_tried(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "optax" else real(name))
    assert cli.main(["doctor", "--json"]) == 1
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert [problem["what"] for problem in found["problems"]] == ["optax is not installed"]
    assert "pip install" in found["problems"][0]["advice"]
    assert found["tiny_run"] is None
    assert "optax is not installed" in captured.err
    assert "1 problem, see the advice above" in captured.err


@pytest.mark.usefixtures("no_tiny_run")
def test_a_package_that_does_not_import_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def importing(name: str) -> Any:
        if name == "scipy":
            raise OSError("libopenblas.so: cannot open\nshared object file")
        return __import__(name)

    monkeypatch.setattr(doctor, "import_module", importing)
    (problem,) = doctor.examine()["problems"]
    assert problem["what"] == "scipy does not import: libopenblas.so: cannot open shared object file"
    assert "scipy" in problem["advice"]


@pytest.mark.usefixtures("no_tiny_run")
def test_a_missing_extra_is_no_problem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = doctor._version
    absent = {package for package, _ in doctor.EXTRAS.values()}
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in absent else real(name))
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    assert cli.main(["doctor"]) == 0
    assert "pip install 'lapwing[wandb]'" in capsys.readouterr().out


@pytest.mark.usefixtures("no_tiny_run")
def test_a_layouts_variable_that_names_no_folder_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAPWING_LAYOUTS", "/nowhere")
    assert cli.main(["doctor"]) == 1
    assert "LAPWING_LAYOUTS names /nowhere, which is not a folder" in capsys.readouterr().err


@pytest.mark.usefixtures("no_tiny_run")
def test_layouts_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "One.txt").write_text("XXX\nX X\nXXX\n")
    monkeypatch.setenv("LAPWING_LAYOUTS", str(tmp_path))
    found = doctor.examine()
    assert (found["layouts_folder"], found["layouts"]) == (str(tmp_path), 1)


@pytest.mark.usefixtures("no_tiny_run")
def test_a_machine_without_a_device_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_device() -> None:
        raise RuntimeError("Unable to initialize backend 'cuda'")

    monkeypatch.setattr("jax.devices", no_device)
    (problem,) = doctor.examine()["problems"]
    assert "Unable to initialize backend" in problem["what"]
    assert "JAX_PLATFORMS=cpu" in problem["advice"]


def test_a_tiny_run_that_fails_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing() -> None:
        raise FloatingPointError("nan in the loss")

    monkeypatch.setattr(doctor, "tiny_run", failing)
    assert cli.main(["doctor"]) == 1
    captured = capsys.readouterr()
    assert "the tiny run fails: FloatingPointError: nan in the loss" in captured.err
    assert "everything works" not in captured.out


@pytest.mark.parametrize("cosine", [0.3, float("nan")])
def test_a_tiny_run_that_learns_badly_is_a_problem(monkeypatch: pytest.MonkeyPatch, cosine: float) -> None:
    monkeypatch.setattr(doctor, "tiny_run", lambda: {**A_TINY_RUN, "cosine": cosine})
    (problem,) = doctor.examine()["problems"]
    assert "learns badly" in problem["what"]
