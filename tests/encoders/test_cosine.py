"""The closed form of the box as an encoder."""

import numpy as np
import pytest

from lapwing.encoders.cosine import SUPPORT_POINTS, CosineEncoder
from lapwing.environments.registry import make_world
from lapwing.errors import ArgumentError, DamagedFileError

MODES = np.array([[0, 0], [1, 0], [0, 2], [3, 1]])


def test_values_are_products_of_cosines() -> None:
    points = np.array([[-0.5, -0.5], [0.0, 0.25], [0.5, 0.1]])
    x, y = np.pi * (points + 0.5).T
    expected = np.column_stack(
        [np.ones(3), np.sqrt(2) * np.cos(x), np.sqrt(2) * np.cos(2 * y), 2.0 * np.cos(3 * x) * np.cos(y)]
    )
    np.testing.assert_allclose(CosineEncoder(MODES).encode(points), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["Box-1", "Box-2", "Box-3"])
def test_components_are_orthonormal_over_the_support(name: str) -> None:
    encoder = CosineEncoder(make_world(name).closed_form(12).modes)  # type: ignore[union-attr]
    points, weights = encoder.support()
    assert weights.sum() == pytest.approx(1.0)
    assert points.shape == (SUPPORT_POINTS, encoder.modes.shape[1])
    assert points.min() > -0.5
    assert points.max() < 0.5
    values = encoder.encode(points)
    np.testing.assert_allclose(values.T @ (values * weights[:, None]), np.eye(12), rtol=0, atol=2e-3)


def test_the_support_is_the_same_every_time() -> None:
    first, second = (CosineEncoder(MODES).support()[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("wrong", [np.zeros(2), np.zeros((4, 3)), np.zeros((4, 2, 1))], ids=["flat", "wide", "deep"])
def test_points_of_another_shape_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(ArgumentError):
        CosineEncoder(MODES).encode(wrong)


def test_the_parts_make_the_same_encoder_again() -> None:
    encoder = CosineEncoder(MODES)
    again = CosineEncoder.from_arrays(encoder.arrays())
    assert again.dim == 4
    np.testing.assert_array_equal(again.modes, MODES)


@pytest.mark.parametrize("wrong", [MODES[0], MODES + 0.5, MODES - 1], ids=["flat", "fractions", "negative"])
def test_mode_numbers_that_are_none_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(DamagedFileError):
        CosineEncoder.from_arrays({"modes": wrong})
