"""The worlds as Gymnasium environments."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import lapwing as lw
from lapwing.environments.box import BoxWorld, box_eigenfunctions
from lapwing.environments.grid import AGENT_COLOUR, OBSERVATION_MODES
from lapwing.environments.gymnasium_env import WorldEnv
from lapwing.environments.registry import WORLDS
from lapwing.errors import ArgumentError
from worlds_by_kind import BOXES, GRIDS

REGISTERED = sorted(identifier for identifier in gymnasium.registry if identifier.startswith("lapwing/"))

# In standard deviations: chance stays below this in the 90 cases here, and swapped moves give dozens.
MAX_DEVIATION = 5.0


def state_seen(observation: np.ndarray, world: lw.GridWorld) -> int:
    """The state that an observation shows, read from the picture or the numbers alone."""
    if world.observation == "one_hot":
        (state,) = np.flatnonzero(observation)
        return int(state)
    if world.observation == "pixels":
        ((row, column),) = np.argwhere((observation == AGENT_COLOUR).all(axis=-1))
    else:
        row, column = np.rint((observation + 0.5) * world.layout.shape).astype(int)
    return int(world.layout.index[row, column])


def skewed_policy(num_states: int) -> np.ndarray:
    """(states, 4): in each state one favourite move, which swapped moves or a wrong slip would give away."""
    return 0.05 + 0.8 * np.eye(4)[np.random.default_rng(7).integers(4, size=num_states)]


def deviation(counts: np.ndarray, matrix: np.ndarray) -> float:
    """Pearson's statistic over all rows in standard deviations, by its exact mean and variance for multinomials."""
    tries = counts.sum(axis=1)
    possible = matrix > 0
    inverse = np.divide(1.0, matrix, out=np.zeros_like(matrix), where=possible)
    expected = tries[:, None] * matrix
    statistic = ((counts - expected) ** 2 * inverse / tries[:, None]).sum()
    k = possible.sum(axis=1)
    variance = 2 * (k - 1) + (inverse.sum(axis=1) - k**2 - 2 * k + 2) / tries
    return float((statistic - (k - 1).sum()) / np.sqrt(variance.sum()))


def test_every_shipped_world_is_registered() -> None:
    names = [*WORLDS, "Grid"]
    assert sorted(f"lapwing/{name}-v0" for name in names) == REGISTERED


