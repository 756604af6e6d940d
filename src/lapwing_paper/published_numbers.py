"""The numbers that the paper prints, to stand beside ours."""

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple


class PublishedCosine(NamedTuple):
    """A row of Table 1 or 2: mean and standard deviation over 60 seeds, and the test between the two methods."""

    allo_mean: float
    allo_std: float
    ggdo_mean: float
    ggdo_std: float
    t_statistic: float
    p_value: float


class PublishedEigenvalue(NamedTuple):
    """A cell row of Table 3."""

    true: float
    allo_mean: float
    allo_std: float
    ggdo_mean: float
    ggdo_std: float


# Mean cosine of the best method in the OMM paper's Table 2, at d = 50.
BEST_AT_FIFTY = {
    "GridMaze-17": 0.980,
    "GridMaze-19": 0.967,
    "GridMaze-26": 0.823,
    "GridMaze-32": 0.736,
    "GridRoom-1": 0.953,
    "GridRoom-4": 0.870,
    "GridRoom-16": 0.919,
    "GridRoom-32": 0.745,
    "GridRoom-64": 0.742,
    "GridRoomSym-4": 0.811,
}


@cache
def published_cosines(observation: str) -> dict[str, PublishedCosine]:
    """Table 1 (``xy``) or Table 2 (``pixels``) of the paper by world (paper, Tables 1 and 2).

    Args:
        observation: ``xy`` or ``pixels``.

    Returns:
        A row of the table by the name of the world.

    Example:
        >>> published_cosines("xy")["GridRoom-64"].allo_mean
        0.9917
    """
    rows = _rows(f"cosine_{observation}.csv")
    return {
        row["environment"]: PublishedCosine(*(float(row[name]) for name in PublishedCosine._fields)) for row in rows
    }


@cache
def published_eigenvalues() -> dict[str, list[PublishedEigenvalue]]:
    """Table 3 of the paper by world, in the order of components (paper, Table 3).

    Returns:
        The rows of the table by the name of the world, the constant component first.

    Example:
        >>> published_eigenvalues()["GridMaze-7"][1].true
        0.1833
    """
    found: dict[str, list[PublishedEigenvalue]] = {}
    for row in sorted(_rows("eigenvalues.csv"), key=lambda row: int(row["index"])):
        values = PublishedEigenvalue(*(float(row[name]) for name in PublishedEigenvalue._fields))
        found.setdefault(row["environment"], []).append(values)
    return found


def _rows(name: str) -> list[dict[str, str]]:
    source = resources.files("lapwing_paper") / "published" / name
    with source.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))
