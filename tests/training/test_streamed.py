"""Data larger than what may be held: parts follow the law of the whole, and give the same bits again."""

from pathlib import Path

import jax
import numpy as np
import pytest

import lapwing as lw
from lapwing.data.trajectories import Trajectories
from lapwing.operators.lags import geometric_lags
from lapwing.storage.reading import forget_pages
from lapwing.training import Progress, pair_sampler, task
from lapwing.training.batches import rows_of, streamed_pairs
from lapwing.training.fitting import FitSource, Targets, streamed_fit

pytestmark = pytest.mark.filterwarnings("ignore::lapwing.errors.UntrustedWarning")

FEW = {"hidden": (32, 32), "batch_size": 128, "oversampling": 2, "log_every": 20}
# GiB of which a fourth holds 1,000 of the 10,200 states.
LITTLE = 4 * 1_000 * 4 / (1 << 30)


@pytest.fixture(scope="module")
def walk() -> Trajectories:
    return lw.collect("Box-1", 10_000, episode_length=50, seed=0)


def test_rows_are_read_in_their_order_and_given_in_that_asked_for() -> None:
    observations = np.arange(20).reshape(10, 2)
    np.testing.assert_array_equal(rows_of(observations, np.array([7, 0, 7, 3])), observations[[7, 0, 7, 3]])


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("unbiased", [True, False])
def test_streamed_pairs_have_the_lags_of_the_sampler(walk: Trajectories, separate: bool, unbiased: bool) -> None:
    # Each state shows its own position, so that lags can be read from a batch.
    positions = np.arange(walk.num_states, dtype=np.float32)[:, None]
    data = lw.from_arrays(positions, lengths=walk.lengths + 1)
    lags = geometric_lags((0.5, 0.9))
    whole = pair_sampler(data, lags, 4_000, unbiased, separate=separate, encode_table=False)
    bare = pair_sampler(data, lags, 4_000, unbiased, separate=separate, held=False)
    source = streamed_pairs(bare, data.observations, 16 * 20_000)
    seen = []
    for number, one in enumerate((whole, *(source.part(step) for step in (0, 20, 40)))):
        values = one.batch(one.draw(jax.random.key(number))).values(lambda rows: rows)
        seen.append(np.asarray(values.there - values.here).ravel())
        assert len(values.first) == len(values.second) == 4_000
        assert (seen[-1] >= 1).all()
        np.testing.assert_array_equal(values.here // 51, values.there // 51)
    wanted, parts = np.bincount(seen[0].astype(int), minlength=51), np.concatenate(seen[1:]).astype(int)
    found = np.bincount(parts, minlength=51) / 3
    # Poisson noise on both sides.
    assert np.abs(found - wanted).max() < 6 * np.sqrt(wanted.max())


def test_a_part_is_a_function_of_its_step_and_holds_no_more_than_allowed(walk: Trajectories) -> None:
    bare = pair_sampler(walk, geometric_lags((0.9,)), 128, True, separate=False, held=False)
    source = streamed_pairs(bare, walk.observations, 4 * 1_000)
    first, again, other = (source.part(step).observations for step in (0, 0, 20))
    assert len(first) == 1_000
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_streamed_states_keep_their_targets_and_cover_the_data() -> None:
    observations = np.arange(500, dtype=np.float32)[:, None]
    targets = Targets(np.arange(500, dtype=np.int32)[None], observations[None] * 2, np.zeros(1))
    source = streamed_fit(observations, targets, 32, 4 * 100)
    seen = set()
    for step in range(0, 1_000, 20):
        part = source.part(step)
        assert isinstance(part, FitSource)
        assert len(part.observations) == 100
        batch = part.batch(part.draw(jax.random.key(step)))
        np.testing.assert_array_equal(batch.targets, 2 * batch.observations)
        seen |= set(np.asarray(part.observations).ravel().tolist())
    assert len(seen) == 500


@pytest.mark.slow
def test_learning_in_parts_is_as_good_and_is_resumed_to_the_same_bits(walk: Trajectories, tmp_path: Path) -> None:
    truth = lw.solve("Box-1", dim=4)
    options = {**FEW, "steps": 240, "memory": LITTLE}
    whole = lw.learn(walk, 4, **options)
    assert lw.score(whole, truth).cosine > 0.98
    assert whole.metadata["config"]["memory"] == LITTLE

    class StoppedError(Exception):
        pass

    def stop(line: Progress) -> None:
        if line.step >= 120:
            raise StoppedError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lapwing.training.loop.SECONDS_BETWEEN", 0.0)
        with pytest.raises(StoppedError):
            lw.learn(walk, 4, callback=stop, checkpoints=tmp_path / "kept", **options)
    again = lw.learn(walk, 4, checkpoints=tmp_path / "kept", **options)
    np.testing.assert_array_equal(again.transform(walk.observations[:99]), whole.transform(walk.observations[:99]))


def test_little_data_are_held_whole(walk: Trajectories, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(task, "streamed_pairs", lambda *arguments: made.append(1))
    config = lw.training.make_config(dim=3)
    assert task.prepare(config, walk, [0], None, None).held_bytes is None
    assert not made
    little = task.prepare(lw.training.make_config(dim=3, memory=LITTLE), walk, [0], None, None)
    assert made
    assert little.held_bytes == 4_000
    with pytest.raises(lw.LapwingError, match="memory must be"):
        lw.training.make_config(memory=0.0)


def test_pages_of_a_mapped_file_that_are_given_back_are_read_again(tmp_path: Path) -> None:
    wanted = np.random.default_rng(0).integers(0, 255, (5000, 20), dtype=np.uint8)
    np.save(tmp_path / "rows.npy", wanted)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    rows = np.random.default_rng(1).integers(0, 5000, 9000)
    np.testing.assert_array_equal(rows_of(mapped, rows), wanted[rows])
    forget_pages(mapped[10:20])
    np.testing.assert_array_equal(mapped, wanted)
    forget_pages(wanted)
    changed = np.load(tmp_path / "rows.npy", mmap_mode="c")
    changed[0] = 7
    forget_pages(changed)
    assert (changed[0] == 7).all()
