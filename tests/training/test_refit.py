"""Learning where exact batches are not possible: fitted to a solved table, and refitted by cells."""

import json
import warnings
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.encoders import build_encoder, own_encoder
from lapwing.training import Progress, init, refit, task
from lapwing.training.fitting import REGRESSION, Targets
from lapwing.training.refit import with_solved_last_layer

pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")

FEW = {"hidden": (32, 32), "batch_size": 128, "oversampling": 2, "log_every": 20}


@pytest.fixture(scope="module")
def walk() -> Trajectories:
    return lw.collect("Box-1", 10_000, episode_length=50, seed=0)


@pytest.fixture(scope="module")
def refitted(walk: Trajectories) -> lw.LaplacianRepresentation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.LapwingWarning)
        return lw.learn(walk, 5, steps=240, **FEW)


@pytest.fixture
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "DENSE_STATES", 10)


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.parametrize("exact", [True, pytest.param(False, marks=pytest.mark.slow)])
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


def test_the_constant_component_is_exact_and_the_others_have_no_mean(
    walk: Trajectories, refitted: lw.LaplacianRepresentation, tmp_path: Path
) -> None:
    values = refitted.transform(walk.observations)
    assert refitted.eigenvalues[0] == 0.0
    np.testing.assert_allclose(np.abs(values[:, 0]), 1.0, rtol=1e-12)
    np.testing.assert_allclose(values[:, 1:].mean(axis=0), 0.0, atol=0.02)
    again = lw.load(refitted.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.transform(walk.observations), values)


def test_refitting_comes_near_the_closed_form_where_the_objective_alone_does_not(
    walk: Trajectories, refitted: lw.LaplacianRepresentation
) -> None:
    truth = lw.solve("Box-1", dim=5)
    plain = lw.learn(walk, 5, steps=240, refit=0, **FEW)
    assert lw.score(refitted, truth).cosine > max(0.98, lw.score(plain, truth).cosine)
    errors = np.abs(refitted.eigenvalues[1:] - truth.eigenvalues[1:])
    assert (errors < 4.0 * refitted.mu_errors[1:] + 0.02 * truth.eigenvalues[1:]).all()


@pytest.mark.slow
def test_progress_counts_all_rounds_and_ends_at_the_last_step(
    walk: Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Progress] = []
    solved: list[int] = []
    monkeypatch.setattr(refit, "with_solved_last_layer", lambda state, rows, _: (solved.append(len(rows)), state)[1])
    model = lw.learn(walk, 3, steps=100, truth=lw.solve("Box-1", dim=3), callback=seen.append, **FEW)
    assert [line.step for line in seen] == [20, 26, 38, 50, 70, 90, 100]
    assert {line.steps for line in seen} == {100}
    assert "cosine" in seen[-1].by_seed[0]
    assert [row["step"] for row in model.metadata["history"]] == [line.step for line in seen]
    assert model.metadata["steps"] == 100
    # Once, after the last round, over all states.
    assert solved == [walk.num_states]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 4])
def test_any_number_of_steps_is_divided_among_the_rounds(walk: Trajectories, steps: int) -> None:
    assert lw.learn(walk, 3, steps=steps, **FEW).metadata["steps"] == steps


@pytest.mark.slow
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
@pytest.mark.parametrize("where", [30, 70])
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
    assert refit._some_episodes(walk, None) is walk
    monkeypatch.setattr(refit, "FEWEST_EPISODES", 10)
    assert refit._some_episodes(walk, 4 * 2_550).num_episodes == 50
    monkeypatch.setattr(refit, "ENOUGH_STATES", 5_100)
    assert refit._some_episodes(walk, None).num_episodes == 100


def test_options_are_recorded_and_the_last_layer_is_left_as_it_is_where_that_is_asked_for(
    walk: Trajectories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refit, "with_solved_last_layer", lambda *_: pytest.fail("was to be left out"))
    monkeypatch.setattr(refit, "smooth_targets", lambda *_: pytest.fail("was to be left out"))
    given = {"refit": 1, "smooth_functions": False, "solve_last_layer": False}
    config = lw.learn(walk, 3, steps=4, **given, **FEW).metadata["config"]
    recorded = json.loads(json.dumps(config))
    assert {name: recorded[name] for name in given} == given


