"""Grid worlds: the action table, the transition matrix and the observations."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from lapwing.environments.grid import AGENT_COLOUR, FLOOR_COLOUR, MOVE_NAMES, OBSERVATION_MODES, WALL_COLOUR, GridWorld
from lapwing.environments.layouts import Layout, perfect_maze, room, rooms
from lapwing.environments.registry import make_world, world_from_description
from lapwing.errors import LapwingError
from worlds_by_kind import DIRECTED, GRIDS

# An independent statement of what the four moves are.
STEPS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}

every_grid = pytest.mark.parametrize("name", GRIDS)


def random_policy(num_states: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(4), size=num_states)


def transition_matrix_by_hand(text: str, policy: np.ndarray, slip: float) -> np.ndarray:
    """The dense matrix from the characters of the layout, one move at a time."""
    lines = text.split("\n")
    cells = [(r, c) for r, line in enumerate(lines) for c, character in enumerate(line) if character == " "]
    number = {cell: i for i, cell in enumerate(cells)}
    matrix = np.zeros((len(cells), len(cells)))
    for state, (r, c) in enumerate(cells):
        for move, (dr, dc) in enumerate(STEPS.values()):
            target = number.get((r + dr, c + dc), state)
            matrix[state, target] += (1 - slip) * policy[state, move] + slip * 0.25
    return matrix


def test_the_moves_are_up_right_down_left() -> None:
    assert tuple(STEPS) == MOVE_NAMES
    cross = GridWorld(Layout.from_text("X X\n   \nX X"))
    centre = cross.layout.index[1, 1]
    targets = cross.layout.cells[cross.successors[centre]] - 1
    assert [tuple(target) for target in targets.tolist()] == list(STEPS.values())


def test_a_blocked_move_stays_at_walls_and_at_the_edge_of_the_canvas() -> None:
    corridor = GridWorld(Layout.from_text("  X"))
    assert corridor.successors.tolist() == [[0, 1, 0, 0], [1, 1, 1, 0]]


@every_grid
@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_the_transition_matrix_equals_the_one_made_by_hand(name: str, slip: float) -> None:
    layout = make_world(name).layout
    policy = random_policy(layout.num_cells)
    matrix = GridWorld(layout, slip=slip, policy=policy).transition_matrix().toarray()
    by_hand = transition_matrix_by_hand(layout.to_text(), policy, slip)
    np.testing.assert_allclose(matrix, by_hand, rtol=0, atol=1e-15)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99), st.floats(0, 1))
def test_the_matrices_of_the_moves_average_to_the_transition_matrix(
    rows: int, columns: int, seed: int, slip: float
) -> None:
    layout = perfect_maze(rows, columns, seed)
    policy = random_policy(layout.num_cells, seed)
    world = GridWorld(layout, slip=slip, policy=policy)
    matrices = np.stack([matrix.toarray() for matrix in world.action_matrices()])
    np.testing.assert_allclose(matrices.sum(axis=2), 1.0, rtol=0, atol=1e-14)
    averaged = np.einsum("sa,ast->st", policy, matrices)
    np.testing.assert_allclose(averaged, world.transition_matrix().toarray(), rtol=0, atol=1e-14)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99), st.floats(0, 1))
def test_the_transition_matrix_is_row_stochastic(rows: int, columns: int, seed: int, slip: float) -> None:
    layout = perfect_maze(rows, columns, seed)
    matrix = GridWorld(layout, slip=slip, policy=random_policy(layout.num_cells, seed)).transition_matrix()
    assert matrix.shape == (layout.num_cells, layout.num_cells)
    assert matrix.dtype == np.float64
    assert matrix.data.min() > 0
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", sorted(set(GRIDS) - set(DIRECTED)))
def test_the_uniform_policy_has_a_symmetric_matrix(name: str) -> None:
    matrix = make_world(name).transition_matrix()
    assert (matrix != matrix.T).nnz == 0
    np.testing.assert_array_equal(matrix.sum(axis=1), 1.0)


def test_a_biased_policy_has_an_asymmetric_matrix() -> None:
    world = GridWorld(room(1, 2), policy=[[0.1, 0.7, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]])
    np.testing.assert_allclose(world.transition_matrix().toarray(), [[0.3, 0.7], [0.1, 0.9]], atol=1e-15)


@every_grid
def test_slipping_always_equals_the_uniform_policy(name: str) -> None:
    world = make_world(name, slip=1.0).with_options(policy=random_policy(make_world(name).num_states))
    difference = world.transition_matrix() - make_world(name).transition_matrix()
    assert abs(difference).max() < 1e-15


def test_slip_makes_no_difference_to_the_uniform_policy() -> None:
    layout = rooms(2, 3, 3, seed=1)
    difference = GridWorld(layout, slip=0.4).transition_matrix() - GridWorld(layout).transition_matrix()
    assert abs(difference).max() < 1e-15


def test_a_policy_that_never_moves_one_way_leaves_no_stored_zeros() -> None:
    always_right = np.tile([0.0, 1.0, 0.0, 0.0], (6, 1))
    matrix = GridWorld(room(2, 3), policy=always_right).transition_matrix()
    assert matrix.nnz == 6
    assert matrix.toarray()[[0, 1, 2], [1, 2, 2]].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 8), (5, 5), (4, 7)])
def test_an_empty_room_has_the_closed_form_eigenvalues(rows: int, columns: int) -> None:
    matrix = GridWorld(room(rows, columns)).transition_matrix().toarray()
    k, l = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")  # noqa: E741 - the formula's own letters
    expected = 1 - np.cos(np.pi * k / rows) / 2 - np.cos(np.pi * l / columns) / 2
    np.testing.assert_allclose(
        np.linalg.eigvalsh(np.eye(rows * columns) - matrix), np.sort(expected.ravel()), rtol=0, atol=1e-13
    )


def test_a_policy_row_that_does_not_sum_to_one_is_named() -> None:
    policy = np.full((6, 4), 0.25)
    policy[3] = 0.2
    with pytest.raises(LapwingError, match=r"policy row 3 sums to 0\.8, not to 1 \(1 such row"):
        GridWorld(room(2, 3), policy=policy)


@pytest.mark.parametrize("bad", [-0.25, np.nan, np.inf])
def test_a_negative_or_non_finite_policy_row_is_named(bad: float) -> None:
    policy = np.full((6, 4), 0.25)
    policy[4] = [bad, 0.75, 0.25, 0.25]
    with pytest.raises(LapwingError, match="policy row 4 has a negative or non-finite probability"):
        GridWorld(room(2, 3), policy=policy)


@pytest.mark.parametrize(
    "policy", [np.full((4, 6), 0.25), np.full((5, 4), 0.25), np.full(4, 0.25), np.full((6, 5), 0.2), []]
)
def test_a_policy_of_the_wrong_shape_is_refused_with_the_right_one(policy: object) -> None:
    with pytest.raises(LapwingError, match=r"shape \(states, moves\) = \(6, 4\).*up, right, down, left"):
        GridWorld(room(2, 3), policy=policy)


@pytest.mark.parametrize("policy", [[[1, 0, 0], [1, 0, 0, 0]], [["a"] * 4] * 2])
def test_a_policy_that_is_no_table_of_numbers_is_refused(policy: object) -> None:
    with pytest.raises(LapwingError, match="4 numbers in each of 2 rows"):
        GridWorld(room(1, 2), policy=policy)


def test_a_policy_that_sums_to_one_up_to_rounding_is_accepted_and_normalised() -> None:
    policy = np.full((1, 4), 1 / 4, dtype=np.float32) * np.float32(1 + 3e-7)
    world = GridWorld(room(1, 1), policy=policy)
    assert world.policy.dtype == np.float64
    assert abs(world.policy.sum() - 1.0) < 1e-15


@pytest.mark.parametrize("slip", [-0.1, 1.1, np.nan, np.inf])
def test_a_slip_that_is_no_probability_is_refused(slip: float) -> None:
    with pytest.raises(LapwingError, match="slip is a probability"):
        GridWorld(room(2, 2), slip=slip)


def test_an_unknown_observation_mode_offers_the_nearest() -> None:
    with pytest.raises(LapwingError, match="unknown observation mode 'pixel'; did you mean pixels"):
        GridWorld(room(2, 2), observation="pixel")


def test_xy_is_row_and_column_over_the_size_of_the_canvas_less_a_half() -> None:
    world = GridWorld(Layout.from_text("XXXXXXXX\nX   X  X\nXXXXXX X\nXXXXXXXX"))
    expected = [[1, 1], [1, 2], [1, 3], [1, 5], [1, 6], [2, 6]]
    np.testing.assert_allclose(world.table(), np.array(expected) / [4, 8] - 0.5, atol=1e-7)


def test_one_hot_has_a_one_at_the_state() -> None:
    observations = GridWorld(room(2, 3), observation="one_hot").table()
    np.testing.assert_array_equal(observations, np.eye(6, dtype=np.float32))


@every_grid
def test_pixels_show_walls_floor_and_one_agent(name: str) -> None:
    world = make_world(name, observation="pixels")
    rows, columns = world.layout.shape
    states = [0, world.num_states // 2, world.num_states - 1]
    images = world.observe(states)
    assert images.shape == (3, rows, columns, 3)
    for state, image in zip(states, images, strict=True):
        expected = [[FLOOR_COLOUR if cell == " " else WALL_COLOUR for cell in line] for line in lines_of(world)]
        row, column = world.layout.cells[state]
        expected[row][column] = AGENT_COLOUR
        np.testing.assert_array_equal(image, expected)


def lines_of(world: GridWorld) -> list[str]:
    return world.layout.to_text().split("\n")


def test_the_three_colours_differ() -> None:
    assert len({WALL_COLOUR, FLOOR_COLOUR, AGENT_COLOUR}) == 3


@pytest.mark.parametrize("move", STEPS)
@pytest.mark.parametrize("name", ["GridMaze-7", "GridMaze-17", "Maze-26", "Rooms-32"])
def test_a_move_in_a_non_square_world_moves_the_pixel_and_the_coordinates_its_way(name: str, move: str) -> None:
    xy, pixels = make_world(name), make_world(name, observation="pixels")
    rows, columns = xy.layout.shape
    assert rows != columns
    chosen = MOVE_NAMES.index(move)
    moving = np.flatnonzero(xy.successors[:, chosen] != np.arange(xy.num_states))
    assert moving.size
    for state in moving[:: max(1, moving.size // 20)]:
        target = xy.successors[state, chosen]
        before, after = (np.argwhere((image == AGENT_COLOUR).all(axis=-1)) for image in pixels.observe([state, target]))
        assert tuple((after - before)[0]) == STEPS[move]
        shift = np.subtract(*xy.observe([target, state])) * [rows, columns]
        np.testing.assert_allclose(shift, STEPS[move], atol=1e-5)


@every_grid
@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_observations_differ_between_states_and_have_the_stated_shape(name: str, mode: str) -> None:
    world = make_world(name, observation=mode)
    states = np.arange(world.num_states)[:200]
    observations = world.observe(states)
    assert observations.shape == (states.size, *world.observation_shape)
    assert observations.dtype == (np.uint8 if mode == "pixels" else np.float32)
    assert len({observation.tobytes() for observation in observations}) == states.size


@pytest.mark.parametrize("mode", OBSERVATION_MODES)
def test_a_table_of_observations_equals_its_rows_one_by_one(mode: str) -> None:
    world = make_world("GridMaze-7", observation=mode)
    rows = np.concatenate([world.observe(state) for state in range(world.num_states)])
    np.testing.assert_array_equal(world.table(), rows)


def test_a_table_larger_than_memory_is_refused_before_it_is_made() -> None:
    world = GridWorld(room(1000, 1000), observation="one_hot")
    with pytest.raises(LapwingError, match=r"3725\.3 GiB; use observation='xy'"):
        world.table()
    with pytest.raises(LapwingError, match="GiB"):
        world.with_options(observation="pixels").table()
    assert world.observe([7]).shape == (1, 1_000_000)


@pytest.mark.parametrize("slip", ["a", None, [0.1], 0.1j, True, np.array([0.1, 0.2])])
def test_a_slip_that_is_no_number_is_refused(slip: object) -> None:
    with pytest.raises(LapwingError, match="slip is a probability"):
        GridWorld(room(2, 2), slip=slip)  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", [None, "FourRooms", np.ones((2, 2), dtype=bool)])
def test_a_grid_without_a_layout_is_refused(layout: object) -> None:
    with pytest.raises(LapwingError, match="made from a layout"):
        GridWorld(layout)  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [-1, 4, 1.0, "a", None, [True], [[0], [1, 2]], 10**400])
def test_a_state_that_is_none_is_refused_and_does_not_count_from_the_end(states: object) -> None:
    with pytest.raises(LapwingError, match="states are whole numbers from 0 to 3"):
        GridWorld(room(2, 2)).observe(states)  # type: ignore[arg-type]


# --- wind, one-way doors and portals -------------------------------------------------------------------------------


@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_wind_replaces_moves_by_one_down(slip: float) -> None:
    layout = rooms(2, 2, 3, seed=1)
    policy = random_policy(layout.num_cells)
    matrix = GridWorld(layout, slip=slip, policy=policy, wind=0.2).transition_matrix().toarray()
    blown = np.tile([0.0, 0.0, 1.0, 0.0], (layout.num_cells, 1))
    by_hand = 0.8 * transition_matrix_by_hand(layout.to_text(), policy, slip)
    by_hand += 0.2 * transition_matrix_by_hand(layout.to_text(), blown, 0.0)
    np.testing.assert_allclose(matrix, by_hand, rtol=0, atol=1e-15)


def test_in_full_wind_every_move_is_down() -> None:
    world = GridWorld(room(3, 1), wind=1.0)
    for actions in (None, np.zeros(3, dtype=int)):
        states, moves = world.step(np.arange(3), actions, np.random.default_rng(0))
        assert states.tolist() == [1, 2, 2]
        assert moves.tolist() == [2, 2, 2]


def test_given_actions_meet_the_wind_as_often_as_it_blows() -> None:
    world = GridWorld(room(3, 3), wind=0.25)
    _, moves = world.step(np.full(40_000, 4), np.zeros(40_000, dtype=int), np.random.default_rng(0))
    assert set(moves.tolist()) == {0, 2}
    assert (moves == 2).mean() == pytest.approx(0.25, abs=0.01)


def test_a_one_way_cell_is_not_entered_against_its_move() -> None:
    corridor = GridWorld(Layout.from_text("    "), one_way=[(0, 2, "right")])  # type: ignore[arg-type]
    assert corridor.successors[:, 1].tolist() == [1, 2, 3, 3]  # right, as ever
    assert corridor.successors[:, 3].tolist() == [0, 0, 1, 3]  # left: from the last cell there is no way back
    assert corridor.is_directed
    at_the_edge = GridWorld(Layout.from_text("  "), one_way=[(0, 1, "right")])  # type: ignore[arg-type]
    np.testing.assert_array_equal(at_the_edge.successors, GridWorld(Layout.from_text("  ")).successors)


def test_a_portal_leads_elsewhere_by_its_move_only() -> None:
    layout = room(2, 2)
    world, plain = GridWorld(layout, portals=((1, 1, "up", 2, 2),)), GridWorld(layout)
    assert world.successors[0].tolist() == [3, 1, 2, 0]
    np.testing.assert_array_equal(world.successors[1:], plain.successors[1:])


@pytest.mark.parametrize("name", DIRECTED)
def test_a_directed_world_is_strongly_connected_and_survives_its_description(name: str) -> None:
    world = make_world(name)
    matrix = world.transition_matrix()
    assert connected_components(matrix, connection="strong")[0] == 1
    assert (matrix != matrix.T).nnz > 0
    again = world_from_description(json.loads(json.dumps(world.describe())))
    np.testing.assert_array_equal(again.transition_matrix().toarray(), matrix.toarray())
    with pytest.raises(LapwingError, match="has no wind"):
        make_world(f"continuous:{name}")


def test_an_undirected_world_is_described_as_before() -> None:
    assert set(make_world("FourRooms").describe()) == {"kind", "name", "layout", "observation", "slip", "policy"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wind": 1.5}, "wind is a probability"),
        ({"wind": "strong"}, "wind is a probability"),
        ({"wind": float("nan")}, "wind is a probability"),
        ({"one_way": 5}, "one_way is a list of"),
        ({"one_way": "up"}, "one_way is a list of"),
        ({"one_way": [(1, 1)]}, "one_way is a list of"),
        ({"one_way": [(1, 1, 2)]}, "one_way is a list of"),
        ({"one_way": [(1, 1, "rihgt")]}, "did you mean right"),
        ({"one_way": [(0, 0, "right")]}, "not a free cell"),
        ({"one_way": [(-1, 1, "right")]}, "not a free cell"),
        ({"one_way": [(1.5, 1, "right")]}, "not a free cell"),
        ({"portals": [(1, 1, "up")]}, "portals is a list of"),
        ({"portals": [(1, 1, "up", 9, 9)]}, "not a free cell"),
    ],
)
def test_bad_wind_doors_and_portals_are_explained(options: dict[str, Any], words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        GridWorld(room(2, 2), **options)
