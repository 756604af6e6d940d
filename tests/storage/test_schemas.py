"""Records from files: each field of the right type and range, or an error that names the file and the field."""

import math
from typing import Any

import pytest

from lapwing.errors import DamagedFileError
from lapwing.storage.reading import convert
from lapwing.storage.schemas import ModelManifest, is_number, learning_history, world_name

GOOD: dict[str, Any] = {
    "dim": 3,
    "definition": "one_step",
    "exact": True,
    "encoder": {"kind": "lookup", "config": {}},
    "checksum": 7,
}


def test_a_record_of_the_right_types_is_read_and_unknown_fields_are_ignored() -> None:
    found = convert({**GOOD, "next_mu": 1, "later": [1]}, ModelManifest, "model.json")
    assert (found.dim, found.next_mu, found.metadata, found.encoder.kind) == (3, 1.0, {}, "lookup")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("dim", 0),
        ("dim", 1.0),
        ("dim", True),
        ("definition", "x" * 101),
        ("definition", None),
        ("exact", 1),
        ("encoder", {"kind": "lookup"}),
        ("orthonormality_error", -0.1),
        ("metadata", ["\x1b[2J\n" * 1000]),
        ("checksum", "7"),
    ],
)
def test_a_wrong_field_is_named_in_a_short_printable_message(field: str, value: Any) -> None:
    with pytest.raises(DamagedFileError, match=rf"model\.json.*{field}") as error:
        convert({**GOOD, field: value}, ModelManifest, "model.json")
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


def test_truth_values_and_infinities_are_no_numbers() -> None:
    assert [is_number(value) for value in (1, 0.5, True, math.inf, math.nan, "1", None)] == [True, True] + [False] * 5


@pytest.mark.parametrize("metadata", [{}, {"world": None}, {"world": "text"}, {"world": {"name": ""}}, {"world": [1]}])
def test_where_there_is_no_name_another_word_stands(metadata: dict[str, Any]) -> None:
    assert world_name(metadata, "unnamed") == "unnamed"
    assert world_name({"world": {"name": 7}}, "unnamed") == "7"


def test_all_rows_of_a_history_have_the_same_columns() -> None:
    assert learning_history({}) == []
    rows = learning_history({"history": [{"step": 1}, {"step": 2, "loss": 0.5}, {"step": 3, "loss": None}]})
    assert [list(row) for row in rows] == [["step", "loss"]] * 3
    assert [row["loss"] if math.isfinite(row["loss"]) else None for row in rows] == [None, 0.5, None]
