"""What every network encoder must do: shapes, keys, files, compilation, bad input; and what each computes."""

import json
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.devices import IMAGES_IN_CACHE
from lapwing.encoders import (
    NetworkEncoder,
    Statistics,
    build_encoder,
    default_kind,
    encoder_options,
    own_encoder,
    trainable_filter,
)
from lapwing.encoders.convolution import ConvolutionalNetwork, as_patches, strided_convolution
from lapwing.encoders.encoder import Encoder
from lapwing.encoders.fourier import DEFAULT_SCALES, fourier_features, random_frequencies
from lapwing.encoders.layers import image_statistics, random_layers, range_statistics
from lapwing.encoders.networks import CHUNK_ROWS
from lapwing.errors import ArgumentError, DamagedFileError, LapwingError, UnknownNameError

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
    monkeypatch.setattr("lapwing.encoders.networks.CHUNK_ROWS", 8)
    encoder, observations = built(kind), observations_of(kind, 21)
    plain = np.asarray(eqx.filter_jit(encoder)(jnp.asarray(observations)))
    np.testing.assert_allclose(encoder.encode(observations), plain, rtol=1e-5, atol=1e-5)


def test_many_row_counts_share_few_programs() -> None:
    traces = []

    def module(batch: jax.Array) -> jax.Array:
        traces.append(batch.shape)
        return batch[:, :1]

    encoder = own_encoder(module, (2,))
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
    again = NetworkEncoder.from_parts(kind, config, arrays)
    assert again.kind == kind
    assert again.config() == encoder.config()
    assert same_arrays(again.arrays(), encoder.arrays())
    observations = observations_of(kind, 6)
    assert again.encode(observations).tobytes() == encoder.encode(observations).tobytes()
    assert jax.tree.structure(again) == jax.tree.structure(encoder)


@pytest.mark.parametrize("kind", KINDS)
def test_broken_parts_are_refused(kind: str) -> None:
    encoder = built(kind)
    config, arrays = encoder.config(), encoder.arrays()
    name = sorted(arrays)[-1]
    for wrong_config, wrong_arrays in (
        (config, {other: array for other, array in arrays.items() if other != name}),
        (config, arrays | {"extra": np.zeros(1)}),
        (config, arrays | {name: np.zeros((1, 1, 1), dtype=np.float32)}),
        (config, arrays | {name: arrays[name].astype(np.float64)}),
        (config | {"colour": "red"}, arrays),
        (config | {"dim": 0}, arrays),
    ):
        with pytest.raises(DamagedFileError):
            NetworkEncoder.from_parts(kind, wrong_config, wrong_arrays)


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_decides_everything(kind: str) -> None:
    assert same_arrays(built(kind, 4).arrays(), built(kind, 4).arrays())
    assert not same_arrays(built(kind, 4).arrays(), built(kind, 5).arrays())


@pytest.mark.slow
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


def test_a_table_takes_ids_and_has_no_more_components_than_states() -> None:
    encoder = built("table")
    np.testing.assert_array_equal(encoder.encode(np.array([8, 0])), np.asarray(encoder.module.values)[[8, 0]])
    with pytest.raises(ArgumentError):
        encoder.encode(np.array([[1]]))
    with pytest.raises(ArgumentError):
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
    "call",
    [
        lambda: image_statistics(np.zeros((0, 2))),
        lambda: range_statistics(np.array([[np.nan]])),
        lambda: image_statistics(np.zeros((2, 2)), np.array([-1.0, 2.0])),
        lambda: build_encoder("mlp", (2,), 3, jax.random.key(0), statistics=Statistics(np.zeros(3), np.ones(()))),
        lambda: build_encoder("mlp", (2,), 3, jax.random.key(0), statistics=Statistics(np.zeros(2), np.zeros(()))),
    ],
)
def test_useless_statistics_are_refused(call) -> None:
    with pytest.raises(LapwingError):
        call()


