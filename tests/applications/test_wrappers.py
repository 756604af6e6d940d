"""The wrappers: single ones against formulas, vector ones against single ones in every autoreset mode."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

import lapwing as lw
from lapwing.applications import (
    EigenReward,
    GoalDistance,
    MixedReward,
    PotentialReward,
    RepresentationFeatures,
    RepresentationWrapper,
    VectorRepresentationWrapper,
)
from lapwing.environments.gymnasium_env import WorldEnv
from lapwing.errors import ArgumentError, DataError

WORLD = lw.make_world("room:2x3")
STATES = WORLD.table()
MODEL = lw.solve(WORLD, 4)
GOAL = 5
DISTANCE = GoalDistance(MODEL, STATES[GOAL])
REWARDS = {
    "eigen": EigenReward(MODEL, 3),
    "potential": PotentialReward(DISTANCE, 0.9, 2.0),
    "mixed": MixedReward(DISTANCE),
}
FEATURES = RepresentationFeatures(MODEL, joined=True)
MODES = list(AutoresetMode)


class ToGoal(WorldEnv):
    """-1 for every step; the goal ends the episode."""

    def __init__(self, numbered: bool = False) -> None:
        super().__init__(WORLD)
        self.numbered = numbered
        if numbered:
            self.observation_space = gymnasium.spaces.Discrete(len(STATES))  # type: ignore[assignment]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, _, _, info = super().step(action)
        return observation, -1.0, self.state == GOAL, False, info

    def _observe(self) -> Any:
        return self.state if self.numbered else super()._observe()


def env(limit: int = 4) -> gymnasium.Env[Any, Any]:
    return TimeLimit(ToGoal(), limit)


def state_of(observation: Any) -> int:
    return int(np.flatnonzero((observation[:2] == STATES).all(axis=1))[0])


# --- single environments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REWARDS)
def test_the_reward_is_that_of_the_step_and_the_true_one_is_in_the_info(name: str) -> None:
    wrapped, rng = RepresentationWrapper(env(), REWARDS[name]), np.random.default_rng(0)
    components, apart = MODEL.transform(STATES), DISTANCE(STATES)
    ends = set()
    for episode in range(40):
        before, _ = wrapped.reset(seed=episode)
        over = False
        while not over:
            after, reward, terminated, truncated, info = wrapped.step(rng.integers(4))
            here, there = state_of(before), state_of(after)
            following = 0.0 if terminated else -2.0 * apart[there]
            wanted = {
                "eigen": components[there, 2] - components[here, 2],
                "potential": -1.0 + 0.9 * following + 2.0 * apart[here],
                "mixed": -0.5 - 0.5 * apart[there],
            }
            assert isinstance(reward, float)
            assert reward == pytest.approx(wanted[name], abs=1e-9)
            assert info["env_reward"] == -1.0
            before, over = after, terminated or truncated
        ends.add((terminated, truncated))
    assert {(True, False), (False, True)} <= ends


@pytest.mark.parametrize("joined", [True, False])
def test_observations_are_features_and_lie_in_their_space(joined: bool) -> None:
    features = RepresentationFeatures(MODEL, joined=joined)
    wrapped = RepresentationWrapper(env(), features=features)
    assert wrapped.observation_space.shape == (5 if joined else 3,)
    observation, info = wrapped.reset(seed=1)
    for action in (0, 1, 2, 3):
        assert observation in wrapped.observation_space
        np.testing.assert_array_equal(observation, features(STATES[info["state"]][None])[0])
        observation, reward, _, _, info = wrapped.step(action)
        assert reward == -1.0
        assert "env_reward" not in info


def test_rewards_come_from_what_the_environment_observes_and_not_from_features() -> None:
    both, one = RepresentationWrapper(env(), REWARDS["eigen"], FEATURES), RepresentationWrapper(env(), REWARDS["eigen"])
    both.reset(seed=3)
    one.reset(seed=3)
    for action in (1, 1, 0):
        assert both.step(action)[1] == one.step(action)[1]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("features", [None, FEATURES])
def test_gymnasium_finds_nothing_wrong_with_a_wrapped_environment(features: Any) -> None:
    check_env(RepresentationWrapper(env(50), REWARDS["potential"], features), skip_render_check=True)


def test_numbered_states_are_one_hot_rows_as_in_collected_data() -> None:
    model = lw.solve(lw.collect(TimeLimit(ToGoal(numbered=True), 50), 5_000, seed=0), 3)
    wrapped = RepresentationWrapper(ToGoal(numbered=True), features=RepresentationFeatures(model, joined=True))
    observation, info = wrapped.reset(seed=0)
    assert observation in wrapped.observation_space
    assert observation[: len(STATES)].tolist() == np.eye(len(STATES))[info["state"]].tolist()


def test_one_entry_of_dictionary_observations_is_chosen_by_its_key() -> None:
    space = gymnasium.spaces.Dict({"place": ToGoal().observation_space, "clock": gymnasium.spaces.Discrete(2)})
    two = gymnasium.wrappers.TransformObservation(env(), lambda seen: {"place": seen, "clock": 0}, space)
    with pytest.raises(ArgumentError, match="give the key"):
        RepresentationWrapper(two, REWARDS["eigen"])
    wrapped = RepresentationWrapper(two, REWARDS["eigen"], FEATURES, key="place")
    plain = RepresentationWrapper(env(), REWARDS["eigen"], FEATURES)
    np.testing.assert_array_equal(wrapped.reset(seed=5)[0], plain.reset(seed=5)[0])
    assert wrapped.step(1)[1] == plain.step(1)[1]
    assert wrapped.observation_space == plain.observation_space


@pytest.mark.parametrize("name", REWARDS)
def test_a_step_that_only_resets_keeps_its_reward(name: str) -> None:
    wrapped, by_hand = (
        RepresentationWrapper(one, REWARDS[name]) for one in (gymnasium.wrappers.Autoreset(env()), env())
    )
    np.testing.assert_array_equal(wrapped.reset(seed=2)[0], by_hand.reset(seed=2)[0])
    over, resets = False, 0
    for _ in range(20):
        observation, reward, terminated, truncated, _ = wrapped.step(3)
        if over:
            assert reward == 0.0
            np.testing.assert_array_equal(observation, by_hand.reset()[0])
            resets += 1
        else:
            assert reward == by_hand.step(3)[1]
        over = terminated or truncated
    assert resets > 2


def test_two_rewards_keep_the_first_one_in_the_info() -> None:
    wrapped = RepresentationWrapper(RepresentationWrapper(env(), REWARDS["mixed"]), REWARDS["potential"])
    wrapped.reset(seed=0)
    assert wrapped.step(0)[4]["env_reward"] == -1.0


# --- vector environments -------------------------------------------------------------------------------------------


def vector(mode: AutoresetMode, count: int = 3) -> SyncVectorEnv:
    return SyncVectorEnv([env] * count, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REWARDS)
def test_nothing_crosses_a_reset_in_any_mode(name: str, mode: AutoresetMode) -> None:
    """Every sub-environment gives what a single one does that is reset by hand."""
    many = VectorRepresentationWrapper(vector(mode), REWARDS[name], FEATURES)
    singles = [RepresentationWrapper(env(), REWARDS[name], FEATURES) for _ in range(3)]
    seen, _ = many.reset(seed=7)
    expected = np.stack([single.reset(seed=7 + i)[0] for i, single in enumerate(singles)])
    np.testing.assert_array_equal(seen, expected)
    resetting, ends, rng = np.zeros(3, dtype=bool), 0, np.random.default_rng(0)
    for _ in range(60):
        actions = rng.integers(4, size=3)
        seen, rewards, terminated, truncated, infos = many.step(actions)
        ended = terminated | truncated
        for i, single in enumerate(singles):
            if resetting[i]:
                np.testing.assert_array_equal(seen[i], single.reset()[0])
                assert rewards[i] == 0.0
                continue
            last, reward, end, cut, info = single.step(actions[i])
            assert (rewards[i], terminated[i], truncated[i]) == (reward, end, cut)
            assert infos["env_reward"][i] == info["env_reward"] == -1.0
            if ended[i] and mode is AutoresetMode.SAME_STEP:
                np.testing.assert_array_equal(infos["final_obs"][i], last)
                last = single.reset()[0]
            np.testing.assert_array_equal(seen[i], last)
        ends += int(ended.sum())
        resetting = ended if mode is AutoresetMode.NEXT_STEP else resetting
        if mode is AutoresetMode.DISABLED and ended.any():
            seen, _ = many.reset(options={"reset_mask": ended})
            for i in np.flatnonzero(ended):
                np.testing.assert_array_equal(seen[i], singles[i].reset()[0])
    assert ends > 20


def test_a_reset_by_hand_ends_the_wait_for_one() -> None:
    many = VectorRepresentationWrapper(vector(AutoresetMode.NEXT_STEP), REWARDS["eigen"])
    many.reset(seed=0)
    while not (ended := np.logical_or(*many.step(np.array([0, 1, 2]))[2:4])).any():
        pass
    before, _ = many.reset(options={"reset_mask": ended})
    after, rewards, *_ = many.step(np.array([1, 1, 1]))
    values = MODEL.transform(after)[:, 2] - MODEL.transform(before)[:, 2]
    np.testing.assert_allclose(rewards[ended], values[ended], atol=1e-9)


def test_vector_observations_lie_in_their_space_and_keep_the_final_one_where_nothing_replaces_it() -> None:
    many = VectorRepresentationWrapper(vector(AutoresetMode.SAME_STEP), features=FEATURES)
    assert many.reset(seed=0)[0] in many.observation_space
    plain = VectorRepresentationWrapper(vector(AutoresetMode.SAME_STEP), REWARDS["mixed"])
    plain.reset(seed=0)
    for _ in range(4):
        *_, infos = plain.step(np.zeros(3, dtype=int))
    assert all(seen in ToGoal().observation_space for seen in infos["final_obs"])


# --- bad input -----------------------------------------------------------------------------------------------------


class Broken(WorldEnv):
    """An environment that goes wrong in its first step."""

    def __init__(self, observation: Any, reward: float) -> None:
        super().__init__(WORLD)
        self.bad = np.asarray(observation, dtype=np.float32), reward

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return *self.bad, False, False, {}


@pytest.mark.parametrize("name", REWARDS)
def test_no_nan_leaves_a_wrapper(name: str) -> None:
    for observation, reward in (([np.nan, 0.0], -1.0), (STATES[0], np.nan), (STATES[0], np.inf)):
        wrapped = RepresentationWrapper(Broken(observation, reward), REWARDS[name], FEATURES)
        wrapped.reset(seed=0)
        with pytest.raises(DataError, match=r"finite|NaN"):
            wrapped.step(0)


def test_an_observation_that_a_table_does_not_know_is_refused_while_running() -> None:
    wrapped = RepresentationWrapper(Broken([9.0, 9.0], -1.0), REWARDS["mixed"])
    wrapped.reset(seed=0)
    with pytest.raises(ArgumentError, match="not in the table"):
        wrapped.step(0)


def test_wrappers_refuse_what_they_cannot_use() -> None:
    for parts in ({}, {"reward": 5}, {"features": MODEL}, {"reward": REWARDS["eigen"], "key": "place"}):
        with pytest.raises(ArgumentError):
            RepresentationWrapper(env(), **parts)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError):
            VectorRepresentationWrapper(vector(AutoresetMode.NEXT_STEP), **parts)  # type: ignore[arg-type]
    with pytest.raises(ResetNeeded):
        RepresentationWrapper(env(), REWARDS["eigen"]).step(0)
    with pytest.raises(ResetNeeded):
        VectorRepresentationWrapper(vector(AutoresetMode.NEXT_STEP), REWARDS["eigen"]).step(np.zeros(3, dtype=int))
