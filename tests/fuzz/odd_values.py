"""Values that nobody should pass, and what to say of a call that was given them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from lapwing.errors import LapwingError

CHEAP = settings(max_examples=500)
THOUSAND = settings(max_examples=1000)

LONGEST_MESSAGE = 2000

odd_numbers = st.one_of(
    st.integers(-3, 12),
    st.floats(),
    st.sampled_from([2**31, 2**63, 10**30, 10**400, -(10**20), 5e-324, 1e308, math.nan, math.inf, -0.0]),
    st.sampled_from([np.int8(3), np.uint64(2**63), np.float16(0.5), np.float64(math.nan), np.bool_(True)]),
)

odd_things = st.one_of(
    odd_numbers,
    st.text(max_size=8),
    st.binary(max_size=4),
    st.sampled_from([None, True, False, (), [], {}, [[]], [1], [[1], [1, 2]], {"a": 1}, "\udcff", "a\0b", "x" * 300]),
    st.sampled_from(
        [1j, object(), np.array(3), np.array([1, 2]), np.array(["a"]), np.array([None]), np.nan * np.eye(2)]
    ),
    st.lists(odd_numbers, max_size=3),
    st.complex_numbers(),
)

json_documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def result_or_error(call: Callable[[], Any]) -> Any:
    """What a call gives, or its LapwingError; an error of any other kind fails the test."""
    try:
        return call()
    except LapwingError as error:
        refused = error
    assert str(refused).strip(), "an error without a word"
    assert len(str(refused)) < LONGEST_MESSAGE, "an error that nobody will read to its end"
    return refused
