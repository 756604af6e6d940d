"""The loop around the compiled chunks: reports, early stops, and what to do when numbers go wrong."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from lapwing.errors import LapwingError
from lapwing.health import Problem, ProblemError
from lapwing.training.step import Metrics, Program, TrainState


class Report(NamedTuple):
    """One line of a run's history."""

    step: int
    steps: int
    metrics: Metrics
    extra: dict[str, float]


class LearningDivergedError(LapwingError):
    """Learning produced NaN or infinity.

    ``state`` is the last good one, ``step`` its number of steps, ``history`` what was reported until then, and
    ``models`` the representations read from it, one per seed; none if it went wrong before the first report.
    """

    def __init__(self, message: str, state: TrainState, step: int, history: list[Report]) -> None:
        """Keep what was good."""
        super().__init__(message)
        self.state = state
        self.step = step
        self.history = history
        self.models: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Its words alone travel between processes: the state and the models would not survive it."""
        return LapwingError, (str(self),)


class NetworkCollapsedError(ProblemError):
    """The network's outputs depend on each other: they span fewer directions than components were asked for.

    ``models`` holds the representation of as many components as there are.
    """

    def __init__(self, problem: Problem, model: Any) -> None:
        """Keep what is left."""
        super().__init__(problem)
        self.models = [model]


# Called with the state after each chunk: numbers to report, and whether to stop.
Inspect = Callable[[TrainState], tuple[dict[str, float], bool]]

# Called after each report with the state, the whole history, and whether this is the end.
Keep = Callable[[TrainState, list[Report], bool], None]


def run_program(
    program: Program,
    state: TrainState,
    data: Any,
    steps: int,
    log_every: int,
    inspect: Inspect | None = None,
    report: Callable[[Report], None] | None = None,
    past: Sequence[Report] = (),
    keep: Keep | None = None,
) -> tuple[TrainState, list[Report]]:
    """Train for ``steps`` steps in chunks of ``log_every``, or until ``inspect`` says stop.

    ``past`` is what was reported before ``state`` was reached, where learning goes on; the history returned begins
    with it.

    Raises:
        LearningDivergedError: if the loss or a trained weight is not finite at the end of a chunk.
    """
    history = list(past)
    done = history[-1].step if history else 0
    good = jax.device_get(state)
    while done < steps:
        size = min(log_every, steps - done)
        state, metrics = program.run(state, data, size)
        reached = jax.device_get(state)
        # The loss is of the weights before the last step, which may have spoilt them.
        wrong = None if _all_finite((metrics.loss, reached.trained)) else "the loss or the weights are no longer finite"
        extra: dict[str, float] = {}
        stop = False
        if wrong is None and inspect is not None:
            try:
                extra, stop = inspect(reached)
            except ProblemError as error:
                wrong = error.problem.words
        if wrong is not None:
            left = "the last good state is kept" if history else "nothing is left"
            raise LearningDivergedError(
                f"learning diverged between steps {done} and {done + size}: {wrong}. "
                f"Lower learning_rate or barrier_rate; {left}",
                good,
                done,
                history,
            )
        done += size
        good = reached
        history.append(Report(done, steps, jax.device_get(metrics), extra))
        if report is not None:
            report(history[-1])
        if keep is not None:
            keep(good, history, stop or done == steps)
        if stop:
            break
    return good, history


def _all_finite(tree: Any) -> bool:
    return all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in jax.tree.leaves(tree))


def spread_over_devices(state: TrainState, seeds: int) -> TrainState:
    """Lay the leading axis of a many-seed state over all devices that JAX sees, as far as they divide it evenly."""
    devices = jax.devices()
    usable = max(count for count in range(1, len(devices) + 1) if seeds % count == 0)
    if usable == 1:
        return state
    mesh = jax.make_mesh((usable,), ("seeds",), axis_types=(AxisType.Auto,), devices=devices[:usable])
    by_seed = PartitionSpec("seeds")  # type: ignore[no-untyped-call]
    spread: TrainState = jax.device_put(state, NamedSharding(mesh, by_seed))
    return spread


def history_rows(history: list[Report]) -> list[dict[str, float]]:
    """The history as flat rows of numbers, for files; seeds are averaged where there are several."""
    rows = []
    for line in history:
        scalars = {name: float(np.mean(getattr(line.metrics, name))) for name in Metrics._fields if name != "readings"}
        readings = np.asarray(line.metrics.readings)
        means = readings.reshape(-1, readings.shape[-1]).mean(axis=0)
        duals = {f"reading_{i + 1}": float(value) for i, value in enumerate(means)}
        rows.append({"step": float(line.step), **scalars, **line.extra, **duals})
    return rows
