"""Local extrema on grids, against functions whose extrema are known."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lapwing.environments.layouts import Layout, room, symmetric_rooms
from lapwing.errors import DataError
from lapwing.solving import solve
from lapwing_paper.extrema import Extrema, local_extrema

TWO_ROOMS = Layout.from_text("XXXXXXX\nX..X..X\nX.....X\nX..X..X\nXXXXXXX", name="two rooms")


def eigenfunction(rows: int, columns: int, k: int, m: int) -> NDArray[np.float64]:
    """The closed-form eigenvector of an empty room with k half-waves down and m across, row by row."""
    down = np.cos(np.pi * k * (np.arange(rows) + 0.5) / rows)
    across = np.cos(np.pi * m * (np.arange(columns) + 0.5) / columns)
    return np.outer(down, across).ravel()


def cells_of(layout: Layout, states: list[int]) -> set[tuple[int, int]]:
    """Rows and columns inside the outer wall."""
    return {(int(row) - 1, int(column) - 1) for row, column in layout.cells[states]}


def by_definition(layout: Layout, values: NDArray[np.float64]) -> Extrema:
    """The definition itself, for functions without plateaus."""
    maxima, minima = [], []
    for state, (row, column) in enumerate(layout.cells):
        around = [(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)]
        near = [
            values[layout.index[cell]]
            for cell in around
            if 0 <= cell[0] < layout.shape[0] and 0 <= cell[1] < layout.shape[1] and layout.free[cell]
        ]
        if near and values[state] > max(near):
            maxima.append(state)
        if near and values[state] < min(near):
            minima.append(state)
    return Extrema(maxima, minima)


def test_a_product_of_cosines_has_its_extrema_at_the_ends_of_half_waves() -> None:
    found = local_extrema(layout := room(5, 9), eigenfunction(5, 9, 1, 2))
    assert cells_of(layout, found.maxima) == {(0, 0), (0, 8), (4, 4)}
    assert cells_of(layout, found.minima) == {(4, 0), (4, 8), (0, 4)}
    assert found.count == 6


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 1), (2, 3), (4, 2)])
def test_a_product_of_cosines_has_one_extremum_per_crossing_of_half_waves(k: int, m: int) -> None:
    found = local_extrema(room(12, 17), eigenfunction(12, 17, k, m))
    assert found.count == (k + 1) * (m + 1)
    assert abs(len(found.maxima) - len(found.minima)) <= 1


def test_a_wave_along_one_side_has_whole_sides_as_plateaus() -> None:
    # Every row is alike: the two outer columns are plateaus, named by their middle cells.
    found = local_extrema(layout := room(5, 9), eigenfunction(5, 9, 0, 1))
    assert cells_of(layout, found.maxima) == {(2, 0)}
    assert cells_of(layout, found.minima) == {(2, 8)}


def test_a_room_each_for_the_slowest_eigenvector_of_two_rooms() -> None:
    values = solve(TWO_ROOMS, dim=2).encoder.values[:, 1]
    found = local_extrema(TWO_ROOMS, values)
    # The two corners of a room that are farthest from the door are equally far.
    assert len(found.maxima) == len(found.minima) == 2
    columns = {kind: {column for _, column in cells_of(TWO_ROOMS, states)} for kind, states in vars(found).items()}
    assert sorted(columns.values(), key=min) == [{0}, {4}]


def test_a_wall_keeps_neighbours_apart() -> None:
    # Side by side in the picture, but the way from one to the other leads down and around.
    layout = Layout.from_text("XXXXX\nX.X.X\nX...X\nXXXXX")
    assert local_extrema(layout, [4.0, 3.0, 1.0, 0.0, 1.0]) == Extrema(maxima=[0, 1], minima=[3])
    open_layout = Layout.from_text("XXXXX\nX...X\nX...X\nXXXXX")
    assert local_extrema(open_layout, [4.0, 3.5, 3.0, 1.0, 0.0, 1.0]).maxima == [0]


def test_a_plateau_counts_once_and_is_named_by_its_middle() -> None:
    values = np.zeros((6, 8))
    values[0, 0] = -1.0
    values[1:4, 3:6] = 1.0
    found = local_extrema(layout := room(6, 8), values.ravel())
    assert cells_of(layout, found.maxima) == {(2, 4)}
    # The floor around it has a lower corner, so that it is neither.
    assert cells_of(layout, found.minima) == {(0, 0)}


def test_a_ring_is_named_by_one_of_its_own_cells() -> None:
    values = np.zeros((5, 5))
    values[1:4, 1:4] = 1.0
    values[2, 2] = 0.5
    found = local_extrema(layout := room(5, 5), values.ravel())
    assert len(found.maxima) == 1
    assert cells_of(layout, found.maxima) == {(1, 2)}
    assert (2, 2) in cells_of(layout, found.minima)


def test_a_step_on_the_way_up_is_no_extremum() -> None:
    layout = room(1, 6)
    assert local_extrema(layout, [0.0, 1.0, 1.0, 1.0, 2.0, 3.0]) == Extrema(maxima=[5], minima=[0])


@pytest.mark.parametrize(("rows", "columns"), [(1, 7), (7, 1)])
def test_a_corridor_one_cell_wide(rows: int, columns: int) -> None:
    values = [1.0, 0.0, 2.0, 3.0, 3.0, 1.0, 2.0]
    assert local_extrema(room(rows, columns), values) == Extrema(maxima=[0, 3, 6], minima=[1, 5])


def test_a_layout_without_an_outer_wall() -> None:
    layout = Layout("open", np.ones((3, 4), dtype=bool))
    assert local_extrema(layout, np.arange(12.0)) == Extrema(maxima=[11], minima=[0])


@pytest.mark.parametrize("offset", [0.0, 1.0, -3.0])
def test_a_constant_function_has_none(offset: float) -> None:
    noise = 1e-12 * np.random.default_rng(0).standard_normal(30)
    assert local_extrema(room(5, 6), np.full(30, offset)) == Extrema([], [])
    assert offset == 0.0 or local_extrema(room(5, 6), offset + noise) == Extrema([], [])


def test_a_part_on_which_a_function_is_constant_has_none() -> None:
    layout = Layout.from_text("XXXXXXX\nX..X..X\nX..X..X\nXXXXXXX")
    assert local_extrema(layout, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]) == Extrema([], [])
    assert local_extrema(layout, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 2.0]) == Extrema([7], [2])
    assert local_extrema(room(1, 1), [5.0]) == Extrema([], [])


def test_rounding_does_not_split_a_plateau_but_a_stricter_tolerance_does() -> None:
    values = [0.0, 1.0, 1.0 - 1e-9, 1.0, 0.0]
    assert local_extrema(room(1, 5), values).maxima == [2]
    assert local_extrema(room(1, 5), values, tolerance=0.0).maxima == [1, 3]


@given(st.integers(0, 2**32 - 1))
def test_without_plateaus_it_is_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = rng.random((5, 8)) < 0.7
    free[2, 3] = True
    layout = Layout("random", free)
    values = rng.permutation(layout.num_cells).astype(np.float64)
    assert local_extrema(layout, values) == by_definition(layout, values)


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_scale_and_offset_do_not_matter_and_a_sign_swaps_the_two(seed: int, scale: float, offset: float) -> None:
    layout = symmetric_rooms(1, 2, size=3)
    values = np.random.default_rng(seed).integers(0, 4, layout.num_cells).astype(np.float64)
    found = local_extrema(layout, values)
    assert local_extrema(layout, scale * values + offset) == found
    assert local_extrema(layout, -values) == Extrema(maxima=found.minima, minima=found.maxima)


@pytest.mark.parametrize("values", [np.zeros(5), np.zeros((5, 6)), [0.0] * 29 + [np.nan]])
def test_bad_input_is_refused(values: Any) -> None:
    with pytest.raises(DataError):
        local_extrema(room(5, 6), values)


def corridor(length: int) -> Layout:
    return Layout.from_text("\n".join(["X" * (length + 2), "X" + " " * length + "X", "X" * (length + 2)]))


def test_prominence_leaves_out_slight_bumps_and_keeps_the_deepest() -> None:
    # Peaks 1.0 and 0.6 (prominence 0.5), a bump of 0.05 on the way, and the ends.
    values = [0.0, 1.0, 0.3, 0.35, 0.1, 0.6, 0.55]
    everything = local_extrema(corridor(7), values)
    assert everything.maxima == [1, 3, 5]
    assert everything.minima == [0, 2, 4, 6]
    assert local_extrema(corridor(7), values, prominence=0.2) == Extrema([1, 5], [0, 4])
    assert local_extrema(corridor(7), values, prominence=0.51) == Extrema([1], [0, 4])


def test_the_highest_and_the_lowest_are_kept_whatever_the_prominence() -> None:
    assert local_extrema(corridor(4), [3.0, 1.0, 2.0, 0.0], prominence=1.0) == Extrema([0], [3])


def test_prominence_on_a_ring_follows_the_better_of_two_ways() -> None:
    ring = Layout.from_text("XXXXX\nX   X\nX X X\nX   X\nXXXXX")
    # Around the ring: 1.0, 0.8, 0.9, ... the peak 0.9 must go down only to 0.8, not to 0.2, to reach 1.0.
    around = [0, 1, 2, 4, 7, 6, 5, 3]
    values = np.empty(8)
    values[around] = [1.0, 0.8, 0.9, 0.5, 0.2, 0.1, 0.4, 0.7]
    assert local_extrema(ring, values, prominence=0.2).maxima == [0]
    assert local_extrema(ring, values, prominence=0.1).maxima == [0, 2]
