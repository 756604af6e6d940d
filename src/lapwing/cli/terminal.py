"""What the user sees in the terminal: tables, notes, progress."""

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

# Where the reader's window is not known.
WIDTH_OF_TABLES = 200
WIDTH_OF_HELP = 110
LIVE_ROWS = 10
# Seconds between plain lines of progress where output is not a terminal.
SECONDS_BETWEEN_LINES = 30.0
NUMERIC = re.compile(r"[0-9.,e+\-x% ]+")


class _Output(Console):
    """Standard output; a reader that stops reading is left to :func:`lapwing.cli.main.main`, not to an exit here."""

    def on_broken_pipe(self) -> None:
        """Raise it again."""
        raise BrokenPipeError


def print_json(content: dict[str, Any] | list[Any]) -> None:
    """Print JSON on standard output.

    Args:
        content: JSON types; NaN and infinity are errors.
    """
    json.dump(content, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; columns whose cells are all numbers are aligned to the right.

    Args:
        title: stands above it.
        columns: their names.
        rows: one cell per column.
    """
    numeric = [all(NUMERIC.fullmatch(row[number]) for row in rows) for number in range(len(columns))]
    _console().print(_table(title, columns, numeric, rows))


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Print a table of two columns without a head.

    Args:
        title: stands above it.
        facts: pairs of a label and a value.
    """
    _console().print(_table(title, ["", ""], [False, False], facts, show_header=False))


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines without wrapping them.

    Args:
        lines: pairs of text and its style.
    """
    for line, style in lines:
        _console().print(Text(line, style=style), soft_wrap=True)


def width() -> int:
    """How wide standard output is.

    Returns:
        Columns of the window; a fixed number where there is none.
    """
    return _console().width if sys.stdout.isatty() else WIDTH_OF_HELP


def is_narrow() -> bool:
    """Whether a wide table would be squeezed.

    Returns:
        True in a small window; never in a file or a pipe.
    """
    return sys.stdout.isatty() and width() < WIDTH_OF_HELP


def note(message: str) -> None:
    """Print a line on standard error that the reader should see but that is not a result.

    Args:
        message: the line.
    """
    Console(stderr=True, highlight=False, soft_wrap=True).print(plain_text(f"note: {message}"))


def fail(message: str) -> None:
    """Print the line on standard error that ends a command which could not do its work.

    Args:
        message: what was wrong and what to do.
    """
    Console(stderr=True, highlight=False, soft_wrap=True).print(plain_text(f"lapwing: {message}"), style="red")


def plain_text(text: str) -> Text:
    """Text that may come from a file: without markup, and without characters that control a terminal.

    Args:
        text: any text.

    Returns:
        What Rich prints as it stands.

    Example:
        >>> print(plain_text("a world named \\x1b[2J"))
        a world named ?[2J
    """
    return Text("".join(character if character.isprintable() or character == "\n" else "?" for character in text))


def cell(value: Any) -> str:
    """A value as a cell of a table.

    Args:
        value: a number, text or None.

    Returns:
        Numbers with few digits and commas between thousands, ``-`` for None, other values as text.
    """
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.2e}"
    return "-" if value is None else f"{value:,}" if isinstance(value, Integral) else str(value)


@contextmanager
def progress_bar(label: str, every: float = SECONDS_BETWEEN_LINES) -> Iterator[Callable[..., None]]:
    """A progress bar on standard error.

    Args:
        label: what is being done.
        every: where output is not a terminal, print a line every so many seconds.

    Yields:
        A function to call with (done, total) and, if wanted, a short message.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(plain_text(label).plain, total=None)
    last = time.monotonic()
    # One that is only disabled ends in an empty line with Rich before 14.3.
    with bar if console.is_terminal else nullcontext():

        def update(done: int, total: int, message: str = "") -> None:
            nonlocal last
            if not console.is_terminal and time.monotonic() - last >= every:
                last = time.monotonic()
                note(f"{label}: {done:,} of {total:,}{f' ({message})' if message else ''}")
            description = plain_text(f"{label}: {message}" if message else label).plain
            bar.update(task, completed=done, total=total, description=description)

        yield update


@contextmanager
def live_table(
    label: str, columns: Sequence[str], clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int, Sequence[str]], None]]:
    """The last rows of work in progress on standard error, removed at the end; elsewhere a plain line now and then.

    Args:
        label: what is being done.
        columns: names; time left is added as the last one, an upper bound because the work may end early.
        clock: seconds.

    Yields:
        A function to call with (done, total, cells of a row).
    """
    console = Console(stderr=True)
    rows: list[list[str]] = []
    times: list[tuple[float, int]] = [(clock(), 0)]
    if not console.is_terminal:
        with _lines(label, "starting") as say:

            def describe(done: int, total: int, cells: Sequence[str]) -> None:
                times.append((clock(), done))
                values = ", ".join(f"{name} {cell}" for name, cell in zip(columns[1:], cells[1:], strict=True))
                say(f"step {done:,} of {total:,}; {values}; at most {duration(seconds_left(times, total))} left")

            yield describe
        return
    waiting = Spinner("dots", plain_text(f"{label}: starting"))
    with Live(waiting, console=console, transient=True, refresh_per_second=8) as live:

        def update(done: int, total: int, cells: Sequence[str]) -> None:
            times.append((clock(), done))
            rows.append([*cells, duration(seconds_left(times, total))])
            table = _table(label, [*columns, "left at most"], [True] * (len(columns) + 1), rows[-LIVE_ROWS:])
            waiting.update(text=Text(f"{done:,} of {total:,}"))
            live.update(Group(table, waiting))

        yield update


