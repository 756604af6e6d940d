"""Layouts made by rule."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.environments.layouts import Layout, corridors, perfect_maze, room, rooms, symmetric_rooms
from lapwing.errors import LapwingError

sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32)


def number_of_edges(layout: Layout) -> int:
    """Pairs of free cells that touch along a side."""
    free = layout.free
    return int((free[1:] & free[:-1]).sum() + (free[:, 1:] & free[:, :-1]).sum())


def has_a_wall_all_round(layout: Layout) -> bool:
    free = layout.free
    return not (free[0].any() or free[-1].any() or free[:, 0].any() or free[:, -1].any())


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 7), (7, 1), (15, 15), (3, 8)])
def test_a_room_has_rows_times_columns_cells_inside_a_wall(rows: int, columns: int) -> None:
    layout = room(rows, columns)
    assert layout.shape == (rows + 2, columns + 2)
    assert layout.num_cells == rows * columns
    assert layout.name == f"room:{rows}x{columns}"
    assert has_a_wall_all_round(layout)
    assert layout.free[1:-1, 1:-1].all()


@given(sizes, sizes, seeds)
def test_a_perfect_maze_is_a_connected_tree(rows: int, columns: int, seed: int) -> None:
    layout = perfect_maze(rows, columns, seed)
    assert layout.shape == (2 * rows + 1, 2 * columns + 1)
    assert layout.num_components == 1
    assert number_of_edges(layout) == layout.num_cells - 1
    assert layout.num_cells == 2 * rows * columns - 1
    assert has_a_wall_all_round(layout)


@given(sizes, sizes, st.integers(1, 6), seeds)
def test_rooms_are_connected_by_one_door_fewer_than_rooms(rows: int, columns: int, size: int, seed: int) -> None:
    layout = rooms(rows, columns, size, seed)
    assert layout.shape == (rows * (size + 1) + 1, columns * (size + 1) + 1)
    assert layout.num_cells == rows * columns * size**2 + rows * columns - 1
    assert layout.num_components == 1
    assert has_a_wall_all_round(layout)


@pytest.mark.parametrize("extra", [0, 1, 5, 9])
def test_extra_doors_add_one_cell_each_and_stay_in_the_walls(extra: int) -> None:
    layout = rooms(4, 4, size=3, seed=5, extra_doors=extra)
    assert layout.num_cells == 16 * 9 + 15 + extra
    assert layout.num_components == 1
    # A door stands in one wall line, never at the crossing of two.
    assert not layout.free[::4, ::4].any()
    assert layout.free[::4, :].sum() + layout.free[:, ::4].sum() == 15 + extra


def test_more_doors_than_walls_are_refused_with_the_largest_number() -> None:
    with pytest.raises(LapwingError, match=r"extra_doors must be between 0 and 1\b.*got 2"):
        rooms(2, 2, extra_doors=2)
    with pytest.raises(LapwingError, match="extra_doors"):
        rooms(2, 2, extra_doors=-1)


@pytest.mark.parametrize("rule", [perfect_maze, rooms])
def test_the_same_seed_gives_the_same_world_and_others_differ(rule) -> None:
    texts = [rule(5, 6, seed=seed).to_text() for seed in range(20)]
    assert texts == [rule(5, 6, seed=seed).to_text() for seed in range(20)]
    assert len(set(texts)) == 20


def test_the_door_of_random_rooms_is_not_always_at_the_same_place() -> None:
    doors = {int(np.flatnonzero(rooms(1, 2, size=5, seed=seed).free[:, 6])[0]) for seed in range(60)}
    assert doors == {1, 2, 3, 4, 5}


def test_every_wall_between_junctions_of_a_maze_can_open() -> None:
    mazes = [perfect_maze(3, 4, seed=seed).free for seed in range(60)]
    opened = np.any(mazes, axis=0)
    assert not np.all(mazes, axis=0)[1::2, 2:-1:2].any()
    assert opened[1::2, 2:-1:2].all()
    assert opened[2:-1:2, 1::2].all()


@pytest.mark.parametrize(("rows", "columns", "size"), [(2, 2, 5), (3, 2, 5), (1, 4, 3), (3, 3, 1)])
def test_symmetric_rooms_are_symmetric_under_both_reflections(rows: int, columns: int, size: int) -> None:
    layout = symmetric_rooms(rows, columns, size)
    np.testing.assert_array_equal(layout.free, layout.free[::-1])
    np.testing.assert_array_equal(layout.free, layout.free[:, ::-1])
    doors = rows * (columns - 1) + columns * (rows - 1)
    assert layout.num_cells == rows * columns * size**2 + doors
    assert layout.num_components == 1


def test_square_symmetric_rooms_are_symmetric_under_transposition() -> None:
    free = symmetric_rooms(2, 2, 5).free
    np.testing.assert_array_equal(free, free.T)


def test_the_smallest_worlds_have_one_cell() -> None:
    for layout in (room(1, 1), rooms(1, 1, 1), symmetric_rooms(1, 1, 1), perfect_maze(1, 1)):
        assert layout.to_text() == "XXX\nX X\nXXX"


def test_corridors_follow_their_corners_in_either_direction() -> None:
    layout = corridors((5, 6), [[(3, 4), (1, 4), (1, 1)]], "bend")
    assert layout.to_text() == "XXXXXX\nX    X\nXXXX X\nXXXX X\nXXXXXX"


@pytest.mark.parametrize("rule", [room, rooms, symmetric_rooms, perfect_maze])
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (3, 0), (-1, 3), (0, 0)])
def test_a_size_below_one_is_refused_by_name(rule, rows: int, columns: int) -> None:
    with pytest.raises(LapwingError, match=r"(rows|columns) must be at least 1, got (0|-1)"):
        rule(rows, columns)


@pytest.mark.parametrize(("rule", "size"), list(itertools.product([rooms, symmetric_rooms], [0, -2])))
def test_a_room_size_below_one_is_refused(rule, size: int) -> None:
    with pytest.raises(LapwingError, match=f"size must be at least 1, got {size}"):
        rule(2, 2, size)


@pytest.mark.parametrize("rule", [rooms, perfect_maze])
def test_a_negative_seed_is_refused(rule) -> None:
    with pytest.raises(LapwingError, match="at least 0, got -1"):
        rule(2, 2, seed=-1)


@pytest.mark.parametrize("make", [room, rooms, symmetric_rooms, perfect_maze])
@pytest.mark.parametrize("size", [2.5, "a", None, True, float("nan"), float("inf")])
def test_a_size_that_is_no_whole_number_is_refused(make: Any, size: object) -> None:
    with pytest.raises(LapwingError, match=r"must be at least 1, got .*; give a whole number"):
        make(size, 3)


@pytest.mark.parametrize("make", [room, rooms, symmetric_rooms, perfect_maze])
@pytest.mark.parametrize("rows", [10**5, 10**9, 10**30])
def test_a_world_beyond_the_largest_is_refused_before_memory_is_asked_for(make: Any, rows: int) -> None:
    with pytest.raises(LapwingError, match="more than 30,000,000 tiles"):
        make(rows, rows)


def test_rooms_of_an_absurd_size_and_an_absurd_canvas_are_refused() -> None:
    with pytest.raises(LapwingError, match="more than 30,000,000 tiles"):
        rooms(2, 2, 10**9)
    with pytest.raises(LapwingError, match="more than 30,000,000 tiles"):
        corridors((10**9, 10**9), [], "endless")
    with pytest.raises(LapwingError, match="rows must be at least 1"):
        corridors((-3, 3), [], "negative")


@pytest.mark.parametrize("options", [{"seed": "a"}, {"seed": 2.5}, {"extra_doors": 1.5}, {"extra_doors": "a"}])
def test_seeds_and_doors_that_are_no_whole_numbers_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LapwingError):
        rooms(2, 2, 3, **options)
