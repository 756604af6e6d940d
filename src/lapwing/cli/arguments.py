"""Options that several commands share, how an option is shown in help, and names of sources and files."""

import ast
import importlib
import importlib.util
import io
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from lapwing.data.collecting import Source
    from lapwing.data.trajectories import Trajectories

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
EnvOption = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, option("NAME=VALUE", "none")]
NumEnvs = Annotated[int, option("N", "1")]
ResetSeed = Annotated[int | None, option("N", "each reset draws anew")]
PolicyFile = Annotated[Path | None, option("FILE.npy", "uniform")]
Runs = Annotated[
    tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN...", help_behavior_hint="(at least one)")
]


# Options of Gymnasium environments, which `collect` and `learn` share.
OF_ENVIRONMENTS = ("wrappers", "stack", "env_option", "num_envs", "reset_seed")

# Packages that register environments when they are imported.
ENVIRONMENT_PACKAGES = ("gymnasium_robotics", "minigrid", "ale_py")


# Data above this size stay on disk.
LARGE_BYTES = 1 << 28


def is_data(source: str | Path) -> bool:
    """Whether a source is recorded experience: a data folder, or an OGBench file.

    Args:
        source: as given.

    Returns:
        False for the name of anything else.
    """
    from lapwing.data.trajectories import MANIFEST

    path = Path(source)
    return (path / MANIFEST).is_file() or (path.suffix == ".npz" and path.is_file())


def read_data(source: str | Path) -> "Trajectories":
    """Recorded experience, a folder compared with its checksums; of a large one the arrays stay on disk.

    Args:
        source: a folder that ``lapwing collect`` or ``Trajectories.save`` wrote, or an OGBench file (.npz).

    Returns:
        The experience.
    """
    import lapwing as lw
    from lapwing.cli import terminal

    path = Path(source)
    with terminal.spinner(f"reading {path}"):
        if path.suffix == ".npz" and not path.is_dir():
            return lw.from_ogbench(path)
        size = sum(one.stat().st_size for one in path.glob("*.npy"))
        return lw.Trajectories.load(path, mmap=size > LARGE_BYTES, verify=True)


def collection_source(
    world: str,
    wrappers: Sequence[str] = (),
    stack: int = 1,
    env_option: Sequence[str] = (),
    num_envs: int = 1,
    reset_seed: int | None = None,
) -> "tuple[Source, str]":
    """What to collect from.

    Args:
        world: a world's name, or ``gym:ID``.
        wrappers: of the environment, the innermost first: names in ``gymnasium.wrappers``, or ``MODULE:NAME``.
        stack: how many of the last observations to join into one.
        env_option: arguments of ``gymnasium.make`` as ``NAME=VALUE``.
        num_envs: environments to step together, as a vector environment where they are several.
        reset_seed: resets every episode with this seed; None lets each reset draw anew.

    Returns:
        The name as it is or the Gymnasium environment, and a label for it.
    """
    if not world.startswith(GYMNASIUM_PREFIX):
        refuse_environment_options(wrappers, stack, env_option, num_envs, reset_seed)
        return world, world
    import gymnasium

    name = world.removeprefix(GYMNASIUM_PREFIX)
    options = _environment_options(env_option)
    if stack < 1:
        raise ArgumentError(f"--stack is how many observations to join, at least 1; got {stack}")
    if num_envs < 1:
        raise ArgumentError(f"--num-envs is how many environments to step together, at least 1; got {num_envs}")
    around = _around(wrappers, stack, reset_seed)
    try:
        if num_envs == 1:
            env: Any = gymnasium.make(name, **options)
        else:
            # A package's own vector environment, where there is one, takes no wrappers of its parts.
            mode = "sync" if around else None
            return gymnasium.make_vec(name, num_envs, mode, wrappers=around or None, **options), name
    except LapwingError:
        raise
    except Exception as error:  # a constructor of another package raises anything
        advice = "; a vector environment may take other options: try without --num-envs" if num_envs > 1 else ""
        raise ArgumentError(f"Gymnasium cannot make {name!r}: {error}{_where_it_is(name) or advice}") from error
    for wrap in around:
        env = wrap(env)
    return env, name


