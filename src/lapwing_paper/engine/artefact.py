"""What a table or figure of the paper is to the package: a frozen spec, the runs it needs, and what it says of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lapwing.checks import as_whole, shown
from lapwing.errors import LapwingError
from lapwing_paper.engine.pictures import Picture
from lapwing_paper.engine.places import Place, origins_note, places
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.tables import Table

# More than anybody has machines for; a larger number in a file is no plan.
MAX_SEEDS = 10_000
MAX_STEPS = 10**9


@dataclass(frozen=True)
class Scale:
    """How much work: seeds, gradient steps of the paper's runs, and transitions of experience."""

    seeds: int
    steps: int
    transitions: int


@dataclass(frozen=True)
class Spec:
    """The frozen description of an artefact.

    Attributes:
        name: on the command line.
        title: what it shows.
        paper: which table or figure of the paper it is; empty for our own.
        worlds: the paper's names, in the order of the table.
        quick: what ``--quick`` does.
        full: what ``--full`` does: the paper's seeds and steps.
        deviations: everything that differs from the paper, besides the size of a quick version.
    """

    name: str
    title: str
    paper: str
    worlds: tuple[str, ...]
    quick: Scale
    full: Scale
    deviations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """A spec with its size chosen and its worlds found."""

    spec: Spec
    scale: Scale
    places: tuple[Place, ...]
    is_full: bool

    @property
    def seeds(self) -> range:
        """The seeds, from 0."""
        return range(self.scale.seeds)

    @property
    def title(self) -> str:
        """The title, honest about what is smaller than in the paper."""
        full, now = self.spec.full, self.scale
        pairs = (
            (now.seeds, full.seeds, "seed"),
            (now.steps, full.steps, "step"),
            (now.transitions, full.transitions, "transition"),
        )
        smaller = [f"{one:,} {word}{'s' if one != 1 else ''} of {whole:,}" for one, whole, word in pairs if one < whole]
        if smaller:
            return f"{self.spec.title} (quick: {', '.join(smaller)})"
        return self.spec.title if self.is_full else f"{self.spec.title} (quick)"

    @property
    def layouts_note(self) -> str:
        """Whose layouts were used."""
        return origins_note(self.places) if self.places else "No world is involved."


@dataclass(frozen=True)
class Artefact:
    """An artefact: its spec, and three functions of a plan."""

    spec: Spec
    runs: Callable[[Plan], list[Run]]
    table: Callable[[Plan, Results], list[Table]]
    pictures: Callable[[Plan, Results], list[Picture]]


def make_plan(
    spec: Spec,
    *,
    full: bool = False,
    seeds: int | None = None,
    steps: int | None = None,
    worlds: tuple[str, ...] | None = None,
    layouts: Path | None = None,
) -> Plan:
    """The plan for a size of work, with what the user asked for in its place."""
    base = spec.full if full else spec.quick
    for name, given, most in (("seeds", seeds, MAX_SEEDS), ("steps", steps, MAX_STEPS)):
        whole = 1 if given is None else as_whole(given)
        if whole is None or not 1 <= whole <= most:
            raise LapwingError(f"{name} must be a whole number from 1 to {most:,}, got {shown(given)}")
    if worlds is not None and not spec.worlds:
        raise LapwingError(f"{spec.name} is not about worlds; leave --worlds out")
    scale = Scale(seeds or base.seeds, steps or base.steps, base.transitions)
    return Plan(spec, scale, places(worlds or spec.worlds, layouts), full)


def no_pictures(plan: Plan, results: Results) -> list[Picture]:
    """For artefacts that are tables alone."""
    return []