@pytest.mark.parametrize(("kind", "shape"), [("fourier", (2,)), ("mlp", (9,)), ("conv", (8, 8, 1))])
def test_the_last_layer_solves_the_least_squares_problem_over_all_rows(kind: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    observations = rng.uniform(-0.5, 0.5, (4_000, *shape)).astype(np.float32)
    labels = rng.integers(0, 50, (2, 4_000)).astype(np.int32)
    targets = Targets(labels, rng.standard_normal((2, 50, 3)).astype(np.float32), np.ones(3))
    encoder = build_encoder(kind, shape, 3, jax.random.key(0), hidden=(16,))
    state = init(encoder, REGRESSION, optax.adam(1e-3), jax.random.key(1))
    found = with_solved_last_layer(state, observations, targets)
    layer = found.encoder.module.network.layers[-1]
    # Features from a layer that only passes them on. A penalty is rows of their own in the equations.
    body = eqx.tree_at(lambda one: one.module.network.layers[-1], encoder, lambda rows: rows)
    features = np.pad(np.asarray(body(observations), dtype=np.float64), ((0, 0), (0, 1)), constant_values=1.0)
    pull = np.sqrt((features**2).sum() / len(features)) * np.eye(17)
    trained = encoder.module.network.layers[-1]
    first = np.concatenate([trained.weight, trained.bias[None]])
    wanted = np.concatenate([targets.at(np.arange(4_000)), pull @ first])
    expected = np.linalg.lstsq(np.concatenate([features, pull]), wanted)[0]
    np.testing.assert_allclose(np.concatenate([layer.weight, layer.bias[None]]), expected, atol=1e-3)
    assert np.abs(expected - first).max() > 0.1
    before, after = (one.module.network.layers[0].weight for one in (encoder, found.encoder))
    np.testing.assert_array_equal(after, before)


def test_few_rows_leave_the_last_layer_near_what_was_trained() -> None:
    encoder = build_encoder("mlp", (2,), 3, jax.random.key(0), hidden=(64,))
    state = init(encoder, REGRESSION, optax.adam(1e-3), jax.random.key(1))
    targets = Targets(np.arange(10, dtype=np.int32)[None], np.ones((1, 10, 3), np.float32), np.ones(3))
    found = with_solved_last_layer(state, np.random.default_rng(0).uniform(size=(10, 2)).astype(np.float32), targets)
    before, after = (one.encoder.module.network.layers[-1].weight for one in (state, found))
    assert 0.0 < np.abs(after - before).max() < 0.2 < np.abs(before).max()


@pytest.mark.parametrize("own", [True, False], ids=["own", "symlog"])
def test_a_network_that_does_not_end_in_a_linear_layer_of_ours_keeps_it(own: bool) -> None:
    key = jax.random.key(0)
    network = jax.vmap(eqx.nn.MLP(2, 3, 8, 1, key=key))
    encoder = own_encoder(network, (2,)) if own else build_encoder("mlp", (2,), 3, key, outputs="symlog")
    state = init(encoder, REGRESSION, optax.adam(1e-3), jax.random.key(1))
    targets = Targets(np.zeros((1, 5), np.int32), np.ones((1, 1, 3), np.float32), np.ones(3))
    assert with_solved_last_layer(state, np.zeros((5, 2), np.float32), targets) is state


def test_a_row_that_counts_several_times_is_as_good_as_several_rows() -> None:
    rng = np.random.default_rng(0)
    observations = rng.uniform(-0.5, 0.5, (200, 2)).astype(np.float32)
    tables, counts = rng.standard_normal((1, 200, 3)).astype(np.float32), rng.integers(1, 5, 200)
    encoder = build_encoder("fourier", (2,), 3, jax.random.key(0), hidden=(16,))
    state = init(encoder, REGRESSION, optax.adam(1e-3), jax.random.key(1))
    once, often = np.arange(200, dtype=np.int32), np.repeat(np.arange(200, dtype=np.int32), counts)
    weighted = with_solved_last_layer(state, observations, Targets(once[None], tables, np.ones(3)), counts)
    repeated = with_solved_last_layer(state, observations[often], Targets(often[None], tables, np.ones(3)))
    for one, other in zip(jax.tree.leaves(weighted.trained), jax.tree.leaves(repeated.trained), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)
