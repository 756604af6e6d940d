"""An encoder followed by a matrix: values, and the way to files and back."""

import jax
import numpy as np
import pytest

from lapwing.encoders import RotatedEncoder, build_encoder
from lapwing.errors import DamagedFileError

MATRIX = np.random.default_rng(0).standard_normal((5, 3))
POINTS = np.random.default_rng(1).uniform(-0.5, 0.5, (37, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def rotated() -> RotatedEncoder:
    inner = build_encoder("fourier", (2,), 5, jax.random.key(0), hidden=(8,), scales=(3.0,), features_per_scale=4)
    return RotatedEncoder(inner, MATRIX)


def test_values_are_the_inner_ones_times_the_matrix_in_double_precision(rotated: RotatedEncoder) -> None:
    values = rotated.encode(POINTS)
    assert rotated.dim == 3
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, rotated.inner.encode(POINTS).astype(np.float64) @ MATRIX, rtol=1e-12)


def test_its_parts_make_it_again_bit_for_bit(rotated: RotatedEncoder) -> None:
    again = RotatedEncoder.from_parts(rotated.config(), rotated.arrays())
    np.testing.assert_array_equal(again.encode(POINTS), rotated.encode(POINTS))


def test_a_matrix_of_any_layout_gives_the_same_bits() -> None:
    # Files hold rows in order; a slice of a larger matrix, as learning makes, must not round differently.
    inner = build_encoder("mlp", (2,), 17, jax.random.key(0), hidden=(8,))
    wide = np.asfortranarray(np.random.default_rng(0).standard_normal((17, 17)))
    made = RotatedEncoder(inner, wide[:, :11])
    loaded = RotatedEncoder.from_parts(made.config(), {n: np.array(a, order="C") for n, a in made.arrays().items()})
    for count in (1, 2, 37):
        np.testing.assert_array_equal(made.encode(POINTS[:count]), loaded.encode(POINTS[:count]))


@pytest.mark.parametrize("matrix", [np.zeros((4, 3)), np.zeros(5)])
def test_a_matrix_that_does_not_fit_is_refused(rotated: RotatedEncoder, matrix: np.ndarray) -> None:
    with pytest.raises(DamagedFileError):
        RotatedEncoder.from_parts(rotated.config(), {**rotated.arrays(), "matrix": matrix})


def test_an_inner_network_of_unknown_kind_is_refused(rotated: RotatedEncoder) -> None:
    config = {"inner": {"kind": "transformer", "config": {"dim": 5}}}
    with pytest.raises(DamagedFileError):
        RotatedEncoder.from_parts(config, rotated.arrays())
