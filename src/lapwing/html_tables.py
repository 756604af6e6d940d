"""Small tables that a notebook shows: self-contained HTML in the colours of its theme."""

from collections.abc import Mapping, Sequence
from html import escape

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
        rows: one text per column; text is escaped.
        notes: lines below it.
        colours: text and background of the cells that consist of exactly these words.

    Returns:
        A ``<div>`` without scripts, classes or links.

    Example:
        >>> "<td" in html_table("a title", (), [("states", "271")])
        True
    """
    cells = ["".join(_cell(text, i, colours or {}) for i, text in enumerate(row)) for row in rows]
    body = "".join(f'<tr style="background:transparent">{row}</tr>' for row in cells)
    head = "".join(f'<th style="{_CELL};text-align:{_side(i)}">{escape(name)}</th>' for i, name in enumerate(columns))
    head = f'<tr style="background:transparent">{head}</tr>' if columns else ""
    table = f'<table style="border-collapse:collapse;margin:4px 0;color:inherit">{head}{body}</table>'
    lines = "".join(f"<div>{escape(line)}</div>" for line in notes)
    return f'<div style="color:inherit;line-height:1.4;max-width:60em"><b>{escape(title)}</b>{table}{lines}</div>'


def _cell(text: str, column: int, colours: Mapping[str, tuple[str, str]]) -> str:
    shown = escape(text)
    if text in colours:
        ink, ground = colours[text]
        shown = f'<span style="color:{ink};background:{ground};padding:0 6px;border-radius:6px">{shown}</span>'
    return f'<td style="{_CELL};text-align:{_side(column)}">{shown}</td>'


def _side(column: int) -> str:
    return "right" if column else "left"
