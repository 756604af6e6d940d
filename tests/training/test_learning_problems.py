"""What goes wrong in learning is provoked, and named."""

import warnings
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.problems import Problem, ProblemError
from lapwing.errors import ConvergenceWarning, LapwingError, UntrustedWarning
from lapwing.operators.operator import operator_from_matrix
from lapwing.training import LearningDivergedError, NetworkCollapsedError

pytestmark = pytest.mark.slow

MAZE = lw.operator("GridMaze-7")
SMALL: dict[str, Any] = {"hidden": (32, 32), "steps": 300, "log_every": 100, "stop_when_converged": False}
UNREFINED = {"refine": "none", "oversampling": 0}


def untrusted(data: Any, dim: int = 3, **options: Any) -> list[Problem]:
    """Problems of a result that learning itself warns of."""
    with pytest.warns(UntrustedWarning, match=r"must not be trusted .*model\.problems\(\)"):
        model = lw.learn(data, dim, **{**SMALL, **options})
    return [problem for problem in model.problems() if problem.untrusted]


@pytest.mark.parametrize(
    "options",
    [{}, {"encoder": "table"}, UNREFINED, {"objective": "ggdo"}, {"objective": "gdo"}, {"duals": False}, {"steps": 5}],
    ids=str,
)
def test_exact_learning_in_good_health_has_nothing_to_report(options: dict[str, Any]) -> None:
    model = lw.learn(lw.operator("GridMaze-9"), 3, **{**SMALL, **options})
    assert not [problem for problem in model.problems() if problem.untrusted]


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("steps", [3, 300])
def test_learning_from_enough_data_in_good_health_has_nothing_to_report(preset: str, steps: int) -> None:
    data = lw.collect("GridMaze-9", 100_000, seed=0)
    options = {**SMALL, "steps": steps, "batch_size": 256}
    model = lw.learn(data, 3, preset=preset, **options)
    assert not [problem for problem in model.problems() if problem.untrusted]


def test_few_steps_have_not_converged_and_are_told_how_many_they_were() -> None:
    (problem,) = lw.learn(lw.operator("FourRooms"), 5, **{**SMALL, "steps": 4}).problems()
    assert problem.name == "not converged"
    assert problem.advice == "give more steps; 4 were made"


def test_a_component_that_nothing_is_known_beyond_is_not_trusted_for_its_small_residual() -> None:
    # At such a discount all components but the constant have nearly one eigenvalue, so any residual is small.
    model = lw.learn(lw.operator("GridMaze-9"), 2, oversampling=0, discounts=(0.999,), steps=50)
    cosine = lw.score(model, lw.solve("GridMaze-9", 2)).subspace_cosine
    assert cosine < 0.9
    assert model.certificate().verdicts[1] == "not converged"
    assert model.certificate().expected_cosine <= cosine + 0.01


def test_a_span_of_all_states_misses_nothing() -> None:
    model = lw.learn(MAZE, 11, encoder="table", steps=2000)
    assert "not converged" not in model.certificate().verdicts
    assert lw.score(model, lw.solve("GridMaze-7", 11)).subspace_cosine > 0.99


def test_outputs_that_grow_beyond_all_measure_have_diverged_though_they_are_finite() -> None:
    problems = untrusted(MAZE, learning_rate=3.0, log_every=1, steps=30, hidden=(256, 256))
    assert problems[0].name == "diverged"
    assert "where it should be 1; they were off by" in problems[0].message
    assert problems[0].advice == "lower learning_rate"


def test_divergence_is_kept_in_the_model_of_the_last_good_report(tmp_path: Path) -> None:
    with pytest.raises(LearningDivergedError) as caught:
        lw.learn(MAZE, 3, **{**SMALL, "learning_rate": 1e4, "log_every": 1, "steps": 20})
    (kept,) = caught.value.models
    loaded = lw.load(kept.save(tmp_path / "kept"))
    names = [problem.name for problem in loaded.problems()]
    assert names[0] == "diverged"
    assert names.count("diverged") == 1
    assert f"after step {caught.value.step}" in loaded.problems()[0].message


