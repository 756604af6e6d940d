"""The noisy rotation against its closed form, by quadrature and by sampling."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.encoders.cosine import CircleEncoder
from lapwing.environments import NoisyRotation, circle_eigenfunctions, make_world, world_from_description
from lapwing.errors import DamagedFileError, LapwingError


@pytest.mark.parametrize(("drift", "noise"), [(0.3, 0.3), (1.0, 0.1), (0.0, 0.2), (-2.5, 0.15)])
def test_the_closed_form_is_that_of_the_symmetrised_kernel_on_a_fine_circle(drift: float, noise: float) -> None:
    count = 360
    angles = 2 * np.pi * np.arange(count) / count
    turns = (angles + np.pi - drift) % (2 * np.pi) - np.pi
    density = np.exp(-0.5 * ((turns[:, None] + 2 * np.pi * np.arange(-3, 4)) / noise) ** 2).sum(axis=1)
    matrix = np.stack([np.roll(density / density.sum(), start) for start in range(count)])
    truth = lw.solve(NoisyRotation(drift, noise), dim=7)
    # Uniform rho: the symmetrised operator is (P + P^T) / 2.
    largest = np.linalg.eigvalsh((matrix + matrix.T) / 2)[::-1][:7]
    np.testing.assert_allclose(truth.mu[:7], largest, atol=1e-9)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    values = truth.transform(points)
    np.testing.assert_allclose((matrix + matrix.T) @ values / 2, values * truth.mu[:7], atol=1e-5)
    np.testing.assert_allclose(values.T @ values / count, np.eye(7), atol=1e-5)


def test_eigenvalues_of_the_shipped_rotation_are_those_of_the_formula_in_falling_order() -> None:
    world = make_world("NoisyRotation")
    truth = lw.solve(world, dim=9)
    k = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4])
    np.testing.assert_allclose(truth.mu[:9], np.cos(0.3 * k) * np.exp(-((0.3 * k) ** 2) / 2), atol=1e-14)
    assert not truth.metadata["reversible"]
    assert len(world.closed_form(1000).mu) == len(lw.solve(world, dim=29).mu) == 29
    with pytest.raises(LapwingError, match="number of positive eigenvalues, 29"):
        lw.solve(world, dim=30)


def test_sampled_steps_have_the_eigenvalues_of_the_closed_form() -> None:
    world = make_world("NoisyRotation")
    exact = world.closed_form(7)
    data = lw.collect(world, 200_000, episode_length=20, seed=2)
    values = circle_eigenfunctions(exact.modes, data.observations)
    positions = np.concatenate(list(data.pair_positions(1)))
    products = (values[positions] * values[positions + 1]).reshape(data.num_episodes, 20, -1).mean(axis=1)
    error = products.std(axis=0) / np.sqrt(data.num_episodes)
    assert (error < 0.01).all()
    assert (np.abs(products.mean(axis=0) - exact.mu) <= 4.5 * error + 1e-6).all()
    # It turns one way: sin(theta' - theta) has mean sin(0.3) exp(-0.045).
    turned = data.observations[positions][:, 0] * data.observations[positions + 1][:, 1]
    turned -= data.observations[positions][:, 1] * data.observations[positions + 1][:, 0]
    assert turned.mean() == pytest.approx(np.sin(0.3) * np.exp(-0.045), abs=0.005)


def test_a_rotation_is_saved_described_and_drawn(tmp_path) -> None:
    world = make_world("NoisyRotation")
    truth = lw.solve(world, dim=5)
    again = lw.load(truth.save(tmp_path))
    points = world.field_points()
    np.testing.assert_array_equal(again.transform(points), truth.transform(points))
    assert world_from_description(world.describe()) == world
    assert len([ax for ax in truth.plot().axes if ax.images]) == 5
    np.testing.assert_allclose(
        world.picture_places(world.observe(np.array([[1.0], [4.0]])))[:, 1], [1.0, 4.0], atol=1e-6
    )


@pytest.mark.parametrize(("arguments", "message"), [((np.inf,), "finite"), ((0.3, 0.0), "at least 0.001")])
def test_a_rotation_that_cannot_be_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        NoisyRotation(*arguments)


@pytest.mark.parametrize("modes", [None, np.zeros((0, 1), int), np.zeros((2, 2), int), np.zeros((2, 1))])
def test_damaged_modes_are_refused(modes: np.ndarray | None) -> None:
    with pytest.raises(DamagedFileError):
        CircleEncoder.from_arrays({} if modes is None else {"modes": modes})
