"""Names to worlds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapwing.environments import world_from_description
from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import perfect_maze, room, rooms
from lapwing.environments.registry import (
    WORLDS,
    layout_files,
    make_world,
    world_names,
)
from lapwing.errors import LapwingError
from worlds_by_kind import BOXES, GRIDS

NUM_STATES = {
    "GridRoom-1": 225,
    "GridRoomSym-4": 104,
    "GridMaze-7": 11,
    "GridMaze-9": 13,
    "GridMaze-11": 17,
    "GridMaze-17": 87,
    "FourRooms": 104,
    "WindyRooms": 104,
    "OneWayRooms": 104,
    "PortalRooms": 104,
    "Rooms-16": 271,
    "Rooms-32": 544,
    "Rooms-64": 1088,
    "Maze-19": 161,
    "Maze-26": 389,
    "Maze-32": 479,
}
OWN = "XXXXX\nX   X\nXXXXX\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a world of its own, one under a shipped name, one under a box's, and a file that is no layout."""
    for stem in ("Own-3", "GridRoom-1", "Box-2"):
        (tmp_path / f"{stem}.txt").write_text(OWN)
    (tmp_path / "notes.md").write_text("not a layout")
    return tmp_path


def degrees(world: GridWorld) -> np.ndarray:
    """How many other cells each cell touches."""
    return (world.successors != np.arange(world.num_states)[:, None]).sum(axis=1)


@pytest.mark.parametrize("name", GRIDS)
def test_a_shipped_layout_is_connected_and_has_its_name_and_number_of_states(name: str) -> None:
    world = make_world(name)
    assert isinstance(world, GridWorld)
    assert world.name == name
    assert world.layout.description
    assert world.num_states == NUM_STATES[name]
    assert world.layout.num_components == 1


@pytest.mark.parametrize("name", BOXES)
def test_a_shipped_box_has_its_name_and_the_dimension_in_it(name: str) -> None:
    world = make_world(name)
    assert isinstance(world, BoxWorld)
    assert world.name == name
    assert world.dimension == int(name.removeprefix("Box-"))
    gaps = np.diff(world.closed_form(12).mu)
    assert (gaps < -1e-6).all()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("GridRoom-1", (17, 17)),
        ("GridRoomSym-4", (13, 13)),
        ("GridMaze-7", (7, 9)),
        ("GridMaze-9", (9, 9)),
        ("GridMaze-17", (17, 19)),
        ("FourRooms", (13, 13)),
        ("Rooms-64", (41, 41)),
    ],
)
def test_a_shipped_layout_has_its_canvas(name: str, shape: tuple[int, int]) -> None:
    assert make_world(name).layout.shape == shape


@pytest.mark.parametrize(
    ("name", "ends", "junctions"), [("GridMaze-7", 3, [3]), ("GridMaze-9", 3, [3]), ("GridMaze-11", 4, [4])]
)
def test_the_small_mazes_are_corridors_that_meet_in_one_cell(name: str, ends: int, junctions: list[int]) -> None:
    touching = degrees(make_world(name))
    assert (touching == 1).sum() == ends
    assert touching[touching > 2].tolist() == junctions


def test_gridmaze_17_is_one_corridor_from_end_to_end() -> None:
    world = make_world("GridMaze-17")
    touching = degrees(world)
    # Connected (tested above), two ends, and every other cell between exactly two others: a path.
    assert sorted(touching.tolist()) == [1, 1] + [2] * 85
    mu = np.linalg.eigvalsh(world.transition_matrix().toarray())
    np.testing.assert_allclose(mu[::-1], (1 + np.cos(np.pi * np.arange(87) / 87)) / 2, atol=1e-13)


def test_the_rooms_of_gridroomsym_4_have_their_doors_in_the_middle() -> None:
    free = make_world("GridRoomSym-4").layout.free
    assert np.argwhere(free[6]).ravel().tolist() == [3, 9]
    assert np.argwhere(free[:, 6]).ravel().tolist() == [3, 9]


def test_every_known_name_makes_a_world(folder: Path) -> None:
    names = world_names(folder)
    assert names == [*WORLDS, "Own-3"]
    for name in names:
        assert make_world(name, layouts=folder).name == name


