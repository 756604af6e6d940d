"""What the user sees in the terminal: tables, progress, small pictures."""

import json
import sys
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

# Where nobody knows the reader's window.
WIDTH_OF_TABLES = 200
WIDTH_OF_HELP = 110
LIVE_ROWS = 10


class _Output(Console):
    """Standard output; a reader that stops reading is left to :func:`lapwing.cli.main.main`, not to an exit here."""

    def on_broken_pipe(self) -> None:
        """Raise it again."""
        raise BrokenPipeError


def print_json(content: dict[str, Any] | list[Any]) -> None:
    """Machine-readable output on standard output, and nothing else there."""
    json.dump(content, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; columns whose cells are all numbers are set to the right."""
    table = Table(title=Text(harmless(title)), title_justify="left", title_style="bold", header_style="bold")
    for number, name in enumerate(columns):
        numeric = all(_is_number(row[number]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*(Text(harmless(cell)) for cell in row))
    _console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Pairs of (what, how much) without a head."""
    table = Table(title=Text(harmless(title)), title_justify="left", title_style="bold", show_header=False)
    for label, value in facts:
        table.add_row(Text(harmless(label)), Text(harmless(value)))
    _console().print(table)


def print_lines(lines: Iterable[tuple[str, str]]) -> None:
    """Lines, each with its style, as long as they are."""
    for line, style in lines:
        _console().print(Text(line, style=style), soft_wrap=True)


def width() -> int:
    """How many columns the reader of standard output has."""
    return _console().width if sys.stdout.isatty() else WIDTH_OF_HELP


def is_narrow() -> bool:
    """Whether a wide table would be squeezed: it is a window, and a small one."""
    return sys.stdout.isatty() and width() < WIDTH_OF_HELP


def note(message: str) -> None:
    """A line that the reader should see but that is no result."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"note: {harmless(message)}"))


def fail(message: str) -> None:
    """The line that ends a command that could not do its work."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"lapwing: {harmless(message)}", style="red"))


def harmless(text: str) -> str:
    """Text that may come from a file, without characters that steer a terminal.

    Example:
        >>> harmless("a world named \\x1b[2J")
        'a world named ?[2J'
    """
    return "".join(character if character.isprintable() or character == "\n" else "?" for character in text)


def cell(value: Any) -> str:
    """A value as a cell of a table.

    Args:
        value: a number, text or None.

    Returns:
        Text: numbers with few digits and thousands apart, ``-`` for None.
    """
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) >= 1e-4 or value == 0 else f"{value:.2e}"
    return "-" if value is None else f"{value:,}" if isinstance(value, Integral) else str(value)


@contextmanager
def progress_bar(label: str, every: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar on standard error; called with (done, total) and, if wanted, a few words.

    Where nobody watches it is silent, or prints a line ``every`` so many seconds, for the log of a long study.
    """
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(label, total=None)
    last = time.monotonic()
    # One that is only disabled ends in an empty line with Rich before 14.3.
    with bar if console.is_terminal else nullcontext():

        def update(done: int, total: int, words: str = "") -> None:
            nonlocal last
            if every is not None and not console.is_terminal and time.monotonic() - last >= every:
                last = time.monotonic()
                note(f"{label}: {done} of {total} ({words})")
            bar.update(task, completed=done, total=total, description=f"{label}: {words}" if words else label)

        yield update


@contextmanager
def live_table(
    label: str, columns: Sequence[str], clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int, Sequence[str]], None]]:
    """The last rows of work in progress on standard error; called with (done, total, cells of a row).

    Time left is added as the last column: an upper bound, for the work may end early. Where nobody watches it is
    silent, and nothing of it stays on the screen.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, cells: None
        return
    rows: list[list[str]] = []
    reports: list[tuple[float, int]] = [(clock(), 0)]
    waiting = Spinner("dots", Text(harmless(f"{label}: making ready")))
    with Live(waiting, console=console, transient=True, refresh_per_second=8) as live:

        def update(done: int, total: int, cells: Sequence[str]) -> None:
            reports.append((clock(), done))
            rows.append([*cells, _duration(seconds_left(reports, total))])
            table = Table(title=Text(harmless(label)), title_justify="left", title_style="bold", header_style="bold")
            for name in (*columns, "left at most"):
                table.add_column(name, justify="right", no_wrap=True)
            for row in rows[-LIVE_ROWS:]:
                table.add_row(*(Text(cell) for cell in row))
            waiting.update(text=Text(f"{done:,} of {total:,}"))
            live.update(Group(table, waiting))

        yield update


def seconds_left(reports: Sequence[tuple[float, int]], total: int) -> float:
    """How long the rest takes at the pace so far, from (time, how much was done) since the start.

    The first report includes what is done only once, such as compiling; as soon as there is a second it is left out.

    Example:
        >>> seconds_left([(0.0, 0), (9.0, 100), (10.0, 200)], total=500)
        3.0
    """
    (began, before), (now, done) = reports[1 if len(reports) > 2 else 0], reports[-1]
    return (now - began) / max(done - before, 1) * (total - done)


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error for work whose length is not known; called with what is being done now."""
    with Console(stderr=True).status(Text(harmless(label))) as status:
        yield lambda stage: status.update(Text(harmless(f"{label}: {stage}")))


def _console() -> Console:
    # Piped output must not be cut at 80 columns.
    return _Output(highlight=False, width=None if sys.stdout.isatty() else WIDTH_OF_TABLES)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _is_number(cell: str) -> bool:
    return bool(cell) and all(character in "0123456789.,e+-x% " for character in cell)
