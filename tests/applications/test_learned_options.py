"""Options learned from transitions, against exact ones and against data whose best actions are found by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lapwing as lw
from lapwing.applications import LearnedOption, Option, eigenoptions, learn_options
from lapwing.encoders.lookup import LookupEncoder
from lapwing.errors import ArgumentError, DataError, LapwingError, UntrustedWarning

# A start between a small hill on the left and a door on the right, beyond which it is highest.
LEFT, START, DOOR, BEYOND = range(4)
HEIGHTS = np.array([0.5, 0.0, 0.3, 1.0])
GO_LEFT, GO_RIGHT = 2, 5


def hill(heights: NDArray[np.float64] = HEIGHTS) -> lw.LaplacianRepresentation:
    """A representation of two components, the second with the heights given."""
    states = np.arange(len(heights), dtype=np.float64)[:, None]
    values, weights = np.column_stack([np.ones(len(heights)), heights]), np.full(len(heights), 1 / len(heights))
    return lw.LaplacianRepresentation(LookupEncoder(states, values, weights), np.array([1.0, 0.9]), 2)


def episodes(*walks: tuple[list[int], list[int], bool]) -> lw.Trajectories:
    """Data of a few episodes: states, actions, and whether the environment ended it."""
    lengths = [len(states) for states, _, _ in walks]
    ended = np.array([over for _, _, over in walks])
    return lw.Trajectories(
        observations=np.arange(4.0)[:, None],
        offsets=np.cumsum([0, *lengths]),
        terminated=ended,
        truncated=~ended,
        ids=np.concatenate([states for states, _, _ in walks]).astype(np.int32),
        actions=np.concatenate([actions for _, actions, _ in walks]).astype(np.int64),
    )


def climbing(data: lw.Trajectories, **given: Any) -> Option:
    option = learn_options(hill(), data, encoder="table", **given)[0]
    assert isinstance(option, Option)
    return option


TO_THE_LEFT = ([START, LEFT], [GO_LEFT], False)


# --- counted transitions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("all_actions", [False, True])
def test_in_a_grid_counted_transitions_give_the_exact_options(all_actions: bool) -> None:
    world = lw.make_world("GridMaze-7")
    model = lw.solve(world, dim=4)
    data = lw.collect(world, 10_000, seed=0, record="actions", all_actions=all_actions)
    exact, learned = eigenoptions(model, world), learn_options(model, data)
    assert [option.name for option in learned] == [option.name for option in exact]
    for one, other in zip(learned, exact, strict=True):
        assert isinstance(one, Option)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.termination_probabilities, other.termination_probabilities)


def test_the_action_of_the_largest_discounted_gain_is_taken_by_its_number() -> None:
    data = episodes(TO_THE_LEFT, ([START, DOOR, BEYOND], [GO_RIGHT, GO_RIGHT], False))
    # 0.3 + 0.9 * 0.7 = 0.93 beside 0.5.
    assert climbing(data).actions.tolist() == [-1, GO_RIGHT, GO_RIGHT, -1]
    assert climbing(data, discount=0.2).policy([START]) == GO_LEFT
    assert climbing(data).termination_probabilities.tolist() == [1.0, 0.0, 0.0, 1.0]


def test_nothing_is_learned_across_the_end_of_an_episode() -> None:
    # Laid end to end, the second and third episode would lead from the door to the heights beyond.
    data = episodes(TO_THE_LEFT, ([START, DOOR], [GO_RIGHT], False), ([BEYOND, BEYOND], [GO_RIGHT], False))
    assert climbing(data).policy([START]) == GO_LEFT
    assert climbing(data).termination([DOOR]) == 1.0


def test_where_the_environment_ends_the_option_ends_too() -> None:
    right = ([START, DOOR], [GO_RIGHT], True)
    data = episodes(TO_THE_LEFT, right, ([DOOR, BEYOND], [GO_RIGHT], False))
    # There is a way on from the door, but not for who came through it.
    assert climbing(data).policy([START]) == GO_LEFT
    assert climbing(replace(data, terminated=~data.terminated, truncated=~data.truncated)).policy([START]) == GO_RIGHT


def test_an_action_that_was_never_tried_is_never_taken() -> None:
    data = episodes(([DOOR, START, LEFT], [GO_LEFT, GO_LEFT], False), ([BEYOND, DOOR], [GO_LEFT], False))
    # From the door only the way down was tried: 0.9 * 0.5 - 0.3 is still a gain. From beyond nothing is.
    assert climbing(data).actions.tolist() == [-1, GO_LEFT, GO_LEFT, -1]


def test_states_of_the_table_that_were_never_seen_end_every_option() -> None:
    world = lw.make_world("FourRooms")
    data = lw.collect(world, 500, episode_length=500, seed=0, record="actions")
    seen = data.visits() > 0
    with pytest.warns(UntrustedWarning):
        options = learn_options(lw.solve(data, dim=3), data, encoder="table")
    assert not seen.all()
    for option in options:
        assert isinstance(option, Option)
        assert not option.initiation_set[~seen].any()
        assert option.initiation_set[seen].any()


# --- a network -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_network_learns_to_go_to_either_end_and_to_stop_there() -> None:
    world = lw.make_world("room:1x10")
    model, data = lw.solve(world, dim=2), lw.collect(world, 20_000, seed=0, record="actions")
    states = data.observations
    options, exact = learn_options(model, data, encoder="fourier", steps=600), learn_options(model, data)
    for option, other in zip(options, exact, strict=True):
        assert isinstance(option, LearnedOption)
        assert [option.policy(seen) for seen in states[1:-1]] == [other.policy(seen) for seen in states[1:-1]]
        ending = np.array([option.termination(seen) for seen in states])
        ends = np.array([other.termination(seen) for seen in states])
        assert (ending[ends == 1] == 1).all()
        assert ending[ends == 0].max() < 0.05
        assert [option.initiation(seen) for seen in states] == [other.initiation(seen) for seen in states]
    values = model.transform(states)[:, 1]
    usual = np.sqrt(np.mean(np.diff(values[data.ids].reshape(data.num_episodes, -1), axis=1) ** 2))
    # From the lowest end the gains of nine steps, each discounted by those before it, in units of a usual step.
    wanted = np.sum(0.9 ** np.arange(9) * np.diff(np.sort(values))) / usual
    assert options[0].values(states[values.argmin()]).max() == pytest.approx(wanted, rel=0.03)  # type: ignore[union-attr]
    assert options[0].values(states[values.argmax()]).max() == pytest.approx(0.0, abs=0.1)  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_network_ends_where_the_environment_does() -> None:
    heights = np.linspace(0.0, 1.0, 4)
    data = episodes(*[([0, 1, 2, 3], [GO_RIGHT] * 3, True)] * 20)
    rows = replace(data, observations=data.observations[data.ids], ids=None)
    (option,) = learn_options(hill(heights), rows, encoder="mlp", steps=300, discount=0.9, both_signs=False)
    assert isinstance(option, LearnedOption)
    # What follows the last step is worth nothing: its value is its own gain, one third, which is the unit.
    assert option.values([2.0])[0] == pytest.approx(1.0, abs=0.05)
    assert option.values([0.0])[0] == pytest.approx(1.0 + 0.9 + 0.81, abs=0.1)


@pytest.mark.slow
def test_observations_that_hardly_repeat_get_a_network_and_the_same_seed_the_same_one() -> None:
    rng = np.random.default_rng(0)
    walk = np.clip(np.cumsum(rng.normal(size=(300, 1)), axis=0), -5, 5)
    actions = np.append(np.diff(walk[:, 0]) > 0, False).astype(np.int64)
    data = lw.from_arrays(walk, actions=actions, lengths=[300])
    model = lw.LaplacianRepresentation(lw.solve("Box-1", dim=2).encoder, np.array([1.0, 0.9]), 2)
    first, again = (learn_options(model, data, steps=5, seed=3) for _ in range(2))
    assert not data.has_table
    assert isinstance(first[0], LearnedOption)
    seen = walk[0]
    np.testing.assert_array_equal(first[0].values(seen), again[0].values(seen))  # type: ignore[union-attr]
    for wrong in ([np.nan], [1.0, 2.0], ["a"]):
        with pytest.raises(ArgumentError, match="an observation is finite numbers"):
            first[0].policy(wrong)


# --- bad input -----------------------------------------------------------------------------------------------------

GOOD = episodes(TO_THE_LEFT, ([START, DOOR, BEYOND], [GO_RIGHT, GO_RIGHT], False))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (replace(GOOD, actions=None), 'record="actions"'),
        (replace(GOOD, actions=np.array([0.5, 1.0, 1.0])), "discrete actions"),
        (replace(GOOD, actions=np.zeros((3, 2), dtype=np.int64)), "discrete actions"),
        (replace(GOOD, actions=np.array([-1, 0, 1])), "numbers from 0"),
        ("FourRooms", "Trajectories"),
    ],
)
def test_data_that_give_no_options_are_refused(data: Any, message: str) -> None:
    with pytest.raises(LapwingError, match=message):
        learn_options(hill(), data)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"encoder": "tabel"}, "did you mean table"),
        ({"steps": 0}, "steps"),
        ({"discount": 1.0}, "discount"),
        ({"components": [1]}, "from 2 to 2"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_out_of_range_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        learn_options(hill(), GOOD, **given)


def test_a_table_needs_observations_that_repeat() -> None:
    rows = replace(GOOD, observations=GOOD.observations[GOOD.ids], ids=None)
    with pytest.raises(DataError, match="hardly repeat"):
        learn_options(hill(), rows, encoder="table")


def test_a_representation_of_one_component_or_with_nan_is_refused() -> None:
    with pytest.raises(ArgumentError, match="dim >= 2"):
        learn_options(replace(hill(), dim=1), GOOD)
    with pytest.raises(DataError, match="not finite at 1 of 4"):
        learn_options(hill(np.array([0.0, np.nan, 1.0, 2.0])), GOOD)


def test_components_that_are_not_trusted_are_warned_of() -> None:
    poor = replace(hill(), residuals=np.array([0.0, 0.5]), orthonormality_error=0.0)
    with pytest.warns(UntrustedWarning, match="2 \\(not converged\\)"):
        learn_options(poor, GOOD, encoder="table")
