"""Learning: ``lapwing learn``."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from lapwing import terminal
from lapwing.commands.health import exit_code, show_problems
from lapwing.commands.representations import print_spectrum, run_facts
from lapwing.commands.resuming import resumed, under_order
from lapwing.commands.words import GYMNASIUM_PREFIX, collection_source, file_name
from lapwing.environments.descriptions import world_from_description
from lapwing.errors import LapwingError
from lapwing.evaluation.score import Score, counting_score, score
from lapwing.exact import operator, solve
from lapwing.learning import Learner
from lapwing.locks import locked
from lapwing.orders import CHECKPOINTS, EXPERIENCE, FINISHED
from lapwing.representation import LaplacianRepresentation, load
from lapwing.runs import refuse_foreign, write_run
from lapwing.sinks import SINKS, make_sink
from lapwing.spectral.operators import Operator
from lapwing.training.config import LearnConfig
from lapwing.training.engine import LearningDivergedError, NetworkCollapsedError, Report
from lapwing.trajectories.collect import collect
from lapwing.trajectories.container import MANIFEST as DATA_MANIFEST
from lapwing.trajectories.container import Trajectories
from lapwing.words.representations import Learn
from lapwing.words.spelling import spelled

LEARNED, COUNTED = "learned", "counting estimate"


def run_learn(words: Learn) -> int:
    """Learn from a world, its exact operator or a data set, and write the run; or go on with one.

    The exit code says if it went well.
    """
    order = None
    if words.resume is not None:
        words, order = resumed(words)
        if order.status == FINISHED:
            return _show_finished(words)
    if not words.source:
        raise LapwingError("say what to learn, e.g. `lapwing learn Rooms-16`; `lapwing worlds` lists the worlds")
    out = words.out or Path("runs") / f"learn-{file_name(_label(words))}"
    refuse_foreign(out, besides=SINKS)
    # Before any work: an option that is wrong or a package that is missing is better known at once.
    learner = Learner(words.preset, **_learning_options(words))
    with locked(out), under_order(words, out, order):
        return _learn_and_write(words, learner, out)


def _learn_and_write(words: Learn, learner: Learner, out: Path) -> int:
    with ExitStack() as open_sinks:
        sinks = [open_sinks.enter_context(make_sink(name, out)) for name in dict.fromkeys(words.log)]
        data, truth = _learnable(words, out)
        model = _learned(words, learner, data, truth, sinks, out)
    with terminal.spinner("scoring, drawing, writing"):
        scores = _scores(model, data, truth)
        written = write_run(model, out, data=data, scores=scores, command=spelled(words))
        if not words.no_report:
            from lapwing.report import write_report

            written.append(write_report([out], out / "report.html"))
    _show(words, model, scores, out, written)
    return exit_code(model)


def _show_finished(words: Learn) -> int:
    """A run that has ended already, as it was written."""
    assert words.out is not None
    model, label = load(words.out), _label(words)
    if words.json:
        terminal.print_json(run_facts(model, label, words.out, sorted(words.out.glob("[!.]*.*"))))
    else:
        print_spectrum(model, label)
        show_problems(model)
        terminal.note(f"the run in {words.out} had ended; nothing was left to do")
    return exit_code(model)


def _learned(
    words: Learn,
    learner: Learner,
    data: Trajectories | Operator,
    truth: LaplacianRepresentation | None,
    sinks: Sequence[Callable[[Report], None]],
    out: Path,
) -> LaplacianRepresentation:
    """Learn, with each report on the screen and in the sinks; of what went wrong, the part that was good."""
    quality = "angle" if truth is None else "cosine"
    columns = ["step", "similarity" if truth is not None else "largest angle", "loss", "barrier"]
    with terminal.live_table(f"learning {_label(words)}", columns) as show:

        def report(line: Report) -> None:
            numbers = [line.extra.get(quality), *(float(np.mean(x)) for x in (line.metrics.loss, line.metrics.barrier))]
            cells = ["-" if number is None else f"{number:.4f}" for number in numbers]
            show(line.step, line.steps, [f"{line.step:,}", *cells])
            for sink in sinks:
                sink(line)

        try:
            return learner.fit(data, truth=truth, report=report, checkpoints=out / CHECKPOINTS)
        except (LearningDivergedError, NetworkCollapsedError) as error:
            if not error.models:
                raise
            # What is left of it names its problems, and is written like any other result.
            kept: LaplacianRepresentation = error.models[0]
            return kept


def _show(
    words: Learn, model: LaplacianRepresentation, scores: dict[str, Score], out: Path, written: list[Path]
) -> None:
    label = _label(words)
    if words.json:
        named = {name.split()[0]: found.as_dict() for name, found in scores.items()}
        terminal.print_json({**run_facts(model, label, out, written), "scores": named})
        return
    print_spectrum(model, label)
    columns, rows = summary(model, scores)
    against = f" against the exact answer (clusters within {scores[LEARNED].tolerance:g})" if scores else ""
    terminal.print_table(f"{label}{against}", columns, rows)
    for path in written:
        print(f"wrote {path}")
    show_problems(model)
    if not words.no_report:
        print(f"Open it in a browser: {written[-1].resolve().as_uri()}")


def summary(model: LaplacianRepresentation, scores: dict[str, Score]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table at the end: similarities where there is a truth, effort, and verdicts counted."""
    certificate = model.certificate()
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(certificate.verdicts).items())
    of_learned = {
        "expected cosine": f"{certificate.expected_cosine:.4f}",
        "steps": f"{model.metadata['steps']:,}",
        "seconds": f"{model.metadata['seconds']:.1f}",
        "verdicts": verdicts,
    }
    of_each = [
        ["cosine (the paper's)", *(f"{found.cosine:.4f}" for found in scores.values())],
        ["subspace cosine", *(f"{found.subspace_cosine:.4f}" for found in scores.values())],
        ["mean eigenvalue error, successor(0.9)", *(f"{found.mean_eigenvalue_error:.2%}" for found in scores.values())],
    ]
    columns = ["", *(scores or [LEARNED])]
    empty = ["-"] * (len(columns) - 2)
    return columns, (of_each if scores else []) + [[name, cell, *empty] for name, cell in of_learned.items()]