def test_a_network_that_became_unreadable_diverged_and_leaves_what_it_was_before() -> None:
    # Its weights stay finite, its outputs do not.
    class Bursting(eqx.Module):
        size: jax.Array

        def __call__(self, batch: jax.Array) -> jax.Array:
            waves = jnp.stack([jnp.ones(len(batch)), batch[:, 0], batch[:, 1]], axis=1)
            return waves * jnp.where(self.size < 0.01, self.size, jnp.inf)

    options = {**SMALL, "oversampling": 0, "steps": 40, "log_every": 1, "stop_when_converged": True}
    with pytest.raises(LearningDivergedError, match="NaN or infinite on some of the data") as caught:
        lw.learn(MAZE, 3, encoder=Bursting(jnp.array(1e-4)), **options)
    assert caught.value.step > 0
    assert caught.value.models[0].problems()[0].name == "diverged"


@pytest.mark.parametrize("refined", [{}, UNREFINED], ids=["ritz", "none"])
def test_a_barrier_too_weak_for_any_mode_collapses_to_a_constant(refined: dict[str, Any]) -> None:
    problem = untrusted(MAZE, objective="ggdo", barrier=0.05, barrier_rate=0.0, steps=600, **refined)[0]
    assert (problem.name, problem.components) == ("collapsed", (2, 3))
    assert "raise barrier (0.05)" in problem.advice


class Flat(eqx.Module):
    """A network that cannot be more than linear in two coordinates."""

    inner: eqx.nn.Linear

    def __call__(self, batch: jax.Array) -> jax.Array:
        return jax.vmap(self.inner)(batch)


def test_what_is_left_of_a_collapsed_network_can_be_had() -> None:
    network = Flat(eqx.nn.Linear(2, 3, use_bias=False, key=jax.random.key(0)))
    with pytest.raises(
        NetworkCollapsedError, match="collapsed to 2 independent components of the 3 asked for"
    ) as caught:
        lw.learn(MAZE, 3, encoder=network, **{**SMALL, "oversampling": 0, "steps": 3})
    (left,) = caught.value.models
    assert left.transform(MAZE.observations).shape == (11, 2)
    assert (left.problems()[0].name, left.problems()[0].components) == ("collapsed", (3,))
    assert caught.value.problem == left.problems()[0]


def test_of_several_seeds_that_collapsed_each_leaves_what_it_has() -> None:
    network = Flat(eqx.nn.Linear(2, 3, use_bias=False, key=jax.random.key(0)))
    options = {**SMALL, "oversampling": 0, "steps": 3}
    with pytest.raises(NetworkCollapsedError, match="collapsed to 2") as caught:
        lw.Learner(dim=3, encoder=network, **options).fit_many(MAZE, [4, 5])
    assert [model.metadata["seed"] for model in caught.value.models] == [4, 5]
    assert [model.dim for model in caught.value.models] == [2, 2]


def test_outputs_that_are_zero_everywhere_have_collapsed() -> None:
    with pytest.raises(ProblemError, match="collapsed: the network's outputs are zero on all of the data"):
        lw.learn(MAZE, 3, encoder=lambda batch: jnp.zeros((len(batch), 3)), **{**SMALL, "oversampling": 0, "steps": 2})


class Copying(eqx.Module):
    """A network whose last output copies the one before it, or is nothing."""

    inner: eqx.nn.MLP
    share: float = eqx.field(static=True)

    def __call__(self, batch: jax.Array) -> jax.Array:
        waves = [wave(k * jnp.pi * batch) for k in (1, 2, 4) for wave in (jnp.sin, jnp.cos)]
        values = jax.vmap(self.inner)(jnp.concatenate(waves, axis=1))
        return jnp.concatenate([values, self.share * values[:, -1:]], axis=1)


@pytest.mark.parametrize(("share", "kind"), [(1.0, "1 copied another"), (1e-4, "1 vanished")])
def test_an_output_that_copies_another_or_vanishes_is_dead(share: float, kind: str) -> None:
    network = Copying(eqx.nn.MLP(12, 3, 32, 2, key=jax.random.key(0)), share)
    problem = untrusted(MAZE, 4, encoder=network, steps=1000, **UNREFINED)[0]
    assert (problem.name, problem.components) == ("dead components", (4,))
    assert kind in problem.message
    assert problem.advice.endswith("or ask for at most 3")


