"""Replay buffers of other libraries, as rings that were written by a simulation of their own rules."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError, DataError, UnknownNameError


def sb3_ring(size: int, environments: int, writes: int, shares_rows: bool = False) -> SimpleNamespace:
    """What ReplayBuffer.add leaves behind: states are numbered, environment i counts from 1000 i, episodes have 7."""
    shape = (size, environments)
    ring = SimpleNamespace(
        buffer_size=size, pos=0, full=False, optimize_memory_usage=shares_rows,
        observations=np.zeros((*shape, 1)), next_observations=np.zeros((*shape, 1)), actions=np.zeros((*shape, 1), int),
        rewards=np.zeros(shape, np.float32), dones=np.zeros(shape, np.float32), timeouts=np.zeros(shape, np.float32),
    )  # fmt: skip
    state = 1000.0 * np.arange(environments)
    for write in range(writes):
        done = write % 7 == 6
        ring.observations[ring.pos, :, 0] = state
        following = state + 1
        if shares_rows:
            ring.observations[(ring.pos + 1) % size, :, 0] = following
        ring.next_observations[ring.pos, :, 0] = following
        ring.actions[ring.pos] = write % 4
        ring.rewards[ring.pos] = write
        ring.dones[ring.pos], ring.timeouts[ring.pos] = done, done and write % 2
        # A reset leads to a state that no step leads to.
        state = following + (100 if done else 0)
        if done and shares_rows:
            ring.observations[(ring.pos + 1) % size, :, 0] = state
        ring.pos += 1
        if ring.pos == size:
            ring.full, ring.pos = True, 0
    return ring


def steps(data: lw.Trajectories) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of all transitions."""
    positions = np.concatenate(list(data.pair_positions(1)))
    rows = data.rows(positions), data.rows(positions + 1)
    return data.observations[rows[0], 0], data.observations[rows[1], 0]


@pytest.mark.parametrize(("size", "writes"), [(40, 25), (40, 40), (40, 47), (40, 133)])
def test_a_ring_of_sb3_in_order_of_time(size: int, writes: int) -> None:
    ring = sb3_ring(size, 2, writes)
    data = lw.from_sb3(ring)
    here, there = steps(data)
    assert (there == here + 1).all()
    assert len(here) == 2 * min(size, writes)
    assert data.num_transitions == len(data.rewards) == len(data.actions)
    assert np.array_equal(np.sort(data.rewards)[-2:], [writes - 1, writes - 1])
    ended = data.terminated.sum() + data.truncated.sum()
    assert ended == data.num_episodes


@pytest.mark.parametrize("writes", [25, 40, 47, 133])
def test_a_ring_that_shares_rows_loses_only_the_steps_that_end_episodes(writes: int) -> None:
    data = lw.from_sb3(sb3_ring(40, 2, writes, shares_rows=True))
    here, there = steps(data)
    assert (there == here + 1).all()
    lost = sum(write % 7 == 6 for write in range(max(0, writes - 39), writes))
    assert len(here) >= 2 * (min(39, writes) - lost - 1)


def test_a_rollout_buffer() -> None:
    starts = np.zeros((12, 1), np.float32)
    starts[[0, 5]] = 1
    states = np.arange(12.0)[:, None, None] + 10 * (np.arange(12) >= 5)[:, None, None]
    rollout = SimpleNamespace(
        buffer_size=12, pos=12, full=True, generator_ready=False, observations=states, episode_starts=starts,
        actions=np.zeros((12, 1, 1)), rewards=np.zeros((12, 1)),
    )  # fmt: skip
    here, there = steps(lw.from_sb3(rollout))
    assert (there == here + 1).all()
    assert len(here) == 10
    rollout.generator_ready = True
    with pytest.raises(DataError, match="_on_rollout_end"):
        lw.from_sb3(rollout)


def test_rows_that_do_not_follow_one_another_are_an_error() -> None:
    ring = sb3_ring(40, 1, 47)
    ring.pos = 20
    with pytest.raises(DataError, match="an episode ends there"):
        lw.from_sb3(ring)
    ring.pos = 41
    with pytest.raises(DataError, match="damaged"):
        lw.from_sb3(ring)
    with pytest.raises(DataError, match="empty"):
        lw.from_sb3(sb3_ring(40, 1, 0))
    with pytest.raises(ArgumentError, match="replay_buffer"):
        lw.from_sb3(np.zeros(3))
    del ring.actions
    with pytest.raises(ArgumentError, match="replay_buffer"):
        lw.from_sb3(ring)


class Experience(NamedTuple):
    obs: Any
    done: Any
    extra: Any


def flashbax_ring(size: int, writes: int) -> SimpleNamespace:
    """Rows (batch, time, ...) written round and round, as flashbax's trajectory buffer does."""
    obs, done = np.zeros((2, size, 3)), np.zeros((2, size), bool)
    for write in range(writes):
        episode = write // 7
        obs[:, write % size] = (write + 100 * episode) + 10_000 * np.arange(2)[:, None]
        done[:, write % size] = write % 7 == 6
    experience = Experience(obs, done, {"action": np.ones((2, size), int)})
    return SimpleNamespace(
        experience=experience, current_index=np.array(writes % size), is_full=np.array(writes >= size)
    )


@pytest.mark.parametrize("writes", [10, 30, 75])
def test_a_ring_of_flashbax_in_order_of_time(writes: int) -> None:
    data = lw.from_flashbax(flashbax_ring(30, writes), action="extra.action")
    here, there = steps(data)
    assert (there == here + 1).all()
    assert data.actions is not None
    held = min(30, writes)
    first = writes - held
    ends = sum(write % 7 == 6 for write in range(first, writes - 1))
    assert len(here) == 2 * (held - 1 - ends)


def test_names_of_flashbax_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="did you mean obs"):
        lw.from_flashbax(flashbax_ring(30, 20), observation="ob")
    with pytest.raises(ArgumentError, match="state of a buffer"):
        lw.from_flashbax({})


def test_a_real_flashbax_buffer() -> None:
    flashbax = pytest.importorskip("flashbax")
    import jax.numpy as jnp

    buffer = flashbax.make_trajectory_buffer(
        add_batch_size=2, sample_batch_size=1, sample_sequence_length=2, period=1, min_length_time_axis=2,
        max_length_time_axis=30,
    )  # fmt: skip
    state = buffer.init({"obs": jnp.zeros(3), "done": jnp.zeros((), bool)})
    for write in range(75):
        row = (write + 100 * (write // 7)) + 10_000 * jnp.arange(2.0)[:, None, None] + jnp.zeros((2, 1, 3))
        state = buffer.add(state, {"obs": row, "done": jnp.full((2, 1), write % 7 == 6)})
    here, there = steps(lw.from_flashbax(state))
    assert (there == here + 1).all()
    assert len(here) == 2 * (29 - sum(write % 7 == 6 for write in range(45, 74)))