def refuse_environment_options(
    wrappers: Sequence[str], stack: int, env_option: Sequence[str], num_envs: int, reset_seed: int | None
) -> None:
    """Raise an error where options of Gymnasium environments are given for something else.

    Args:
        wrappers: as in :func:`collection_source`.
        stack: the same.
        env_option: the same.
        num_envs: the same.
        reset_seed: the same.
    """
    if wrappers or stack != 1:
        raise ArgumentError("--wrappers and --stack are for Gymnasium environments, gym:ID")
    if env_option or num_envs != 1 or reset_seed is not None:
        raise ArgumentError("--env-option, --num-envs and --reset-seed are for Gymnasium environments, gym:ID")


def _environment_options(given: Sequence[str]) -> dict[str, Any]:
    """Arguments of ``gymnasium.make``: a value is a Python literal where it can be read as one, else text."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ArgumentError(
                f"--env-option is NAME=VALUE, such as obs_type=ram or max_episode_steps=500; got {text!r}"
            )
        if name in found:
            raise ArgumentError(f"--env-option {name} is given twice")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found


def _around(wrappers: Sequence[str], stack: int, reset_seed: int | None) -> list[Any]:
    """What is put around an environment, the innermost first."""
    found: list[Any] = []
    if reset_seed is not None:
        from lapwing.environments.gymnasium_wrappers import FixedSeed

        found.append(partial(FixedSeed, seed=reset_seed))
    found += [_wrapper(name) for name in wrappers]
    if stack > 1:
        from lapwing.data.from_gymnasium import stack_observations

        found.append(partial(stack_observations, count=stack))
    return found


def _where_it_is(name: str) -> str:
    """Under which name an installed package has the environment, as a sentence to add; empty where none has."""
    import gymnasium

    for package in () if ":" in name else ENVIRONMENT_PACKAGES:
        if importlib.util.find_spec(package) is None:
            continue
        try:
            # Some packages print notices when they are imported, which would stand before our message.
            with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
                importlib.import_module(package)
            gymnasium.spec(name)
        except (gymnasium.error.Error, ImportError):
            continue
        return f"; {package} has it: {GYMNASIUM_PREFIX}{package}:{name}"
    return ""


def _wrapper(name: str) -> Any:
    """A wrapper of Gymnasium by its name, or any other by module and name."""
    import gymnasium

    wrappers = {key: value for key, value in vars(gymnasium.wrappers).items() if isinstance(value, type)}
    found = imported(name, "--wrappers") if ":" in name else wrappers.get(name)
    if found is None:
        raise UnknownNameError(f"--wrappers {name}: no such wrapper; {did_you_mean(name, wrappers)}")
    if not (isinstance(found, type) and issubclass(found, gymnasium.Wrapper)):
        raise ArgumentError(f"--wrappers {name}: this is not a class of gymnasium.Wrapper")
    return found


def imported(name: str, option: str) -> Any:
    """What ``MODULE:NAME`` names; modules in the current folder are found as well.

    Args:
        name: as given.
        option: it was given for, for messages.

    Returns:
        Any object.

    Raises:
        ArgumentError: where the module cannot be imported.
        UnknownNameError: where it has no such name.
    """
    from lapwing.checks import shown  # which loads NumPy

    module_name, _, attribute = name.rpartition(":")
    here = str(Path.cwd())
    try:
        sys.path.insert(0, here)
        module = importlib.import_module(module_name)
    except Exception as error:  # a module of somebody else raises anything
        raise ArgumentError(f"{option} {name}: {module_name} cannot be imported: {shown(error)}") from error
    finally:
        sys.path.remove(here)
    if not hasattr(module, attribute):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise UnknownNameError(f"{option} {name}: {module_name} has no {attribute!r}; {did_you_mean(attribute, known)}")
    return getattr(module, attribute)


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
