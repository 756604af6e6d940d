"""The reflecting walk in a box against its closed form, by quadrature and by enumeration."""

import itertools

import numpy as np
import pytest

from lapwing.environments.box import BoxWorld, box_eigenfunctions
from lapwing.errors import LapwingError

BOXES = {
    "line": BoxWorld((1.0,), 0.1),
    "long line": BoxWorld((7.5,), 1.3),
    "step larger than the side": BoxWorld((0.5,), 1.7),
    "rectangle": BoxWorld((1.0, 0.8), 0.25),
    "square": BoxWorld((1.0, 1.0), 0.3),
    "rectangle in large steps": BoxWorld((1.0, 0.6), 2.3),
    "block": BoxWorld((1.0, 0.8, 0.65), 0.3),
    "cube": BoxWorld((2.0, 2.0, 2.0), 0.5),
}
every_box = pytest.mark.parametrize("box", BOXES.values(), ids=BOXES.keys())


def midpoints(count: int, dimension: int) -> np.ndarray:
    """(count ** dimension, dimension): the middles of equal cells of the unit cube."""
    axis = (np.arange(count) + 0.5) / count
    return np.stack(np.meshgrid(*[axis] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)


def test_points_beyond_a_wall_are_reflected_as_often_as_it_takes() -> None:
    box = BoxWorld((1.0,), 0.1)
    outside = np.array([[-0.25], [1.25], [2.25], [-1.25], [0.25], [3.75], [1.0], [0.0]])
    np.testing.assert_allclose(box.reflect(outside).ravel(), [0.25, 0.75, 0.25, 0.75, 0.25, 0.25, 1.0, 0.0], atol=1e-15)


def test_each_axis_is_reflected_at_its_own_side() -> None:
    box = BoxWorld((1.0, 3.0), 1.0)
    np.testing.assert_allclose(
        box.step(np.array([[0.75, 2.5]]), np.array([[0.5, 1.0]]), np.random.default_rng(0))[0], [[0.75, 2.5]]
    )
    np.testing.assert_allclose(
        box.step(np.array([[0.25, 1.0]]), np.array([[-0.5, 1.0]]), np.random.default_rng(0))[0], [[0.25, 2.0]]
    )


@every_box
def test_the_walk_stays_inside_and_observations_within_half(box: BoxWorld) -> None:
    rng = np.random.default_rng(3)
    points = box.reset(500, rng)
    moved = box.step(points, np.array(rng.uniform(-1, 1, points.shape)), rng)[0]
    for some in (points, moved):
        assert (some >= 0).all()
        assert (some <= box.sides).all()
    assert np.abs(box.observe(moved)).max() <= 0.5
    # Uniform points fill the box: a mean within five standard errors of the middle, and near both walls.
    np.testing.assert_allclose(box.observe(points).mean(axis=0), 0, atol=5 * np.sqrt(1 / 12 / 500))
    assert (np.ptp(box.observe(points), axis=0) > 0.95).all()


@pytest.mark.slow
@every_box
def test_the_closed_form_is_an_eigenpair_of_the_transition_kernel(box: BoxWorld) -> None:
    modes, mu = box.closed_form(12)
    points = box.reset(5, np.random.default_rng(0))
    cells = {1: 20_000, 2: 500, 3: 60}[box.dimension]
    actions = 2 * midpoints(cells, box.dimension) - 1
    # The midpoint rule's own error, relative (pi k step / side / cells)^2 / 6 along each axis.
    errors = ((np.pi * modes * box.max_step / np.array(box.sides) / cells) ** 2 / 6).sum(axis=1)
    for point in points:
        # Observations in float64 here: float32 would blur what the quadrature measures.
        landed = box.reflect(point + box.max_step * np.array(actions)) / np.array(box.sides) - 0.5
        expectation = box_eigenfunctions(modes, landed).mean(axis=0)
        here = box_eigenfunctions(modes, [point / np.array(box.sides) - 0.5])[0]
        # The integrand has kinks at no wall (cosines fold smoothly), so the rule converges at its full order.
        assert (np.abs(expectation - mu * here) <= 2 * np.sqrt(2.0) ** box.dimension * errors + 1e-12).all()


@every_box
def test_the_eigenfunctions_are_orthonormal_under_the_uniform_density(box: BoxWorld) -> None:
    modes, _ = box.closed_form(10)
    cells = {1: 2000, 2: 200, 3: 50}[box.dimension]
    assert modes.max() < cells / 2
    values = box_eigenfunctions(modes, midpoints(cells, box.dimension) - 0.5)
    # On midpoints below the Nyquist number cosines are orthogonal exactly.
    np.testing.assert_allclose(values.T @ values / len(values), np.eye(10), rtol=0, atol=1e-11)


@every_box
@pytest.mark.parametrize("count", [1, 2, 3, 7, 40, 57])  # 57 cuts the square between two equal eigenvalues
def test_modes_come_in_the_order_of_a_full_enumeration(box: BoxWorld, count: int) -> None:
    # Enough per axis that nothing beyond reaches the smallest eigenvalue kept: |sinc(x)| <= 1 / (pi x).
    highest = {1: 2000, 2: 500, 3: 60}[box.dimension]
    grids = np.array(list(itertools.product(range(highest + 1), repeat=box.dimension)))
    products = np.prod(np.sinc(grids * box.max_step / np.array(box.sides)), axis=1)
    order = np.lexsort((*grids.T[::-1], -np.round(products, 12)))[:count]
    assert products[order[-1]] > max(1 / (np.pi * highest * box.max_step / side) for side in box.sides)
    found = box.closed_form(count)
    np.testing.assert_array_equal(found.modes, grids[order])
    np.testing.assert_allclose(found.mu, products[order], rtol=0, atol=1e-13)


def test_a_side_crossed_a_whole_number_of_times_adds_no_modes() -> None:
    modes, mu = BoxWorld((1.0, 0.5), 0.5).closed_form(4)
    assert modes.tolist() == [[0, 0], [1, 0], [5, 0], [9, 0]]
    np.testing.assert_allclose(mu, [1, 2 / np.pi, 2 / (5 * np.pi), 2 / (9 * np.pi)])


def test_a_walk_that_forgets_everything_has_one_mode_and_says_so() -> None:
    box = BoxWorld((1.0, 0.3), 3.0)
    assert box.closed_form(1).modes.tolist() == [[0, 0]]
    with pytest.raises(LapwingError, match="all eigenvalues but one are zero, so 2 modes"):
        box.closed_form(2)


def test_a_walk_that_all_but_forgets_everything_is_refused_in_finite_time() -> None:
    with pytest.raises(LapwingError, match="too close to zero"):
        BoxWorld((1.0,), 1.0 + 1e-10).closed_form(3)


def test_a_step_beyond_all_measure_is_refused() -> None:
    with pytest.raises(LapwingError, match="is too large for a box"):
        BoxWorld((2e-323,), 0.1)


@pytest.mark.parametrize("sides", [(1e9,) * 4, (3e4, 1e9, 1e9)])
def test_steps_so_short_that_all_modes_are_equal_are_refused_before_memory_is_full(sides: tuple[float, ...]) -> None:
    with pytest.raises(LapwingError, match="too close together"):
        BoxWorld(sides, 0.1).closed_form(12)


@pytest.mark.slow
def test_a_cube_of_many_sides_has_all_its_equal_modes() -> None:
    modes, mu = BoxWorld((1.0,) * 32).closed_form(5490)
    # 1 + 32 + 496 + 4,960 products of at most three axes come first, then the first of 35,960 equal ones.
    assert (modes.sum(axis=1)[:5489] <= 3).all()
    np.testing.assert_allclose(mu[-1], np.sinc(0.1) ** 4)


@pytest.mark.parametrize("step", [1e-2, 1e-3, 1e-4, 1e-5])
def test_short_steps_have_the_modes_of_diffusion(step: float) -> None:
    modes, mu = BoxWorld((1.0,), step).closed_form(6)
    assert modes.ravel().tolist() == [0, 1, 2, 3, 4, 5]
    # sinc(x) = 1 - (pi x)^2 / 6 + O(x^4).
    expected = (np.pi * step * np.arange(6)) ** 2 / 6
    np.testing.assert_allclose(1 - mu, expected, rtol=2 * (np.pi * step * 5) ** 2, atol=1e-15)


@pytest.mark.parametrize("sides", [(), (0.0,), (1.0, -1.0), (np.nan,), (1.0, np.inf)])
def test_a_box_without_a_positive_finite_side_is_refused(sides: tuple[float, ...]) -> None:
    with pytest.raises(LapwingError, match="at least one side, each positive and finite"):
        BoxWorld(sides)


@pytest.mark.parametrize("step", [0.0, -0.1, np.nan, np.inf])
def test_a_step_that_is_not_positive_and_finite_is_refused(step: float) -> None:
    with pytest.raises(LapwingError, match="step of a box walk must be positive and finite"):
        BoxWorld((1.0,), step)


def test_sides_may_be_an_array() -> None:
    assert BoxWorld(np.array([1.0, 2.0])).sides == (1.0, 2.0)


@pytest.mark.parametrize("count", [0, -1])
def test_fewer_than_one_mode_is_refused(count: int) -> None:
    with pytest.raises(LapwingError, match=f"at least 1 .*, got {count}"):
        BoxWorld().closed_form(count)


@pytest.mark.parametrize("sides", ["a", None, [[1.0]], [1j], 10**400, {"a": 1}])
def test_sides_that_are_no_numbers_are_refused(sides: object) -> None:
    with pytest.raises(LapwingError, match="at least one side"):
        BoxWorld(sides)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", ["a", None, [0.1], 0.1j, 10**400])
def test_a_step_that_is_no_number_is_refused(step: object) -> None:
    with pytest.raises(LapwingError, match="step of a box walk"):
        BoxWorld((1.0,), step)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", ["a", None, 2.5, 10**9])
def test_a_number_of_modes_that_cannot_be_is_refused(count: object) -> None:
    with pytest.raises(LapwingError, match="number of modes"):
        BoxWorld().closed_form(count)  # type: ignore[arg-type]
