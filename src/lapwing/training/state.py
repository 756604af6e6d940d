"""The training state: ``state = init(...)``, ``state, info = step(state, batch)``, pure and jit-compatible.

:func:`lapwing.learn` is a loop around these; a loop of your own may draw its batches from data that grow.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh

from lapwing.devices import SEEDS, drawn_everywhere, encoded_by_rows
from lapwing.encoders.layers import trainable_filter
from lapwing.errors import ArgumentError
from lapwing.objectives import Evaluation, Objective
from lapwing.training.batches import Batch, Source

SEEDS_AT_ONCE = 5


class TrainState(eqx.Module):
    """All that the next step needs. Arrays are leaves of the pytree; functions and structure are static.

    Attributes:
        trained: the encoder's trained arrays.
        fixed: its other arrays.
        optimiser_state: of the optax optimiser.
        objective_state: of the objective.
        key: from which ``learn`` draws the batches of each step.
        step: steps made so far.
        structure: the encoder without its arrays, as hashable leaves and a tree definition.
        objective: the objective itself.
        optimiser: the optimiser itself.
    """

    trained: Any
    fixed: Any
    optimiser_state: Any
    objective_state: Any
    key: jax.Array
    step: jax.Array
    structure: Any = eqx.field(static=True)
    objective: Objective = eqx.field(static=True)
    optimiser: optax.GradientTransformation = eqx.field(static=True)

    @property
    def encoder(self) -> Any:
        """The encoder with its present weights."""
        return self.encoder_with(self.trained)

    def encoder_with(self, trained: Any) -> Any:
        """The encoder with other weights.

        Args:
            trained: like :attr:`trained`.

        Returns:
            An encoder.
        """
        leaves, definition = self.structure
        return eqx.combine(trained, self.fixed, jax.tree.unflatten(definition, leaves))


class StepInfo(NamedTuple):
    """What one step reports; nothing of it is needed for the next.

    Attributes:
        loss: before the step.
        eigenvalues: (d,) the objective's own estimate, of the operator it is trained with.
        metrics: the objective's scalars, by name.
    """

    loss: jax.Array
    eigenvalues: jax.Array
    metrics: dict[str, jax.Array]


def init(encoder: Any, objective: Objective, optimiser: optax.GradientTransformation, key: jax.Array) -> TrainState:
    """The state before the first step.

    Args:
        encoder: an Equinox module from (n, ...) observations to (n, d) components with an attribute ``dim``: one of
            :mod:`lapwing.encoders`, or your own inside :func:`lapwing.encoders.own_encoder`.
        objective: e.g. ``lw.allo()``.
        optimiser: e.g. ``optax.adam(1e-3)``.
        key: a JAX random key.

    Returns:
        The state.

    Example:
        >>> import lapwing as lw
        >>> from lapwing.encoders import build_encoder
        >>> network = build_encoder("fourier", (2,), 3, jax.random.key(0))
        >>> state = init(network, lw.allo(), optax.adam(1e-3), jax.random.key(1))
        >>> from lapwing.training import Pairs
        >>> pairs = Pairs(*jax.random.normal(jax.random.key(2), (4, 16, 2)))
        >>> state, info = jax.jit(step)(state, pairs)
        >>> int(state.step), info.eigenvalues.shape
        (1, (3,))
    """
    dim = getattr(encoder, "dim", None)
    if dim is None:
        raise ArgumentError(
            "the encoder must have its number of components as .dim; wrap it in lapwing.encoders.own_encoder"
        )
    arrays, structure = eqx.partition(encoder, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, np.ndarray))
    trained, fixed = eqx.partition(
        arrays, jax.tree.map(lambda mark, leaf: mark and eqx.is_array(leaf), trainable_filter(encoder), encoder)
    )
    leaves, definition = jax.tree.flatten(structure)
    return TrainState(
        trained,
        fixed,
        optimiser.init(trained),
        objective.init(int(dim)),
        key,
        jnp.zeros((), dtype=jnp.int32),
        (tuple(leaves), definition),
        objective,
        optimiser,
    )


def step(state: TrainState, batch: Batch, mesh: Mesh | None = None) -> tuple[TrainState, StepInfo]:
    """One training step: descend on the loss, then update the objective (dual ascent, barrier growth).

    Args:
        state: from :func:`init` or the step before.
        batch: anything with ``values(encode) -> Values``: :class:`Pairs`, :class:`ExactTable`, or a module of your own.
        mesh: from :func:`device_mesh`, over which the rows of the batch are divided; None for one device.

    Returns:
        The next state, and what to log.
    """

    def loss(trained: Any) -> tuple[jax.Array, Evaluation]:
        encode = encoded_by_rows(state.encoder_with(trained), mesh)
        return state.objective.loss(state.objective_state, batch.values(encode))

    (value, seen), gradients = jax.value_and_grad(loss, has_aux=True)(state.trained)
    updates, optimiser_state = state.optimiser.update(gradients, state.optimiser_state, state.trained)
    objective_state = state.objective.update(state.objective_state, seen.aux)
    following = replace(
        state,
        trained=optax.apply_updates(state.trained, updates),
        optimiser_state=optimiser_state,
        objective_state=objective_state,
        step=state.step + 1,
    )
    return following, StepInfo(value, state.objective.eigenvalues(objective_state, seen.aux), seen.metrics)


def run_steps(state: TrainState, source: Source, steps: int, mesh: Mesh | None = None) -> tuple[TrainState, StepInfo]:
    """Many steps in one scan, each with a batch of its own; compile it with ``steps`` static.

    Args:
        state: of one seed, or of several with a leading axis on every array.
        source: of batches; what a step draws is a function of the state's key and the step's number alone.
        steps: how many.
        mesh: from :func:`device_mesh`, over which seeds and rows are divided; None for one device.

    Returns:
        The state after them, and the info of the last step.
    """
    if not state.step.ndim:
        return _scanned(state, source, steps, mesh)
    if mesh is not None:
        return jax.vmap(lambda one: _scanned(one, source, steps, mesh), spmd_axis_name=SEEDS)(state)
    # On one device a handful of networks stays in the processor's cache through all steps of the chunk; twenty do not,
    # and each step would wait for memory.
    return jax.lax.map(lambda one: _scanned(one, source, steps, None), state, batch_size=SEEDS_AT_ONCE)


def _scanned(state: TrainState, source: Source, steps: int, mesh: Mesh | None) -> tuple[TrainState, StepInfo]:
    # The random part of all steps at once: far cheaper than a little at every step.
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(state.key, state.step + jnp.arange(steps))
    drawn = jax.vmap(source.draw)(keys)
    # All but the last step report nothing, so that metrics cost the steps between them nothing.
    all_but_last, last = (jax.tree.map(lambda leaf, part=part: leaf[part], drawn) for part in (slice(-1), -1))

    def next_step(state: TrainState, draw: Any) -> tuple[TrainState, StepInfo]:
        return step(state, source.batch(drawn_everywhere(draw, mesh)), mesh)

    state, _ = jax.lax.scan(lambda s, draw: (next_step(s, draw)[0], None), state, all_but_last, length=steps - 1)
    return next_step(state, last)


def stacked(states: list[TrainState]) -> TrainState:
    """States of several seeds as one with a leading axis; a single one as it is.

    Args:
        states: one per seed, alike but for their numbers.

    Returns:
        One state.
    """
    if len(states) == 1:
        return states[0]
    together: TrainState = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    return together


def one_seed(tree: Any, number: int, seeds: int) -> Any:
    """What belongs to one of several seeds.

    Args:
        tree: arrays with a leading axis for seeds, unless there is one seed only.
        number: of the seed, counted from 0.
        seeds: how many there are.

    Returns:
        The tree without that axis.
    """
    return tree if seeds == 1 else jax.tree.map(lambda leaf: leaf[number], tree)
