"""Any Gymnasium environment: final observations kept, resets never crossed, in all three autoreset modes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from scipy.sparse import csr_array

from lapwing.data import collect, from_gymnasium
from lapwing.data.from_gymnasium import _choose_keys
from lapwing.data.trajectories import Trajectories
from lapwing.environments.grid import GridWorld
from lapwing.environments.registry import make_world
from lapwing.errors import ArgumentError, DataError, LapwingError

StepsMatch = Callable[[csr_array, csr_array], bool]
MODES = list(AutoresetMode)


class CountingEnv(gymnasium.Env[Any, Any]):
    """Observes (steps so far, length of this episode); even lengths end by termination, odd ones by truncation."""

    observation_space = spaces.Box(0.0, 1000.0, (2,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, reuse_buffer: bool = False, longest: int = 6) -> None:
        self.buffer = np.zeros(2, dtype=np.float32)
        self.reuse_buffer = reuse_buffer
        self.longest = longest
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.buffer[:] = 0, self.np_random.integers(1, self.longest, endpoint=True)
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.actions.append(action)
        self.buffer[0] += 1
        ended = bool(self.buffer[0] == self.buffer[1])
        even = self.buffer[1] % 2 == 0
        return self.observe(), 0.0, ended and even, ended and not even, {}

    def observe(self) -> Any:
        return self.buffer if self.reuse_buffer else self.buffer.copy()


class NumberedEnv(CountingEnv):
    """The same with the number of steps as a discrete observation that begins at -2."""

    observation_space = spaces.Discrete(9, start=-2)

    def observe(self) -> Any:
        return int(self.buffer[0]) - 2


class OtherSpaceEnv(CountingEnv):
    """The same observed through any space and any function of the number of steps."""

    def __init__(self, space: spaces.Space[Any], show: Callable[[int], Any]) -> None:
        super().__init__()
        self.observation_space = space
        self.show = show

    def observe(self) -> Any:
        return self.show(int(self.buffer[0]))


def vector_of(mode: AutoresetMode, count: int = 5, make: Callable[[], Any] = CountingEnv) -> SyncVectorEnv:
    return SyncVectorEnv([make] * count, autoreset_mode=mode)


def assert_honest(data: Trajectories, unfinished: int) -> None:
    """Every episode counts up from zero by ones; it ends where it said it would, unless collection stopped first."""
    open_episodes = 0
    for number in range(data.num_episodes):
        time, length = data.episode(number).T
        np.testing.assert_array_equal(time, np.arange(len(time)))
        assert np.ptp(length) == 0
        if time[-1] == length[-1]:
            assert data.terminated[number] == (length[-1] % 2 == 0)
            assert data.truncated[number] == (length[-1] % 2 == 1)
        else:
            open_episodes += 1
            assert (data.terminated[number], data.truncated[number]) == (False, True)
    assert open_episodes <= unfinished


@pytest.mark.parametrize("reuse_buffer", [False, True])
@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_one_environment_is_recorded_with_its_final_observations(steps: int, reuse_buffer: bool) -> None:
    data = collect(CountingEnv(reuse_buffer), steps=steps, seed=1)
    assert data.num_transitions == steps
    assert_honest(data, unfinished=1)
    if steps == 1000:
        assert data.terminated.sum() > 50
        assert data.truncated.sum() > 50


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_a_vector_environment_is_recorded_with_its_final_observations(mode: AutoresetMode, steps: int) -> None:
    data = collect(vector_of(mode), steps=steps, seed=1)
    assert data.num_transitions == steps
    assert_honest(data, unfinished=5)
    if steps == 1000:
        finished = [data.episode(i)[-1] for i in range(data.num_episodes) if data.lengths[i] == data.episode(i)[0, 1]]
        assert {int(length) for _, length in finished} == {1, 2, 3, 4, 5, 6}
        assert data.terminated.any()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_vector_environment_that_does_not_copy_is_recorded_right(mode: AutoresetMode) -> None:
    env = SyncVectorEnv([CountingEnv] * 3, autoreset_mode=mode, copy=False)
    assert_honest(collect(env, steps=300), unfinished=3)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_episodes_of_one_step_are_kept_in_every_mode(mode: AutoresetMode) -> None:
    data = collect(vector_of(mode, make=lambda: CountingEnv(longest=1)), steps=200)
    assert data.lengths.tolist() == [1] * 200
    assert_honest(data, unfinished=0)


@pytest.mark.parametrize("flush", [1, 10, 10**6])
def test_how_often_episodes_are_handed_on_changes_nothing(monkeypatch: pytest.MonkeyPatch, flush: int) -> None:
    whole = collect(vector_of(AutoresetMode.NEXT_STEP), steps=500, seed=3)
    monkeypatch.setattr(from_gymnasium, "FLUSH_STATES", flush)
    pieces = collect(vector_of(AutoresetMode.NEXT_STEP), steps=500, seed=3)
    np.testing.assert_array_equal(pieces.offsets, whole.offsets)
    np.testing.assert_array_equal(pieces.ids, whole.ids)
    np.testing.assert_array_equal(pieces.observations, whole.observations)


@pytest.mark.parametrize("make", [CountingEnv, lambda: vector_of(AutoresetMode.SAME_STEP)], ids=["single", "vector"])
def test_the_same_seed_gives_the_same_data_and_another_seed_others(make: Callable[[], Any]) -> None:
    first, again, other = (collect(make(), steps=200, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.offsets, again.offsets)
    np.testing.assert_array_equal(first.observations, again.observations)
    assert first.offsets.tolist() != other.offsets.tolist()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_episodes_longer_than_a_block_keep_their_actions_and_rewards(
    monkeypatch: pytest.MonkeyPatch, mode: AutoresetMode
) -> None:
    options = {"steps": 700, "seed": 3, "record": ("actions", "rewards")}
    whole = collect(vector_of(mode, make=lambda: CountingEnv(longest=90)), **options)
    monkeypatch.setattr(from_gymnasium, "FLUSH_BYTES", 8 * 5 * 4)  # four steps of five environments
    pieces = collect(vector_of(mode, make=lambda: CountingEnv(longest=90)), **options)
    assert_honest(pieces, unfinished=5)
    for name in ("offsets", "observations", "ids", "actions", "rewards"):
        np.testing.assert_array_equal(getattr(pieces, name), getattr(whole, name))


def test_an_environment_whose_observations_change_their_shape_is_refused() -> None:
    env = OtherSpaceEnv(CountingEnv.observation_space, lambda t: np.zeros(2 if t < 1 else 3, np.float32))
    with pytest.raises(DataError, match=r"shape \(3,\) after others of shape \(2,\)"):
        collect(env, steps=100)


def test_whole_numbers_before_broken_ones_lose_nothing() -> None:
    env = OtherSpaceEnv(CountingEnv.observation_space, lambda t: np.array([0, 0]) if t == 0 else np.array([0.5, t]))
    data = collect(env, steps=100)
    assert data.observations.dtype == np.float64
    assert (data.episode(0)[1:, 0] == 0.5).all()


def test_random_actions_follow_the_seed_and_cover_the_space() -> None:
    runs = []
    for seed in (1, 1, 2):
        env = CountingEnv()
        collect(env, steps=100, seed=seed)
        runs.append([int(action) for action in env.actions])
    assert runs[0] == runs[1] != runs[2]
    assert set(runs[0]) == {0, 1, 2}


def test_a_time_limit_of_our_own_truncates() -> None:
    data = collect(CountingEnv(longest=6), steps=500, episode_length=2)
    assert data.lengths.max() == 2
    for number in range(data.num_episodes):
        time, length = data.episode(number).T
        np.testing.assert_array_equal(time, np.arange(len(time)))
        # The environment's own ending counts even where it falls together with the limit.
        assert data.terminated[number] == (length[0] == 2 and time[-1] == 2)
        assert data.truncated[number] or data.terminated[number]


def test_a_policy_sees_what_the_environment_shows() -> None:
    env, seen = CountingEnv(), []

    def policy(observation: np.ndarray) -> int:
        seen.append(observation.copy())
        return int(observation[0]) % 3

    data = collect(env, steps=50, policy=policy)
    starts = np.concatenate([data.episode(i)[:-1] for i in range(data.num_episodes)])
    np.testing.assert_array_equal(np.array(seen), starts)
    assert env.actions == [int(row[0]) % 3 for row in starts]
    assert data.metadata["policy"] == "callable"


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_a_policy_sees_a_batch_of_what_a_vector_environment_shows(mode: AutoresetMode) -> None:
    shapes = set()

    def policy(observations: np.ndarray) -> np.ndarray:
        shapes.add(observations.shape)
        return np.zeros(len(observations), dtype=np.int64)

    assert_honest(collect(vector_of(mode), steps=100, policy=policy), unfinished=5)
    assert shapes == {(5, 2)}


@pytest.mark.parametrize(
    "make", [NumberedEnv, *(lambda mode=mode: vector_of(mode, make=NumberedEnv) for mode in MODES)]
)
def test_numbered_observations_become_one_hot_rows(make: Callable[[], Any]) -> None:
    data = collect(make(), steps=300)
    assert data.observation_shape == (9,)
    for number in range(data.num_episodes):
        episode = data.episode(number)
        np.testing.assert_array_equal(episode, np.eye(9)[: len(episode)])


@pytest.mark.parametrize(
    ("space", "show", "shape"),
    [
        (spaces.Box(0, 10, ()), lambda t: np.float32(t), (1,)),
        (spaces.Box(0, 255, (2, 2, 3), np.uint8), lambda t: np.full((2, 2, 3), t, np.uint8), (2, 2, 3)),
        (spaces.MultiBinary(3), lambda t: np.array([t & 1, t >> 1 & 1, t >> 2], np.int8), (3,)),
        (spaces.MultiDiscrete([9, 9]), lambda t: np.array([t, t]), (2,)),
    ],
)
def test_every_space_of_numbers_is_recorded(space: spaces.Space[Any], show: Callable[[int], Any], shape: Any) -> None:
    data = collect(OtherSpaceEnv(space, show), steps=200)
    assert data.observation_shape == shape
    for number in range(data.num_episodes):
        expected = [np.reshape(show(t), shape) for t in range(data.lengths[number] + 1)]
        np.testing.assert_array_equal(data.episode(number), expected)


NESTED = spaces.Dict(
    {
        "where": spaces.Tuple((spaces.Box(0, 10, (2,)), spaces.Discrete(9))),
        "desired_goal": spaces.Box(0, 10, (2,)),
        "mission": spaces.Text(9),
    }
)


def nested_env() -> Any:
    goal = np.ones(2, np.float32)
    return OtherSpaceEnv(
        NESTED, lambda t: {"where": (np.full(2, t, np.float32), t), "desired_goal": goal, "mission": "go"}
    )


@pytest.mark.parametrize("make", [nested_env, *(lambda mode=mode: vector_of(mode, make=nested_env) for mode in MODES)])
def test_entries_of_dictionaries_and_tuples_are_chosen_by_their_path(make: Callable[[], Any]) -> None:
    data = collect(make(), steps=200, keys=["where.0", "where.1"])
    assert data.keys == ("where.0", "where.1")
    assert data.num_transitions == 200
    places, numbers = data.select("where.0"), data.select("where.1")
    for number in range(data.num_episodes):
        times = np.arange(data.lengths[number] + 1)
        np.testing.assert_array_equal(places.episode(number)[:, 1], times)
        np.testing.assert_array_equal(numbers.episode(number), np.eye(9)[times])


def test_without_a_choice_the_entries_are_listed_and_goals_named() -> None:
    with pytest.raises(ArgumentError) as caught:
        collect(nested_env(), steps=10)
    message = str(caught.value)
    assert "where.0 ((2,) float32)," in message
    assert "desired_goal ((2,) float32; looks like a goal)" in message
    assert "mission (Text, not numbers; looks like a goal)" in message
    assert "keys='where.0'" in message
    assert "achieved_goal ((2,) float32)" in _choose_keys({"achieved_goal": spaces.Box(0, 1, (2,))})


def test_an_entry_that_is_not_numbers_is_refused() -> None:
    with pytest.raises(DataError, match="choose other keys"):
        collect(nested_env(), steps=10, keys="mission")
    with pytest.raises(DataError, match="ObservationWrapper"):
        collect(OtherSpaceEnv(spaces.Text(9), lambda t: "go"), steps=10)


def test_the_only_entry_needs_no_choice() -> None:
    env = OtherSpaceEnv(spaces.Tuple((spaces.Box(0, 10, (1,)),)), lambda t: (np.array([t], np.float32),))
    assert collect(env, steps=10).observation_shape == (1,)


def test_the_last_observations_are_joined() -> None:
    frames = OtherSpaceEnv(spaces.Box(0, 9, (4, 5), np.uint8), lambda t: np.full((4, 5), t, np.uint8))
    assert collect(from_gymnasium.stack_observations(frames, 3), steps=20).observation_shape == (4, 5, 3)
    colours = OtherSpaceEnv(spaces.Box(0, 9, (4, 5, 2), np.uint8), lambda t: np.full((4, 5, 2), (t, 0), np.uint8))
    data = collect(from_gymnasium.stack_observations(colours, 3), steps=20)
    np.testing.assert_array_equal(data.episode(0)[3][0, 0], [1, 0, 2, 0, 3, 0])
    nested = collect(from_gymnasium.stack_observations(nested_env(), 2), steps=20, keys="where.0")
    np.testing.assert_array_equal(nested.episode(0)[2], [1, 1, 2, 2])


class Agent:
    def predict(self, observation: Any, state: Any = None) -> tuple[Any, Any]:
        return np.ones(np.shape(observation)[:-1], dtype=np.int64), state


@pytest.mark.parametrize("make", [CountingEnv, *(lambda mode=mode: vector_of(mode) for mode in MODES)])
@pytest.mark.parametrize("policy", [Agent(), Agent().predict, lambda seen: np.ones(np.shape(seen)[:-1], np.int8)])
def test_agents_and_functions_that_return_a_state_are_policies(make: Callable[[], Any], policy: Any) -> None:
    data = collect(make(), steps=50, policy=policy, record="actions")
    np.testing.assert_array_equal(data.actions, 1)


def test_a_number_is_an_action_where_actions_are_one_number_and_others_are_refused() -> None:
    env = gymnasium.make("Pendulum-v1")
    data = collect(env, steps=20, policy=lambda seen: 0.5, record="actions")
    np.testing.assert_array_equal(data.actions, np.full((20, 1), 0.5))
    for wrong in (None, "left", [0.1, 0.2]):
        with pytest.raises(ArgumentError, match="policy gave"):
            collect(env, steps=20, policy=lambda seen, wrong=wrong: wrong)


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_environment_that_shows_nan_is_refused(tmp_path: Path, on_disk: bool) -> None:
    env = OtherSpaceEnv(CountingEnv.observation_space, lambda t: np.array([t, np.nan if t == 3 else 0], np.float32))
    with pytest.raises(LapwingError, match="holds NaN"):
        collect(env, steps=100, out=tmp_path / "data" if on_disk else None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("make", "options", "complaint"),
    [
        (CountingEnv, {"steps": 0}, "steps must be at least 1"),
        (CountingEnv, {"observation": "xy"}, "package's own worlds"),
        (CountingEnv, {"slip": 0.1}, "package's own worlds"),
        (CountingEnv, {"policy": [[0.5, 0.5]]}, "must be a function"),
        (CountingEnv, {"episode_length": (3, 5)}, "one number, not a range"),
        (CountingEnv, {"episode_length": 0}, "episode_length must be"),
        (lambda: vector_of(AutoresetMode.NEXT_STEP), {"episode_length": 5}, "ends its own episodes; wrap it"),
    ],
)
def test_options_that_do_not_apply_are_refused(
    make: Callable[[], Any], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(LapwingError, match=complaint):
        collect(make(), **{"steps": 10, **options})


def test_progress_counts_up_to_the_steps() -> None:
    seen: list[tuple[int, int]] = []
    collect(CountingEnv(), steps=50, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (50, 50)


def test_metadata_say_where_the_data_came_from() -> None:
    data = collect(gymnasium.make("CartPole-v1"), steps=20, seed=6)
    assert data.metadata["world"] == {"kind": "gymnasium", "name": "CartPole-v1"}
    assert (data.metadata["steps"], data.metadata["seed"], data.metadata["policy"]) == (20, 6, "uniform")
    assert collect(CountingEnv(), steps=5).metadata["world"]["name"] == "CountingEnv"


def renumbered(data: Trajectories, world: GridWorld) -> Trajectories:
    """The same data with states numbered as in the world instead of by first appearance."""
    assert data.ids is not None
    table = world.table()
    number = [int(np.flatnonzero((table == row).all(axis=1)).item()) for row in data.observations]
    ids = np.array(number, dtype=np.int32)[data.ids]
    return Trajectories(table, data.offsets, data.terminated, data.truncated, ids)


@pytest.mark.parametrize("how", ["single", "vector"])
def test_our_worlds_move_alike_through_gymnasium_and_vectorised(how: str, steps_match: StepsMatch) -> None:
    world = make_world("GridMaze-9", slip=0.2)
    assert isinstance(world, GridWorld)

    def make() -> Any:
        return TimeLimit(gymnasium.make("lapwing/GridMaze-9-v0", slip=0.2), 10)

    env = make() if how == "single" else SyncVectorEnv([make] * 8)
    through_gymnasium = renumbered(collect(env, steps=5000, seed=2), world)
    vectorised = collect(world, steps=5000, episode_length=10, seed=2)
    for data in (through_gymnasium, vectorised):
        assert steps_match(data.counts(), world.transition_matrix())
        assert data.lengths.max() == 10
