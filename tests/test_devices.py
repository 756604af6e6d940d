"""Several devices and several processes: the same numbers as one, and files written by the first process only."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.devices import (
    device_mesh,
    encoded_by_rows,
    fetched,
    first_process_first,
    is_first_process,
    join_processes,
    largest_of_processes,
)
from lapwing.errors import ArgumentError

# Losses of 100 steps in float64, where rounding of one device against two stays far below what is asked for.
LOSSES = """
import sys
import jax, jax.numpy as jnp, numpy as np, optax
import lapwing as lw
from lapwing.encoders import build_encoder
from lapwing.training.config import make_config
from lapwing.training.fitting import REGRESSION, Targets, fit_source
from lapwing.training.loop import train
from lapwing.training.state import init
from lapwing.training.task import prepare

lw.training.join_processes()
found = {"devices": jax.device_count(), "processes": jax.process_count()}

def wide(tree):
    floats = lambda leaf: jnp.issubdtype(leaf.dtype, jnp.floating)
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if floats(leaf) else leaf, tree)

def losses(state, source):
    end = train(wide(state), wide(source), 100, 1)
    return np.array([line.metrics["loss"] for line in end.history])

def learned(data, seeds=(0,), **options):
    config = make_config(dim=3, oversampling=1, hidden=(16,), steps=200, batch_size=33, **options)
    task = prepare(config, data, list(seeds), None, None)
    return losses(task.initial_state(), task.source)

points, maze = lw.collect("Box-2", 5000, seed=0), lw.collect("GridMaze-7", 5000, seed=0)
images = lw.collect("GridMaze-7", 5000, seed=0, observation="pixels")
found["fourier"] = learned(points)
found["images"] = learned(images, encoder="conv(channels=(4,))", batches="sampled", separate_constraints=True)
found["exact"] = learned(maze)
found["two seeds"] = learned(points, (0, 1))

rng = np.random.default_rng(0)
labels = rng.integers(0, 20, (2, points.num_states)).astype(np.int32)
targets = Targets(labels, rng.normal(size=(2, 20, 4)).astype(np.float32), np.zeros(4))
encoder = build_encoder("fourier", (2,), 4, jax.random.key(0), hidden=(16,))
fitted = init(encoder, REGRESSION, optax.adam(1e-3), jax.random.key(1))
found["fit"] = losses(fitted, fit_source(points.observations, targets, 33))
np.savez(sys.argv[1], **found)
"""

CASES = ["fourier", "images", "exact", "two seeds", "fit"]

# Every process learns, is stopped by a signal to the second one, resumes, and learns once more by the command line.
WRITING = """
import os, signal, sys, warnings
from pathlib import Path

import jax, numpy as np
import lapwing as lw
from lapwing.cli.main import main

folder, writes = Path(sys.argv[1]), []

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        path, flags = os.path.abspath(arguments[0]), arguments[2]
        if path.startswith(str(folder)) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            writes.append(path)

sys.addaudithook(watch)
warnings.simplefilter("ignore", lw.LapwingWarning)
lw.training.join_processes()
first = lw.training.is_first_process()
# Without refit: cells turn the rounding of two processes into other partitions, and so into other components.
options = {"dim": 3, "oversampling": 1, "hidden": (16,), "steps": 80, "log_every": 5, "batch_size": 32, "refit": 0}
data = lw.collect("Box-2", 5000, seed=0)

def stop(line):
    if line.step == 10 and not first:
        os.kill(os.getpid(), signal.SIGTERM)

if jax.process_count() > 1:
    try:
        lw.learn(lw.collect("Box-2", 5000, seed=jax.process_index()), **options)
        raise AssertionError("other data in each process were taken")
    except lw.LapwingError as error:
        assert "the same" in str(error), error
    try:
        lw.learn(data, **options, checkpoints=folder / "kept", callback=stop)
        raise AssertionError("it was not stopped")
    except lw.training.LearningInterruptedError as stopped:
        assert stopped.step == 10, stopped.step
model = lw.learn(data, **options, checkpoints=folder / "kept")
numbers = model.encoder.arrays() | {"eigenvalues": model.eigenvalues}

if jax.process_count() > 1:
    command = "learn Box-2 --data-steps 5000 --steps 40 --dim 3 --hidden 16 --batch-size 32 --no-report --json --out"
    code = main([*command.split(), str(folder / "run")])
    assert code in (0, 3), code
