"""Representations: ``lapwing solve`` and ``score``."""

from pathlib import Path
from typing import Any

from lapwing.cli import terminal
from lapwing.cli.commands.health import exit_code, show_problems
from lapwing.cli.commands.words import file_name, plain
from lapwing.cli.words.representations import Score, Solve
from lapwing.cli.words.spelling import spelled
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import parse_definition
from lapwing.environments import world_from_description
from lapwing.errors import LapwingError
from lapwing.evaluation.score import Score as Result
from lapwing.evaluation.score import counting_score, score
from lapwing.report.run_folder import refuse_foreign, spectrum_rows, write_run
from lapwing.representation import LaplacianRepresentation, load
from lapwing.solving import solve
from lapwing.storage.folders import locked
from lapwing.storage.models import MANIFEST as MODEL_MANIFEST
from lapwing.storage.orders import forget_order, refuse_unfinished
from lapwing.storage.reading import read_array


def run_solve(words: Solve) -> int:
    """Solve exactly (or by counting) and write model, spectrum and pictures; the exit code says whether to trust it."""
    definition = parse_definition(words.definition)
    source, label = _solvable(words)
    out = words.out or Path("runs") / f"solve-{file_name(label)}"
    refuse_foreign(out)
    with locked(out), terminal.spinner(f"solving {label}") as say:
        refuse_unfinished(out)
        model = solve(
            source,
            words.dim,
            definition=definition,
            observation=words.observation,
            slip=words.slip,
            policy=None if words.policy is None else read_array(words.policy),
            rho=words.rho,
            layouts=words.layouts,
            say=say,
        )
        data = source if isinstance(source, Trajectories) else None
        written = write_run(model, out, data=data, command=spelled(words))
        forget_order(out)
    if words.json:
        terminal.print_json(run_facts(model, label, out, written))
        return exit_code(model)
    print_spectrum(model, label)
    for path in written:
        print(f"wrote {path}")
    show_problems(model)
    return exit_code(model)


def run_score(words: Score) -> None:
    """Score a saved representation against a truth, with the counting estimate beside it if data are given."""
    model = load(words.model)
    show_problems(model)
    truth = _truth_for(model, words)
    scores = {"model": score(model, truth, definition=words.definition, tolerance=words.tolerance)}
    if words.data is not None:
        data = Trajectories.load(words.data)
        scores["counting estimate"] = counting_score(
            data, truth, definition=words.definition, tolerance=words.tolerance
        )
    if words.json:
        terminal.print_json({name.split()[0]: found.as_dict() for name, found in scores.items()})
        return
    _print_scores(f"Score of {words.model}", scores, words.definition)


def _print_scores(title: str, scores: dict[str, Result], definition: str) -> None:
    tolerance = next(iter(scores.values())).tolerance
    columns = ["", "cosine (the paper's)", "subspace cosine", f"mean eigenvalue error, {definition}"]
    rows = [
        [name, f"{found.cosine:.4f}", f"{found.subspace_cosine:.4f}", f"{found.mean_eigenvalue_error:.2%}"]
        for name, found in scores.items()
    ]
    terminal.print_table(f"{title} (clusters within {tolerance:g})", columns, rows)


def print_spectrum(model: LaplacianRepresentation, label: str) -> None:
    """The eigenvalues of a representation with their verdicts, as a table."""
    table = spectrum_rows(model)
    columns = list(table[0])
    rows = [[plain(row[column]) for column in columns] for row in table]
    if terminal.is_narrow():
        # Files and pipes have one number to a cell; a small window has no room for that.
        columns = [column for column in columns if not column.startswith("+-")]
        rows = [[_with_error_bar(row, column) for column in columns] for row in table]
    terminal.print_table(f"{label}: smallest eigenvalues", columns, rows)
    print(f"orthonormality error {model.certificate().orthonormality_error:.1e}")


def _with_error_bar(row: dict[str, Any], column: str) -> str:
    bar = row.get(f"+- {column}")
    return plain(row[column]) if bar is None else f"{row[column]:.4g} ± {bar:.1g}"


def run_facts(model: LaplacianRepresentation, label: str, out: Path, written: list[Path]) -> dict[str, Any]:
    """What ``--json`` says of a run that was written."""
    facts = {"world": label, "folder": str(out), "spectrum": spectrum_rows(model), "files": [p.name for p in written]}
    facts["problems"] = [problem.as_dict() for problem in model.problems()]
    return facts | {name: model.metadata[name] for name in ("steps", "seconds", "config") if name in model.metadata}


def _solvable(words: Solve) -> tuple[Any, str]:
    path = Path(words.source)
    if (path / DATA_MANIFEST).is_file():
        return Trajectories.load(path), path.resolve().name
    if path.suffix == ".npy":
        return read_array(path), path.stem
    return words.source, words.source


def _truth_for(model: LaplacianRepresentation, words: Score) -> LaplacianRepresentation:
    if words.truth is not None and (Path(words.truth) / MODEL_MANIFEST).is_file():
        return load(words.truth)
    if words.truth is not None:
        world = world_from_description(model.metadata.get("world"))
        observation = getattr(world, "observation", None)
        return solve(words.truth, model.dim, observation=observation, layouts=words.layouts)
    world = world_from_description(model.metadata.get("world"))
    if world is None:
        raise LapwingError("the model does not say which world it belongs to; name one with --truth")
    return solve(world, model.dim)