def test_without_a_folder_only_shipped_worlds_are_known() -> None:
    assert layout_files() == {}
    assert world_names() == list(WORLDS)
    with pytest.raises(LapwingError, match="unknown world 'Own-3'"):
        make_world("Own-3")


def test_a_folder_given_by_argument_adds_and_overrides_worlds(folder: Path) -> None:
    for name in ("Own-3", "GridRoom-1", "Box-2"):
        world = make_world(name, layouts=folder)
        assert isinstance(world, GridWorld)
        assert (world.name, world.num_states) == (name, 3)
    assert make_world("GridMaze-7", layouts=str(folder)).num_states == 11
    assert make_world("GridRoom-1").num_states == 225


def test_a_folder_given_by_the_environment_adds_and_overrides_worlds(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPWING_LAYOUTS", str(folder))
    assert make_world("Own-3").num_states == 3
    assert make_world("GridRoom-1").num_states == 3
    assert "Own-3" in world_names()


def test_the_argument_wins_over_the_environment(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAPWING_LAYOUTS", str(folder))
    empty = tmp_path_factory.mktemp("empty")
    assert make_world("GridRoom-1", layouts=empty).num_states == 225


def test_an_empty_variable_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAPWING_LAYOUTS", "")
    assert layout_files() == {}


def test_a_folder_that_does_not_exist_is_refused_by_who_named_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LapwingError, match=r"--layouts names .*absent'?, which is not a folder"):
        make_world("GridRoom-1", layouts=tmp_path / "absent")
    monkeypatch.setenv("LAPWING_LAYOUTS", str(tmp_path / "absent"))
    with pytest.raises(LapwingError, match=r"LAPWING_LAYOUTS names .*absent'?, which is not a folder"):
        make_world("GridRoom-1")


def test_a_bad_file_in_the_folder_hurts_only_who_asks_for_it(folder: Path) -> None:
    (folder / "torn.txt").write_text("XXX\nX X\nXX\n")
    assert make_world("Own-3", layouts=folder).num_states == 3
    with pytest.raises(LapwingError, match="'torn' is ragged: row 2 ends at column 2"):
        make_world("torn", layouts=folder)


def test_the_path_of_a_text_file_is_a_world(folder: Path) -> None:
    world = make_world(str(folder / "Own-3.txt"))
    assert (world.name, world.num_states) == ("Own-3", 3)
    with pytest.raises(LapwingError, match="cannot read"):
        make_world(str(folder / "absent.txt"))


def test_a_layout_of_your_own_is_a_world_with_its_options() -> None:
    world = make_world(room(2, 3), observation="one_hot", slip=0.1)
    assert (world.num_states, world.observation, world.slip) == (6, "one_hot", 0.1)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("GridRom-1", "GridRoom-1"), ("fourrooms", "FourRooms"), ("Maze19", "Maze-19"), ("Box2", "Box-2")],
)
def test_an_unknown_world_offers_the_nearest_name(typed: str, meant: str) -> None:
    with pytest.raises(LapwingError, match=f"unknown world '{typed}'; did you mean .*{meant}"):
        make_world(typed)


def test_an_unknown_world_offers_names_of_the_folder_too(folder: Path) -> None:
    with pytest.raises(LapwingError, match="did you mean Own-3"):
        make_world("own3", layouts=folder)


