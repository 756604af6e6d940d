"""Checkpoints: the whole state of learning in one file that is complete or not there, with its checksum in its name."""

import hashlib
import json
import re
import warnings
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from lapwing.errors import LapwingError, LapwingWarning
from lapwing.storage.files import write_bytes
from lapwing.storage.reading import read_bytes
from lapwing.training.engine import Report
from lapwing.training.step import Metrics, TrainState

FORMAT = "lapwing-checkpoint"
VERSION = 1
KEPT = 2
DAMAGED = "damaged-"

# Of an objective or a network that was given: what it computes, as far as the same versions compile it the same way.
COMPILED = "compiled"
MAX_BYTES = 8 << 30

# What the bits of a run may depend on.
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "optax")

_OTHER_GIVEN = (
    "belongs to another learning: the objective or network that was given computes something else now, or begins "
    "elsewhere. Give the same, or choose another folder"
)

NAME = re.compile(r"step-(\d{10})-([0-9a-f]{32})\.safetensors")


class Checkpoint(NamedTuple):
    """Where learning stands: the state, all that was reported until then, seconds spent, and whether it has ended."""

    state: TrainState
    history: list[Report]
    seconds: float
    finished: bool


class DamagedCheckpointError(LapwingError):
    """A file that is torn, changed, or none of ours."""


