"""What commands print about results: spectrum, scores, problems, and the exit code."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lapwing.cli import terminal
from lapwing.evaluation import Score
from lapwing.report.run_folder import spectrum_rows
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.schemas import is_number

UNTRUSTED = 3

# Keys of scores in files and JSON, and how tables name them.
LABELS = {"learned": "learned", "baseline": "tabular estimate", "model": "model"}
SCORE_FIELDS = {
    "cosine": ("cosine (the paper's)", ".4f"),
    "subspace_cosine": ("subspace cosine", ".4f"),
    "mean_eigenvalue_error": ("mean eigenvalue error, successor(0.9)", ".2%"),
}


class Result(NamedTuple):
    """One model of a run.

    Attributes:
        model: what was learned.
        folder: where it is saved.
        scores: against the ground truth, by ``learned`` and ``baseline``; empty where there is none.
        files: those that were written.
    """

    model: LaplacianRepresentation
    folder: Path
    scores: dict[str, Score]
    files: list[Path]


def show_problems(model: LaplacianRepresentation, which: str = "") -> None:
    """Print each problem of a result on standard error; first whether it must not be trusted at all.

    Args:
        model: the result.
        which: stands before each line where there are several results.
    """
    problems = model.problems()
    names = [problem.name for problem in problems if problem.untrusted]
    if names:
        terminal.fail(f"{which}this result must not be trusted: {', '.join(names)}")
    for problem in problems:
        terminal.note(f"{which}{problem}")


def exit_code(model: LaplacianRepresentation) -> int:
    """The exit code of a command that wrote a result.

    Args:
        model: the result.

    Returns:
        3 if it must not be trusted, else 0; components that have not converged do not count.
    """
    return UNTRUSTED if any(problem.untrusted for problem in model.problems()) else 0


def print_spectrum(model: LaplacianRepresentation, label: str) -> None:
    """Print the eigenvalues of a representation with their verdicts.

    Args:
        model: the representation.
        label: what it belongs to.
    """
    table = spectrum_rows(model)
    columns = list(table[0])
    rows = [[terminal.cell(row[column]) for column in columns] for row in table]
    if terminal.is_narrow():
        # Files and pipes have one number to a cell; a small window is too narrow for that.
        columns = [column for column in columns if not column.startswith("+-")]
        rows = [[_with_error_bar(row, column) for column in columns] for row in table]
    terminal.print_table(f"{label}: smallest eigenvalues", columns, rows)
    print(f"orthonormality error {model.certificate().orthonormality_error:.1e}")


def _with_error_bar(row: dict[str, Any], column: str) -> str:
    bar = row.get(f"+- {column}")
    return terminal.cell(row[column]) if bar is None else f"{row[column]:.4g} ± {bar:.1g}"


def run_facts(model: LaplacianRepresentation, label: str, out: Path, written: Sequence[Path]) -> dict[str, Any]:
    """What ``--json`` prints about a run that was written.

    Args:
        model: the representation.
        label: what it belongs to.
        out: the run folder.
        written: files in it.

    Returns:
        JSON types.
    """
    facts = {"world": label, "folder": str(out), "spectrum": spectrum_rows(model), "files": [p.name for p in written]}
    facts["problems"] = [problem.as_dict() for problem in model.problems()]
    return facts | {name: model.metadata[name] for name in ("steps", "seconds", "config") if name in model.metadata}


def show_results(results: Sequence[Result], label: str, out: Path, page: Path, *, as_json: bool, new: bool) -> int:
    """Print tables, files and problems of learning, or all of it as JSON.

    Args:
        results: one per seed.
        label: what was learned.
        out: the run folder.
        page: the report, where there is one.
        as_json: print JSON.
        new: whether the files were written just now, and so are listed.

    Returns:
        The exit code of the worst.
    """
    code = max(exit_code(result.model) for result in results)
    several = len(results) > 1
    pages = [page] if several and page.exists() else []
    if as_json:
        facts = [_facts(label, result) for result in results]
        together = {"world": label, "folder": str(out), "files": [path.name for path in pages], "seeds": facts}
        terminal.print_json(together if several else facts[0])
        return code
    if not several:
        print_spectrum(results[0].model, label)
    scores = results[0].scores
    columns, rows = seeds_summary(results) if several else summary(results[0].model, scores)
    against = f" against the ground truth (clusters within {scores['learned'].tolerance:g})" if scores else ""
    terminal.print_table(f"{label}{against}", columns, rows)
    folders = [f"{result.folder} ({len(result.files)} files)" for result in results]
    for written in ([*folders, *pages] if several else results[0].files) if new else []:
        print(f"wrote {written}")
    for result in results:
        show_problems(result.model, f"seed {_number(result.model, 'seed', '')}: " if several else "")
    return code


def summary(model: LaplacianRepresentation, scores: dict[str, Score]) -> tuple[list[str], list[list[str]]]:
    """The table at the end of learning.

    Args:
        model: what was learned.
        scores: by ``learned`` and ``baseline``; may be empty.

    Returns:
        Columns and rows: similarities where there is a ground truth, effort, and counts of verdicts.
    """
    of_learned = {
        "expected cosine": f"{model.certificate().expected_cosine:.4f}",
        "steps": _number(model, "steps", ","),
        "seconds": _number(model, "seconds", ".1f"),
        "verdicts": _verdicts(model),
    }
    of_each = zip(*(score_cells(found) for found in scores.values()), strict=True)
    named = [[label, *cells] for (label, _), cells in zip(SCORE_FIELDS.values(), of_each, strict=False)]
    columns = ["", *(LABELS[name] for name in scores or ["learned"])]
    empty = ["-"] * (len(columns) - 2)
    return columns, named + [[name, cell, *empty] for name, cell in of_learned.items()]


def seeds_summary(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """The table at the end of learning several seeds.

    Args:
        results: one per seed.

    Returns:
        Columns and rows: one per seed, then their mean and the baseline.
    """
    scored = bool(results[0].scores)
    labels = [label for label, _ in SCORE_FIELDS.values()] if scored else []
    columns = ["seed", *labels, "expected cosine", "steps", "verdicts"]
    rows = []
    for model, _, scores, _ in results:
        cells = score_cells(scores["learned"]) if scored else []
        expected = f"{model.certificate().expected_cosine:.4f}"
        seed, steps = _number(model, "seed", ""), _number(model, "steps", ",")
        rows.append([seed, *cells, expected, steps, _verdicts(model)])
    if scored:
        columns_of = {name: [getattr(result.scores["learned"], name) for result in results] for name in SCORE_FIELDS}
        means = [f"{np.mean(columns_of[name]):{form}}" for name, (_, form) in SCORE_FIELDS.items()]
        rows.append(["mean", *means, "-", "-", "-"])
    if "baseline" in results[0].scores:
        rows.append([LABELS["baseline"], *score_cells(results[0].scores["baseline"]), "-", "-", "-"])
    return columns, rows


def score_cells(found: Score) -> list[str]:
    """The numbers of a score as cells of a table.

    Args:
        found: the score.

    Returns:
        Text, in the order of ``SCORE_FIELDS``.
    """
    return [format(getattr(found, name), form) for name, (_, form) in SCORE_FIELDS.items()]


def _number(model: LaplacianRepresentation, name: str, form: str) -> str:
    """A number of the metadata, which may come from a file and be missing or of the wrong type."""
    found = model.metadata.get(name)
    return format(found, form) if is_number(found) else "-"


def _verdicts(model: LaplacianRepresentation) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(model.certificate().verdicts).items())


def _facts(label: str, result: Result) -> dict[str, Any]:
    facts = run_facts(result.model, label, result.folder, result.files)
    scores = {name: found.as_dict() for name, found in result.scores.items()}
    return {**facts, "scores": scores} if scores else facts
