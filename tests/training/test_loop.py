"""The training loop: what it reports, when it stops, and what it keeps."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.objectives import Evaluation, Objective, Values
from lapwing.training.config import make_config
from lapwing.training.loop import LearningDivergedError, Progress, Trained, train
from lapwing.training.state import TrainState, init, stacked
from lapwing.training.task import prepare

SMALL: dict[str, Any] = {"dim": 3, "oversampling": 1, "hidden": (16,), "steps": 10, "log_every": 4}


class Weight(eqx.Module):
    """A network of one number."""

    weight: jax.Array
    dim: int = eqx.field(static=True, default=1)

    def __call__(self, batch: jax.Array) -> jax.Array:
        return jnp.broadcast_to(self.weight, (len(batch), 1))


class Nothing(eqx.Module):
    """A source of batches that hold nothing."""

    def draw(self, key: jax.Array) -> tuple[()]:
        return ()

    def batch(self, draw: tuple[()]) -> "Nothing":
        return self

    def values(self, encode: Any) -> Values:
        u = encode(jnp.zeros((1, 1)))
        return Values.of_table(u, u)


def counting_state(
    loss_at: dict[int, float] | None = None, weight_at: float | None = None, seeds: int = 1
) -> TrainState:
    """Its weight grows by one per step; its loss, or the weight of the last seed, is spoilt at some step."""

    def loss(state: jax.Array, values: Values) -> tuple[jax.Array, Evaluation]:
        weight = values.here[0, 0]
        slope = -weight
        if weight_at is not None:
            spoilt = (state == weight_at) & (jax.lax.stop_gradient(weight) % 1000 < 500)
            slope = slope * jnp.where(spoilt, jnp.nan, 1.0)
        value = slope + jax.lax.stop_gradient(weight + 1.0 / (state + 1))
        for step, bad in (loss_at or {}).items():
            value = jnp.where(state + 1 == step, bad, value)
        return value, Evaluation((), {})

    objective = Objective(
        lambda dim: jnp.zeros(()), loss, lambda state, aux: state + 1, lambda state, aux: jnp.zeros(1)
    )
    optimiser = optax.sgd(1.0)
    starts = [0.0] if seeds == 1 else [500.0] * (seeds - 1) + [0.0]
    return stacked([init(Weight(jnp.asarray(x)), objective, optimiser, jax.random.key(0)) for x in starts])


def test_progress_comes_at_the_ends_of_chunks_and_the_last_is_cut_to_fit() -> None:
    heard: list[Progress] = []
    state, history, _, finished = train(counting_state(), Nothing(), 10, 4, callback=heard.append)
    assert [line.step for line in history] == [4, 8, 10]
    assert [line.steps for line in history] == [10, 10, 10]
    assert [float(line.metrics["loss"]) for line in history] == pytest.approx([1 / 4, 1 / 8, 1 / 10], rel=1e-4)
    assert heard == history
    assert finished
    assert int(state.step) == 10


def test_inspection_adds_numbers_and_stops_the_run() -> None:
    seen: list[int] = []

    def inspect(state: TrainState) -> tuple[list[dict[str, float]], bool]:
        seen.append(int(state.step))
        return [{"angle": 1.0 / int(state.step)}], int(state.step) >= 6

    state, history, *_ = train(counting_state(), Nothing(), 100, 3, inspect)
    assert seen == [3, 6]
    assert [line.summary["angle"] for line in history] == pytest.approx([1 / 3, 1 / 6])
    assert int(state.step) == 6


@pytest.mark.parametrize("spoilt", [{"loss_at": {6: np.nan}}, {"loss_at": {6: np.inf}}, {"weight_at": 5}], ids=str)
def test_a_loss_or_a_weight_that_is_not_finite_stops_with_the_last_good_state(spoilt: dict[str, Any]) -> None:
    with pytest.raises(LearningDivergedError, match="between steps 3 and 6") as caught:
        train(counting_state(**spoilt), Nothing(), 100, 3)
    assert caught.value.step == 3
    assert float(caught.value.state.trained.weight) == 3.0
    assert isinstance(caught.value, lw.LapwingError)


def test_of_several_seeds_those_that_diverged_are_named() -> None:
    with pytest.raises(LearningDivergedError, match="diverged in 1 of 3 seeds between steps 4 and 8") as caught:
        train(counting_state(weight_at=5, seeds=3), Nothing(), 100, 4)
    assert caught.value.seeds == [2]


def test_a_huge_learning_rate_diverges_and_leaves_the_first_state() -> None:
    task = prepare(make_config(**SMALL, learning_rate=1e30), lw.operator("GridMaze-7"), [0], None, None)
    state = task.initial_state()
    with pytest.raises(LearningDivergedError, match="learning_rate") as caught:
        train(state, task.source, 10, 4)
    assert caught.value.step == 0
    # The loop works on a copy, so the caller's own weights are still there.
    for kept, expected in zip(jax.tree.leaves(caught.value.state.trained), jax.tree.leaves(state.trained), strict=True):
        np.testing.assert_array_equal(kept, expected)


def test_the_last_good_state_outlives_the_chunk_that_diverged() -> None:
    # The chunk is given its state to overwrite, so what is kept must not be the same memory.
    task = prepare(make_config(**SMALL), lw.operator("GridMaze-7"), [0], None, None)

    def build(late: float) -> TrainState:
        rate = optax.piecewise_constant_schedule(1e-3, {4: late})
        return init(task.initial_state().encoder, task.objective, optax.adam(rate), jax.random.key(1))

    with pytest.raises(LearningDivergedError) as caught:
        train(build(1e33), task.source, 8, 4)
    good = train(build(1.0), task.source, 4, 4).state
    assert caught.value.step == 4
    for kept, expected in zip(jax.tree.leaves(caught.value.state.trained), jax.tree.leaves(good.trained), strict=True):
        np.testing.assert_array_equal(kept, expected)
    np.testing.assert_array_equal(jax.random.key_data(caught.value.state.key), jax.random.key_data(jax.random.key(1)))


def run_seeds(seeds: list[int]) -> Trained:
    data = lw.collect("GridMaze-7", steps=2000, seed=0)
    task = prepare(make_config(**{**SMALL, "batches": "sampled", "batch_size": 64}), data, seeds, None, None)
    return train(task.initial_state(), task.source, 10, 5)


@pytest.fixture(scope="module")
def alone() -> Trained:
    return run_seeds([5])


def test_the_same_seed_gives_the_same_bits(alone: Trained) -> None:
    again = run_seeds([5])
    for one, other in zip(jax.tree.leaves(alone.state.trained), jax.tree.leaves(again.state.trained), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [line.row() for line in alone.history] == [line.row() for line in again.history]


@pytest.mark.slow
def test_a_seed_alone_and_among_three_agree_to_rounding(alone: Trained) -> None:
    state, history, *_ = run_seeds([1, 5, 9])
    for one, many in zip(jax.tree.leaves(alone.state.trained), jax.tree.leaves(state.trained), strict=True):
        np.testing.assert_allclose(many[1], one, rtol=1e-3, atol=1e-5)
        assert np.abs(many[0] - many[1]).max() > 1e-3
    found, expected = history[-1].metrics["loss"][1], alone.history[-1].metrics["loss"]
    assert float(found) == pytest.approx(float(expected), rel=1e-4)


def two_seeds() -> Progress:
    seen = [{"angle": 0.5, "cosine": 0.8}, {"angle": 0.3, "cosine": 0.9}]
    return Progress(5, 10, {"loss": np.array([1.0, 3.0])}, np.array([[0.1, 0.2], [0.3, 0.6]]), seen)


def test_rows_are_of_one_seed_or_means_with_the_largest_angle() -> None:
    own = {"step": 5.0, "loss": 3.0, "angle": 0.3, "cosine": 0.9, "eigenvalue_1": 0.3, "eigenvalue_2": 0.6}
    assert two_seeds().row(1) == pytest.approx(own)
    together = {"step": 5.0, "loss": 2.0, "angle": 0.5, "cosine": 0.85, "eigenvalue_1": 0.2, "eigenvalue_2": 0.4}
    assert two_seeds().row() == pytest.approx(together)
