"""The numbers that the paper prints: all there, and the same as in its own source."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from lapwing_paper.published_numbers import BEST_AT_FIFTY, published_cosines, published_eigenvalues
from lapwing_paper.study_worlds import TWELVE_WORLDS

PAPER = Path(__file__).resolve().parents[3] / "shared" / "paper"


def rows_of(name: str) -> list[dict[str, str]]:
    path = PAPER / name
    if not path.is_file():
        pytest.skip(f"the paper's numbers are not at {path}")
    with path.open() as stream:
        return list(csv.DictReader(stream))


def test_every_table_has_twelve_worlds() -> None:
    assert set(published_cosines("xy")) == set(TWELVE_WORLDS)
    assert set(published_eigenvalues()) == set(TWELVE_WORLDS)
    assert set(published_cosines("pixels")) == {*TWELVE_WORLDS, "GridMaze-11"} - {"GridRoom-64"}
    assert {len(rows) for rows in published_eigenvalues().values()} == {11}


def test_a_few_numbers_are_as_printed() -> None:
    maze = published_cosines("xy")["GridMaze-19"]
    assert (maze.allo_mean, maze.allo_std, maze.ggdo_mean, maze.ggdo_std) == (0.9989, 0.0006, 0.9936, 0.0185)
    assert (maze.t_statistic, maze.p_value) == (2.218, 0.015)
    assert published_cosines("pixels")["GridRoom-16"].ggdo_mean == 0.7836
    second = published_eigenvalues()["GridRoomSym-4"][1]
    assert tuple(second) == (0.0540, 0.0429, 0.0003, 0.0395, 0.0003)


@pytest.mark.parametrize("observation", ["xy", "pixels"])
def test_cosines_are_those_of_the_papers_tables(observation: str) -> None:
    rows = rows_of(f"cosine_{observation}.csv")
    assert len(rows) == 12
    for row in rows:
        found = published_cosines(observation)[row["environment"]]
        assert found._asdict() == {name: float(text) for name, text in row.items() if name != "environment"}


def test_eigenvalues_are_those_of_the_papers_table() -> None:
    rows = rows_of("eigenvalues.csv")
    assert len(rows) == 12 * 11
    for row in rows:
        found = published_eigenvalues()[row["environment"]][int(row["index"]) - 1]
        assert found._asdict() == {n: float(text) for n, text in row.items() if n not in ("environment", "index")}


def source_of_the_paper() -> str:
    path = PAPER / "paper.tex"
    if not path.is_file():
        pytest.skip(f"the paper is not at {path}")
    return re.sub(r"\\textbf\{([^}]*)\}", r"\1", path.read_text())


def numbers_of(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.\d+", text)]


def test_cosines_are_those_of_the_papers_source() -> None:
    row = r"(Grid\w+-\d+) & +(\d\.\d{4} \(\d\.\d{4}\) & \d\.\d{4} \(\d\.\d{4}\) & +[\d.]+ & +[\d.]+) \\\\"
    found = re.findall(row, source_of_the_paper())
    assert len(found) == 24
    for observation, rows in (("xy", found[:12]), ("pixels", found[12:])):
        assert {name: numbers_of(cells) for name, cells in rows} == {
            name: list(published) for name, published in published_cosines(observation).items()
        }


def test_eigenvalues_are_those_of_the_papers_source() -> None:
    row = r"(Grid\w+-\d+)? & (\d\.\d{4} & \d\.\d{4} \(\d\.\d{4}\) & \d\.\d{4} \(\d\.\d{4}\)) \\\\"
    found: dict[str, list[list[float]]] = {}
    world = ""
    for name, cells in re.findall(row, source_of_the_paper()):
        world = name or world
        found.setdefault(world, []).append(numbers_of(cells))
    assert found == {name: [list(row) for row in rows] for name, rows in published_eigenvalues().items()}


@pytest.mark.parametrize("world", TWELVE_WORLDS)
def test_printed_numbers_are_possible(world: str) -> None:
    true = np.array([row.true for row in published_eigenvalues()[world]])
    assert true[0] == 0.0
    assert (np.diff(true) >= 0.0).all()
    assert true[-1] < 1.0
    cosine = published_cosines("xy")[world]
    assert 0.0 < cosine.ggdo_mean <= 1.0
    assert 0.0 < cosine.allo_mean <= 1.0
    assert 0.0 <= cosine.p_value <= 1.0


def test_the_best_at_fifty_components_are_ten_worlds_of_the_paper() -> None:
    assert len(BEST_AT_FIFTY) == 10
    assert set(BEST_AT_FIFTY) == set(TWELVE_WORLDS) - {"GridMaze-7", "GridMaze-9"}
    assert all(0.7 < best < 1.0 for best in BEST_AT_FIFTY.values())
