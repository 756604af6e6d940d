"""The loop around compiled chunks: what it reports, when it stops, what it keeps, and seeds over devices."""

import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.training.config import make_config
from lapwing.training.engine import LearningDivergedError, Report, history_rows, run_program, spread_over_devices
from lapwing.training.job import Job
from lapwing.training.step import Metrics, Program, TrainState, make_program

SMALL: dict[str, Any] = {"dim": 3, "spare": 1, "hidden": (16,), "steps": 10, "log_every": 4}


def counting_program(
    loss_after: dict[int, float] | None = None, weight_after: dict[int, float] | None = None
) -> Program:
    """A program without a network: it counts steps, and spoils its loss or its weight after some of them."""

    def run(state: TrainState, data: Any, steps: int) -> tuple[TrainState, Metrics]:
        done = int(state.step) + steps
        weight = (weight_after or {}).get(done, float(done))
        loss = jnp.asarray((loss_after or {}).get(done, 1.0 / done))
        zero = jnp.zeros(())
        metrics = Metrics(loss, zero, zero, zero, zero, zero, jnp.zeros(2))
        return state._replace(trained=np.array([weight]), step=np.array(done)), metrics

    return Program(init=lambda encoder, key: start(), run=run, encoder=lambda state: None)


def start() -> TrainState:
    return TrainState(np.array([0.0]), None, None, None, jax.random.key(0), np.array(0))


def test_reports_come_at_the_ends_of_chunks_and_the_last_is_cut_to_fit() -> None:
    heard: list[Report] = []
    state, history = run_program(counting_program(), start(), None, 10, 4, report=heard.append)
    assert [line.step for line in history] == [4, 8, 10]
    assert [line.steps for line in history] == [10, 10, 10]
    assert [float(line.metrics.loss) for line in history] == pytest.approx([1 / 4, 1 / 8, 1 / 10])
    assert heard == history
    assert int(state.step) == 10


def test_inspection_adds_numbers_and_stops_the_run() -> None:
    seen: list[int] = []

    def inspect(state: TrainState) -> tuple[list[dict[str, float]], bool]:
        seen.append(int(state.step))
        return [{"angle": 1.0 / int(state.step)}], int(state.step) >= 6

    state, history = run_program(counting_program(), start(), None, 100, 3, inspect)
    assert seen == [3, 6]
    assert [line.extra["angle"] for line in history] == pytest.approx([1 / 3, 1 / 6])
    assert int(state.step) == 6


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("what", ["loss_after", "weight_after"])
def test_a_loss_or_a_weight_that_is_not_finite_stops_with_the_last_good_state(what: str, bad: float) -> None:
    program = counting_program(**{what: {6: bad}})
    with pytest.raises(LearningDivergedError, match="between steps 3 and 6") as caught:
        run_program(program, start(), None, 100, 3)
    assert caught.value.step == 3
    assert caught.value.state.trained.tolist() == [3.0]
    assert isinstance(caught.value, lw.LapwingError)


def test_of_several_seeds_those_that_diverged_are_named() -> None:
    def run(state: TrainState, data: Any, steps: int) -> tuple[TrainState, Metrics]:
        reached = state.trained + steps
        reached[2] = np.nan if reached[0] > 4 else reached[2]
        numbers = np.zeros(3)
        metrics = Metrics(numbers, numbers, numbers, numbers, numbers, numbers, np.zeros((3, 2)))
        return state._replace(trained=reached), metrics

    program = Program(init=None, run=run, encoder=None)  # type: ignore[arg-type]
    first = start()._replace(trained=np.zeros(3))
    with pytest.raises(LearningDivergedError, match="diverged in 1 of 3 seeds between steps 4 and 8") as caught:
        run_program(program, first, None, 100, 4)
    assert caught.value.seeds == [2]


def test_a_huge_learning_rate_diverges_and_leaves_the_first_state() -> None:
    job = Job(make_config(**SMALL, learning_rate=1e30), lw.operator("GridMaze-7"), [0], None, None)
    program, state = job.program()
    first = [np.array(leaf) for leaf in jax.tree.leaves(state.trained)]
    with pytest.raises(LearningDivergedError, match="learning_rate") as caught:
        run_program(program, state, job.batches.data, 10, 4)
    assert caught.value.step == 0
    for kept, expected in zip(jax.tree.leaves(caught.value.state.trained), first, strict=True):
        np.testing.assert_array_equal(kept, expected)


def test_the_last_good_state_outlives_the_chunk_that_diverged() -> None:
    # The chunk is given its state to overwrite, so what is kept must not be the same memory.
    job = Job(make_config(**SMALL), lw.operator("GridMaze-7"), [0], None, None)

    def build(late: float) -> tuple[Program, TrainState]:
        rate = optax.piecewise_constant_schedule(1e-3, {4: late})
        encoder = job._encoder(jax.random.key(0))
        program = make_program(encoder, job.batches, job.objective, optax.adam(rate), None)
        return program, program.init(encoder, jax.random.key(1))

    with pytest.raises(LearningDivergedError) as caught:
        run_program(*build(1e33), job.batches.data, 8, 4)
    good, _ = run_program(*build(1.0), job.batches.data, 4, 4)
    assert caught.value.step == 4
    for kept, expected in zip(jax.tree.leaves(caught.value.state.trained), jax.tree.leaves(good.trained), strict=True):
        np.testing.assert_array_equal(kept, expected)
    np.testing.assert_array_equal(jax.random.key_data(caught.value.state.key), jax.random.key_data(jax.random.key(1)))


