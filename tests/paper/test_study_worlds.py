"""The paper's worlds in a study: whose layout stands for a name, what it is called, and that nothing is taken twice."""

from pathlib import Path

import pytest

from lapwing.environments.registry import LAYOUTS_VARIABLE, WORLDS
from lapwing.errors import LapwingError
from lapwing_paper.published_numbers import published_cosines
from lapwing_paper.study_worlds import (
    AUTHORS,
    DOMAIN_STAND_INS,
    DOMAINS,
    OTHER,
    SAME,
    STAND_IN,
    STAND_INS,
    TWELVE_WORLDS,
    origins_note,
    study_world,
    study_worlds,
)

TINY = "XXXXX\nX...X\nX.X.X\nXXXXX\n"


@pytest.fixture(autouse=True)
def no_layouts_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LAYOUTS_VARIABLE, raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tiny layout under the name of one of the paper's."""
    (tmp_path / "GridRoom-16.txt").write_text(TINY)
    (tmp_path / "Mine.txt").write_text(TINY)
    return tmp_path


def test_the_twelve_worlds_are_those_of_the_papers_first_table() -> None:
    assert sorted(TWELVE_WORLDS) == sorted(published_cosines("xy"))


@pytest.mark.parametrize("name", TWELVE_WORLDS)
def test_every_world_of_the_paper_is_there_without_its_authors_layouts(name: str) -> None:
    found = study_world(name, None)
    assert found.paper_name == name
    assert found.origin == (STAND_IN if name in STAND_INS else SAME)
    assert found.is_the_papers == (name not in STAND_INS)
    assert found.label == STAND_INS.get(name, name)
    assert found.world.name == found.label


def test_a_stand_in_is_never_called_by_the_papers_name() -> None:
    assert not {study_world(name, None).label for name in STAND_INS} & set(STAND_INS)
    assert set(STAND_INS.values()) <= set(WORLDS)


def test_a_stand_in_by_its_own_name_is_the_same_place() -> None:
    ours, theirs = study_world("Rooms-16", None), study_world("GridRoom-16", None)
    assert (ours.paper_name, ours.label, ours.origin) == (theirs.paper_name, theirs.label, theirs.origin)
    assert ours.world.describe() == theirs.world.describe()


def test_a_layouts_folder_gives_the_authors_world_and_says_so(folder: Path) -> None:
    found = study_world("GridRoom-16", folder)
    assert (found.label, found.origin, found.is_the_papers) == ("GridRoom-16", AUTHORS, True)
    assert found.world.num_states == 5
    assert origins_note((found,)) == "Layouts: authors' layout: GridRoom-16."


def test_worlds_of_the_applications_have_stand_ins_and_are_read_from_a_layouts_folder(tmp_path: Path) -> None:
    for name in DOMAINS:
        assert study_world(name, None).origin == SAME
    for name, own in DOMAIN_STAND_INS.items():
        found = study_world(name, None)
        assert (found.paper_name, found.world.name, found.origin) == (name, own, STAND_IN)
        (tmp_path / f"{name}.txt").write_text(TINY)
        found = study_world(name, tmp_path)
        assert (found.label, found.origin, found.world.num_states) == (name, AUTHORS, 5)


def test_a_layouts_folder_leaves_the_other_worlds_alone(folder: Path) -> None:
    assert study_world("GridRoom-32", folder).label == "Rooms-32"
    assert study_world("GridMaze-7", folder).origin == SAME


def test_the_folder_may_be_named_by_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAYOUTS_VARIABLE, str(folder))
    assert study_world("GridRoom-16", None).origin == AUTHORS


def test_a_layout_that_the_paper_does_not_have_is_the_users_own_choice(folder: Path) -> None:
    found = study_world("Mine", folder)
    assert (found.label, found.origin, found.is_the_papers) == ("Mine", OTHER, False)


def test_a_world_by_rule_is_the_users_own_choice() -> None:
    found = study_world("maze:3x4:7", None)
    assert (found.label, found.origin, found.is_the_papers) == ("maze:3x4:7", OTHER, False)


def test_the_note_names_the_world_that_each_stand_in_is_for() -> None:
    found = study_worlds(("GridRoom-16", "GridMaze-7", "GridRoom-32"), None)
    assert origins_note(found) == (
        "Layouts: own stand-in: Rooms-16 for GridRoom-16, Rooms-32 for GridRoom-32; "
        "own layout, same geometry: GridMaze-7."
    )


@pytest.mark.parametrize("names", [("GridMaze-7", "GridMaze-7"), ("GridRoom-16", "Rooms-16"), ("room:3x4", "room:3x4")])
def test_the_same_world_twice_is_an_error(names: tuple[str, str]) -> None:
    with pytest.raises(LapwingError, match="twice"):
        study_worlds(names, None)


def test_the_authors_world_and_our_stand_in_for_it_are_two(folder: Path) -> None:
    assert [one.label for one in study_worlds(("GridRoom-16", "Rooms-16"), folder)] == ["GridRoom-16", "Rooms-16"]


def test_an_unknown_name_is_an_error_that_offers_the_nearest() -> None:
    with pytest.raises(LapwingError, match="did you mean GridRoom-1"):
        study_world("gridroom-1", None)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LapwingError, match="not a folder"):
        study_world("GridRoom-16", tmp_path / "nowhere")
