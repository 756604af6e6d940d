"""Tables that a notebook shows: escaped, closed, in the colours asked for."""

import re
from html.parser import HTMLParser

from lapwing.html_tables import html_table


class Reader(HTMLParser):
    """Collects text; every tag must be closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(html: str) -> list[str]:
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader.words


def test_text_is_escaped_and_tags_are_closed() -> None:
    html = html_table("<script>", ("a", "<b>"), [("1", "<img src=x>")], ["<i>"])
    assert read(html) == ["<script>", "a", "<b>", "1", "<img src=x>", "<i>"]
    assert not re.search(r"<(script|img|i)\b", html)


def test_numbers_are_aligned_to_the_right_and_words_to_the_left() -> None:
    html = html_table("", (), [("states", "271"), ("steps", "1e-3")])
    assert re.findall(r"text-align:(\w+)", html) == ["left", "right"] * 2


def test_a_word_gets_its_colours() -> None:
    html = html_table(
        "", ("", "verdict"), [("1", "trusted"), ("2", "other")], colours={"trusted": ("#111111", "#eeeeee")}
    )
    assert html.count("color:#111111;background:#eeeeee") == 1


def test_a_table_without_rows_is_a_title() -> None:
    assert read(html_table("nothing", ("a", "b"), [])) == ["nothing"]
