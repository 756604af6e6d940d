"""Any value for any option of learning, and of everything else that is called with options."""

import inspect
import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_values import CHEAP, odd_numbers, odd_things, result_or_error

from lapwing.errors import LapwingError
from lapwing.objectives import OBJECTIVES, Objective
from lapwing.training.config import PRESETS, LearnConfig, make_config
from lapwing.training.learner import Learner

pytestmark = pytest.mark.slow

NUMBERS = ("barrier", "barrier_rate", "dual_rate", "max_dual", "shift", "ridge", "initial_dual")
TAKEN = {name: set(inspect.signature(factory).parameters) for name, factory in OBJECTIVES.items()}
OPTIONS = [field.name for field in fields(LearnConfig)]
some_options = st.dictionaries(st.sampled_from(OPTIONS), odd_things, max_size=3)
sound_values = {
    "dim": st.integers(1, 30),
    "steps": st.integers(1, 9),
    "hidden": st.lists(st.integers(1, 9), max_size=3),
    "discounts": st.floats(0.1, 0.9) | st.lists(st.floats(0.1, 0.9), min_size=1, max_size=3),
    "barrier": st.floats(0.1, 10),
    "learning_rate": st.floats(1e-6, 1),
    "stop_when_converged": st.booleans() | st.sampled_from([np.True_, np.False_]),
    "objective": st.sampled_from(sorted(name for name, taken in TAKEN.items() if "barrier" in taken)),
    "refine": st.sampled_from(["ritz", "none"]),
}


@settings(max_examples=2000)
@given(st.sampled_from(sorted(PRESETS)), some_options)
def test_any_options_are_refused_or_make_a_configuration_that_goes_to_json_and_back(
    preset: str, options: dict[str, object]
) -> None:
    found = result_or_error(lambda: make_config(preset, **options))
    if isinstance(found, LearnConfig):
        plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert make_config(**plain) == found
        assert found.objective == "given" or isinstance(found.make_objective(), Objective)
        assert all(0.0 < discount < 1.0 for discount in found.discounts)
        numbers = [value for value in found.objective_options.values() if isinstance(value, float)]
        assert np.isfinite([found.learning_rate, *numbers]).all()


@CHEAP
@given(st.fixed_dictionaries({}, optional=sound_values))
def test_sound_options_are_never_refused(options: dict[str, object]) -> None:
    config = make_config(**options)
    assert make_config(**json.loads(json.dumps(config.as_dict(), allow_nan=False))) == config


@CHEAP
@given(odd_things, st.text(max_size=12), odd_things, odd_things)
def test_any_preset_name_objective_or_encoder_is_refused_or_taken(
    preset: object, name: str, objective: object, encoder: object
) -> None:
    if name not in (*OPTIONS, *NUMBERS, "preset"):
        assert isinstance(result_or_error(lambda: make_config(**{name: 1})), LapwingError)
    assert isinstance(result_or_error(lambda: make_config(preset)), LapwingError)
    for options in ({"objective": objective}, {"encoder": encoder}):
        found = result_or_error(lambda options=options: Learner(**options))
        assert isinstance(found, LapwingError | Learner)


@CHEAP
@given(st.sampled_from(sorted(OBJECTIVES)), st.sampled_from(NUMBERS), odd_numbers)
def test_any_number_for_an_objective_is_refused_or_makes_one(name: str, option: str, value: object) -> None:
    if option in TAKEN[name]:
        found = result_or_error(lambda: OBJECTIVES[name](**{option: value}))
        assert isinstance(found, LapwingError | Objective)
