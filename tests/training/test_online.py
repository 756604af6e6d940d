"""Learning from a stream: accuracy against counting on the same window, drift, bits, bounded work, and bad input."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError, DataError, LapwingError
from lapwing.objectives import Evaluation, Objective
from lapwing.training.online import MOST_MARKS, _pair_pool

WORLD = "GridMaze-7"


def stream(world: str, steps: int, seed: int = 0, **options: object) -> tuple[np.ndarray, np.ndarray]:
    data = lw.collect(world, steps, seed=seed, **options)
    rows = data.observations if data.ids is None else data.observations[data.ids]
    return rows, np.isin(np.arange(data.num_states), data.offsets[1:] - 1)


pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray]:
    return stream(WORLD, 8000)


def learner(**options: object) -> lw.OnlineLearner:
    return lw.OnlineLearner(**{"dim": 3, "capacity": 4000, "hidden": (64, 64), "batch_size": 256, **options})


def test_the_network_follows_counting_on_the_same_window() -> None:
    rows, ends = stream("Rooms-16", 30_000)
    online = lw.OnlineLearner(dim=6, capacity=20_000, hidden=(128, 128), batch_size=256)
    for begin in range(0, 30_000, 5000):
        online.add(rows[begin : begin + 5000], ends[begin : begin + 5000])
        online.update(8)
    counted = lw.solve(online.data(), dim=6)
    model = online.model()
    assert lw.score(model, counted).subspace_cosine > 0.995
    assert np.abs(model.eigenvalues[1:] / counted.eigenvalues[1:] - 1).max() < 0.02
    assert model.certificate().expected_cosine is not None
    assert model.metadata["online"]["seen"] == 30_000 - 30_000 % 5000


def test_observations_that_never_repeat() -> None:
    world = "continuous:room:3x9"
    rows, ends = stream(world, 20_000, episode_length=200)
    online = learner(capacity=16_000, steps=256, batch_size=256)
    for begin in range(0, 20_000, 4000):
        online.add(rows[begin : begin + 4000], ends[begin : begin + 4000])
        online.update(64)
    truth = lw.solve(world, dim=3)
    assert not online.data().has_table
    assert lw.score(online.model(), truth).subspace_cosine > 0.95


def test_the_objective_alone_trains_too(small: tuple[np.ndarray, np.ndarray]) -> None:
    online = learner(fit=False, objective="quadratic_penalty(barrier=2.5)", discounts=(0.9,))
    online.add(*small)
    for _ in range(4):
        online.update(64)
    counted = lw.solve(online.data(), dim=3)
    assert lw.score(online.model(), counted).subspace_cosine > 0.95


def test_a_window_forgets_and_a_reservoir_does_not(small: tuple[np.ndarray, np.ndarray]) -> None:
    rows, ends = small
    distinct = {}
    for keep in ("window", "reservoir"):
        online = learner(keep=keep, capacity=2000)
        online.add(rows, ends)
        online.add(np.zeros((3000, 2)) + np.arange(3000)[:, None] % 5 * 0.1, np.arange(3000) % 50 == 49)
        distinct[keep] = len(online.data().observations)
    assert distinct["window"] == 5 < distinct["reservoir"]


def test_drift_is_zero_where_nothing_changes_and_large_where_the_world_does() -> None:
    online = learner(capacity=6000)
    rows, ends = stream("room:1x12", 6000)
    online.add(rows, ends)
    online.update(32)
    before = online.seen
    online.update(32)
    assert online.drift(before).sines.max() < 0.05
    # The same observations, joined in another order.
    order = np.random.default_rng(0).permutation(12)
    table, ids = np.unique(rows, axis=0, return_inverse=True)
    online.add(table[order][ids.ravel()], ends)
    report = online.update(32)
    assert online.drift(before).sines[1:].max() > 0.3
    assert np.allclose(online.drift(before).sines, report.turned, atol=0.1)
    assert online.drift(before).since == before
    assert online.drift(before).moments == (online.seen,)


def test_nothing_is_compiled_as_data_grow(small: tuple[np.ndarray, np.ndarray]) -> None:
    rows, ends = small
    online = learner(capacity=6000)
    for begin in range(0, 4000, 400):
        online.add(rows[begin : begin + 400], ends[begin : begin + 400])
        online.update(9)
    assert online._run._cache_size() == 2


def test_pairs_of_few_distinct_observations_are_encoded_once(small: tuple[np.ndarray, np.ndarray]) -> None:
    data = lw.from_arrays(small[0], truncated=small[1])
    rows = np.random.default_rng(0).integers(0, len(data.observations), 2 * 128)
    table, whole = (_pair_pool(data, rows, batch_size) for batch_size in (64, 16))
    assert table.observations.shape == (64, 2)
    assert whole.rows is None
    draw = whole.draw(jax.random.key(0))
    picked = jax.tree.map(lambda part: table.rows[part], draw)
    one, other = whole.batch(draw).values(jnp.sin), table.batch(picked).values(jnp.sin)
    assert all(map(np.array_equal, jax.tree.leaves(one), jax.tree.leaves(other)))
    assert all(part.max() < len(data.observations) for part in table.draw(jax.random.key(0))[:2])


def test_marks_and_reports_stay_few(small: tuple[np.ndarray, np.ndarray]) -> None:
    rows, ends = small
    online = learner(capacity=1000)
    for begin in range(0, 4000, 100):
        online.add(rows[begin : begin + 100], ends[begin : begin + 100])
        online.update(1)
    assert len(online._marks) <= MOST_MARKS
    times = [mark.seen for mark in online._marks]
    assert times == sorted(times)
    assert times[-1] == 4000


def weights(online: lw.OnlineLearner) -> list[np.ndarray]:
    assert online._state is not None
    return [np.asarray(leaf) for leaf in jax.tree.leaves((online._state.trained, online._state.optimiser_state))]


@pytest.mark.parametrize("fit", [True, False])
def test_a_saved_learner_goes_on_to_the_same_bits(
    small: tuple[np.ndarray, np.ndarray], fit: bool, tmp_path: Path
) -> None:
    rows, ends = small

    def rest(online: lw.OnlineLearner) -> lw.OnlineLearner:
        for begin in range(3000, 6000, 1000):
            online.add(rows[begin : begin + 1000], ends[begin : begin + 1000])
            online.update(10)
        return online

    first = learner(fit=fit)
    first.add(rows[:3000], ends[:3000])
    first.update(10)
    first.save(tmp_path / "learner")
    second = rest(lw.OnlineLearner.load(tmp_path / "learner"))
    rest(first)
    assert all(np.array_equal(one, other) for one, other in zip(weights(first), weights(second), strict=True))
    models = first.model(), second.model()
    assert np.array_equal(models[0].transform(rows[:50]), models[1].transform(rows[:50]))
    assert np.array_equal(models[0].mu, models[1].mu)
    assert np.array_equal(first.drift(3000).sines, second.drift(3000).sines)
    assert [report.step for report in first.reports] == [report.step for report in second.reports]


def test_a_network_and_an_objective_of_your_own(small: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    network = jax.vmap(eqx.nn.MLP(2, 9, 32, 2, key=jax.random.key(0)))
    online = learner(encoder=network, objective=lw.allo(barrier=1.0), fit=False)
    online.add(*small)
    online.update(8)
    online.save(tmp_path / "own")
    with pytest.raises(ArgumentError, match="pass the same again"):
        lw.OnlineLearner.load(tmp_path / "own")
    again = lw.OnlineLearner.load(tmp_path / "own", objective=lw.allo(barrier=1.0), encoder=network)
    for one in (online, again):
        one.update(8)
    assert all(np.array_equal(one, other) for one, other in zip(weights(online), weights(again), strict=True))


def test_a_model_to_start_with(small: tuple[np.ndarray, np.ndarray]) -> None:
    data = lw.from_arrays(small[0], truncated=small[1])
    model = lw.learn(data, dim=3, steps=200, hidden=(64, 64), rho="uniform")
    online = learner(start=model)
    online.add(small[0][:2000], small[1][:2000])
    assert online.update(1).loss < 0.5
    later = lw.learn(data, dim=3, steps=10, hidden=(64, 64), rho="uniform", start=model)
    fresh = lw.learn(data, dim=3, steps=10, hidden=(64, 64), rho="uniform")
    counted = lw.solve(data, dim=3)
    assert lw.score(later, counted).subspace_cosine > lw.score(fresh, counted).subspace_cosine
    with pytest.raises(ArgumentError, match="outputs, but dim"):
        learner(start=model, dim=4)
    with pytest.raises(ArgumentError, match="with a network"):
        learner(start=counted)
    with pytest.raises(ArgumentError, match="leave the encoder out"):
        lw.learn(data, dim=3, start=model, encoder="mlp")
    wide = lw.from_arrays(np.pad(small[0], ((0, 0), (0, 1))), truncated=small[1])
    with pytest.raises(ArgumentError, match="observations of shape"):
        lw.learn(wide, dim=3, start=model)


def test_inputs_that_outgrow_their_scale_are_scaled_anew() -> None:
    rows, ends = stream("room:1x20", 6000)
    near = np.abs(rows[:, 1] - rows[:, 1].min()) < 0.2
    online = learner(capacity=10_000)
    online.add(rows[near], np.ones(near.sum(), dtype=bool) & (np.arange(near.sum()) % 20 == 19))
    online.update(4)
    before = np.asarray(online._state.encoder.module.inputs.scale.array)
    online.add(40 * rows, ends)
    online.update(16)
    after = np.asarray(online._state.encoder.module.inputs.scale.array)
    assert after.max() > 10 * before.max()
    assert online.model().mu is not None


def wrong_shape(state: object, values: object) -> tuple[jax.Array, Evaluation]:
    return jnp.zeros(3), Evaluation((), {})


def not_a_number(state: object, values: object) -> tuple[jax.Array, Evaluation]:
    return values.here.sum() * jnp.nan, Evaluation((), {})


def test_bad_input_leaves_the_learner_as_it_was(small: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    online = learner()
    with pytest.raises(DataError, match="no states have been added"):
        online.update()
    with pytest.raises(DataError, match="first update"):
        online.model()
    with pytest.raises(DataError, match="first update"):
        online.drift()
    online.add(*small)
    online.update(4)
    before, seen = weights(online), online.seen
    with pytest.raises(DataError, match="until now"):
        online.add(np.zeros((4, 3)))
    with pytest.raises(DataError, match="NaN"):
        online.add(np.full((4, 2), np.nan))
    with pytest.raises(ArgumentError, match="steps"):
        online.update(0)
    with pytest.raises(ArgumentError, match="stream"):
        online.add(np.zeros((4, 2)), stream=-1)
    assert online.seen == seen
    assert all(np.array_equal(one, other) for one, other in zip(before, weights(online), strict=True))
    few, table = learner(dim=5), learner(encoder="table")
    few.add(np.arange(4.0)[:, None])
    table.add(*small)
    with pytest.raises(DataError, match="larger than the number"):
        few.update()
    for loss, message in ((wrong_shape, "scalar"), (not_a_number, "finite")):
        bad = learner(fit=False, objective=Objective(lambda dim: (), loss, lambda s, a: s, lambda s, a: jnp.zeros(9)))
        bad.add(*small)
        with pytest.raises(LapwingError, match=message):
            bad.update(2)
        assert bad._state is None
        assert bad.reports == []
    with pytest.raises(ArgumentError, match="cannot grow"):
        table.update()
    with pytest.raises(ArgumentError, match="does not have"):
        learner(batches="exact")
    with pytest.raises(ArgumentError, match="more than dim"):
        learner(dim=5, capacity=5)
    with pytest.raises(ArgumentError, match="holds no online learner"):
        lw.OnlineLearner.load(tmp_path)


def test_a_damaged_file_is_not_taken(small: tuple[np.ndarray, np.ndarray], tmp_path: Path) -> None:
    online = learner()
    online.add(*small)
    online.update(2)
    folder = online.save(tmp_path / "learner")
    file = next(folder.glob("step-*"))
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.warns(lw.LapwingWarning, match="damaged"), pytest.raises(ArgumentError, match="no online learner"):
        lw.OnlineLearner.load(folder)
