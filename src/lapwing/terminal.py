"""What the user sees in the terminal: tables, progress, small pictures."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lapwing.environments.layouts import Layout


class _Output(Console):
    """Standard output; a reader that stops reading is left to :func:`lapwing.cli.main`, not to an exit from here."""

    def on_broken_pipe(self) -> None:
        """Raise it again."""
        raise BrokenPipeError


def print_json(content: dict[str, Any] | list[Any]) -> None:
    """Machine-readable output on standard output, and nothing else there."""
    json.dump(content, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; columns whose cells are all numbers are set to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, name in enumerate(columns):
        numeric = all(_is_number(row[number]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Pairs of (what, how much) without a head."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    for label, value in facts:
        table.add_row(Text(label), Text(value))
    _console().print(table)


def note(message: str) -> None:
    """A line that the reader should see but that is no result."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"note: {message}"))


def fail(message: str) -> None:
    """The line that ends a command that could not do its work."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"lapwing: {message}", style="red"))


@contextmanager
def progress_bar(label: str, every: float | None = None) -> Iterator[Callable[..., None]]:
    """A bar on standard error; called with (done, total) and, if wanted, a few words.

    Where nobody watches it is silent, or prints a line ``every`` so many seconds, for the log of a long study.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        last = time.monotonic()

        def update(done: int, total: int, words: str = "") -> None:
            nonlocal last
            if every is not None and not console.is_terminal and time.monotonic() - last >= every:
                last = time.monotonic()
                note(f"{label}: {done} of {total} ({words})")
            bar.update(task, completed=done, total=total, description=f"{label}: {words}" if words else label)

        yield update


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """A spinner on standard error for work whose length is not known; called with what is being done now."""
    with Console(stderr=True).status(label) as status:
        yield lambda stage: status.update(f"{label}: {stage}")


def small_picture(layout: Layout, width: int = 64) -> str:
    """A layout in half-block characters, two rows of cells per line; large ones are thinned to fit.

    Example:
        >>> print(small_picture(Layout.from_text("XXX\\nX X\\nXXX")))
        █▀█
        ▀▀▀
    """
    step = -(-max(layout.shape) // width)
    walls = ~layout.free[::step, ::step]
    lines = []
    for row in range(0, walls.shape[0], 2):
        lower = walls[row + 1] if row + 1 < walls.shape[0] else [False] * walls.shape[1]
        lines.append("".join(" ▀▄█"[int(top) + 2 * int(bottom)] for top, bottom in zip(walls[row], lower, strict=True)))
    return "\n".join(lines)


def _console() -> Console:
    # Piped output must not be cut at 80 columns.
    return _Output(highlight=False, width=None if sys.stdout.isatty() else 200)


def _is_number(cell: str) -> bool:
    return bool(cell) and all(character in "0123456789.,e+-x% " for character in cell)