def write_checkpoint(folder: Path, checkpoint: Checkpoint, identity: dict[str, Any]) -> Path:
    """Write a checkpoint atomically and forget all but the last two; ``identity`` says which learning it belongs to."""
    arrays = {f"state{name}": array for name, array in named_leaves(checkpoint.state).items()}
    arrays |= _history_arrays(checkpoint.history)
    record = {
        "identity": identity,
        "versions": {name: version(name) for name in LIBRARIES},
        "steps": checkpoint.history[-1].steps,
        "by_seed": [line.by_seed for line in checkpoint.history],
        "seconds": checkpoint.seconds,
        "finished": checkpoint.finished,
    }
    header = {"format": FORMAT, "version": str(VERSION), "record": json.dumps(record)}
    content = save(arrays, metadata=header)
    path = write_bytes(folder / f"{_stem(checkpoint.history)}-{_digest(content)}.safetensors", content)
    for old in [one for one in checkpoint_files(folder) if one != path][KEPT - 1 :]:
        old.unlink(missing_ok=True)
    return path


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the newest first; nothing is said of their content."""
    return sorted((path for path in folder.glob("step-*") if NAME.fullmatch(path.name)), reverse=True)


def newest_checkpoint(
    folder: Path, template: TrainState, identity: dict[str, Any], metrics: Metrics | None = None
) -> Checkpoint | None:
    """The last checkpoint that is sound, with a warning about each that is not; None if there is none.

    Args:
        folder: where they are.
        template: a state of the learning that wants to go on; its names, shapes and types must be the checkpoint's.
        identity: of that learning; what differs is an error that names it.
        metrics: what that learning reports, or its shapes and types.
    """
    found = checkpoint_files(folder)
    for number, path in enumerate(found, start=1):
        try:
            return read_checkpoint(path, template, identity, metrics)
        except DamagedCheckpointError as error:
            last = "it was the last, so learning begins at the beginning"
            then = "the one before it is used" if number < len(found) else last
            warnings.warn(f"{error}; {then}", LapwingWarning, stacklevel=3)
            # Out of the way: among the last two it would take the place of a sound one.
            with suppress(OSError):
                path.rename(path.with_name(f"{DAMAGED}{path.name}"))
    return None


def read_checkpoint(
    path: Path, template: TrainState, identity: dict[str, Any], metrics: Metrics | None = None
) -> Checkpoint:
    """Read one checkpoint; an error if it is damaged or belongs to another learning."""
    arrays, record = _checked_content(path)
    changed = _changed_versions(record.get("versions"))
    _check_identity(path, record.get("identity"), identity, (COMPILED,) if changed else ())
    if changed:
        warnings.warn(
            f"the checkpoint was made with another version of {', '.join(changed)}: "
            "the end may differ in the last digits from that of a run never interrupted",
            LapwingWarning,
            stacklevel=3,
        )
    try:
        history = _history(arrays, record, metrics)
        if not path.name.startswith(_stem(history)):
            raise DamagedCheckpointError(f"{path} was renamed: it is of step {history[-1].step}")
        state = _state(arrays, template)
        return Checkpoint(state, history, float(record["seconds"]), bool(record["finished"]))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        if isinstance(error, LapwingError):
            raise
        if COMPILED in identity:
            # What was given has another form; with other versions there is no telling earlier.
            raise LapwingError(f"{path} {_OTHER_GIVEN}") from error
        raise DamagedCheckpointError(f"{path} lacks or garbles a part ({error})") from error


def named_leaves(state: Any) -> dict[str, NDArray[Any]]:
    """Every array of a state under its place in it; random keys as plain numbers."""
    return {name: np.asarray(_plain(leaf)) for name, leaf in _leaves_with_names(state)}


def _checked_content(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    match = NAME.fullmatch(path.name)
    try:
        if match is None:
            raise DamagedCheckpointError(f"{path} is not a checkpoint of this package")
        content = _bytes_of(path)
        if _digest(content) != match[2]:
            raise DamagedCheckpointError(f"{path} is damaged: its checksum is not the one in its name")
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length]).get("__metadata__", {})
        if header.get("format") != FORMAT:
            raise DamagedCheckpointError(f"{path} is not a checkpoint of this package")
        if header.get("version") != str(VERSION):
            raise LapwingError(
                f"{path} has format version {header.get('version')!r}; this package reads {VERSION}. Update lapwing"
            )
        record = json.loads(header["record"])
        if not isinstance(record, dict):
            raise DamagedCheckpointError(f"{path} holds no record")
        return load(content), record
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        if isinstance(error, LapwingError):
            raise
        raise DamagedCheckpointError(f"{path} cannot be read ({error})") from error


def _bytes_of(path: Path) -> bytes:
    try:
        return read_bytes(path, MAX_BYTES)
    except LapwingError as error:
        raise DamagedCheckpointError(str(error)) from error


def _check_identity(path: Path, found: Any, wanted: dict[str, Any], besides: tuple[str, ...]) -> None:
    flat_found, flat_wanted = _flat(found if isinstance(found, dict) else {}), _flat(wanted)
    for name in besides:
        flat_found.pop(name, None)
        flat_wanted.pop(name, None)
    different = [name for name in flat_wanted if flat_found.get(name) != flat_wanted[name]]
    different += [name for name in flat_found if name not in flat_wanted]
    if different:
        name = different[0]
        if name == COMPILED:
            raise LapwingError(f"{path} {_OTHER_GIVEN}")
        was, now = (repr(flat[name]) if name in flat else "the default" for flat in (flat_found, flat_wanted))
        raise LapwingError(
            f"{path.parent} holds checkpoints of another learning: {name} was {was}, now it is {now}. "
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


def _changed_versions(made_with: Any) -> list[str]:
    """Libraries of another version than it was made with."""
    made = made_with if isinstance(made_with, dict) else {}
    return [name for name in LIBRARIES if made.get(name) != version(name)]


def _history_arrays(history: list[Report]) -> dict[str, NDArray[Any]]:
    stacked = jax.tree.map(lambda *column: np.stack([np.asarray(one) for one in column]), *(x.metrics for x in history))
    columns = {f"history{name}": array for name, array in named_leaves(stacked).items()}
    return {"history.step": np.array([line.step for line in history], dtype=np.int64), **columns}


def _history(arrays: dict[str, NDArray[Any]], record: dict[str, Any], metrics: Metrics | None) -> list[Report]:
    steps, seen = arrays["history.step"], record["by_seed"]
    if not len(steps) or len(steps) != len(seen):
        raise ValueError("its history is incomplete")
    template = Metrics(jnp.zeros(()), jnp.zeros(()), {}) if metrics is None else metrics
    for name, like in [] if metrics is None else _leaves_with_names(template):
        column = arrays[f"history{name}"]
        if column.shape != (len(steps), *like.shape) or column.dtype != like.dtype:
            raise ValueError(f"{name} of its history is {column.dtype} {column.shape}")
    names, structure = [name for name, _ in _leaves_with_names(template)], jax.tree.structure(template)
    return [
        Report(
            int(step),
            int(record["steps"]),
            jax.tree.unflatten(structure, [arrays[f"history{name}"][number] for name in names]),
            [{str(name): float(value) for name, value in one.items()} for one in seen[number]],
        )
        for number, step in enumerate(steps)
    ]


def _state(arrays: dict[str, NDArray[Any]], template: TrainState) -> TrainState:
    """The template with every array replaced by the stored one of the same name, shape and type."""
    leaves = []
    for name, leaf in _leaves_with_names(template):
        array, wanted = arrays[f"state{name}"], _plain(leaf)
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {wanted.dtype} {wanted.shape}")
        if np.issubdtype(array.dtype, np.inexact) and not np.isfinite(array).all():
            raise ValueError(f"{name} is not finite")
        # A copy of its own: the file's bytes are one block that the compiled step must not be given to reuse.
        ready = jnp.array(array)
        leaves.append(jax.random.wrap_key_data(ready) if _is_key(leaf) else ready)
    state: TrainState = jax.tree.unflatten(jax.tree.structure(template), leaves)
    return state


def _leaves_with_names(state: Any) -> list[tuple[str, Any]]:
    found = jax.tree_util.tree_flatten_with_path(state)[0]
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in found]


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _stem(history: list[Report]) -> str:
    # Ten digits, so that names sort like steps.
    return f"step-{history[-1].step:010d}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
