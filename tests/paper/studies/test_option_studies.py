"""The studies of options: their runs in small worlds, their worlds, and published numbers in the right cells."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing_paper.run_store import Finished, Outcome, Results
from lapwing_paper.studies.catalogue import STUDIES
from lapwing_paper.study import make_plan
from lapwing_paper.study_worlds import AUTHORS, SAME, STAND_IN, study_world
from lapwing_paper.tasks import perform

DOMAINS = Path(__file__).resolve().parents[4] / "shared" / "domains"


def specification(task: str, world: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {"task": task, "world": study_world(world, None).world.describe(), "seed": 0, "settings": settings}


def rows_of(study: str, world: str, numbers: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """The first table, made from numbers by method."""
    plan = make_plan(STUDIES[study], worlds=(world,))
    finished = [Finished(run, Outcome(numbers[run.method])) for run in plan.runs() if run.method in numbers]
    return STUDIES[study].tables(plan, Results(finished))[0].records


def test_worlds_of_a_rule_are_those_of_the_literature() -> None:
    assert study_world("I-Maze", None).world.num_states == 19
    assert study_world("FourRoom-104", None).world.num_states == 104
    assert {study_world(name, None).origin for name in ("I-Maze", "FourRoom-104", "room:9x9")} == {SAME}
    stand_in = study_world("HardMaze", None)
    assert (stand_in.origin, stand_in.label) == (STAND_IN, "rooms:3x3x4:3")
    if not DOMAINS.is_dir():
        pytest.skip(f"the layouts of the literature are not at {DOMAINS}")
    for name in ("I-Maze", "FourRoom-104"):
        ours, theirs = study_world(name, None), study_world(name, DOMAINS)
        assert theirs.origin == AUTHORS
        assert ours.label == theirs.label == name
        assert ours.world.layout.to_text() == theirs.world.layout.to_text()  # type: ignore[attr-defined]


def test_exact_diffusion_times_stand_beside_the_published_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing_paper.option_tasks.MOST_DRAWS", 5)
    made = perform(specification("diffusion-time", "I-Maze", {"transitions": 0, "counts": [4]})).numbers
    assert made["actions"] == pytest.approx(246.222, abs=0.001)
    assert made["by_eigenvalues"] == pytest.approx(made["actions"], rel=1e-9)
    assert made["published"]["4"]["official"] == pytest.approx(27.382, abs=0.001)
    assert made["published"]["4"]["moves"] < made["published"]["4"]["official"]
    for times in (made["published"]["4"], made["own"]["4"]):
        assert times["ties_low"] <= times["ties_high"]
        assert times["noise_low"] <= times["noise_high"]
    alone, published, own = rows_of("diffusion-time", "I-Maze", {"exact": made})
    assert (alone["published figure"], alone["official"], alone["by eigenvalues"]) == ("247", "246.222", "246.222")
    assert (published["published figure"], published["official"]) == ("27", "27.382")
    assert own["published figure"] == "–"


def test_a_repeated_eigenvalue_gives_a_range_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing_paper.option_tasks.DRAWN_STATES", 200)
    made = perform(specification("diffusion-time", "room:4x4", {"transitions": 0, "counts": [2, 4]})).numbers
    assert made["own"]["4"]["bases_low"] < made["own"]["4"]["bases_high"]
    assert "bases_low" not in made["published"]["2"]  # the first eigenvalue is simple


def test_learned_options_are_compared_with_exact_ones_in_the_same_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    # Learning is tested elsewhere; in its place the exact components, turned within a repeated eigenvalue.
    class Turned:
        def __init__(self, preset: str, seed: int, dim: int) -> None:
            self.dim = dim

        def fit(self, data: lw.Trajectories) -> lw.LaplacianRepresentation:
            found = lw.solve(lw.make_world("room:3x3"), self.dim)
            turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
            found.encoder.values[:, 1:3] = found.encoder.values[:, 1:3] @ turn  # type: ignore[attr-defined]
            return found

    monkeypatch.setattr("lapwing_paper.option_tasks.Learner", Turned)
    made = perform(specification("diffusion-time", "room:3x3", {"transitions": 100, "counts": [4]})).numbers
    assert made["own"]["4"]["learned"] == pytest.approx(made["own"]["4"]["exact"], rel=1e-9)


def test_cover_times_stand_beside_the_published_ones() -> None:
    made = perform(specification("cover-time", "room:9x9", {"walks": 50, "point_options": 8})).numbers
    assert made["covering"]["connectivity"] == pytest.approx(0.2412, abs=1e-4)
    assert made["none"]["connectivity"] == pytest.approx(0.1206, abs=1e-4)
    # The room's eigenvalues repeat: the ends of its eigenvectors depend on the basis.
    assert 0.13 < made["eigenvectors"]["connectivity"] < 0.21
    covering, _, none = rows_of("cover-time", "room:9x9", {"walks": made})
    assert (covering["lambda_2, published"], covering["lambda_2"]) == ("0.24", "0.2412")
    assert (none["'cover time', published"], none["largest hitting time"]) == ("460.5", "452.0")


@pytest.mark.slow
def test_diffusion_options_stand_beside_the_published_ones() -> None:
    made = perform(specification("diffusion-options", "FourRoom-104", {"times": [4, 13]})).numbers
    alone, short, long = rows_of("diffusion-options", "FourRoom-104", {"options": made})
    assert (alone["steps, published"], alone["steps"]) == ("487 (104)", "487 (104)")
    assert (short["options, published"], short["options"]) == ("20", "20")
    assert (long["options, published"], long["options"]) == ("15", "15")
    assert short["steps"].startswith("149 ")
