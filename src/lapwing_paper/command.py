"""Studies: ``lapwing reproduce``. Cheap to import: the studies are loaded when one is run."""

import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from lapwing.cli import Flag, LayoutsFolder, option, terminal
from lapwing.errors import ArgumentError, LapwingError

if TYPE_CHECKING:
    from lapwing_paper.reproduction import Reproduction
    from lapwing_paper.scheduling import StudyProgress


class StudyTerminatedError(KeyboardInterrupt):
    """SIGTERM, handled as Ctrl-C is: workers are stopped and temporary files removed."""

    signal = signal.SIGTERM


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a table, figure or theorem of the paper, or a study of our own, with the paper's numbers beside ours.

    Example: lapwing reproduce theory --quick
    """

    RENAMED: ClassVar = {"--again": "--overwrite"}

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
    """Folder of runs, tables and figures. Finished runs in it are not repeated."""
    pages: Annotated[Path | None, option("DIR", "OUT/NAME")] = None
    """Write tables and figures here instead."""
    on: Annotated[str, tyro.conf.arg(metavar="{local,ray,ray://HOST:PORT}")] = "local"
    """Where runs are carried out."""
    workers: Annotated[int | None, option("N", "as many as cores")] = None
    """Runs at a time."""
    overwrite: Flag = False
    """Repeat finished runs."""
    resume: Flag = False
    """Complete the study that was started in this folder, in its size: NAME and --out are enough. Failed runs are
    repeated too."""
    rebuild: Flag = False
    """Make no run: tables and figures from the files that are there."""
    json: Flag = False
    """Print JSON instead of tables."""

    def run(self) -> None:
        """Make a study, or list all of them."""
        if self.list:
            _list_studies(self.json)
            return
        if not self.name:
            raise ArgumentError("give the name of a study; `lapwing reproduce --list` shows them")
        if self.quick and self.full:
            raise ArgumentError("--quick and --full exclude one another; leave one out")
        from lapwing_paper.reproduction import PageNotWrittenError, reproduce

        problem = ""
        with _termination_as_interrupt(), terminal.progress_bar(self.name) as progress:
            try:
                done = reproduce(
                    self.name,
                    full=True if self.full else False if self.quick else None,
                    seeds=self.seeds,
                    steps=self.steps,
                    worlds=self.worlds or None,
                    layouts=self.layouts,
                    out=self.out,
                    pages=self.pages,
                    on=self.on,
                    workers=self.workers,
                    overwrite=self.overwrite,
                    resume=self.resume,
                    rebuild=self.rebuild,
                    report=lambda now: progress(now.done + now.failed, now.total, _headline(now)),
                )
            except PageNotWrittenError as error:
                done, problem = error.done, str(error)
        self._print(done)
        self._raise_problems(done, problem)

    def _print(self, done: "Reproduction") -> None:
        failed = [
            {"method": one.run.method, "world": one.run.world_label, "seed": one.run.seed, "error": one.error}
            for one in done.failures
        ]
        if self.json:
            tables = {table.name: table.records for table in done.tables}
            files = [str(path) for path in done.files]
            terminal.print_json(
                {"study": self.name, "title": done.plan.title, "tables": tables, "failed": failed, "files": files}
            )
        else:
            for table in done.tables:
                terminal.print_table(table.title, table.columns, table.rows)
                for line in table.notes:
                    print(line)
            for path in done.files:
                print(f"wrote {path}")
        for one in done.failures:
            terminal.note(f"failed: {one.run}: {one.error}")

    def _raise_problems(self, done: "Reproduction", problem: str) -> None:
        """An error that states what to do, unless everything went well."""
        pages = "" if self.pages is None else f" --pages {shlex.quote(str(self.pages))}"
        resume = f"`lapwing reproduce {self.name} --resume --out {shlex.quote(str(self.out))}{pages}`"
        messages = [f"{len(done.failures)} of the runs failed; {resume} repeats them"] if done.failures else []
        if problem:
            messages.append(f"the page was not written: {problem}; the runs are kept, and {resume} writes it from them")
        if messages:
            raise LapwingError("; ".join(messages))


def _list_studies(as_json: bool) -> None:
    from lapwing_paper.studies.catalogue import STUDIES

    studies = STUDIES.values()
    if as_json:
        keys = ("name", "paper", "title")
        terminal.print_json([{key: getattr(study, key) for key in keys} for study in studies])
        return
    rows = [
        [study.name, study.paper or "ours", study.title]
        + [f"{scale.seeds} x {scale.steps:,}" for scale in (study.quick, study.full)]
        for study in studies
    ]
    columns = ["name", "paper", "what it shows", "--quick (seeds x steps)", "--full"]
    terminal.print_table("What can be reproduced", columns, rows)
    print("lapwing reproduce NAME --quick; with --layouts DIR in the authors' own worlds.")


def _headline(now: "StudyProgress") -> str:
    left = "" if now.seconds_left is None else f", {timedelta(seconds=round(now.seconds_left))} left"
    return f"{now.done} done, {now.running} running, {now.failed} failed{left}"


@contextmanager
def _termination_as_interrupt() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise StudyTerminatedError(
            "terminated; nothing was left half-written, and the same command continues the study"
        )

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
