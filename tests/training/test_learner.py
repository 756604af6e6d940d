"""Learning end to end: near-exact answers, the paper's equilibrium, honesty, files, and errors for people."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.diagnostics.certificate import DEGENERATE, NOT_CONVERGED, TRUSTED
from lapwing.encoders import own_encoder
from lapwing.encoders.lookup import LookupEncoder
from lapwing.errors import LapwingError
from lapwing.objectives.objective import Objective
from lapwing.training.config import make_config
from lapwing.training.loop import LearningDivergedError, Progress, train
from lapwing.training.read_out import ReadOut
from lapwing.training.task import prepare

SMALL: dict[str, Any] = {"hidden": (32, 32), "log_every": 100}


@pytest.fixture(scope="module")
def maze() -> lw.Operator:
    return lw.operator("GridMaze-9")


@pytest.fixture(scope="module")
def exact_run(maze: lw.Operator) -> tuple[lw.LaplacianRepresentation, list[Progress]]:
    reports: list[Progress] = []
    truth = lw.solve("GridMaze-9", 5)
    return lw.learn(maze, 5, truth=truth, callback=reports.append), reports


@pytest.fixture(scope="module")
def maze_data() -> lw.Trajectories:
    return lw.collect("GridMaze-9", steps=100_000, seed=0)


@pytest.fixture(scope="module")
def data_model(maze_data: lw.Trajectories) -> lw.LaplacianRepresentation:
    return lw.learn(maze_data, 5)


def test_the_default_preset_is_near_exact_on_exact_dynamics(
    exact_run: tuple[lw.LaplacianRepresentation, list[Progress]],
) -> None:
    model, _ = exact_run
    truth = lw.solve("GridMaze-9", 5)
    found = lw.score(model, truth)
    assert found.subspace_cosine > 0.9999
    assert found.mean_eigenvalue_error < 1e-3
    np.testing.assert_allclose(model.mu, truth.mu[:5], atol=1e-4)
    assert set(model.certificate().verdicts) == {TRUSTED}
    assert model.exact
    assert model.mu_errors is None
    assert model.error_bars_in("successor(0.9)").tolist() == [0.0] * 5


def test_components_have_mean_square_one_and_the_sign_rule(
    maze: lw.Operator, exact_run: tuple[lw.LaplacianRepresentation, list[Progress]]
) -> None:
    values = exact_run[0].transform(maze.observations)
    np.testing.assert_allclose(values.T @ (maze.rho[:, None] * values), np.eye(5), atol=1e-5)
    assert (values.max(axis=0) >= -values.min(axis=0) * (1 - 1e-3)).all()


def test_reports_carry_the_cosine_and_learning_stops_once_the_angle_is_small(
    exact_run: tuple[lw.LaplacianRepresentation, list[Progress]],
) -> None:
    model, reports = exact_run
    angles = [report.summary["angle"] for report in reports]
    assert all(angle >= 0.01 for angle in angles[:-1])
    assert angles[-1] < 0.01
    assert reports[-1].step < reports[-1].steps
    assert model.metadata["steps"] == reports[-1].step
    assert reports[-1].summary["cosine"] > 0.9999
    assert [row["step"] for row in model.metadata["history"]] == [report.step for report in reports]


@pytest.mark.slow
def test_the_default_preset_is_near_exact_in_rooms_with_repeated_eigenvalues() -> None:
    operator = lw.operator("GridRoomSym-4")
    model = lw.learn(operator, 5, hidden=(64, 64))
    assert lw.score(model, lw.solve("GridRoomSym-4", 5)).subspace_cosine > 0.9999
    verdicts = model.certificate().verdicts
    assert verdicts[0] == TRUSTED
    assert verdicts[1:3] == (DEGENERATE, DEGENERATE)
    assert NOT_CONVERGED not in verdicts


def test_from_data_the_default_preset_is_as_good_as_counting(
    maze_data: lw.Trajectories, data_model: lw.LaplacianRepresentation
) -> None:
    truth = lw.solve("GridMaze-9", 5)
    counted = lw.counting_score(maze_data, truth)
    found = lw.score(data_model, truth)
    assert found.subspace_cosine > counted.subspace_cosine - 0.002
    assert found.mean_eigenvalue_error < counted.mean_eigenvalue_error + 0.002
    assert not data_model.exact
    assert data_model.certificate().converged
    bars = data_model.error_bars_in("one_step")
    errors = np.abs(data_model.eigenvalues - truth.eigenvalues)
    assert bars[0] < 1e-6
    assert (errors[1:] < 4.0 * bars[1:]).all()
    assert (bars[1:] < 0.1 * truth.eigenvalues[1:]).all()


def test_a_saved_model_is_the_same_again(data_model: lw.LaplacianRepresentation, tmp_path: Path) -> None:
    again = lw.load(data_model.save(tmp_path / "run"))
    observations = lw.operator("GridMaze-9").observations
    np.testing.assert_array_equal(again.transform(observations), data_model.transform(observations))
    np.testing.assert_array_equal(again.eigenvalues, data_model.eigenvalues)
    assert again.certificate().verdicts == data_model.certificate().verdicts
    np.testing.assert_array_equal(again.certificate().angle_bounds, data_model.certificate().angle_bounds)
    np.testing.assert_array_equal(again.error_bars_in("successor(0.9)"), data_model.error_bars_in("successor(0.9)"))
    assert again.metadata == data_model.metadata


def test_metadata_say_how_it_was_made(data_model: lw.LaplacianRepresentation) -> None:
    known = data_model.metadata
    assert (known["method"], known["preset"], known["seed"]) == ("learn", "default", 0)
    assert (known["objective"], known["batches"], known["encoder"]) == ("allo", "exact", "fourier")
    assert known["config"]["dim"] == 5
    assert known["world"]["name"] == "GridMaze-9"
    assert len(known["eigenvalue_estimates"]["dual"]) == len(known["eigenvalue_estimates"]["multiplier"]) == 11


def test_an_undertrained_model_says_so(maze: lw.Operator) -> None:
    model = lw.learn(maze, 5, steps=10, **SMALL)
    assert lw.score(model, lw.solve(maze, 5)).subspace_cosine < 0.99
    assert NOT_CONVERGED in model.certificate().verdicts
    assert not model.certificate().converged


@pytest.fixture(scope="module")
def equilibrium(maze: lw.Operator) -> tuple[lw.LaplacianRepresentation, np.ndarray]:
    options: dict[str, Any] = {"encoder": "table", "batches": "exact", "refine": "none", "discounts": (0.9,)}
    objective = lw.allo(barrier=2.0, dual_rate=0.02)
    config = make_config(
        objective=objective, dim=4, oversampling=0, steps=6000, log_every=6000, learning_rate=1e-2, **options
    )
    task = prepare(config, maze, [0], objective, None)
    state, (last,), *_ = train(task.initial_state(), task.source, 6000, 6000)
    model = ReadOut(task).model(state, last.eigenvalues, {"seed": 0})
    return model, np.asarray(state.objective_state.duals)


def test_at_the_equilibrium_of_allo_the_duals_are_minus_twice_the_eigenvalues(
    maze: lw.Operator, equilibrium: tuple[lw.LaplacianRepresentation, np.ndarray]
) -> None:
    model, duals = equilibrium
    truth = lw.solve(maze, 4)
    eigenvalues = truth.eigenvalues_in(lw.geometric(0.9))
    np.testing.assert_allclose(np.diag(duals), -2.0 * eigenvalues, atol=1e-3)
    np.testing.assert_allclose(duals - np.diag(np.diag(duals)), 0.0, atol=1e-3)
    np.testing.assert_allclose(model.metadata["eigenvalue_estimates"]["dual"], eigenvalues, atol=1e-3)
    assert lw.score(model, truth).cosine > 0.9999
    np.testing.assert_allclose(model.mu, truth.mu[:4], atol=1e-4)
    assert isinstance(model.encoder, LookupEncoder)
    assert model.metadata["objective"] == "given"


def test_allo_recovers_from_permutations_of_its_outputs(maze: lw.Operator) -> None:
    options: dict[str, Any] = {"encoder": "table", "refine": "none", "oversampling": 0, "schedule": "constant"}
    truth = lw.solve(maze, 4)
    cosines: list[float] = []
    model = lw.learn(
        maze, 4, steps=6000, permute_every=1500, log_every=750, learning_rate=1e-2, dual_rate=0.02, truth=truth,
        callback=lambda report: cosines.append(report.summary["cosine"]), stop_when_converged=False, **options
    )  # fmt: skip
    # The last permutation comes with the last step: read in the objective's order, outputs are shuffled anew.
    assert cosines[-2] > 0.999
    assert max(cosines[1::2]) < 0.99
    assert model.metadata["config"]["permute_every"] == 1500


@pytest.mark.slow
def test_the_paper_preset_runs_as_documented(maze_data: lw.Trajectories) -> None:
    model = lw.learn(maze_data, 3, preset="paper", steps=6, log_every=3)
    known = model.metadata
    assert (known["preset"], known["batches"], known["encoder"], known["steps"]) == ("paper", "sampled", "mlp", 6)
    barriers = [row["barrier"] for row in known["history"]]
    assert barriers[0] == pytest.approx(0.25, abs=0.05)
    assert barriers[1] > barriers[0]
    assert len(model.certificate().verdicts) == 3
    assert not model.certificate().converged


@pytest.mark.slow
def test_pixels_are_learned_from_their_preset() -> None:
    operator = lw.operator("GridMaze-7", observation="pixels")
    model = lw.learn(operator, 4, preset="pixels", hidden=(64,), steps=600)
    assert model.metadata["encoder"] == "conv"
    assert lw.score(model, lw.solve(operator, 4)).subspace_cosine > 0.999


def test_one_hot_observations_are_learned() -> None:
    data = lw.collect("GridMaze-9", steps=20_000, observation="one_hot", seed=1)
    model = lw.learn(data, 4, steps=1000, hidden=(64, 64))
    assert model.metadata["encoder"] == "mlp"
    counted = lw.solve(data, 4)
    assert lw.score(model, counted).subspace_cosine > 0.999


@pytest.mark.slow
def test_a_box_is_learned_from_experience_alone() -> None:
    data = lw.collect("Box-1", steps=200_000, seed=0)
    truth = lw.solve("Box-1", 3)
    model = lw.learn(data, 3, steps=500, batch_size=256, oversampling=3, hidden=(64,), log_every=250)
    found = lw.score(model, truth)
    assert found.subspace_cosine > 0.99
    assert found.mean_eigenvalue_error < 0.03
    assert model.metadata["batches"] == "sampled"
    assert model.mu_errors is not None


class Rows(eqx.Module):
    """A user's own network for single rows."""

    net: eqx.nn.MLP

    def __call__(self, batch: jax.Array) -> jax.Array:
        return jax.vmap(self.net)(20.0 * batch)


