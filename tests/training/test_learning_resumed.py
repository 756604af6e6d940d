"""Learning that is interrupted, however it is, ends with the same bits as learning that never was."""

import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import lapwing as lw
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.checkpoints import checkpoint_files
from lapwing.training import Progress, loop
from lapwing.training.interrupts import LearningInterruptedError

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {
    "dim": 3,
    "oversampling": 1,
    "hidden": (16, 16),
    "steps": 60,
    "log_every": 10,
    "batch_size": 64,
    "stop_when_converged": False,
}


@pytest.fixture(autouse=True)
def checkpoint_after_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN", 0.0)


@pytest.fixture(scope="module")
def data() -> lw.Trajectories:
    return lw.collect("GridMaze-7", steps=2000, seed=0)


class KilledError(BaseException):
    """Stands for a kill at the end of a chunk, before its checkpoint is written."""


def learned(
    data: lw.Trajectories,
    kind: str,
    seeds: int,
    folder: Path | None,
    killed_at: int | None = None,
    pause: float = 0.0,
) -> list[LaplacianRepresentation]:
    def report(line: Progress) -> None:
        time.sleep(pause)
        if line.step == killed_at:
            raise KilledError

    learner = lw.Learner(batches=kind, encoder="mlp", **OPTIONS)
    return learner.fit_many(data, list(range(seeds)), callback=report, checkpoints=folder)


def bits(models: list[LaplacianRepresentation]) -> list[dict[str, Any]]:
    """Everything of the models but the time it took: weights, eigenvalues, duals, metrics."""
    return [
        {
            **{name: array.tobytes() for name, array in model.encoder.arrays().items()},
            "mu": model.mu.tobytes(),
            "residuals": None if model.residuals is None else model.residuals.tobytes(),
            "errors": None if model.mu_errors is None else model.mu_errors.tobytes(),
            "metadata": {name: value for name, value in model.metadata.items() if name != "seconds"},
        }
        for model in models
    ]


@cache
def never_interrupted(kind: str, seeds: int) -> list[dict[str, Any]]:
    return bits(learned(lw.collect("GridMaze-7", steps=2000, seed=0), kind, seeds, None))


@pytest.mark.parametrize(
    ("kind", "seeds"), [("exact", 1), ("sampled", 1), ("unbiased", 1), ("exact", 3), ("sampled", 3)]
)
def test_learning_killed_at_the_end_of_a_chunk_ends_with_the_same_bits(
    data: lw.Trajectories, tmp_path: Path, kind: str, seeds: int
) -> None:
    with pytest.raises(KilledError):
        learned(data, kind, seeds, tmp_path / "checkpoints", killed_at=30)
    assert bits(learned(data, kind, seeds, tmp_path / "checkpoints")) == never_interrupted(kind, seeds)
    assert [steps_of(path) for path in checkpoint_files(tmp_path / "checkpoints")] == [60, 50]


def test_bits_tell_learning_with_another_seed_apart() -> None:
    first, second, _ = never_interrupted("exact", 3)
    assert first["mu"] != second["mu"]
    assert first["metadata"]["eigenvalue_estimates"] != second["metadata"]["eigenvalue_estimates"]


def test_what_has_ended_gives_its_model_again_without_a_step(data: lw.Trajectories, tmp_path: Path) -> None:
    first = bits(learned(data, "exact", 1, tmp_path / "checkpoints"))
    assert bits(learned(data, "exact", 1, tmp_path / "checkpoints", killed_at=10)) == first


class Net(eqx.Module):
    """A network of one's own."""

    inner: eqx.nn.MLP

    def __init__(self, seed: int, width: int, activation: Any) -> None:
        self.inner = eqx.nn.MLP(2, 5, width, 1, activation=activation, key=jax.random.key(seed))

    def __call__(self, batch: jax.Array) -> jax.Array:
        return jax.vmap(self.inner)(batch)


GIVEN: dict[str, tuple[Any, list[Any]]] = {
    "objective": (lw.allo(barrier=2.0), [lw.allo(barrier=9.0), lw.ggdo(barrier=2.0)]),
    "encoder": (
        Net(0, 16, jax.nn.relu),
        [Net(1, 16, jax.nn.relu), Net(0, 16, jax.nn.tanh), Net(0, 32, jax.nn.relu)],
    ),
}


