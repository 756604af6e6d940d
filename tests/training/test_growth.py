"""Growth points: an objective and a training loop from outside the package."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lapwing as lw
from lapwing.encoders import build_encoder
from lapwing.objectives import OBJECTIVES, Evaluation, Objective, Values
from lapwing.operators.lags import geometric_lags
from lapwing.training import Pairs


def orbital_minimisation(shift: float = 1.0) -> Objective:
    """OMM: ``-2 tr <u, A u> + tr(<u, u> <u, A u>)`` with ``A = f(P) + shift``, which needs off-diagonal products."""

    def loss(state: tuple[()], values: Values) -> tuple[jax.Array, Evaluation]:
        gram = sum(values.inner_products()) / 2
        products = values.operator_products() + shift * gram
        value = -2 * jnp.trace(products) + jnp.sum(gram * products)
        quotients = values.energies() / jnp.maximum(jnp.diagonal(gram), 1e-6)
        return value, Evaluation(quotients, {"error": jnp.abs(gram - jnp.eye(len(gram))).max()})

    return Objective(lambda dim: (), loss, lambda state, aux: state, lambda state, aux: aux)


@pytest.mark.parametrize("batches", ["exact", "sampled"])
def test_an_objective_from_outside_learns_from_off_diagonal_products(batches: str) -> None:
    data = lw.collect("GridMaze-9", 100_000, seed=0)
    options = {"oversampling": 2, "hidden": (64, 64), "steps": 1000, "log_every": 500, "batches": batches}
    model = lw.learn(data, 3, objective=orbital_minimisation(), **options)
    assert lw.score(model, lw.solve("GridMaze-9", 3)).subspace_cosine > 0.99
    assert model.metadata["objective"] == "given"
    assert set(model.metadata["eigenvalue_estimates"]) == {"multiplier"}
    assert "barrier" not in model.metadata["history"][-1]


def test_a_registered_objective_takes_its_options_from_its_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OBJECTIVES, "omm", orbital_minimisation)
    maze = lw.operator("GridMaze-9")
    small = {"oversampling": 2, "hidden": (32,), "steps": 4, "log_every": 2}
    for options in ({"objective": "omm", "shift": 2.0}, {"objective": "omm(shift=2.0)"}):
        model = lw.learn(maze, 3, **options, **small)
        assert (model.metadata["objective"], model.metadata["config"]["objective_options"]) == ("omm", {"shift": 2.0})
    with pytest.raises(lw.LapwingError, match="shift"):
        lw.learn(maze, 3, objective="omm", shft=2.0, **small)


def test_a_loop_of_ones_own_learns_from_data_that_grow() -> None:
    objective, optimiser = lw.allo(barrier=1.0), optax.adam(3e-3)
    encoder = build_encoder("fourier", (2,), 3, jax.random.key(0), hidden=(64,))
    state = lw.training.init(encoder, objective, optimiser, jax.random.key(1))
    traces = 0

    def counted(state: lw.training.TrainState, batch: Pairs) -> tuple[lw.training.TrainState, lw.training.StepInfo]:
        nonlocal traces
        traces += 1
        return lw.training.step(state, batch)

    step = jax.jit(counted)
    rng = np.random.default_rng(0)
    seen: list[np.ndarray] = []
    estimates: list[jax.Array] = []
    for seed in range(20):
        walk = lw.collect("GridMaze-9", 2_000, episode_length=2_000, seed=seed)
        seen.append(np.asarray(walk.observations[walk.ids]))
        episodes = np.stack(seen)
        for _ in range(40):
            which, start = rng.integers(len(episodes), size=256), rng.integers(1_900, size=256)
            lag = np.minimum(rng.geometric(0.1, size=256), 100)
            others = rng.integers(len(episodes), size=(2, 256)), rng.integers(2_001, size=(2, 256))
            first, second = episodes[others]
            state, info = step(state, Pairs(episodes[which, start], episodes[which, start + lag], first, second))
            estimates.append(info.eigenvalues)
    assert traces == 1
    assert int(state.step) == 800
    truth = lw.solve("GridMaze-9", 3)
    table = lw.operator("GridMaze-9").observations
    found, expected = np.asarray(state.encoder(table)), truth.transform(table)
    overlap = np.linalg.svd(np.linalg.qr(found)[0].T @ np.linalg.qr(expected)[0], compute_uv=False)
    assert overlap.min() > 0.98
    values = geometric_lags([0.9]).eigenvalues(1.0 - truth.mu[:3])
    np.testing.assert_allclose(np.mean(estimates[-200:], axis=0), values, atol=0.05)


def test_an_exact_table_is_a_batch_too() -> None:
    maze = lw.operator("GridMaze-9")
    table, _ = lw.training.exact_table(maze, geometric_lags([0.9]))
    encoder = build_encoder("fourier", (2,), 3, jax.random.key(0), hidden=(32,))
    state = lw.training.init(encoder, lw.allo(), optax.adam(3e-3), jax.random.key(1))
    step = jax.jit(lw.training.step)
    losses = []
    for _ in range(30):
        state, info = step(state, table)
        losses.append(float(info.loss))
    assert losses[-1] < losses[0]


def test_a_network_without_dim_is_refused() -> None:
    with pytest.raises(lw.LapwingError, match="own_encoder"):
        lw.training.init(eqx.nn.MLP(2, 3, 8, 1, key=jax.random.key(0)), lw.allo(), optax.sgd(0.1), jax.random.key(0))
