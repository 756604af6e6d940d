"""Worlds with noise beside their coordinates or seen as images keep the steps and the truth of the world behind."""

from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.environments import (
    BoxWorld,
    ContinuousMaze,
    ImageObservations,
    Layout,
    NoisyObservations,
    World,
    make_world,
    world_from_description,
)
from lapwing.errors import LapwingError

BOX = BoxWorld((1.0, 0.8), 0.2, "Small")
MAZE = ContinuousMaze(Layout.from_text("...\n.XX\n..X", "Hook"), 0.6, "uniform")
INNER: dict[str, World] = {"box": BOX, "maze": MAZE, "grid": make_world("GridMaze-7")}
WRAPPED = {
    f"{wrapper.__name__} of {name}": wrapper(inner)
    for wrapper in (NoisyObservations, ImageObservations)
    for name, inner in INNER.items()
}
every_wrapper = pytest.mark.parametrize("world", WRAPPED.values(), ids=WRAPPED.keys())


@every_wrapper
def test_the_ground_truth_is_that_of_the_world_behind(world: Any, tmp_path: Any) -> None:
    behind, truth = lw.solve(world.inner, dim=4), lw.solve(world, dim=4)
    np.testing.assert_array_equal(truth.mu, behind.mu)
    points = world.inner.field_points()
    np.testing.assert_allclose(truth.transform(world.see(points)), behind.transform(points), atol=1e-3)
    assert lw.score(truth, truth).cosine == pytest.approx(1)
    seen, weights = truth.encoder.support()
    assert weights.sum() == pytest.approx(1)
    values = truth.transform(seen)
    np.testing.assert_allclose(values.T @ (values * weights[:, None]), np.eye(4), atol=0.02)
    again = lw.load(truth.save(tmp_path))
    np.testing.assert_array_equal(again.transform(seen), values)
    assert truth.metadata["world"] == world.describe()


@every_wrapper
def test_it_steps_as_the_world_behind_and_is_described(world: Any) -> None:
    again = world_from_description(world.describe())
    assert again is not None
    assert again.describe() == world.describe()
    data = lw.collect(world, 300, episode_length=10, seed=4)
    assert data.observations.shape[1:] == world.observation_shape
    same = lw.collect(again, 300, episode_length=10, seed=4)
    np.testing.assert_array_equal(data.observations, same.observations)
    assert world.name in lw.solve(world, dim=2).__repr__()


def test_noise_is_independent_of_state_and_of_time_and_has_its_deviation() -> None:
    world = NoisyObservations(BOX, 3, 0.3)
    data = lw.collect(world, 40_000, episode_length=20, seed=0)
    clean, noise = data.observations[:, :2], data.observations[:, 2:]
    assert np.abs(clean).max() <= 0.5
    np.testing.assert_allclose(noise.std(axis=0), 0.3, rtol=0.02)
    np.testing.assert_allclose(np.corrcoef(noise.T, clean.T)[:3] - np.eye(3, 5), 0, atol=0.03)
    positions = np.concatenate(list(data.pair_positions(1)))
    products = (noise[positions] * noise[positions + 1]).mean(axis=0) / 0.09
    np.testing.assert_allclose(products, 0, atol=0.03)


def test_a_state_seen_twice_shows_the_same() -> None:
    world = NoisyObservations(MAZE, 4)
    states = world.reset(5, np.random.default_rng(0))
    np.testing.assert_array_equal(world.observe(states), world.observe(states))
    np.testing.assert_array_equal(world.see(BOX.field_points()), world.see(BOX.field_points()))


@pytest.mark.parametrize("inner", INNER.values(), ids=INNER.keys())
def test_the_middle_of_the_blob_is_where_the_agent_is_to_a_twentieth_of_a_pixel(inner: World) -> None:
    world = ImageObservations(inner, 48)
    states = inner.reset(50, np.random.default_rng(0))
    images = world.observe(states)
    assert images.dtype == np.uint8
    light = (images - world._background) / (255.0 - world._background)
    light[light < 0.05] = 0
    ticks = np.arange(48) + 0.5
    middle = np.stack([light.sum(axis=3 - axis) @ ticks for axis in (1, 2)], axis=1) / light.sum(axis=(1, 2))[:, None]
    corner, margin, per_unit = world._scale
    expected = (inner.picture_places(inner.observe(states)) - corner) * per_unit + margin
    inside = ((expected > 4) & (expected < 44)).all(axis=1)
    assert inside.sum() > 10
    np.testing.assert_allclose(middle[inside], expected[inside], atol=0.05)


def test_images_of_points_a_tenth_of_a_pixel_apart_differ_and_walls_are_dark() -> None:
    world = ImageObservations(MAZE, 32)
    first = np.array([[0.5, 0.5]])
    assert (world.observe(first) != world.observe(first + 0.1 * 3 / 32)).any()
    image = world.observe(first)[0]
    assert image[14:18, 14:18].max() == 40  # the wall in the middle
    assert image[5, 5] > 250
    assert image[4, 28] == 150


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoisyObservations(BOX, 0), "1 to 10,000 dimensions"),
        (lambda: NoisyObservations(BOX, 3, -1.0), "is positive"),
        (lambda: NoisyObservations(make_world("GridMaze-7", observation="pixels")), "are vectors"),
        (lambda: ImageObservations(make_world("Box-3")), "one or two coordinates"),
        (lambda: ImageObservations(BOX, 4), "8 to 256 pixels"),
        (lambda: ImageObservations(BOX).with_options(observation="xy"), "pixels is its only observation"),
        (lambda: NoisyObservations(BOX).with_options(slip=0.5), "is a continuous box"),
    ],
)
def test_what_cannot_be_wrapped_is_refused(make: Any, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        make()


def test_a_description_wrapped_in_itself_is_not_followed() -> None:
    description = NoisyObservations(BOX).describe()
    for _ in range(3000):
        description = {**description, "world": description}
    assert world_from_description(description) is None


def test_images_of_any_size_by_name() -> None:
    world = make_world("images:20:UMaze")
    assert world.observation_shape == (20, 20)
    again = world_from_description(world.describe())
    assert again is not None
    assert again.describe() == world.describe()
    for name, message in (
        ("images:UMaze", "images:84:UMaze"),
        ("images:84:", "PIXELS:NAME"),
        ("images:4:UMaze", "8 to"),
    ):
        with pytest.raises(LapwingError, match=message):
            make_world(name)
    with pytest.raises(LapwingError, match="one or two coordinates"):
        make_world("images:20:UMaze-29")
