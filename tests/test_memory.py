"""Memory is bounded as the documents say: bytes per transition, distinct observations once, nothing of all steps twice.

Peaks are those that ``tracemalloc`` sees: NumPy tells it of every array, so they are the same on every run.
"""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from lapwing.data import audit, auditing, collect, collecting, from_gymnasium
from lapwing.data import builder as building
from lapwing.data import trajectories as container
from lapwing.data.builder import ObservationTable, TrajectoryBuilder
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics import noise
from lapwing.diagnostics.noise import sampling_angles
from lapwing.operators import lags as gap_module
from lapwing.operators.lags import geometric_lags, lags_inside_episodes, states_by_steps_left
from lapwing.operators.operator import operator_from_trajectories
from lapwing.report.run_folder import audit_record
from lapwing.training.read_out import bootstrap_errors

pytestmark = pytest.mark.slow

STEPS = 1_000_000
MEGABYTE = 1e6


def peak_bytes(call: Callable[[], Any]) -> float:
    """The most that was held at once while calling, beyond what was held before."""
    tracemalloc.start()
    try:
        kept = call()
        del kept
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def walk() -> Trajectories:
    return collect("Rooms-16", STEPS, seed=0)


@pytest.fixture(scope="module")
def endless_walk(walk: Trajectories) -> Trajectories:
    """As many states in a single episode."""
    ends = np.zeros(1, dtype=bool)
    return Trajectories(walk.observations, np.array([0, walk.num_states]), ends, ~ends, walk.ids)


def values_of(data: Trajectories, dim: int) -> Any:
    table = np.random.default_rng(0).normal(size=(len(data.observations), dim))
    return lambda rows: table[rows]


def test_a_transition_of_a_grid_is_kept_in_five_bytes(walk: Trajectories) -> None:
    kept = sum(array.nbytes for array in walk.arrays().values())
    assert kept < 5 * STEPS


def test_collecting_in_memory_holds_the_ids_twice_and_a_chunk() -> None:
    # A chunk is all of these: its int64 states, their places, and the ids made from them.
    assert peak_bytes(lambda: collect("Rooms-16", STEPS, seed=0)) < 25 * STEPS


def test_collecting_to_disk_holds_a_chunk_however_many_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "CHUNK_TRANSITIONS", 50_000)
    peaks = [
        peak_bytes(lambda steps=steps: collect("Box-2", steps, seed=0, out=tmp_path / str(steps)))
        for steps in (200_000, 800_000)
    ]
    # What grows is where 12,000 more episodes begin and end, and never the eight bytes of each point.
    assert peaks[1] - peaks[0] < 5 * 600_000
    assert peaks[1] < 8 * 800_000


@pytest.mark.parametrize("data", ["walk", "endless_walk"])
@pytest.mark.parametrize("look", [audit, audit_record, Trajectories.counts, operator_from_trajectories])
def test_looking_data_over_takes_no_more_than_a_chunk(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, data: str, look: Callable[[Trajectories], Any]
) -> None:
    experience = request.getfixturevalue(data)
    chunked = Trajectories.pair_positions
    monkeypatch.setattr(Trajectories, "pair_positions", lambda self, lag=1: chunked(self, lag, chunk=50_000))
    monkeypatch.setattr(container, "CHUNK_ROWS", 50_000)
    # Of a million states int64 numbers alone are 8 MB; a single episode is cut like many.
    assert peak_bytes(lambda: look(experience)) < 8 * MEGABYTE


@pytest.mark.parametrize("data", ["walk", "endless_walk"])
def test_noise_of_many_components_is_estimated_without_all_their_pairs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    monkeypatch.setattr(noise, "NOISE_TRANSITIONS", 1 << 15)
    experience, dim = request.getfixturevalue(data), 20
    eigenvalues = np.linspace(0.0, 1.0, dim)
    # Products of all pairs of components over one chunk of 2^14 states are 52 MB, and several were needed.
    found = peak_bytes(lambda: sampling_angles(values_of(experience, dim), eigenvalues, experience, 1e-2))
    assert found < 32 * MEGABYTE


@pytest.mark.parametrize("data", ["walk", "endless_walk"])
def test_error_bars_never_hold_the_values_of_all_steps(request: pytest.FixtureRequest, data: str) -> None:
    experience, dim = request.getfixturevalue(data), 10
    weights = np.random.default_rng(0).normal(size=(2, dim))

    def bars() -> Any:
        return bootstrap_errors(
            lambda rows: experience.observations[rows] @ weights, np.linspace(1.0, 0.5, dim), experience, 0
        )

    # The values of a million states are 80 MB.
    assert peak_bytes(bars) < 40 * MEGABYTE


def test_the_order_for_sampling_takes_24_bytes_a_state(walk: Trajectories) -> None:
    assert peak_bytes(lambda: states_by_steps_left(walk.offsets)) < 24 * walk.num_states


def test_gaps_of_an_endless_episode_are_as_many_as_floats_can_tell() -> None:
    lags = geometric_lags([0.9, 0.99])
    for unbiased in (False, True):
        weights = lags_inside_episodes(lags, np.array([STEPS]), unbiased).weights
        assert weights is not None
        assert len(weights) < 5000
        np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-9)


