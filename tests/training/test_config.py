"""The configuration: presets, what is given over them, and what is refused."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lapwing as lw
from lapwing.errors import ArgumentError, UnknownNameError
from lapwing.objectives import OBJECTIVES, Objective, Values
from lapwing.training.config import PRESETS, make_config, parse_choice


def test_the_paper_preset_holds_the_papers_values_in_our_units() -> None:
    config = make_config("paper")
    assert config.objective_options == {"barrier": 0.25, "barrier_rate": 0.005, "dual_rate": 5e-5}
    assert (config.encoder, config.hidden, config.batches) == ("mlp", (256, 256, 256), "sampled")
    assert (config.learning_rate, config.schedule, config.steps) == (1e-3, "constant", 200_000)
    assert (config.discounts, config.batch_size, config.oversampling) == ((0.9,), 1024, 0)
    assert (config.objective, config.refine) == ("allo", "none")
    assert (config.stop_when_converged, config.scale_inputs) == (False, False)


def test_what_is_given_beats_the_preset_and_none_gives_nothing() -> None:
    config = make_config("paper", steps=6000, barrier=2.0, seed=None)
    assert (config.steps, config.seed) == (6000, 0)
    assert config.objective_options == {"barrier": 2.0, "barrier_rate": 0.005, "dual_rate": 5e-5}
    assert make_config("pixels").encoder == "conv"


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_every_preset_goes_to_json_and_back(preset: str) -> None:
    config = make_config(preset, dim=np.int64(3), discounts=np.float32(0.5))
    assert make_config(**json.loads(json.dumps(config.as_dict()))) == config


def test_numbers_become_plain_ones_and_single_values_tuples() -> None:
    config = make_config(dim=np.int64(4), steps=1e3, discounts=0.9, hidden=[np.int32(8), 8], learning_rate=1)
    assert (config.dim, config.steps, config.discounts, config.hidden) == (4, 1000, (0.9,), (8, 8))
    assert [type(value) for value in (config.dim, config.steps, config.learning_rate)] == [int, int, float]
    assert make_config(hidden=16).hidden == (16,)


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "ggdo", "barrier": 0.5, "coefficients": [2.0, 1.0]},
        {"objective": "ggdo(barrier=0.5, coefficients=[2.0, 1.0])"},
        {"objective": {"name": "ggdo", "barrier": np.float32(0.5), "coefficients": (2.0, 1.0)}},
        {"objective": "ggdo", "objective_options": {"barrier": 0.5, "coefficients": [2, 1]}},
    ],
    ids=["loose", "text", "dictionary", "options"],
)
def test_an_objective_and_its_options_may_be_given_in_four_forms(given: dict[str, Any]) -> None:
    config = make_config("paper", **given)
    assert config.objective == "ggdo"
    # The preset's options are those of its own objective, and do not carry over.
    assert config.objective_options == {"barrier": 0.5, "coefficients": (2.0, 1.0)}


def test_an_encoder_and_its_options_may_be_given_in_the_same_forms() -> None:
    for given in ({"encoder": "fourier(scales=(3.0, 10.0))"}, {"encoder": "fourier", "scales": [3, 10]}):
        config = make_config(**given)
        assert (config.encoder, config.encoder_options) == ("fourier", {"scales": (3.0, 10.0)})
    model = lw.learn(
        lw.operator("GridMaze-7"), 3, encoder="fourier(scales=(2.0,), features_per_scale=4)", hidden=8, steps=2
    )
    assert model.encoder.inner.module.frequencies.array.shape == (2, 4)


def test_objects_of_ones_own_are_named_given_and_take_no_options() -> None:
    assert make_config(objective=lw.allo(), encoder=jnp.tanh).as_dict()["objective"] == "given"
    with pytest.raises(UnknownNameError):
        make_config(objective=lw.allo(), barrier=2.0)


def test_options_of_the_factory_without_a_barrier_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(weight: float = 1.0, name: str = "x") -> Objective:
        return lw.gdo(weight)

    monkeypatch.setitem(OBJECTIVES, "plain", plain)
    assert make_config(objective="plain", weight=3).objective_options == {"weight": 3.0}
    with pytest.raises(UnknownNameError):
        make_config(objective="plain", barrier=1.0)


@pytest.mark.parametrize(
    "text",
    [
        "allo(2.0)", "allo(barrier=open)", "allo(barrier=2.0", "allo(barrier=1, barrier=2)", "a.b(c=1)", "allo()()",
        "allo(**{})", "allo(" + "(" * 5000, "allo(barrier=" + "-" * 900 + "1)", "(allo)(barrier=1)x",
    ],
    ids=range(10),
)  # fmt: skip
def test_text_is_data_and_never_code(text: str) -> None:
    with pytest.raises(ArgumentError):
        make_config(objective=text)


def test_a_choice_as_text_has_a_name_and_options() -> None:
    assert parse_choice("allo") == ("allo", {})
    assert parse_choice(" allo( barrier = 2.0, duals=False )") == ("allo", {"barrier": 2.0, "duals": False})


@pytest.mark.parametrize(
    "given",
    [
        {"dim": 0}, {"dim": 2.5}, {"dim": "3"}, {"dim": 10_001}, {"dim": 10**5000}, {"steps": True}, {"steps": 2**31},
        {"hidden": (8, 1.5)}, {"hidden": (0,)}, {"hidden": (10**6, 10**6)}, {"hidden": [1] * 101},
        {"discounts": ("a",)}, {"discounts": ()}, {"discounts": 1.0}, {"discounts": float("nan")},
        {"discounts": [0.5] * 101}, {"batch_size": 0}, {"batch_size": 10**12}, {"log_every": -1},
        {"oversampling": -1}, {"seed": -1}, {"seed": 2**32}, {"permute_every": -5},
        *({"learning_rate": bad} for bad in (0.0, float("nan"), float("inf"), "fast", True, 10**400)),
        {"objective": "alo"}, {"objective": ["allo"]}, {"objective": {"barrier": 1.0}}, {"objective_options": 3},
        {"encoder": "furier"}, {"batches": "exakt"}, {"batches": np.array([1, 2])}, {"schedule": "linear"},
        {"refine": "yes"}, *({"barrier": bad} for bad in (float("nan"), float("inf"), -1.0, 1e5, "much")),
        {"barrier_rate": float("nan")}, {"dual_rate": -1.0}, {"duals": "no"}, {"duals": 1},
        {"objective": "gdo", "dual_rate": 0.1}, {"objective": "ggdo(coefficients=[1.0, 2.0])"},
    ],
    ids=lambda given: str(given)[:40] if "dim" not in given else "dim",
)  # fmt: skip
def test_values_that_cannot_work_are_refused_before_any_work(given: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        lw.Learner(**given)


@pytest.mark.parametrize(
    ("given", "offered"),
    [
        ({"learning_rat": 1.0}, "did you mean learning_rate"),
        ({"barier": 1.0}, "did you mean barrier"),
        ({"objective": "allo(barier=1.0)"}, "did you mean barrier"),
        ({"objective": "alo"}, "did you mean allo"),
        ({"preset": "papr"}, "did you mean paper"),
        ({"spare": 3}, "use oversampling"),
        ({"report": print}, "use callback"),
    ],
)
def test_unknown_and_old_names_are_errors_that_offer_the_right_one(given: dict[str, Any], offered: str) -> None:
    with pytest.raises(UnknownNameError, match=offered):
        lw.Learner(**given)


def penalty_of(**options: Any) -> dict[str, float]:
    """What the objective that a configuration describes says of one batch whose errors are all 1."""
    objective = make_config(**options).make_objective()
    batch = jnp.sqrt(2.0) * jnp.eye(2)
    batch = jnp.concatenate([batch, batch]) * jnp.sqrt(2.0)
    state = objective.init(2)
    values = Values(0 * batch, 0 * batch, batch, batch)
    loss, seen = objective.loss(state, values)
    return {"loss": float(loss), "after": float(objective.loss(objective.update(state, seen.aux), values)[0])}


@pytest.mark.parametrize("objective", ["allo", "ggdo", "gdo", "quadratic_penalty"])
def test_the_barrier_reaches_every_objective(objective: str) -> None:
    single, double = (penalty_of(objective=objective, barrier=barrier)["loss"] for barrier in (1.0, 2.0))
    assert single > 0
    assert double == pytest.approx(2.0 * single)


def test_rates_and_switches_reach_allo() -> None:
    still = {"barrier_rate": 0.0, "dual_rate": 0.0}
    assert penalty_of(**still)["after"] == pytest.approx(penalty_of(**still)["loss"])
    assert penalty_of(**{**still, "dual_rate": 0.1})["after"] > penalty_of(**still)["after"] + 0.1
    assert penalty_of(**{**still, "barrier_rate": 1.0})["after"] > penalty_of(**still)["after"] + 0.01
    off = {**still, "dual_rate": 0.1, "duals": False}
    assert penalty_of(**off)["after"] == pytest.approx(penalty_of(**off)["loss"])
    assert penalty_of(objective="ggdo", barrier_rate=1.0)["after"] > penalty_of(objective="ggdo")["loss"] + 0.01


def test_the_stop_gradient_switch_reaches_allo() -> None:
    def gradient(stop: bool) -> jax.Array:
        objective = make_config(stop_gradient=stop).make_objective()
        batch = jnp.array([[1.0, 0.5], [0.0, 1.0]])
        return jax.grad(lambda u: objective.loss(objective.init(2), Values(0 * u, 0 * u, u, u))[0])(batch)

    assert not np.allclose(gradient(True), gradient(False))
