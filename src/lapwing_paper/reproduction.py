"""One call per table, figure and theorem of the paper: plan, make the missing runs, write the page from the files."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lapwing.errors import ArgumentError, DamagedFileError, LapwingError
from lapwing.plots import save_figure
from lapwing.storage import locked, write_bytes, write_json
from lapwing_paper.executors import make_executor
from lapwing_paper.run_store import Results, RunStore, StudyRun
from lapwing_paper.scheduling import Failure, StudyProgress, carry_out, distinct, failures, pending
from lapwing_paper.studies.catalogue import find_study
from lapwing_paper.study import Plan, make_plan
from lapwing_paper.study_request import FILE, StudyRequest, digest, read_request, write_request
from lapwing_paper.tables import ResultTable, markdown_text


@dataclass(frozen=True)
class Reproduction:
    """The result of a study.

    Attributes:
        plan: what was planned.
        results: all finished runs.
        failures: the runs that failed, and why.
        tables: its tables; empty if no run finished.
        files: the page, tables and figures written.
    """

    plan: Plan
    results: Results
    failures: list[Failure]
    tables: list[ResultTable]
    files: list[Path]


class PageNotWrittenError(LapwingError):
    """The runs are made and kept, but the page could not be written; ``done`` is the result without its files."""

    def __init__(self, message: str, done: Reproduction) -> None:
        """Keep both."""
        super().__init__(message)
        self.done = done


def reproduce(
    name: str,
    *,
    full: bool | None = None,
    seeds: int | None = None,
    steps: int | None = None,
    worlds: Sequence[str] | None = None,
    layouts: str | Path | None = None,
    out: str | Path = "reproduction",
    pages: str | Path | None = None,
    on: str = "local",
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    rebuild: bool = False,
    report: Callable[[StudyProgress], None] | None = None,
) -> Reproduction:
    """Reproduce a table, figure or theorem of the paper, or one of our own studies.

    Finished runs are not repeated; an interrupted study continues where it stopped. A run that fails, or that does not
    fit on the disk, affects no other run; it is reported at the end.

    Args:
        name: one of :data:`lapwing_paper.studies.catalogue.STUDIES`.
        full: the paper's seeds and steps, instead of a quick version.
        seeds: how many seeds instead.
        steps: gradient steps instead.
        worlds: which worlds instead.
        layouts: folder of layout files, for the authors' own worlds.
        out: folder of the study: ``runs/`` with one folder per run, and a folder of tables and figures. Only one
            process at a time makes runs in it.
        pages: where tables and figures go instead.
        on: ``local``, ``ray`` or ``ray://host:port``.
        workers: runs at a time; as many as cores by default.
        overwrite: repeat finished runs.
        resume: complete the study that was started in ``out``: its size is taken from there, and failed runs are
            repeated along with those that are missing or damaged.
        rebuild: make no run; tables and figures from the files that are there.
        report: called whenever a run starts or ends.

    Returns:
        The tables, the results of all finished runs, the failures, and the paths of the files written.

    Note:
        Workers are fresh processes: in a script, call this under ``if __name__ == "__main__":``, as always with
        processes in Python. Notebooks and the command line need no such line.
    """
    study = find_study(name)
    if resume and rebuild:
        raise ArgumentError("resuming makes runs and rebuilding makes none; leave one of the two out")
    out = _folder(out)
    page_folder = out / name if pages is None else _folder(pages)
    stored = out / name / FILE
    request = StudyRequest(full, seeds, steps, _names(worlds), None if layouts is None else str(layouts))
    started_with = None
    if resume:
        kept, started_with = read_request(stored, name)
        request = request.completed_by(kept)
    plan = make_plan(
        study,
        full=bool(request.full),
        seeds=request.seeds,
        steps=request.steps,
        worlds=request.worlds,
        layouts=None if request.layouts is None else Path(request.layouts),
    )
    runs = plan.runs()
    if started_with not in (None, digest(runs)):
        raise ArgumentError(
            f"the runs of {name} are not those that it was started with: its layouts have changed, or lapwing has. "
            "Give --layouts DIR as before, or leave --resume out to make the study as it is now"
        )
    store = RunStore(out / "runs")
    todo, entries = pending(runs, store, overwrite, resume)
    if todo and not rebuild:
        with closing(make_executor(on, workers)) as executor, locked(out):
            if not resume:
                write_request(stored, name, request, runs)
            failed = carry_out(runs, store, executor, overwrite=overwrite, resume=resume, report=report)
    else:
        failed = failures(runs, entries)
        if failed and not (resume or rebuild):
            write_request(stored, name, request, runs)
    results = store.results(runs)
    if rebuild and not results.finished:
        raise ArgumentError(f"{store.root} holds no finished run of {name}; leave --rebuild out to make them")
    done = Reproduction(replace(plan, is_whole=len(results.finished) == len(runs)), results, failed, [], [])
    if not results.finished:
        return done
    with _errors_of_foreign_numbers(store):
        done = replace(done, tables=study.tables(done.plan, results))
    try:
        return replace(done, files=_write(done, runs, store, page_folder, request.command(name)))
    except LapwingError as error:
        raise PageNotWrittenError(str(error), done) from error


@contextmanager
def _errors_of_foreign_numbers(store: RunStore) -> Iterator[None]:
    """A readable error if runs hold something else than their task writes."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, LapwingError):
            raise
        raise DamagedFileError(
            f"no table can be made of the numbers of a run in {store.root} ({type(error).__name__}: {error}); it is "
            "damaged, or of another version: move the runs away and repeat them"
        ) from error


