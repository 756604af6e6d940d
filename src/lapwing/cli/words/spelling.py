"""Words back to what was typed: the command that says the same."""

from dataclasses import MISSING, fields
from typing import Any, get_args, get_type_hints

import tyro


def spelled(words: Any) -> list[str]:
    """The shortest command that parses to these words; defaults are left out.

    Example:
        >>> from lapwing.cli.words.representations import Solve
        >>> spelled(Solve("Rooms-16", dim=5, json=True))
        ['lapwing', 'solve', 'Rooms-16', '--dim', '5', '--json']
    """
    hints = get_type_hints(type(words), include_extras=True)
    positional, options = [], []
    for field in fields(words):
        value, markers = getattr(words, field.name), get_args(hints[field.name])[1:]
        if field.default is not MISSING and value == field.default:
            continue
        values = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
        flag = f"--{field.name.replace('_', '-')}"
        if tyro.conf.Positional in markers:
            positional += values
        elif value is True:
            options.append(flag)
        elif tyro.conf.UseAppendAction in markers:
            options += [part for one in values for part in (flag, one)]
        else:
            options += [flag, *values]
    return ["lapwing", type(words).__name__.lower(), *positional, *options]