@pytest.mark.parametrize("identifier", REGISTERED)
def test_every_registered_world_passes_gymnasiums_own_check(identifier: str) -> None:
    check_env(gymnasium.make(identifier, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_every_observation_mode_passes_gymnasiums_own_check(mode: str) -> None:
    check_env(gymnasium.make("lapwing/GridMaze-7-v0", observation=mode, slip=0.2, render_mode="rgb_array").unwrapped)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode", "slip"),
    [(name, "xy", slip) for name in GRIDS for slip in (0.0, 0.3)]
    + [(name, mode, 0.3) for name in ("GridRoom-1", "PortalRooms") for mode in OBSERVATION_MODES if mode != "xy"],
)
def test_step_frequencies_match_the_transition_matrix(name: str, mode: str, slip: float) -> None:
    env = gymnasium.make(f"lapwing/{name}-v0", observation=mode, slip=slip).unwrapped
    count = env.world.num_states
    policy = skewed_policy(count)
    matrix = lw.make_world(name, slip=slip).with_options(policy=policy).transition_matrix().toarray()
    tries = max(2, 2000 // count)
    rng = np.random.default_rng(11)
    actions = (rng.random((count, tries))[..., None] > policy.cumsum(axis=1)[:, None, :3]).sum(axis=-1)
    counts = np.zeros((count, count))
    env.reset(seed=5)
    for state in range(count):
        for action in actions[state]:
            start, _ = env.reset(options={"state": state})
            assert state_seen(start, env.world) == state
            observation, _, _, _, info = env.step(int(action))
            landed = state_seen(observation, env.world)
            assert landed == info["state"]
            counts[state, landed] += 1
    assert counts[matrix == 0].sum() == 0
    assert abs(deviation(counts, matrix)) < MAX_DEVIATION


@pytest.mark.parametrize("slip", [0.1, 0.4, 1.0])
@pytest.mark.parametrize("action", range(4))
def test_a_slipping_move_is_replaced_by_any_of_the_four(action: int, slip: float) -> None:
    env = gymnasium.make("lapwing/Grid-v0", world="room:3x3", slip=slip).unwrapped
    env.reset(seed=action)
    landed = []
    for _ in range(1500):
        env.reset(options={"state": 4})
        landed.append(env.step(action)[4]["state"])
    # Up, right, down and left of the middle of nine cells.
    counts = np.bincount(landed, minlength=9)[[1, 5, 7, 3]]
    assert counts.sum() == 1500
    expected = np.full(4, slip / 4) + (1 - slip) * np.eye(4)[action]
    assert abs(deviation(counts[None, :], expected[None, :])) < MAX_DEVIATION


def test_restarts_are_uniform() -> None:
    env = gymnasium.make("lapwing/GridMaze-7-v0").unwrapped
    env.reset(seed=0)
    counts = np.bincount([env.reset()[1]["state"] for _ in range(4000)], minlength=11)
    assert abs(deviation(counts[None, :], np.full((1, 11), 1 / 11))) < MAX_DEVIATION


@pytest.mark.parametrize("name", BOXES)
def test_sampled_steps_in_a_box_have_the_eigenvalues_of_its_closed_form(name: str) -> None:
    env = gymnasium.make(f"lapwing/{name}-v0").unwrapped
    modes, mu = env.world.closed_form(8)
    env.action_space.seed(2)
    env.reset(seed=1)
    pairs = []
    for _ in range(3000):
        start, _ = env.reset()
        pairs.append((start, env.step(env.action_space.sample())[0]))
    before, after = (box_eigenfunctions(modes, np.array(points)) for points in zip(*pairs, strict=True))
    # The graph term, E (u(s) - u(s'))^2 / 2 = 1 - mu: its noise is small where the eigenvalue is.
    energies = (before - after) ** 2 / 2
    errors = energies.std(axis=0) / np.sqrt(len(pairs))
    assert (np.abs(energies.mean(axis=0) - (1 - mu)) <= MAX_DEVIATION * errors + 1e-12).all()
    # Sharp enough to notice a step wrong by half.
    assert (errors[1:] < (1 - mu[1:]) / 15).all()


@pytest.mark.parametrize(("action", "shift"), [(0, (-1, 0)), (1, (0, 1)), (2, (1, 0)), (3, (0, -1))])
@pytest.mark.parametrize("mode", ["xy", "pixels"])
def test_actions_move_the_agent_their_way_in_a_non_square_world(mode: str, action: int, shift: tuple[int, int]) -> None:
    layout = lw.Layout.from_text("XXXXXXX\nX     X\nX     X\nX     X\nXXXXXXX\n")
    env = gymnasium.make("lapwing/Grid-v0", world=layout, observation=mode).unwrapped
    centre = int(layout.index[2, 3])
    env.reset(options={"state": centre})
    landed = layout.cells[state_seen(env.step(action)[0], env.world)]
    assert tuple(landed - (2, 3)) == shift


@pytest.mark.parametrize("identifier", REGISTERED)
def test_the_same_seed_gives_the_same_trajectory_and_another_differs(identifier: str) -> None:
    slip = {"slip": 0.5} if identifier.split("/")[1].removesuffix("-v0") in (*GRIDS, "Grid") else {}

    def trajectory(seed: int) -> np.ndarray:
        env = gymnasium.make(identifier, **slip)
        env.action_space.seed(0)
        observations = [env.reset(seed=seed)[0]]
        observations += [env.step(env.action_space.sample())[0] for _ in range(50)]
        return np.array(observations)

    np.testing.assert_array_equal(trajectory(3), trajectory(3))
    assert (trajectory(3) != trajectory(4)).any()


def test_episodes_never_end_and_earn_nothing() -> None:
    for identifier in ("lapwing/GridMaze-7-v0", "lapwing/Box-1-v0"):
        env = gymnasium.make(identifier)
        env.action_space.seed(0)
        env.reset(seed=0)
        assert {env.step(env.action_space.sample())[1:4] for _ in range(200)} == {(0.0, False, False)}


@pytest.mark.parametrize("name", GRIDS)
def test_a_rendered_grid_is_its_pixels_enlarged(name: str) -> None:
    env = gymnasium.make(f"lapwing/{name}-v0", render_mode="rgb_array")
    env.reset(options={"state": 3})
    image = env.render()
    rows, columns = env.unwrapped.world.layout.shape
    scale = image.shape[0] // rows
    assert image.dtype == np.uint8
    assert image.shape == (rows * scale, columns * scale, 3)
    assert max(image.shape) >= 256
    pixels = lw.make_world(name, observation="pixels").observe([3])[0]
    np.testing.assert_array_equal(image, np.kron(pixels, np.ones((scale, scale, 1), dtype=np.uint8)))


@pytest.mark.parametrize("name", BOXES)
def test_a_rendered_box_shows_the_point_where_it_is(name: str) -> None:
    env = gymnasium.make(f"lapwing/{name}-v0", render_mode="rgb_array")
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        dots = np.argwhere((env.render() == AGENT_COLOUR).all(axis=-1))
        expected = np.append(observation, 0.0)[:2] + 0.5
        np.testing.assert_allclose(dots.mean(axis=0) / 127, expected, atol=2.5 / 127)


def test_without_a_render_mode_nothing_is_rendered() -> None:
    for env in (WorldEnv("GridMaze-7"), WorldEnv("Box-1")):
        env.reset(seed=0)
        assert env.render() is None


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(ArgumentError):
        WorldEnv(render_mode="human")


@pytest.mark.parametrize("state", [0, 10, np.int64(4)])
def test_a_reset_can_choose_the_state(state: int) -> None:
    env = gymnasium.make("lapwing/GridMaze-7-v0", observation="one_hot")
    observation, info = env.reset(seed=0, options={"state": state})
    assert info["state"] == state
    assert observation.argmax() == state


@pytest.mark.parametrize("state", [-1, 11, 1.5, "3"])
def test_a_reset_to_no_state_is_refused(state: object) -> None:
    env = gymnasium.make("lapwing/GridMaze-7-v0")
    with pytest.raises(ArgumentError):
        env.reset(options={"state": state})


@pytest.mark.parametrize("action", [4, -1, 1.5, "up", None])
def test_a_bad_move_is_refused_and_moves_nothing(action: object) -> None:
    env = WorldEnv("GridMaze-7")
    env.reset(options={"state": 5})
    with pytest.raises(ArgumentError):
        env.step(action)
    assert env.state == 5


@pytest.mark.parametrize(
    "action", [np.zeros(3, np.float32), np.full(2, 1.5, np.float32), np.array([np.nan, 0], np.float32)]
)
def test_a_bad_action_in_a_box_is_refused_and_moves_nothing(action: np.ndarray) -> None:
    env = WorldEnv("Box-2")
    env.reset(seed=0)
    before = env.state.copy()
    with pytest.raises(ArgumentError):
        env.step(action)
    np.testing.assert_array_equal(env.state, before)


def test_a_world_of_your_own_is_taken_as_it_is_unless_options_are_given() -> None:
    world = lw.GridWorld(lw.room(2, 3), observation="one_hot", slip=0.25)
    assert WorldEnv(world).world is world
    env = gymnasium.make("lapwing/Grid-v0", world=world, observation="pixels").unwrapped
    assert (env.world.observation, env.world.slip) == ("pixels", 0.25)
    assert env.observation_space.shape == (4, 5, 3)
    env = gymnasium.make("lapwing/Grid-v0", world=world, slip=0.0).unwrapped
    assert (env.world.observation, env.world.slip) == ("one_hot", 0.0)


def test_a_rule_or_a_folder_makes_an_environment(tmp_path: Path) -> None:
    assert gymnasium.make("lapwing/Grid-v0", world="maze:3x4:1").unwrapped.world.num_states == 23
    (tmp_path / "Own-3.txt").write_text("XXXXX\nX   X\nXXXXX\n")
    env = gymnasium.make("lapwing/Grid-v0", world="Own-3", layouts=tmp_path).unwrapped
    assert env.world.num_states == 3


def test_a_box_of_your_own_makes_an_environment() -> None:
    env = WorldEnv(BoxWorld((2.0, 1.0, 3.0, 1.0), 0.5))
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == (4,)


def test_a_vector_of_environments_steps_each_of_them() -> None:
    envs = gymnasium.make_vec("lapwing/GridMaze-7-v0", num_envs=3, vectorization_mode="sync")
    _, before = envs.reset(seed=0)
    _, _, _, _, after = envs.step(np.array([1, 2, 3]))
    successors = lw.make_world("GridMaze-7").successors
    np.testing.assert_array_equal(after["state"], successors[before["state"], [1, 2, 3]])
