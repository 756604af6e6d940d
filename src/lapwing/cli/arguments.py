"""Options that several commands share, how an option is shown in help, and names of sources and files."""

import importlib
import importlib.util
import re
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from lapwing.errors import ArgumentError, UnknownNameError, did_you_mean

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
Keys = Annotated[tuple[str, ...] | None, option("KEY...", "the only one there is")]
Wrappers = Annotated[tuple[str, ...], option("NAME...", "none")]
Stack = Annotated[int, option("N", "1")]
PolicyFile = Annotated[Path | None, option("FILE.npy", "uniform")]
Runs = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help_behavior_hint="(at least one)")
]


# Packages that register environments when they are imported.
ENVIRONMENT_PACKAGES = ("gymnasium_robotics", "minigrid", "ale_py")


def collection_source(world: str, wrappers: Sequence[str] = (), stack: int = 1) -> "tuple[Source, str]":
    """What to collect from.

    Args:
        world: a world's name, or ``gym:ID``.
        wrappers: of the environment, the innermost first: names in ``gymnasium.wrappers``, or ``MODULE:NAME``.
        stack: how many of the last observations to join into one.

    Returns:
        The name as it is or the Gymnasium environment, and a label for it.
    """
    if not world.startswith(GYMNASIUM_PREFIX):
        if wrappers or stack != 1:
            raise ArgumentError("--wrappers and --stack are for Gymnasium environments, gym:ID")
        return world, world
    import gymnasium

    name = world.removeprefix(GYMNASIUM_PREFIX)
    try:
        env = gymnasium.make(name)
    except (gymnasium.error.Error, ImportError) as error:
        raise ArgumentError(f"Gymnasium cannot make {name!r}: {error}{_where_it_is(name)}") from error
    for wrapper in wrappers:
        env = _wrapper(wrapper)(env)
    if stack < 1:
        raise ArgumentError(f"--stack is how many observations to join, at least 1; got {stack}")
    from lapwing.data.from_gymnasium import stack_observations

    return stack_observations(env, stack) if stack > 1 else env, name


def _where_it_is(name: str) -> str:
    """Under which name an installed package has the environment, as a sentence to add; empty where none has."""
    import gymnasium

    for package in () if ":" in name else ENVIRONMENT_PACKAGES:
        if importlib.util.find_spec(package) is None:
            continue
        try:
            importlib.import_module(package)
            gymnasium.spec(name)
        except (gymnasium.error.Error, ImportError):
            continue
        return f"; {package} has it: {GYMNASIUM_PREFIX}{package}:{name}"
    return ""


def _wrapper(name: str) -> Any:
    """A wrapper of Gymnasium by its name, or any other by module and name."""
    import gymnasium

    module_name, colon, attribute = name.rpartition(":")
    try:
        module = importlib.import_module(module_name) if colon else gymnasium.wrappers
    except ImportError as error:
        raise ArgumentError(f"--wrappers {name}: {error}") from error
    found = getattr(module, attribute, None)
    if not (isinstance(found, type) and issubclass(found, gymnasium.Wrapper)):
        known = [key for key, value in vars(module).items() if isinstance(value, type)]
        raise UnknownNameError(f"--wrappers {name}: no such wrapper; {did_you_mean(attribute, known)}")
    return found


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
