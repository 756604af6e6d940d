"""The training loop: chunks of compiled steps, progress, early stops, divergence, checkpoints to resume from."""

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from numpy.typing import NDArray

from lapwing.devices import (
    device_mesh,
    everywhere,
    fetched,
    first_process_first,
    is_first_process,
    largest_of_processes,
    placed,
    state_sharding,
)
from lapwing.diagnostics.problems import Problem, ProblemError
from lapwing.errors import DamagedFileError, LapwingError, LapwingWarning
from lapwing.storage.checkpoints import (
    Arrays,
    checkpoint_folder,
    filled_tree,
    newest_checkpoint,
    tree_arrays,
    write_checkpoint,
)
from lapwing.training.batches import Source, Streamed
from lapwing.training.interrupts import LearningInterruptedError, deferred_signals
from lapwing.training.state import TrainState, one_seed, run_steps

# Chunks may take milliseconds; writing after each would then cost more than repeating it.
SECONDS_BETWEEN = 1.0

# What the bits of a run may depend on.
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax")

# In the identity of a run whose objective or encoder is an object: a digest of what it computes and where it begins,
# as far as the same versions compile it the same way.
COMPILED = "compiled"
GIVEN_DIFFERS = (
    "belongs to another run: the objective or network that was given computes something else now, or begins "
    "elsewhere. Give the same, or choose another folder"
)


class Progress(NamedTuple):
    """Where learning stands after a chunk of steps; the argument of a callback.

    Attributes:
        step: steps made until now.
        steps: steps that are to be made.
        metrics: ``loss`` and the objective's scalars by name; with several seeds (seeds,) each.
        eigenvalues: (d,) or (seeds, d) the objective's own estimates.
        by_seed: for each seed the largest ``angle`` and, where there is a ground truth, similarities to it.
    """

    step: int
    steps: int
    metrics: dict[str, NDArray[Any]]
    eigenvalues: NDArray[Any]
    by_seed: list[dict[str, float]]

    @property
    def summary(self) -> dict[str, float]:
        """``by_seed`` of all seeds together: the largest of their angles, the mean of anything else."""
        names = dict.fromkeys(name for seen in self.by_seed for name in seen)
        columns = {name: [seen[name] for seen in self.by_seed if name in seen] for name in names}
        return {name: float((max if name == "angle" else np.mean)(column)) for name, column in columns.items()}

    def row(self, seed: int | None = None) -> dict[str, float]:
        """All numbers by name, flat, for files and loggers.

        Args:
            seed: of one seed, counted from 0; None for the mean over all of them.

        Returns:
            ``step``, the metrics, ``angle`` and the like, and ``eigenvalue_1``, ``eigenvalue_2``, ...
        """
        seeds = self.eigenvalues.shape[0] if self.eigenvalues.ndim > 1 else 1
        metrics, eigenvalues, seen = self.metrics, self.eigenvalues, self.summary
        if seed is not None:
            metrics = {name: one_seed(column, seed, seeds) for name, column in metrics.items()}
            eigenvalues = one_seed(eigenvalues, seed, seeds)
            seen = self.by_seed[seed] if self.by_seed else {}
        values = np.atleast_2d(eigenvalues).mean(axis=0)
        numbers = {name: float(np.mean(value)) for name, value in metrics.items()}
        estimates = {f"eigenvalue_{i + 1}": float(value) for i, value in enumerate(values)}
        return {"step": float(self.step), **numbers, **seen, **estimates}


