"""Single values: what counts as a number or a path, and how a wrong one is shown."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.checks import as_path, as_real, as_reals, as_whole, shown
from lapwing.errors import LapwingError


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "whole"),
    [(3, 3), (-3, -3), (1e6, 10**6), (np.int8(3), 3), (np.array(3), 3), (np.float32(2), 2), (Decimal(4), 4)],
)
def test_any_kind_of_whole_number_becomes_a_plain_one(value: Any, whole: int) -> None:
    assert as_whole(value) == whole
    assert type(as_whole(value)) is int


@pytest.mark.parametrize(
    "value", [2.5, np.nan, np.inf, "3", b"3", None, True, np.True_, [3], np.array([3]), 3j, np.complex128(3), object()]
)
def test_anything_else_is_no_whole_number(value: Any) -> None:
    assert as_whole(value) is None


@pytest.mark.parametrize("value", ["3", b"3", None, True, np.True_, [3], np.array([3.0]), 3j, np.complex64(3), 10**400])
def test_anything_else_is_no_real_number(value: Any) -> None:
    assert as_real(value) is None


def test_real_numbers_become_plain_floats_infinite_ones_too() -> None:
    assert [as_real(value) for value in (1, 0.5, np.float32(0.5), np.inf, np.array(2))] == [1.0, 0.5, 0.5, np.inf, 2.0]
    assert np.isnan(as_real(np.nan) or 0.0)


@pytest.mark.parametrize(
    "values", ["a", [1, [2]], [1j], ["1"], [None, "a"], [10**400], np.ma.masked_array([1.0], [True])]
)
def test_an_array_with_anything_else_in_it_is_none_of_real_numbers(values: Any) -> None:
    assert as_reals(values) is None


def test_arrays_of_numbers_become_float64() -> None:
    found = as_reals([[1, True], [2.5, 3]])
    assert found is not None
    assert found.dtype == np.float64
    assert found.tolist() == [[1.0, 1.0], [2.5, 3.0]]


def test_text_and_paths_are_paths_and_nothing_else_is() -> None:
    assert as_path("a/b", "it") == as_path(Path("a/b"), "it") == Path("a/b")
    for wrong in (None, 3, b"a", ["a"], "a\0b"):
        with pytest.raises(LapwingError, match=r"^it must be a path"):
            as_path(wrong, "it")


def test_a_wrong_value_is_shown_in_few_words_whatever_it_is() -> None:
    assert shown("a") == "'a'"
    assert shown("x" * 1000).endswith("... (1,002 characters)")
    assert shown(10**5000) == "a int that cannot be shown"
    assert shown(Unshowable()) == "a Unshowable that cannot be shown"
