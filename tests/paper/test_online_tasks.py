"""Runs of the study of online policies, in small: who follows whom, what the agent sees, and cells of the tables."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing_paper import online_tasks
from lapwing_paper.online_tasks import turned
from lapwing_paper.run_store import Finished, Outcome, Results, StudyRun
from lapwing_paper.studies.online_policies import AGDO, AGDO_OPTIONS, DEFAULT, FROZEN, LONG, RESERVOIR, SEEN, STUDY
from lapwing_paper.study import make_plan
from lapwing_paper.study_worlds import study_world
from lapwing_paper.tasks import perform

DIM = 4


class CountingLearner:
    """A stand-in for the online learner whose model is counting itself."""

    def __init__(self, dim: int, *, capacity: int, seed: int, **options: Any) -> None:
        self.dim, self.capacity = dim, capacity
        self.observations: Any = np.zeros((0, 2), dtype=np.float32)
        self.ends = np.zeros(0, dtype=bool)
        self.updates: list[int] = []

    def add(self, observations: Any, episode_ends: Any) -> None:
        self.observations = np.concatenate([self.observations, observations])[-self.capacity :]
        self.ends = np.concatenate([self.ends, episode_ends])[-self.capacity :]

    def update(self, steps: int) -> None:
        self.updates.append(steps)

    def data(self) -> lw.Trajectories:
        return lw.from_arrays(self.observations, truncated=np.append(self.ends[:-1], True))

    def model(self) -> lw.LaplacianRepresentation:
        return lw.solve(self.data(), self.dim)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"DIM": DIM, "FIRST_STEPS": 2_000, "STEPS_PER_SCORE": 1_000}
    for name, value in sizes.items():
        monkeypatch.setattr(online_tasks, name, value)


def run(**settings: Any) -> Outcome:
    given = {"steps": 4_000, "window": 2_000, "updates": 3, "options": {}, "seen": False, **settings}
    return perform(StudyRun("x", study_world("GridMaze-9", None), 0, given, "online-policies").specification())


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_counting_itself_is_as_good_as_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CountingLearner] = []
    monkeypatch.setattr(
        online_tasks,
        "OnlineLearner",
        lambda *given, **options: made.append(CountingLearner(*given, **options)) or made[-1],
    )
    found = run()
    assert made[0].updates == [3, 3, 3]
    assert [row["step"] for row in found.history] == [2_000, 3_000, 4_000]
    for row in found.history:
        assert row["cosine"] == row["counting_cosine"] > 0.8
        assert 0 < row["return_share"] < 1
    shares = [row["return_share"] for row in found.history]
    assert found.numbers["mean_return_share"] == pytest.approx(np.mean(shares))
    assert found.numbers["cosine"] == pytest.approx(np.mean([row["cosine"] for row in found.history]))


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_learners_follow_the_same_agent_unless_it_sees_what_they_learn() -> None:
    followed = [run(), run(options={**AGDO_OPTIONS, "hidden": [16]}), run(updates=0)]
    columns = [[(row["return_share"], row["counting_cosine"]) for row in one.history] for one in followed]
    assert columns[0] == columns[1] == columns[2]
    cosines = [[row["cosine"] for row in one.history] for one in followed]
    assert cosines[0] == pytest.approx([pair[1] for pair in columns[0]], abs=0.02)
    assert len({tuple(one) for one in cosines}) == 3
    seen = run(seen=True)
    assert [row["return_share"] for row in seen.history] != [pair[0] for pair in columns[0]]


@pytest.mark.usefixtures("small")
def test_a_run_that_is_too_short_for_a_score_gives_no_numbers_of_one() -> None:
    found = run(steps=500)
    assert found.history == []
    assert set(found.numbers) == {"states", "optimum"}


def test_components_are_turned_to_what_was_seen_and_keep_their_span() -> None:
    rng = np.random.default_rng(0)
    before = np.linalg.qr(rng.normal(size=(20, 3)))[0]
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    np.testing.assert_allclose(turned(before @ rotation, before), before, atol=1e-12)
    others = rng.normal(size=(20, 3))
    np.testing.assert_allclose(turned(others, before) @ turned(others, before).T, others @ others.T, atol=1e-10)


# --- the tables ----------------------------------------------------------------------------------------------------


def test_cells_hold_cosines_their_distance_from_counting_and_returns_by_what_is_seen() -> None:
    plan = make_plan(STUDY, full=True, seeds=2, worlds=("GridMaze-9",))
    finished = []
    runs = plan.runs()
    for number, one in enumerate(runs):
        base = 0.01 * (number % (len(runs) // 2)) + 0.02 * one.seed
        numbers = {"cosine": 0.80 + base, "counting_cosine": 0.81 + base, "optimum": 100.0}
        numbers |= {"subspace_cosine": 0.9, "counting_subspace_cosine": 0.95}
        numbers |= {"return_share": 0.5 + base, "mean_return_share": 0.4}
        finished.append(Finished(one, Outcome(numbers)))
    cosines, returns = STUDY.tables(plan, Results(finished))
    rows = {record["representation"]: record for record in cosines.records}
    assert list(rows) == [DEFAULT, LONG, "AGDO, b = 1", AGDO, "AGDO, b = 10", FROZEN]
    assert rows[DEFAULT]["cosine"] == "0.8100 (0.0141)"
    assert rows[AGDO]["counting"] == "0.8500 (0.0141)"
    assert {record["less counting"] for record in rows.values()} == {"-0.0100"}
    agents = {record["the agent sees"]: record for record in returns.records}
    assert list(agents) == ["coordinates", f"and {DEFAULT}", f"and {RESERVOIR}", f"and {FROZEN}"]
    assert agents["coordinates"]["return"] == "0.5100 (0.0141)"
    assert agents[f"and {FROZEN}"] == {
        "world": "GridMaze-9",
        "the agent sees": f"and {FROZEN}",
        "optimum": "100.0",
        "return": "0.5900 (0.0141)",
        "over training": "0.4000 (0.0000)",
    }


def test_the_quick_version_has_fewer_rows_and_every_barrier_is_an_option() -> None:
    quick = {label for label, _ in STUDY.methods(make_plan(STUDY))}
    assert quick == {DEFAULT, AGDO, FROZEN, *SEEN.values()}
    full = dict(STUDY.methods(make_plan(STUDY, full=True)))
    for label in (AGDO, "AGDO, b = 10"):
        options = full[label]["options"]
        learner = lw.OnlineLearner(11, capacity=100, **options)
        assert learner.config.objective_options == {"barrier": float(label.split("= ")[1])}
        assert learner.config.hidden == (256, 256, 256)
    assert full[SEEN[FROZEN]] == {**full[FROZEN], "seen": True}
    assert full[SEEN[RESERVOIR]]["options"]["keep"] == "reservoir"
