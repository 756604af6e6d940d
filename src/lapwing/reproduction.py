"""One call per table, figure and theorem of the paper: plan, run what is missing, write the page from files alone."""

import shlex
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from lapwing.errors import LapwingError
from lapwing.experiments.registry import find_artefact
from lapwing.files import replaced_file, write_json
from lapwing.plots.figures import save_figure
from lapwing.plots.studies import picture_figure
from lapwing.studies.artefact import Artefact, Plan, make_plan
from lapwing.studies.executors import make_executor
from lapwing.studies.runs import Results, Run
from lapwing.studies.store import RunStore
from lapwing.studies.study import Failure, Progress, carry_out, failures, pending
from lapwing.studies.tables import Table

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


def reproduce(
    name: str,
    *,
    full: bool = False,
    seeds: int | None = None,
    steps: int | None = None,
    worlds: Sequence[str] | None = None,
    layouts: str | Path | None = None,
    out: str | Path = DEFAULT_FOLDER,
    pages: str | Path | None = None,
    on: str = "local",
    workers: int | None = None,
    again: bool = False,
    retry: bool = False,
    rebuild: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Reproduce a table, figure or theorem of the paper, or one of our own studies.

    Runs that are finished are not made again; an interrupted study goes on where it stopped.

    Args:
        name: one of :data:`lapwing.experiments.registry.ARTEFACTS`.
        full: the paper's seeds and steps, instead of a quick version.
        seeds: how many seeds instead.
        steps: gradient steps instead.
        worlds: which worlds instead.
        layouts: folder of layout files, for the authors' own worlds.
        out: folder of the study: ``runs/`` with one folder per run, and a folder of tables and figures.
        pages: where tables and figures go instead.
        on: ``local``, ``ray`` or ``ray://host:port``.
        workers: runs at a time; as many as cores unless said.
        again: make finished runs again.
        retry: make failed runs again.
        rebuild: make no run; tables and figures from the files that are there.
        report: called whenever a run begins or ends.

    Note:
        Workers are fresh processes: in a script, call this under ``if __name__ == "__main__":``, as always with
        processes in Python. Notebooks and the command line need no such line.
    """
    artefact = find_artefact(name)
    chosen = None if worlds is None else tuple(worlds)
    folder = None if layouts is None else Path(layouts)
    plan = make_plan(artefact.spec, full=full, seeds=seeds, steps=steps, worlds=chosen, layouts=folder)
    store = RunStore(Path(out) / "runs")
    runs = artefact.runs(plan)
    if not rebuild and pending(runs, store, again, retry):
        with closing(make_executor(on, workers)) as executor:
            carry_out(runs, store, executor, again=again, retry=retry, report=report)
    failed = failures(runs, store)
    results = store.results(runs)
    if not results.finished:
        if rebuild:
            raise LapwingError(f"{store.root} holds no finished run of {name}; leave --rebuild out to make them")
        return Reproduction(plan, [], failed, results, [])
    tables = artefact.table(plan, results)
    command = _command(name, full, seeds, steps, worlds, layouts)
    files = _write(artefact, plan, runs, results, tables, failed, store, Path(pages or Path(out) / name), command)
    return Reproduction(plan, tables, failed, results, files)


def _write(
    artefact: Artefact,
    plan: Plan,
    runs: list[Run],
    results: Results,
    tables: list[Table],
    failed: list[Failure],
    store: RunStore,
    folder: Path,
    command: str,
) -> list[Path]:
    """The page, the tables as LaTeX and JSON, the figures as PNG and PDF."""
    name = plan.spec.name
    written: list[Path] = []
    figures = []
    for picture in artefact.pictures(plan, results):
        figure = picture_figure(picture)
        stem = f"{name}-{picture.name}" if picture.name != name else name
        written += [save_figure(figure, folder / f"{stem}.{kind}") for kind in ("png", "pdf")]
        figures.append((f"{stem}.png", picture.description or picture.title.replace("\n", " ")))
    page = _page(plan, runs, results, tables, figures, failed, store, command)
    written.insert(0, _write_text(folder / f"{name}.md", page))
    written.append(_write_text(folder / f"{name}.tex", "\n\n".join(table.latex() for table in tables) + "\n"))
    content = {"artefact": name, "command": command, "tables": {table.name: table.records() for table in tables}}
    write_json(folder / f"{name}.json", content)
    return [*written, folder / f"{name}.json"]


def _page(
    plan: Plan,
    runs: list[Run],
    results: Results,
    tables: list[Table],
    figures: list[tuple[str, str]],
    failed: list[Failure],
    store: RunStore,
    command: str,
) -> str:
    """Everything about a study in Markdown: command and date, tables, figures, deviations."""
    spec = plan.spec
    finished = [one.run for one in results.finished]
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
        f"{spec.paper + ' of the paper' if spec.paper else 'A study of our own'}. Made with `{command}` on {when}: "
        f"{counted}, {seconds / 60:.1f} minutes of one core in all ({', '.join(made)}).",
        "",
    ]
    for table in tables:
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
        lines += [f"* {one.run.method}, {one.run.world_label}, seed {one.run.seed}: {one.error}" for one in failed]
        lines.append("")
    return "\n".join(lines)


def _write_text(path: Path, text: str) -> Path:
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _command(
    name: str,
    full: bool,
    seeds: int | None,
    steps: int | None,
    worlds: Sequence[str] | None,
    layouts: str | Path | None,
) -> str:
    """The words that make this again; the layouts folder is somewhere else on every machine."""
    words = ["lapwing", "reproduce", name, "--full" if full else "--quick"]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    words += [] if steps is None else ["--steps", str(steps)]
    words += [] if worlds is None else ["--worlds", *map(shlex.quote, worlds)]
    words += [] if layouts is None else ["--layouts", "DIR"]
    return " ".join(words)
