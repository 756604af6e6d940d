"""Studies: ``lapwing reproduce``. Cheap to import: the studies are loaded when one is run."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from lapwing.cli import Flag, LayoutsFolder, option, terminal
from lapwing.errors import LapwingError

if TYPE_CHECKING:
    from lapwing_paper.engine.study import Progress
    from lapwing_paper.reproduction import Reproduction

SECONDS_BETWEEN_LINES = 30.0
TERMINATED = "terminated; nothing was left half-written, and the same words go on with a study"


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a table, figure or theorem of the paper, or a study of our own, with the paper's numbers beside ours.

    Example: lapwing reproduce theory --quick
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ""
    """What to reproduce; --list shows the names."""
    list: Flag = False
    """List everything that can be reproduced."""
    quick: Flag = False
    """Few seeds and steps, minutes on two cores. This is what happens unless --full is given."""
    full: Flag = False
    """The paper's seeds and steps."""
    seeds: Annotated[int | None, option("N", "the study's")] = None
    """How many seeds."""
    steps: Annotated[int | None, option("N", "the study's")] = None
    """Gradient steps."""
    worlds: Annotated[tuple[str, ...] | None, option("WORLD...", "the study's")] = None
    """Which worlds."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts, for the authors' own worlds."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("reproduction")
    """Folder of runs, tables and figures. Finished runs in it are not made again."""
    pages: Annotated[Path | None, option("DIR", "OUT/NAME")] = None
    """Write tables and figures here instead."""
    on: Annotated[str, tyro.conf.arg(metavar="{local,ray,ray://HOST:PORT}")] = "local"
    """Where runs are carried out."""
    workers: Annotated[int | None, option("N", "as many as cores")] = None
    """Runs at a time."""
    again: Flag = False
    """Make finished runs again."""
    resume: Flag = False
    """Complete the study that was begun in this folder, in its size: NAME and --out are enough. Failed runs are made
    again too."""
    rebuild: Flag = False
    """Make no run: tables and figures from the files that are there."""
    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        """Make a study, or list all of them."""
        if self.list:
            _list_studies(self.json)
        else:
            _run_study(self)


def _run_study(words: Reproduce) -> None:
    from lapwing.training.interrupts import termination_as_interrupt
    from lapwing_paper.reproduction import PageNotWrittenError, reproduce

    if not words.name:
        raise LapwingError("say what to reproduce; `lapwing reproduce --list` shows the names")
    if words.quick and words.full:
        raise LapwingError("--quick and --full cannot both be had; leave one out")
    problem = ""
    with (
        termination_as_interrupt(TERMINATED),
        terminal.progress_bar(words.name, every=SECONDS_BETWEEN_LINES) as progress,
    ):
        try:
            done = reproduce(
                words.name,
                full=True if words.full else False if words.quick else None,
                seeds=words.seeds,
                steps=words.steps,
                worlds=words.worlds or None,
                layouts=words.layouts,
                out=words.out,
                pages=words.pages,
                on=words.on,
                workers=words.workers,
                again=words.again,
                resume=words.resume,
                rebuild=words.rebuild,
                report=lambda now: progress(now.done + now.failed, now.total, _headline(now)),
            )
        except PageNotWrittenError as error:
            done, problem = error.done, str(error)
    _show(done, words)
    _end(done, words, problem)


def _show(done: "Reproduction", words: Reproduce) -> None:
    failed = [
        {"method": one.run.method, "world": one.run.world_label, "seed": one.run.seed, "error": one.error}
        for one in done.failures
    ]
    if words.json:
        tables = {table.name: table.records() for table in done.tables}
        files = [str(path) for path in done.files]
        terminal.print_json(
            {"study": words.name, "title": done.plan.title, "tables": tables, "failed": failed, "files": files}
        )
    else:
        for table in done.tables:
            terminal.print_table(table.title, table.columns, table.text_rows())
            for line in table.notes:
                print(line)
        for path in done.files:
            print(f"wrote {path}")
    for one in failed:
        terminal.note(f"failed: {one['method']}, {one['world']}, seed {one['seed']}: {one['error']}")


def _end(done: "Reproduction", words: Reproduce, problem: str) -> None:
    """An error, with what to do about it, unless everything went well."""
    pages = "" if words.pages is None else f" --pages {shlex.quote(str(words.pages))}"
    again = f"`lapwing reproduce {words.name} --resume --out {shlex.quote(str(words.out))}{pages}`"
    said = [f"{len(done.failures)} of the runs failed; {again} makes them again"] if done.failures else []
    if problem:
        said.append(f"the page was not written: {problem}; the runs are kept, and {again} writes it from them")
    if said:
        raise LapwingError("; ".join(said))


def _list_studies(as_json: bool) -> None:
    from lapwing_paper.studies.catalogue import ARTEFACTS

    specs = [artefact.spec for artefact in ARTEFACTS.values()]
    if as_json:
        keys = ("name", "paper", "title")
        terminal.print_json([{key: getattr(spec, key) for key in keys} for spec in specs])
        return
    sizes = [[f"{scale.seeds} x {scale.steps:,}" for scale in (spec.quick, spec.full)] for spec in specs]
    rows = [[spec.name, spec.paper or "ours", spec.title, *size] for spec, size in zip(specs, sizes, strict=True)]
    columns = ["name", "paper", "what it shows", "--quick (seeds x steps)", "--full"]
    terminal.print_table("What can be reproduced", columns, rows)
    print("lapwing reproduce NAME --quick; with --layouts DIR in the authors' own worlds.")


def _headline(now: "Progress") -> str:
    left = "" if now.seconds_left is None else f", {_duration(now.seconds_left)} left"
    return f"{now.done} done, {now.running} running, {now.failed} failed{left}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
