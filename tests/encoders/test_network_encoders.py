"""What every network encoder must do: shapes, keys, files, compilation, bad input; and what each computes."""

import doctest
import importlib
import json
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.encoders.base import Encoder
from lapwing.encoders.fourier import DEFAULT_SCALES, fourier_features, random_frequencies
from lapwing.encoders.layers import random_layers, strided_convolution, trainable_filter
from lapwing.encoders.networks import MLPEncoder
from lapwing.encoders.own import OwnEncoder
from lapwing.encoders.parts import CHUNK_ROWS
from lapwing.encoders.registry import NETWORK_ENCODERS, build_encoder, default_kind
from lapwing.encoders.statistics import Statistics, image_statistics, range_statistics
from lapwing.errors import LapwingError

DIM = 3


def observations_of(kind: str, count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "table":
        return rng.integers(0, 9, count)
    if kind == "conv":
        return rng.integers(0, 256, (count, 6, 7, 3), dtype=np.uint8)
    return rng.uniform(-0.5, 0.5, (count, 2)).astype(np.float32)


OPTIONS = {
    "table": {"states": 9},
    "mlp": {"hidden": (16, 8)},
    "fourier": {"hidden": (16,), "scales": (2.0, 20.0), "features_per_scale": 4},
    "conv": {"hidden": (16,), "channels": (4, 5), "statistics": image_statistics(observations_of("conv", 50))},
}
KINDS = list(OPTIONS)


def built(kind: str, seed: int = 0):
    shape = observations_of(kind, 1).shape[1:]
    return build_encoder(kind, shape, DIM, jax.random.key(seed), **OPTIONS[kind])


def same_arrays(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes() for name in one
    )


@pytest.mark.parametrize("kind", KINDS)
def test_values_have_the_stated_shape_and_are_finite(kind: str) -> None:
    encoder: Encoder = built(kind)
    assert encoder.dim == DIM
    for count in (0, 1, 5):
        values = encoder.encode(observations_of(kind, count))
        assert values.shape == (count, DIM)
        assert values.dtype == np.float32
        assert np.isfinite(values).all()


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_in_chunks_is_the_plain_call(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lapwing.encoders.parts.CHUNK_ROWS", 8)
    encoder, observations = built(kind), observations_of(kind, 21)
    plain = np.asarray(eqx.filter_jit(encoder)(jnp.asarray(observations)))
    np.testing.assert_allclose(encoder.encode(observations), plain, rtol=1e-5, atol=1e-5)


def test_many_row_counts_share_few_programs() -> None:
    traces = []

    def module(batch: jax.Array) -> jax.Array:
        traces.append(batch.shape)
        return batch[:, :1]

    encoder = OwnEncoder.create(module, (2,))
    traces.clear()
    for count in (5, 6, 7, 8, CHUNK_ROWS + 6, 2 * CHUNK_ROWS):
        points = np.full((count, 2), 0.25)
        np.testing.assert_array_equal(encoder.encode(points), points[:, :1])
    assert sorted(traces) == [(8, 2), (CHUNK_ROWS, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_rebuild_the_encoder_bit_for_bit(kind: str) -> None:
    encoder = built(kind)
    config = json.loads(json.dumps(encoder.config()))
    arrays = {name: array.copy() for name, array in encoder.arrays().items()}
    again = NETWORK_ENCODERS[kind].from_parts(config, arrays)
    assert again.kind == kind
    assert again.config() == encoder.config()
    assert same_arrays(again.arrays(), encoder.arrays())
    observations = observations_of(kind, 6)
    assert again.encode(observations).tobytes() == encoder.encode(observations).tobytes()
    assert jax.tree.structure(again) == jax.tree.structure(encoder)


@pytest.mark.parametrize("kind", KINDS)
def test_broken_parts_are_refused_in_words(kind: str) -> None:
    encoder = built(kind)
    config, arrays = encoder.config(), encoder.arrays()
    load = NETWORK_ENCODERS[kind].from_parts
    name = sorted(arrays)[-1]
    with pytest.raises(LapwingError, match="missing"):
        load(config, {other: array for other, array in arrays.items() if other != name})
    with pytest.raises(LapwingError, match="unknown"):
        load(config, arrays | {"extra": np.zeros(1)})
    with pytest.raises(LapwingError, match=r"needs|arrays hold"):
        load(config, arrays | {name: np.zeros((1, 1, 1), dtype=np.float32)})
    with pytest.raises(LapwingError, match="needs float32"):
        load(config, arrays | {name: arrays[name].astype(np.float64)})
    with pytest.raises(LapwingError, match="configuration"):
        load(config | {"colour": "red"}, arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_decides_everything(kind: str) -> None:
    assert same_arrays(built(kind, 4).arrays(), built(kind, 4).arrays())
    assert not same_arrays(built(kind, 4).arrays(), built(kind, 5).arrays())


@pytest.mark.parametrize("kind", ["fourier", "conv"])
def test_many_seeds_are_built_and_called_in_one_program(kind: str) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    shape, observations = observations_of(kind, 1).shape[1:], jnp.asarray(observations_of(kind, 4))
    build = eqx.filter_jit(eqx.filter_vmap(lambda key: build_encoder(kind, shape, DIM, key, **OPTIONS[kind])))
    together = eqx.filter_jit(eqx.filter_vmap(lambda encoder: encoder(observations)))(build(keys))
    alone = build_encoder(kind, shape, DIM, keys[1], **OPTIONS[kind])(observations)
    np.testing.assert_allclose(together[1], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_trained_has_a_gradient_and_constants_have_none(kind: str) -> None:
    encoder, observations = built(kind), jnp.asarray(observations_of(kind, 20))

    @eqx.filter_jit
    def gradient(encoder):
        return eqx.filter_grad(lambda e: jnp.sum(e(observations) ** 2))(encoder)

    by_name = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree.leaves_with_path(gradient(encoder))}
    marks = {jax.tree_util.keystr(path): mark for path, mark in jax.tree.leaves_with_path(trainable_filter(encoder))}
    assert by_name.keys() == marks.keys()
    for name, trained in marks.items():
        assert trained == (not name.endswith(".array"))
        assert bool(np.any(by_name[name])) == trained


@pytest.mark.parametrize("kind", ["mlp", "fourier", "conv"])
def test_unusable_observations_are_refused(kind: str) -> None:
    encoder, observations = built(kind), observations_of(kind, 4)
    with pytest.raises(LapwingError, match="takes"):
        encoder.encode(observations[:, :1])
    with pytest.raises(LapwingError, match="takes"):
        encoder.encode(np.float32(1.0))
    spoilt = observations.astype(np.float64)
    spoilt.flat[3] = np.nan
    with pytest.raises(LapwingError, match="NaN"):
        encoder.encode(spoilt)
    with pytest.raises(LapwingError, match="numbers"):
        encoder.encode(observations.astype(str))


def test_a_table_refuses_ids_that_it_does_not_have() -> None:
    encoder = built("table")
    np.testing.assert_array_equal(encoder.encode(np.array([8, 0])), np.asarray(encoder.values)[[8, 0]])
    for ids, message in (([9], "0 .. 8"), ([-1], "0 .. 8"), ([0.5], "integer"), ([[1]], "integer")):
        with pytest.raises(LapwingError, match=message):
            encoder.encode(np.array(ids))
    with pytest.raises(LapwingError, match="at most 9"):
        build_encoder("table", (), 10, jax.random.key(0), states=9)


@pytest.mark.parametrize("shape", [(1, 1), (7, 8)])
def test_slices_and_a_product_are_the_convolution(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.normal(size=(4, *shape, 3)), dtype=jnp.float32)
    (kernel,) = random_layers([(27, 5)], key=jax.random.key(1))
    expected = jax.lax.conv_general_dilated(
        images,
        kernel.weight.reshape(3, 3, 3, 5),
        window_strides=(2, 2),
        padding=((1, 1), (1, 1)),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    actual = strided_convolution(images, kernel)
    assert actual.shape == (4, math.ceil(shape[0] / 2), math.ceil(shape[1] / 2), 5)
    np.testing.assert_allclose(actual, expected + kernel.bias, rtol=1e-4, atol=1e-5)


def test_images_may_lack_the_axis_of_channels() -> None:
    encoder = build_encoder("conv", (7, 9), DIM, jax.random.key(0), hidden=(8,))
    deep = build_encoder("conv", (7, 9, 1), DIM, jax.random.key(0), hidden=(8,))
    images = np.random.default_rng(0).normal(size=(3, 7, 9))
    np.testing.assert_array_equal(encoder.encode(images), deep.encode(images[..., None]))


def test_centred_pixels_do_not_see_the_background() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 100, (40, 6, 6, 3), dtype=np.uint8)
    brighter = images + rng.integers(0, 150, (6, 6, 3), dtype=np.uint8)

    def values(data: np.ndarray) -> np.ndarray:
        options = {"hidden": (8,), "statistics": image_statistics(data)}
        return build_encoder("conv", (6, 6, 3), DIM, jax.random.key(0), **options).encode(data)

    np.testing.assert_allclose(values(images), values(brighter), atol=1e-4)


def test_image_statistics_are_the_mean_image_and_the_overall_deviation() -> None:
    images = observations_of("conv", 30)
    statistics = image_statistics(images)
    np.testing.assert_allclose(statistics.centre, images.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(statistics.scale, np.sqrt(np.mean((images - images.mean(axis=0)) ** 2)), rtol=1e-6)
    counts = np.random.default_rng(1).integers(0, 4, 30)
    weighted = image_statistics(images, counts)
    repeated = image_statistics(np.repeat(images, counts, axis=0))
    np.testing.assert_allclose(weighted.centre, repeated.centre, rtol=1e-5)
    np.testing.assert_allclose(weighted.scale, repeated.scale, rtol=1e-5)
    assert image_statistics(np.full((3, 2, 2), 7)).scale == 1.0


def test_range_statistics_fill_the_unit_cube() -> None:
    points = np.random.default_rng(0).uniform([-3, 100, 5], [9, 101, 5], (50, 3))
    statistics = range_statistics(points)
    scaled = (points - statistics.centre) / statistics.scale
    np.testing.assert_allclose(scaled.min(axis=0), [-0.5, -0.5, 0], atol=1e-4)
    np.testing.assert_allclose(scaled.max(axis=0), [0.5, 0.5, 0], atol=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: image_statistics(np.zeros((0, 2))), "at least one"),
        (lambda: range_statistics(np.array([[np.nan]])), "NaN"),
        (lambda: image_statistics(np.zeros((2, 2)), np.array([-1.0, 2.0])), "weights"),
        (lambda: MLPEncoder.create((2,), 3, key=jax.random.key(0), statistics=Statistics(np.zeros(3), 1.0)), "fit"),
        (
            lambda: MLPEncoder.create((2,), 3, key=jax.random.key(0), statistics=Statistics(np.zeros(2), 0.0)),
            "positive",
        ),
    ],
)
def test_useless_statistics_are_refused(call, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        call()


def test_statistics_shift_and_scale_the_input() -> None:
    statistics = Statistics(np.array([1.0, 2.0], dtype=np.float32), np.array([2.0, 4.0], dtype=np.float32))
    points = observations_of("mlp", 10)
    plain = build_encoder("mlp", (2,), DIM, jax.random.key(0), hidden=(8,))
    shifted = build_encoder("mlp", (2,), DIM, jax.random.key(0), hidden=(8,), statistics=statistics)
    np.testing.assert_allclose(
        shifted.encode(points * statistics.scale + statistics.centre), plain.encode(points), atol=1e-5
    )
    again = MLPEncoder.from_parts(shifted.config(), shifted.arrays())
    assert same_arrays(again.arrays(), shifted.arrays())


def test_the_papers_network_has_three_layers_of_256() -> None:
    encoder = build_encoder("mlp", (2,), 11, jax.random.key(0))
    shapes = {name: array.shape for name, array in encoder.arrays().items() if name.endswith("weight")}
    assert list(shapes.values()) == [(2, 256), (256, 256), (256, 256), (256, 11)]
    conv = build_encoder("conv", (41, 41, 3), 11, jax.random.key(0))
    assert len(conv.kernels) == 2
    assert conv.network.layers[0].weight.shape == (11 * 11 * 16, 256)


@pytest.mark.parametrize("kind", ["mlp", "fourier", "conv"])
def test_untrained_outputs_are_of_order_one(kind: str) -> None:
    shape = {"conv": (20, 20, 3)}.get(kind, (2,))
    data = np.random.default_rng(0).uniform(-0.5, 0.5, (200, *shape))
    encoder = build_encoder(kind, shape, 32, jax.random.key(0), statistics=image_statistics(data))
    assert 0.2 < np.sqrt(np.mean(encoder.encode(data) ** 2)) < 5


def test_frequencies_have_the_stated_scales() -> None:
    frequencies = np.asarray(random_frequencies(3, DEFAULT_SCALES, 4000, key=jax.random.key(0)))
    assert frequencies.shape == (3, 16_000)
    per_scale = frequencies.reshape(3, len(DEFAULT_SCALES), 4000)
    np.testing.assert_allclose(per_scale.std(axis=(0, 2)), DEFAULT_SCALES, rtol=0.03)
    np.testing.assert_allclose(per_scale.mean(axis=(0, 2)) / DEFAULT_SCALES, 0, atol=0.03)


def test_inner_products_of_fourier_features_are_gaussians_of_the_distance() -> None:
    points = np.random.default_rng(0).uniform(-0.1, 0.1, (12, 2)).astype(np.float32)
    scales = (3.0, 10.0)
    frequencies = random_frequencies(2, scales, 20_000, key=jax.random.key(1))
    features = np.asarray(fourier_features(jnp.asarray(points), frequencies))
    assert features.shape == (12, 80_000)
    squared = np.sum((points[:, None] - points[None, :]) ** 2, axis=-1)
    expected = np.mean([np.exp(-(scale**2) * squared / 2) for scale in scales], axis=0)
    np.testing.assert_allclose(features @ features.T / 80_000, expected, atol=0.02)


class RowNetwork(eqx.Module):
    """A user's network for single rows, made one for batches."""

    network: eqx.nn.MLP

    def __init__(self, key: jax.Array) -> None:
        self.network = eqx.nn.MLP(2, DIM, 8, 1, key=key)

    def __call__(self, batch: jax.Array) -> jax.Array:
        return jax.vmap(self.network)(batch)


def test_users_bring_their_own_module() -> None:
    encoder = OwnEncoder.create(RowNetwork(jax.random.key(0)), (2,))
    points = observations_of("mlp", 6)
    assert encoder.dim == DIM
    json.dumps(encoder.config())
    other = OwnEncoder.create(RowNetwork(jax.random.key(1)), (2,))
    assert not np.array_equal(other.encode(points), encoder.encode(points))
    np.testing.assert_array_equal(other.restored(encoder.arrays()).encode(points), encoder.encode(points))
    with pytest.raises(LapwingError, match="files hold no code"):
        OwnEncoder.from_parts(encoder.config(), encoder.arrays())


def test_users_modules_that_do_not_fit_are_refused() -> None:
    with pytest.raises(LapwingError, match="must map"):
        OwnEncoder.create(lambda batch: batch.sum(axis=1), (2,))
    with pytest.raises(LapwingError, match="failed on a batch"):
        OwnEncoder.create(RowNetwork(jax.random.key(0)), (5,))


@pytest.mark.parametrize(
    ("kind", "shape", "options", "message"),
    [
        ("fourrier", (2,), {}, "did you mean fourier"),
        ("mlp", (2,), {"hiden": (3,)}, "did you mean hidden"),
        ("mlp", (2,), {"scales": (3,)}, "no option 'scales'"),
        ("mlp", (2,), {"hidden": (0,)}, "positive whole numbers"),
        ("fourier", (2,), {"scales": ()}, "scales"),
        ("fourier", (2,), {"scales": (-1.0,)}, "scales"),
        ("conv", (2,), {}, "images are"),
        ("table", (), {}, "states"),
        ("table", (2,), {"states": 3}, "states"),
    ],
)
def test_encoders_that_cannot_be_built_are_refused(kind: str, shape: tuple[int, ...], options, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        build_encoder(kind, shape, DIM, jax.random.key(0), **options)


def test_the_default_kind_follows_the_shape() -> None:
    kinds = {shape: default_kind(shape) for shape in [(2,), (8,), (9,), (5, 5), (5, 5, 3), (2, 2, 2, 2)]}
    assert list(kinds.values()) == ["fourier", "fourier", "mlp", "conv", "conv", "mlp"]


@pytest.mark.parametrize(
    "module", ["statistics", "layers", "table", "networks", "fourier", "convolution", "own", "registry"]
)
def test_the_examples_in_the_docstrings_run(module: str) -> None:
    outcome = doctest.testmod(importlib.import_module(f"lapwing.encoders.{module}"))
    assert outcome.attempted > 0
    assert outcome.failed == 0
