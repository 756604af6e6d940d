"""Learning: ``lapwing learn``."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.cli import terminal
from lapwing.cli.commands.learned import MAX_SEEDS, PAGE, read_results, seeds_of, show_results, write_results
from lapwing.cli.commands.resuming import resumed, under_order
from lapwing.cli.commands.words import GYMNASIUM_PREFIX, collection_source, file_name
from lapwing.cli.words.representations import Learn
from lapwing.data.collect import collect
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.data.trajectories import Trajectories
from lapwing.environments import world_from_description
from lapwing.errors import LapwingError
from lapwing.operators.operator import Operator
from lapwing.report.run_folder import refuse_foreign
from lapwing.representation import LaplacianRepresentation
from lapwing.solving import operator, solve
from lapwing.storage.folders import locked
from lapwing.storage.orders import CHECKPOINTS, EXPERIENCE, FINISHED
from lapwing.training.config import LearnConfig
from lapwing.training.engine import LearningDivergedError, NetworkCollapsedError, Report
from lapwing.training.interrupts import termination_as_interrupt
from lapwing.training.learner import Learner
from lapwing.training.sinks import SINKS, make_sink


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
    _checked_number_of_seeds(words)
    out = words.out or Path("runs") / f"learn-{file_name(_label(words))}"
    refuse_foreign(out, besides=SINKS)
    # Before any work: an option that is wrong or a package that is missing is better known at once.
    learner = Learner(words.preset, **_learning_options(words))
    with termination_as_interrupt(), locked(out), under_order(words, out, order):
        return _learn_and_write(words, learner, out)


def _learn_and_write(words: Learn, learner: Learner, out: Path) -> int:
    with ExitStack() as open_sinks:
        sinks = [open_sinks.enter_context(make_sink(name, out)) for name in dict.fromkeys(words.log)]
        data, truth = _learnable(words, out)
        models = _learned(words, learner, data, truth, sinks, out)
    with terminal.spinner("scoring, drawing, writing"):
        results = write_results(words, models, out, data, truth)
    code = show_results(words, _label(words), out, results)
    if not (words.no_report or words.json):
        print(f"Open it in a browser: {(out / PAGE).resolve().as_uri()}")
    return code


def _show_finished(words: Learn) -> int:
    """A run that has ended already, as it was written."""
    assert words.out is not None
    code = show_results(words, _label(words), words.out, read_results(words, words.out), new=False)
    terminal.note(f"the run in {words.out} had ended; nothing was left to do")
    return code


def _checked_number_of_seeds(words: Learn) -> None:
    """Refuse more than one page can show, before any work."""
    if not 1 <= words.seeds <= MAX_SEEDS:
        raise LapwingError(f"--seeds is how many, from 1 to {MAX_SEEDS}; got {words.seeds}")


def _learned(
    words: Learn,
    learner: Learner,
    data: Trajectories | Operator,
    truth: LaplacianRepresentation | None,
    sinks: Sequence[Callable[[Report], None]],
    out: Path,
) -> list[LaplacianRepresentation]:
    """Learn, with each report on the screen and in the sinks; of what went wrong, the part that was good."""
    quality = "angle" if truth is None else "cosine"
    columns = ["step", "similarity" if truth is not None else "largest angle", "loss", "barrier"]
    with terminal.live_table(f"learning {_label(words)}", columns) as show:

        def report(line: Report) -> None:
            numbers = [
                line.extra.get(quality),
                *(float(np.mean(x)) for x in (line.metrics.loss, line.metrics.terms.get("barrier", np.nan))),
            ]
            cells = ["-" if number is None else f"{number:.4f}" for number in numbers]
            show(line.step, line.steps, [f"{line.step:,}", *cells])
            for sink in sinks:
                sink(line)

        try:
            return learner.fit_many(data, seeds_of(words), truth=truth, report=report, checkpoints=out / CHECKPOINTS)
        except (LearningDivergedError, NetworkCollapsedError) as error:
            if not error.models:
                raise
            # What is left of it names its problems, and is written like any other result.
            return error.models


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