def run_seeds(seeds: list[int], **options: Any) -> tuple[TrainState, list[Report]]:
    data = lw.collect("GridMaze-7", steps=2000, seed=0)
    job = Job(make_config(**{**SMALL, "batches": "sampled", "batch_size": 64, **options}), data, seeds, None, None)
    program, state = job.program()
    return run_program(program, state, job.batches.data, 10, 5)


@pytest.fixture(scope="module")
def alone() -> tuple[TrainState, list[Report]]:
    return run_seeds([5])


def test_the_same_seed_gives_the_same_bits(alone: tuple[TrainState, list[Report]]) -> None:
    again, history = run_seeds([5])
    for one, other in zip(jax.tree.leaves(alone[0].trained), jax.tree.leaves(again.trained), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [float(line.metrics.loss) for line in history] == [float(line.metrics.loss) for line in alone[1]]


def test_a_seed_alone_and_among_three_agree_to_rounding(alone: tuple[TrainState, list[Report]]) -> None:
    state, history = run_seeds([1, 5, 9])
    for one, many in zip(jax.tree.leaves(alone[0].trained), jax.tree.leaves(state.trained), strict=True):
        np.testing.assert_allclose(many[1], one, rtol=1e-3, atol=1e-5)
        assert np.abs(many[0] - many[1]).max() > 1e-3
    assert float(history[-1].metrics.loss[1]) == pytest.approx(float(alone[1][-1].metrics.loss), rel=1e-4)


def two_seeds() -> list[Report]:
    numbers = jnp.array([1.0, 3.0])
    metrics = Metrics(numbers, numbers, numbers, numbers, numbers, numbers, jnp.array([[0.1, 0.2], [0.3, 0.6]]))
    return [Report(5, 10, metrics, [{"angle": 0.5, "cosine": 0.8}, {"angle": 0.3, "cosine": 0.9}])]


def test_history_rows_of_a_seed_are_its_own() -> None:
    (row,) = history_rows(two_seeds(), 1)
    assert row == pytest.approx(
        {
            "step": 5.0,
            "loss": 3.0,
            "graph": 3.0,
            "dual": 3.0,
            "penalty": 3.0,
            "barrier": 3.0,
            "error": 3.0,
            "reading_1": 0.3,
            "reading_2": 0.6,
            "angle": 0.3,
            "cosine": 0.9,
        }
    )


def test_history_rows_of_all_seeds_are_means_and_the_largest_angle() -> None:
    (row,) = history_rows(two_seeds())
    assert row.pop("cosine") == pytest.approx(0.85)
    readings = [row.pop("reading_1"), row.pop("reading_2")]
    assert readings == pytest.approx([0.2, 0.4])
    assert row == {
        "step": 5.0, "loss": 2.0, "graph": 2.0, "dual": 2.0, "penalty": 2.0, "barrier": 2.0, "error": 2.0, "angle": 0.5
    }  # fmt: skip


def test_on_one_device_a_state_stays_as_it_is() -> None:
    if len(jax.devices()) > 1:
        pytest.skip("there are several devices")
    state = start()
    assert spread_over_devices(state, 4) is state


DEVICES = """
import jax, numpy as np
import lapwing as lw
from lapwing.training.config import make_config
from lapwing.training.engine import run_program, spread_over_devices
from lapwing.training.job import Job

def trained(seeds):
    config = make_config(dim=3, spare=1, hidden=(16,), steps=6, log_every=3)
    job = Job(config, lw.operator("GridMaze-7"), seeds, None, None)
    program, state = job.program()
    used = {device for leaf in jax.tree.leaves(state.trained) for device in leaf.devices()}
    return run_program(program, state, job.batches.data, 6, 3)[0].trained, len(used)

assert len(jax.devices()) == 4
four, used = trained([0, 1, 2, 3])
assert used == 4, used
one, used = trained([2])
assert used == 1, used
for spread, alone in zip(jax.tree.leaves(four), jax.tree.leaves(one), strict=True):
    np.testing.assert_allclose(spread[2], alone, rtol=1e-3, atol=1e-5)
state = jax.numpy.zeros((6, 2))
assert len(spread_over_devices(state, 6).devices()) == 3
assert len(spread_over_devices(state[:5], 5).devices()) == 1
print("agreed")
"""


def test_seeds_spread_over_simulated_devices_agree_with_one_alone() -> None:
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", DEVICES], env={**os.environ, **flags}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "agreed"
