"""Encoders from outside the package: a row in the table with options of any plain kind, and users' own networks."""

import functools
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders import ENCODERS, Constant, build_encoder, own_encoder, trainable_filter
from lapwing.errors import ArgumentError, DamagedFileError

pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")

SKELETON = Path(__file__).parents[2] / "docs" / "skeletons" / "encoder.py"
DIM, OUTPUTS = 2, 4
LEARNING: dict[str, Any] = {"dim": DIM, "oversampling": OUTPUTS - DIM, "steps": 6, "log_every": 3, "seed": 0}


@pytest.fixture(scope="module")
def data() -> lw.Trajectories:
    return lw.collect("Box-2", steps=400, seed=0, episode_length=20)


POINTS = np.random.default_rng(1).uniform(-0.5, 0.5, (37, 2)).astype(np.float32)


@pytest.fixture
def with_a_row() -> Iterator[None]:
    """The encoder that the documentation gives to copy."""
    runpy.run_path(str(SKELETON))
    yield
    ENCODERS.pop("wave", None)


@pytest.mark.usefixtures("with_a_row")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gain": 0.1 + 0.2, "activation": "tanh", "shifted": False, "scales": {"weight": [0.25, None, 10**12]}},
    ],
)
def test_an_encoder_added_by_one_row_learns_and_survives_its_file(
    options: dict[str, Any], data: lw.Trajectories, tmp_path: Path
) -> None:
    encoder = build_encoder("wave", (2,), OUTPUTS, jax.random.key(0), **options)
    model = lw.learn(data, encoder=encoder, **LEARNING)
    again = lw.load(model.save(tmp_path))
    np.testing.assert_array_equal(again.transform(POINTS), model.transform(POINTS))
    loaded = again.encoder.inner  # type: ignore[attr-defined]
    assert {name: loaded.config()[name] for name in options} == options
    assert loaded.module.gain == options.get("gain", 1.0)
    del ENCODERS["wave"]
    with pytest.raises(DamagedFileError):
        lw.load(tmp_path)


class Rows(eqx.Module):
    """A network for single rows, made one for batches, with an array that is not trained and an activation."""

    net: eqx.nn.MLP
    centre: Constant
    act: Callable[[jax.Array], jax.Array] = jnp.tanh

    def __call__(self, batch: jax.Array) -> jax.Array:
        return self.act(jax.vmap(self.net)(batch - self.centre()))


def network(seed: int) -> eqx.nn.MLP:
    return eqx.nn.MLP(2, OUTPUTS, 8, 1, key=jax.random.key(seed))


GLOBAL = [network(0), network(1)]
FIRST, SECOND = GLOBAL


def scaled(net: eqx.nn.MLP, batch: jax.Array, scale: float = 1.0) -> jax.Array:
    return scale * jax.vmap(net)(batch)


OWN: dict[str, Callable[[int], Any]] = {
    "a class": lambda seed: Rows(network(seed), Constant(np.ones(2))),
    "jax.vmap": lambda seed: jax.vmap(network(seed)),
    "eqx.filter_vmap": lambda seed: eqx.filter_vmap(network(seed)),
    "jax.jit of jax.vmap": lambda seed: jax.jit(jax.vmap(network(seed))),
    "a lambda": lambda seed: (lambda net: lambda batch: 2.0 * jax.vmap(net)(batch))(network(seed)),
    "a lambda on globals": lambda seed: (
        (lambda batch: jax.vmap(FIRST)(batch)) if seed == 0 else (lambda batch: jax.vmap(SECOND)(batch))
    ),
    "a partial": lambda seed: functools.partial(scaled, network(seed), scale=0.5),
    "a method": lambda seed: Rows(network(seed), Constant(jnp.zeros(2))).__call__,
}


@pytest.mark.parametrize("kind", OWN)
def test_every_array_of_a_users_own_network_is_trained(kind: str) -> None:
    encoder = own_encoder(OWN[kind](0), (2,))
    trained = eqx.filter(encoder, trainable_filter(encoder))
    assert sum(leaf.size for leaf in jax.tree.leaves(trained)) == 2 * 8 + 8 + 8 * OUTPUTS + OUTPUTS
    np.testing.assert_allclose(encoder.encode(POINTS), OWN[kind](0)(jnp.asarray(POINTS)), rtol=1e-5, atol=1e-6)
    assert eqx.filter_grad(lambda e: jnp.sum(e(jnp.asarray(POINTS)) ** 2))(encoder) is not None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["a class", "eqx.filter_vmap", "a lambda"])
def test_a_users_own_network_learns_saves_and_loads_bit_for_bit(
    kind: str, data: lw.Trajectories, tmp_path: Path
) -> None:
    model = lw.learn(data, encoder=OWN[kind](0), **LEARNING)
    before = own_encoder(OWN[kind](0), (2,)).encode(POINTS)
    assert not np.array_equal(model.encoder.inner.encode(POINTS), before)  # type: ignore[attr-defined]
    again = lw.load(model.save(tmp_path / "model"), encoder=OWN[kind](1))
    np.testing.assert_array_equal(again.transform(POINTS), model.transform(POINTS))
    assert again.metadata == model.metadata
    # And once more: what was loaded is as good as what was learned.
    third = lw.load(again.save(tmp_path / "again"), encoder=OWN[kind](2))
    np.testing.assert_array_equal(third.transform(POINTS), model.transform(POINTS))


@pytest.mark.slow
def test_loading_needs_a_network_of_the_same_structure_and_says_so(data: lw.Trajectories, tmp_path: Path) -> None:
    lw.learn(data, encoder=jax.vmap(network(0)), **LEARNING).save(tmp_path)
    with pytest.raises(ArgumentError, match=r"lw\.load\(path, encoder=network\)"):
        lw.load(tmp_path)
    for wrong in (
        jax.vmap(eqx.nn.MLP(2, OUTPUTS, 9, 1, key=jax.random.key(0))),
        jax.vmap(eqx.nn.MLP(2, OUTPUTS, 8, 2, key=jax.random.key(0))),
        jax.vmap(eqx.nn.MLP(3, OUTPUTS, 8, 1, key=jax.random.key(0))),
        lambda batch: batch,
    ):
        with pytest.raises(ArgumentError):
            lw.load(tmp_path, encoder=wrong)


@pytest.mark.slow
def test_a_model_that_needs_no_network_refuses_one(data: lw.Trajectories, tmp_path: Path) -> None:
    lw.learn(data, encoder="mlp", hidden=(4,), **LEARNING).save(tmp_path / "built")
    lw.solve("GridMaze-7", 2).save(tmp_path / "solved")
    for name in ("built", "solved"):
        with pytest.raises(ArgumentError):
            lw.load(tmp_path / name, encoder=jax.vmap(network(0)))


def test_networks_that_do_not_fit_the_observations_are_refused() -> None:
    with pytest.raises(ArgumentError):
        own_encoder(lambda batch: batch.sum(axis=1), (2,))
    with pytest.raises(ArgumentError):
        own_encoder(jax.vmap(network(0)), (5,))


def test_a_function_that_calls_itself_is_no_trouble() -> None:
    net = network(0)

    def count(batch: jax.Array, times: int = 1) -> jax.Array:
        return count(batch, times - 1) if times else jax.vmap(net)(batch)

    encoder = own_encoder(count, (2,))
    np.testing.assert_allclose(encoder.encode(POINTS), jax.vmap(net)(jnp.asarray(POINTS)), rtol=1e-5, atol=1e-6)