def test_a_network_of_ones_own_is_learned_and_left_as_it_was(maze: lw.Operator, tmp_path: Path) -> None:
    own = own_encoder(Rows(eqx.nn.MLP(2, 6, 64, 2, key=jax.random.key(0))), (2,))
    before = own.encode(maze.observations)
    learner = lw.Learner(dim=3, oversampling=3, encoder=own, steps=600, log_every=100)
    model = learner.fit(maze)
    assert lw.score(model, lw.solve(maze, 3)).subspace_cosine > 0.999
    assert model.metadata["encoder"] == "own"
    np.testing.assert_array_equal(own.encode(maze.observations), before)
    again = learner.fit(maze)
    np.testing.assert_array_equal(again.transform(maze.observations), model.transform(maze.observations))
    with pytest.raises(LapwingError, match="encoder="):
        lw.load(model.save(tmp_path / "own"))
    loaded = lw.load(tmp_path / "own", encoder=own)
    np.testing.assert_array_equal(loaded.transform(maze.observations), model.transform(maze.observations))


@pytest.mark.parametrize("objective", ["gdo(barrier=2.0)", lw.ggdo()], ids=["gdo by name", "ggdo given"])
def test_rival_objectives_are_learned_by_name_or_given(maze: lw.Operator, objective: Any) -> None:
    model = lw.learn(maze, 3, objective=objective, steps=600, oversampling=2, **SMALL)
    assert lw.score(model, lw.solve(maze, 3)).subspace_cosine > 0.999
    assert model.metadata["objective"] == ("gdo" if isinstance(objective, str) else "given")
    assert set(model.metadata["eigenvalue_estimates"]) == {"multiplier"}