@pytest.mark.parametrize("unbiased", [False, True])
def test_cutting_the_gaps_of_long_episodes_changes_nothing(monkeypatch: pytest.MonkeyPatch, unbiased: bool) -> None:
    lags, lengths = geometric_lags([0.9, 0.95]), np.array([3000, 20, 1500])
    cut = lags_inside_episodes(lags, lengths, unbiased).weights
    monkeypatch.setattr(gap_module, "NEGLIGIBLE_PROBABILITY", 1e-300)
    whole = lags_inside_episodes(lags, lengths, unbiased).weights
    assert cut is not None
    assert whole is not None
    assert len(cut) < len(whole) == 3000
    np.testing.assert_allclose(cut, whole[: len(cut)], rtol=1e-12)
    assert whole[len(cut) :].sum() < 1e-16


class Pictures(gymnasium.Env[Any, Any]):
    """A ring of pictures of 12 kB each, so many of them; an episode of 100 steps, or none that ends."""

    def __init__(self, distinct: int, endless: bool = False) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, (64, 64, 3), dtype=np.uint8)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.distinct, self.endless, self.place, self.time = distinct, endless, 0, 0

    def picture(self) -> Any:
        image = np.zeros((64, 64, 3), dtype=np.uint8)
        image.reshape(-1)[:4] = np.array([self.place], dtype=np.int32).view(np.uint8)
        return image

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        return self.picture(), {}

    def step(self, action: Any) -> Any:
        self.place = (self.place + 1) % self.distinct
        self.time += 1
        return self.picture(), 0.0, False, not self.endless and self.time == 100, {}


@pytest.mark.parametrize("endless", [False, True])
def test_pictures_that_repeat_are_kept_once_however_many_steps(monkeypatch: pytest.MonkeyPatch, endless: bool) -> None:
    monkeypatch.setattr(from_gymnasium, "FLUSH_BYTES", 1 << 20)
    short, long = (
        peak_bytes(lambda steps=steps: collect(Pictures(40, endless), steps, seed=0)) for steps in (500, 5_000)
    )
    # 4,500 pictures more would be 55 MB; their ids are 4 bytes each, and a block of them is held twice.
    assert long - short < 20 * 4_500
    assert short < 6 * MEGABYTE


@pytest.mark.parametrize("endless", [False, True])
def test_pictures_that_never_repeat_go_to_disk_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endless: bool
) -> None:
    monkeypatch.setattr(from_gymnasium, "FLUSH_BYTES", 1 << 20)
    monkeypatch.setattr(building, "DECIDE_AFTER", 256)
    short, long = (
        peak_bytes(lambda steps=steps: collect(Pictures(1 << 30, endless), steps, seed=0, out=tmp_path / str(steps)))
        for steps in (600, 2_000)
    )
    assert long - short < 20 * 1_400
    data = Trajectories.load(tmp_path / "2000", mmap=True)
    assert not data.has_table
    assert data.num_transitions == 2_000
    numbers = np.ascontiguousarray(data.observations.reshape(data.num_states, -1)[:, :4]).view(np.int32).ravel()
    assert (np.diff(numbers) >= 0).all()
    assert numbers[-1] == 2_000


@pytest.mark.parametrize("flush", [1, 1 << 12, 1 << 40])
@pytest.mark.parametrize("endless", [False, True])
def test_handing_an_episode_over_in_pieces_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, flush: int, endless: bool
) -> None:
    whole = collect(Pictures(7, endless), 250, seed=0)
    monkeypatch.setattr(from_gymnasium, "FLUSH_BYTES", flush)
    pieces = collect(Pictures(7, endless), 250, seed=0)
    assert pieces.lengths.tolist() == whole.lengths.tolist() == ([250] if endless else [100, 100, 50])
    assert pieces.ids is not None
    np.testing.assert_array_equal(pieces.ids, whole.ids)
    np.testing.assert_array_equal(pieces.observations, whole.observations)
    np.testing.assert_array_equal(pieces.truncated, whole.truncated)


def test_a_table_holds_each_observation_once() -> None:
    rows = np.random.default_rng(0).integers(256, size=(400, 12_000), dtype=np.uint8)
    table = ObservationTable()
    # The rows are 4.8 MB; a block of at most 4 MB is copied to be looked up.
    assert peak_bytes(lambda: table.lookup(rows)) < 4.8 * MEGABYTE + (1 << 22) + 400 * 400
    assert table.lookup(rows[::-1]).tolist() == list(range(400))[::-1]
    np.testing.assert_array_equal(table.array(), rows)


def test_long_observations_that_differ_in_one_byte_are_two() -> None:
    rows = np.zeros((3, 5_000), dtype=np.uint8)
    rows[1, 4_999] = 1
    assert ObservationTable().lookup(rows).tolist() == [0, 1, 0]


def test_a_table_that_is_given_up_is_written_out_block_by_block(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(2_000, 1_000))
    with TrajectoryBuilder(tmp_path / "data") as builder:
        for begin in range(0, 2_000, 500):
            states = rows[begin : begin + 500]
            builder.add(states, np.array([499]), np.array([False]), np.array([True]))
        # 16 MB of rows in the table; beyond them a block, not all again.
        assert peak_bytes(builder._give_up_table) < 10 * MEGABYTE
        data = builder.finish({})
    np.testing.assert_array_equal(data.observations, rows)


def test_the_mean_gap_of_a_long_episode_is_found_without_all_its_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = auditing._mean_lag(0.99, 20_000)
    monkeypatch.setattr(auditing, "LONG_HORIZON", 1)
    assert peak_bytes(lambda: auditing._mean_lag(0.99, 20_000)) < 8 * 30_000
    assert auditing._mean_lag(0.99, 20_000) == pytest.approx(whole, rel=1e-12)
