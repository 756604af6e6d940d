"""One run of a study as plain data: what to do, where, with which seed; and what came of it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import LapwingError
from lapwing_paper.engine.places import Place

Row = dict[str, float]


@dataclass(frozen=True)
class Run:
    """One run: the same task, world, settings and seed are the same run, whichever study asks for it.

    Attributes:
        method: its label in tables, e.g. ``ALLO (paper)``; not part of its identity.
        place: the world; None for tasks without one.
        seed: of everything random in it.
        settings: JSON types that the task reads.
        task: a name in :data:`lapwing_paper.engine.tasks.TASKS`.
    """

    method: str
    place: Place | None
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    task: str = "learn"

    @property
    def world_label(self) -> str:
        """The world's name in tables."""
        return self.place.label if self.place is not None else "-"

    def order(self) -> dict[str, Any]:
        """All that a worker needs, as JSON types."""
        world = None if self.place is None else self.place.description()
        return {"task": self.task, "world": world, "seed": self.seed, "settings": dict(self.settings)}

    @property
    def key(self) -> str:
        """The name of its folder: readable, and different for whatever differs."""
        text = json.dumps(self.order(), sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        words = [self.task, *([] if self.place is None else [self.place.world.name]), f"seed{self.seed}", digest]
        return "-".join("".join(c if c.isalnum() or c in ".-" else "_" for c in word) for word in words)


@dataclass(frozen=True)
class Outcome:
    """What a task gives back, small enough to send between machines.

    Attributes:
        numbers: final numbers, as JSON types.
        history: one row of numbers per report.
        arrays: named arrays, such as the learned components on all states.
    """

    numbers: dict[str, Any]
    history: list[Row] = field(default_factory=list)
    arrays: dict[str, NDArray[np.float32]] = field(default_factory=dict)


def checked(outcome: Any) -> Outcome:
    """An outcome as it will be read from its files: JSON types, rows and arrays of finite numbers; else an error."""
    if not isinstance(outcome, Outcome):
        raise LapwingError(f"the run gave back {type(outcome).__name__}, not an outcome")
    try:
        numbers = json.loads(json.dumps(outcome.numbers, allow_nan=False))
        history = [{str(name): float(value) for name, value in row.items()} for row in outcome.history]
        arrays = {str(name): np.ascontiguousarray(array) for name, array in outcome.arrays.items()}
        finite = {name: bool(np.isfinite(array).all()) for name, array in arrays.items()}
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise LapwingError(f"the run gave what is no finite number ({error})") from error
    if bad := [name for name in finite if not finite[name]]:
        raise LapwingError(f"the run gave {bad[0]} that are not finite")
    return Outcome(numbers, history, arrays)


@dataclass(frozen=True)
class Finished:
    """A run and what came of it, read from its files."""

    run: Run
    outcome: Outcome

    @property
    def numbers(self) -> dict[str, Any]:
        """Final numbers."""
        return self.outcome.numbers


class Results:
    """The finished runs of a study, to be asked by world and method, in the order of the plan."""

    def __init__(self, finished: list[Finished]) -> None:
        """Keep them."""
        self.finished = finished

    def select(self, world: str | None = None, method: str | None = None) -> list[Finished]:
        """Those of a world and of a method, all seeds."""
        return [
            one
            for one in self.finished
            if (world is None or one.run.world_label == world) and (method is None or one.run.method == method)
        ]

    def with_array(self, name: str, world: str | None = None, method: str | None = None) -> list[Finished]:
        """Those of them that have an array of this name; runs that collapsed have none."""
        return [one for one in self.select(world, method) if name in one.outcome.arrays]

    def values(self, name: str, world: str | None = None, method: str | None = None) -> NDArray[np.float64]:
        """One final number of each of them that has it, (runs,) or (runs, d); None inside a list is NaN."""
        rows = [one.numbers.get(name) for one in self.select(world, method)]
        return np.array([_floats(row) for row in rows if row is not None], dtype=np.float64)

    def curves(self, name: str, world: str, method: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(points,) steps and (runs, points) values of a column of the histories, as far as the shortest reaches."""
        histories = [one.outcome.history for one in self.select(world, method) if one.outcome.history]
        if not histories:
            return np.zeros(0), np.zeros((0, 0))
        points = min(len(history) for history in histories)
        steps = np.array([row["step"] for row in histories[0][:points]])
        return steps, np.array([[row.get(name, np.nan) for row in history[:points]] for history in histories])


def _floats(value: Any) -> Any:
    if isinstance(value, list):
        return [_floats(item) for item in value]
    return np.nan if value is None else float(value)
