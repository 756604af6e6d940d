"""One training step as a pure function, and its scan: what the engine compiles."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from lapwing.encoders.layers import trainable_filter
from lapwing.objectives.base import Evaluation, Objective
from lapwing.training.batches import Batches

SEEDS_AT_ONCE = 5


class TrainState(NamedTuple):
    """All that the next step needs, as arrays: trained and fixed parts of the encoder, optimiser, objective, key."""

    trained: Any
    fixed: Any
    optimiser: Any
    objective: Any
    key: jax.Array
    step: jax.Array


class Metrics(NamedTuple):
    """What is reported of the last step of a chunk."""

    loss: jax.Array
    eigenvalues: jax.Array
    terms: dict[str, jax.Array]


class Program(NamedTuple):
    """Compiled pieces for one configuration.

    Attributes:
        init: ``(encoder, key) -> TrainState``.
        run: ``(state, data, steps) -> (state, Metrics)``, compiled once per number of steps.
        encoder: ``(state) -> encoder`` with the trained weights in place.
    """

    init: Callable[[Any, jax.Array], TrainState]
    run: Callable[[TrainState, Any, int], tuple[TrainState, Metrics]]
    encoder: Callable[[TrainState], Any]


def make_program(
    template: Any, batches: Batches, objective: Objective, optimiser: optax.GradientTransformation, seeds: int | None
) -> Program:
    """The training program of an encoder with the template's structure; with ``seeds``, that many at once.

    With seeds every array of the state has a leading axis, the data none.
    """
    static = eqx.partition(template, eqx.is_array)[1]
    filter_spec = trainable_filter(template)
    dim = int(template.dim)

    def init(encoder: Any, key: jax.Array) -> TrainState:
        arrays = eqx.filter(encoder, eqx.is_array)
        trained, fixed = eqx.partition(arrays, filter_spec)
        return TrainState(
            trained, fixed, optimiser.init(trained), objective.init(dim), key, jnp.zeros((), dtype=jnp.int32)
        )

    def loss(trained: Any, state: TrainState, data: Any, draw: Any) -> tuple[jax.Array, Evaluation]:
        encoder = eqx.combine(trained, state.fixed, static)
        return objective.loss(state.objective, batches.values(encoder, data, draw))

    def draws(state: TrainState, data: Any, steps: int) -> Any:
        # The random part of all steps at once: far cheaper than a little at every step.
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(state.key, state.step + jnp.arange(steps))
        return jax.vmap(batches.draw, in_axes=(0, None))(keys, data)

    def step(state: TrainState, data: Any, draw: Any) -> tuple[TrainState, tuple[jax.Array, Evaluation]]:
        (value, seen), gradients = jax.value_and_grad(loss, has_aux=True)(state.trained, state, data, draw)
        updates, optimiser_state = optimiser.update(gradients, state.optimiser, state.trained)
        following = TrainState(
            optax.apply_updates(state.trained, updates),
            state.fixed,
            optimiser_state,
            objective.update(state.objective, seen.aux),
            state.key,
            state.step + 1,
        )
        return following, (value, seen)

    def chunk(state: TrainState, data: Any, steps: int) -> tuple[TrainState, Metrics]:
        # All but the last step report nothing, so that metrics cost the steps between them nothing.
        drawn = draws(state, data, steps)
        all_but_last, last = (jax.tree.map(lambda leaf, part=part: leaf[part], drawn) for part in (slice(-1), -1))
        state, _ = jax.lax.scan(lambda s, draw: (step(s, data, draw)[0], None), state, all_but_last, length=steps - 1)
        state, (value, seen) = step(state, data, last)
        return state, Metrics(value, objective.eigenvalues(state.objective, seen.aux), seen.metrics)

    mapped = chunk if seeds is None else _over_seeds(chunk)
    return Program(
        init=init if seeds is None else jax.vmap(init),
        run=jax.jit(mapped, static_argnums=2, donate_argnums=0),
        encoder=lambda state: eqx.combine(state.trained, state.fixed, static),
    )


def _over_seeds(chunk: Callable[..., Any]) -> Callable[..., Any]:
    """The chunk for all seeds of a state: at once over several devices, else a few at a time.

    On one device a handful of networks stays in the processor's cache through all steps of the chunk; twenty do not,
    and each step would wait for memory.
    """

    def mapped(state: TrainState, data: Any, steps: int) -> tuple[TrainState, Metrics]:
        def one(seed_state: TrainState) -> tuple[TrainState, Metrics]:
            return chunk(seed_state, data, steps)

        if len(jax.devices()) > 1:
            return jax.vmap(one)(state)
        return jax.lax.map(one, state, batch_size=SEEDS_AT_ONCE)

    return mapped
