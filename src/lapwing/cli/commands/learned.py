"""What became of learning: each model a run of its own, tables of their scores, one page, and the exit code."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing.cli import terminal
from lapwing.cli.commands.health import exit_code, show_problems
from lapwing.cli.commands.representations import print_spectrum, run_facts
from lapwing.cli.words.representations import Learn
from lapwing.cli.words.spelling import spelled
from lapwing.data.trajectories import Trajectories
from lapwing.evaluation.score import Score, counting_score, score
from lapwing.operators.operator import Operator
from lapwing.report.run_folder import write_run
from lapwing.representation import LaplacianRepresentation, load
from lapwing.storage.records import is_number

LEARNED, COUNTED = "learned", "counting estimate"
PAGE = "report.html"

# As many as one page shows side by side.
MAX_SEEDS = 24


class Result(NamedTuple):
    """One model, where it is kept, how it scores against the truth where there is one, and the files written."""

    model: LaplacianRepresentation
    folder: Path
    scores: dict[str, Score]
    files: list[Path]


def seeds_of(words: Learn) -> list[int]:
    """The seeds that are learned in one program."""
    return list(range(words.seed, words.seed + words.seeds))


def folders_of(words: Learn, out: Path) -> list[Path]:
    """Where the model of each seed goes: a single one into the folder itself."""
    return [out] if words.seeds == 1 else [out / f"seed-{seed}" for seed in seeds_of(words)]


def write_results(
    words: Learn,
    models: Sequence[LaplacianRepresentation],
    out: Path,
    data: Trajectories | Operator,
    truth: LaplacianRepresentation | None,
) -> list[Result]:
    """Write every run and the page that shows them."""
    counted = {}
    if truth is not None and isinstance(data, Trajectories) and data.has_table:
        counted[COUNTED] = counting_score(data, truth)
    results = []
    for model, folder in zip(models, folders_of(words, out), strict=True):
        scores = {} if truth is None else {LEARNED: score(model, truth), **counted}
        files = write_run(model, folder, data=data, scores=scores, command=spelled(words))
        results.append(Result(model, folder, scores, files))
    if not words.no_report:
        from lapwing.report import write_report

        page = write_report([result.folder for result in results], out / PAGE)
        if len(results) == 1:
            results[0].files.append(page)
    return results


def read_results(words: Learn, out: Path) -> list[Result]:
    """The runs of an earlier command, as they were written; their scores are in their files."""
    folders = folders_of(words, out)
    return [Result(load(folder), folder, {}, sorted(folder.glob("[!.]*.*"))) for folder in folders]


def show_results(words: Learn, label: str, out: Path, results: Sequence[Result], *, new: bool = True) -> int:
    """Tables, files (if they are new) and problems, or all of it as JSON; the exit code of the worst."""
    code = max(exit_code(result.model) for result in results)
    page = [out / PAGE] if len(results) > 1 and (out / PAGE).exists() else []
    if words.json:
        facts = [_facts(label, result) for result in results]
        several = {"world": label, "folder": str(out), "files": [path.name for path in page], "seeds": facts}
        terminal.print_json(facts[0] if len(facts) == 1 else several)
        return code
    if len(results) == 1:
        print_spectrum(results[0].model, label)
    scores = results[0].scores
    columns, rows = summary(results[0].model, scores) if len(results) == 1 else seeds_summary(results)
    against = f" against the exact answer (clusters within {scores[LEARNED].tolerance:g})" if scores else ""
    terminal.print_table(f"{label}{against}", columns, rows)
    runs = [f"{result.folder} ({len(result.files)} files)" for result in results]
    for written in (results[0].files if len(results) == 1 else [*runs, *page]) if new else []:
        print(f"wrote {written}")
    for result in results:
        show_problems(result.model, "" if len(results) == 1 else f"seed {_number(result.model, 'seed', '')}: ")
    return code


def summary(model: LaplacianRepresentation, scores: dict[str, Score]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table at the end: similarities where there is a truth, effort, and verdicts counted."""
    of_learned = {
        "expected cosine": f"{model.certificate().expected_cosine:.4f}",
        "steps": _number(model, "steps", ","),
        "seconds": _number(model, "seconds", ".1f"),
        "verdicts": _verdicts(model),
    }
    of_each = zip(*(_score_cells(found) for found in scores.values()), strict=True)
    named = [[name, *cells] for name, cells in zip(SCORE_NAMES, of_each, strict=False)]
    columns = ["", *(scores or [LEARNED])]
    empty = ["-"] * (len(columns) - 2)
    return columns, named + [[name, cell, *empty] for name, cell in of_learned.items()]


def seeds_summary(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """The same with a row for each seed, then their mean and what counting the same data gives."""
    scored = bool(results[0].scores)
    columns = ["seed", *(SCORE_NAMES if scored else []), "expected cosine", "steps", "verdicts"]
    rows = []
    for model, _, scores, _ in results:
        cells = _score_cells(scores[LEARNED]) if scored else []
        expected = f"{model.certificate().expected_cosine:.4f}"
        seed, steps = _number(model, "seed", ""), _number(model, "steps", ",")
        rows.append([seed, *cells, expected, steps, _verdicts(model)])
    if not scored:
        return columns, rows
    found = [result.scores[LEARNED] for result in results]
    means = [float(np.mean([getattr(one, name) for one in found])) for name in SCORE_FIELDS]
    rows.append(["mean", *_cells(*means), "-", "-", "-"])
    if COUNTED in results[0].scores:
        rows.append([COUNTED, *_score_cells(results[0].scores[COUNTED]), "-", "-", "-"])
    return columns, rows


SCORE_NAMES = ("cosine (the paper's)", "subspace cosine", "mean eigenvalue error, successor(0.9)")
SCORE_FIELDS = ("cosine", "subspace_cosine", "mean_eigenvalue_error")


def _score_cells(found: Score) -> list[str]:
    return _cells(*(getattr(found, name) for name in SCORE_FIELDS))


def _cells(cosine: float, subspace_cosine: float, error: float) -> list[str]:
    return [f"{cosine:.4f}", f"{subspace_cosine:.4f}", f"{error:.2%}"]


def _number(model: LaplacianRepresentation, name: str, form: str) -> str:
    """A number of the metadata, which may come from a file and lack or garble it."""
    found = model.metadata.get(name)
    return format(found, form) if is_number(found) else "-"


def _verdicts(model: LaplacianRepresentation) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(model.certificate().verdicts).items())


def _facts(label: str, result: Result) -> dict[str, Any]:
    facts = run_facts(result.model, label, result.folder, result.files)
    if not result.scores:
        return facts
    return {**facts, "scores": {name.split()[0]: found.as_dict() for name, found in result.scores.items()}}
