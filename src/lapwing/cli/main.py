"""The command line: finds the command by name, parses its arguments, runs it, and turns errors into exit codes."""

import io
import os
import signal
import sys
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from inspect import getdoc
from typing import Annotated, Any, Protocol, Union

import tyro

from lapwing.cli import terminal
from lapwing.cli.arguments import typed_command
from lapwing.errors import ConvergenceWarning, LapwingError, LapwingWarning, UntrustedWarning, did_you_mean

DESCRIPTION = "The Laplacian representation of a reinforcement-learning environment."
COMPLETION = "source <(lapwing --tyro-print-completion bash)"

# The dataclass of each command: its arguments, and what it does. Only the one that is called is imported.
COMMANDS = {
    "worlds": "lapwing.cli.worlds_command:WorldsCommand",
    "collect": "lapwing.cli.collect_command:CollectCommand",
    "audit": "lapwing.cli.audit_command:AuditCommand",
    "solve": "lapwing.cli.solve_command:SolveCommand",
    "learn": "lapwing.cli.learn_command:LearnCommand",
    "online": "lapwing.cli.online_command:OnlineCommand",
    "score": "lapwing.cli.score_command:ScoreCommand",
    "report": "lapwing.cli.report_command:ReportCommand",
    "plot": "lapwing.cli.plot_command:PlotCommand",
    "use": "lapwing.cli.use_command:UseCommand",
    "export": "lapwing.cli.export_command:ExportCommand",
    "certify": "lapwing.cli.certify_command:CertifyCommand",
    "check-loss": "lapwing.cli.check_loss_command:CheckLossCommand",
    "doctor": "lapwing.cli.doctor_command:DoctorCommand",
}

# Commands of other packages, under the same contract; they cannot replace one of the table.
ENTRY_POINTS = "lapwing.commands"

# How `lapwing --help` sorts them; commands of other packages come last.
GROUPS = {
    "worlds and data": ("worlds", "collect", "audit"),
    "representations": ("solve", "learn", "online", "score"),
    "look": ("report", "plot"),
    "use": ("use", "export"),
    "other code": ("certify", "check-loss"),
    "help": ("doctor",),
}
MARGIN = 13

INTERRUPTED = "interrupted; nothing was left half-written, and the same command continues a study"


class Command(Protocol):
    """A frozen dataclass of arguments whose docstring is the help text, with a line ``Example: lapwing ...``.

    It may have a class variable ``RENAMED``: what to use in place of options that it had in earlier versions.
    """

    def run(self) -> int | None:
        """Do the work.

        Returns:
            The exit code; None is 0.
        """


def commands() -> dict[str, EntryPoint]:
    """Every command by name: those of the package, then those of other packages.

    Returns:
        Entry points; nothing is imported until one is loaded.
    """
    found = {name: EntryPoint(name, place, ENTRY_POINTS) for name, place in COMMANDS.items()}
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name):
        found.setdefault(entry.name, entry)
    return found


def parse(arguments: Sequence[str]) -> Command:
    """Read the arguments of a command.

    Args:
        arguments: the command's name and its options, as typed.

    Returns:
        An instance of the command's dataclass.

    Raises:
        SystemExit: with code 2 and an explanation where they cannot be parsed, with 0 after ``--help``.
    """
    known = commands()
    options: dict[str, Any] = {"config": (tyro.conf.FlagCreatePairsOff, tyro.conf.OmitArgPrefixes)}
    name, *rest = arguments
    if name.startswith("--tyro-"):
        # A completion script knows the options of every command.
        kinds = tuple(Annotated[_loaded(entry), tyro.conf.subcommand(name)] for name, entry in known.items())
        any_command: Any = Union[kinds]  # noqa: UP007
        return tyro.cli(any_command, args=list(arguments), prog="lapwing", **options)
    if name not in known:
        near = did_you_mean(name, known)
        terminal.fail(f"there is no command {name!r}; {near}" + (f" (of {', '.join(known)})" if "?" in near else ""))
        raise SystemExit(2)
    kind = _loaded(known[name])
    for argument in rest:
        flag = argument.partition("=")[0].replace("_", "-")
        if flag in getattr(kind, "RENAMED", {}):
            terminal.fail(f"{flag} is an option of version 0.1; use {kind.RENAMED[flag]} instead")
            raise SystemExit(2)
    return tyro.cli(kind, args=rest, prog=f"lapwing {name}", **options)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: the command's name and its options; those of the process if None.

    Returns:
        The exit code: 0 done, 1 bad input or a failed run, 2 arguments that cannot be parsed, 3 a result was written
        that must not be trusted or a loss does not conform, 130 and 143 after Ctrl-C and a termination.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Where output is not UTF-8, as in a file on Windows, pictures become question marks instead of an error.
        sys.stdout.reconfigure(errors="replace")
    if given == ["--version"]:
        from lapwing import __version__

        print(f"lapwing {__version__}")
        return 0
    for argument in given:
        if not _is_text(argument):
            terminal.fail(f"{argument!a} is not readable text; names of files and worlds must be, so rename it")
            return 2

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        terminal.note(str(message))

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LapwingWarning)
            # Commands show all problems of a result themselves, with advice.
            warnings.simplefilter("ignore", UntrustedWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.showwarning = show  # type: ignore[assignment]
            if given in ([], ["-h"], ["--help"]):
                terminal.print_lines(overview(terminal.width()))
                return 0
            typed_command(given)
            return parse(given).run() or 0
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
        terminal.fail(str(stop) or INTERRUPTED)
        return 128 + getattr(stop, "signal", signal.SIGINT)


def overview(width: int) -> Iterator[tuple[str, str]]:
    """The text of ``lapwing --help``: commands in groups, with an example each to copy.

    Args:
        width: columns to wrap descriptions to; examples are not wrapped.

    Yields:
        Lines and their styles.
    """
    known = commands()
    yield "usage: lapwing COMMAND [OPTIONS]", ""
    yield f"\n{DESCRIPTION}", ""
    others = tuple(name for name in known if name not in COMMANDS)
    for title, names in {**GROUPS, "of other packages": others}.items():
        if names:
            yield f"\n{title}", "bold"
        for name in names:
            summary, example = help_of(known[name])
            lines = textwrap.wrap(summary, max(width - MARGIN, 30))
            yield f"  {name:<{MARGIN - 2}}{lines[0]}", "cyan"
            for line in lines[1:]:
                yield " " * MARGIN + line, "cyan"
            yield " " * MARGIN + example, ""
    yield "\nlapwing COMMAND --help shows all its options; lapwing --version the version.", ""
    yield f"Completion in bash, zsh or fish: {COMPLETION}", ""


def help_of(command: EntryPoint) -> tuple[str, str]:
    """The first line of a command's help and its example.

    Args:
        command: one of :func:`commands`.

    Returns:
        Both, or why the command cannot be loaded: a broken package must not take the help away.
    """
    try:
        text = getdoc(_loaded(command)) or command.value
    except LapwingError as error:
        return str(error), ""
    return text.splitlines()[0], text.partition("Example: ")[2].partition("\n")[0]


def _loaded(command: EntryPoint) -> Any:
    try:
        return command.load()
    except Exception as error:  # whatever a module of another package raises
        raise LapwingError(f"cannot be loaded from {command.value}: {error}") from error


def _is_text(argument: str) -> bool:
    """Whether an argument can be printed and be part of a path: bytes that are not text, and NUL, cannot."""
    return not any(character == "\0" or "\ud800" <= character <= "\udfff" for character in argument)
