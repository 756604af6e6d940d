"""Maps of values: where each number lies, what is marked, and what is refused."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError

WORLD = lw.make_world("FourRooms")


def test_every_state_has_its_own_place_and_value() -> None:
    places = lw.plots.field_places(WORLD)
    assert places[0].tolist() == [1.0, 1.0]
    assert len(np.unique(places, axis=0)) == WORLD.num_states
    figure = lw.plots.value_maps(WORLD, {"number": np.arange(104.0)}, lw.plots.Marks(start=places[3], goal=places[5]))
    ax = figure.axes[0]
    drawn = ax.images[-1].get_array()
    rows, columns = places.astype(int).T
    np.testing.assert_array_equal(drawn[rows, columns], np.arange(104.0))
    marks = [collection.get_offsets()[0].tolist() for collection in ax.collections]
    assert marks == [places[3][::-1].tolist(), places[5][::-1].tolist()]


def test_continuous_worlds_have_places_in_cells() -> None:
    world = lw.make_world("UMaze")
    places = lw.plots.field_places(world)
    np.testing.assert_allclose(places, world.picture_places(world.field_points()), atol=1e-4)


def test_places_without_a_world_are_points() -> None:
    places = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    figure = lw.plots.value_maps(places, {"a": np.array([1.0, np.nan, 3.0]), "b": np.arange(3.0)})
    first, second = figure.axes[:2]
    assert first.collections[0].get_offsets().tolist() == [[1.0, 0.0], [5.0, 4.0]]
    assert len(second.collections[0].get_offsets()) == 3


def test_regions_have_a_colour_each_and_no_scale() -> None:
    figure = lw.plots.value_maps(WORLD, {"regions": np.arange(104) % 5}, regions=["regions"])
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda: lw.plots.value_maps(WORLD, {}),
        lambda: lw.plots.value_maps(WORLD, {"short": np.ones(3)}),
        lambda: lw.plots.value_maps(np.ones((3, 3)), {"a": np.ones(3)}),
    ],
)
def test_bad_input_is_refused(call: object) -> None:
    with pytest.raises(ArgumentError):
        call()  # type: ignore[operator]