class LearningDivergedError(LapwingError):
    """Learning produced NaN or infinity.

    ``state`` is the last good one, ``step`` its number of steps, ``history`` the progress until then, ``seeds``
    those it happened to, counted from 0, and ``models`` the representations read from the state, one per seed; none if
    it went wrong before the first report.
    """

    def __init__(self, message: str, state: TrainState, history: list[Progress], seeds: list[int]) -> None:
        """Keep what was good."""
        super().__init__(message)
        self.state, self.history, self.seeds = state, history, seeds
        self.step = history[-1].step if history else 0
        self.models: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the message travels between processes: the state and the models would not survive it."""
        return LapwingError, (str(self),)


class UnreadableSeedError(ProblemError):
    """Outputs of one seed, counted from 0, that nothing can be read from."""

    def __init__(self, problem: Problem, seed: int) -> None:
        """Keep which one it is."""
        super().__init__(problem)
        self.seed = seed


class Trained(NamedTuple):
    """What training has reached: the state, the progress until then, seconds spent, and whether it has ended."""

    state: TrainState
    history: list[Progress]
    seconds: float
    finished: bool


Inspect = Callable[[TrainState], tuple[list[dict[str, float]], bool]]
"""Called with the state after each chunk: numbers to report of each seed, and whether to stop."""


def train(
    state: TrainState,
    source: Source | Streamed,
    steps: int,
    log_every: int,
    inspect: Inspect | None = None,
    callback: Callable[[Progress], None] | None = None,
    folder: Path | None = None,
    identity: Callable[[], dict[str, Any]] | None = None,
) -> Trained:
    """Train in chunks of ``log_every`` steps; with a folder, from its last checkpoint on, leaving new ones.

    The end is the same to the last bit wherever it was interrupted: chunks begin where they would have begun, and what
    a step draws depends on its number alone. All devices that JAX sees are used; on another number of them the end is
    the same up to rounding. Of several processes, each returns the same, and the first writes the checkpoints.

    Args:
        state: the first, of one seed or several.
        source: of batches.
        steps: how many to make in all.
        log_every: steps of a chunk.
        inspect: looks at the state after each chunk.
        callback: called with the progress after each chunk.
        folder: for checkpoints.
        identity: with a folder: gives, as JSON types, what two runs must share for one to continue the other.

    Returns:
        State and history at the end.

    Raises:
        LearningDivergedError: if the loss or a trained weight is not finite at the end of a chunk.
        LearningInterruptedError: after Ctrl-C or a termination, once a checkpoint is written; only with a folder.
    """
    began = time.perf_counter()
    mesh = device_mesh(state.step.size)
    run, given, source = _program(mesh), source, _placed_source(source, mesh)
    # The steps overwrite their state, whose weights may be those of a network of the caller's own.
    state = jax.tree.map(lambda leaf: leaf.copy(), state)
    if folder is None:
        state, history = _chunks(run, _placed_state(state, mesh), source, steps, log_every, inspect, callback, [], None)
        return Trained(state, history, time.perf_counter() - began, True)
    assert identity is not None
    with ExitStack() as held, deferred_signals() as noted:
        with first_process_first():
            held.enter_context(checkpoint_folder(folder, read_only=not is_first_process()))
        own = identity()
        if "given" in (own.get("objective"), own.get("encoder")):
            own[COMPILED] = _compiled_digest(state, _part(given, 0))
        with first_process_first():
            last = newest_checkpoint(folder, lambda path, arrays, record: _restored(path, arrays, record, state, own))
        _require_same_checkpoint(folder, last)
        if last is not None and last.finished:
            return last
        before, past = (0.0, []) if last is None else (last.seconds, last.history)
        written = time.perf_counter()

        def spent() -> float:
            return before + time.perf_counter() - began

        def keep(reached: TrainState, history: list[Progress], finished: bool) -> None:
            nonlocal written
            # A signal to one of several processes stops all of them.
            stopping = 0 if finished else largest_of_processes(noted() or 0)
            if finished or stopping or time.perf_counter() - written >= SECONDS_BETWEEN:
                if is_first_process():
                    _write(folder, Trained(reached, history, spent(), finished), own)
                written = time.perf_counter()
            if stopping:
                raise LearningInterruptedError(history[-1].step, steps, folder, stopping)

        start = _placed_state(state if last is None else last.state, mesh)
        reached, history = _chunks(run, start, source, steps, log_every, inspect, callback, past, keep)
        return Trained(reached, history, spent(), True)


def _program(mesh: Mesh | None) -> Any:
    """A compiled function ``(state, source, steps)``, one of its own, so that what is compiled is forgotten with it."""
    layout: dict[str, Any] = {}
    if mesh is not None:
        layout["out_shardings"] = (state_sharding(mesh), everywhere(mesh))
    return jax.jit(
        lambda state, source, count: run_steps(state, source, count, mesh), static_argnums=2, donate_argnums=0, **layout
    )


def _placed_state(state: TrainState, mesh: Mesh | None) -> TrainState:
    return state if mesh is None else placed(state, state_sharding(mesh))


def _placed_source(source: Source | Streamed, mesh: Mesh | None) -> Source | Streamed:
    """On every device; of a streamed source each part, when it is made."""
    if mesh is None:
        return source
    if isinstance(source, Streamed):
        return source._replace(part=lambda step: placed(source.part(step), everywhere(mesh)))
    return placed(source, everywhere(mesh))


def _require_same_checkpoint(folder: Path, last: Trained | None) -> None:
    """Raise an error if processes have found different checkpoints, as they do where the folder is not a shared one."""
    step = 0 if last is None else last.history[-1].step
    if largest_of_processes(step) != -largest_of_processes(-step):
        raise LapwingError(f"the processes do not see the same checkpoints in {folder}; give a folder that they share")


def _chunks(
    run: Any,
    state: TrainState,
    source: Source | Streamed,
    steps: int,
    log_every: int,
    inspect: Inspect | None,
    callback: Callable[[Progress], None] | None,
    past: list[Progress],
    keep: Callable[[TrainState, list[Progress], bool], None] | None,
) -> tuple[TrainState, list[Progress]]:
    history = list(past)
    done = history[-1].step if history else 0
    good = fetched(state)
    while done < steps:
        size = min(log_every, steps - done)
        state, info = run(state, _part(source, done), size)
        reached, info = fetched((state, info))
        # The loss is of the weights before the last step, which may have made them infinite.
        lost = _not_finite((info.loss, reached.trained), np.shape(info.loss))
        wrong = "the loss or the weights are no longer finite" if lost else None
        by_seed: list[dict[str, float]] = []
        stop = False
        if wrong is None and inspect is not None:
            try:
                by_seed, stop = inspect(reached)
            except UnreadableSeedError as error:
                wrong, lost = error.problem.message, [error.seed]
        # What one process finds ends all of them: alone, the others would wait for it.
        outcome = largest_of_processes(2 if wrong is not None else int(stop))
        stop = outcome == 1
        if outcome == 2:
            wrong = wrong or "another process cannot read it"
            left = "the last good state is kept" if history else "nothing is left"
            where = f" in {len(lost)} of {np.size(info.loss)} seeds" if np.ndim(info.loss) else ""
            raise LearningDivergedError(
                f"learning diverged{where} between steps {done} and {done + size}: {wrong}. "
                f"Lower learning_rate or barrier_rate; {left}",
                good,
                history,
                lost,
            )
        done += size
        good = reached
        history.append(Progress(done, steps, {"loss": info.loss, **info.metrics}, info.eigenvalues, by_seed))
        if callback is not None:
            callback(history[-1])
        if keep is not None:
            keep(good, history, stop or done == steps)
        if stop:
            break
    return good, history


def _part(source: Source | Streamed, step: int) -> Source:
    """What the chunk that begins with a step draws from."""
    return source.part(step) if isinstance(source, Streamed) else source


def _not_finite(tree: Any, seeds: tuple[int, ...]) -> list[int]:
    """Which seeds have NaN or infinity anywhere, counted from 0; ``seeds`` is the shape of their axis, if any."""
    sound = np.ones(seeds or (1,), dtype=bool)
    for leaf in jax.tree.leaves(tree):
        sound &= np.isfinite(np.asarray(leaf)).reshape(len(sound), -1).all(axis=1)
    return np.flatnonzero(~sound).tolist()


def _compiled_digest(state: TrainState, source: Source) -> str:
    """A digest of what is computed and of where it begins; the same code and weights give the same.

    It does not depend on the devices: the program is that of one.
    """
    digest = hashlib.sha256(_program(None).lower(state, source, 1).as_text().encode())
    for leaf in jax.tree.leaves(jax.device_get((state.trained, state.fixed, state.objective_state))):
        digest.update(np.ascontiguousarray(leaf).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


def _write(folder: Path, reached: Trained, identity: dict[str, Any]) -> None:
    history = reached.history
    arrays = {f"state{name}": array for name, array in tree_arrays(reached.state).items()}
    arrays["history.step"] = np.array([line.step for line in history], dtype=np.int64)
    arrays["history.eigenvalues"] = np.stack([line.eigenvalues for line in history])
    arrays |= {f"history.metrics.{name}": np.stack([x.metrics[name] for x in history]) for name in history[-1].metrics}
    record = {
        "identity": identity,
        "versions": {name: version(name) for name in LIBRARIES},
        "devices": jax.device_count(),
        "steps": history[-1].steps,
        "metrics": list(history[-1].metrics),
        "by_seed": [line.by_seed for line in history],
        "seconds": reached.seconds,
        "finished": reached.finished,
    }
    write_checkpoint(folder, history[-1].step, arrays, record)


def _restored(
    path: Path, arrays: Arrays, record: dict[str, Any], template: TrainState, identity: dict[str, Any]
) -> Trained:
    """The content of a checkpoint of this very run; another run's is an error that names what differs."""
    versions = record.get("versions")
    made_with = versions if isinstance(versions, dict) else {}
    changed = [name for name in LIBRARIES if made_with.get(name) != version(name)]
    _check_identity(path, record.get("identity"), identity, (COMPILED,) if changed else ())
    others = [f"another version of {', '.join(changed)}"] if changed else []
    if record.get("devices", jax.device_count()) != jax.device_count():
        others.append(f"{record['devices']} devices instead of {jax.device_count()}")
    if others:
        warnings.warn(
            f"the checkpoint was made with {' and '.join(others)}: "
            "the end may differ in the last digits from that of a run never interrupted",
            LapwingWarning,
            stacklevel=4,
        )
    try:
        state = filled_tree(template, {name.removeprefix("state"): array for name, array in arrays.items()})
        return Trained(state, _history(arrays, record, template), float(record["seconds"]), bool(record["finished"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        if COMPILED in identity:
            # What was given has another structure; with other versions this cannot be known earlier.
            raise LapwingError(f"{path} {GIVEN_DIFFERS}") from error
        raise DamagedFileError(f"a part of {path} is missing or invalid ({error})") from error


def _history(arrays: Arrays, record: dict[str, Any], template: TrainState) -> list[Progress]:
    steps, seen, eigenvalues = arrays["history.step"], record["by_seed"], arrays["history.eigenvalues"]
    metrics = {str(name): arrays[f"history.metrics.{name}"] for name in record["metrics"]}
    shape = (len(steps), *np.shape(template.step))
    if not len(steps) or len(seen) != len(steps) or eigenvalues.shape[:-1] != shape or "loss" not in metrics:
        raise ValueError("its history is incomplete")
    if any(column.shape != shape for column in metrics.values()):
        raise ValueError("the metrics of its history have another shape")
    return [
        Progress(
            int(step),
            int(record["steps"]),
            {name: column[number] for name, column in metrics.items()},
            eigenvalues[number],
            [{str(name): float(value) for name, value in one.items()} for one in seen[number]],
        )
        for number, step in enumerate(steps)
    ]


def _check_identity(path: Path, found: Any, wanted: dict[str, Any], besides: tuple[str, ...]) -> None:
    was, now = _flat(found if isinstance(found, dict) else {}), _flat(wanted)
    different = [name for name in {**now, **was} if name not in besides and was.get(name) != now.get(name)]
    if COMPILED in different[:1]:
        raise LapwingError(f"{path} {GIVEN_DIFFERS}")
    if different:
        name = different[0]
        before, after = (repr(flat[name]) if name in flat else "the default" for flat in (was, now))
        raise LapwingError(
            f"{path.parent} holds checkpoints of another run: {name} was {before}, now it is {after}. "
            "Learn with what it was, or choose another folder"
        )


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """One level of nesting taken out, so that a single option can be named; tuples as JSON has them."""
    plain = json.loads(json.dumps(content))
    return {
        f"{name}.{part}" if part else name: value
        for name, inner in plain.items()
        for part, value in (inner.items() if isinstance(inner, dict) else [("", inner)])
    }