def test_statistics_shift_and_scale_the_input() -> None:
    statistics = Statistics(np.array([1.0, 2.0], dtype=np.float32), np.array([2.0, 4.0], dtype=np.float32))
    points = observations_of("mlp", 10)
    plain = build_encoder("mlp", (2,), DIM, jax.random.key(0), hidden=(8,))
    shifted = build_encoder("mlp", (2,), DIM, jax.random.key(0), hidden=(8,), statistics=statistics)
    np.testing.assert_allclose(
        shifted.encode(points * statistics.scale + statistics.centre), plain.encode(points), atol=1e-5
    )
    again = NetworkEncoder.from_parts("mlp", shifted.config(), shifted.arrays())
    assert same_arrays(again.arrays(), shifted.arrays())


def test_the_papers_network_has_three_layers_of_256() -> None:
    encoder = build_encoder("mlp", (2,), 11, jax.random.key(0))
    shapes = {name: array.shape for name, array in encoder.arrays().items() if name.endswith("weight")}
    assert list(shapes.values()) == [(2, 256), (256, 256), (256, 256), (256, 11)]
    conv = build_encoder("conv", (41, 41, 3), 11, jax.random.key(0))
    assert len(conv.module.kernels) == 2
    assert conv.module.network.layers[0].weight.shape == (11 * 11 * 16, 256)


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


@pytest.mark.parametrize(
    ("kind", "shape", "options", "error"),
    [
        ("fourrier", (2,), {}, UnknownNameError),
        ("mlp", (2,), {"hiden": (3,)}, UnknownNameError),
        ("mlp", (2,), {"scales": (3,)}, UnknownNameError),
        ("mlp", (2,), {"hidden": (0,)}, ArgumentError),
        ("mlp", (2,), {"hidden": "big"}, ArgumentError),
        ("mlp", (2,), {"outputs": "symlogg"}, UnknownNameError),
        ("mlp", (2,), {"hidden": np.zeros(2)}, ArgumentError),
        ("fourier", (2,), {"scales": ()}, ArgumentError),
        ("fourier", (2,), {"scales": (-1.0,)}, ArgumentError),
        ("fourier", (2,), {"scales": (math.nan,)}, ArgumentError),
        ("conv", (2,), {}, ArgumentError),
        ("table", (), {}, ArgumentError),
        ("table", (2,), {"states": 3}, ArgumentError),
    ],
)
def test_encoders_that_cannot_be_built_are_refused(
    kind: str, shape: tuple[int, ...], options, error: type[LapwingError]
) -> None:
    with pytest.raises(error):
        build_encoder(kind, shape, DIM, jax.random.key(0), **options)


def test_the_default_kind_follows_the_shape() -> None:
    kinds = {shape: default_kind(shape) for shape in [(2,), (8,), (9,), (5, 5), (5, 5, 3), (2, 2, 2, 2)]}
    assert list(kinds.values()) == ["fourier", "fourier", "mlp", "conv", "conv", "mlp"]


def test_options_come_from_the_factory_and_centring_can_be_turned_off() -> None:
    assert set(encoder_options("conv")) == {
        *("channels", "hidden", "centre", "activation", "outputs", "channels_first", "patch")
    }
    statistics = image_statistics(observations_of("conv", 20))
    raw = build_encoder("conv", (6, 7, 3), DIM, jax.random.key(0), statistics=statistics, centre=False, hidden=(4,))
    assert not raw.arrays()["inputs.centre.array"].any()
    again = NetworkEncoder.from_parts("conv", raw.config(), raw.arrays())
    assert same_arrays(again.arrays(), raw.arrays())


@pytest.mark.parametrize("kind", ["mlp", "fourier", "conv"])
def test_the_symmetric_logarithm_of_outputs_survives_saving(kind: str) -> None:
    observations = observations_of(kind, 20)
    plain, logarithmic = (
        build_encoder(kind, observations.shape[1:], DIM, jax.random.key(0), hidden=(8,), outputs=outputs)
        for outputs in ("linear", "symlog")
    )
    values = plain.encode(observations)
    expected = np.sign(values) * np.log1p(np.abs(values))
    again = NetworkEncoder.from_parts(kind, logarithmic.config(), logarithmic.arrays())
    for encoder in (logarithmic, again):
        np.testing.assert_allclose(encoder.encode(observations), expected, rtol=1e-6)


@pytest.mark.parametrize("boast", [{"features_per_scale": 10**10}, {"hidden": [10**9, 10**9]}, {"dim": 10**12}])
def test_a_configuration_from_a_file_allocates_nothing(boast: dict[str, object]) -> None:
    encoder = built("fourier")
    with pytest.raises(DamagedFileError):
        NetworkEncoder.from_parts("fourier", encoder.config() | boast, encoder.arrays())


