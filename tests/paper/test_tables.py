"""Tables say the same in every form, and no text in them breaks a form."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing_paper.tables import Bold, ResultTable, mean_std, number, p_value, percent

NASTY = r"%_&#$^~\{}|*[]<>`–±λ-5"

TABLE = ResultTable(
    name="cosines-xy",
    title="Cosine similarity & its spread",
    records=[
        {
            "Env": "GridRoom-1",
            "ALLO": mean_std(0.9912, 0.0003, bold=True),
            "GGDO": mean_std(0.9906, 0.0003),
            "p-value": "<0.001",
        },
        {"Env": "GridMaze_7", "ALLO": mean_std(0.9996, float("nan")), "GGDO": mean_std(None, None), "p-value": "–"},
    ],
    notes=("made with `lapwing reproduce`", "100% of seeds"),
)

texts = st.text(alphabet=NASTY + "ab 01\n", max_size=12)


def unescaped(character: str, text: str) -> int:
    """How often a character stands in LaTeX without a backslash before it."""
    return len(re.findall(rf"(?<!\\)(?:\\\\)*{re.escape(character)}", text))


def without_breaks(line: str) -> str:
    return line.removesuffix(r" \\")


def check_structure(source: str, columns: int, rows: int) -> None:
    """What a compiler would trip over: braces, columns, environments, mathematics left open, stray characters."""
    depth = 0
    for match in re.finditer(r"\\.|[{}]", source, flags=re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        assert depth >= 0
    assert depth == 0
    lines = source.split("\n")
    ends = [line for line in lines if line.endswith(r" \\")]
    assert len(ends) == rows + 1
    for line in ends:
        assert unescaped("&", without_breaks(line)) == columns - 1
        assert not line.startswith(("[", "*"))
    for line in lines:
        assert unescaped("$", without_breaks(line)) % 2 == 0
        assert not any(unescaped(character, without_breaks(line)) for character in "%#")
        assert not any(character in line for character in "^~–±λ")
    assert re.findall(r"\\(begin|end)\{(\w+)\}", source) == [
        ("begin", "table"),
        ("begin", "tabular"),
        ("end", "tabular"),
        ("end", "table"),
    ]


def cells_of_markdown(line: str) -> list[str]:
    """The cells as GitHub reads them: split at pipes that no backslash precedes, then unescaped."""
    parts = re.findall(r"(?:\\.|[^|\\])+", line.removeprefix("|").removesuffix("|"))
    return [re.sub(r"\\(.)", r"\1", part).strip() for part in parts]


def test_the_markdown_form() -> None:
    assert TABLE.markdown().split("\n") == [
        "**Cosine similarity & its spread**",
        "",
        "| Env | ALLO | GGDO | p-value |",
        "| --- | ---: | ---: | ---: |",
        "| GridRoom-1 | **0.9912 (0.0003)** | 0.9906 (0.0003) | <0.001 |",
        r"| GridMaze\_7 | 0.9996 | – | – |",
        "",
        r"* made with \`lapwing reproduce\`",
        "* 100% of seeds",
        "",
    ]


def test_the_latex_form() -> None:
    assert TABLE.latex().split("\n") == [
        r"\begin{table}[t]",
        r"\centering",
        r"\begin{tabular}{lccc}",
        r"\toprule",
        r"Env & ALLO & GGDO & p-value \\",
        r"\midrule",
        r"GridRoom-1 & \textbf{0.9912 (0.0003)} & 0.9906 (0.0003) & $<$0.001 \\",
        r"GridMaze\_7 & 0.9996 & -- & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip",
        r"{\footnotesize",
        r"made with `lapwing reproduce`\par",
        r"100\% of seeds\par",
        "}",
        r"\caption{Cosine similarity \& its spread}",
        r"\label{tab:cosines-xy}",
        r"\end{table}",
        "",
    ]
    check_structure(TABLE.latex(), columns=4, rows=2)


def test_the_terminal_and_json_forms_are_plain_text() -> None:
    assert TABLE.columns == ["Env", "ALLO", "GGDO", "p-value"]
    assert TABLE.rows[0] == ["GridRoom-1", "0.9912 (0.0003)", "0.9906 (0.0003)", "<0.001"]
    assert TABLE.records[1] == {"Env": "GridMaze_7", "ALLO": "0.9996", "GGDO": "–", "p-value": "–"}


def test_special_characters_print_as_themselves_in_latex() -> None:
    source = ResultTable("t", NASTY, [{"a": NASTY, NASTY: Bold(NASTY)}], (NASTY,)).latex()
    check_structure(source, columns=2, rows=1)
    assert source.count(r"\%\_\&\#\$\textasciicircum{}\textasciitilde{}\textbackslash{}\{\}$|$*[]$<$$>$`--") == 5


def test_a_minus_before_a_number_is_one_in_latex_but_a_hyphen_is_not() -> None:
    table = ResultTable("t", "t", [{"a": "GridMaze-17", "b": "-0.5 (-.1)"}, {"a": "1e-05", "b": "2020-21"}])
    assert r"GridMaze-17 & $-$0.5 ($-$.1) \\" in table.latex()
    assert r"1e-05 & 2020-21 \\" in table.latex()


@pytest.mark.parametrize("text", ["[0.1, 0.2]", "*"])
def test_a_row_does_not_give_arguments_to_the_line_break_before_it(text: str) -> None:
    table = ResultTable("t", "t", [{"a": "x", "b": "y"}, {"a": text, "b": "y"}])
    assert f"\n{{{text[0]}}}{text[1:]} & y \\\\\n" in table.latex()


@given(st.lists(st.tuples(texts, texts, st.booleans()), max_size=4), texts)
def test_no_text_breaks_the_structure_of_latex(rows: list[tuple[str, str, bool]], text: str) -> None:
    records = [{"a": first, "b": Bold(second) if bold else second} for first, second, bold in rows]
    check_structure(ResultTable("t", text, records, (text,)).latex(), columns=2 if rows else 1, rows=len(rows))


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_no_text_breaks_the_rows_of_markdown(rows: list[tuple[str, str]]) -> None:
    lines = ResultTable("t", "t", [{"a": a, "b": b} for a, b in rows]).markdown().strip("\n").split("\n")
    assert len(lines) == 4 + len(rows)
    for line, row in zip(lines[4:], rows, strict=True):
        assert cells_of_markdown(line) == [" ".join(text.split()) for text in row]


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (("0.9989 (0.0006)", "–"), True),
        (("0.98 [0.97, 0.99]", "-1.5"), True),
        (("<0.001", "12.3%"), True),
        (("1e-05", "1,234"), True),
        (("–", "–"), False),
        (("0.5", "none"), False),
        (("GridMaze-7", "7 rooms"), False),
        ((), False),
    ],
)
def test_columns_of_numbers_are_set_to_the_right(cells: tuple[str, ...], numeric: bool) -> None:
    rule = ResultTable("t", "t", [{"a": cell} for cell in cells]).markdown().split("\n")[3]
    assert rule == ("| ---: |" if numeric else "| --- |")


def test_an_empty_cell_is_not_made_bold() -> None:
    table = ResultTable("t", "t", [{"a": Bold("")}])
    assert "**" not in table.markdown().split("\n")[4]
    assert "textbf" not in table.latex()


def test_numbers_are_printed_as_in_the_paper() -> None:
    assert mean_std(0.99891, 0.00062) == "0.9989 (0.0006)"
    assert isinstance(mean_std(0.5, 0.25, bold=True), Bold)
    assert not isinstance(mean_std(float("nan"), 0.1, bold=True), Bold)
    assert [number(2.2184, 3), number(-0.0004, 3), number(float("nan"), 3)] == ["2.218", "0.000", "–"]
    assert [p_value(p) for p in (0.0152, 0.0005, 0.00049, 0.0, 1.0, None)] == [
        "0.015", "0.001", "<0.001", "<0.001", "1.000", "–"
    ]  # fmt: skip
    assert [percent(0.5), percent(-0.00001), percent(0.12345), percent(float("nan"))] == [
        "50.00%", "0.00%", "12.35%", "–"
    ]  # fmt: skip
