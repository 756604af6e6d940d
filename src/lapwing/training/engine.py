"""The loop around the compiled chunks: reports, early stops, and what to do when numbers go wrong."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from lapwing.diagnostics.problems import Problem, ProblemError
from lapwing.errors import LapwingError
from lapwing.training.step import Metrics, Program, TrainState


class Report(NamedTuple):
    """One line of a run's history.

    Attributes:
        step: steps made until now.
        steps: steps that are to be made.
        metrics: with several seeds each has a leading axis for them.
        by_seed: what was seen of each seed: the largest ``angle`` and, where there is a truth, similarities to it.
    """

    step: int
    steps: int
    metrics: Metrics
    by_seed: list[dict[str, float]]

    @property
    def extra(self) -> dict[str, float]:
        """What was seen of all seeds together: the largest of their angles, the mean of anything else."""
        names = dict.fromkeys(name for seen in self.by_seed for name in seen)
        columns = {name: [seen[name] for seen in self.by_seed if name in seen] for name in names}
        return {name: float((max if name == "angle" else np.mean)(column)) for name, column in columns.items()}


class LearningDivergedError(LapwingError):
    """Learning produced NaN or infinity.

    ``state`` is the last good one, ``step`` its number of steps, ``history`` what was reported until then, ``seeds``
    those it happened to, counted from 0, and ``models`` the representations read from the state, one per seed; none if
    it went wrong before the first report.
    """

    def __init__(self, message: str, state: TrainState, step: int, history: list[Report], seeds: list[int]) -> None:
        """Keep what was good."""
        super().__init__(message)
        self.seeds = seeds
        self.state = state
        self.step = step
        self.history = history
        self.models: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Its words alone travel between processes: the state and the models would not survive it."""
        return LapwingError, (str(self),)


class NetworkCollapsedError(ProblemError):
    """The network's outputs depend on each other: they span fewer directions than components were asked for.

    ``models`` holds the representation of as many components as there are, one per seed.
    """

    def __init__(self, problem: Problem, model: Any) -> None:
        """Keep what is left."""
        super().__init__(problem)
        self.models = [model]


class UnreadableSeedError(ProblemError):
    """Outputs of one seed, counted from 0, that nothing can be read from."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """Keep which one it is."""
        super().__init__(problem)
        self.seed = seed


# Called with the state after each chunk: numbers to report of each seed, and whether to stop.
Inspect = Callable[[TrainState], tuple[list[dict[str, float]], bool]]

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
        lost = _not_finite((metrics.loss, reached.trained), np.shape(metrics.loss))
        wrong = "the loss or the weights are no longer finite" if lost else None
        by_seed: list[dict[str, float]] = []
        stop = False
        if wrong is None and inspect is not None:
            try:
                by_seed, stop = inspect(reached)
            except UnreadableSeedError as error:
                wrong, lost = error.problem.words, [error.seed]
        if wrong is not None:
            left = "the last good state is kept" if history else "nothing is left"
            where = f" in {len(lost)} of {np.size(metrics.loss)} seeds" if np.ndim(metrics.loss) else ""
            raise LearningDivergedError(
                f"learning diverged{where} between steps {done} and {done + size}: {wrong}. "
                f"Lower learning_rate or barrier_rate; {left}",
                good,
                done,
                history,
                lost,
            )
        done += size
        good = reached
        history.append(Report(done, steps, jax.device_get(metrics), by_seed))
        if report is not None:
            report(history[-1])
        if keep is not None:
            keep(good, history, stop or done == steps)
        if stop:
            break
    return good, history


def _not_finite(tree: Any, seeds: tuple[int, ...]) -> list[int]:
    """Which seeds have NaN or infinity anywhere, counted from 0; ``seeds`` is the shape of their axis, if any."""
    sound = np.ones(seeds or (1,), dtype=bool)
    for leaf in jax.tree.leaves(tree):
        sound &= np.isfinite(np.asarray(leaf)).reshape(len(sound), -1).all(axis=1)
    return np.flatnonzero(~sound).tolist()


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


def one_seed_of(metrics: Metrics, seed: int) -> Metrics:
    """The metrics of one seed, counted from 0; a single one has no axis to be picked from."""
    if not np.ndim(metrics.loss):
        return metrics
    own: Metrics = jax.tree.map(lambda column: column[seed], metrics)
    return own


def history_rows(history: list[Report], seed: int | None = None) -> list[dict[str, float]]:
    """The history as flat rows of numbers, for files: of one seed, counted from 0, or of all of them together."""
    rows = []
    for line in history:
        own = line.metrics if seed is None else one_seed_of(line.metrics, seed)
        seen = line.extra if seed is None else line.by_seed[seed] if line.by_seed else {}
        numbers = {name: float(np.mean(value)) for name, value in {"loss": own.loss, **own.terms}.items()}
        readings = np.atleast_2d(own.eigenvalues).mean(axis=0)
        duals = {f"reading_{i + 1}": float(value) for i, value in enumerate(readings)}
        rows.append({"step": float(line.step), **numbers, **seen, **duals})
    return rows
