"""Glued episodes: what is kept, what is joined, and how often a sampled pair then crosses a jump."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lapwing.data import collect
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError
from lapwing_paper.gluing import crossing_probability, glue_episodes


def numbered(sizes: list[int]) -> Trajectories:
    """Episodes of so many states each, every state different from every other, so that each can be recognised."""
    total = sum(sizes)
    ends = np.arange(len(sizes)) % 2 == 0
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    table = np.arange(total, dtype=np.float32)[:, None]
    return Trajectories(table, offsets, ends, ~ends, np.arange(total, dtype=np.int32))


def episodes_of(data: Trajectories) -> list[list[int]]:
    assert data.ids is not None
    return [data.ids[a:b].tolist() for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def chunked_collector(episodes: list[list[int]], every: int) -> list[list[int]]:
    """A collector that takes states one by one, begins the next episode after ``every`` of them, and closes none."""
    buffer: list[int] = []
    closed: list[list[int]] = []
    in_chunk = 0
    for number, episode in enumerate(episodes):
        for position, state in enumerate(episode):
            if in_chunk == every:
                in_chunk = 0
                if position and number + 1 < len(episodes):
                    break  # the world is reset; what remained of this episode is never seen
            buffer.append(state)
            in_chunk += 1
        else:
            closed.append(buffer)
            buffer = []
    return closed


@pytest.mark.parametrize("every", [2, 3, 7, 10, 11, 25, 40, 1000])
@pytest.mark.parametrize("sizes", [[10] * 12, [4, 9, 1, 17, 6, 6, 2, 30, 5]], ids=["equal", "ragged"])
def test_glued_episodes_are_those_of_a_collector_that_works_in_chunks(sizes: list[int], every: int) -> None:
    data = numbered(sizes)
    assert episodes_of(glue_episodes(data, every)) == chunked_collector(episodes_of(data), every)


@pytest.mark.parametrize("every", [3, 7, 25, 33])
def test_every_step_is_a_real_one_or_a_jump_to_the_beginning_of_the_next_episode(every: int) -> None:
    sizes = [4, 9, 3, 17, 6, 6, 2, 30, 5]
    data = numbered(sizes)
    glued = glue_episodes(data, every)
    beginnings = set(data.offsets[:-1].tolist())
    real = {(a, a + 1) for a in range(sum(sizes) - 1) if a + 1 not in beginnings}
    steps = [pair for episode in episodes_of(glued) for pair in pairwise(episode)]
    jumps = [pair for pair in steps if pair not in real]
    assert jumps
    assert all(after in beginnings for _, after in jumps)
    assert len(steps) == len(set(steps)) == glued.num_transitions
    # Each jump joins two episodes, and no real step between two states that were kept is lost.
    assert glued.num_episodes == data.num_episodes - len(jumps)
    kept = {state for episode in episodes_of(glued) for state in episode}
    assert {pair for pair in real if set(pair) <= kept} == set(steps) - set(jumps)


def test_lengths_add_up_to_what_was_kept() -> None:
    data = numbered([10] * 20)
    glued = glue_episodes(data, 47)
    assert glued.ids is not None
    assert glued.num_states == len(glued.ids) == int((glued.lengths + 1).sum())
    # Four whole episodes fit into 47 states, and 7 of the next; the last is not cut, for nothing follows it.
    assert glued.lengths.tolist() == [9, *[9, 9, 9, 16] * 3, 9, 9, 9, 9]


def test_episodes_that_are_not_glued_keep_their_states_and_how_they_ended() -> None:
    data = numbered([5, 5, 5, 5, 5, 5])
    glued = glue_episodes(data, 12)
    found = episodes_of(glued)
    assert found == [
        [0, 1, 2, 3, 4],
        [5, 6, 7, 8, 9],
        [10, 11, 15, 16, 17, 18, 19],
        [20, 21, 22, 23, 24],
        [25, 26, 27, 28, 29],
    ]
    last_parts = [0, 1, 3, 4, 5]
    np.testing.assert_array_equal(glued.terminated, np.asarray(data.terminated)[last_parts])
    np.testing.assert_array_equal(glued.truncated, np.asarray(data.truncated)[last_parts])


def test_nothing_is_glued_where_chunks_end_with_episodes() -> None:
    data = numbered([10] * 9)
    for every in (10, 30, 1000):
        glued = glue_episodes(data, every)
        np.testing.assert_array_equal(glued.ids, data.ids)
        np.testing.assert_array_equal(glued.offsets, data.offsets)


def test_the_original_and_its_table_are_left_alone() -> None:
    data = numbered([6, 9, 4, 8, 8])
    before = (np.copy(data.ids), np.copy(data.offsets))
    glued = glue_episodes(data, 10)
    np.testing.assert_array_equal(data.ids, before[0])
    np.testing.assert_array_equal(data.offsets, before[1])
    np.testing.assert_array_equal(glued.observations, data.observations)


@pytest.mark.parametrize("every", [1, 0, -5])
def test_chunks_of_fewer_than_two_states_are_refused(every: int) -> None:
    with pytest.raises(ArgumentError):
        glue_episodes(numbered([5, 5]), every)


def test_data_without_a_table_are_refused() -> None:
    with pytest.raises(DataError):
        glue_episodes(replace(numbered([6, 9, 4]), ids=None), 10)


def crossings(glued: Trajectories, data: Trajectories, discount: float, count: int, seed: int) -> float:
    """The share of pairs, drawn as the paper's sampler draws them, whose states come from two different episodes."""
    rng = np.random.default_rng(seed)
    episode = rng.integers(glued.num_episodes, size=count)
    left_in_all = np.asarray(glued.lengths)[episode]
    start = np.floor(rng.random(count) * left_in_all).astype(int)
    gap = rng.geometric(1.0 - discount, size=count)
    while (late := gap > left_in_all - start).any():
        gap[late] = rng.geometric(1.0 - discount, size=int(late.sum()))
    position = np.asarray(glued.offsets)[episode] + start
    assert glued.ids is not None
    origin = np.searchsorted(np.asarray(data.offsets), np.asarray(glued.ids), side="right")
    return float(np.mean(origin[position] != origin[position + gap]))


