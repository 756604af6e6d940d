"""Any text and any number as a layout, a world's name, a definition or an option of a world."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import CHEAP, THOUSAND, json_documents, odd_things, result_or_error

from lapwing.definitions import Definition, as_definition, geometric, parse_definition, successor, truncated
from lapwing.environments import world_from_description
from lapwing.environments.box import BoxWorld
from lapwing.environments.grid import GridWorld
from lapwing.environments.layouts import Layout, perfect_maze, room, rooms, symmetric_rooms
from lapwing.environments.registry import make_world, world_names
from lapwing.errors import LapwingError

pytestmark = pytest.mark.slow

# Mostly what a layout may hold, so that some of it is one, with what editors and copying add.
tiles = st.text(alphabet="X#. \n", max_size=60)
nearly_layouts = st.lists(
    st.sampled_from(["X", "#", ".", " ", "\n", "\r\n", "\r", "\t", "\0", "\ufeff", "\u2028", "é", "X" * 500]),
    max_size=40,
).map("".join)
rectangles = st.integers(1, 9).flatmap(
    lambda width: st.lists(st.text("X#. ", min_size=width, max_size=width), min_size=1, max_size=9).map("\n".join)
)
any_layout = tiles | nearly_layouts | rectangles | st.text(max_size=80)


def check_layout(layout: Layout) -> None:
    """It is itself again after text, and a world on it moves to somewhere with certainty."""
    again = Layout.from_text(layout.to_text(), layout.name)
    np.testing.assert_array_equal(again.free, layout.free)
    matrix = GridWorld(layout).transition_matrix()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert matrix.data.min() > 0


@THOUSAND
@given(any_layout)
def test_any_text_is_refused_or_becomes_a_layout_that_reads_back_and_moves(text: str) -> None:
    found = result_or_error(lambda: Layout.from_text(text))
    if isinstance(found, Layout):
        check_layout(found)


@CHEAP
@given(content=st.binary(max_size=80) | any_layout.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_in_a_file_are_refused_or_become_a_layout(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.txt"
    path.write_bytes(content)
    found = result_or_error(lambda: Layout.from_file(path))
    if isinstance(found, Layout):
        check_layout(found)


# Small worlds are made, absurd ones refused; sizes between, which take seconds, are left out.
sizes = st.integers(-1, 6) | st.integers(10**8, 10**20)
rules = st.builds(
    lambda rule, numbers, seed: f"{rule}:{'x'.join(map(str, numbers))}{seed}",
    st.sampled_from(["room", "rooms", "maze", "Room", "mase", ""]),
    st.lists(sizes | st.sampled_from(["", "a", "٣", "1e3", "0x10"]), max_size=4),
    st.sampled_from(["", ":", ":0", ":7", ":-1", ":99999999999999999999", ":a", ":1:2"]),
)


@THOUSAND
@given(
    rules
    | st.sampled_from(world_names())
    | st.text(max_size=30)
    | st.sampled_from(["x" * 10**5, "\0", "../x.txt", "a\0.txt", "/.txt", "~", "\udcff.txt"])
)
def test_any_name_is_refused_or_makes_a_world(name: str) -> None:
    found = result_or_error(lambda: make_world(name))
    if isinstance(found, GridWorld):
        assert found.layout.num_components == 1
        check_layout(found.layout)
    else:
        assert isinstance(found, LapwingError) or found.name


@CHEAP
@given(st.sampled_from([room, rooms, symmetric_rooms, perfect_maze]), odd_things, odd_things, odd_things)
def test_any_arguments_of_a_rule_are_refused_or_make_a_connected_layout(
    rule: Any, rows: object, columns: object, size: object
) -> None:
    options = {"size": size} if rule in (rooms, symmetric_rooms) else {}
    found = result_or_error(lambda: rule(rows, columns, **options))
    assert isinstance(found, LapwingError) or found.num_components == 1


@CHEAP
@given(odd_things, odd_things, odd_things, odd_things)
def test_any_options_of_a_grid_are_refused_or_make_a_world(
    observation: object, slip: object, policy: object, states: object
) -> None:
    layout = make_world("GridMaze-7").layout
    for options in ({"observation": observation}, {"slip": slip}, {"policy": policy}):
        found = result_or_error(lambda options=options: GridWorld(layout, **options))
        if isinstance(found, GridWorld):
            np.testing.assert_allclose(found.transition_matrix().sum(axis=1), 1.0, atol=1e-12)
    seen = result_or_error(lambda: GridWorld(layout).observe(states))
    assert isinstance(seen, LapwingError) or np.isfinite(seen).all()


@CHEAP
@given(odd_things, odd_things, odd_things)
def test_any_box_is_refused_or_has_modes_in_order(sides: object, step: object, count: object) -> None:
    for make in (lambda: BoxWorld(sides), lambda: BoxWorld((1.0, 0.7), step), lambda: BoxWorld()):
        box = result_or_error(make)
        if isinstance(box, LapwingError) or box.dimension > 4:
            continue
        found = result_or_error(lambda box=box: box.closed_form(count))
        if not isinstance(found, LapwingError):
            assert (np.diff(found.mu) <= 1e-11).all()
            assert np.isfinite(found.mu).all()


NUMBERS = ["0.9", "0", "1", "nan", "inf", "-1", "1e-320", "50", "1e6", "1e7", "1e400", "a", "", "1_0"]
LONG_TEXTS = ["(" * 10**5, "successor" + " " * 10**5 + "x", "a" * 10**6]
definition_texts = st.builds(
    lambda kind, open_, numbers, close: f"{kind}{open_}{', '.join(numbers)}{close}",
    st.sampled_from(["one_step", "successor", "geometric", "truncated", "sucessor", "", " successor\t"]),
    st.sampled_from(["(", "", "((", " ("]),
    st.lists(st.sampled_from(NUMBERS), max_size=3),
    st.sampled_from([")", "", "))", ") "]),
)


@THOUSAND
@given(definition_texts | st.text(max_size=40) | st.sampled_from(LONG_TEXTS))
def test_any_text_is_refused_or_is_a_definition_that_reads_back(text: str) -> None:
    found = result_or_error(lambda: parse_definition(text))
    if isinstance(found, Definition):
        assert parse_definition(str(found)) == found
        values = found.from_mu(np.array([-1.0, 0.0, 0.5, 1.0])) if (found.horizon or 0) < 1000 else np.zeros(4)
        assert np.isfinite(values).all()
        assert abs(values[-1]) < 1e-6


@CHEAP
@given(odd_things, odd_things)
def test_any_numbers_are_refused_or_make_a_definition(discount: object, horizon: object) -> None:
    for make in (
        lambda: successor(discount),
        lambda: geometric(discount),
        lambda: truncated(0.9, horizon),
        lambda: Definition(discount, horizon),
        lambda: as_definition(discount),
    ):
        found = result_or_error(make)
        assert isinstance(found, LapwingError) or parse_definition(str(found)) == found


descriptions = st.fixed_dictionaries(
    {"kind": st.sampled_from(["grid", "box"])},
    optional={
        "name": json_documents,
        "layout": rectangles | json_documents,
        "observation": st.sampled_from(["xy", "one_hot"]) | json_documents,
        "slip": st.floats(0, 1) | json_documents,
        "policy": st.none() | json_documents,
        "sides": st.lists(st.floats(0.1, 2), max_size=3) | json_documents,
        "step": st.floats(0.01, 1) | json_documents,
    },
)


@CHEAP
@given(descriptions | json_documents)
def test_any_description_is_refused_or_is_a_world_that_describes_itself(description: object) -> None:
    found = result_or_error(lambda: world_from_description(description))
    if isinstance(found, (GridWorld, BoxWorld)):
        plain = json.loads(json.dumps(found.describe(), allow_nan=False))
        assert world_from_description(plain).describe() == plain


@settings(max_examples=200)
@given(odd_things)
def test_any_layouts_folder_is_refused_or_listed(layouts: object) -> None:
    found = result_or_error(lambda: world_names(layouts))
    assert isinstance(found, LapwingError) or "FourRooms" in found
