"""Experience that already exists: arrays in the usual shapes, and local Minari data sets."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapwing.data import builder as builder_module
from lapwing.data.loading import from_arrays, from_minari
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError

ROWS = np.array([[0.0], [1.0], [2.0], [7.0], [8.0]])
EPISODES = [ROWS[:3], ROWS[3:]]
LAST = np.array([False, False, True, False, True])


def assert_two_episodes(data: Trajectories) -> None:
    assert data.num_episodes == 2
    for number, episode in enumerate(EPISODES):
        np.testing.assert_array_equal(data.episode(number), episode)


@pytest.mark.parametrize(
    "arguments",
    [
        {"observations": EPISODES},
        {"observations": tuple(EPISODES)},
        {"observations": [episode.tolist() for episode in EPISODES]},
        {"observations": [episode.ravel() for episode in EPISODES]},
        {"observations": ROWS, "lengths": [3, 2]},
        {"observations": ROWS.tolist(), "lengths": [3, 2]},
        {"observations": ROWS, "episode_ids": [4, 4, 4, 1, 1]},
        {"observations": ROWS, "episode_ids": ["a", "a", "a", "b", "b"]},
        {"observations": ROWS, "terminated": LAST},
        {"observations": ROWS, "truncated": LAST},
        {"observations": ROWS, "truncated": LAST.astype(int)},
        {"observations": ROWS, "terminated": [0, 0, 1, 0, 0], "truncated": [0, 0, 0, 0, 1]},
        {"observations": ROWS, "terminated": [0, 0, 1, 0, 0]},
        {"observations": ROWS.ravel(), "lengths": [3, 2]},
    ],
)
def test_the_usual_shapes_of_arrays_mean_the_same_episodes(arguments: dict[str, Any]) -> None:
    assert_two_episodes(from_arrays(**arguments))


@pytest.mark.parametrize("how", [{"lengths": [2, 1]}, {"episode_ids": [0, 0, 1]}, {"terminated": [0, 1, 0]}])
def test_transitions_are_completed_by_their_last_next_observation(how: dict[str, Any]) -> None:
    starts, ends = ROWS[[0, 1, 3]], ROWS[[1, 2, 4]]
    assert_two_episodes(from_arrays(starts, next_observations=ends, **how))


def test_a_single_transition_is_a_data_set() -> None:
    data = from_arrays([[0.0]], lengths=[1], next_observations=[[1.0]])
    np.testing.assert_array_equal(data.episode(0), [[0.0], [1.0]])


def test_images_keep_their_shape_and_transitions_of_them_are_checked() -> None:
    frames = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3)
    data = from_arrays(frames[:3], lengths=[3], next_observations=frames[1:])
    assert data.observations.dtype == np.uint8
    np.testing.assert_array_equal(data.episode(0), frames)
    broken = frames[1:].copy()
    broken[1, 1, 2, 2] += 1
    with pytest.raises(LapwingError, match="row 1 is not row 2"):
        from_arrays(frames[:3], lengths=[3], next_observations=broken)


@pytest.mark.parametrize(
    ("arguments", "terminated", "truncated"),
    [
        ({"observations": EPISODES}, [0, 0], [1, 1]),
        ({"observations": EPISODES, "terminated": [True, False]}, [1, 0], [0, 1]),
        ({"observations": EPISODES, "truncated": [True, False]}, [0, 0], [1, 0]),
        ({"observations": EPISODES, "terminated": [1, 1], "truncated": [0, 1]}, [1, 1], [0, 1]),
        ({"observations": ROWS, "terminated": LAST}, [1, 1], [0, 0]),
        ({"observations": ROWS, "truncated": LAST}, [0, 0], [1, 1]),
        ({"observations": ROWS, "terminated": [0, 0, 1, 0, 0]}, [1, 0], [0, 1]),
        ({"observations": ROWS, "lengths": [3, 2], "terminated": [0, 0, 0, 0, 1]}, [0, 1], [1, 0]),
    ],
)
def test_endings_are_kept_apart(arguments: dict[str, Any], terminated: list[int], truncated: list[int]) -> None:
    data = from_arrays(**arguments)
    assert data.terminated.tolist() == [bool(flag) for flag in terminated]
    assert data.truncated.tolist() == [bool(flag) for flag in truncated]


def test_an_episode_of_one_state_is_left_out_with_its_flags() -> None:
    data = from_arrays([EPISODES[0], [[5.0]], EPISODES[1]], terminated=[False, True, True])
    assert_two_episodes(data)
    assert data.terminated.tolist() == [False, True]


def test_equal_observations_of_different_types_are_one_state() -> None:
    data = from_arrays([[[0], [1]], [[1.0], [0.5]], [[True], [False]]])
    assert data.observations.dtype == np.float64
    assert sorted(data.observations.ravel().tolist()) == [0.0, 0.5, 1.0]


def test_booleans_become_small_whole_numbers() -> None:
    data = from_arrays([[[True, False], [False, False]]])
    assert data.observations.dtype == np.uint8
    assert data.episode(0).tolist() == [[1, 0], [0, 0]]


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=6).filter(lambda lengths: max(lengths) > 1),
    seed=st.integers(0, 9),
)
def test_every_way_to_say_where_episodes_end_gives_the_same_data(lengths: list[int], seed: int) -> None:
    rows = np.random.default_rng(seed).integers(3, size=(sum(lengths), 2))
    ends = np.cumsum(lengths)
    flags = np.isin(np.arange(len(rows)), ends - 1)
    wanted = from_arrays(np.split(rows, ends[:-1]))
    labels = np.repeat(np.arange(len(lengths)) % 2, lengths)
    for how in ({"lengths": lengths}, {"episode_ids": labels}, {"truncated": flags}):
        data = from_arrays(rows, **how)  # type: ignore[arg-type]
        np.testing.assert_array_equal(data.offsets, wanted.offsets)
        np.testing.assert_array_equal(data.ids, wanted.ids)
        np.testing.assert_array_equal(data.observations, wanted.observations)


@pytest.mark.parametrize("repeating", [False, True])
def test_arrays_go_straight_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeating: bool) -> None:
    monkeypatch.setattr(builder_module, "DECIDE_AFTER", 20)
    rng = np.random.default_rng(0)
    rows = rng.integers(3, size=(60, 1)).astype(float) if repeating else rng.normal(size=(60, 1))
    data = from_arrays(rows, lengths=[20, 20, 20], out=tmp_path / "data")
    assert data.has_table is repeating
    loaded = Trajectories.load(tmp_path / "data")
    np.testing.assert_array_equal(np.concatenate([loaded.episode(i) for i in range(3)]), rows)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"observations": []}, "is empty: it has no episode"),
        ({"observations": np.zeros((0, 2)), "lengths": []}, "is empty: it has no observation"),
        ({"observations": [[]]}, "is empty: it has no observation"),
        ({"observations": [[[1.0]], [[2.0]]]}, "is empty: no episode has two states"),
        ({"observations": np.array(3.0), "lengths": [1]}, "is empty"),
        ({"observations": ROWS}, "does not show where episodes end"),
        ({"observations": ROWS, "next_observations": ROWS}, "does not show where episodes end"),
        ({"observations": ROWS, "lengths": [3, 2], "episode_ids": [0, 0, 0, 1, 1]}, "not both"),
        ({"observations": ROWS, "lengths": [3, 3]}, "add up to the 5 rows, they add up to 6"),
        ({"observations": ROWS, "lengths": [5, 0]}, "must be positive"),
        ({"observations": ROWS, "lengths": [6, -1]}, "must be positive"),
        ({"observations": ROWS, "lengths": []}, "add up to the 5 rows"),
        ({"observations": ROWS, "episode_ids": [0, 0, 1]}, "one label per row"),
        ({"observations": ROWS, "terminated": [True, False]}, r"one value per row \(5\)"),
        ({"observations": EPISODES, "terminated": LAST}, r"one value per episode \(2\)"),
        ({"observations": EPISODES, "truncated": [True]}, r"one value per episode \(2\)"),
        ({"observations": ROWS, "lengths": [5], "terminated": LAST}, "row 2 ends an episode"),
        ({"observations": ROWS, "episode_ids": [0] * 5, "truncated": LAST}, "row 2 ends an episode"),
        ({"observations": ROWS, "lengths": [5], "next_observations": ROWS[:3]}, "shape of observations"),
        ({"observations": [["a"], ["b"]]}, "must be numbers"),
        ({"observations": [[None, 1.0]]}, "must be numbers"),
        ({"observations": [[[1.0], [2.0, 3.0]]]}, "do not form an array"),
        ({"observations": [np.zeros((2, 1)), np.zeros((2, 3))]}, "different shapes"),
        ({"observations": [[0.0, 1.0], [2.0, np.nan]]}, "observation 3 holds NaN"),
        ({"observations": [[0.0], [np.nan]], "lengths": [2], "next_observations": [[np.nan], [1.0]]}, "holds NaN"),
        ({"observations": [[0.0, np.inf]]}, "observation 1 holds NaN or infinity"),
    ],
)
@pytest.mark.parametrize("on_disk", [False, True])
def test_arrays_that_make_no_sense_are_refused_and_leave_no_trace(
    tmp_path: Path, arguments: dict[str, Any], complaint: str, on_disk: bool
) -> None:
    with pytest.raises(LapwingError, match=complaint):
        from_arrays(**arguments, out=tmp_path / "data" if on_disk else None)
    assert list(tmp_path.iterdir()) == []


def test_a_boundary_that_nobody_marked_is_found_by_the_next_observations() -> None:
    starts, ends = ROWS[[0, 1, 3]], ROWS[[1, 2, 4]]
    with pytest.raises(LapwingError, match=r"row 1 is not row 2 \(1 such place.*mark it in terminated"):
        from_arrays(starts, next_observations=ends, lengths=[3])


# What Minari wants to know about a data set; it warns about anything left out.
WHO = {
    "author": "nobody",
    "author_email": "nobody@example.org",
    "code_permalink": "https://example.org",
    "algorithm_name": "random",
    "description": "made by a test",
}
without_environment = pytest.mark.filterwarnings(
    "ignore:`eval_env` is set to None:UserWarning", "ignore:env_spec is None:UserWarning"
)


@pytest.fixture
def minari_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("minari")
    folder = tmp_path / "minari"
    folder.mkdir()
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder))
    return folder


def minari_data_set(name: str, space: gymnasium.Space[Any], episodes: list[Any], terminated: list[bool]) -> Any:
    """A local Minari data set of given observations, with as many actions as steps."""
    import minari
    from minari.data_collector import EpisodeBuffer

    buffers = []
    for observations, ended in zip(episodes, terminated, strict=True):
        steps = len(next(iter(observations.values())) if isinstance(observations, dict) else observations) - 1
        last = [False] * (steps - 1)
        buffers.append(
            EpisodeBuffer(
                observations=observations,
                actions=[0] * steps,
                rewards=[0.0] * steps,
                terminations=[*last, ended],
                truncations=[*last, not ended],
            )
        )
    return minari.create_dataset_from_buffers(
        name,
        buffers,
        observation_space=space,
        action_space=gymnasium.spaces.Discrete(2),
        **WHO,
    )


@without_environment
def test_a_minari_data_set_of_cartpole_is_read_as_it_was_recorded(minari_folder: Path, tmp_path: Path) -> None:
    env = gymnasium.make("CartPole-v1", max_episode_steps=15)
    env.action_space.seed(0)
    recorded, endings = [], []
    for seed in range(12):
        observation, _ = env.reset(seed=seed)
        episode, ended, cut = [observation], False, False
        while not (ended or cut):
            observation, _, ended, cut, _ = env.step(env.action_space.sample())
            episode.append(observation)
        recorded.append(episode)
        endings.append(ended)
    minari_data_set("cartpole/test-v0", env.observation_space, recorded, endings)
    assert set(endings) == {False, True}
    for data in (from_minari("cartpole/test-v0"), from_minari("cartpole/test-v0", out=tmp_path / "data")):
        assert data.num_episodes == 12
        for number, episode in enumerate(recorded):
            np.testing.assert_array_equal(data.episode(number), episode)
        assert data.terminated.tolist() == endings
        assert data.truncated.tolist() == [not ended for ended in endings]
        assert data.metadata["world"] == {"kind": "minari", "name": "cartpole/test-v0"}


@without_environment
def test_a_minari_data_set_can_be_given_as_an_object(minari_folder: Path) -> None:
    space = gymnasium.spaces.Box(0, 10, (1,), np.float64)
    made = minari_data_set("two/episodes-v0", space, [list(episode) for episode in EPISODES], [True, False])
    data = from_minari(made)
    assert_two_episodes(data)
    assert data.terminated.tolist() == [True, False]
    assert data.truncated.tolist() == [False, True]
    assert data.metadata["world"]["name"] == "two/episodes-v0"


@without_environment
def test_minari_dictionaries_become_keys_beside_actions_and_rewards(minari_folder: Path) -> None:
    box = gymnasium.spaces.Box(0, 10, (1,), np.float64)
    rows = list(EPISODES[0])
    data_set = minari_data_set(
        "dict/episodes-v0", gymnasium.spaces.Dict({"x": box, "y": box}), [{"x": rows, "y": rows}], [True]
    )
    data = from_minari("dict/episodes-v0")
    assert data.keys == ("x", "y")
    np.testing.assert_array_equal(data.select("y").episode(0), np.asarray(rows))
    assert data.actions is not None
    assert data.rewards is not None
    assert len(data.actions) == len(data.rewards) == data.num_transitions
    assert from_minari(data_set).keys == data.keys


def test_minari_observations_that_are_not_arrays_are_refused() -> None:
    class Nested:
        observations = ({"x": np.zeros((3, 1))},)

        def iterate_episodes(self) -> list[Any]:
            return [self]

    with pytest.raises(LapwingError):
        from_minari(Nested())


@pytest.mark.parametrize("name", ["nobody/nothing-v0", "no version", "../../etc/passwd"])
def test_an_unknown_minari_data_set_is_refused_with_advice(minari_folder: Path, name: str) -> None:
    with pytest.raises(LapwingError, match=r"no local Minari data set .*`minari list local`"):
        from_minari(name)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lengths": np.nan}, "lengths must be a list of whole numbers"),
        ({"lengths": [2.5, 2.5]}, "lengths must be a list of whole numbers"),
        ({"lengths": [1e300]}, "lengths must be a list of whole numbers"),
        ({"lengths": "five"}, "lengths must be a list of whole numbers"),
        ({"lengths": [[5]]}, "lengths must be a list of whole numbers"),
        ({"terminated": ["a"] * 5}, "true or false at each row"),
        ({"terminated": [np.nan] * 5}, "true or false at each row"),
        ({"truncated": [[True], [True, False]]}, "true or false at each row"),
        ({"episode_ids": [[0], [0, 1]]}, "one label per row"),
    ],
)
def test_boundaries_that_are_no_numbers_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        from_arrays(np.zeros((5, 2)), **options)


@pytest.mark.parametrize("dtype", ["c16", "m8[s]", "M8[s]", "U1"])
def test_observations_that_are_no_real_numbers_are_refused(dtype: str) -> None:
    with pytest.raises(LapwingError, match="observations must be numbers"):
        from_arrays(np.zeros((5, 2), dtype=dtype), lengths=[5])


def test_a_damaged_minari_data_set_is_an_error_that_names_it() -> None:
    class Damaged:
        def iterate_episodes(self) -> Any:
            raise OSError("truncated file: eof = 96")

    with pytest.raises(LapwingError, match=r"'minari' is damaged .truncated file"):
        from_minari(Damaged())


@pytest.mark.parametrize("dtype", [">f4", ">i2", "<f2"])
def test_numbers_of_another_machine_or_of_half_size_come_through(tmp_path: Path, dtype: str) -> None:
    rows = np.array([[0, 1], [2, 3], [0, 1]]).astype(dtype)
    data = from_arrays([rows], out=tmp_path / "data")
    assert data.observations.dtype.isnative
    np.testing.assert_array_equal(data.episode(0), rows)


def test_keys_of_dictionaries_are_chosen() -> None:
    episodes = {"x": [[[0.0], [1.0]]], "goal": [[[5.0], [5.0]]], "y": [[[2.0], [3.0]]]}
    assert from_arrays(episodes, keys=("y", "x")).keys == ("y", "x")
    np.testing.assert_array_equal(from_arrays(episodes, keys="y").episode(0), [[2.0], [3.0]])
    with pytest.raises(UnknownNameError):
        from_arrays(episodes, keys="z")
    with pytest.raises(ArgumentError):
        from_arrays([[[0.0], [1.0]]], keys="x")
