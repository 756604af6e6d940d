"""Any arrays as experience, and any arguments of ``collect``; what is taken is saved and read back bit for bit."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from odd_values import CHEAP, odd_things, result_or_error

import lapwing as lw
from lapwing.data.loading import from_arrays
from lapwing.data.trajectories import ARRAYS, Trajectories
from lapwing.errors import LapwingError

pytestmark = pytest.mark.slow

NUMERIC = ["f8", "f4", "f2", "i8", "i4", "u1", "?", ">f4", ">i2"]
OTHER = ["c16", "O", "U2", "S2", "M8[s]"]


def any_array(dtypes: list[str] = NUMERIC + OTHER, max_dims: int = 3) -> st.SearchStrategy[np.ndarray]:
    """Arrays of any of these types, NaN and empty ones among them."""
    return st.sampled_from(dtypes).flatmap(
        lambda dtype: arrays(
            np.dtype(dtype),
            array_shapes(min_dims=0, max_dims=max_dims, min_side=0, max_side=6),
            elements=st.none() | st.floats() | st.text(max_size=2) if dtype == "O" else None,
        )
    )


whole = st.integers(-3, 12)
labels = st.lists(st.integers(-2, 3), max_size=8) | any_array(max_dims=2) | odd_things
options = st.fixed_dictionaries(
    {},
    optional={
        "lengths": st.lists(st.integers(-1, 4), max_size=4) | labels,
        "episode_ids": labels,
        "terminated": st.lists(st.booleans(), max_size=8) | labels,
        "truncated": labels,
        "next_observations": any_array(),
    },
)


def check_round_trip(data: Trajectories) -> None:
    """What was saved is read again bit for bit, in memory and mapped, and nothing lies beside it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "data"
        data.save(folder)
        assert [path.name for path in Path(place).iterdir()] == ["data"]
        for again in (Trajectories.load(folder), Trajectories.load(folder, mmap=True)):
            assert same_content(again, data)


def same_content(one: Trajectories, other: Trajectories) -> bool:
    """Whether all arrays and the metadata agree bit for bit."""
    pairs = [(getattr(one, name), getattr(other, name)) for name in ARRAYS]
    same = [
        a is b if a is None or b is None else a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for a, b in pairs
    ]
    return all(same) and one.metadata == other.metadata


@CHEAP
@given(any_array() | st.lists(any_array(max_dims=2), max_size=4) | odd_things, options)
def test_any_arrays_are_refused_or_become_experience(observations: Any, given: dict[str, Any]) -> None:
    found = result_or_error(lambda: from_arrays(observations, **given))
    if isinstance(found, Trajectories):
        assert found.num_transitions >= 1
        assert found.lengths.sum() == found.num_transitions
        check_round_trip(found)


rows = st.integers(2, 8).flatmap(lambda count: arrays(np.float32, (count, 2), elements=st.floats(-2, 2, width=32)))


@settings(max_examples=150)
@given(st.lists(rows, min_size=1, max_size=4))
def test_sound_episodes_are_never_refused_and_read_back_bit_for_bit(episodes: list[np.ndarray]) -> None:
    data = from_arrays(episodes)
    assert [data.episode(number).tolist() for number in range(data.num_episodes)] == [e.tolist() for e in episodes]
    check_round_trip(data)


fields = {name: any_array(max_dims=2) | st.just(None) for name in ("offsets", "terminated", "truncated", "ids")}


@CHEAP
@given(any_array(NUMERIC), st.fixed_dictionaries({}, optional=fields))
def test_any_parts_are_refused_or_make_a_data_set(observations: np.ndarray, parts: dict[str, Any]) -> None:
    sound = {
        "offsets": np.array([0, 2, 5]),
        "terminated": np.array([True, False]),
        "truncated": np.array([False, True]),
        "ids": np.zeros(5, dtype=np.int32),
    }
    found = result_or_error(lambda: Trajectories(observations, **{**sound, **parts}))
    if isinstance(found, Trajectories):
        check_round_trip(found)


lengths = st.integers(-1, 60) | st.tuples(whole, whole) | st.tuples(whole, st.just(2**31 - 1)) | odd_things
arguments = {
    "source": st.sampled_from(["GridMaze-7", "Box-1"]) | odd_things,
    "steps": st.integers(-1, 60) | st.sampled_from([2**31, 10**12, 10**30]),
    "episode_length": lengths,
    "policy": odd_things | arrays(np.float64, array_shapes(max_dims=2, max_side=12)),
    "observation": st.sampled_from(["xy", "one_hot", "pixels"]) | odd_things,
    "slip": st.floats(0, 1) | odd_things,
    "seed": whole | odd_things,
    "layouts": odd_things,
}


@CHEAP
@given(st.fixed_dictionaries({}, optional=arguments))
def test_any_arguments_of_collect_are_refused_or_give_exactly_so_many_steps(given: dict[str, Any]) -> None:
    wanted = {"source": "GridMaze-7", "steps": 20, **given}
    found = result_or_error(lambda: lw.collect(**wanted))
    assert isinstance(found, LapwingError) or found.num_transitions == wanted["steps"]


@settings(max_examples=200)
@given(answer=odd_things, world=st.sampled_from(["GridMaze-7", "Box-2"]))
def test_any_answer_of_a_policy_is_refused_or_followed(answer: object, world: str) -> None:
    found = result_or_error(lambda: lw.collect(world, 10, policy=lambda seen: answer))
    assert isinstance(found, LapwingError) or found.num_transitions == 10


@settings(max_examples=100)
@given(out=odd_things)
def test_any_folder_to_collect_into_is_refused_or_written_whole(
    out: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as place:
        named = isinstance(out, str) and out not in ("", ".", "..") and "/" not in out
        if out is None or (isinstance(out, str) and not named):
            return  # in memory, or somewhere else on this machine
        target: Any = f"{place}/{out}" if named else out
        found = result_or_error(lambda: lw.collect("GridMaze-7", 20, out=target))
        left = [path.name for path in Path(place).iterdir()]
        assert left == ([] if isinstance(found, LapwingError) else [out])
