"""The training step against the same step written out, and what the compiled program promises."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.encoders.networks import build_encoder
from lapwing.objectives import allo
from lapwing.operators.lags import endless_gaps
from lapwing.training.exact_batches import exact_batches
from lapwing.training.sampled_batches import sampled_batches
from lapwing.training.step import Program, make_program

RATE = 1e-2
OBJECTIVE = allo(barrier=1.0, dual_rate=0.05)


def small_encoder(seed: int = 0) -> Any:
    key = jax.random.key(seed)
    return build_encoder("fourier", (2,), 3, key, hidden=(8,), scales=(3.0,), features_per_scale=4)


@pytest.fixture(scope="module")
def batches() -> Any:
    data = lw.collect("GridMaze-7", steps=500, seed=0)
    return sampled_batches(data, endless_gaps([0.9]), 32)


@pytest.fixture(scope="module")
def program(batches: Any) -> Program:
    return make_program(small_encoder(), batches, OBJECTIVE, optax.adam(RATE), None)


def written_out(batches: Any, steps: int) -> tuple[list[np.ndarray], Any]:
    """The same training without scan or program: Adam by its formula, the objective's own functions."""
    encoder, state = small_encoder(), OBJECTIVE.init(3)
    layers, rest = eqx.partition(encoder.network, eqx.is_array)
    layers = jax.device_get(layers)
    mean, square = jax.tree.map(np.zeros_like, layers), jax.tree.map(np.zeros_like, layers)

    def loss(layers: Any, state: Any, draw: Any) -> Any:
        whole = eqx.tree_at(lambda e: e.network, encoder, eqx.combine(layers, rest))
        return OBJECTIVE.loss(state, batches.values(whole, batches.data, draw))

    gradient, draw_of, update = jax.jit(jax.grad(loss, has_aux=True)), jax.jit(batches.draw), jax.jit(OBJECTIVE.update)
    for step in range(steps):
        draw = draw_of(jax.random.fold_in(jax.random.key(7), step), batches.data)
        found, info = jax.device_get(gradient(layers, state, draw))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, found)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, square, found)
        size = RATE * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        layers = jax.tree.map(
            lambda w, m, v, size=size: np.float32(w - size * m / (np.sqrt(v) + 1e-8)), layers, mean, square
        )
        state = update(state, info)
    return jax.tree.leaves(layers), state


def test_a_chunk_is_the_step_written_out(program: Program, batches: Any) -> None:
    state, _ = program.run(program.init(small_encoder(), jax.random.key(7)), batches.data, 4)
    layers, objective = written_out(batches, 4)
    for found, expected in zip(jax.tree.leaves(state.trained), layers, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(state.objective.duals, objective.duals, rtol=1e-3, atol=1e-6)
    assert int(state.step) == 4


def test_metrics_are_those_of_the_last_step(program: Program, batches: Any) -> None:
    whole, metrics = program.run(program.init(small_encoder(), jax.random.key(7)), batches.data, 4)
    part, _ = program.run(program.init(small_encoder(), jax.random.key(7)), batches.data, 3)
    state, last = program.run(part, batches.data, 1)
    assert float(metrics.loss) == pytest.approx(float(last.loss), rel=1e-4)
    assert float(metrics.loss) == pytest.approx(float(metrics.graph + metrics.dual + metrics.penalty), rel=1e-5)
    for one, other in zip(jax.tree.leaves(whole.trained), jax.tree.leaves(state.trained), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_chunk_is_compiled_once_for_each_length(program: Program, batches: Any) -> None:
    def run(*lengths: int) -> int:
        state = program.init(small_encoder(), jax.random.key(0))
        for length in lengths:
            state, _ = program.run(state, batches.data, length)
        assert int(state.step) == sum(lengths)
        return int(program.run._cache_size())  # type: ignore[attr-defined]

    once = run(3, 1)
    assert once >= 2
    assert run(3, 3, 1, 3, 1) == once
    assert run(2) == once + 1


def test_only_what_is_to_be_trained_is_trained(program: Program, batches: Any) -> None:
    start = small_encoder()
    state, _ = program.run(program.init(small_encoder(), jax.random.key(7)), batches.data, 3)
    end = program.encoder(state)
    np.testing.assert_array_equal(end.frequencies.array, start.frequencies.array)
    for before, after in zip(start.network.layers, end.network.layers, strict=True):
        assert np.abs(np.asarray(after.weight) - np.asarray(before.weight)).max() > 0.01


def test_with_seeds_every_array_has_a_leading_axis_and_each_seed_its_own_way() -> None:
    batches = exact_batches(lw.operator("GridMaze-7"), endless_gaps([0.9]))
    program = make_program(small_encoder(), batches, OBJECTIVE, optax.adam(RATE), 2)
    stacked = jax.tree.map(
        lambda *leaves: jnp.stack(leaves), *(eqx.filter(small_encoder(seed), eqx.is_array) for seed in (0, 1))
    )
    state = program.init(stacked, jnp.stack([jax.random.key(0), jax.random.key(1)]))
    state, metrics = program.run(state, batches.data, 2)
    assert all(leaf.shape[0] == 2 for leaf in jax.tree.leaves(state))
    assert metrics.loss.shape == (2,)
    assert metrics.readings.shape == (2, 3)
    assert float(metrics.loss[0]) != float(metrics.loss[1])
