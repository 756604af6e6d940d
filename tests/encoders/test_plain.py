"""Networks as plain layers: the same values as JAX, for each kind, and a clear refusal for other encoders."""

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders import RotatedEncoder, build_encoder, own_encoder
from lapwing.encoders.plain import FUNCTIONS, Linear, Rearrangement, plain_network
from lapwing.errors import ArgumentError
from networks_by_kind import NETWORKS, scaled_network, some_observations


@pytest.mark.parametrize(("kind", "shape", "options"), NETWORKS)
def test_plain_layers_give_the_values_of_jax(kind: str, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    encoder = scaled_network(kind, shape, options)
    observations = some_observations(shape)
    values = plain_network(encoder, 5)(observations)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, encoder.encode(observations), atol=1e-5)


@pytest.mark.parametrize("rows", [5, 6])
@pytest.mark.parametrize(("kind", "shape", "options"), NETWORKS[:3])
def test_a_rotation_becomes_part_of_the_last_layer(
    kind: str, shape: tuple[int, ...], options: dict[str, Any], rows: int
) -> None:
    matrix = np.random.default_rng(2).normal(size=(rows, 4))
    rotated = RotatedEncoder(scaled_network(kind, shape, options), matrix)
    observations = some_observations(shape)
    plain = plain_network(rotated, 3)
    assert isinstance(plain.layers[-1], Linear)
    np.testing.assert_allclose(plain(observations), rotated.encode(observations)[:, :3], atol=2e-5)


def test_transform_of_one_observation_is_that_of_many() -> None:
    data = lw.collect("GridMaze-7", 500, seed=0)
    model = lw.learn(data, dim=3, steps=8, refine="none", seed=0)
    many = model.transform(data.observations[:100])
    one = np.concatenate([model.transform(data.observations[i : i + 1]) for i in range(100)])
    assert one.dtype == many.dtype
    np.testing.assert_allclose(one, many, atol=1e-4 * np.abs(many).max())


def test_integers_and_bytes_are_taken_as_numbers() -> None:
    network = plain_network(scaled_network("mlp", (3,), {"hidden": (8,)}), 5)
    numbers = np.array([[1, 2, 3]])
    for dtype in (np.uint8, np.int64, np.float64):
        np.testing.assert_array_equal(network(numbers.astype(dtype)), network(numbers.astype(np.float32)))


@pytest.mark.parametrize(
    ("observations", "words"),
    [
        (np.zeros((1, 4)), "takes (n, 3) observations"),
        (np.zeros(3), "takes (n, 3) observations"),
        (np.array([[0.0, np.nan, 0.0]]), "NaN"),
        (np.array([["a", "b", "c"]]), "must be numbers"),
    ],
)
def test_bad_observations_are_refused(observations: np.ndarray, words: str) -> None:
    network = plain_network(scaled_network("mlp", (3,), {"hidden": (8,)}), 5)
    with pytest.raises(ArgumentError) as raised:
        network(observations)
    assert words in str(raised.value)


def test_large_numbers_do_not_overflow() -> None:
    values = np.array([-1e4, -1.0, 0.0, 1.0, 1e4], dtype=np.float32)
    np.testing.assert_allclose(FUNCTIONS["silu"](values), jax.nn.silu(values), atol=1e-6)


class OwnNetwork(eqx.Module):
    """A network of a user that has plain layers."""

    weight: Any

    def __call__(self, batch: Any) -> Any:
        return batch.reshape(batch.shape[0], -1) @ self.weight

    def plain_layers(self) -> list[Any]:
        return [Rearrangement((0, 1, 2), (6,)), Linear(np.asarray(self.weight), np.zeros(2, np.float32))]


def test_a_network_of_a_users_own_may_have_plain_layers() -> None:
    encoder = own_encoder(OwnNetwork(np.arange(12, dtype=np.float32).reshape(6, 2)), (2, 3))
    observations = some_observations((2, 3))
    np.testing.assert_allclose(plain_network(encoder, 2)(observations), encoder.encode(observations), atol=1e-5)


def test_other_encoders_are_refused_with_advice() -> None:
    with pytest.raises(ArgumentError, match="table or a closed form"):
        plain_network(lw.solve("room:3x3", 2).encoder, 2)
    with pytest.raises(ArgumentError, match="plain_layers"):
        plain_network(own_encoder(lambda batch: batch, (2,)), 2)
    with pytest.raises(ArgumentError, match="of kind 'table'"):
        plain_network(build_encoder("table", (), 2, jax.random.key(0), states=4), 2)
