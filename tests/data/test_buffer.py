"""The buffer of an endless stream: what it holds, where it cuts, and that it goes on after being stored."""

import numpy as np
import pytest

from lapwing.data.buffer import ExperienceBuffer
from lapwing.errors import ArgumentError, DamagedFileError, DataError


def stream(count: int, episode: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Numbered states in episodes of one length."""
    numbers = np.arange(start, start + count)
    return numbers.astype(np.float64)[:, None], numbers % episode == episode - 1


def test_a_window_holds_the_last_states() -> None:
    buffer = ExperienceBuffer(capacity=1000)
    rows, ends = stream(5000, 50)
    for begin in range(0, 5000, 77):
        buffer.add(rows[begin : begin + 77], ends[begin : begin + 77])
    data = buffer.data()
    assert buffer.seen == 5000
    assert 900 <= buffer.num_states <= 1000
    held = data.observations[:, 0] if data.ids is None else data.observations[data.ids, 0]
    assert held[-1] == 4999
    assert np.array_equal(held, np.arange(held[0], 5000))


def test_no_pair_crosses_the_end_of_an_episode_or_a_gap() -> None:
    buffer = ExperienceBuffer(capacity=640, keep="reservoir", seed=1)
    buffer.add(*stream(20_000, 37))
    data = buffer.data()
    positions = np.concatenate(list(data.pair_positions(1)))
    rows = data.rows(positions), data.rows(positions + 1)
    here, there = data.observations[rows[0], 0], data.observations[rows[1], 0]
    assert (there == here + 1).all()
    assert not (here % 37 == 36).any()


def test_the_size_of_calls_does_not_matter() -> None:
    rows, ends = stream(3000, 20)
    rows %= 90
    found = []
    for size in (1, 13, 3000):
        buffer = ExperienceBuffer(capacity=2000)
        for begin in range(0, 3000, size):
            buffer.add(rows[begin : begin + size], ends[begin : begin + size])
        found.append(buffer.data())
    assert found[0].has_table
    for other in found[1:]:
        assert np.array_equal(found[0].observations[found[0].ids], other.observations[other.ids])
        assert np.array_equal(found[0].offsets, other.offsets)


def test_a_reservoir_holds_every_part_of_the_past_alike() -> None:
    held = []
    for seed in range(40):
        buffer = ExperienceBuffer(capacity=640, keep="reservoir", seed=seed)
        buffer.add(*stream(6400, 6400))
        data = buffer.data()
        held.append(data.observations[:, 0] if data.ids is None else data.observations[data.ids, 0])
    counts = np.histogram(np.concatenate(held), bins=5, range=(0, 6400))[0]
    # Each fifth of the stream has a binomial number of about 256 blocks of 20 states.
    assert np.abs(counts / counts.sum() - 0.2).max() < 0.05


def test_streams_are_kept_apart() -> None:
    buffer = ExperienceBuffer(capacity=10_000)
    for begin in range(0, 600, 30):
        for number in range(3):
            rows, _ = stream(30, 10**9, begin + 10_000 * number)
            buffer.add(rows, stream=number)
    data = buffer.data()
    assert data.num_episodes == 3
    for number in range(3):
        assert np.array_equal(data.episode(number)[:, 0], np.arange(600) + 10_000 * number)


@pytest.mark.parametrize("keep", ["window", "reservoir"])
@pytest.mark.parametrize("modulus", [50, 10**9])
def test_a_stored_buffer_goes_on_the_same(keep: str, modulus: int) -> None:
    rows, ends = stream(9000, 30)
    rows %= modulus
    first = ExperienceBuffer(capacity=1500, keep=keep, seed=3)
    first.add(rows[:5555], ends[:5555], actions=np.arange(5555) % 4)
    second = ExperienceBuffer.restored(first.record(), first.arrays())
    for buffer in (first, second):
        buffer.add(rows[5555:], ends[5555:], actions=np.arange(5555, 9000) % 4)
    one, other = first.data(), second.data()
    assert one.has_table == other.has_table == (modulus == 50)
    assert np.array_equal(one.offsets, other.offsets)
    assert np.array_equal(one.observations, other.observations)
    assert np.array_equal(one.actions, other.actions)


def test_memory_stays_bounded_whatever_passes_by() -> None:
    buffer = ExperienceBuffer(capacity=500)
    # New observations all the time, each seen three times in a row.
    rows = np.repeat(np.arange(20_000.0), 3)[:, None]
    for begin in range(0, len(rows), 1000):
        buffer.add(rows[begin : begin + 1000])
        buffer.data()
        assert sum(array.nbytes for array in buffer.arrays().values()) < 100_000


def test_observations_that_repeat_only_later_become_a_table() -> None:
    buffer = ExperienceBuffer(capacity=4000)
    rows, ends = stream(6000, 100)
    buffer.add(rows, ends)
    assert not buffer.data().has_table
    rows, ends = stream(60_000, 100)
    buffer.add(rows % 40, ends)
    assert buffer.data().has_table


def test_dictionaries_are_packed() -> None:
    buffer = ExperienceBuffer(capacity=100)
    buffer.add({"image": np.zeros((20, 4, 4), np.uint8), "speed": np.arange(20.0)})
    data = buffer.data()
    assert "entries" in data.metadata
    assert data.num_transitions == 19


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"observations": np.zeros((3, 5))}, r"shape \(2,\) until now"),
        ({"observations": np.full((3, 2), np.nan)}, "NaN"),
        ({"observations": np.zeros((3, 2)), "episode_ends": [True]}, "episode_ends need one value per state"),
        ({"observations": np.zeros((3, 2)), "actions": np.zeros(3)}, "for all states or for none"),
        ({"observations": np.array([["a", "b"]])}, "must be numbers"),
    ],
)
def test_wrong_rows_are_refused_and_change_nothing(given: dict, message: str) -> None:
    buffer = ExperienceBuffer(capacity=100)
    buffer.add(np.zeros((10, 2)), np.zeros(10))
    before = {name: array.copy() for name, array in buffer.arrays().items()}
    with pytest.raises(DataError, match=message):
        buffer.add(**given)
    after = buffer.arrays()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="capacity"):
        ExperienceBuffer(capacity=1)
    with pytest.raises(ArgumentError, match="keep"):
        ExperienceBuffer(capacity=10, keep="all")
    with pytest.raises(DataError, match="no states"):
        ExperienceBuffer(capacity=10).data()
    buffer = ExperienceBuffer(capacity=10)
    buffer.add([[1.0]], [True])
    with pytest.raises(DataError, match="no transition"):
        buffer.data()
    with pytest.raises(DamagedFileError):
        ExperienceBuffer.restored(buffer.record(), {})
