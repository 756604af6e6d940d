"""Small tables that a notebook shows: self-contained HTML in the colours of its theme."""

import re
from collections.abc import Mapping, Sequence
from html import escape

_NUMBER = re.compile(r"[0-9.,e+\-%]*")
# Borders, stripes and fonts are the notebook's own otherwise, and differ from one to the next.
_CELL = "padding:1px 12px 1px 0;border:0;background:transparent;color:inherit"


def html_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    colours: Mapping[str, tuple[str, str]] | None = None,
) -> str:
    """A table as an HTML fragment.

    Args:
        title: stands above it.
        columns: names of the columns; none for a table without a head.
        rows: one text per column; columns of numbers are aligned to the right.
        notes: lines below it.
        colours: text and background of the cells that consist of exactly these words.

    Returns:
        A ``<div>`` without scripts, classes or links.

    Example:
        >>> "<td" in html_table("a title", (), [("states", "271")])
        True
    """
    sides = ["right" if all(map(_NUMBER.fullmatch, column)) else "left" for column in zip(*rows, strict=True)]
    head = "".join(_cell("th", escape(name), side) for name, side in zip(columns, sides, strict=False))
    lines = [head] if columns else []
    for row in rows:
        cells = (_coloured(text, colours or {}) for text in row)
        lines.append("".join(_cell("td", cell, side) for cell, side in zip(cells, sides, strict=True)))
    body = "".join(f'<tr style="background:transparent">{line}</tr>' for line in lines)
    table = f'<table style="border-collapse:collapse;margin:4px 0;color:inherit">{body}</table>'
    below = "".join(f"<div>{escape(line)}</div>" for line in notes)
    return f'<div style="color:inherit;line-height:1.4;max-width:60em"><b>{escape(title)}</b>{table}{below}</div>'


def _cell(tag: str, content: str, side: str) -> str:
    return f'<{tag} style="{_CELL};text-align:{side}">{content}</{tag}>'


def _coloured(text: str, colours: Mapping[str, tuple[str, str]]) -> str:
    if text not in colours:
        return escape(text)
    ink, ground = colours[text]
    return f'<span style="color:{ink};background:{ground};padding:0 6px;border-radius:6px">{escape(text)}</span>'