@pytest.mark.parametrize("what", list(GIVEN))
def test_an_objective_or_a_network_that_is_given_belongs_to_the_learning(tmp_path: Path, what: str) -> None:
    data = lw.operator("GridMaze-7")
    options: dict[str, Any] = {"dim": 3, "oversampling": 2, "steps": 20, "log_every": 10, "checkpoints": tmp_path}
    options |= {} if what == "encoder" else {"hidden": (8,)}
    given, others = GIVEN[what]
    model = lw.learn(data, **options, **{what: given})
    names = sorted(path.name for path in tmp_path.iterdir())
    for other in others:
        with pytest.raises(lw.LapwingError, match="the objective or network that was given computes something else"):
            lw.learn(data, **options, **{what: other})
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    again = lw.learn(data, **options, **{what: given})
    np.testing.assert_array_equal(again.mu, model.mu)


def test_an_early_stop_is_not_forgotten(tmp_path: Path) -> None:
    data = lw.collect("GridMaze-7", steps=20_000, seed=0)
    options: dict[str, Any] = {"dim": 2, "hidden": (32,), "steps": 2000, "log_every": 50}
    model = lw.learn(data, checkpoints=tmp_path / "checkpoints", **options)
    assert model.metadata["steps"] < 2000
    again = lw.learn(data, checkpoints=tmp_path / "checkpoints", **options)
    assert bits([again]) == bits([model])


def learning_in_another_process(folder: Path, kind: str, seeds: int) -> "subprocess.Popen[str]":
    """Learning that takes its time, once its first checkpoint is there."""
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "import lapwing as lw; from lapwing.training import loop; import test_learning_resumed as here\n"
        "loop.SECONDS_BETWEEN = 0.0\n"
        "data = lw.collect('GridMaze-7', steps=2000, seed=0)\n"
        f"here.learned(data, {kind!r}, {seeds}, Path(sys.argv[2]), pause=1.0)\n"
    )
    words = [sys.executable, "-c", program, str(Path(__file__).parent), str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not checkpoint_files(folder):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def steps_of(path: Path) -> int:
    return int(path.name.split("-")[1])


@pytest.mark.parametrize(("kind", "seeds"), [("exact", 1), ("sampled", 3)])
def test_a_process_killed_for_real_is_gone_on_with(
    data: lw.Trajectories, tmp_path: Path, kind: str, seeds: int
) -> None:
    folder = tmp_path / "checkpoints"
    with learning_in_another_process(folder, kind, seeds) as process:
        process.send_signal(signal.SIGKILL)
    assert 10 <= steps_of(checkpoint_files(folder)[0]) < 60
    assert bits(learned(data, kind, seeds, folder)) == never_interrupted(kind, seeds)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_wish_to_stop_is_granted_at_the_end_of_the_chunk_with_a_checkpoint(
    data: lw.Trajectories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, capsys: Any
) -> None:
    monkeypatch.setattr(loop, "SECONDS_BETWEEN", 1e9)
    before = signal.getsignal(number)

    def report(line: Progress) -> None:
        if line.step == 30:
            signal.raise_signal(number)

    learner = lw.Learner(batches="exact", encoder="mlp", **OPTIONS)
    with pytest.raises(LearningInterruptedError, match="stopped after 30 of 60 steps") as caught:
        learner.fit(data, callback=report, checkpoints=tmp_path / "checkpoints")
    assert caught.value.signal == number
    assert "stopping at the end of this chunk" in capsys.readouterr().err
    assert [steps_of(path) for path in checkpoint_files(tmp_path / "checkpoints")] == [30]
    assert signal.getsignal(number) is before
    assert bits(learned(data, "exact", 1, tmp_path / "checkpoints")) == never_interrupted("exact", 1)


def test_a_second_ctrl_c_stops_at_once(data: lw.Trajectories, tmp_path: Path) -> None:
    def report(line: Progress) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    learner = lw.Learner(batches="exact", encoder="mlp", **OPTIONS)
    with pytest.raises(KeyboardInterrupt) as caught:
        learner.fit(data, callback=report, checkpoints=tmp_path / "checkpoints")
    assert not isinstance(caught.value, LearningInterruptedError)


def test_another_process_in_the_folder_is_refused(data: lw.Trajectories, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    with learning_in_another_process(folder, "exact", 1) as process:
        try:
            with pytest.raises(lw.LapwingError, match="another process is at work"):
                learned(data, "exact", 1, folder)
        finally:
            process.kill()
