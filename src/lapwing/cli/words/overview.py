"""What `lapwing --help` shows: the commands in groups, a line and an example each."""

import textwrap
from collections.abc import Iterator, Sequence
from inspect import getdoc
from typing import Any

Group = tuple[str, Sequence[type[Any]]]

COMPLETION = "source <(lapwing --tyro-print-completion bash)"
MARGIN = 13


def example_of(command: type[Any]) -> str:
    """The example in a command's help."""
    return (getdoc(command) or "").partition("Example: ")[2].splitlines()[0]


def overview(description: str, groups: Sequence[Group], width: int) -> Iterator[tuple[str, str]]:
    """Lines and their styles; text is wrapped to ``width``, examples are not, for they are there to be copied."""
    yield "usage: lapwing COMMAND [OPTIONS]", ""
    yield f"\n{description}", ""
    for title, commands in groups:
        yield f"\n{title}", "bold"
        for command in commands:
            summary = (getdoc(command) or "").splitlines()[0]
            lines = textwrap.wrap(summary, max(width - MARGIN, 30))
            yield f"  {command.__name__.lower():<{MARGIN - 2}}{lines[0]}", "cyan"
            for line in lines[1:]:
                yield " " * MARGIN + line, "cyan"
            yield " " * MARGIN + example_of(command), ""
    yield "\nlapwing COMMAND --help shows all its options; lapwing --version the version.", ""
    yield f"Completion in bash, zsh or fish: {COMPLETION}", ""
