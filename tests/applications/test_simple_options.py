"""Our options in the hands of BaRL-SimpleOptions: its agent follows them, learns over them, and keeps them apart."""

import copy
import random
import sys
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.applications import as_simple_options, eigenoptions, learn_options, point_options
from lapwing.applications.simple_options import _simple_option
from lapwing.errors import ArgumentError, MissingExtraError

simpleoptions = pytest.importorskip("simpleoptions")

LENGTH = 12
State = tuple[float, ...]


@pytest.fixture
def corridor() -> Any:
    """A corridor of our own as an environment of that package: from the left end to the right, -1 for each step."""
    world = lw.make_world(f"room:1x{LENGTH}")
    table = [tuple(row.tolist()) for row in np.asarray(world.table())]

    class Corridor(simpleoptions.BaseEnvironment):  # type: ignore[misc, name-defined, unused-ignore]
        def reset(self, state: Hashable = None) -> Hashable:
            self.current_state = table[0] if state is None else state
            return self.current_state

        def step(self, action: Any, state: Hashable = None) -> tuple[Hashable, float, bool, dict[str, Any]]:
            number = table.index(self.current_state if state is None else state)  # type: ignore[arg-type]
            after = world.step(np.array([number]), np.array([action]), np.random.default_rng(0))[0]
            self.current_state = table[int(after[0])]
            return self.current_state, -1.0, self.is_state_terminal(self.current_state), {}

        def get_state_space(self) -> set[State]:
            return set(table)

        def get_action_space(self) -> set[int]:
            return {0, 1, 2, 3}

        def get_available_actions(self, state: Hashable = None) -> list[int]:
            return [0, 1, 2, 3]

        def is_state_terminal(self, state: Hashable = None) -> bool:
            return state == table[-1]

        def get_initial_states(self) -> list[State]:
            return table[:1]

        def get_successors(self, state: Hashable = None, actions: Any = None) -> list[Any]:
            return [(self.step(action, state)[:2], 1.0) for action in self.get_available_actions(state)]

        def render(self, mode: str = "human") -> None: ...

        def close(self) -> None: ...

    found = Corridor()
    found.world, found.table = world, table
    return found


def test_the_agent_of_that_package_follows_options_to_their_end_and_values_them(corridor: Any) -> None:
    model = lw.solve(corridor.world, dim=2)
    options = as_simple_options(eigenoptions(model, corridor.world), corridor)
    corridor.set_options(options)
    agent = simpleoptions.OptionAgent(corridor, rng=random.Random(0))
    agent.run_agent(num_epochs=40, epoch_length=LENGTH - 1)
    start, goal = corridor.table[0], corridor.table[-1]
    towards = next(option for option in options if option.termination(goal) == 1.0)
    log = agent.training_log
    followed = [i for i, active in enumerate(log["active_options"]) if str(towards) in active]
    assert followed
    # Inside the option every step goes one to the right.
    assert all(
        corridor.table.index(log["next_state"][i]) == corridor.table.index(log["state"][i]) + 1 for i in followed
    )
    # Macro-Q learning has found what the option costs: one for each of eleven steps.
    assert agent.q_table[(hash(start), hash(towards))] == pytest.approx(-(LENGTH - 1), abs=0.01)


def test_inside_an_option_the_agent_learns_about_actions_too(corridor: Any) -> None:
    there, _ = point_options(corridor.world, [(0, LENGTH - 1)])
    right = simpleoptions.PrimitiveOption(1, corridor)
    values = {}
    for env in (None, corridor):
        (option,) = as_simple_options([there], env)
        corridor.set_options([right, option])
        agent = simpleoptions.OptionAgent(corridor, rng=random.Random(0))
        # As if a step of the option had been made.
        agent.intra_option_learn(corridor.table[:2], [-1.0], right)
        values[env is None] = agent.q_table[(hash(corridor.table[0]), hash(option))]
    assert values == {True: 0.0, False: pytest.approx(-0.2)}


def test_learned_options_and_numbered_states_are_adapted(corridor: Any) -> None:
    data = lw.collect(corridor.world, 3000, seed=0, record="actions")
    learned = learn_options(lw.solve(corridor.world, dim=2), data)
    table = np.asarray(corridor.world.table())
    for option, adapted in zip(learned, as_simple_options(learned, observe=lambda n: table[n]), strict=True):
        assert [adapted.termination(n) for n in range(LENGTH)] == [option.termination(row) for row in table]
        assert [adapted.policy(n) for n in range(1, LENGTH - 1)] == [option.policy(row) for row in table[1:-1]]


def test_options_of_the_same_name_stay_apart_and_copies_are_equal(corridor: Any) -> None:
    twice = point_options(corridor.world, [(0, 3)])[:1] * 2
    one, other = as_simple_options(twice)
    assert isinstance(one, simpleoptions.BaseOption)
    assert copy.copy(one) == one
    assert hash(copy.copy(one)) == hash(one)
    assert one != other
    assert len({one, other}) == 2
    assert hash(one) != hash(other)
    assert one != twice[0]


def test_what_is_no_option_is_refused() -> None:
    with pytest.raises(ArgumentError, match="LearnedOption"):
        as_simple_options(["u2"])  # type: ignore[list-item]


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simpleoptions", None)
    _simple_option.cache_clear()
    with pytest.raises(MissingExtraError, match=r"lapwing\[options\]"):
        as_simple_options([])
    _simple_option.cache_clear()
