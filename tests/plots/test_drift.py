"""The figure of an online learner's reports."""

from pathlib import Path

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError
from lapwing.training.online import OnlineReport


def reports(count: int, dim: int) -> list[OnlineReport]:
    rng = np.random.default_rng(0)
    return [
        OnlineReport(i, 500 * i, 500, 0.1, np.linspace(0, 0.1, dim), rng.random(dim), float(rng.normal()), ())
        for i in range(1, count + 1)
    ]


@pytest.mark.parametrize(("count", "dim"), [(1, 3), (20, 9), (5, 1)])
def test_every_report_is_drawn(count: int, dim: int, tmp_path: Path) -> None:
    figure = lw.plots.drift_figure(reports(count, dim), moments=[700])
    top, middle, bottom = figure.axes
    assert len(bottom.lines[0].get_xdata()) == count
    assert len(top.lines) == min(dim - 1, 6) + 1
    assert middle.get_ylim() == (0, 1)
    assert lw.plots.save_figure(figure, tmp_path / "drift.png").stat().st_size > 1000


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="update"):
        lw.plots.drift_figure([])
