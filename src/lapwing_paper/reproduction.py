"""One call per table, figure and theorem of the paper: plan, run what is missing, write the page from files alone."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lapwing.checks import as_path, shown
from lapwing.errors import LapwingError
from lapwing.plots import save_figure
from lapwing.storage.files import replaced_file, write_json
from lapwing.storage.folders import locked
from lapwing_paper.engine.artefact import Artefact, Plan, make_plan
from lapwing_paper.engine.executors import make_executor
from lapwing_paper.engine.request import FILE, Request, check_runs, keep_request, read_request
from lapwing_paper.engine.runs import Results, Run
from lapwing_paper.engine.store import RunStore
from lapwing_paper.engine.study import Failure, Progress, carry_out, failures, pending
from lapwing_paper.engine.tables import Table, markdown_text
from lapwing_paper.figures import picture_figure
from lapwing_paper.studies.catalogue import find_artefact

DEFAULT_FOLDER = Path("reproduction")


@dataclass(frozen=True)
class Reproduction:
    """What a study found.

    Attributes:
        plan: what was planned.
        tables: its tables; empty if no run finished.
        failures: the runs that failed, and why.
        results: all finished runs.
        files: the page, tables and figures written.
    """

    plan: Plan
    tables: list[Table]
    failures: list[Failure]
    results: Results
    files: list[Path]


class PageNotWrittenError(LapwingError):
    """The runs are made and kept, but the page could not be written; ``done`` is what it would have told."""

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
    out: str | Path = DEFAULT_FOLDER,
    pages: str | Path | None = None,
    on: str = "local",
    workers: int | None = None,
    again: bool = False,
    resume: bool = False,
    rebuild: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Reproduce a table, figure or theorem of the paper, or one of our own studies.

    Runs that are finished are not made again; an interrupted study goes on where it stopped. A run that fails, or that
    the disk has no room for, costs no other run; it is named in the end.

    Args:
        name: one of :data:`lapwing_paper.studies.catalogue.ARTEFACTS`.
        full: the paper's seeds and steps, instead of a quick version.
        seeds: how many seeds instead.
        steps: gradient steps instead.
        worlds: which worlds instead.
        layouts: folder of layout files, for the authors' own worlds.
        out: folder of the study: ``runs/`` with one folder per run, and a folder of tables and figures. Only one
            process at a time makes runs in it.
        pages: where tables and figures go instead.
        on: ``local``, ``ray`` or ``ray://host:port``.
        workers: runs at a time; as many as cores unless said.
        again: make finished runs again.
        resume: complete the study that was begun in ``out``: its size is taken from there, and runs that failed are
            made again along with those that are missing or damaged.
        rebuild: make no run; tables and figures from the files that are there.
        report: called whenever a run begins or ends.

    Note:
        Workers are fresh processes: in a script, call this under ``if __name__ == "__main__":``, as always with
        processes in Python. Notebooks and the command line need no such line.
    """
    artefact = find_artefact(name)
    if resume and rebuild:
        raise LapwingError("resuming makes runs and rebuilding makes none; leave one of the two out")
    out = as_path(out, "the folder of the study")
    pages = None if pages is None else as_path(pages, "the folder of the pages")
    kept = out / name / FILE
    request = Request(full, seeds, steps, _names(worlds), None if layouts is None else str(layouts))
    if resume:
        request = request.completed_by(read_request(kept, name))
    plan = _plan(artefact, request)
    runs = artefact.runs(plan)
    if resume:
        check_runs(kept, name, runs)
    store = RunStore(out / "runs")
    if not rebuild and pending(runs, store, again, resume):
        with closing(make_executor(on, workers)) as executor, locked(out):
            if not resume:
                keep_request(kept, name, request, runs)
            failed = carry_out(runs, store, executor, again=again, resume=resume, report=report)
    else:
        failed = failures(runs, store)
        if failed and not (resume or rebuild):
            keep_request(kept, name, request, runs)
    results = store.results(runs)
    if rebuild and not results.finished:
        raise LapwingError(f"{store.root} holds no finished run of {name}; leave --rebuild out to make them")
    done = Reproduction(plan, [], failed, results, [])
    return _with_pages(artefact, done, runs, store, pages or out / name, request.command(name))


