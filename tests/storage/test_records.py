"""Fields of records: the right type and range, or an error that names the file, the field and what was found."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from lapwing.errors import LapwingError
from lapwing.storage.records import Record


def of(value: Any) -> Record:
    return Record({"field": value}, "model.json")


@pytest.mark.parametrize(
    ("ask", "good", "bad"),
    [
        (lambda r: r.whole("field", least=1, most=9), [1, 9], [0, 10, True, 1.0, "1", None, [1]]),
        (
            lambda r: r.number("field", least=0.0),
            [0, 0.5, 10**20],
            [-0.1, 10**400, True, math.nan, "1", None],
        ),
        (lambda r: r.text("field", longest=3), ["", "abc"], ["abcd", 3, None, ["a"]]),
        (lambda r: r.flag("field"), [True, False], [0, 1, "true", None]),
        (lambda r: r.record("field").content, [{}, {"a": 1}], [[], "a", None, 3]),
        (lambda r: r.numbers("field", least=0), [[], [0.5, 2]], [[math.nan], ["1"], [-1], 3, None, "12"]),
        (lambda r: r.wholes("field", least=0), [[], [1, 2]], [[1.0], [True], [-1], 3, None, "12"]),
        (lambda r: r.texts("field"), [[], ["a"]], [[1], "ab", None]),
    ],
)
def test_a_field_is_of_the_type_that_is_asked_for(
    ask: Callable[[Record], Any], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        assert ask(of(value)) == value
    for value in bad:
        with pytest.raises(LapwingError, match=r"'field'.*model\.json.*damaged|model\.json: 'field' must be .*damaged"):
            ask(of(value))
    with pytest.raises(LapwingError, match="lacks the field 'field'"):
        ask(Record({}, "model.json"))


def test_an_error_is_short_and_printable_whatever_the_file_holds() -> None:
    for value in ("x" * 10**6, "\x1b[2J\n", {"a": list(range(1000))}, list(range(10**5))):
        with pytest.raises(LapwingError) as error:
            of(value).number("field")
        assert len(str(error.value)) < 300
        assert str(error.value).isprintable()


def test_a_field_that_is_null_is_not_there() -> None:
    assert not of(None).has("field")
    assert not of(1).has("other")
    assert of(0).has("field")
