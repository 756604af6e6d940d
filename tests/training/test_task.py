"""A task: what data and options make of each other, what is refused, and how outputs become components."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.diagnostics.problems import ProblemError
from lapwing.encoders import build_encoder, own_encoder
from lapwing.errors import ArgumentError, DataError, UnknownNameError
from lapwing.objectives import allo
from lapwing.training.config import make_config
from lapwing.training.moments import TableMoments, WalkMoments
from lapwing.training.read_out import NetworkCollapsedError, ReadOut, bootstrap_errors
from lapwing.training.state import TrainState, init, one_seed
from lapwing.training.task import Task, prepare

OPERATOR = lw.operator("GridMaze-7")
BOX = lw.collect("Box-1", steps=1000, seed=0)
MAZE = lw.collect("GridMaze-7", steps=1000, seed=0)


def task_of(data: Any, encoder: Any = None, seeds: Any = (0,), **options: Any) -> Task:
    kind = options.pop("kind", None)
    return prepare(make_config(encoder=kind, **{"dim": 3, "hidden": (8,), **options}), data, seeds, None, encoder)


@pytest.mark.parametrize("data", ["GridMaze-7", None, np.eye(3), lw.make_world("GridMaze-7")])
def test_other_data_than_experience_and_operators_is_refused(data: Any) -> None:
    with pytest.raises(ArgumentError):
        task_of(data)


@pytest.mark.parametrize("seeds", [[], [1, -1]])
def test_seeds_must_be_there_and_not_negative(seeds: list[int]) -> None:
    with pytest.raises(ArgumentError):
        task_of(OPERATOR, seeds=seeds)


def test_seeds_may_be_an_array() -> None:
    assert task_of(OPERATOR, seeds=np.arange(2)).seeds == [0, 1]


def test_more_components_than_states_are_refused_and_oversampling_ones_are_cut_to_fit() -> None:
    with pytest.raises(ProblemError, match="dim=12 is larger than the number of states, 11"):
        task_of(OPERATOR, dim=12)
    assert task_of(OPERATOR, dim=11).width == 11
    assert task_of(OPERATOR, dim=8).width == 11
    assert task_of(OPERATOR, dim=3, oversampling=2).width == 5
    assert task_of(BOX, dim=3, oversampling=20).width == 23


@pytest.mark.parametrize(
    ("data", "wanted", "kind"),
    [(OPERATOR, "auto", "exact"), (MAZE, "auto", "exact"), (MAZE, "sampled", "sampled"), (BOX, "auto", "sampled")],
)
def test_batches_are_chosen_by_the_data_unless_said(data: Any, wanted: str, kind: str) -> None:
    assert task_of(data, batches=wanted).source.kind == kind


def test_data_that_hardly_repeat_are_sampled_without_truncation_bias() -> None:
    weights = task_of(BOX, discounts=(0.9,)).training_lags.weights
    assert weights is not None
    np.testing.assert_allclose(weights[1:] / weights[:-1], 0.9, rtol=1e-9)


def test_large_tables_are_fitted_or_else_sampled_from_data_and_sparse_from_an_operator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("task", "batches", "moments"):
        monkeypatch.setattr(f"lapwing.training.{module}.DENSE_STATES", 4)
    assert task_of(MAZE).source.kind == task_of(OPERATOR).source.kind == "fit"
    assert task_of(MAZE, refit=0).source.kind == "sampled"
    assert task_of(MAZE, batches="unbiased").targets is None
    sparse = task_of(OPERATOR, refit=0)
    assert sparse.source.kind == "exact"
    assert sparse.training_lags.weights is not None
    estimator = ReadOut(sparse).estimator
    assert isinstance(estimator, TableMoments)
    np.testing.assert_allclose(estimator.lags.weights, sparse.training_lags.weights)


def test_moments_are_exact_where_there_is_a_table() -> None:
    assert isinstance(ReadOut(task_of(MAZE, batches="sampled")).estimator, TableMoments)
    assert isinstance(ReadOut(task_of(BOX)).estimator, WalkMoments)


def test_combinations_that_cannot_work_are_refused() -> None:
    narrow = own_encoder(lambda batch: jnp.tile(batch, (1, 2)), (2,))
    for wrong in (
        {"data": OPERATOR, "batches": "sampled"},
        {"data": BOX, "batches": "exact"},
        {"data": MAZE, "kind": "table", "batches": "sampled"},
        {"data": OPERATOR, "encoder": narrow},
    ):
        with pytest.raises(ArgumentError):
            task_of(**wrong)
    with pytest.raises(UnknownNameError, match="did you mean fourier"):
        task_of(OPERATOR, kind="furier")


def test_statistics_bring_inputs_into_range_and_centre_pixels() -> None:
    numbers = lw.operator(OPERATOR.matrix)
    scaled = task_of(numbers)._encoder(jax.random.key(0)).module.inputs
    np.testing.assert_allclose((scaled.centre.array, scaled.scale.array), ([5.0], [10.0]))
    raw = task_of(OPERATOR)._encoder(jax.random.key(0)).module.inputs
    assert not np.asarray(raw.centre.array).any()
    pixels = lw.operator("GridMaze-7", observation="pixels")
    centred, plain = (
        task_of(pixels, scale_inputs=how)._encoder(jax.random.key(0)).module.inputs for how in (True, False)
    )
    np.testing.assert_allclose(centred.centre.array, pixels.observations.mean(axis=0), rtol=1e-5, atol=1e-4)
    assert not np.asarray(plain.centre.array).any()
    np.testing.assert_allclose(plain(pixels.observations), pixels.observations / 255, rtol=1e-6)


def test_images_of_other_types_than_bytes_stay_as_they_are() -> None:
    pixels = lw.collect("GridMaze-7", 200, seed=0, observation="pixels")
    images = pixels.observations[pixels.ids].astype(np.float32) / 7
    data = lw.from_arrays(images, lengths=np.diff(pixels.offsets))
    raw = task_of(data, scale_inputs=False)._encoder(jax.random.key(0)).module.inputs
    np.testing.assert_array_equal(raw(images), images)


def test_many_inputs_are_standardised_whatever_their_units() -> None:
    units = np.array([1.0, 1000.0, *[0.01] * 8])
    rows = np.random.default_rng(0).normal(3.0, 1.0, size=(400, 10)) * units
    rows[:, 9] = 7.0
    data = lw.from_arrays(rows.astype(np.float32), lengths=[200, 200])
    inputs = task_of(data)._encoder(jax.random.key(0)).module.inputs
    seen = np.asarray(inputs(data.observations))
    np.testing.assert_allclose(seen.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(seen.std(axis=0), [1.0] * 9 + [0.0], atol=1e-3)
    raw = task_of(data, scale_inputs=False)._encoder(jax.random.key(0)).module.inputs
    np.testing.assert_array_equal(raw(data.observations), data.observations)


def table_state(task: Task, values: np.ndarray, order: Any = None) -> TrainState:
    encoder = build_encoder("table", (), values.shape[1], jax.random.key(0), states=len(values))
    encoder = eqx.tree_at(lambda e: e.module.values, encoder, jnp.asarray(values, dtype=jnp.float32))
    state = init(encoder, task.objective, optax.sgd(0.1), jax.random.key(0))
    if order is None:
        return state
    return replace(state, objective_state=state.objective_state._replace(permutation=jnp.asarray(order)))


def model_of(task: Task, state: TrainState) -> lw.LaplacianRepresentation:
    return ReadOut(task).model(state, np.zeros(task.width), {"seed": 0})


def test_permuted_outputs_are_read_in_the_objectives_order() -> None:
    truth = lw.solve("GridMaze-7", 3)
    exact = truth.transform(OPERATOR.observations)
    order = np.array([2, 0, 1])
    shuffled = np.empty_like(exact)
    shuffled[:, order] = exact
    task = task_of(OPERATOR, oversampling=0, kind="table", refine="none", permute_every=5)
    model = model_of(task, table_state(task, shuffled, order))
    np.testing.assert_allclose(model.transform(OPERATOR.observations), exact, atol=1e-5)
    np.testing.assert_allclose(model.mu, truth.mu[:3], atol=1e-6)
    assert model.certificate().converged
    assert not model_of(task, table_state(task, shuffled)).certificate().converged


def test_refining_does_not_care_about_the_order_of_outputs() -> None:
    exact = lw.solve("GridMaze-7", 3).transform(OPERATOR.observations)
    task = task_of(OPERATOR, oversampling=0, kind="table", permute_every=5)
    for order in ([0, 1, 2], [1, 2, 0]):
        model = model_of(task, table_state(task, exact, order))
        np.testing.assert_allclose(model.transform(OPERATOR.observations), exact, atol=1e-4)


@pytest.mark.parametrize(("stop_gradient", "factor"), [(True, 0.5), (False, 1.0)])
@pytest.mark.parametrize("permute_every", [0, 5])
def test_raw_duals_are_among_the_estimates(stop_gradient: bool, factor: float, permute_every: int) -> None:
    options = {"dim": 2, "oversampling": 0, "kind": "table", "permute_every": permute_every}
    task = task_of(OPERATOR, stop_gradient=stop_gradient, **options)
    state = table_state(task, np.random.default_rng(0).normal(size=(11, 2)))
    duals = allo().init(2)._replace(duals=-jnp.diag(jnp.array([0.2, 0.6])))
    inner = state.objective_state._replace(inner=duals) if permute_every else duals
    found = model_of(task, replace(state, objective_state=inner)).metadata["eigenvalue_estimates"]
    assert found["dual"] == pytest.approx([0.2 * factor, 0.6 * factor])


def test_a_table_over_data_that_missed_states_is_read_at_the_right_ones() -> None:
    data = lw.collect("rooms:2x2x3:1", steps=60, episode_length=60, seed=3)
    counted = lw.operator(data)
    assert counted.num_states < len(data.observations)
    truth = lw.solve(data, 3)
    task = task_of(data, oversampling=0, kind="table")
    values = truth.encoder.values[:, :3]  # type: ignore[attr-defined]
    model = model_of(task, table_state(task, values))
    np.testing.assert_allclose(model.transform(counted.observations), values, atol=1e-4)
    assert model.mu_errors is not None
    rows = truth.encoder.numbers_of(data.observations)  # type: ignore[attr-defined]
    table = np.where(rows[:, None] >= 0, values[rows], 0.0)
    expected = bootstrap_errors(lambda rows: table[rows], model.mu, data, 0)
    np.testing.assert_allclose(model.mu_errors, expected, rtol=1e-3, atol=1e-9)


def test_a_collapsed_network_is_an_error_that_counts_what_is_left() -> None:
    task = task_of(OPERATOR, oversampling=0, kind="table")
    state = table_state(task, np.ones((11, 3)))
    with pytest.raises(NetworkCollapsedError, match="collapsed to 1 independent components of the 3"):
        model_of(task, state)
    assert ReadOut(task).inspect(state, None) == ([{"angle": 1.0}], False)


def test_one_seed_is_cut_out_of_many() -> None:
    tree = {"a": np.arange(6.0).reshape(3, 2)}
    assert one_seed(tree, 1, 3)["a"].tolist() == [2.0, 3.0]
    assert one_seed(tree, 0, 1) is tree


@pytest.mark.slow
def test_a_known_rho_is_learned_with_and_sharpens_the_error_bars() -> None:
    data = lw.collect("GridMaze-9", 20_000, seed=0)
    options: dict[str, Any] = {"dim": 4, "oversampling": 2, "steps": 400, "seed": 0}
    visited, known = lw.learn(data, **options), lw.learn(data, rho="uniform", **options)
    truth = lw.solve("GridMaze-9", 4)
    assert known.certificate().expected_cosine > visited.certificate().expected_cosine
    assert lw.score(known, truth).cosine > lw.score(visited, truth).cosine
    assert (known.mu_errors[1:] < visited.mu_errors[1:]).all()
    assert (np.abs(known.mu - truth.mu)[1:4] < 4.0 * known.mu_errors[1:4]).all()


def test_a_known_rho_is_refused_where_it_means_nothing() -> None:
    with pytest.raises(DataError, match="repeat"):
        lw.learn(lw.collect("Box-2", 1_000, seed=0), 3, rho="uniform")
    with pytest.raises(ArgumentError, match="its own weights"):
        lw.learn(lw.operator("GridMaze-9"), 3, rho="uniform")