def test_a_world_like_no_other_lists_all_and_the_rules() -> None:
    with pytest.raises(LapwingError, match=r"known: Box-1, .*Rooms-64.*rooms:4x4x5:SEED"):
        make_world("qqqqqqqq")


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("room:20x30", room(20, 30)),
        ("room:1x9000", room(1, 9000)),
        ("rooms:4x4x5:3", rooms(4, 4, 5, seed=3)),
        ("rooms:2x3x5", rooms(2, 3, 5, seed=0)),
        ("rooms:2x3:8", rooms(2, 3, 4, seed=8)),
        ("maze:10x15:7", perfect_maze(10, 15, seed=7)),
        ("maze:10x15", perfect_maze(10, 15, seed=0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_rule_written_as_a_name_makes_its_world(name: str, layout) -> None:
    made = make_world(name)
    assert made.name == name
    np.testing.assert_array_equal(made.layout.free, layout.free)


@pytest.mark.parametrize(
    "name", ["room:8000x8000", "rooms:2000x2000x5:1", "maze:4000x4000:1", "room:999999999999x1", "rooms:1x1x999999"]
)
def test_a_rule_too_large_for_memory_is_refused(name: str) -> None:
    with pytest.raises(LapwingError, match=r"more than 30,000,000 tiles"):
        make_world(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("room:5", "room takes 2 sizes, got 1"),
        ("room:5x5x5", "room takes 2 sizes, got 3"),
        ("maze:5x5x5:1", "maze takes 2 sizes, got 3"),
        ("rooms:5:1", "rooms takes 2 or 3 sizes, got 1"),
        ("rooms:5x5x5x5", "rooms takes 2 or 3 sizes, got 4"),
        ("room:5x5:1", "an empty room takes no seed"),
        ("room:0x5", "rows must be at least 1"),
        ("maze:5x0:1", "columns must be at least 1"),
        ("rooms:2x2x0", "size must be at least 1"),
        ("maze:5x5:-1", "unknown world 'maze:5x5:-1'"),
        ("room:axb", "unknown world 'room:axb'"),
        ("room:" + "9" * 5000 + "x1", "unknown world 'room:999"),
    ],
    ids=lambda value: value[:20],
)
def test_a_rule_that_cannot_be_followed_says_why(name: str, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        make_world(name)


def test_a_box_takes_neither_slip_nor_other_observations() -> None:
    with pytest.raises(LapwingError, match="Box-2 is a continuous box"):
        make_world("Box-2", slip=0.1)
    with pytest.raises(LapwingError, match="Box-2 is a continuous box"):
        make_world("Box-2", observation="pixels")


@pytest.mark.parametrize(
    "name", ["GridRoom-1", "GridRoomSym-4", "GridMaze-7", "GridMaze-9", "GridMaze-11", "GridMaze-17"]
)
def test_worlds_under_the_papers_names_have_as_many_states_as_the_authors(name: str, authors_layouts: Path) -> None:
    assert make_world(name, layouts=authors_layouts).num_states == make_world(name).num_states


def test_the_authors_names_resolve_to_their_files(authors_layouts: Path) -> None:
    names = world_names(authors_layouts)
    assert {"GridRoom-16", "GridRoom-32", "GridRoom-64", "GridMaze-32"} <= set(names)
    world = make_world("GridMaze-32", layouts=authors_layouts)
    assert world.layout.description == "from GridMaze-32.txt"
    assert world.layout.num_components == 2


@pytest.mark.parametrize("name", [None, 3, b"room:2x2", ["FourRooms"]])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    with pytest.raises(LapwingError, match="is text"):
        make_world(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("layouts", [3, 2.5, b"x", ["a"], "a\0b"])
def test_a_layouts_folder_that_is_no_path_is_refused(layouts: object) -> None:
    with pytest.raises(LapwingError, match="folder of layouts must be a path"):
        make_world("FourRooms", layouts=layouts)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["maze:3500x3500", "rooms:3000x3000x1", "room:7000x7000", "maze:100000x100000"])
def test_a_rule_for_a_world_too_large_is_refused_with_the_limit(name: str) -> None:
    with pytest.raises(LapwingError, match=f"'{name}' would have more than 30,000,000 tiles"):
        make_world(name)


def test_a_layouts_folder_whose_name_no_system_takes_is_no_folder() -> None:
    with pytest.raises(LapwingError, match="is too long for any system"):
        make_world("FourRooms", layouts="x" * 5000)


@pytest.mark.parametrize("description", [True, "grid", [], 3, None, {}, {"kind": "matrix"}, {"kind": ["grid"]}])
def test_what_describes_no_world_of_ours_gives_none(description: Any) -> None:
    assert world_from_description(description) is None


@pytest.mark.parametrize(
    "description",
    [
        {"kind": "box", "name": "b", "sides": [10**400], "step": 0.1},
        {"kind": "box", "name": "b", "sides": 3, "step": 0.1},
        {"kind": "grid", "name": "g", "layout": " ", "observation": ["xy"], "slip": 0.0},
        {"kind": "grid", "name": "g", "layout": " ", "observation": "xy", "slip": 10**400},
    ],
)
def test_a_damaged_description_is_refused(description: dict[str, Any]) -> None:
    with pytest.raises(LapwingError):
        world_from_description(description)
