"""What a study is: its description, its methods, its tables and figures; and a plan of a certain size for it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lapwing.errors import ArgumentError
from lapwing_paper.drawings import StudyFigure
from lapwing_paper.run_store import Results, StudyRun
from lapwing_paper.study_worlds import StudyWorld, origins_note, study_worlds
from lapwing_paper.tables import ResultTable

# More than anybody has machines for.
MAX_SEEDS = 10_000
MAX_STEPS = 10**9

Methods = Iterable[tuple[str, dict[str, Any]]]
"""Pairs of a label and the settings of its runs."""


@dataclass(frozen=True)
class Scale:
    """The amount of work: seeds, gradient steps of the paper's runs, and transitions of data."""

    seeds: int
    steps: int
    transitions: int

    def __str__(self) -> str:
        """Only what applies: some studies train nothing or use no data."""
        parts = [f"{self.seeds} seed{'s' if self.seeds != 1 else ''}"]
        parts += [f"{self.steps:,} steps"] if self.steps > 1 else []
        parts += [f"{self.transitions:,} transitions"] if self.transitions else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Study:
    """A table, figure or theorem of the paper, or a study of our own.

    Attributes:
        name: on the command line.
        title: what it shows.
        paper: which table or figure of the paper it is; empty for our own.
        worlds: the paper's names, in the order of the table.
        quick: the size with ``--quick``.
        full: the size with ``--full``: the paper's seeds and steps.
        deviations: everything that differs from the paper, besides the size of a quick version.
        methods: the methods that are compared in every world.
        tables: the tables of finished runs.
        figures: the figures of finished runs.
        task: what a run does, a name in :data:`lapwing_paper.tasks.TASKS`.
        covers: whether a method, given by its label, is run in a world.
        quick_worlds: those of the quick version, where that has fewer.
    """

    name: str
    title: str
    paper: str
    worlds: tuple[str, ...]
    quick: Scale
    full: Scale
    deviations: tuple[str, ...]
    methods: Callable[["Plan"], Methods]
    tables: Callable[["Plan", Results], list[ResultTable]]
    figures: Callable[["Plan", Results], list[StudyFigure]] = lambda plan, results: []
    task: str = "learn"
    covers: Callable[[StudyWorld, str], bool] = lambda world, method: True
    quick_worlds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A study with its size chosen and its worlds made.

    Attributes:
        study: which one.
        scale: seeds, steps and transitions.
        worlds: with their layouts.
        is_full: whether it is the full version.
        is_whole: whether all of its runs have finished; a study of long runs grows one by one.
    """

    study: Study
    scale: Scale
    worlds: tuple[StudyWorld, ...]
    is_full: bool
    is_whole: bool = True

    @property
    def title(self) -> str:
        """The title, with whatever is smaller than in the paper; beside fewer seeds also the paper's steps."""
        full, now = self.study.full, self.scale
        worlds = len(self.worlds) if self.study.quick_worlds else len(self.study.worlds)
        pairs = (
            (now.seeds, full.seeds, "seed"),
            (now.steps, full.steps, "step"),
            (now.transitions, full.transitions, "transition"),
            (worlds, len(self.study.worlds), "world"),
        )
        smaller = [f"{one:,} {unit}{'s' if one != 1 else ''} of {whole:,}" for one, whole, unit in pairs if one < whole]
        if not self.is_full:
            size = f"quick: {', '.join(smaller)}" if smaller else "quick"
            return f"{self.study.title} ({size})"
        if smaller and 1 < now.steps == full.steps:
            smaller.append(f"{now.steps:,} steps")
        size = ("up to " if 1 < now.seeds < full.seeds and not self.is_whole else "") + ", ".join(smaller)
        return f"{self.study.title} ({size})" if smaller else self.study.title

    @property
    def layouts_note(self) -> str:
        """Whose layouts were used."""
        return origins_note(self.worlds) if self.worlds else "No world is involved."

    @property
    def labels(self) -> list[str]:
        """The names of the worlds in tables."""
        return [world.label for world in self.worlds]

    def runs(self) -> list[StudyRun]:
        """Every method in every world that it is run in, seed by seed, so that what was interrupted has whole seeds."""
        methods = list(self.study.methods(self))
        return [
            StudyRun(label, world, seed, settings, self.study.task)
            for seed in range(self.scale.seeds)
            for world in self.worlds or (None,)
            for label, settings in methods
            if world is None or self.study.covers(world, label)
        ]


def make_plan(
    study: Study,
    *,
    full: bool = False,
    seeds: int | None = None,
    steps: int | None = None,
    worlds: tuple[str, ...] | None = None,
    layouts: Path | None = None,
) -> Plan:
    """A plan of the quick or the full size, with the user's own seeds, steps or worlds in their place.

    Args:
        study: what to plan.
        full: the paper's size.
        seeds: how many seeds instead.
        steps: gradient steps instead.
        worlds: names of worlds instead.
        layouts: folder of the authors' layouts.

    Returns:
        The plan.
    """
    base = study.full if full else study.quick
    for name, given, most in (("seeds", seeds, MAX_SEEDS), ("steps", steps, MAX_STEPS)):
        if given is not None and (type(given) is not int or not 1 <= given <= most):
            raise ArgumentError(f"{name} must be a whole number from 1 to {most:,}, got {str(given)[:100]!r}")
    if worlds is not None and not study.worlds:
        raise ArgumentError(f"{study.name} is not about worlds; leave --worlds out")
    scale = Scale(seeds or base.seeds, steps or base.steps, base.transitions)
    own = study.worlds if full else study.quick_worlds or study.worlds
    return Plan(study, scale, study_worlds(worlds or own, layouts), full)
