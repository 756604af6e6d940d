"""Learning curves: what is drawn, and what is refused."""

import pytest

import lapwing as lw
from lapwing.plots.curves import curves_figure


def learned(**options: object) -> lw.LaplacianRepresentation:
    return lw.learn(lw.operator("GridMaze-7"), 3, steps=60, log_every=20, stop_when_converged=False, **options)


def test_curves_hold_every_report_and_the_cosine_where_a_truth_is_known() -> None:
    figure = curves_figure(learned(truth=lw.solve("GridMaze-7", 3)))
    labels = {ax.get_ylabel() for ax in figure.axes}
    assert "cosine to the truth" in labels
    loss = next(line for line in figure.axes[1].get_lines() if line.get_label() == "loss")
    assert list(loss.get_xdata()) == [20, 40, 60]


def test_an_exact_solution_has_no_curves() -> None:
    with pytest.raises(lw.LapwingError, match="step by step"):
        curves_figure(lw.solve("GridMaze-7", 3))
