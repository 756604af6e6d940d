"""The errors and the names they offer."""

import pytest

from lapwing.errors import LapwingError, did_you_mean, nearest_names

KNOWN = ["GridRoom-1", "GridRoomSym-4", "FourRooms"]


def test_a_lapwing_error_can_be_caught_as_a_value_error() -> None:
    with pytest.raises(ValueError, match="what was wrong"):
        raise LapwingError("what was wrong")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gridrom-1", "GridRoom-1"),
        ("GRIDROOM-1", "GridRoom-1"),
        ("fourroom", "FourRooms"),
        ("GridRoomSym4", "GridRoomSym-4"),
    ],
)
def test_the_nearest_name_comes_first_whatever_the_case(typed: str, meant: str) -> None:
    assert nearest_names(typed, KNOWN)[0] == meant


def test_a_name_like_no_other_has_no_nearest() -> None:
    assert nearest_names("qqqq", KNOWN) == []


def test_no_more_names_are_offered_than_asked_for() -> None:
    assert len(nearest_names("world-1", [f"world-{i}" for i in range(9)], count=2)) == 2


def test_did_you_mean_offers_the_near_names_only() -> None:
    offer = did_you_mean("gridrom-1", KNOWN)
    assert offer.startswith("did you mean GridRoom-1")
    assert "FourRooms" not in offer


def test_did_you_mean_lists_every_name_when_none_is_near() -> None:
    assert did_you_mean("qqqq", KNOWN) == "known: FourRooms, GridRoom-1, GridRoomSym-4"
