"""Environments of other packages as they are installed: MiniGrid, mazes of gymnasium-robotics, Atari, Minari data."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import lapwing as lw
from lapwing.data import audit, collect
from lapwing.environments.gymnasium_wrappers import FixedSeed, RandomStart
from lapwing.errors import ArgumentError

WALL, AGENT = 2, 10  # MiniGrid's numbers of objects
FULL_VIEW = "--wrappers lapwing.environments.gymnasium_wrappers:RandomStart minigrid.wrappers:FullyObsWrapper"


def with_package(name: str) -> Any:
    """A package of environments, registered; the test is skipped where it is not installed."""
    package = pytest.importorskip(name)
    gymnasium.register_envs(package)
    return package


# --- classic control and numbered states ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "numbers"), [("CartPole-v1", 4), ("Acrobot-v1", 6), ("MountainCar-v0", 2), ("Pendulum-v1", 3)]
)
@pytest.mark.parametrize("environments", [1, 3])
def test_classic_control_is_collected_without_resets_inside_episodes(
    name: str, numbers: int, environments: int
) -> None:
    env = gymnasium.make(name) if environments == 1 else gymnasium.make_vec(name, num_envs=environments)
    data = collect(env, 1_000, seed=1, record=("actions", "rewards"))
    assert (data.num_transitions, data.observation_shape) == (1_000, (numbers,))
    assert data.actions is not None
    assert not audit(data).suspected_resets
    again = collect(env, 1_000, seed=1)
    np.testing.assert_array_equal(again.observations, data.observations)


@pytest.mark.filterwarnings("ignore:Taxi-v4 falls into")  # a passenger and a destination for each part
@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_numbered_states_of_other_packages_are_counted(name: str) -> None:
    data = collect(gymnasium.make(name), 3_000, seed=0, episode_length=50)
    assert data.has_table
    assert (data.observations.sum(axis=1) == 1).all()
    assert lw.solve(data, 2).dim == 2


def test_with_one_seed_for_all_resets_the_steps_still_differ() -> None:
    env = FixedSeed(gymnasium.make("FrozenLake-v1", is_slippery=True), seed=3)
    data = collect(env, 400, seed=0, policy=lambda _: 2)
    assert data.ids is not None
    ends = {tuple(data.ids[begin:end]) for begin, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)}
    assert len(ends) > 5
    again = collect(env, 400, seed=0, policy=lambda _: 2)
    np.testing.assert_array_equal(again.ids, data.ids)


# --- MiniGrid ---------------------------------------------------------------------------------------------------------


def walls(images: NDArray[Any]) -> set[bytes]:
    return {(image[..., 0] == WALL).tobytes() for image in images}


def starts(data: Any) -> set[bytes]:
    return {(data.episode(number)[0][..., 0] == AGENT).tobytes() for number in range(data.num_episodes)}


def four_rooms(*inner: Callable[[Any], Any]) -> Any:
    from minigrid.wrappers import FullyObsWrapper, ImgObsWrapper

    env = gymnasium.make("MiniGrid-FourRooms-v0", max_steps=20)
    for wrap in inner:
        env = wrap(env)
    return ImgObsWrapper(FullyObsWrapper(env))


def test_minigrid_draws_a_layout_for_each_episode_unless_its_seed_is_fixed() -> None:
    with_package("minigrid")
    drawn = collect(four_rooms(), 160, seed=0)
    assert len(walls(drawn.observations)) == drawn.num_episodes
    fixed = collect(four_rooms(lambda env: FixedSeed(env, 4)), 160, seed=0)
    assert (len(walls(fixed.observations)), len(starts(fixed))) == (1, 1)
    many = collect(four_rooms(lambda env: FixedSeed(env, 4), RandomStart), 160, seed=0)
    assert walls(many.observations) == walls(fixed.observations)
    assert len(starts(many)) > 4


@pytest.mark.parametrize("together", ["", "--num-envs 3"])
def test_minigrid_on_the_command_line_has_one_layout(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: str
) -> None:
    with_package("minigrid")
    monkeypatch.chdir(tmp_path)
    command = f"collect gym:minigrid:MiniGrid-FourRooms-v0 --steps 250 --reset-seed 4 {FULL_VIEW} {together}"
    command += " --keys image --env-option max_steps=20 --json --out"
    facts = run(f"{command} data").json
    assert (facts["transitions"], facts["observation_shape"]) == (250, [19, 19, 3])
    data = lw.Trajectories.load("data")
    assert len(walls(data.observations)) == 1
    assert len(starts(data)) > 4
    run(f"{command} again")
    np.testing.assert_array_equal(lw.Trajectories.load("again").observations, data.observations)


# --- PointMaze and AntMaze --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "numbers"), [("PointMaze_UMaze-v3", 4), ("AntMaze_UMaze-v5", 105)])
def test_mazes_ask_for_a_key_and_goals_move_with_resets(name: str, numbers: int) -> None:
    with_package("gymnasium_robotics")
    env = gymnasium.make(name, max_episode_steps=40)
    with pytest.raises(ArgumentError, match=r"desired_goal \(\(2,\) float64; looks like a goal\)"):
        collect(env, 10)
    keys = ["observation", "achieved_goal", "desired_goal"]
    data = collect(env, 200, seed=0, keys=keys)
    assert data.observations["observation"].shape[1:] == (numbers,)
    goals = data.select("desired_goal")
    assert len({tuple(goals.episode(number)[0]) for number in range(goals.num_episodes)}) == goals.num_episodes
    assert all(np.ptp(goals.episode(number), axis=0).max() == 0 for number in range(goals.num_episodes))
    fixed = collect(FixedSeed(env, 0), 200, seed=0, keys="desired_goal")
    assert fixed.has_table or np.ptp(fixed.observations, axis=0).max() == 0


# --- Atari ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP], ids=str)
def test_stacked_frames_of_atari_go_on_from_step_to_step_and_never_across_a_reset(mode: AutoresetMode) -> None:
    with_package("ale_py")
    from ale_py.vector_env import AtariVectorEnv

    env = AtariVectorEnv("breakout", num_envs=4, autoreset_mode=mode, max_num_frames_per_episode=160, noop_max=0)
    data = collect(env, 400, seed=0, record="rewards")
    assert (data.num_transitions, data.observation_shape) == (400, (4, 84, 84))
    assert data.num_episodes > 8
    for number in range(data.num_episodes):
        frames = data.episode(number)
        np.testing.assert_array_equal(frames[1:, :3], frames[:-1, 1:])


def test_an_atari_environment_that_steps_a_part_of_its_games_is_refused() -> None:
    with_package("ale_py")
    from ale_py.vector_env import AtariVectorEnv

    with pytest.raises(ArgumentError, match="leave batch_size out"):
        collect(AtariVectorEnv("breakout", num_envs=4, batch_size=2), 100)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ("--env-option obs_type=ram", [128]),
        ("--env-option obs_type=grayscale", [210, 160]),
        ("--num-envs 3", [4, 84, 84]),
        ("--num-envs 3 --env-option stack_num=1", [1, 84, 84]),
    ],
)
def test_atari_is_collected_by_a_command(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, shape: list[int]
) -> None:
    with_package("ale_py")
    monkeypatch.chdir(tmp_path)
    facts = run(f"collect gym:ale_py:ALE/MontezumaRevenge-v5 --steps 30 {options} --out data --json").json
    assert (facts["transitions"], facts["observation_shape"]) == (30, shape)
    assert lw.Trajectories.load("data").observations.dtype == np.uint8


def test_an_option_that_atari_does_not_know_is_one_line(run: Any) -> None:
    with_package("ale_py")
    refused = run("collect gym:ale_py:ALE/Pong-v5 --env-option obs_type=smell")
    assert refused.code == 1
    assert "cannot make 'ale_py:ALE/Pong-v5': Invalid observation type: smell" in refused.err
    refused = run("collect gym:ale_py:ALE/Pong-v5 --env-option obs_type=ram --num-envs 2")
    assert refused.code == 1
    assert "try without --num-envs" in refused.err


# --- Minari -----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_local_minari_data_are_read_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    minari = pytest.importorskip("minari")
    with_package("gymnasium_robotics")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make("PointMaze_UMaze-v3", max_episode_steps=25))
    env.action_space.seed(0)
    for seed in range(4):
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = terminated or truncated
    dataset = env.create_dataset("maze/random-v0")
    env.close()
    data = lw.from_minari("maze/random-v0", keys="observation")
    assert (data.num_episodes, data.num_transitions, data.observation_shape) == (4, 100, (4,))
    assert data.actions is not None
    assert data.actions.shape == (100, 2)
    for number, episode in enumerate(dataset.iterate_episodes()):
        np.testing.assert_array_equal(data.episode(number), episode.observations["observation"])
    assert set(lw.from_minari("maze/random-v0").keys) == {"observation", "achieved_goal", "desired_goal"}
