"""The command line: words to calls. Parsing only; the work is imported after the words are understood."""

import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import tyro

from lapwing.cli.words.doctor import Doctor
from lapwing.cli.words.experience import Audit, Collect, Worlds
from lapwing.cli.words.overview import overview
from lapwing.cli.words.pictures import Plot, Report
from lapwing.cli.words.representations import Learn, Score, Solve
from lapwing.errors import LapwingError, LapwingWarning, UntrustedWarning
from lapwing_paper.words import Reproduce

__all__ = [
    "Audit",
    "Collect",
    "Doctor",
    "Learn",
    "Plot",
    "Report",
    "Reproduce",
    "Score",
    "Solve",
    "Worlds",
    "main",
    "parse",
]

DESCRIPTION = "The Laplacian representation of a reinforcement-learning environment."

GROUPS = (
    ("worlds and data", (Worlds, Collect, Audit)),
    ("representations", (Solve, Learn, Score)),
    ("look", (Report, Plot)),
    ("studies", (Reproduce,)),
    ("help", (Doctor,)),
)

Command = (
    Annotated[Worlds, tyro.conf.subcommand("worlds")]
    | Annotated[Collect, tyro.conf.subcommand("collect")]
    | Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[Solve, tyro.conf.subcommand("solve")]
    | Annotated[Learn, tyro.conf.subcommand("learn")]
    | Annotated[Score, tyro.conf.subcommand("score")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Doctor, tyro.conf.subcommand("doctor")]
)


Words = Worlds | Collect | Audit | Solve | Learn | Score | Report | Plot | Reproduce | Doctor


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
    """Run a command and return its exit code.

    0 is done, 1 bad input or a failed run, 2 words not understood, 3 a result was written that must not be trusted; 130
    and 143 are for Ctrl-C and a termination from outside.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given == ["--version"]:
        from lapwing import __version__

        print(f"lapwing {__version__}")
        return 0
    from lapwing.cli import commands, terminal

    for word in given:
        if not _is_text(word):
            terminal.fail(f"{word!a} is not readable text; names of files and worlds must be, so rename it")
            return 2

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        terminal.note(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LapwingWarning)
            # Commands show all problems of a result themselves, with advice.
            warnings.simplefilter("ignore", UntrustedWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            if given in ([], ["-h"], ["--help"]):
                # tyro lists commands one after the other; in groups, with an example to copy, they are easier to find.
                terminal.print_lines(overview(DESCRIPTION, GROUPS, terminal.width()))
            else:
                return commands.run(parse(given))
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
    except MemoryError as error:
        terminal.fail(f"there is not enough memory for this ({error}); ask for less: fewer steps, a smaller world")
        return 1
    except KeyboardInterrupt as stop:
        terminal.fail(str(stop) or "interrupted; nothing was left half-written, and the same words go on with a study")
        return 128 + getattr(stop, "signal", signal.SIGINT)
    return 0


def _is_text(word: str) -> bool:
    """Whether a word can be printed and be part of a path: bytes that no text has, and NUL, cannot."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in word)


if __name__ == "__main__":
    sys.exit(main())