assert first or not writes, writes
assert writes or not first
np.savez(sys.argv[2], **numbers)
"""


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])


def run_script(script: str, arguments: list[list[str]], devices: int = 1, x64: bool = True) -> list[str]:
    """Run a script in as many processes as there are lists of arguments, joined if they are several."""
    variables = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": str(int(x64)),
    }
    if len(arguments) > 1:
        variables |= {"LAPWING_COORDINATOR": f"localhost:{free_port()}", "LAPWING_PROCESSES": str(len(arguments))}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, *own],
            env={**variables, "LAPWING_PROCESS": str(number)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, own in enumerate(arguments)
    ]
    try:
        streams = [process.communicate(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * len(started), streams
    return [output for output, _ in streams]


def numbers_in(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, np.ndarray]]:
    """Losses of the same steps on one device, on two, and by each of two processes."""
    folder = tmp_path_factory.mktemp("losses")
    paths = {name: folder / f"{name}.npz" for name in ("one device", "two devices", "first process", "second process")}
    run_script(LOSSES, [[str(paths["one device"])]])
    run_script(LOSSES, [[str(paths["two devices"])]], devices=2)
    run_script(LOSSES, [[str(paths["first process"])], [str(paths["second process"])]])
    return {name: numbers_in(path) for name, path in paths.items()}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("where", ["two devices", "first process", "second process"])
def test_losses_of_100_steps_are_those_of_one_device(
    runs: dict[str, dict[str, np.ndarray]], where: str, case: str
) -> None:
    alone, shared = runs["one device"], runs[where]
    assert (int(alone["devices"]), int(shared["devices"])) == (1, 2)
    assert int(shared["processes"]) == (1 if where == "two devices" else 2)
    assert len(alone[case]) == 100
    np.testing.assert_allclose(shared[case], alone[case], rtol=1e-5)
    assert np.ptp(alone[case]) > 1e-3


@pytest.mark.slow
def test_two_processes_stop_resume_and_write_from_the_first_only(tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    ends = [tmp_path / f"{name}.npz" for name in ("alone", "first", "second")]
    run_script(WRITING, [[str(alone), str(ends[0])]], x64=False)
    outputs = run_script(WRITING, [[str(together), str(end)] for end in ends[1:]], x64=False)
    expected, first, second = (numbers_in(end) for end in ends)
    for name, array in expected.items():
        assert first[name].tobytes() == second[name].tobytes(), name
        np.testing.assert_allclose(first[name], array, rtol=1e-2, atol=1e-4)
    assert lw.load(together / "run").dim == 3
    assert '"world": "Box-2"' in outputs[0]
    assert '"world"' not in outputs[1]


DIVIDED = """
import jax, jax.numpy as jnp, numpy as np
from lapwing.devices import device_mesh, encoded_by_rows, everywhere, placed, state_sharding

shapes = {seeds: tuple(device_mesh(seeds).shape.values()) for seeds in (1, 2, 3, 4, 6, 8)}
assert shapes == {1: (1, 4), 2: (2, 2), 3: (1, 4), 4: (4, 1), 6: (2, 2), 8: (4, 1)}, shapes
mesh, matrix = device_mesh(2), jnp.arange(6.0).reshape(2, 3)
assert placed(jnp.zeros((6, 2)), state_sharding(mesh)).sharding.shard_shape((6, 2)) == (3, 2)
for rows in (1, 7, 8):
    batch = placed(jnp.arange(2.0 * rows).reshape(rows, 2), everywhere(mesh))
    encode = jax.jit(encoded_by_rows(lambda points: points @ matrix, mesh))
    np.testing.assert_allclose(encode(batch), batch @ matrix)
text = encode.lower(batch).compile().as_text()
assert "f32[4,3]" in text and "all-gather" in text, text  # half of the rows in each of two groups
print("agreed")
"""


@pytest.mark.slow
def test_devices_are_divided_among_seeds_and_rows() -> None:
    assert run_script(DIVIDED, [[]], devices=4, x64=False)[0].strip() == "agreed"


def test_one_device_and_one_process_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAPWING_COORDINATOR", raising=False)
    join_processes()
    assert device_mesh(3) is None
    assert encoded_by_rows(jnp.sin, None) is jnp.sin
    assert is_first_process()
    assert largest_of_processes(-3) == -3
    np.testing.assert_array_equal(fetched({"a": jnp.arange(3)})["a"], [0, 1, 2])
    with first_process_first():
        assert jax.process_count() == 1


@pytest.mark.parametrize(
    ("address", "count", "number"),
    [("localhost:1", "two", "0"), ("localhost:1", "2", "2"), ("localhost", "2", "0"), ("localhost:1", None, "0")],
)
def test_variables_that_describe_no_process_are_refused(
    monkeypatch: pytest.MonkeyPatch, address: str, count: str | None, number: str
) -> None:
    values = {"LAPWING_COORDINATOR": address, "LAPWING_PROCESSES": count, "LAPWING_PROCESS": number}
    for name, value in values.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    with pytest.raises(ArgumentError, match="LAPWING_PROCESS"):
        join_processes()
