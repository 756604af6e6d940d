"""Diffusions in a potential: rates of the literature, detailed balance, and sampled steps against the matrix."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.environments import PotentialWorld, make_world, world_from_description
from lapwing.environments.potential import CELLS, POTENTIALS
from lapwing.errors import LapwingError

RATES = {"DoubleWell": (0.74868, 6.0041, 11.6607), "FourWell": (1.19899, 7.8885, 15.3614)}
every_well = pytest.mark.parametrize("name", RATES)


@every_well
def test_rates_are_those_of_the_diffusion(name: str) -> None:
    world = make_world(name)
    truth = lw.solve(world, dim=11)
    np.testing.assert_allclose(-np.log(truth.mu[1:4]) / world.time_step, RATES[name], rtol=0.002)
    assert (np.diff(truth.mu) < 0).all()
    # Longer steps have the same rates, to rounding: P is the exact exponential of one generator.
    longer = lw.solve(PotentialWorld(world.potential, 7 * world.time_step), dim=4)
    np.testing.assert_allclose(longer.mu[:4], truth.mu[:4] ** 7, rtol=1e-7)


@every_well
def test_the_chain_is_stochastic_reversible_and_weighs_by_boltzmann(name: str) -> None:
    world = make_world(name)
    grid = world.discretisation()
    matrix = grid.matrix.toarray()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    flow = matrix * grid.weights[:, None]
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    shape = POTENTIALS[world.potential]
    x = (grid.observations[:, 0] + 0.5) * (shape.high - shape.low) + shape.low
    boltzmann = np.exp(-shape.energy(x.astype(float)))
    np.testing.assert_allclose(grid.weights, boltzmann / boltzmann.sum(), atol=1e-7)
    # What is cut off at the ends weighs nothing.
    assert grid.weights[[0, -1]].max() < 1e-6


@every_well
def test_step_frequencies_match_the_matrix_and_never_repeat(name: str) -> None:
    world = make_world(name)
    rng = np.random.default_rng(0)
    matrix = world.discretisation().matrix.toarray()
    shape = POTENTIALS[world.potential]
    for cell in (120, 250, 333):
        start = np.full((50_000, 1), shape.low + world._spacing * (cell + 0.3))
        moved, made = world.step(start, None, rng)
        assert np.abs(made).max() <= 1
        landed = ((moved[:, 0] - shape.low) / world._spacing).astype(int)
        counts = np.bincount(landed, minlength=CELLS)
        expected = 50_000 * matrix[cell]
        likely = expected > 5
        statistic = ((counts[likely] - expected[likely]) ** 2 / expected[likely]).sum()
        assert abs(statistic - likely.sum()) < 5 * np.sqrt(2 * likely.sum())
        assert counts[expected < 1e-6].sum() == 0
        assert len(np.unique(moved)) == len(moved)


@every_well
def test_starts_are_stationary_and_stay_so(name: str) -> None:
    world = make_world(name)
    rng = np.random.default_rng(1)
    points = world.reset(50_000, rng)
    before = points.copy()
    for _ in range(5):
        points = world.step(points, None, rng)[0]
    for power in (1, 2, 3):
        a, b = (values[:, 0] ** power for values in (before, points))
        assert abs(a.mean() - b.mean()) < 5 * (a.std() + b.std()) / np.sqrt(50_000)


def test_an_action_is_the_quantile_of_the_next_point() -> None:
    world = make_world("DoubleWell")
    start = np.zeros((5, 1))
    moved, made = world.step(start, np.array([[-9.0], [-0.5], [0.0], [0.5], [1.0]]), np.random.default_rng(0))
    assert (np.diff(moved[:, 0]) > 0).all()
    assert abs(moved[2, 0]) < 0.01
    assert made[0, 0] == -1
    with pytest.raises(LapwingError, match="finite actions of shape"):
        world.step(start, np.zeros(5), np.random.default_rng(0))


@every_well
def test_a_well_is_described_drawn_and_saved(name: str, tmp_path) -> None:
    world = make_world(name)
    assert world_from_description(world.describe()) == world
    truth = lw.solve(world, dim=3)
    again = lw.load(truth.save(tmp_path))
    points = world.field_points(200)
    np.testing.assert_array_equal(again.transform(points), truth.transform(points))
    # The slowest component tells left from right.
    assert truth.transform(points)[20, 1] * truth.transform(points)[180, 1] < 0
    assert len([ax for ax in truth.plot().axes if ax.images]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"), [(("triple",), "unknown potential"), (("double_well", 0.0), "takes a time of")]
)
def test_a_well_that_cannot_be_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        PotentialWorld(*arguments)
