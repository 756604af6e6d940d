"""A job: what data and options make of each other, what is refused, and how outputs become components."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders import NetworkEncoder, own_encoder
from lapwing.encoders.table import Table
from lapwing.errors import LapwingError
from lapwing.objectives import AlloState, allo
from lapwing.objectives.base import strong_float
from lapwing.objectives.constraints import BarrierState
from lapwing.objectives.permuted import PermutedState
from lapwing.training.answer import bootstrap_errors
from lapwing.training.config import make_config
from lapwing.training.forms import PairJudge, TableJudge
from lapwing.training.job import Job
from lapwing.training.reader import Reader
from lapwing.training.step import TrainState

OPERATOR = lw.operator("GridMaze-7")
BOX = lw.collect("Box-1", steps=1000, seed=0)
MAZE = lw.collect("GridMaze-7", steps=1000, seed=0)


def job_of(data: Any, encoder: Any = None, seeds: Any = (0,), **options: Any) -> Job:
    return Job(make_config(**{"dim": 3, "hidden": (8,), **options}), data, seeds, None, encoder)


@pytest.mark.parametrize("data", ["GridMaze-7", None, np.eye(3), lw.make_world("GridMaze-7")])
def test_other_data_than_experience_and_operators_is_refused(data: Any) -> None:
    with pytest.raises(LapwingError, match=f"cannot learn from {type(data).__name__}"):
        job_of(data)


@pytest.mark.parametrize("seeds", [[], [1, -1]])
def test_seeds_must_be_there_and_not_negative(seeds: list[int]) -> None:
    with pytest.raises(LapwingError, match="seed"):
        job_of(OPERATOR, seeds=seeds)


def test_seeds_may_be_an_array() -> None:
    assert job_of(OPERATOR, seeds=np.arange(2)).seeds == [0, 1]


def test_more_components_than_states_are_refused_and_spare_ones_are_cut_to_fit() -> None:
    with pytest.raises(LapwingError, match="dim=12 is larger than the number of states, 11"):
        job_of(OPERATOR, dim=12)
    assert job_of(OPERATOR, dim=11).width == 11
    assert job_of(OPERATOR, dim=8).width == 11
    assert job_of(OPERATOR, dim=3, spare=2).width == 5
    assert job_of(BOX, dim=3, spare=20).width == 23


@pytest.mark.parametrize(
    ("data", "wanted", "kind"),
    [(OPERATOR, "auto", "exact"), (MAZE, "auto", "exact"), (MAZE, "sampled", "sampled"), (BOX, "auto", "sampled")],
)
def test_batches_are_chosen_by_the_data_unless_said(data: Any, wanted: str, kind: str) -> None:
    assert job_of(data, batches=wanted).batches.kind == kind


def test_data_that_hardly_repeat_are_sampled_without_truncation_bias() -> None:
    weights = job_of(BOX, discounts=(0.9,)).batches.gaps.weights
    assert weights is not None
    np.testing.assert_allclose(weights[1:] / weights[:-1], 0.9, rtol=1e-9)


def test_large_tables_are_sampled_from_data_and_sparse_from_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("training.job", "batches.exact", "training.forms"):
        monkeypatch.setattr(f"lapwing.{module}.DENSE_STATES", 4)
    assert job_of(MAZE).batches.kind == "sampled"
    sparse = job_of(OPERATOR)
    assert sparse.batches.kind == "exact"
    assert sparse.batches.gaps.weights is not None
    judge = Reader(sparse).judge
    assert isinstance(judge, TableJudge)
    np.testing.assert_allclose(judge.gaps.weights, sparse.batches.gaps.weights)


def test_the_judge_is_exact_where_there_is_a_table() -> None:
    assert isinstance(Reader(job_of(MAZE, batches="sampled")).judge, TableJudge)
    assert isinstance(Reader(job_of(BOX)).judge, PairJudge)


def test_batches_that_the_data_cannot_give_are_refused() -> None:
    with pytest.raises(LapwingError, match="sampled batches need experience"):
        job_of(OPERATOR, batches="sampled")
    with pytest.raises(LapwingError, match="exact batches need observations that repeat"):
        job_of(BOX, batches="exact")
    with pytest.raises(LapwingError, match="a table is learned with exact batches"):
        Job(make_config(dim=3, encoder="table", batches="sampled"), MAZE, [0], None, None)


def test_an_encoder_of_the_wrong_width_is_refused() -> None:
    narrow = own_encoder(lambda batch: jnp.tile(batch, (1, 2)), (2,))
    with pytest.raises(LapwingError, match=r"gives 4 components, but dim \+ spare is 9"):
        job_of(OPERATOR, encoder=narrow).program()


def test_an_unknown_kind_of_encoder_is_refused_with_the_nearest() -> None:
    with pytest.raises(LapwingError, match="did you mean fourier"):
        Job(make_config(dim=3, encoder="furier"), OPERATOR, [0], None, None).program()


def test_statistics_bring_inputs_into_range_and_centre_pixels() -> None:
    numbers = lw.operator(OPERATOR.matrix)
    scaled = job_of(numbers)._encoder(jax.random.key(0)).inputs
    np.testing.assert_allclose((scaled.centre.array, scaled.scale.array), ([5.0], [10.0]))
    raw = job_of(OPERATOR)._encoder(jax.random.key(0)).inputs
    assert not np.asarray(raw.centre.array).any()
    pixels = lw.operator("GridMaze-7", observation="pixels")
    centred, plain = (job_of(pixels, centre_pixels=how)._encoder(jax.random.key(0)).inputs for how in (True, False))
    np.testing.assert_allclose(centred.centre.array, pixels.observations.mean(axis=0), rtol=1e-5, atol=1e-4)
    assert not np.asarray(plain.centre.array).any()


def table_state(values: np.ndarray, objective: Any) -> TrainState:
    encoder = NetworkEncoder(Table(jnp.asarray(values, dtype=jnp.float32)), "table", (), np.shape(values)[1], "{}")
    return TrainState(eqx.filter(encoder, eqx.is_array), None, (), objective, jax.random.key(0), jnp.zeros(()))


def test_permuted_outputs_are_read_in_the_objectives_order() -> None:
    truth = lw.solve("GridMaze-7", 3)
    exact = truth.transform(OPERATOR.observations)
    order = np.array([2, 0, 1])
    shuffled = np.empty_like(exact)
    shuffled[:, order] = exact
    job = Job(make_config(dim=3, spare=0, encoder="table", refine="none", permute_every=5), OPERATOR, [0], None, None)
    state = table_state(shuffled, PermutedState(allo().init(3), jnp.asarray(order), jnp.zeros((), dtype=jnp.int32)))
    model = Reader(job).model(state.trained, state, {"seed": 0})
    np.testing.assert_allclose(model.transform(OPERATOR.observations), exact, atol=1e-5)
    np.testing.assert_allclose(model.mu, truth.mu[:3], atol=1e-6)
    assert model.certificate().converged
    plain = Reader(job).model(state.trained, state._replace(objective=allo().init(3)), {"seed": 0})
    assert not plain.certificate().converged


def test_refining_does_not_care_about_the_order_of_outputs() -> None:
    truth = lw.solve("GridMaze-7", 3)
    exact = truth.transform(OPERATOR.observations)
    job = Job(make_config(dim=3, spare=0, encoder="table", permute_every=5), OPERATOR, [0], None, None)
    for order in ([0, 1, 2], [1, 2, 0]):
        state = table_state(exact, PermutedState(allo().init(3), jnp.asarray(order), jnp.zeros((), dtype=jnp.int32)))
        model = Reader(job).model(state.trained, state, {"seed": 0})
        np.testing.assert_allclose(model.transform(OPERATOR.observations), exact, atol=1e-4)


@pytest.mark.parametrize(("stop_gradient", "factor"), [(True, 0.5), (False, 1.0)])
def test_dual_readings_know_whether_there_is_a_stop_gradient(stop_gradient: bool, factor: float) -> None:
    job = Job(make_config(dim=2, stop_gradient=stop_gradient), OPERATOR, [0], None, None)
    duals = AlloState(-jnp.diag(jnp.array([0.2, 0.6])), BarrierState(strong_float(1.0), strong_float(0.0)))
    state = table_state(np.zeros((11, 2)), duals)
    assert Reader(job)._readings(state)["dual"] == pytest.approx([0.2 * factor, 0.6 * factor])
    wrapped = state._replace(objective=PermutedState(duals, jnp.arange(2), jnp.zeros((), dtype=jnp.int32)))
    assert Reader(job)._readings(wrapped)["dual"] == pytest.approx([0.2 * factor, 0.6 * factor])


def test_a_table_over_data_that_missed_states_is_read_at_the_right_ones() -> None:
    data = lw.collect("rooms:2x2x3:1", steps=60, episode_length=60, seed=3)
    counted = lw.operator(data)
    assert counted.num_states < len(data.observations)
    truth = lw.solve(data, 3)
    job = Job(make_config(dim=3, spare=0, encoder="table"), data, [0], None, None)
    values = truth.encoder.values[:, :3]  # type: ignore[attr-defined]
    state = table_state(values, allo().init(3))
    model = Reader(job).model(state.trained, state, {"seed": 0})
    np.testing.assert_allclose(model.transform(counted.observations), values, atol=1e-4)
    assert model.mu_errors is not None
    rows = truth.encoder.numbers_of(data.observations)  # type: ignore[attr-defined]
    table = np.where(rows[:, None] >= 0, values[rows], 0.0)
    expected = bootstrap_errors(lambda observations: table, np.eye(3), model.mu, data, 0)
    np.testing.assert_allclose(model.mu_errors, expected, rtol=1e-3, atol=1e-9)


def test_a_collapsed_network_is_an_error_that_counts_what_is_left() -> None:
    job = Job(make_config(dim=3, spare=0, encoder="table"), OPERATOR, [0], None, None)
    state = table_state(np.ones((11, 3)), allo().init(3))
    with pytest.raises(LapwingError, match="collapsed to 1 independent components of the 3"):
        Reader(job).model(state.trained, state, {"seed": 0})
    reader = Reader(job)
    assert reader._worst_angle(reader._read(*reader._forms(state.trained, state))) == 1.0


def test_one_seed_is_cut_out_of_many() -> None:
    state = TrainState(jnp.arange(6.0).reshape(3, 2), None, (), (), jnp.arange(3), jnp.arange(3))
    cut = job_of(OPERATOR, seeds=[4, 5, 6]).one_seed(state, 1)
    assert cut.trained.tolist() == [2.0, 3.0]
    assert int(cut.step) == 1
    alone = job_of(OPERATOR)
    assert alone.one_seed(state, 0) is state
