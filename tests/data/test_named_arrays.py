"""Experience in named arrays: actions, rewards, several keys, several next states; appended, saved and selected."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import lapwing as lw
from lapwing.data import TrajectoryBuilder
from lapwing.environments import GridWorld
from lapwing.errors import ArgumentError, DataError, UnknownNameError

RNG = np.random.default_rng(0)


class Clock(gymnasium.Env[Any, Any]):
    """Shows a picture and a vector of the time; the action sets the reward; episodes of 2 to 6 steps."""

    observation_space = spaces.Dict(
        {"actions": spaces.Box(0, 255, (2, 2), np.uint8), "vector": spaces.Box(0.0, 99.0, (3,), np.float32)}
    )
    action_space = spaces.Discrete(4)

    def observe(self) -> dict[str, Any]:
        return {"actions": np.full((2, 2), self.time, np.uint8), "vector": np.full(3, self.total, np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time, self.total, self.length = 0, 0.0, int(self.np_random.integers(2, 6, endpoint=True))
        return self.observe(), {}

    def step(self, action: Any) -> Any:
        self.time += 1
        self.total += float(action)
        return self.observe(), float(action) / 2, self.time == self.length, False, {}


def equal(first: lw.Trajectories, second: lw.Trajectories) -> bool:
    mine, theirs = first.arrays(), second.arrays()
    assert mine.keys() == theirs.keys()
    return first.keys == second.keys and all(
        mine[name].dtype == theirs[name].dtype and np.array_equal(mine[name], theirs[name]) for name in mine
    )


def everything(seed: int = 0) -> lw.Trajectories:
    """Two keys, actions, rewards, and two further next states per transition."""
    rng = np.random.default_rng(seed)
    states = [3, 2, 4]
    return lw.from_arrays(
        {
            "image": [rng.integers(9, size=(n, 2, 2)) for n in states],
            "place": [rng.normal(size=(n, 1)) for n in states],
        },
        actions=[rng.integers(4, size=n - 1) for n in states],
        rewards=[rng.normal(size=n - 1) for n in states],
        next_observations={
            "image": [rng.integers(9, size=(n - 1, 2, 2, 2)) for n in states],
            "place": [rng.normal(size=(n - 1, 2, 1)) for n in states],
        },
        terminated=[True, False, True],
    )


@pytest.mark.parametrize("mmap", [False, True])
def test_every_array_survives_saving(tmp_path: Path, mmap: bool) -> None:
    data = everything()
    again = lw.Trajectories.load(data.save(tmp_path / "data"), mmap=mmap)
    assert equal(data, again)
    assert again.keys == ("image", "place")
    assert again.rewards is not None
    assert again.rewards.shape == (6,)


def test_a_key_is_selected_with_all_that_belongs_to_transitions() -> None:
    data = everything()
    image = data.select("image")
    assert image.keys == ()
    assert image.has_table
    assert image.actions is data.actions
    np.testing.assert_array_equal(image.episode(1), data.episode(1)["image"])
    assert image.next_observations.shape == (6, 2, 2, 2)
    with pytest.raises(UnknownNameError):
        data.select("imago")


def test_several_keys_must_be_selected_from_or_joined_before_anything_is_counted() -> None:
    data = everything()
    for use in (lw.Trajectories.counts, lw.Trajectories.visits):
        with pytest.raises(DataError, match=r"data\.select.*data\.packed"):
            use(data)
    with pytest.raises(DataError, match=r"data\.select"):
        lw.rayleigh_ritz(lambda rows: rows, data)


def test_a_single_key_is_an_array() -> None:
    assert lw.from_arrays({"x": [[[0.0], [1.0]]]}).keys == ()


def test_the_transition_that_leaves_a_state_is_found() -> None:
    data = everything()
    positions = np.concatenate(list(data.pair_positions()))
    np.testing.assert_array_equal(data.transition_rows(positions), np.arange(data.num_transitions))


@pytest.mark.parametrize("world", ["GridMaze-7", "Box-2"])
def test_recorded_actions_lead_from_state_to_state(world: str) -> None:
    data = lw.collect(world, steps=500, episode_length=(2, 9), record="actions", seed=3)
    plain = lw.collect(world, steps=500, episode_length=(2, 9), seed=3)
    np.testing.assert_array_equal(data.observations, plain.observations)
    assert plain.actions is None
    assert data.actions is not None
    made = lw.make_world(world)
    positions = np.concatenate(list(data.pair_positions()))
    if isinstance(made, GridWorld):
        moved = made.successors[data.ids[positions], data.actions]
        np.testing.assert_array_equal(moved, data.ids[positions + 1])
    else:
        points = (data.observations[positions] + 0.5) * np.array(made.sides)
        moved, _ = made.step(points, data.actions, RNG)
        np.testing.assert_allclose(made.observe(moved), data.observations[positions + 1], atol=1e-5)


@pytest.mark.parametrize("mode", [None, *AutoresetMode])
@pytest.mark.parametrize("on_disk", [False, True])
def test_actions_and_rewards_of_an_environment_stand_beside_their_transition(
    tmp_path: Path, on_disk: bool, mode: AutoresetMode | None
) -> None:
    env = Clock() if mode is None else SyncVectorEnv([Clock] * 3, autoreset_mode=mode)
    out = tmp_path / "data" if on_disk else None
    data = lw.collect(env, steps=100, seed=1, keys=("actions", "vector"), record=("actions", "rewards"), out=out)
    assert data.keys == ("actions", "vector")
    total = data.observations["vector"][:, 0]
    positions = np.concatenate(list(data.pair_positions()))
    np.testing.assert_array_equal(total[positions + 1] - total[positions], data.actions)
    np.testing.assert_array_equal(data.rewards, data.actions / 2)
    assert (np.diff(data.observations["actions"][:, 0, 0].astype(int))[positions] == 1).all()


def test_keys_of_an_environment_are_chosen() -> None:
    data = lw.collect(Clock(), steps=60, keys="vector")
    assert data.keys == ()
    assert data.has_table
    assert data.observation_shape == (3,)
    with pytest.raises(UnknownNameError):
        lw.collect(Clock(), steps=60, keys=("vektor",))
    with pytest.raises(ArgumentError):
        lw.collect("GridMaze-7", steps=60, keys="vector")
    with pytest.raises(UnknownNameError):
        lw.collect("GridMaze-7", steps=60, record="action")


@pytest.mark.parametrize("names", [("GridMaze-7", "GridMaze-7"), ("GridMaze-7", "GridMaze-9"), ("Box-2", "Box-2")])
def test_appended_data_are_the_episodes_of_both(names: tuple[str, str]) -> None:
    first, second = (lw.collect(name, 300, seed=seed, record="actions") for seed, name in enumerate(names))
    both = first.append(second)
    assert both.num_transitions == 600
    assert both.has_table == first.has_table
    for data, begin in ((first, 0), (second, first.num_episodes)):
        for number in range(data.num_episodes):
            np.testing.assert_array_equal(both.episode(begin + number), data.episode(number))
    np.testing.assert_array_equal(both.actions, np.concatenate([first.actions, second.actions]))
    assert not both.has_table or both.counts().sum() == 600


def test_data_of_several_keys_are_appended_too() -> None:
    first, second = everything(0), everything(1)
    both = first.append(second)
    np.testing.assert_array_equal(both.episode(3)["place"], second.episode(0)["place"])
    assert both.next_observations["image"].shape == (12, 2, 2, 2)


def test_data_that_do_not_fit_together_are_not_appended() -> None:
    with pytest.raises(DataError):
        lw.collect("GridMaze-7", 50).append(lw.collect("GridMaze-7", 50, record="actions"))
    with pytest.raises(DataError):
        lw.collect("Box-1", 50).append(lw.collect("Box-2", 50))
    with pytest.raises(DataError):
        everything().append(everything().select("image"))


def test_a_builder_in_memory_gives_all_data_so_far_as_often_as_asked() -> None:
    pieces = [lw.collect("GridMaze-7", 20, seed=seed) for seed in range(4)]
    with TrajectoryBuilder() as builder:
        for number, piece in enumerate(pieces, start=1):
            for episode in range(piece.num_episodes):
                rows = piece.episode(episode)
                builder.add(rows, np.array([len(rows) - 1]), np.array([False]), np.array([True]))
            data = builder.finish({})
            assert data.num_transitions == 20 * number
            np.testing.assert_array_equal(data.episode(0), pieces[0].episode(0))


def test_counts_are_made_once() -> None:
    data = lw.collect("GridMaze-7", 500)
    assert data.counts() is data.counts(1)
    assert data.counts(2).sum() < data.counts().sum()


def test_rows_that_are_transitions_keep_the_last_action_of_an_episode() -> None:
    rows = np.array([[0.0], [1.0], [5.0]])
    data = lw.from_arrays(
        rows,
        next_observations=np.array([[1.0], [2.0], [6.0]]),
        terminated=[0, 1, 1],
        actions=[7, 8, 9],
        rewards=[0.1, 0.2, 0.3],
    )
    assert data.actions.tolist() == [7, 8, 9]
    assert data.rewards.tolist() == [0.1, 0.2, 0.3]
    assert data.next_observations is None


def test_rows_that_are_states_leave_the_last_action_out() -> None:
    data = lw.from_arrays(np.arange(5.0), lengths=[3, 2], actions=[1, 2, 0, 3, 0])
    assert data.actions.tolist() == [1, 2, 3]


def test_several_next_states_of_one_array_are_split_like_it() -> None:
    further = RNG.normal(size=(5, 3, 1))
    data = lw.from_arrays(np.arange(5.0), lengths=[3, 2], next_observations=further)
    np.testing.assert_array_equal(data.next_observations, further[[0, 1, 3]])


@pytest.mark.parametrize(
    "parts",
    [
        {"actions": [[1, 2, 3, 4]]},
        {"actions": [[1], [2]]},
        {"rewards": [[np.nan, 1.0]]},
        {"rewards": [[[1.0], [1.0]]]},
        {"actions": [["up", "down"]]},
        {"next_observations": [np.zeros((1, 2, 1))]},
        {"next_observations": [np.zeros((2, 2, 5))]},
        {"next_observations": {"x": [np.zeros((2, 2, 1))], "y": [np.zeros((2, 2, 1))]}},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit_the_transitions_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(lw.LapwingError):
        lw.from_arrays([[[0.0], [1.0], [2.0]]], **parts)