def _scores(
    model: LaplacianRepresentation, data: Trajectories | Operator, truth: LaplacianRepresentation | None
) -> dict[str, Score]:
    """Of what was learned and, as a yardstick, of counting the same data; none without a truth."""
    if truth is None:
        return {}
    scores = {LEARNED: score(model, truth)}
    if isinstance(data, Trajectories) and data.has_table:
        scores[COUNTED] = counting_score(data, truth)
    return scores


def _label(words: Learn) -> str:
    """What is learned, in a word: the name of a world, or of a data folder."""
    if _is_data(words):
        return Path(words.source).resolve().name
    return words.source.removeprefix(GYMNASIUM_PREFIX)


def _is_data(words: Learn) -> bool:
    return (Path(words.source) / DATA_MANIFEST).is_file()


def _learnable(words: Learn, out: Path) -> tuple[Trajectories | Operator, LaplacianRepresentation | None]:
    """What to learn from, and the truth where there is one."""
    if _is_data(words):
        if words.exact or words.slip is not None or words.observation is not None:
            raise LapwingError("--exact, --slip and --observation are for worlds; a data folder is taken as it is")
        data = Trajectories.load(words.source)
        world = world_from_description(data.metadata.get("world"))
        return data, None if world is None else _exact(world, words.dim)
    options: dict[str, Any] = {"observation": words.observation, "slip": words.slip, "layouts": words.layouts}
    source, label = collection_source(words.source)
    in_gymnasium = words.source.startswith(GYMNASIUM_PREFIX)
    truth = None if in_gymnasium else _exact(words.source, words.dim, **options)
    if words.exact:
        return operator(source, **options), truth
    # Own worlds repeat their experience; that of other environments is kept, for a run that must go on.
    kept = out / EXPERIENCE if in_gymnasium else None
    if kept is not None and (kept / DATA_MANIFEST).is_file():
        return Trajectories.load(kept), truth
    with terminal.progress_bar(f"collecting from {label}") as progress:
        return collect(source, words.data_steps, seed=words.seed, out=kept, progress=progress, **options), truth


def _exact(source: Any, dim: int, **options: Any) -> LaplacianRepresentation:
    with terminal.spinner("solving exactly, to compare with") as say:
        return solve(source, dim, say=say, **options)


def _learning_options(words: Learn) -> dict[str, Any]:
    """The options that were really given, for the preset to be changed by."""
    known = {field.name for field in fields(LearnConfig)}
    given = {name: value for name, value in vars(words).items() if name in known and value is not None}
    return given | ({"stop_when_converged": False} if words.all_steps else {})
