"""Tables of results: one object, written as Markdown, LaTeX, terminal rows or JSON records."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from lapwing_paper.seed_statistics import mean_and_std

MISSING = "–"

_NUMERIC = re.compile(r"[<>+-]? ?\d[\d.,]*(e[+-]?\d+)? ?%?( ?[(\[][^()\[\]]*[)\]])?")
_MINUS = re.compile(r"(?<![\w.)\]}-])-(?=\.?\d)")

# Characters that LaTeX reads as a command or, in its oldest font encoding, prints as another character.
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


class Bold(str):
    """The text of a cell that is emphasised."""


@dataclass(frozen=True)
class ResultTable:
    """A table of results, written as Markdown, LaTeX, terminal rows or JSON.

    Attributes:
        name: stem of its files and its LaTeX label, as ``table-1``.
        title: one sentence; the caption in LaTeX.
        records: one dictionary per row, from the column's head to the cell's text; all with the same keys.
        notes: sentences below the table, such as the command that made it.

    Example:
        >>> table = ResultTable("cosines", "Cosine similarity", [{"world": "GridRoom-1", "ALLO": Bold("0.9912")}])
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
    records: list[dict[str, str]]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The heads of the columns."""
        return list(self.records[0]) if self.records else ["no finished run"]

    @property
    def rows(self) -> list[list[str]]:
        """The cells, row by row."""
        return [list(record.values()) for record in self.records]

    def markdown(self) -> str:
        """A GitHub table under its title, notes as a list below; columns of numbers are aligned to the right."""
        rules = ["---:" if self._is_numeric(head) else "---" for head in self.columns]
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
            lines += [r"\par\smallskip", "{\\footnotesize", *(rf"{_latex_text(note)}\par" for note in self.notes), "}"]
        lines += [rf"\caption{{{_latex_text(self.title)}}}", rf"\label{{tab:{self.name}}}", r"\end{table}"]
        return "\n".join(lines) + "\n"

    def _is_numeric(self, head: str) -> bool:
        texts = {str(record[head]) for record in self.records} - {"", MISSING}
        return bool(texts) and all(_NUMERIC.fullmatch(text) for text in texts)


def number(value: float | None, digits: int = 4) -> str:
    """A number with this many decimals, a dash for None and NaN.

    Args:
        value: a number, or nothing.
        digits: decimals.

    Returns:
        The text of a cell.

    Example:
        >>> number(0.99891), number(-0.00001), number(float("nan")), number(None)
        ('0.9989', '0.0000', '–', '–')
    """
    return MISSING if value is None or math.isnan(value) else f"{value:z.{digits}f}"


def mean_std(mean: float | None, std: float | None, bold: bool = False) -> str:
    """A mean with its standard deviation in brackets, without it if there is none.

    Args:
        mean: of a sample.
        std: of the sample.
        bold: whether the cell is emphasised.

    Returns:
        The text of a cell.

    Example:
        >>> mean_std(0.99891, 0.00062), mean_std(0.99891, float("nan"))
        ('0.9989 (0.0006)', '0.9989')
    """
    centre, spread = number(mean), number(std)
    text = centre if MISSING in (centre, spread) else f"{centre} ({spread})"
    return Bold(text) if bold and centre != MISSING else text


def sample_cell(values: "ArrayLike", bold: bool = False) -> str:
    """Mean and standard deviation of a sample, see :func:`mean_std`.

    Args:
        values: (n,) a sample.
        bold: whether the cell is emphasised.

    Returns:
        The text of a cell.
    """
    found = mean_and_std(values)
    return mean_std(found.mean, found.std, bold)


def p_value(value: float | None) -> str:
    """A p value with three decimals; one that would be printed as zero is ``<0.001``.

    Args:
        value: a probability, or nothing.

    Returns:
        The text of a cell.

    Example:
        >>> p_value(0.01519), p_value(1e-9), p_value(float("nan"))
        ('0.015', '<0.001', '–')
    """
    if value is not None and value < 0.0005:
        return "<0.001"
    return number(value, 3)


def percent(value: float) -> str:
    """A share as a percentage, a dash for NaN.

    Args:
        value: a share of 1.

    Returns:
        The text of a cell.

    Example:
        >>> percent(0.12345), percent(float("nan"))
        ('12.35%', '–')
    """
    return MISSING if math.isnan(value) else f"{value:z.2%}"


def _written(cell: str, escape: Callable[[str], str], emphasis: str) -> str:
    text = escape(cell)
    return emphasis.format(text) if isinstance(cell, Bold) and text else text


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    """On one line, with what Markdown would read as marks escaped; ``<`` opens a tag only before a letter.

    Args:
        text: any text.

    Returns:
        Text that Markdown shows as it is.
    """
    return re.sub(r"[\\|*_`]|<(?=[A-Za-z/!?])", r"\\\g<0>", " ".join(text.split()))


def _latex_row(cells: list[str]) -> str:
    # A row that began with [ or * would be taken for an argument of the line break before it.
    first = f"{{{cells[0][0]}}}{cells[0][1:]}" if cells[0][:1] in ("[", "*") else cells[0]
    return f"{' & '.join([first, *cells[1:]])} \\\\"


def _latex_text(text: str) -> str:
    minus_signs = _MINUS.sub("−", " ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in minus_signs)
