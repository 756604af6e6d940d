"""Runs that go on after whatever interrupted them: ``lapwing learn --resume RUN``."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from io import StringIO
from pathlib import Path

from lapwing.cli.commands.learned import MAX_SEEDS, folders_of
from lapwing.cli.commands.words import GYMNASIUM_PREFIX
from lapwing.cli.main import parse
from lapwing.cli.words.representations import Learn
from lapwing.cli.words.spelling import spelled
from lapwing.data.trajectories import MANIFEST as DATA_MANIFEST
from lapwing.environments.registry import LAYOUTS_VARIABLE
from lapwing.errors import CannotWriteError, LapwingError
from lapwing.report.run_folder import clear_run, sweep
from lapwing.storage.orders import (
    FINISHED,
    ORDER,
    Order,
    forget_order,
    has_progress,
    read_order,
    refuse_unfinished,
    write_order,
)
from lapwing.training.interrupts import LearningInterruptedError

# What may be said again when a run goes on; everything else is as it was.
FREE = ("resume", "json", "no_report")


def resumed(words: Learn) -> tuple[Learn, Order]:
    """The words a run was begun with, and its order; ``words`` name its folder and say how to show it."""
    assert words.resume is not None
    _refuse_more_words(words)
    order = read_order(words.resume)
    if order is None:
        raise LapwingError(f"{words.resume} holds no run that `lapwing learn` began; begin one without --resume")
    original = _parsed(words.resume, order)
    return replace(original, out=words.resume, json=words.json, no_report=words.no_report or original.no_report), order


@contextmanager
def under_order(words: Learn, out: Path, going_on: Order | None) -> Iterator[None]:
    """Keep the order of a run while it is carried out; without a trace where it came to nothing."""
    order = going_on or Order(spelled(words), spelled(_lasting(words)))
    sweep(out)
    earlier = _earlier_runs(out)
    if going_on is None:
        if not words.again:
            refuse_unfinished(out)
        forget_order(out)
        write_order(out, order)
    try:
        yield
    except (LapwingError, KeyboardInterrupt) as error:
        if not has_progress(out):
            forget_order(out)
        elif isinstance(error, (KeyboardInterrupt, CannotWriteError)):
            error.args = (f"{_reached(error)}; go on with: lapwing learn --resume {shlex.quote(str(out))}",)
        raise
    for old in earlier - set(folders_of(words, out)):
        clear_run(old)
    write_order(out, order._replace(status=FINISHED))


def _earlier_runs(out: Path) -> set[Path]:
    """Runs that an earlier command left here, and that the next one replaces: the folder's own and its seeds'.

    Only those that its order tells of: other folders of such a name, or links in their place, belong to somebody else.
    """
    try:
        order = read_order(out)
        seeds = [] if order is None else folders_of(_parsed(out, order), out)
    except LapwingError:
        seeds = []
    return {out, *(folder for folder in seeds if not (folder.is_symlink() or (folder / ORDER).exists()))}


def _reached(error: KeyboardInterrupt | CannotWriteError) -> str:
    if isinstance(error, LearningInterruptedError):
        return f"stopped after {error.step:,} of {error.steps:,} steps"
    return "stopped" if isinstance(error, KeyboardInterrupt) else str(error)


def _refuse_more_words(words: Learn) -> None:
    given = [one.name for one in fields(words) if one.name not in FREE and getattr(words, one.name) != one.default]
    if given:
        name = "SOURCE" if given[0] == "source" else f"--{given[0].replace('_', '-')}"
        raise LapwingError(f"--resume goes on with the words that {words.resume} was begun with; leave {name} out")


def _parsed(folder: Path, order: Order) -> Learn:
    damaged = LapwingError(f"the order in {folder} is damaged: its words make no `lapwing learn`; begin the run again")
    # A parser has options of its own, which write files: only those that an order can have been written with are read.
    known = {f"--{field.name.replace('_', '-')}" for field in fields(Learn)}
    if order.words[:2] != ["lapwing", "learn"] or {word for word in order.words if word.startswith("--")} - known:
        raise damaged
    try:
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            original = parse(order.words[1:])
    except (SystemExit, ValueError) as error:
        raise damaged from error
    if not isinstance(original, Learn) or not original.source or original.resume is not None:
        raise damaged
    if not 1 <= original.seeds <= MAX_SEEDS:
        raise damaged
    if ":" in original.source.removeprefix(GYMNASIUM_PREFIX) and original.source.startswith(GYMNASIUM_PREFIX):
        # Gymnasium imports the module named before a colon: a file must not choose which code is run.
        raise LapwingError(
            f"{folder} was learned from {original.source}, which names code to import; a file is not allowed to: "
            "collect with your own script, then `lapwing learn DATA`"
        )
    return original


def _lasting(words: Learn) -> Learn:
    """The same words with paths that hold wherever the run is resumed from, and without what only matters once."""
    # A folder of a world's name, such as the run itself, does not make the world a path.
    path = Path(words.source)
    is_path = (path / DATA_MANIFEST).is_file() or (path.suffix == ".txt" and path.is_file())
    source = str(path.resolve()) if is_path else words.source
    named = words.layouts or os.environ.get(LAYOUTS_VARIABLE)
    layouts = None if named is None else Path(named).resolve()
    return replace(words, source=source, layouts=layouts, out=None, again=False, json=False)
