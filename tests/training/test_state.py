"""The training step against the same step written out, and what the compiled program promises."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.encoders import build_encoder
from lapwing.objectives import allo
from lapwing.operators.lags import geometric_lags
from lapwing.training.batches import PairSampler, exact_table, pair_sampler
from lapwing.training.state import TrainState, init, run_steps, stacked

RATE = 1e-2
OBJECTIVE = allo(barrier=1.0, dual_rate=0.05)
OPTIMISER = optax.adam(RATE)


def small_encoder(seed: int = 0) -> Any:
    key = jax.random.key(seed)
    return build_encoder("fourier", (2,), 3, key, hidden=(8,), scales=(3.0,), features_per_scale=4)


@pytest.fixture(scope="module")
def source() -> PairSampler:
    return pair_sampler(lw.collect("GridMaze-7", steps=500, seed=0), geometric_lags([0.9]), 32)


def first_state(seed: int = 7, network: int = 0) -> TrainState:
    return init(small_encoder(network), OBJECTIVE, OPTIMISER, jax.random.key(seed))


RUN = jax.jit(run_steps, static_argnums=2)


def written_out(source: PairSampler, steps: int) -> tuple[list[np.ndarray], Any]:
    """The same training without scan or program: Adam by its formula, the objective's own functions."""
    encoder, state = small_encoder(), OBJECTIVE.init(3)
    layers, rest = eqx.partition(encoder.module.network, eqx.is_array)
    layers = jax.device_get(layers)
    mean, square = jax.tree.map(np.zeros_like, layers), jax.tree.map(np.zeros_like, layers)

    def loss(layers: Any, state: Any, draw: Any) -> Any:
        whole = eqx.tree_at(lambda e: e.module.network, encoder, eqx.combine(layers, rest))
        return OBJECTIVE.loss(state, source.batch(draw).values(whole))

    gradient, draw_of, update = (
        jax.jit(jax.grad(loss, has_aux=True)),
        jax.jit(lambda key: source.draw(key)),
        jax.jit(OBJECTIVE.update),
    )
    for step in range(steps):
        draw = draw_of(jax.random.fold_in(jax.random.key(7), step))
        found, seen = jax.device_get(gradient(layers, state, draw))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, found)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, square, found)
        size = RATE * np.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        layers = jax.tree.map(
            lambda w, m, v, size=size: np.float32(w - size * m / (np.sqrt(v) + 1e-8)), layers, mean, square
        )
        state = update(state, seen.aux)
    return jax.tree.leaves(layers), state


def test_a_chunk_is_the_step_written_out(source: PairSampler) -> None:
    state, _ = RUN(first_state(), source, 4)
    layers, objective = written_out(source, 4)
    for found, expected in zip(jax.tree.leaves(state.trained), layers, strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(state.objective_state.duals, objective.duals, rtol=1e-3, atol=1e-6)
    assert int(state.step) == 4


def test_info_is_that_of_the_last_step(source: PairSampler) -> None:
    whole, info = RUN(first_state(), source, 4)
    state, last = RUN(RUN(first_state(), source, 3)[0], source, 1)
    assert float(info.loss) == pytest.approx(float(last.loss), rel=1e-4)
    terms = sum(float(info.metrics[name]) for name in ("graph", "dual", "penalty"))
    assert float(info.loss) == pytest.approx(terms, rel=1e-5)
    for one, other in zip(jax.tree.leaves(whole.trained), jax.tree.leaves(state.trained), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_chunk_is_compiled_once_for_each_length(source: PairSampler) -> None:
    run_compiled = jax.jit(lambda *arguments: run_steps(*arguments), static_argnums=2)

    def run(*lengths: int) -> int:
        state = first_state()
        for length in lengths:
            state, _ = run_compiled(state, source, length)
        assert int(state.step) == sum(lengths)
        return int(run_compiled._cache_size())

    once = run(3, 1)
    assert run(3, 3, 1, 3, 1) == once
    assert run(2) == once + 1


def test_only_what_is_to_be_trained_is_trained(source: PairSampler) -> None:
    start, end = small_encoder(), RUN(first_state(), source, 3)[0].encoder
    np.testing.assert_array_equal(end.module.frequencies.array, start.module.frequencies.array)
    for before, after in zip(start.module.network.layers, end.module.network.layers, strict=True):
        assert np.abs(np.asarray(after.weight) - np.asarray(before.weight)).max() > 0.01


def test_with_seeds_every_array_has_a_leading_axis_and_each_seed_its_own_way() -> None:
    table, _ = exact_table(lw.operator("GridMaze-7"), geometric_lags([0.9]))
    state = stacked([first_state(seed, network=seed) for seed in (0, 1)])
    state, info = RUN(state, table, 2)
    assert all(leaf.shape[0] == 2 for leaf in jax.tree.leaves(state))
    assert info.loss.shape == (2,)
    assert info.eigenvalues.shape == (2, 3)
    assert float(info.loss[0]) != float(info.loss[1])
