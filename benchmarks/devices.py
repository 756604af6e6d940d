"""One device against two, and against two processes: losses over 100 steps, and steps per second.

    python benchmarks/devices.py

Each runs in a process of its own with simulated devices of the CPU; the losses are compared in float64. Steps per second
are those of float32, best of three rounds, and the ratio is to one device in the same run. Simulated devices share the
cores that one device uses already, so the ratio shows what dividing the work costs, not what more hardware gains. The
layouts are timed one after another: on a machine that does other work, ratios of two runs may contradict each other.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import lapwing as lw
from lapwing.training import make_config
from lapwing.training.fitting import REGRESSION, fit_source, table_targets
from lapwing.training.loop import train
from lapwing.training.state import init
from lapwing.training.task import prepare

STEPS = 100


def cases(batch_size: int):
    """Names, first states and sources of the cases."""
    options = {"dim": 6, "oversampling": 2, "steps": 2 * STEPS, "batch_size": batch_size}
    points = lw.collect("Box-2", 20_000, seed=0)
    images = lw.collect("Rooms-16", 20_000, seed=0, observation="pixels")
    pixels = {"encoder": "conv(channels=(8,))", "hidden": (64,), "batches": "sampled", "separate_constraints": True}
    for name, data, seeds, own in (
        ("pairs, fourier", points, [0], {}),
        ("pairs, three seeds", points, [0, 1, 2], {"hidden": (64,)}),
        ("images, conv", images, [0], pixels),
    ):
        task = prepare(make_config(**options, **own), data, seeds, None, None)
        yield name, task.initial_state(), task.source
    operator = lw.operator("Rooms-16")
    task = prepare(make_config(**options), operator, [0], None, None)
    yield "exact table", task.initial_state(), task.source
    fitted = init(task.initial_state().encoder, REGRESSION, task.optimiser(STEPS), jax.random.key(1))
    yield "fit", fitted, fit_source(operator.observations, table_targets(operator, task.width), 2 * batch_size + 1)


def wide(tree):
    """Floats as float64."""
    floats = lambda leaf: jnp.issubdtype(leaf.dtype, jnp.floating)  # noqa: E731
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if floats(leaf) else leaf, tree)


def work(batch_size: int) -> None:
    """Print losses, and steps per second, of every case as JSON."""
    lw.training.join_processes()
    found = {}
    for name, state, source in cases(batch_size):
        if jax.config.jax_enable_x64:
            history = train(wide(state), wide(source), STEPS, 1).history
            found[name] = [line.metrics["loss"].tolist() for line in history]
        else:
            times = []
            train(state, source, 4 * STEPS, STEPS, callback=lambda _, times=times: times.append(time.perf_counter()))
            found[name] = STEPS / float(np.diff(times).min())
    print("RESULT " + json.dumps(found), flush=True)


def run(batch_size: int, devices: int, processes: int, x64: bool) -> dict:
    """What the first of so many processes prints."""
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        port = listening.getsockname()[1]
    variables = {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": str(int(x64)),
    }
    if processes > 1:
        variables |= {"LAPWING_COORDINATOR": f"localhost:{port}", "LAPWING_PROCESSES": str(processes)}
    command = [sys.executable, __file__, "--work", "--batch-size", str(batch_size)]
    started = [
        subprocess.Popen(command, env={**variables, "LAPWING_PROCESS": str(number)}, stdout=subprocess.PIPE, text=True)
        for number in range(processes)
    ]
    outputs = [process.communicate()[0] for process in started]
    (line,) = [line for line in outputs[0].splitlines() if line.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", lw.LapwingWarning)
    if options.work:
        work(options.batch_size)
        return
    layouts = {"1 device": (1, 1), "2 devices": (2, 1), "2 processes": (1, 2)}
    losses, speeds = ({name: run(options.batch_size, *one, x64) for name, one in layouts.items()} for x64 in (1, 0))
    print(f"{'case':20} {'layout':12} {'loss differs by':>16} {'steps/s':>9} {'ratio':>6}")
    for case, alone in losses["1 device"].items():
        for name in layouts:
            found, expected = np.array(losses[name][case]), np.array(alone)
            difference = float(np.max(np.abs(found - expected) / np.abs(expected)))
            speed, ratio = speeds[name][case], speeds[name][case] / speeds["1 device"][case]
            print(f"{case:20} {name:12} {difference:16.1e} {speed:9.1f} {ratio:6.2f}", flush=True)


if __name__ == "__main__":
    main()