def test_the_multipliers_of_a_converged_model_are_its_rayleigh_quotients(
    exact_run: tuple[lw.LaplacianRepresentation, list[Progress]],
) -> None:
    certificate = exact_run[0].certificate()
    assert certificate.dual_gaps is not None
    assert (certificate.dual_gaps <= 0.03 * certificate.eigenvalues + 1e-6).all()
    assert "dual off" in str(certificate)


def broken_after(steps: int) -> Objective:
    """ALLO until so many steps were made, NaN from then on."""
    sound = lw.allo()

    def loss(state: Any, values: Any) -> Any:
        value, info = sound.loss(state[0], values)
        return jnp.where(state[1] < steps, value, jnp.nan), info

    return Objective(
        init=lambda dim: (sound.init(dim), jnp.zeros((), dtype=jnp.int32)),
        loss=loss,
        update=lambda state, info: (sound.update(state[0], info), state[1] + 1),
        eigenvalues=lambda state, info: sound.eigenvalues(state[0], info),
    )


def test_divergence_keeps_the_model_of_the_last_good_report(maze: lw.Operator) -> None:
    with pytest.raises(LearningDivergedError, match="between steps 60 and 90") as caught:
        lw.learn(
            maze, 3, objective=broken_after(70), steps=120, log_every=30, stop_when_converged=False, hidden=(32, 32)
        )
    assert caught.value.step == 60
    (kept,) = caught.value.models
    assert kept.metadata["steps"] == 60
    assert np.isfinite(kept.transform(maze.observations)).all()


