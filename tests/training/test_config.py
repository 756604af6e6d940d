"""The configuration: presets, what is given over them, and what is refused."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lapwing.errors import LapwingError
from lapwing.objectives import Values
from lapwing.training.config import PRESETS, LearnConfig, make_config


def test_the_paper_preset_holds_the_papers_values_in_our_units() -> None:
    config = make_config("paper")
    assert (config.barrier, config.barrier_rate, config.dual_rate) == (0.25, 0.005, 5e-5)
    assert (config.encoder, config.hidden, config.batches) == ("mlp", (256, 256, 256), "sampled")
    assert (config.learning_rate, config.schedule, config.steps) == (1e-3, "constant", 200_000)
    assert (config.discounts, config.batch_size, config.spare) == ((0.9,), 1024, 0)
    assert (config.objective, config.duals, config.stop_gradient) == ("allo", True, True)
    assert (config.refine, config.stop_when_converged, config.centre_pixels) == ("none", False, False)


def test_the_default_preset_is_the_defaults() -> None:
    assert make_config() == LearnConfig()
    assert make_config("pixels").encoder == "conv"


def test_what_is_given_beats_the_preset_and_none_gives_nothing() -> None:
    config = make_config("paper", steps=6000, barrier=2.0, seed=None)
    assert (config.steps, config.barrier, config.seed) == (6000, 2.0, 0)
    assert config.dual_rate == make_config("paper").dual_rate


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
    ("option", "value", "words"),
    [
        ("dim", 0, "dim must be at least 1"),
        ("dim", 2.5, "dim must be a whole number, got 2.5"),
        ("dim", "3", "dim must be a whole number"),
        ("steps", True, "steps must be a whole number"),
        ("hidden", (8, 1.5), "hidden must be a whole number"),
        ("discounts", ("a",), "discounts must be a number"),
        ("batch_size", 0, "batch_size must be at least 1"),
        ("log_every", -1, "log_every must be at least 1"),
        ("spare", -1, "spare must not be negative"),
        ("seed", -1, "seed must not be negative"),
        ("permute_every", -5, "permute_every must not be negative"),
        ("learning_rate", 0.0, "learning_rate must be positive"),
        ("learning_rate", float("nan"), "learning_rate must be positive"),
        ("learning_rate", "fast", "learning_rate must be a number"),
        ("objective", "alo", "did you mean allo"),
        ("batches", "exakt", "batches must be one of auto, exact"),
        ("schedule", "linear", "schedule must be one of cosine"),
        ("refine", "yes", "refine must be one of ritz"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(option: str, value: Any, words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        make_config(**{option: value})


def test_unknown_options_and_presets_offer_the_nearest_known_one() -> None:
    with pytest.raises(LapwingError, match="no option 'learning_rat'; did you mean learning_rate"):
        make_config(learning_rat=1.0)
    with pytest.raises(LapwingError, match="no preset 'papr'; did you mean paper"):
        make_config("papr")


def penalty_of(**options: Any) -> dict[str, float]:
    """What the objective that a configuration describes says of one batch whose errors are all 1."""
    objective = make_config(**options).make_objective()
    batch = jnp.sqrt(2.0) * jnp.eye(2)
    batch = jnp.concatenate([batch, batch]) * jnp.sqrt(2.0)
    state = objective.init(2)
    loss, info = objective.loss(state, Values(jnp.zeros(2), batch, batch))
    return {
        "loss": float(loss),
        "after": float(objective.loss(objective.update(state, info), Values(jnp.zeros(2), batch, batch))[0]),
    }


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
        return jax.grad(lambda u: objective.loss(objective.init(2), Values(jnp.zeros(2), u, u))[0])(batch)

    assert not np.allclose(gradient(True), gradient(False))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("barrier", float("nan"), "barrier must be positive and finite"),
        ("barrier", float("inf"), "barrier must be positive and finite"),
        ("barrier", -1.0, "barrier must be positive and finite"),
        ("barrier", 1e5, "starts above max_barrier"),
        ("barrier_rate", float("nan"), "barrier_rate must be zero or more"),
        ("dual_rate", -1.0, "dual_rate must be zero or more"),
        ("learning_rate", float("inf"), "learning_rate must be positive and finite"),
        ("learning_rate", "0.1", "learning_rate must be a number"),
        ("learning_rate", True, "learning_rate must be a number"),
        ("learning_rate", 10**400, "learning_rate must be a number"),
        ("discounts", (), "at least one of them"),
        ("discounts", 1.0, "strictly between 0 and 1"),
        ("discounts", float("nan"), "strictly between 0 and 1"),
        ("discounts", [0.5] * 101, "at most 100"),
        ("dim", 10_001, "dim must be at most 10,000"),
        pytest.param("dim", 10**5000, "10,000, got a int that cannot be shown", id="a dim of 5,000 digits"),
        ("steps", 2**31, "steps must be at most 2,147,483,647"),
        ("batch_size", 10**12, "batch_size must be at most"),
        ("seed", 2**32, "seed must be at most"),
        ("hidden", (0,), "sizes of at least 1"),
        ("hidden", (10**6, 10**6), "more than 268,435,456 weights"),
        ("hidden", [1] * 101, "at most 100"),
        ("duals", "no", "duals must be True or False"),
        ("duals", 1, "duals must be True or False"),
        ("objective", 3, "objective must be a name"),
        ("objective", ["allo"], "objective must be a name"),
        ("encoder", 3, "encoder must be a name"),
        ("batches", np.array([1, 2]), "batches must be a name"),
    ],
)
def test_values_from_nowhere_are_refused_by_name_before_any_work(option: str, value: Any, words: str) -> None:
    with pytest.raises(LapwingError, match=words):
        make_config(**{option: value})
