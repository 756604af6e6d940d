"""Components over time: the episodes chosen, lines and boundaries at the right steps, frames, wrong arguments."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError
from lapwing.plots import SCREEN, sample_episodes, trajectories_figure
from lapwing.plots.time_series import MOST_EPISODES, boundaries, describe_sample, episode_numbers, frames_in_time

RNG = np.random.default_rng(0)


class Numbers:
    """Components that are the numbers of an observation, after a constant; of an image its brightness."""

    dim, kind = 3, "numbers"

    def encode(self, observations: np.ndarray) -> np.ndarray:
        rows = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
        return np.stack([np.ones(len(rows)), rows[:, 0], rows[:, -1]], axis=1)


@pytest.fixture
def model() -> lw.LaplacianRepresentation:
    return lw.LaplacianRepresentation(Numbers(), np.array([1.0, 0.9, 0.8]), 3)  # type: ignore[arg-type]


def experience(*lengths: int, **changes: Any) -> lw.Trajectories:
    """Episodes of so many transitions, with some fields changed."""
    rows = RNG.normal(size=(sum(lengths) + len(lengths), 2))
    return replace(lw.from_arrays(rows, lengths=np.add(lengths, 1)), **changes)


def test_each_component_has_a_panel_with_a_line_for_each_episode(model: lw.LaplacianRepresentation) -> None:
    data = experience(9, 4, 14)
    figure = trajectories_figure(model, data)
    panels = figure.axes
    assert len(panels) == 2
    for ax, number in zip(panels, (0, 1), strict=True):
        lines = [line for line in ax.lines if line.get_color() == lw.plots.COLOURS[0]]
        steps = [np.asarray(line.get_xdata()) for line in lines]
        assert [len(part) for part in steps] == [10, 5, 15]
        np.testing.assert_array_equal(np.concatenate(steps), np.arange(30))
        drawn = np.concatenate([np.asarray(line.get_ydata()) for line in lines])
        np.testing.assert_allclose(drawn, data.observations[:, number])
    assert panels[-1].get_xlabel() == "step"
    assert [ax.texts[-1].get_text() for ax in panels[1:]] == [r"$\lambda_{3}$ = 0.2"]


def test_boundaries_lie_between_the_episodes_and_tell_how_one_ended(model: lw.LaplacianRepresentation) -> None:
    data = experience(9, 4, 14, terminated=np.array([False, True, True]))
    assert boundaries(data) == [(9.5, "--"), (14.5, "-")]
    for ax in trajectories_figure(model, data).axes:
        found = [line for line in ax.lines if len(np.unique(line.get_xdata())) == 1]
        assert [(np.asarray(line.get_xdata())[0], line.get_linestyle()) for line in found] == boundaries(data)


def test_few_episodes_are_chosen_and_spread_over_the_data() -> None:
    sample = sample_episodes(experience(*[10] * 200))
    assert sample.num_episodes == MOST_EPISODES
    assert episode_numbers(sample)[0] == 0
    assert episode_numbers(sample)[-1] == 199
    assert describe_sample(sample) == "8 of 200 episodes"


def test_of_long_episodes_a_stretch_is_drawn() -> None:
    data = experience(5_000, terminated=np.array([True]))
    sample = sample_episodes(data, states=300)
    assert sample.lengths.tolist() == [299]
    # It does not end where it is cut.
    assert (sample.terminated.tolist(), sample.truncated.tolist()) == ([False], [True])
    np.testing.assert_array_equal(sample.observations, data.observations[:300])
    assert describe_sample(sample) == "the first 299 steps of 1 episode"
    assert describe_sample(sample_episodes(sample)) == describe_sample(sample)


def test_a_sample_of_a_sample_keeps_the_numbers_of_the_first_data(tmp_path: Any) -> None:
    data = lw.collect("GridMaze-7", 500, episode_length=10, seed=0)
    first = sample_episodes(data, [3, 40, 7])
    assert first.has_table
    assert len(first.observations) <= len(data.observations)
    np.testing.assert_array_equal(first.episode(1), data.episode(40))
    first.save(tmp_path / "kept")
    again = sample_episodes(lw.Trajectories.load(tmp_path / "kept"), [2, 1])
    assert episode_numbers(again) == [7, 40]
    assert describe_sample(again) == "2 of 50 episodes"


@pytest.mark.parametrize("record", [5, {"numbers": "x", "of": 3}, {"numbers": [1, None, 2], "of": 1}])
def test_a_damaged_record_of_a_sample_does_no_harm(record: Any) -> None:
    data = experience(3, 3, 3, metadata={"episodes_sampled": record})
    assert episode_numbers(data) == [0, 1, 2]
    assert describe_sample(data) == "3 episodes"


def test_frames_of_images_stand_below_the_time_axis(model: lw.LaplacianRepresentation) -> None:
    images = np.arange(40, dtype=np.uint8)[:, None, None, None] * np.ones((1, 4, 16, 16), dtype=np.uint8)
    data = lw.from_arrays(images, lengths=[20, 20])
    positions, frames = frames_in_time(data, 4)
    assert positions.tolist() == [5, 15, 25, 35]
    assert [frame.shape for frame in frames] == [(16, 16)] * 4
    np.testing.assert_allclose([frame.mean() for frame in frames], positions / 39)
    figure = trajectories_figure(model, data, [2], style=SCREEN)
    insets = figure.axes[-1].child_axes
    assert [ax.get_title() for ax in insets] == [str(5 * i + 2) for i in range(8)]
    (dots,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert np.asarray(dots.get_xdata()).tolist() == [5 * i + 2 for i in range(8)]


def test_labels_do_not_overlap(model: lw.LaplacianRepresentation) -> None:
    for lengths in ((2, 3, 90, 1, 4, 30), (200,) * 5, (9,) * 8):
        for width in (3.25, 5.5, 9.6):
            figure = trajectories_figure(model, experience(*lengths), width=width)
            boxes = [text.get_window_extent() for text in figure.axes[0].texts[1:]]
            ordered = sorted((box.x0, box.x1) for box in boxes)
            assert all(left[1] < right[0] for left, right in pairwise(ordered)), lengths


def test_the_title_tells_what_is_drawn() -> None:
    data = lw.collect("UMaze", 1_000, seed=0)
    figure = trajectories_figure(lw.solve("UMaze", dim=3), data, style=SCREEN)
    assert figure.get_suptitle() == "UMaze: components over time, 8 of 20 episodes"
    assert [text.get_text() for text in figure.axes[0].texts][1:3] == ["episode 0", "episode 2"]


class Keyed(Numbers):
    """Stands for a representation of observations with several keys."""

    metadata, eigenvalues, encoder = {}, np.array([0.0, 0.1, 0.2]), None

    def transform(self, observations: dict[str, np.ndarray]) -> np.ndarray:
        return self.encode(np.concatenate([observations["place"], observations["speed"]], axis=1))


def test_all_of_several_keys_are_evaluated() -> None:
    keys = {"place": RNG.normal(size=(20, 1)), "speed": RNG.normal(size=(20, 2))}
    data = lw.from_arrays(keys, lengths=[10, 10], keys=list(keys))
    figure = trajectories_figure(Keyed(), data, [3])  # type: ignore[arg-type]
    drawn = np.concatenate(
        [np.asarray(line.get_ydata()) for line in figure.axes[0].lines if len(line.get_xdata()) == 10]
    )
    np.testing.assert_allclose(drawn, keys["speed"][:, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": [4]}, r"components are numbers from 1 to 3, got \[4\]"),
        ({"components": []}, "components are numbers from 1 to 3"),
        ({"components": [1.5]}, "components are numbers from 1 to 3"),
        ({"episodes": [3]}, r"episodes are numbered 0 to 2, got \[3\]"),
        ({"episodes": []}, "episodes are numbered 0 to 2"),
        ({"steps": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    model: lw.LaplacianRepresentation, options: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message) as refused:
        trajectories_figure(model, experience(3, 3, 3), **options)
    assert "\n" not in str(refused.value)


def test_a_table_that_knows_none_of_the_states_is_refused() -> None:
    with pytest.raises(ArgumentError, match="knows none"):
        trajectories_figure(lw.solve("GridMaze-7", dim=3), experience(5, 5))
