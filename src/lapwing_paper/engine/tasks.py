"""What a run does: learn and score, or check the theory. Pure functions from an order to an outcome."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from lapwing.data.collect import collect
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import successor
from lapwing.encoders import RotatedEncoder
from lapwing.environments import World, world_from_description
from lapwing.errors import LapwingError, LapwingWarning
from lapwing.evaluation.score import Score, score
from lapwing.representation import LaplacianRepresentation
from lapwing.solving import operator, solve
from lapwing.training.engine import NetworkCollapsedError
from lapwing.training.job import Data
from lapwing.training.learner import Learner
from lapwing_paper.engine.runs import Outcome
from lapwing_paper.gluing import glue_episodes
from lapwing_paper.theory.claims import check_claims

DEFINITION = successor(0.9)


def perform(order: dict[str, Any]) -> Outcome:
    """Carry out an order from :meth:`Run.order`, in this process."""
    with warnings.catch_warnings():
        # Said once where the world is chosen; thousands of runs need not repeat it.
        warnings.simplefilter("ignore", LapwingWarning)
        return TASKS[order["task"]](order)


def learn_and_score(order: dict[str, Any]) -> Outcome:
    """Learn a representation of a world and compare it with the exact one, beside counting on the same data.

    Settings: ``preset``; ``options`` of :class:`lapwing.training.config.LearnConfig`; ``transitions`` of experience, or
    0 for the exact operator; ``observation``; ``glued_every`` so many transitions, see :func:`glue_episodes`.
    """
    settings, seed = order["settings"], int(order["seed"])
    world = world_from_description(order["world"])
    if world is None:
        raise LapwingError("a run needs a world to learn")
    if settings.get("observation", "xy") != "xy":
        world = world.with_options(observation=settings["observation"])
    options = dict(settings.get("options", {}))
    dim = int(options.setdefault("dim", 11))
    truth = solve(world, dim)
    data = _data(world, settings, seed)
    learner = Learner(settings["preset"], seed=seed, **options)
    started = time.perf_counter()
    try:
        model = learner.fit(data, truth=truth if settings.get("watch", True) else None)
    except NetworkCollapsedError as error:
        # Not a failure of the run: that is what the method does here.
        return Outcome({"collapsed": str(error), "seconds": time.perf_counter() - started})
    seconds = time.perf_counter() - started
    found = score(model, truth)
    numbers = {
        **_score_numbers(found),
        **_eigenvalue_numbers(model, truth),
        "expected_cosine": _finite(model.certificate().expected_cosine),
        "steps": model.metadata["steps"],
        "seconds": seconds,
        "config": model.metadata["config"],
    }
    if isinstance(data, Trajectories):
        counted = solve(data, dim)
        numbers |= {f"counting_{name}": value for name, value in _score_numbers(score(counted, truth)).items()}
        numbers["counting_eigenvalues"] = counted.eigenvalues_in(DEFINITION).tolist()
    components = np.asarray(model.transform(np.asarray(world.field_points())), dtype=np.float32)
    return Outcome(numbers, model.metadata["history"], {"components": components})


def check_theory(order: dict[str, Any]) -> Outcome:
    """Check the paper's lemmas, corollary and theorem on one small random graph; settings: ``size`` and ``dim``."""
    settings = order["settings"]
    claims = check_claims(int(order["seed"]), int(settings["size"]), int(settings["dim"]))
    return Outcome({"claims": [asdict(claim) for claim in claims]})


TASKS: dict[str, Callable[[dict[str, Any]], Outcome]] = {"learn": learn_and_score, "theory": check_theory}


def _data(world: World, settings: dict[str, Any], seed: int) -> Data:
    transitions = int(settings["transitions"])
    if not transitions:
        return operator(world)
    data = collect(world, transitions, seed=seed)
    every = int(settings.get("glued_every", 0))
    return glue_episodes(data, every) if every else data


def _score_numbers(found: Score) -> dict[str, Any]:
    return {
        "cosine": found.cosine,
        "cosines": found.cosines.tolist(),
        "subspace_cosine": found.subspace_cosine,
        "subspace_cosines": found.subspace_cosines.tolist(),
        "eigenvalue_error": found.mean_eigenvalue_error,
    }


def _eigenvalue_numbers(model: LaplacianRepresentation, truth: LaplacianRepresentation) -> dict[str, Any]:
    """Eigenvalues in the paper's definition: true, learned, their error bars; and what the objective itself reads."""
    readings = model.metadata["readings"]
    numbers: dict[str, Any] = {
        "true_eigenvalues": truth.eigenvalues_in(DEFINITION).tolist(),
        "eigenvalues": model.eigenvalues_in(DEFINITION).tolist(),
        "error_bars": model.error_bars_in(DEFINITION).tolist(),
        "mu": model.mu[: model.dim].tolist(),
        "true_mu": truth.mu[: model.dim].tolist(),
    }
    for name in ("dual", "multiplier"):
        if name in readings:
            numbers[name] = [_finite(value) for value in readings[name][: model.dim]]
    if isinstance(model.encoder, RotatedEncoder) and model.metadata["config"]["refine"] == "none":
        # Unrefined components were only scaled to mean square one; this is what they had before.
        scales = np.abs(model.encoder.matrix).max(axis=0)
        numbers["squared_norms"] = (1.0 / scales**2).tolist()
    return numbers


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