def _folder(path: Any) -> Path:
    try:
        os.stat(Path(path))
    except FileNotFoundError:
        pass
    except (TypeError, ValueError, OSError) as error:  # not a path, or one that no system can have
        raise ArgumentError(f"the folder of a study must be a path: {str(path)[:100]!r}") from error
    return Path(path)


def _names(worlds: Any) -> tuple[str, ...] | None:
    """Names of worlds; a single string would pass for a list of letters."""
    if worlds is None:
        return None
    listed = tuple(worlds) if isinstance(worlds, Iterable) and not isinstance(worlds, str) else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise ArgumentError(f"worlds must be a list of names, got {str(worlds)[:100]!r}")
    return listed


def _write(done: Reproduction, runs: list[StudyRun], store: RunStore, folder: Path, command: str) -> list[Path]:
    """The page, the tables as LaTeX and JSON, the figures as PNG and PDF."""
    name = done.plan.study.name
    written: list[Path] = []
    images = []
    with _errors_of_foreign_numbers(store):
        figures = done.plan.study.figures(done.plan, done.results)
    for figure in figures:
        stem = f"{name}-{figure.name}" if figure.name != name else name
        drawn = figure.draw()
        written += [save_figure(drawn, folder / f"{stem}.{kind}") for kind in ("png", "pdf")]
        description = figure.description or figure.title.replace("\n", " ")
        images += [f"![{description}]({stem}.png)", ""]
    page = folder / f"{name}.md"
    latex = folder / f"{name}.tex"
    write_bytes(page, _page(done, runs, images, command).encode())
    write_bytes(latex, ("\n\n".join(table.latex() for table in done.tables) + "\n").encode())
    content = {"study": name, "command": command, "tables": {table.name: table.records for table in done.tables}}
    write_json(folder / f"{name}.json", content)
    return [page, *written, latex, folder / f"{name}.json"]


def _page(done: Reproduction, runs: list[StudyRun], images: list[str], command: str) -> str:
    """Everything about a study in Markdown: command and date, tables, figures, deviations."""
    plan, study = done.plan, done.plan.study
    records = {one.run.key: one.record for one in done.results.finished if one.record is not None}
    dates = sorted(record.date[:10] for record in records.values())
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    planned = len(distinct(runs))
    counted = f"{planned} runs" if len(records) == planned else f"only {len(records)} of {planned} runs finished"
    minutes = sum(record.seconds for record in records.values()) / 60
    versions = ", ".join(f"{name} {version}" for name, version in next(iter(records.values())).versions.items())
    lines = [
        f"# {plan.title}",
        "",
        f"{study.paper + ' of the paper' if study.paper else 'A study of our own'}. Made with `{command}` on "
        f"{markdown_text(when)}: {counted}, {minutes:.1f} minutes of one core in all ({markdown_text(versions)}).",
        "",
    ]
    for table in done.tables:
        # The page's own title need not be repeated.
        lines += [table.markdown().removeprefix(f"**{plan.title}**").strip(), ""]
    lines += images
    lines += ["**Deviations from the paper**" if study.paper else "**How it was done**", ""]
    lines += [*(f"* {deviation}" for deviation in study.deviations), ""]
    if done.failures:
        lines += ["**Runs that failed**", ""]
        lines += [*(f"* {markdown_text(f'{one.run}: {one.error}')}" for one in done.failures), ""]
    return "\n".join(lines)