@pytest.mark.parametrize(
    ("every", "length", "discount"),
    [(47, 9, 0.9), (60, 12, 0.5), (101, 19, 0.9), (530, 50, 0.9), (1000, 50, 0.99), (40, 9, 0.9)],
)
def test_the_probability_to_cross_a_jump_is_that_of_pairs_drawn_from_glued_episodes(
    every: int, length: int, discount: float
) -> None:
    data = numbered([length + 1] * 4000)
    drawn, count = glue_episodes(data, every), 200_000
    share = crossings(drawn, data, discount, count, seed=0)
    wanted = crossing_probability(every, length, discount)
    error = np.sqrt(max(share * (1.0 - share), 1.0 / count) / count)
    assert abs(share - wanted) < 4.0 * error


def test_the_authors_chunks_of_ten_thousand_states_end_four_states_into_an_episode() -> None:
    # 10,000 = 196 episodes of 51 states and 4 more: each chunk begins with a new episode, so it is always 4.
    data = collect("GridMaze-7", 30_000, seed=0)
    lengths = np.asarray(glue_episodes(data, 10_000).lengths)
    assert sorted(set(lengths.tolist())) == [50, 54]
    jump, states, discount = 4, 55, 0.9
    starts = np.arange(jump)
    gaps = [np.arange(1, states - start) for start in starts]
    chances = [
        (discount**gap / (discount**gap).sum())[gap >= jump - start].sum()
        for start, gap in zip(starts, gaps, strict=True)
    ]
    assert crossing_probability(10_000, 50, discount) == pytest.approx(sum(chances) / (states - 1) / 196, rel=1e-2)