def test_a_dead_output_is_no_problem_if_enough_others_live() -> None:
    network = Copying(eqx.nn.MLP(12, 4, 32, 2, key=jax.random.key(0)), 1e-4)
    model = lw.learn(MAZE, 3, encoder=network, **{**SMALL, "oversampling": 2, "steps": 1000})
    assert not [problem for problem in model.problems() if problem.untrusted]


def test_modes_that_ggdo_lets_vanish_are_dead() -> None:
    # Modes whose eigenvalue exceeds twice the barrier have no place in its minimum.
    weak = {"objective": "ggdo", "barrier": 0.2, "barrier_rate": 0.0, "discounts": (0.9,), "hidden": (64, 64)}
    (problem,) = untrusted(MAZE, 9, steps=1500, log_every=500, **weak, **UNREFINED)
    lasting = int((lw.solve("GridMaze-7", 9).eigenvalues_in("geometric(0.9)") < 2 * 0.2).sum())
    assert problem.name == "dead components"
    assert 9 in problem.components
    assert min(problem.components) > lasting
    assert "mean square below 0.001 of the largest" in problem.message


def test_an_absurd_dual_rate_drives_duals_to_their_bounds() -> None:
    dual_rate = 1e3
    problems = untrusted(MAZE, dual_rate=dual_rate, encoder="table")
    (problem,) = [one for one in problems if one.name == "duals at their bounds"]
    assert problem.components
    assert "stopped at their bound" in problem.message
    assert f"lower dual_rate ({dual_rate:g})" in problem.advice


def test_the_bounds_are_those_of_the_objective_that_was_given() -> None:
    problems = untrusted(MAZE, objective=lw.allo(max_dual=0.05, dual_rate=0.1))
    assert problems[0].name == "duals at their bounds"
    unbounded = lw.learn(MAZE, 3, objective=lw.allo(max_dual=1e6, dual_rate=0.1), **SMALL)
    assert not [problem for problem in unbounded.problems() if problem.untrusted]


def test_permuted_outputs_do_not_hide_duals_at_their_bounds() -> None:
    assert untrusted(MAZE, dual_rate=1e3, permute_every=50)[0].name == "duals at their bounds"


def test_a_barrier_at_its_maximum_is_named() -> None:
    problems = untrusted(MAZE, barrier_rate=1e7)
    assert "the barrier stopped growing at its maximum" in problems[0].message
    start = lw.allo(barrier=50.0, barrier_rate=0.0, max_barrier=50.0)
    assert not [one for one in lw.learn(MAZE, 3, objective=start, **SMALL).problems() if one.untrusted]


def test_an_objective_that_reads_nan_is_named() -> None:
    sound = lw.allo()
    unread = sound._replace(eigenvalues=lambda state, aux: sound.eigenvalues(state, aux).at[1].set(jnp.nan))
    (problem,) = untrusted(MAZE, objective=unread)
    assert (problem.name, problem.components) == ("not finite", (2,))


def test_a_network_that_is_nan_where_it_was_never_trained_is_refused() -> None:
    data = lw.collect("Box-1", 2_000, seed=0)

    def encoder(batch: jax.Array) -> jax.Array:
        broken = jnp.where(batch[:, 0] > 0.49, jnp.nan, batch[:, 0])
        return jnp.stack([jnp.ones(len(batch)), broken], axis=1)

    with pytest.raises(LapwingError, match="outputs are NaN or infinite on some of the data"):
        lw.learn(data, 2, encoder=encoder, **{**SMALL, "oversampling": 0, "steps": 1, "batch_size": 1})


def test_too_few_data_for_what_was_learned_are_named() -> None:
    problems = untrusted(lw.collect("GridMaze-9", 2_000, seed=0), 3, hidden=(64, 64), steps=600)
    assert [problem.name for problem in problems] == ["too few data"]
    assert "transitions in place of 2,000" in problems[0].advice


@pytest.mark.parametrize("table", [True, False])
def test_observations_that_never_change_are_refused_before_learning(table: bool) -> None:
    ids = np.zeros(6, dtype=np.int32) if table else None
    still = Trajectories(np.ones((1 if table else 6, 2)), np.array([0, 6]), np.zeros(1, bool), np.ones(1, bool), ids)
    with pytest.raises(ProblemError, match="nothing to tell apart") as caught:
        lw.learn(still, 1)
    assert caught.value.problem.name == "one state"
    assert any("nothing to distinguish" in warning for warning in lw.audit(still).warnings)


