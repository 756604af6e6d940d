"""Learning where exact batches are not possible: fitted to a solved table, and refitted by cells."""

import json
from pathlib import Path

import numpy as np
import pytest

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.training import Progress, refit, task

pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")

FEW = {"hidden": (32, 32), "batch_size": 128, "oversampling": 2, "log_every": 20}


@pytest.fixture(scope="module")
def walk() -> Trajectories:
    return lw.collect("Box-1", 10_000, episode_length=50, seed=0)


@pytest.fixture
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "DENSE_STATES", 10)


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.parametrize("exact", [True, False])
def test_a_large_table_is_solved_and_the_network_fitted_to_it(exact: bool) -> None:
    data = lw.operator("GridRoom-1") if exact else lw.collect("GridRoom-1", 100_000, seed=0)
    solved = lw.solve(data, dim=5)
    model = lw.learn(data, 5, steps=500, hidden=(64, 64))
    assert model.metadata["batches"] == "fit"
    assert lw.score(model, solved).subspace_cosine > 0.999
    np.testing.assert_allclose(model.eigenvalues, solved.eigenvalues, atol=1e-9)
    assert (model.mu_errors is None) == exact
    assert model.certificate().angle_bounds.max() < 0.05
    assert model.problems() == [] or not exact


@pytest.mark.usefixtures("every_table_is_large")
def test_without_refitting_the_objective_is_trained() -> None:
    model = lw.learn(lw.operator("GridRoom-1"), 3, refit=0, steps=2, **FEW)
    assert model.metadata["batches"] == "exact"


def test_the_constant_component_is_exact_and_the_others_have_no_mean(walk: Trajectories, tmp_path: Path) -> None:
    model = lw.learn(walk, 4, steps=160, **FEW)
    values = model.transform(walk.observations)
    assert model.eigenvalues[0] == 0.0
    np.testing.assert_allclose(np.abs(values[:, 0]), 1.0, rtol=1e-14)
    np.testing.assert_allclose(values[:, 1:].mean(axis=0), 0.0, atol=0.02)
    again = lw.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(walk.observations), values)


def test_refitting_comes_near_the_closed_form_where_the_objective_alone_does_not(walk: Trajectories) -> None:
    truth = lw.solve("Box-1", dim=5)
    refitted, plain = (lw.learn(walk, 5, steps=240, refit=rounds, **FEW) for rounds in (3, 0))
    assert lw.score(refitted, truth).cosine > max(0.98, lw.score(plain, truth).cosine)
    errors = np.abs(refitted.eigenvalues[1:] - truth.eigenvalues[1:])
    assert (errors < 4.0 * refitted.mu_errors[1:] + 0.02 * truth.eigenvalues[1:]).all()


def test_progress_counts_all_rounds_and_ends_at_the_last_step(walk: Trajectories) -> None:
    seen: list[Progress] = []
    model = lw.learn(walk, 3, steps=100, truth=lw.solve("Box-1", dim=3), callback=seen.append, **FEW)
    assert [line.step for line in seen] == [20, 26, 38, 50, 70, 90, 100]
    assert {line.steps for line in seen} == {100}
    assert "cosine" in seen[-1].by_seed[0]
    assert [row["step"] for row in model.metadata["history"]] == [line.step for line in seen]
    assert model.metadata["steps"] == 100


@pytest.mark.parametrize("steps", [1, 4])
def test_any_number_of_steps_is_divided_among_the_rounds(walk: Trajectories, steps: int) -> None:
    assert lw.learn(walk, 3, steps=steps, **FEW).metadata["steps"] == steps


def test_several_seeds_are_refitted_each_for_itself(walk: Trajectories) -> None:
    truth = lw.solve("Box-1", dim=3)
    models = lw.Learner(dim=3, steps=160, **FEW).fit_many(walk, [3, 4])
    assert [model.metadata["seed"] for model in models] == [3, 4]
    assert min(lw.score(model, truth).cosine for model in models) > 0.97
    assert not np.allclose(models[0].transform(walk.observations[:9]), models[1].transform(walk.observations[:9]))
    assert len({len(model.metadata["history"]) for model in models}) == 1


class StoppedError(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("where", [30, 50, 70])
def test_learning_that_is_stopped_in_any_round_continues_to_the_same_bits(
    walk: Trajectories, tmp_path: Path, where: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lapwing.training.loop.SECONDS_BETWEEN", 0.0)
    options = {**FEW, "steps": 80, "log_every": 10}

    def stop(line: Progress) -> None:
        if line.step >= where:
            raise StoppedError

    with pytest.raises(StoppedError):
        lw.learn(walk, 3, callback=stop, checkpoints=tmp_path / "kept", **options)
    steps: list[int] = []
    again = lw.learn(walk, 3, callback=lambda line: steps.append(line.step), checkpoints=tmp_path / "kept", **options)
    whole = lw.learn(walk, 3, **options)
    assert steps[0] >= where - 10
    np.testing.assert_array_equal(again.transform(walk.observations[:99]), whole.transform(walk.observations[:99]))
    assert [row["step"] for row in again.metadata["history"]] == [row["step"] for row in whole.metadata["history"]]


def test_much_data_is_thinned_before_the_last_round(walk: Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refit._some_episodes(walk) is walk
    monkeypatch.setattr(refit, "ENOUGH_STATES", 5_100)
    monkeypatch.setattr(refit, "FEWEST_EPISODES", 10)
    assert refit._some_episodes(walk).num_episodes == 100


def test_the_options_are_recorded(walk: Trajectories) -> None:
    model = lw.learn(walk, 3, steps=4, refit=1, **FEW)
    assert json.loads(json.dumps(model.metadata["config"]))["refit"] == 1