def test_layouts_of_images_are_told_by_their_shape_and_give_the_same_values() -> None:
    images = np.random.default_rng(0).integers(0, 255, (5, 20, 24, 3), dtype=np.uint8)
    last = build_encoder("conv", (20, 24, 3), 4, jax.random.key(0))
    first = build_encoder("conv", (3, 20, 24), 4, jax.random.key(0))
    frames = build_encoder("conv", (3, 20, 24, 1), 4, jax.random.key(0))
    wanted = last.encode(images)
    np.testing.assert_allclose(first.encode(np.moveaxis(images, -1, 1)), wanted, rtol=1e-6)
    np.testing.assert_allclose(frames.encode(np.moveaxis(images, -1, 1)[..., None]), wanted, rtol=1e-6)
    # Twenty channels of a small grid are not frames, unless that is said.
    grid = build_encoder("conv", (7, 9, 20), 4, jax.random.key(0), channels_first=True)
    assert grid.encode(np.zeros((2, 7, 9, 20))).shape == (2, 4)
    assert len(grid.module.kernels[0].weight) == 9 * 7
    with pytest.raises(ArgumentError, match="three axes"):
        build_encoder("conv", (20, 24), 4, jax.random.key(0), channels_first=True)


def test_a_few_stacked_vectors_are_not_an_image() -> None:
    assert default_kind((3, 17)) == "mlp"
    assert default_kind((4, 84, 84, 3)) == default_kind((4, 84, 84)) == default_kind((7, 7, 3)) == "conv"


def test_patches_are_those_of_the_image_and_the_last_ones_are_padded() -> None:
    images = np.random.default_rng(0).standard_normal((3, 7, 10, 2)).astype(np.float32)
    found = np.asarray(as_patches(jax.numpy.asarray(images), 4))
    assert found.shape == (3, 2, 3, 32)
    np.testing.assert_array_equal(found[1, 0, 1], images[1, :4, 4:8].reshape(-1))
    np.testing.assert_array_equal(found[2, 1, 2].reshape(4, 4, 2)[:3, :2], images[2, 4:, 8:])
    assert not found[2, 1, 2].reshape(4, 4, 2)[3:].any()
    assert not found[2, 1, 2].reshape(4, 4, 2)[:, 2:].any()


@pytest.mark.parametrize("patch", [1, 5])
def test_images_with_patches_save_and_load(patch: int) -> None:
    encoder = build_encoder("conv", (12, 15, 3), 4, jax.random.key(0), patch=patch, hidden=(8,))
    assert (encoder.module.embedding is None) == (patch == 1)
    again = NetworkEncoder.from_parts("conv", encoder.config(), encoder.arrays())
    images = np.random.default_rng(0).integers(0, 255, (5, 12, 15, 3), dtype=np.uint8)
    np.testing.assert_array_equal(again.encode(images), encoder.encode(images))
    with pytest.raises(ArgumentError, match="at least 1"):
        build_encoder("conv", (12, 15, 3), 4, jax.random.key(0), patch=0)


@pytest.mark.parametrize("rows", [IMAGES_IN_CACHE, IMAGES_IN_CACHE + 1, 3 * IMAGES_IN_CACHE])
def test_values_and_derivatives_of_blocks_are_those_of_the_whole_batch(rows: int) -> None:
    network = build_encoder("conv", (6, 7), 4, jax.random.key(0), hidden=(8,)).module
    images = jax.random.normal(jax.random.key(1), (rows, 6, 7))
    weights = jax.random.normal(jax.random.key(2), (rows, 4))

    def loss(module: ConvolutionalNetwork, blocks: bool) -> tuple[jax.Array, jax.Array]:
        outputs = module(images) if blocks else module._outputs(images)
        return (outputs * weights).sum(), outputs

    derivatives = eqx.filter_jit(eqx.filter_grad(loss, has_aux=True))
    (gradients, outputs), (expected, whole) = (derivatives(network, blocks) for blocks in (True, False))
    np.testing.assert_allclose(outputs, whole, rtol=1e-5, atol=1e-5)
    for one, other in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
