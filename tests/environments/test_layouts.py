"""Reading layouts from text, and writing them back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from lapwing.environments import layouts
from lapwing.environments.layouts import Layout
from lapwing.errors import LapwingError

TEXT = "XXXXX\nX   X\nX XXX\nXXXXX"
FREE = [[0, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]]

free_arrays = arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=12)).filter(np.any)


def layout_or_error(read: Callable[[Any], Layout], source: object) -> Layout | LapwingError:
    """What reading gives; an error of any other kind fails the test."""
    try:
        return read(source)
    except LapwingError as error:
        return error


def test_text_becomes_free_cells_and_walls() -> None:
    layout = Layout.from_text(TEXT, name="hook")
    assert layout.name == "hook"
    assert layout.shape == (4, 5)
    assert layout.num_cells == 4
    np.testing.assert_array_equal(layout.free, np.array(FREE, dtype=bool))


def test_cells_are_numbered_row_by_row_over_the_free_ones() -> None:
    layout = Layout.from_text(TEXT)
    assert layout.cells.tolist() == [[1, 1], [1, 2], [1, 3], [2, 1]]
    assert layout.index[1].tolist() == [-1, 0, 1, 2, -1]
    assert layout.index[2].tolist() == [-1, 3, -1, -1, -1]


@pytest.mark.parametrize(
    "variant",
    [
        TEXT + "\n",
        TEXT + "\n\n\n",
        TEXT.replace("\n", "\r\n"),
        TEXT.replace("\n", "\r\n") + "\r\n",
        "\ufeff" + TEXT,
        TEXT.replace("X", "#"),
        TEXT.replace(" ", "."),
        TEXT.replace("X", "#", 7).replace(" ", ".", 2),
    ],
    ids=["newline", "blank lines", "CRLF", "CRLF at the end", "BOM", "hashes", "dots", "a mixture"],
)
def test_variants_of_the_same_text_give_the_same_layout(variant: str) -> None:
    np.testing.assert_array_equal(Layout.from_text(variant).free, np.array(FREE, dtype=bool))


@pytest.mark.parametrize("encoded", [TEXT.encode(), TEXT.replace("\n", "\r\n").encode("utf-8-sig")])
def test_a_file_is_read_whatever_its_line_endings_and_byte_order_mark(tmp_path: Path, encoded: bytes) -> None:
    path = tmp_path / "Hook-3.txt"
    path.write_bytes(encoded)
    layout = Layout.from_file(path)
    assert layout.name == "Hook-3"
    np.testing.assert_array_equal(layout.free, np.array(FREE, dtype=bool))


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [("XXXX\nX  X\nXX\nXXXX", 2, 2), ("XXXX\nX   X\nXXXX", 1, 5), ("\nX X", 1, 3), ("X X\n\nX X", 1, 0)],
    ids=["too short", "too long", "first row empty", "empty row inside"],
)
def test_a_ragged_layout_names_row_and_column(text: str, row: int, column: int) -> None:
    with pytest.raises(LapwingError, match=rf"'torn' is ragged: row {row} ends at column {column}\b"):
        Layout.from_text(text, name="torn")


@pytest.mark.parametrize("character", ["o", "x", "\t", "\r", "\x00", "█"])
def test_an_unknown_character_is_named_with_its_row_and_column(character: str) -> None:
    with pytest.raises(LapwingError, match="row 1, column 2: unknown character") as caught:
        Layout.from_text(f"XXXX\nX {character}X\nXXXX")
    assert repr(character) in str(caught.value)


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "X", "XXX\nX#X\nXXX"])
def test_a_layout_without_a_free_cell_is_refused(text: str) -> None:
    with pytest.raises(LapwingError, match="'full' has no free cell"):
        Layout.from_text(text, name="full")


def test_a_binary_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "picture.txt"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    with pytest.raises(LapwingError, match=r"picture\.txt is not a text file"):
        Layout.from_file(path)


def test_a_missing_file_and_a_folder_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match=r"nowhere\.txt: No such file"):
        Layout.from_file(tmp_path / "nowhere.txt")
    with pytest.raises(LapwingError, match="it is a folder, not a file"):
        Layout.from_file(tmp_path)


@pytest.mark.parametrize(
    "free",
    [np.ones(3, dtype=bool), np.ones((2, 2, 2), dtype=bool), np.array([[0, 1], [1, 1]]), np.ones((2, 2))],
    ids=["one dimension", "three dimensions", "integers", "floats"],
)
def test_an_array_that_is_not_a_rectangle_of_booleans_is_refused(free: np.ndarray) -> None:
    with pytest.raises(LapwingError, match="two-dimensional array of booleans"):
        Layout("odd", free)


@pytest.mark.parametrize(
    ("text", "components"), [("X X X", 2), ("  ", 1), (" X\nX ", 2), ("   \n X \n   ", 1), (" X X \nXXXXX\n X X ", 6)]
)
def test_components_are_counted_without_diagonals(text: str, components: int) -> None:
    assert Layout.from_text(text).num_components == components


@given(free_arrays)
def test_a_layout_written_as_text_reads_back_the_same(free: np.ndarray) -> None:
    np.testing.assert_array_equal(Layout.from_text(Layout("any", free).to_text()).free, free)


@given(free_arrays)
def test_index_and_cells_are_each_others_inverse(free: np.ndarray) -> None:
    layout = Layout("any", free)
    rows, columns = layout.cells.T
    assert layout.index[rows, columns].tolist() == list(range(layout.num_cells))
    assert ((layout.index >= 0) == free).all()


@given(st.one_of(st.text(), st.text(alphabet="X#. \n\r\ufeff")))
def test_any_text_is_a_layout_or_a_clear_error(text: str) -> None:
    result = layout_or_error(Layout.from_text, text)
    if isinstance(result, LapwingError):
        assert "layout 'layout'" in str(result)
    else:
        assert result.num_cells == text.count(" ") + text.count(".")


@given(content=st.one_of(st.binary(), st.lists(st.sampled_from([b"X", b" ", b"\r\n"])).map(b"".join)))
def test_any_file_is_a_layout_or_a_clear_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "anything.txt"
    path.write_bytes(content)
    result = layout_or_error(Layout.from_file, path)
    if isinstance(result, LapwingError):
        assert "anything" in str(result)
    else:
        assert result.num_cells == content.count(b" ") + content.count(b".")


def test_every_layout_of_the_authors_reads_and_reads_back(authors_layouts: Path) -> None:
    paths = sorted(authors_layouts.glob("*.txt"))
    assert len(paths) == 15
    for path in paths:
        layout = Layout.from_file(path)
        assert layout.name == path.stem
        assert layout.to_text() == path.read_text().rstrip("\n")


@pytest.mark.parametrize("text", [None, 3, b"X X", ["X X"]])
def test_a_layout_that_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(LapwingError, match="read from text"):
        Layout.from_text(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [None, 3, b"a.txt", "a\0.txt"])
def test_a_path_that_is_none_is_refused(path: object) -> None:
    with pytest.raises(LapwingError, match="a layout file must be a path"):
        Layout.from_file(path)  # type: ignore[arg-type]


def test_a_layout_beyond_the_largest_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(layouts, "MAX_TILES", 20)
    monkeypatch.setattr(layouts, "MAX_FILE_BYTES", 80)
    (tmp_path / "long.txt").write_text(" " * 81)
    for make in (
        lambda: Layout.from_text(" " * 21),
        lambda: Layout("wide", np.ones((3, 7), dtype=bool)),
    ):
        with pytest.raises(LapwingError, match="20 tiles"):
            make()
    with pytest.raises(LapwingError, match="81 bytes, more than the 80"):
        Layout.from_file(tmp_path / "long.txt")
    assert Layout.from_text(" " * 20).num_cells == 20


def test_a_file_without_an_end_is_not_read_to_its_end() -> None:
    with pytest.raises(LapwingError, match="a pipe or a device, not a file"):
        Layout.from_file("/dev/zero")
