"""Rounds of refitting: cut the states into cells of the representation, solve, fit the network, and again."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.encoders.layers import Dense, Perceptron
from lapwing.training.batches import PairSampler, Source, Streamed, rows_of
from lapwing.training.fitting import (
    NOISY_LAG,
    PARTITIONS,
    REGRESSION,
    Targets,
    cell_targets,
    fit_source,
    of_neighbours,
    streamed_fit,
)
from lapwing.training.loop import Progress, Trained, train
from lapwing.training.smooth_functions import AnyTargets, SmoothTargets, smooth_targets, table_of_rows
from lapwing.training.state import TrainState, init, one_seed, stacked
from lapwing.training.task import Task

ENCODED_ROWS = 1 << 13
# Rows from which the few hundred weights of a last layer are solved.
SOLVED_ROWS = 1 << 18
# States from which cells are made before the last round, and episodes that must be among them.
ENOUGH_STATES = 1 << 18
FEWEST_EPISODES = 100
# States at which a network is fitted to smooth functions.
FITTED_STATES = 1 << 20

Callback = Callable[[Progress], None]

Inspect = Callable[[TrainState, AnyTargets], list[dict[str, float]]]
"""Numbers to report of one seed's network, given what it is fitted to."""


class Refitted(NamedTuple):
    """Networks after the last round.

    Attributes:
        end: state, history and seconds.
        targets: of each seed, what its network was fitted to last.
    """

    end: Trained
    targets: list[AnyTargets]


def refit(
    task: Task,
    start: Trained,
    inspect: Inspect | None = None,
    callback: Callback | None = None,
    folder: Path | None = None,
) -> Refitted:
    """All rounds for every seed, one seed after another.

    Args:
        task: what is learned.
        start: where the objective's steps have ended.
        inspect: looks at the network after each chunk.
        callback: called with the progress after each chunk.
        folder: for checkpoints, in folders of their own for each seed and round.

    Returns:
        The networks and what they were fitted to.
    """
    # Optimisers for each round, not for each seed: states of several seeds are stacked, and share them.
    optimisers = [task.optimiser(steps) for steps in task.round_steps]
    found = [
        _refit_seed(task, start, number, optimisers, inspect, callback, folder) for number in range(len(task.seeds))
    ]
    ends = [one.end for one in found]
    lines = [_stacked_lines(list(row)) for row in zip(*(end.history for end in ends), strict=True)]
    seconds = start.seconds + sum(end.seconds for end in ends)
    state = stacked([end.state for end in ends])
    return Refitted(Trained(state, start.history + lines, seconds, True), [one.targets[0] for one in found])


def _refit_seed(
    task: Task,
    start: Trained,
    number: int,
    optimisers: list[optax.GradientTransformation],
    inspect: Inspect | None,
    callback: Callback | None,
    folder: Path | None,
) -> Refitted:
    """All rounds for one seed; its history begins with the first of them."""
    assert isinstance(task.data, Trajectories)
    seed, config = task.seeds[number], task.config
    state = one_seed(start.state, number, len(task.seeds))
    eigenvalues = jnp.asarray(one_seed(start.history[-1].eigenvalues, number, len(task.seeds)), dtype=jnp.float32)
    data, partitions = _some_episodes(task.data, task.held_bytes), 1
    longest_lag = 1 if task.directedness is not None and task.directedness.is_directed else NOISY_LAG
    history: list[Progress] = []
    done, spent = start.history[-1].step, 0.0
    for turn, steps in enumerate(task.round_steps):
        last = turn == len(task.round_steps) - 1
        if last:
            # The rounds before only have to find better cells.
            data, partitions = task.data, PARTITIONS
        rng = np.random.default_rng([seed, turn])
        values = encoded(state.encoder, data)
        smooth = None
        if last and config.smooth_functions:
            smooth = smooth_targets(values, data, config.dim, task.width, rng)
        targets = smooth or cell_targets(values, data, config.dim, task.width, partitions, rng, longest_lag)
        key = jax.random.fold_in(jax.random.key(seed), 1 + turn)
        end = train(
            replace(init(state.encoder, REGRESSION, optimisers[turn], key), objective_state=eigenvalues),
            _fit_source(task, data, targets, seed),
            steps,
            config.log_every,
            _inspecting(inspect, targets if last else None),
            _reporting(callback, done, config.steps),
            None if folder is None else folder / f"seed-{seed}-round-{turn + 1}",
            partial(_identity, task, seed, turn + 1),
        )
        state, spent = end.state, spent + end.seconds
        history += [_moved(line, done, config.steps) for line in end.history]
        done += steps
    if config.solve_last_layer:
        started = time.perf_counter()
        wanted = of_neighbours(targets, data) if isinstance(targets, Targets) else targets
        state = with_solved_last_layer(state, data.observations, wanted)
        spent += time.perf_counter() - started
    return Refitted(Trained(state, history, spent, True), [targets])


