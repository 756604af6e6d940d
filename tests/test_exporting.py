"""Exported networks: ONNX under onnxruntime, PyTorch where it is installed, files and refusals."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import lapwing as lw
from lapwing.encoders import RotatedEncoder
from lapwing.encoders.plain import plain_network
from lapwing.errors import ArgumentError, CannotWriteError, MissingExtraError
from lapwing.exporting import onnx_bytes, torch_arrays, torch_module, torch_source
from networks_by_kind import NETWORKS, scaled_network, some_observations

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
EIGENVALUES = np.array([0.0, 0.25, 0.5])


def rotated_network(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> RotatedEncoder:
    matrix = np.random.default_rng(2).normal(size=(6, 4))
    return RotatedEncoder(scaled_network(kind, shape, options), matrix)


@pytest.fixture(scope="module")
def learned() -> Any:
    data = lw.collect("GridMaze-7", 500, seed=0)
    return lw.learn(data, dim=3, steps=8, refine="none", seed=0), data.observations[:200]


@pytest.mark.parametrize(("kind", "shape", "options"), NETWORKS)
def test_onnxruntime_computes_the_same(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    encoder = rotated_network(kind, shape, options)
    session = onnxruntime.InferenceSession(onnx_bytes(plain_network(encoder, 3), EIGENVALUES, "a test"))
    for count in (1, 4):
        observations = some_observations(shape, count)
        (found,) = session.run(None, {"observations": observations})
        assert found.shape == (count, 3)
        assert np.abs(found - encoder.encode(observations)[:, :3]).max() < 1e-5


def test_an_onnx_file_carries_the_eigenvalues(learned: Any, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    model, observations = learned
    (path,) = model.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path)
    found = session.run(["components"], {"observations": observations.astype(np.float32)})[0]
    assert np.abs(found - model.transform(observations)).max() < 1e-5
    stored = session.get_modelmeta().custom_metadata_map["eigenvalues"]
    np.testing.assert_array_equal([float(word) for word in stored.split()], model.eigenvalues)


@NEEDS_TORCH
@pytest.mark.parametrize(("kind", "shape", "options"), NETWORKS)
def test_pytorch_computes_the_same(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    import torch

    encoder = rotated_network(kind, shape, options)
    network = plain_network(encoder, 3)
    module = torch_module(network)
    arrays = torch_arrays(network, EIGENVALUES)
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    observations = some_observations(shape)
    with torch.no_grad():
        found = module(torch.from_numpy(observations)).numpy()
    assert np.abs(found - encoder.encode(observations)[:, :3]).max() < 1e-5
    np.testing.assert_array_equal(module.eigenvalues.numpy(), EIGENVALUES)


@NEEDS_TORCH
def test_the_pytorch_file_needs_no_lapwing(learned: Any, tmp_path: Path) -> None:
    model, observations = learned
    np.save(tmp_path / "observations.npy", observations)
    np.save(tmp_path / "components.npy", model.transform(observations))
    model.export(tmp_path / "rooms.py", tmp_path / "weights.safetensors")
    program = """
import sys
sys.modules["lapwing"] = None
import numpy as np, torch
from rooms import load
found = load()(torch.from_numpy(np.load("observations.npy"))).detach().numpy()
print(np.abs(found - np.load("components.npy")).max())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-5


@pytest.mark.parametrize(("kind", "shape", "options"), NETWORKS)
def test_the_source_has_a_module_for_each_array(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    network = plain_network(rotated_network(kind, shape, options), 3)
    source = torch_source(network, "a test", "model", Path("model.safetensors"))
    compile(source, "model.py", "exec")
    lines = [line.strip() for line in source.split("nn.Sequential(\n")[1].split("        )\n")[0].splitlines()]
    holders = {"Scaling", "FourierFeatures", "nn.Linear", "nn.Conv2d"}
    expected = {number for number, line in enumerate(lines) if line.split("(")[0] in holders}
    found = {int(name.split(".")[1]) for name in torch_arrays(network, EIGENVALUES) if name.startswith("layers.")}
    assert found == expected


def test_linear_weights_are_transposed_as_pytorch_has_them(learned: Any, tmp_path: Path) -> None:
    model, _ = learned
    weights, source = model.export(tmp_path / "m.py")
    arrays = load_file(weights)
    plain = plain_network(model.encoder, model.dim)
    last = max(int(name.split(".")[1]) for name in arrays if name.startswith("layers."))
    np.testing.assert_array_equal(arrays[f"layers.{last}.weight"].T, plain.layers[-1].weight)  # type: ignore[union-attr]
    np.testing.assert_array_equal(arrays["eigenvalues"], model.eigenvalues)
    assert "GridMaze-7" in source.read_text()


def test_a_title_cannot_end_the_docstring() -> None:
    network = plain_network(rotated_network(*NETWORKS[0]), 3)
    source = torch_source(network, 'x"""\nimport os\n"""\\', 'm"""', Path("'quoted'.safetensors"))
    names = [type(node).__name__ for node in __import__("ast").parse(source).body]
    assert names == ["Expr", "ImportFrom", "Import", "ImportFrom", "ClassDef", "ClassDef", "FunctionDef"]


@pytest.mark.parametrize(
    ("path", "weights", "words"),
    [
        ("model.pt", None, "ends in .onnx"),
        ("model.onnx", "w.safetensors", "leave the second file out"),
        ("model.py", "w.npz", "ends in .safetensors"),
    ],
)
def test_other_suffixes_are_refused(learned: Any, tmp_path: Path, path: str, weights: str | None, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        learned[0].export(tmp_path / path, None if weights is None else tmp_path / weights)
    assert not list(tmp_path.iterdir())


def test_a_saved_model_is_not_overwritten(learned: Any, tmp_path: Path) -> None:
    model, observations = learned
    model.save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ArgumentError, match="belongs to a saved model"):
        model.export(tmp_path / "model.py")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    model.export(tmp_path / "network.py")
    np.testing.assert_array_equal(lw.load(tmp_path).transform(observations), model.transform(observations))


def test_a_folder_that_cannot_be_written_is_said(learned: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError):
        learned[0].export(tmp_path / "file" / "model.py")


def test_without_onnx_the_extra_is_named(learned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"lapwing\[onnx\]"):
        learned[0].export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_table_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="table or a closed form"):
        lw.solve("room:3x3", 2).export(tmp_path / "model.onnx")