def test_states_that_look_the_same_count_once() -> None:
    seen = np.array([[0.0], [-0.0], [1.0]])
    walk = operator_from_matrix(np.full((3, 3), 1 / 3), observations=seen)
    with pytest.raises(ProblemError, match="dim=3 is larger than the number of different observations, 2") as caught:
        lw.learn(walk, 3)
    assert caught.value.problem.name == "above the rank"
    same = operator_from_matrix(np.full((3, 3), 1 / 3), observations=np.zeros((3, 1)))
    with pytest.raises(ProblemError, match="one state"):
        lw.learn(same, 1)


def test_more_components_than_continuous_observations_are_refused() -> None:
    short = Trajectories(np.arange(8.0)[:, None], np.array([0, 8]), np.zeros(1, bool), np.ones(1, bool))
    with pytest.raises(ProblemError, match="larger than the number of different observations, 8; ask for at most 8"):
        lw.learn(short, 9)


def test_observations_that_are_not_numbers_are_refused_before_learning() -> None:
    walk = operator_from_matrix(np.full((2, 2), 0.5), observations=np.array([[0.0], [np.nan]]))
    with pytest.raises(ProblemError, match="not finite: the observation of state 1 holds NaN"):
        lw.learn(walk, 1)


@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 1e4), (1e-30, 0.0)])
def test_observations_that_single_precision_cannot_tell_apart_are_refused(scale: float, offset: float) -> None:
    points = np.random.default_rng(0).random((200, 2)) * scale + offset
    with pytest.raises(ProblemError) as caught:
        lw.learn(lw.from_arrays(points, lengths=[200]), 3)
    assert caught.value.problem.name == "lost precision"
    lw.learn(lw.from_arrays((points - offset) / scale, lengths=[200]), 3, steps=2)


@pytest.mark.parametrize(("discounts", "named"), [((0.9, 0.99), True), ((0.1,), False)])
def test_directed_dynamics_learned_with_long_lags_are_named(discounts: tuple[float, ...], named: bool) -> None:
    data = lw.collect("NoisyRotation", 20_000, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = lw.learn(data, 3, discounts=discounts, hidden=(32, 32), steps=300, oversampling=2, refit=0)
    assert ("directed dynamics" in [problem.name for problem in model.problems()]) == named
    assert any("directed dynamics" in str(warning.message) for warning in caught) == named
    if not named:
        truth = lw.solve("NoisyRotation", dim=3)
        np.testing.assert_allclose(model.eigenvalues[1:], truth.eigenvalues[1:3], rtol=0.2)


def test_directed_dynamics_are_right_whatever_the_lags_once_refitted() -> None:
    data, truth = lw.collect("NoisyRotation", 100_000, seed=0), lw.solve("NoisyRotation", dim=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lw.learn(data, 3, hidden=(32, 32), steps=300, oversampling=2)
    assert "directed dynamics" not in [problem.name for problem in model.problems()]
    np.testing.assert_allclose(model.eigenvalues[1:], truth.eigenvalues[1:3], rtol=0.05)
    assert lw.score(model, truth).cosine > 0.99


def test_eigenvalues_at_two_lags_are_free_of_the_roughness_of_few_steps() -> None:
    data, truth = lw.collect("UMaze", 60_000, seed=0), lw.solve("UMaze", dim=4)
    options = {"hidden": (64, 64), "steps": 200, "oversampling": 4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lagged, plain = (lw.learn(data, 4, lagged_eigenvalues=how, refit=0, **options) for how in (True, False))
    errors = [np.abs(model.eigenvalues[1:] / truth.eigenvalues[1:4] - 1.0) for model in (lagged, plain)]
    np.testing.assert_array_equal(lagged.transform(data.observations[:9]), plain.transform(data.observations[:9]))
    assert errors[0].mean() < 0.5 * errors[1].mean()


def test_components_that_have_not_converged_are_warned_of() -> None:
    with pytest.warns(ConvergenceWarning, match=r"^not converged: .*give more steps; 1 were made"):
        lw.learn(lw.operator("GridMaze-7"), 2, steps=1, encoder="mlp", hidden=(4,), oversampling=1)