def with_solved_last_layer(
    state: TrainState, observations: NDArray[Any], targets: AnyTargets, counts: NDArray[np.int64] | None = None
) -> TrainState:
    """The state with the last dense layer of its network solved: least squares towards the targets over all rows.

    Steps of small batches leave the last layer noisy, and so the components rough at one step. Where rows are few, the
    solution stays near the layer that was trained.

    Args:
        state: of a network that was fitted to the targets.
        observations: (n, ...) all rows; of many, some spread over all are taken.
        targets: at these rows.
        counts: (n,) how often each row counts; None where each counts once.

    Returns:
        The state; the same one where the network does not end in a perceptron of this package with linear outputs.
    """
    encoder = state.encoder
    network = getattr(encoder.module, "network", None)
    if not isinstance(network, Perceptron) or network.outputs != "linear":
        return state
    last = _last_layer(encoder)
    trained = np.concatenate([last.weight, last.bias[None]]).astype(np.float64)
    features = replace(eqx.tree_at(_last_layer, encoder, eqx.nn.Identity()), dim=len(last.weight))
    gram, cross = np.zeros((len(trained), len(trained))), np.zeros(trained.shape)
    chosen = np.arange(0, len(observations), -(-len(observations) // SOLVED_ROWS))
    for begin in range(0, len(chosen), ENCODED_ROWS):
        rows = chosen[begin : begin + ENCODED_ROWS]
        values = features.encode(rows_of(observations, rows))
        values = np.pad(values, ((0, 0), (0, 1)), constant_values=1.0)
        weighted = values if counts is None else values * counts[rows, None].astype(np.float32)
        gram += weighted.T @ values
        cross += weighted.T @ targets.at(rows).astype(np.float32)
    total = len(chosen) if counts is None else counts[chosen].sum()
    ridge = np.trace(gram) / total * np.eye(len(gram))
    solved = jnp.asarray(trained + np.linalg.solve(gram + ridge, cross - gram @ trained), jnp.float32)
    return replace(state, trained=eqx.tree_at(_last_layer, state.trained, Dense(solved[:-1], solved[-1])))


def _last_layer(encoder: Any) -> Any:
    return encoder.module.network.layers[-1]


def _fit_source(task: Task, data: Trajectories, targets: AnyTargets, seed: int) -> Source | Streamed:
    """Batches of states with their targets, in parts where the data are larger than what may be held."""
    if isinstance(targets, SmoothTargets):
        # Of smooth functions of few inputs some states say as much as all.
        rows = np.arange(0, targets.num_rows, -(-targets.num_rows // FITTED_STATES))
        return fit_source(rows_of(data.observations, rows), table_of_rows(targets, rows), task.fitted_rows)
    targets = of_neighbours(targets, data)
    limit = task.held_bytes
    if data is task.data and isinstance(task.source, PairSampler) and limit is None:
        # On the device already.
        return fit_source(task.source.observations, targets, task.fitted_rows)
    if limit is None or data.observations.nbytes <= limit:
        return fit_source(data.observations, targets, task.fitted_rows)
    return streamed_fit(data.observations, targets, task.fitted_rows, limit, seed)


def _some_episodes(data: Trajectories, held_bytes: int | None) -> Trajectories:
    """Episodes with about :data:`ENOUGH_STATES` states, from all over the data; all of them where they are few.

    Where only a part of the data may be held, no more than that.
    """
    enough = ENOUGH_STATES
    if held_bytes is not None:
        enough = max(1, min(enough, held_bytes // max(data.observations[:1].nbytes, 1)))
    every = data.num_states // enough
    if every < 2 or data.num_episodes < FEWEST_EPISODES * every:
        return data
    return data.take(range(0, data.num_episodes, every))


def _inspecting(
    inspect: Inspect | None, targets: AnyTargets | None
) -> Callable[[TrainState], tuple[list[dict[str, float]], bool]] | None:
    """What the loop calls after each chunk; before the last round there is nothing to look at."""
    return None if inspect is None or targets is None else lambda state: (inspect(state, targets), False)


def encoded(encoder: Any, data: Trajectories) -> NDArray[np.float32]:
    """The network's outputs at every state, a block at a time.

    Args:
        encoder: the network.
        data: without a table.

    Returns:
        (states, width).
    """
    blocks = range(0, data.num_states, ENCODED_ROWS)
    return np.concatenate([encoder.encode(np.asarray(data.observations[i : i + ENCODED_ROWS])) for i in blocks])


def _reporting(callback: Callback | None, done: int, steps: int) -> Callback | None:
    """The callback, told of a round's progress as a part of the whole."""
    return None if callback is None else lambda line: callback(_moved(line, done, steps))


def _identity(task: Task, seed: int, turn: int) -> dict[str, Any]:
    """What two runs must share for one to continue the other's round."""
    return {**task.identity(), "seed": seed, "round": turn}


def _moved(line: Progress, done: int, steps: int) -> Progress:
    """The progress of a round as a part of the whole."""
    return line._replace(step=line.step + done, steps=steps)


def _stacked_lines(lines: list[Progress]) -> Progress:
    """The progress of all seeds at the same step."""
    if len(lines) == 1:
        return lines[0]
    metrics = {name: np.stack([line.metrics[name] for line in lines]) for name in lines[0].metrics}
    seen = [numbers for line in lines for numbers in line.by_seed]
    return lines[0]._replace(metrics=metrics, eigenvalues=np.stack([line.eigenvalues for line in lines]), by_seed=seen)
