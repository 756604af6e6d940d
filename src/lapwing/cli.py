"""The command line: words to calls. Parsing only; the work is imported after the words are understood."""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from lapwing.errors import LapwingError, LapwingWarning

ObservationMode = Literal["xy", "one_hot", "pixels"]

DESCRIPTION = """The Laplacian representation of a reinforcement-learning environment.

Try:  lapwing worlds --pictures
      lapwing learn Rooms-16 --dim 11 --out demo
      lapwing solve Rooms-16 --dim 11 --out exact
      lapwing collect Rooms-16 --steps 1000000 --out data && lapwing audit data
      lapwing reproduce --list"""


def _option(metavar: str, default: str) -> object:
    """How an option that may be left out is shown in help: its metavar, and its default in words."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint=f"(default: {default})")


# Options that several commands share; a line below the field says what it is for there.
LayoutsFolder = Annotated[Path | None, _option("DIR", "what LAPWING_LAYOUTS names")]
Observation = Annotated[ObservationMode | None, _option("{xy,one_hot,pixels}", "xy")]
Slip = Annotated[float | None, _option("P", "0")]
PolicyFile = Annotated[Path | None, _option("FILE.npy", "uniform")]
Flag = Annotated[bool, tyro.conf.arg(help_behavior_hint="")]


@dataclass(frozen=True)
class Worlds:
    """List the worlds, shipped and in a layouts folder, with a small picture each if asked.

    Example: lapwing worlds --pictures
    """

    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    pictures: Flag = False
    """Draw each world in the terminal."""
    out: Annotated[Path | None, _option("FILE", "none")] = None
    """Write a sheet of pictures to this .png, .pdf or .svg file."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Collect:
    """Collect experience into a folder.

    Example: lapwing collect Rooms-16 --steps 1000000 --out data
    """

    world: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="WORLD")]
    """A world's name, a rule (maze:10x15:3), a .txt layout, or gym:ID for a Gymnasium environment."""
    steps: int = 1_000_000
    """How many transitions."""
    episode_length: Annotated[str | None, _option("N|LOW-HIGH", "50, or a Gymnasium environment's own ends")] = None
    """Transitions per episode, 50 or a range 20-80."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    policy: PolicyFile = None
    """Table (states, 4) of move probabilities, in a grid."""
    seed: int = 0
    """The same seed gives the same data."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, _option("DIR", "runs/collect-WORLD")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Audit:
    """Look a data set over: coverage, components, episode ends, asymmetry, hidden resets.

    Example: lapwing audit data
    """

    data: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="DATA")]
    """Folder that `lapwing collect` or Trajectories.save wrote."""
    discount: float = 0.9
    """Discount of the gaps that training would draw."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Solve:
    """Solve exactly, or by counting where a data set is given; write spectrum and pictures.

    Example: lapwing solve FourRooms --dim 11 --definition "successor(0.9)"
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A world's name, a rule, a .txt layout, a data folder, or a .npy row-stochastic matrix."""
    dim: int = 11
    """How many eigenvectors."""
    definition: str = "one_step"
    """one_step, successor(g), geometric(g) or truncated(g, T)."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    policy: PolicyFile = None
    """Table (states, 4) of move probabilities, in a grid."""
    rho: Annotated[Literal["uniform"] | None, _option("{uniform}", "the stationary distribution")] = None
    """Inner product; uniform is the paper's."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, _option("DIR", "runs/solve-SOURCE")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Learn:
    """Learn a representation from a world's experience, its exact operator, or a data set.

    Example: lapwing learn Rooms-16 --dim 11 --out demo
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """A world's name, a rule, a .txt layout, gym:ID, or a data folder."""
    dim: int = 11
    """How many components."""
    preset: Literal["default", "paper", "pixels"] = "default"
    """What the other options start from."""
    exact: Flag = False
    """Learn from the exact operator of the world instead of experience."""
    data_steps: int = 1_000_000
    """Transitions to collect where no data folder is given."""
    steps: Annotated[int | None, _option("N", "the preset's")] = None
    """Gradient steps at most."""
    all_steps: Flag = False
    """Make all of them, converged or not."""
    seed: int = 0
    """Of collection and of learning."""
    objective: Annotated[str | None, _option("NAME", "allo")] = None
    """allo, ggdo, gdo or quadratic_penalty."""
    encoder: Annotated[str | None, _option("NAME", "by the shape of observations")] = None
    """fourier, mlp, conv or table."""
    batches: Annotated[str | None, _option("KIND", "exact where observations repeat")] = None
    """exact, sampled (the paper's) or unbiased."""
    discounts: Annotated[tuple[float, ...] | None, _option("G...", "the preset's")] = None
    """Discounts of the gaps; several are mixed."""
    batch_size: Annotated[int | None, _option("N", "1024")] = None
    """Pairs per step, where batches are sampled."""
    barrier: Annotated[float | None, _option("B", "the preset's")] = None
    """Barrier coefficient at the start."""
    barrier_rate: Annotated[float | None, _option("R", "the preset's")] = None
    """Growth of the barrier."""
    dual_rate: Annotated[float | None, _option("R", "the preset's")] = None
    """Step of the dual ascent."""
    learning_rate: Annotated[float | None, _option("R", "the preset's")] = None
    """Of Adam, at the start."""
    refine: Annotated[str | None, _option("{ritz,none}", "the preset's")] = None
    """Rotate inside the learned span at the end, or not."""
    log_every: Annotated[int | None, _option("N", "the preset's")] = None
    """Steps between reports."""
    observation: Observation = None
    """What is observed in a grid."""
    slip: Slip = None
    """Probability that a random move replaces the chosen one, in a grid."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    out: Annotated[Path | None, _option("DIR", "runs/learn-SOURCE")] = None
    """Folder to write."""
    json: Flag = False
    """Print JSON instead of tables."""


@dataclass(frozen=True)
class Score:
    """Score a saved representation against the exact one, beside the counting estimate.

    Example: lapwing score runs/solve-data --truth Rooms-16 --data data
    """

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """Folder of a saved representation."""
    truth: Annotated[str | None, _option("WORLD|MODEL", "the world the model names")] = None
    """A world's name or a folder of a saved representation."""
    data: Annotated[Path | None, _option("DATA", "none")] = None
    """Data folder, for the counting estimate as a yardstick."""
    definition: str = "successor(0.9)"
    """In which to compare eigenvalues."""
    tolerance: Annotated[float | None, _option("X", "1e-6 exact, 0.01 from data")] = None
    """Relative width within which eigenvalues count as one."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts."""
    json: Flag = False
    """Print JSON instead of a table."""


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a table, figure or theorem of the paper, or a study of our own, with the paper's numbers beside ours.

    Example: lapwing reproduce theory --quick
    """

    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME", help_behavior_hint="")] = ""
    """What to reproduce; --list shows the names."""
    list: Flag = False
    """List everything that can be reproduced."""
    quick: Flag = False
    """Few seeds and steps, minutes on two cores. This is what happens unless --full is given."""
    full: Flag = False
    """The paper's seeds and steps."""
    seeds: Annotated[int | None, _option("N", "the study's")] = None
    """How many seeds."""
    steps: Annotated[int | None, _option("N", "the study's")] = None
    """Gradient steps."""
    worlds: Annotated[tuple[str, ...] | None, _option("WORLD...", "the study's")] = None
    """Which worlds."""
    layouts: LayoutsFolder = None
    """Folder of *.txt layouts, for the authors' own worlds."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("reproduction")
    """Folder of runs, tables and figures. Finished runs in it are not made again."""
    pages: Annotated[Path | None, _option("DIR", "OUT/NAME")] = None
    """Write tables and figures here instead."""
    on: Annotated[str, tyro.conf.arg(metavar="{local,ray,ray://HOST:PORT}")] = "local"
    """Where runs are carried out."""
    workers: Annotated[int | None, _option("N", "as many as cores")] = None
    """Runs at a time."""
    again: Flag = False
    """Make finished runs again."""
    retry: Flag = False
    """Make failed runs again."""
    rebuild: Flag = False
    """Make no run: tables and figures from the files that are there."""
    json: Flag = False
    """Print JSON instead of tables."""


Command = (
    Annotated[Worlds, tyro.conf.subcommand("worlds")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[Learn, tyro.conf.subcommand("learn")]
    | Annotated[Score, tyro.conf.subcommand("score")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
)


Words = Worlds | Collect | Audit | Solve | Learn | Score | Reproduce


def parse(arguments: Sequence[str]) -> Words:
    """Understand the words, or explain them and leave with exit code 2."""
    words: Words = tyro.cli(
        Command,
        args=list(arguments),
        prog="lapwing",
        description=DESCRIPTION,
        config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes),
    )
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 for success, 1 for bad input or a failed run, 2 for words not understood, 130 for Ctrl-C."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:
        from lapwing import __version__

        print(f"lapwing {__version__}")
        return 0
    words = parse(given or ["--help"])
    from lapwing import commands, terminal

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        terminal.note(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LapwingWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            commands.run(words)
    except LapwingError as error:
        terminal.fail(str(error))
        return 1
    except BrokenPipeError:
        # The reader (head, less) has seen enough; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        terminal.fail(f"{error.filename or 'a file'}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        terminal.fail("interrupted; nothing was left half-written, and the same words go on with a study")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
