"""Tables of results: one object, written as Markdown, LaTeX, terminal rows or JSON records."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from lapwing.errors import LapwingError

MISSING = "–"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMERIC = re.compile(r"[<>+-]? ?\d[\d.,]*(e[+-]?\d+)? ?%?( ?[(\[][^()\[\]]*[)\]])?")
_MINUS = re.compile(r"(?<![\w.)\]}-])-(?=\.?\d)")

# What LaTeX would read as a command or, in its oldest font encoding, print as another character.
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "–": "--",
    "—": "---",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "ρ": r"$\rho$",
    "σ": r"$\sigma$",
}


@dataclass(frozen=True)
class Cell:
    """The plain text of one cell, and whether it stands out."""

    text: str
    bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table of results, whatever it is written as.

    Attributes:
        name: stem of its files and its LaTeX label, as ``table-1``.
        title: one sentence; the caption in LaTeX.
        columns: heads, all different.
        rows: as many cells each as there are columns.
        notes: sentences that stand under it, such as the command that made it.

    Example:
        >>> table = Table("cosines", "Cosine similarity", ("world", "ALLO"), (("GridRoom-1", Cell("0.9912", True)),))
        >>> print(table.markdown())
        **Cosine similarity**
        <BLANKLINE>
        | world | ALLO |
        | --- | ---: |
        | GridRoom-1 | **0.9912** |
        <BLANKLINE>
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell | str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could not be written in every form."""
        if not _NAME.fullmatch(self.name):
            raise LapwingError(
                f"a table's name is a file's stem of letters, digits, dots, dashes and underscores, got {self.name!r}"
            )
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise LapwingError(f"table {self.name}: needs columns with different heads, got {list(self.columns)}")
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise LapwingError(
                    f"table {self.name}, row {number}: {len(row)} cell(s) for {len(self.columns)} column(s)"
                )

    def markdown(self) -> str:
        """A GitHub table under its title, notes as a list below; columns of numbers are set to the right."""
        rules = ["---:" if self._is_numeric(number) else "---" for number in range(len(self.columns))]
        lines = [f"**{markdown_text(self.title)}**", ""]
        lines += [_markdown_row([markdown_text(head) for head in self.columns]), _markdown_row(rules)]
        lines += [_markdown_row([_written(cell, markdown_text, "**{}**") for cell in row]) for row in self.rows]
        if self.notes:
            lines += ["", *(f"* {markdown_text(note)}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        r"""A floating table in the paper's form; the document needs ``\usepackage{booktabs}``.

        Special characters are escaped. Letters of other scripts, a few Greek ones apart, need LuaLaTeX or XeLaTeX.
        """
        lines = [r"\begin{table}[t]", r"\centering", rf"\begin{{tabular}}{{l{'c' * (len(self.columns) - 1)}}}"]
        lines += [r"\toprule", _latex_row([_latex_text(head) for head in self.columns]), r"\midrule"]
        lines += [_latex_row([_written(cell, _latex_text, r"\textbf{{{}}}") for cell in row]) for row in self.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        if self.notes:
            lines += [r"\par\smallskip", "{\\footnotesize"]
            lines += [rf"{_latex_text(note)}\par" for note in self.notes]
            lines += ["}"]
        lines += [rf"\caption{{{_latex_text(self.title)}}}", rf"\label{{tab:{self.name}}}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def text_rows(self) -> list[list[str]]:
        """Plain text, row by row, for :func:`lapwing.cli.terminal.print_table`."""
        return [[_as_cell(cell).text for cell in row] for row in self.rows]

    def records(self) -> list[dict[str, str]]:
        """One dictionary per row, from the column's head to the cell's text, for JSON."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.text_rows()]

    def _is_numeric(self, column: int) -> bool:
        texts = {row[column] for row in self.text_rows()} - {"", MISSING}
        return bool(texts) and all(_NUMERIC.fullmatch(text) for text in texts)


def number(value: float | None, digits: int = 4) -> str:
    """A number with this many decimals, a dash where there is none.

    Example:
        >>> number(0.99891), number(-0.00001), number(float("nan")), number(None)
        ('0.9989', '0.0000', '–', '–')
    """
    return MISSING if value is None or math.isnan(value) else f"{value:z.{digits}f}"


def mean_std_cell(mean: float | None, std: float | None, bold: bool = False, digits: int = 4) -> Cell:
    """A mean with its standard deviation in brackets, without it where there is none.

    Example:
        >>> mean_std_cell(0.99891, 0.00062).text, mean_std_cell(0.99891, float("nan")).text
        ('0.9989 (0.0006)', '0.9989')
    """
    centre, spread = number(mean, digits), number(std, digits)
    return Cell(centre if MISSING in (centre, spread) else f"{centre} ({spread})", bold and centre != MISSING)


def p_value(value: float | None) -> str:
    """A p value with three decimals; one that would be printed as zero is ``<0.001``.

    Example:
        >>> p_value(0.01519), p_value(1e-9), p_value(float("nan"))
        ('0.015', '<0.001', '–')
    """
    if value is not None and value < 0.0005:
        return "<0.001"
    return number(value, 3)


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage.

    Example:
        >>> percent(0.1234), percent(None)
        ('12.3%', '–')
    """
    return MISSING if value is None or math.isnan(value) else f"{value:z.{digits}%}"


def _as_cell(cell: Cell | str) -> Cell:
    return Cell(cell) if isinstance(cell, str) else cell


def _written(cell: Cell | str, escape: Callable[[str], str], emphasis: str) -> str:
    cell = _as_cell(cell)
    text = escape(cell.text)
    return emphasis.format(text) if cell.bold and text else text


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """On one line, with what Markdown would read as marks escaped; ``<`` opens a tag only before a letter."""
    return re.sub(r"[\\|*_`]|<(?=[A-Za-z/!?])", r"\\\g<0>", " ".join(text.split()))


def _latex_row(cells: list[str]) -> str:
    # A row that began with [ or * would be taken for an argument of the line break before it.
    first = f"{{{cells[0][0]}}}{cells[0][1:]}" if cells[0][:1] in ("[", "*") else cells[0]
    return f"{' & '.join([first, *cells[1:]])} \\\\"


def _latex_text(text: str) -> str:
    minus_signs = _MINUS.sub("−", " ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in minus_signs)
