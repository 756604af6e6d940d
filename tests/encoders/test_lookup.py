"""The lookup table: known observations are found, unknown ones are an error."""

import numpy as np
import pytest
from numpy.typing import NDArray

from lapwing.encoders.lookup import LookupEncoder
from lapwing.environments.grid import OBSERVATION_MODES
from lapwing.environments.registry import make_world
from lapwing.errors import LapwingError

VALUES = np.arange(6.0).reshape(3, 2)
THIRDS = np.full(3, 1.0 / 3.0)


def table_of(observations: NDArray[np.generic]) -> LookupEncoder:
    return LookupEncoder(observations, VALUES, THIRDS)


def test_observations_are_found_in_any_order_and_as_often_as_asked() -> None:
    encoder = table_of(np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], dtype=np.float32))
    found = encoder.encode([[0.5, 0.6], [0.1, 0.2], [0.5, 0.6]])
    np.testing.assert_array_equal(found, VALUES[[2, 0, 2]])
    assert encoder.dim == 2


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_every_state_of_a_world_is_its_own_row_in_every_mode(mode: str) -> None:
    observations = make_world("FourRooms", observation=mode).table()  # type: ignore[arg-type,union-attr]
    count = len(observations)
    encoder = LookupEncoder(observations, np.zeros((count, 1)), np.full(count, 1.0 / count))
    np.testing.assert_array_equal(encoder.numbers_of(observations[::-1]), np.arange(count)[::-1])


def test_double_precision_observations_are_rounded_to_the_table() -> None:
    encoder = table_of(np.array([[0.1], [0.2], [0.3]], dtype=np.float32))
    assert encoder.numbers_of(np.array([[0.3], [0.1]])).tolist() == [2, 0]


def test_minus_zero_is_zero() -> None:
    plain, minus = np.array([[0.0], [1.0], [2.0]]), np.array([[-0.0], [1.0], [2.0]])
    assert table_of(plain).numbers_of(minus).tolist() == [0, 1, 2]
    assert table_of(minus).numbers_of(plain).tolist() == [0, 1, 2]


def test_an_unknown_observation_is_an_error_that_names_the_first() -> None:
    encoder = table_of(np.array([[0.0], [1.0], [2.0]]))
    with pytest.raises(LapwingError, match=r"2 of 3 observations are not in the table of 3 .*row 1"):
        encoder.encode([[0.0], [0.5], [np.nan]])
    assert encoder.numbers_of([[0.0], [0.5], [np.nan]]).tolist() == [0, -1, -1]


@pytest.mark.parametrize("wrong", [1.5, -1.0, 256.0, 257.0, np.nan, np.inf])
def test_a_number_that_is_no_colour_does_not_turn_into_one(wrong: float) -> None:
    encoder = table_of(np.array([[0], [1], [255]], dtype=np.uint8))
    assert encoder.numbers_of(np.array([[wrong], [1.0]])).tolist() == [-1, 1]


def test_state_numbers_may_be_given_flat() -> None:
    encoder = table_of(np.array([[0], [1], [2]]))
    assert encoder.numbers_of([2, 0]).tolist() == [2, 0]
    assert encoder.numbers_of([]).shape == (0,)


@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((2, 3)), np.zeros((1, 1, 2)), 0.0], ids=str)
def test_observations_of_another_shape_are_refused(wrong: NDArray[np.float64]) -> None:
    encoder = table_of(np.zeros((3, 2)) + np.arange(3)[:, None])
    with pytest.raises(LapwingError, match=r"shape \(n, 2\)"):
        encoder.encode(wrong)


def test_words_are_refused() -> None:
    with pytest.raises(LapwingError, match="must be numbers"):
        table_of(np.array([[0.0], [1.0], [2.0]])).encode([["a"]])


def test_two_states_that_look_alike_cannot_be_looked_up() -> None:
    with pytest.raises(LapwingError, match="cannot tell them apart"):
        table_of(np.array([[0.0], [1.0], [1.0]])).encode([[1.0]])


def test_the_parts_make_the_same_table_again() -> None:
    encoder = table_of(np.array([[0.1], [0.2], [0.3]]))
    again = LookupEncoder.from_arrays(encoder.arrays())
    np.testing.assert_array_equal(again.encode([[0.2]]), encoder.encode([[0.2]]))
    for one, other in zip(again.support(), encoder.support(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("part", ["observations", "values", "weights"])
def test_parts_that_do_not_fit_together_are_refused(part: str) -> None:
    arrays = table_of(np.array([[0.1], [0.2], [0.3]])).arrays()
    arrays[part] = arrays[part][:2]
    with pytest.raises(LapwingError, match="do not fit together"):
        LookupEncoder.from_arrays(arrays)
