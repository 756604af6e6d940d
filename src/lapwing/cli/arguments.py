"""Options that several commands share, how an option is shown in help, and names of sources and files."""

import re
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from lapwing.errors import ArgumentError

if TYPE_CHECKING:
    from lapwing.data.collecting import Source

GYMNASIUM_PREFIX = "gym:"


def option(metavar: str, default: str) -> object:
    """How an option that may be left out is shown in help.

    Args:
        metavar: stands for its value.
        default: what happens without it, as a short phrase.

    Returns:
        A marker for ``Annotated``.
    """
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


# The docstring below a field says what it is in its command.
Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]
LayoutsFolder = Annotated[Path | None, option("DIR", "what LAPWING_LAYOUTS names")]
Observation = Annotated[Literal["xy", "one_hot", "pixels"] | None, option("{xy,one_hot,pixels}", "xy")]
Slip = Annotated[float | None, option("P", "0")]
PolicyFile = Annotated[Path | None, option("FILE.npy", "uniform")]
Runs = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help_behavior_hint="(at least one)")
]


def collection_source(world: str) -> "tuple[Source, str]":
    """What to collect from.

    Args:
        world: a world's name, or ``gym:ID``.

    Returns:
        The name as it is or the Gymnasium environment, and a label for it.
    """
    if not world.startswith(GYMNASIUM_PREFIX):
        return world, world
    import gymnasium

    name = world.removeprefix(GYMNASIUM_PREFIX)
    try:
        return gymnasium.make(name), name
    except (gymnasium.error.Error, ImportError) as error:
        raise ArgumentError(f"Gymnasium cannot make {name!r}: {error}") from error


def file_name(label: str) -> str:
    """A label as part of a file's name.

    Args:
        label: a world's name, a rule, or a path of a layout.

    Returns:
        Letters, digits, dots, dashes and underscores.
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "_", Path(label).stem if label.endswith(".txt") else label).strip("_.")


def run_folders(named: tuple[Path, ...]) -> list[Path]:
    """The runs that ``report`` and ``plot`` show.

    Args:
        named: folders as given; a folder of several seeds stands for all of them.

    Returns:
        Folders that hold a representation, each once.
    """
    from lapwing.report.run_folder import seed_folders
    from lapwing.storage.models import MANIFEST

    if not named:
        raise ArgumentError("name a run: the folder that `lapwing learn` or `lapwing solve` wrote")
    runs = [run for one in named for run in seed_folders(one) or [one]]
    for run in runs:
        if not run.is_dir():
            raise ArgumentError(f"there is no run folder {run}; `lapwing learn` and `lapwing solve` write them")
        if not (run / MANIFEST).is_file():
            raise ArgumentError(f"{run} is not a run folder: it holds no {MANIFEST}")
    if len({run.resolve() for run in runs}) < len(runs):
        raise ArgumentError("the same run is named twice")
    return runs


_typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())


def typed_command(arguments: Sequence[str] | None = None) -> list[str]:
    """The command line as typed, which is kept with results to be shown.

    Args:
        arguments: what follows ``lapwing``; given once, by ``main``.

    Returns:
        ``lapwing`` and its arguments.
    """
    if arguments is not None:
        _typed.set(tuple(arguments))
    return ["lapwing", *_typed.get()]