def test_divergence_before_the_first_report_leaves_no_model(maze: lw.Operator) -> None:
    with pytest.raises(LearningDivergedError) as caught:
        lw.learn(maze, 3, objective=broken_after(5), steps=60, log_every=30, hidden=(32, 32))
    assert caught.value.models == []


def test_several_seeds_give_a_model_each(maze: lw.Operator) -> None:
    models = lw.Learner(dim=3, steps=20, **SMALL).fit_many(maze, [3, 7])
    assert [model.metadata["seed"] for model in models] == [3, 7]
    assert [model.metadata["config"]["seed"] for model in models] == [3, 7]
    one, other = (model.transform(maze.observations) for model in models)
    assert not np.allclose(one, other)


@pytest.mark.slow
def test_each_of_several_seeds_has_curves_of_its_own(maze: lw.Operator) -> None:
    truth, options = lw.solve("GridMaze-7", dim=3), {"dim": 3, "steps": 20, "hidden": (32, 32), "log_every": 10}
    models = lw.Learner(**options).fit_many(maze, [3, 7], truth=truth)
    for seed, model in zip([3, 7], models, strict=True):
        alone = lw.Learner(**options, seed=seed).fit(maze, truth=truth).metadata["history"]
        assert [list(row) for row in model.metadata["history"]] == [list(row) for row in alone]
        for own, expected in zip(model.metadata["history"], alone, strict=True):
            assert own == pytest.approx(expected, rel=1e-3, abs=1e-4)
    assert models[0].metadata["history"][0]["loss"] != models[1].metadata["history"][0]["loss"]


def test_a_seed_that_diverges_does_not_speak_against_the_others(
    maze: lw.Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = iter([[], [1]])
    monkeypatch.setattr("lapwing.training.loop._not_finite", lambda *_: next(chunks))
    with pytest.raises(LearningDivergedError, match="in 1 of 2 seeds between steps 10 and 20") as caught:
        lw.Learner(dim=3, steps=20, hidden=(32, 32), log_every=10).fit_many(maze, [3, 7])
    names = [[problem.name for problem in model.problems()] for model in caught.value.models]
    assert "diverged" not in names[0]
    assert names[1][0] == "diverged"


def test_options_that_do_not_exist_offer_the_nearest(maze: lw.Operator) -> None:
    with pytest.raises(LapwingError, match="no option 'step'; did you mean steps"):
        lw.learn(maze, 3, step=10)
    with pytest.raises(LapwingError, match="no preset 'pixel'; did you mean pixels"):
        lw.learn(maze, 3, preset="pixel")
    with pytest.raises(LapwingError, match="no objective 'alo'; did you mean allo"):
        lw.learn(maze, 3, objective="alo")


def test_what_cannot_be_learned_from_is_refused() -> None:
    with pytest.raises(LapwingError, match="cannot learn from str"):
        lw.learn("GridMaze-9", 3)  # type: ignore[arg-type]
