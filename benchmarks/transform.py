"""How long the components of one observation take: `model.transform` beside the same layers in bare NumPy, and exports.

    python benchmarks/transform.py
    PYTHONPATH=DIR python benchmarks/transform.py      # DIR holds torch, to time the exported module too

Medians over 2,000 calls, in microseconds, and the difference of the values to those of a large batch in JAX.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import lapwing as lw
from lapwing.encoders.plain import plain_network

CALLS = 2000


def median_time(call, observation):
    times = []
    for _ in range(CALLS):
        started = time.perf_counter()
        call(observation)
        times.append(time.perf_counter() - started)
    return 1e6 * float(np.median(times))


def bare(network):
    """The layers of a Fourier network, written out."""
    *_, features = (layer for layer in network.layers if hasattr(layer, "frequencies"))
    linear = [(layer.weight, layer.bias) for layer in network.layers if hasattr(layer, "bias")]
    root = np.float32(np.sqrt(2.0))

    def forward(x):
        phases = x @ features.frequencies
        x = root * np.concatenate([np.sin(phases), np.cos(phases)], axis=1)
        for weight, bias in linear[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        weight, bias = linear[-1]
        return x @ weight + bias

    return forward


def main() -> None:
    warnings.simplefilter("ignore", lw.LapwingWarning)
    data = lw.collect("Rooms-16", 100_000, seed=0)
    model = lw.learn(data, dim=11, steps=500, seed=0)
    network = plain_network(model.encoder, model.dim)
    many = np.asarray(data.observations[:200], np.float32)
    expected = model.transform(many)
    one = many[:1]
    calls = {
        "bare NumPy": bare(network),
        "plain layers": network,
        "model.transform": model.transform,
        "through JAX": model.encoder.encode,
    }
    with tempfile.TemporaryDirectory() as folder:
        (path,) = model.export(Path(folder) / "model.onnx")
        try:
            import onnxruntime

            session = onnxruntime.InferenceSession(path)
            calls["onnxruntime"] = lambda x: session.run(None, {"observations": x})[0]
        except ImportError:
            print("onnxruntime is not installed")
        source = model.export(Path(folder) / "exported.py")[1]
        try:
            import torch

            names: dict = {"__name__": "exported", "__file__": str(source)}
            exec(source.read_text(), names)
            module = names["load"]()

            def in_torch(x):
                with torch.no_grad():
                    return module(torch.from_numpy(x)).numpy()

            calls["PyTorch"] = in_torch
        except ImportError:
            print("torch is not installed")
    reference = median_time(calls["bare NumPy"], one)
    print("| one observation | microseconds | over bare NumPy | largest difference, 200 observations |")
    print("|---|---:|---:|---:|")
    for name, call in calls.items():
        spent = median_time(call, one)
        rows = np.concatenate([np.asarray(call(many[i : i + 1]))[:, : model.dim] for i in range(len(many))])
        print(f"| {name} | {spent:.0f} | {spent / reference:.2f} | {np.abs(rows - expected).max():.1e} |")


if __name__ == "__main__":
    main()
