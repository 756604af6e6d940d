"""Components drawn at observations: the inputs chosen, points, images, numbered states, wrong arguments."""

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError
from lapwing.plots import observations_figure
from lapwing.plots.observation_arrays import array_to_draw, picture_of
from lapwing.plots.observation_maps import explaining_inputs, extremes_of

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def maze() -> tuple[lw.LaplacianRepresentation, np.ndarray]:
    return lw.solve("UMaze", dim=4), np.asarray(lw.collect("UMaze", 3_000, seed=0).observations)


@pytest.mark.parametrize("pair", [(0, 1), (1, 3), (0, 4)])
def test_the_inputs_that_explain_most_are_found_among_noise(pair: tuple[int, int]) -> None:
    points = RNG.normal(size=(3_000, 5))
    values = np.stack([np.cos(points[:, pair[0]]), np.sin(points[:, pair[1]])], axis=1)
    assert explaining_inputs(points, values) == pair


def test_many_inputs_are_ranked_one_by_one_first() -> None:
    points = RNG.normal(size=(3_000, 40))
    assert explaining_inputs(points, points[:, [33]] + points[:, [7]]) == (7, 33)


def test_points_lie_at_their_inputs_and_have_the_components_colours(
    maze: tuple[lw.LaplacianRepresentation, np.ndarray],
) -> None:
    model, points = maze
    figure = observations_figure(model, points, [3], inputs=(1, 0))
    (scatter,) = figure.axes[0].collections
    np.testing.assert_allclose(scatter.get_offsets(), points[:, ::-1])
    np.testing.assert_allclose(scatter.get_array(), model.transform(points)[:, 2])
    assert figure.get_supxlabel() == "observation[1]"


def test_every_component_but_the_constant_one_has_a_panel(maze: tuple[lw.LaplacianRepresentation, np.ndarray]) -> None:
    figure = observations_figure(*maze, style=lw.plots.SCREEN)
    titles = [ax.get_title() for ax in figure.axes if ax.collections]
    assert [title.split("{")[1][0] for title in titles] == ["2", "3", "4"]


def test_numbered_states_are_drawn_by_their_number() -> None:
    model = lw.solve(np.eye(6)[[1, 2, 3, 4, 5, 0]] / 2 + np.eye(6)[[5, 0, 1, 2, 3, 4]] / 2, dim=3)
    rows = np.eye(6, dtype=np.float32)
    states = lw.from_arrays(rows[RNG.integers(0, 6, 400)], lengths=[400])
    counted = lw.solve(states, dim=3)
    figure = observations_figure(counted, rows)
    assert figure.get_supxlabel() == "state"
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), np.arange(6))
    assert model.dim == 3


class Brightness:
    """Components of an image: a constant, and its brightness."""

    dim, kind = 2, "brightness"

    def encode(self, images: np.ndarray) -> np.ndarray:
        flat = np.asarray(images, dtype=np.float64).reshape(len(images), -1).mean(axis=1)
        return np.stack([np.ones(len(flat)), flat / 100 - 1], axis=1)


def test_images_are_shown_at_both_ends_in_order() -> None:
    images = np.repeat(np.arange(0, 200, 10, dtype=np.uint8), 400).reshape(20, 20, 20)[RNG.permutation(20)]
    model = lw.LaplacianRepresentation(Brightness(), np.array([1.0, 0.9]), 2)  # type: ignore[arg-type]
    figure = observations_figure(model, np.concatenate([images, images]), style=lw.plots.SCREEN)
    shown = {ax.get_title(): float(ax.images[0].get_array().mean()) for ax in figure.axes if ax.images}
    # Equal images are shown once; a tenth are two of them.
    ends = np.array([0, 10, 20, 30, 160, 170, 180, 190]) / 190
    np.testing.assert_allclose(list(shown.values()), [*ends, 5 / 190, 185 / 190, 180 / 190])
    assert list(shown)[-3:] == ["low mean", "high mean", "difference"]


def test_the_difference_of_the_means_shows_where_a_component_looks() -> None:
    images = np.full((100, 12, 16, 3), 0.5)
    column = np.linspace(-1, 1, 100)
    images[:, 3, 5] += 0.5 * column[:, None]
    found = extremes_of(images, column)
    assert np.unravel_index(np.abs(found.difference).argmax(), (12, 16)) == (3, 5)
    assert np.count_nonzero(np.abs(found.difference) > 1e-12) == 1
    np.testing.assert_array_equal(found.lowest_values, column[:4])


def test_the_newest_frame_of_a_stack_is_shown() -> None:
    stack = np.stack([np.full((20, 20), shade) for shade in (0, 1, 2, 3)])
    assert (picture_of(stack) == 3).all()
    assert (picture_of(np.moveaxis(stack, 0, -1)) == 3).all()


class Named:
    """Stands for a representation of observations with several keys."""

    dim, metadata, eigenvalues, encoder = 2, {}, np.array([0.0, 0.1]), None

    def transform(self, observations: dict[str, np.ndarray]) -> np.ndarray:
        return np.stack([np.ones(len(observations["place"])), observations["hint"][:, 0]], axis=1)


def test_one_of_several_keys_is_drawn_and_all_are_evaluated() -> None:
    keys = {"hint": RNG.normal(size=(50, 1)), "place": RNG.normal(size=(50, 2))}
    figure = observations_figure(Named(), keys, [2])  # type: ignore[arg-type]
    (scatter,) = figure.axes[0].collections
    np.testing.assert_allclose(scatter.get_offsets(), keys["place"])
    np.testing.assert_allclose(scatter.get_array(), keys["hint"][:, 0])
    screens = {**keys, "screen": np.zeros((50, 20, 20))}
    assert array_to_draw(screens).shape == (50, 20, 20)
    for wrong in ({}, {"a": np.zeros((3, 2)), "b": np.zeros((4, 2))}, {"a": np.zeros(())}):
        with pytest.raises(ArgumentError, match="observations"):
            observations_figure(Named(), wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "seen"),
    [
        ((9, 9), (9, 9)),
        ((9, 9, 3), (9, 9, 3)),
        ((4, 84, 84), (84, 84)),
        ((84, 84, 4), (84, 84)),
        ((4, 84, 84, 3), (84, 84, 3)),
    ],
)
def test_frames_of_every_layout_are_pictures(shape: tuple[int, ...], seen: tuple[int, ...]) -> None:
    assert picture_of(np.zeros(shape)).shape == seen


def test_what_cannot_be_drawn_is_refused(maze: tuple[lw.LaplacianRepresentation, np.ndarray]) -> None:
    model, points = maze
    for options in ({"inputs": (0, 2)}, {"inputs": (0,)}, {"components": [5]}, {"components": [0]}):
        with pytest.raises(ArgumentError):
            observations_figure(model, points, **options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        observations_figure(model, points[:0])
    with pytest.raises(ArgumentError, match="knows none"):
        observations_figure(lw.solve("GridMaze-7", dim=3), points + 7)
    images = lw.LaplacianRepresentation(Brightness(), np.array([1.0, 0.9]), 2)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="images"):
        observations_figure(images, np.zeros((4, 20, 20)), inputs=(0, 1))
