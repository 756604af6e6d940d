"""Products of worlds against the Kronecker product, where that can still be formed, and far beyond."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.environments import (
    BoxWorld,
    GridWorld,
    NoisyObservations,
    NoisyRotation,
    ProductWorld,
    make_world,
    room,
    world_from_description,
)
from lapwing.errors import LapwingError

SMALL = ("product:GridMaze-7*room:3x4", "product:room:4x4*room:3x5", "product:room:2x3*room:2x2*GridMaze-7")


def kronecker(world: ProductWorld) -> np.ndarray:
    matrix = np.ones((1, 1))
    for factor in world.factors:
        matrix = np.kron(matrix, factor.transition_matrix().toarray())
    return matrix


def every_observation(world: ProductWorld) -> np.ndarray:
    tables = [factor.table() for factor in world.factors]
    places = np.indices([len(table) for table in tables]).reshape(len(tables), -1)
    return np.concatenate([table[place] for table, place in zip(tables, places, strict=True)], axis=1)


@pytest.mark.parametrize("name", SMALL)
def test_the_spectrum_is_that_of_the_kronecker_product(name: str) -> None:
    world = make_world(name)
    truth = lw.solve(world, dim=12)
    matrix = kronecker(world)
    np.testing.assert_allclose(truth.mu[:12], np.linalg.eigvalsh(matrix)[::-1][:12], atol=1e-12)
    values = truth.transform(every_observation(world))
    np.testing.assert_allclose(matrix @ values, values * truth.mu[:12], atol=1e-10)
    np.testing.assert_allclose(values.T @ values / len(values), np.eye(12), atol=1e-10)


def test_two_negative_eigenvalues_make_a_positive_one() -> None:
    # An empty room has eigenvalues near -1, whose products belong to the largest.
    world = make_world("product:room:9x9*room:10x10")
    truth = lw.solve(world, dim=30)
    factors = [np.linalg.eigvalsh(factor.transition_matrix().toarray()) for factor in world.factors]
    expected = np.sort(np.outer(*factors).ravel())[::-1][:30]
    np.testing.assert_allclose(truth.mu[:30], expected, atol=1e-12)
    positive = np.sort(np.outer(*(mu[mu > 0] for mu in factors)).ravel())[::-1][:30]
    assert (expected - positive).max() > 1e-3


def test_a_large_factor_is_searched_at_both_ends_too() -> None:
    world = make_world("product:room:25x24*room:2x3")
    expected = np.sort(
        np.outer(*(np.linalg.eigvalsh(factor.transition_matrix().toarray()) for factor in world.factors)).ravel()
    )[::-1]
    np.testing.assert_allclose(lw.solve(world, dim=10).mu[:10], expected[:10], atol=1e-9)


def test_a_product_of_a_hundred_million_states_is_solved_without_listing_them(tmp_path) -> None:
    world = make_world("product:maze:80x64:1*maze:80x64:2")
    assert world.summary()["states"] > 10**8
    truth = lw.solve(world, dim=6)
    first, second = (lw.solve(factor, dim=6) for factor in world.factors)
    expected = np.sort(np.outer(first.mu, second.mu).ravel())[::-1][:6]
    np.testing.assert_allclose(truth.mu[:6], expected, atol=1e-12)
    data = lw.collect(world, 200, episode_length=20)
    assert truth.transform(data.observations).shape == (len(data.observations), 6)
    again = lw.load(truth.save(tmp_path))
    np.testing.assert_array_equal(again.transform(data.observations), truth.transform(data.observations))
    assert lw.score(again, truth).cosine == pytest.approx(1)


def test_continuous_factors_multiply_their_closed_forms() -> None:
    world = ProductWorld((BoxWorld((1.0,), 0.3), BoxWorld((0.8,), 0.3)))
    together = BoxWorld((1.0, 0.8), 0.3)
    truth, exact = lw.solve(world, dim=8), lw.solve(together, dim=8)
    np.testing.assert_allclose(truth.mu[:8], exact.mu[:8], atol=1e-12)
    points = together.field_points()
    np.testing.assert_allclose(truth.transform(points), exact.transform(points), atol=1e-12)
    seen, weights = truth.encoder.support()
    values = truth.transform(seen)
    np.testing.assert_allclose(values.T @ (values * weights[:, None]), np.eye(8), atol=0.01)


def test_a_product_beside_noise_is_solved_and_loaded(tmp_path) -> None:
    world = NoisyObservations(make_world("product:GridMaze-7*room:3x3"), 2)
    truth = lw.solve(world, dim=4)
    np.testing.assert_array_equal(truth.mu, lw.solve(world.inner, dim=4).mu)
    data = lw.collect(world, 100)
    again = lw.load(truth.save(tmp_path))
    np.testing.assert_array_equal(again.transform(data.observations), truth.transform(data.observations))
    found = world_from_description(world.describe())
    assert found is not None
    assert found.describe() == world.describe()


def test_every_factor_makes_its_step_and_actions_count_through() -> None:
    world = make_world("product:room:3x3*room:3x4")
    rng = np.random.default_rng(0)
    states = world.reset(2000, rng)
    moved, made = world.step(states, None, rng)
    assert isinstance(world.actions, int)
    assert made.max() < world.actions == 16
    same, again = world.step(states, made, rng)
    np.testing.assert_array_equal(same, moved)
    np.testing.assert_array_equal(again, made)
    for number, action in (("0", made // 4), ("1", made % 4)):
        factor = world.factors[int(number)]
        assert isinstance(factor, GridWorld)
        np.testing.assert_array_equal(moved[number], factor.successors[states[number], action])
    with pytest.raises(LapwingError, match="an action outside 0 to 15"):
        world.step(states, np.full(2000, 16), rng)
    with pytest.raises(LapwingError, match="actions of shape"):
        world.step(states, np.zeros(2000), rng)


def test_a_product_is_described_and_drawn() -> None:
    world = make_world("product:Box-2*UMaze")
    again = world_from_description(world.describe())
    assert again is not None
    assert again.describe() == world.describe()
    assert lw.collect(world, 100, seed=1, record="actions").actions.shape[1] == 4
    assert world.field_image(np.zeros(len(world.field_points()))).shape == (96, 96)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_world("product:Box-1"), "2 to 8 worlds"),
        (lambda: make_world("product:Box-1*GridMaze-7"), "all numbered actions"),
        (lambda: make_world("product:Box-1*nothing"), "unknown world 'nothing'"),
        (lambda: make_world("product:UMaze-Pixels*Box-1"), "not observed as a vector"),
        (lambda: make_world("product:UMaze-29*Box-1"), "stands for other worlds"),
        (lambda: lw.solve(ProductWorld((BoxWorld((1.0,), 0.4),) * 2), 12), "need its negative eigenvalues"),
        (lambda: make_world("product:Box-1*Box-1", slip=0.1), "give options to its factors"),
        (lambda: ProductWorld(GridWorld(room(2, 2))), "2 to 8 worlds"),  # type: ignore[arg-type]
        (lambda: lw.solve(ProductWorld((NoisyRotation(), BoxWorld((1.0,)))), 3), "NoisyRotation is directed"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused(make, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        make()
