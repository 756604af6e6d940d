"""Progress of learning, in a line and in a notebook."""

import io
import runpy
from pathlib import Path

import numpy as np
import pytest

import lapwing as lw
from lapwing.report import live_progress
from lapwing.training import Progress

ROOT = Path(__file__).resolve().parents[2]


def reports(count: int) -> list[Progress]:
    return [
        Progress(10 * i, 100, {"loss": np.array(1.0 / i)}, np.zeros(3), [{"angle": 0.5**i, "cosine": 0.9}])
        for i in range(1, count + 1)
    ]


def test_a_line_is_printed_for_each_report() -> None:
    stream = io.StringIO()
    callback = lw.show_progress(stream)
    for report in reports(2):
        callback(report)
    assert stream.getvalue().splitlines() == [
        "step 10 of at most 100: loss 1, largest angle 0.5000, cosine 0.9000",
        "step 20 of at most 100: loss 0.5, largest angle 0.2500, cosine 0.9000",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_is_rewritten_until_the_end() -> None:
    stream = Terminal()
    callback = lw.show_progress(stream)
    first, last = reports(1)[0], reports(1)[0]._replace(step=100)
    callback(first)
    callback(last)
    assert stream.getvalue().count("\r") == 1
    assert stream.getvalue().endswith("\n")


def test_the_curve_goes_down_with_the_angle_and_stays_inside() -> None:
    picture = live_progress._curve([2.0, 0.1, float("nan"), 1e-9])
    points = [tuple(map(float, one.split(","))) for one in picture.split('points="')[1].split('"')[0].split()]
    assert [x for x, _ in points] == pytest.approx([0, live_progress.WIDTH / 3, live_progress.WIDTH], abs=0.1)
    assert [y for _, y in points] == pytest.approx([0, live_progress.HEIGHT / 3, live_progress.HEIGHT], abs=0.1)
    assert live_progress._curve([0.5]) == ""


def test_outside_of_a_notebook_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    lw.show_progress()(reports(1)[0])
    assert capsys.readouterr().err.startswith("step 10 of at most 100")


SHOWN = """
import lapwing as lw
world = lw.make_world("GridMaze-7")
data = lw.collect(world, 20_000, seed=0)
# %%
model = lw.learn(data, dim=3, steps=60, log_every=20, callback=lw.show_progress())
# %%
model
# %%
model.certificate()
# %%
lw.score(model, lw.solve(world, dim=3))
# %%
lw.audit(data)
# %%
data
# %%
world, world.layout, lw.operator(world)
# %%
model.plot(what="spectrum")
# %%
lw.plots.worlds_figure([world], columns=1)
"""


@pytest.mark.slow
def test_a_real_kernel_shows_everything_well(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    run = runpy.run_path(str(ROOT / "docs" / "run_tutorials.py"))["run"]
    sources = SHOWN.strip().split("\n# %%\n")
    path = tmp_path / "shown.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources]), path)
    notebook = run(path)
    shown = [[output for output in cell.outputs if output.get("name") != "stderr"] for cell in notebook.cells]
    _, progress, model, certificate, score, audit, data, short, spectrum, worlds = shown

    # Three reports, one output: the last one replaced those before it.
    assert len(progress) == 1
    assert "of at most 60" in progress[0].data["text/html"]
    assert "<polyline" in progress[0].data["text/html"]
    for output, words in (
        (model, "eigenvalue"),
        (certificate, "verdict"),
        (score, "subspace cosine"),
        (audit, "episodes"),
    ):
        assert words in output[0].data["text/html"]
        assert "<script" not in output[0].data["text/html"]
    assert data[0].data["text/plain"].startswith("Trajectories(20,000 transitions")
    text = short[0].data["text/plain"]
    assert len(text) < 300
    assert "GridWorld('GridMaze-7', 11 states, xy)" in text
    assert "Operator(GridMaze-7, 11 states, " in text
    for figure in (spectrum, worlds):
        assert len(figure) == 1
        assert figure[0].data["image/png"]