def _with_pages(
    artefact: Artefact, done: Reproduction, runs: list[Run], store: RunStore, folder: Path, command: str
) -> Reproduction:
    """The same with its tables, written; as it is where no run finished."""
    if not done.results.finished:
        return done
    with _numbers_that_make_tables(store):
        done = replace(done, tables=artefact.table(done.plan, done.results))
    try:
        return replace(done, files=_write(artefact, done, runs, store, folder, command))
    except LapwingError as error:
        raise PageNotWrittenError(str(error), done) from error


@contextmanager
def _numbers_that_make_tables(store: RunStore) -> Iterator[None]:
    """An error in words where runs were changed by hand to hold something else than their task writes."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, LapwingError):
            raise
        raise LapwingError(
            f"a run in {store.root} holds numbers that make no table ({type(error).__name__}: {error}); "
            "it is damaged, or of another version: move the runs away and make them again"
        ) from error


def _plan(artefact: Artefact, request: Request) -> Plan:
    layouts = None if request.layouts is None else Path(request.layouts)
    size = {"seeds": request.seeds, "steps": request.steps}
    return make_plan(artefact.spec, full=bool(request.full), **size, worlds=request.worlds, layouts=layouts)


def _names(worlds: Any) -> tuple[str, ...] | None:
    """Names of worlds as they were given, or none; a single text would pass for a list of letters."""
    if worlds is None:
        return None
    listed = tuple(worlds) if isinstance(worlds, Iterable) and not isinstance(worlds, str) else (None,)
    if not all(isinstance(name, str) for name in listed):
        raise LapwingError(f"worlds are a list of names, got {shown(worlds)}")
    return listed


def _write(
    artefact: Artefact, done: Reproduction, runs: list[Run], store: RunStore, folder: Path, command: str
) -> list[Path]:
    """The page, the tables as LaTeX and JSON, the figures as PNG and PDF."""
    plan, name = done.plan, done.plan.spec.name
    written: list[Path] = []
    figures = []
    with _numbers_that_make_tables(store):
        pictures = list(artefact.pictures(plan, done.results))
    for picture in pictures:
        figure = picture_figure(picture)
        stem = f"{name}-{picture.name}" if picture.name != name else name
        written += [save_figure(figure, folder / f"{stem}.{kind}") for kind in ("png", "pdf")]
        figures.append((f"{stem}.png", picture.description or picture.title.replace("\n", " ")))
    page = _page(done, runs, figures, store, command)
    written.insert(0, _write_text(folder / f"{name}.md", page))
    written.append(_write_text(folder / f"{name}.tex", "\n\n".join(table.latex() for table in done.tables) + "\n"))
    content = {"artefact": name, "command": command, "tables": {table.name: table.records() for table in done.tables}}
    write_json(folder / f"{name}.json", content)
    return [*written, folder / f"{name}.json"]


def _page(done: Reproduction, runs: list[Run], figures: list[tuple[str, str]], store: RunStore, command: str) -> str:
    """Everything about a study in Markdown: command and date, tables, figures, deviations."""
    plan, failed = done.plan, done.failures
    spec = plan.spec
    finished = [one.run for one in done.results.finished]
    dates = sorted(store.date(run)[:10] for run in finished)
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    distinct = {run.key: run for run in finished}
    planned = len({run.key for run in runs})
    counted = f"{planned} runs" if len(distinct) == planned else f"only {len(distinct)} of {planned} runs finished"
    seconds = sum(store.seconds(run) for run in distinct.values())
    made = [f"{name} {version}" for name, version in store.versions(finished[0]).items()]
    lines = [
        f"# {plan.title}",
        "",
        f"{spec.paper + ' of the paper' if spec.paper else 'A study of our own'}. Made with `{command}` on "
        f"{markdown_text(when)}: {counted}, {seconds / 60:.1f} minutes of one core in all "
        f"({markdown_text(', '.join(made))}).",
        "",
    ]
    for table in done.tables:
        # The page's own title need not be repeated.
        text = table.markdown().removeprefix(f"**{plan.title}**")
        lines += [text.strip(), ""]
    for file, words in figures:
        lines += [f"![{words}]({file})", ""]
    if spec.deviations:
        lines += ["**Deviations from the paper**" if spec.paper else "**How it was done**", ""]
        lines += [f"* {deviation}" for deviation in spec.deviations] + [""]
    if failed:
        lines += ["**Runs that failed**", ""]
        named = [f"{one.run.method}, {one.run.world_label}, seed {one.run.seed}: {one.error}" for one in failed]
        lines += [f"* {markdown_text(words)}" for words in named]
        lines.append("")
    return "\n".join(lines)


def _write_text(path: Path, text: str) -> Path:
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path
