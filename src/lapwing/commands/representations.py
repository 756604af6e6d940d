"""Representations: ``lapwing solve``, ``learn`` and ``score``."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from lapwing import terminal
from lapwing.cli import Learn, Score, Solve
from lapwing.commands.words import GYMNASIUM_PREFIX, collection_source, file_name, plain
from lapwing.definitions import parse_definition
from lapwing.environments.descriptions import world_from_description
from lapwing.errors import LapwingError
from lapwing.evaluation.score import Score as Result
from lapwing.evaluation.score import counting_score, score
from lapwing.exact import operator, solve
from lapwing.files import read_array
from lapwing.learning import Learner
from lapwing.representation import MANIFEST as MODEL_MANIFEST
from lapwing.representation import LaplacianRepresentation, load
from lapwing.runs import refuse_foreign, spectrum_rows, write_run
from lapwing.spectral.operators import Operator
from lapwing.training.config import LearnConfig
from lapwing.training.engine import LearningDivergedError, Report
from lapwing.trajectories.collect import collect
from lapwing.trajectories.container import MANIFEST as DATA_MANIFEST
from lapwing.trajectories.container import Trajectories


def run_solve(words: Solve) -> None:
    """Solve exactly (or by counting) and write model, spectrum and pictures."""
    definition = parse_definition(words.definition)
    source, label = _solvable(words)
    out = words.out or Path("runs") / f"solve-{file_name(label)}"
    refuse_foreign(out)
    with terminal.spinner(f"solving {label}") as say:
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
        written = write_run(model, out)
    if words.json:
        terminal.print_json(_run_facts(model, label, out, written))
        return
    _print_spectrum(model, label)
    for path in written:
        print(f"wrote {path}")


def run_learn(words: Learn) -> None:
    """Learn from a world, its exact operator or a data set, and write the run."""
    data, label, truth = _learnable(words)
    out = words.out or Path("runs") / f"learn-{file_name(label)}"
    refuse_foreign(out)
    learner = Learner(words.preset, **_learning_options(words))
    with terminal.progress_bar(f"learning {label}") as progress:
        try:
            model = learner.fit(data, truth=truth, report=lambda line: progress(line.step, line.steps, _headline(line)))
        except LearningDivergedError as error:
            if error.models:
                write_run(error.models[0], out)
                raise LapwingError(f"{error} in {out}, after {error.step} steps") from error
            raise
        written = write_run(model, out)
    scores = {} if truth is None else {"learned": score(model, truth)}
    if truth is not None and isinstance(data, Trajectories) and data.has_table:
        scores["counting estimate"] = counting_score(data, truth)
    if words.json:
        named = {name.split()[0]: found.as_dict() for name, found in scores.items()}
        terminal.print_json({**_run_facts(model, label, out, written), "scores": named})
        return
    _print_spectrum(model, label)
    if scores:
        _print_scores(f"{label} against the exact answer", scores, "successor(0.9)")
    print(f"{model.metadata['steps']:,} steps in {model.metadata['seconds']:.1f} s")
    if not model.certificate().converged:
        terminal.note("some components have not converged: give more --steps, or see the verdicts above")
    for path in written:
        print(f"wrote {path}")


def run_score(words: Score) -> None:
    """Score a saved representation against a truth, with the counting estimate beside it if data are given."""
    model = load(words.model)
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


def _print_spectrum(model: LaplacianRepresentation, label: str) -> None:
    table = spectrum_rows(model)
    columns = list(table[0])
    rows = [[plain(row[column]) for column in columns] for row in table]
    terminal.print_table(f"{label}: smallest eigenvalues", columns, rows)
    print(f"orthonormality error {model.certificate().orthonormality_error:.1e}")


def _run_facts(model: LaplacianRepresentation, label: str, out: Path, written: list[Path]) -> dict[str, Any]:
    facts = {"world": label, "folder": str(out), "spectrum": spectrum_rows(model), "files": [p.name for p in written]}
    return facts | {name: model.metadata[name] for name in ("steps", "seconds", "config") if name in model.metadata}


def _learnable(words: Learn) -> tuple[Trajectories | Operator, str, LaplacianRepresentation | None]:
    """What to learn from, its label, and the truth where there is one."""
    if (Path(words.source) / DATA_MANIFEST).is_file():
        if words.exact or words.slip is not None or words.observation is not None:
            raise LapwingError("--exact, --slip and --observation are for worlds; a data folder is taken as it is")
        data = Trajectories.load(words.source)
        world = world_from_description(data.metadata.get("world"))
        return data, Path(words.source).resolve().name, None if world is None else _exact(world, words.dim)
    options: dict[str, Any] = {"observation": words.observation, "slip": words.slip, "layouts": words.layouts}
    source, label = collection_source(words.source)
    in_gymnasium = words.source.startswith(GYMNASIUM_PREFIX)
    truth = None if in_gymnasium else _exact(words.source, words.dim, **options)
    if words.exact:
        return operator(source, **options), label, truth
    with terminal.progress_bar(f"collecting from {label}") as progress:
        return collect(source, words.data_steps, seed=words.seed, progress=progress, **options), label, truth


def _exact(source: Any, dim: int, **options: Any) -> LaplacianRepresentation:
    with terminal.spinner("solving exactly, to compare with") as say:
        return solve(source, dim, say=say, **options)


def _learning_options(words: Learn) -> dict[str, Any]:
    """The options that were really given, for the preset to be changed by."""
    known = {field.name for field in fields(LearnConfig)}
    given = {name: value for name, value in vars(words).items() if name in known and value is not None}
    return given | ({"stop_when_converged": False} if words.all_steps else {})


def _headline(line: Report) -> str:
    parts = [f"loss {float(np.mean(line.metrics.loss)):.4f}"]
    parts += [f"{name} {line.extra[name]:.4f}" for name in ("cosine", "angle") if name in line.extra]
    return ", ".join(parts)


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
        description = model.metadata.get("world") or {}
        observation = description.get("observation") if description.get("kind") == "grid" else None
        return solve(words.truth, model.dim, observation=observation, layouts=words.layouts)
    world = world_from_description(model.metadata.get("world"))
    if world is None:
        raise LapwingError("the model does not say which world it belongs to; name one with --truth")
    return solve(world, model.dim)