def seconds_left(times: Sequence[tuple[float, int]], total: int) -> float:
    """How long the rest takes at the pace so far.

    Args:
        times: (seconds, how much was done) since the start. The first interval includes what is done only once, such as
            compiling, and is left out as soon as there is a second.
        total: how much there is to do.

    Returns:
        Seconds.

    Example:
        >>> seconds_left([(0.0, 0), (9.0, 100), (10.0, 200)], total=500)
        3.0
    """
    (began, before), (now, done) = times[1 if len(times) > 2 else 0], times[-1]
    return (now - began) / max(done - before, 1) * (total - done)


def duration(seconds: float) -> str:
    """Seconds as minutes and hours.

    Args:
        seconds: at least 0.

    Returns:
        Text such as ``2:05`` or ``1:02:05``.
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error for work whose length is not known.

    Args:
        label: what is being done.

    Yields:
        A function to call with the present stage.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        with _lines(label, "not done yet") as say:
            yield say
        return
    with console.status(plain_text(label)) as status:
        yield lambda stage: status.update(plain_text(f"{label}: {stage}"))


@contextmanager
def _lines(label: str, first: str) -> Iterator[Callable[[str], None]]:
    """Where output is not a terminal: a line every so many seconds, with what was said last and the time until now."""
    began, ended, said = time.monotonic(), threading.Event(), [first]

    def print_lines() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            note(f"{label}: {said[0]} ({duration(time.monotonic() - began)} so far)")

    thread = threading.Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield lambda text: said.__setitem__(0, text)
    finally:
        ended.set()
        thread.join()


def _table(
    title: str, columns: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[str]], **options: Any
) -> Table:
    options |= {"title_justify": "left", "title_style": "bold", "header_style": "bold"}
    table = Table(title=plain_text(title), **options)
    for name, number in zip(columns, numeric, strict=True):
        table.add_column(plain_text(name), justify="right" if number else "left", no_wrap=number)
    for row in rows:
        table.add_row(*map(plain_text, row))
    return table


def _console() -> Console:
    # Piped output must not be cut at 80 columns.
    return _Output(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_TABLES)
