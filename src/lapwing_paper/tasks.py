"""What a run does: learn and score, check the theory, measure distances, walk with options, train agents, plan."""

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from lapwing import LaplacianRepresentation, Learner, Trajectories, collect, operator, score, solve, successor
from lapwing.encoders import RotatedEncoder
from lapwing.environments import world_from_description
from lapwing.errors import DataError, LapwingWarning
from lapwing.training import NetworkCollapsedError
from lapwing_paper.distance_tasks import compare_distances, compare_hitting_times
from lapwing_paper.gluing import glue_episodes
from lapwing_paper.online_tasks import follow_policy
from lapwing_paper.option_tasks import cover_times, diffusion_option_steps, diffusion_times
from lapwing_paper.policy_tasks import plan_in_maze, reach_goals
from lapwing_paper.read_out_tasks import compare_read_outs
from lapwing_paper.run_store import Outcome
from lapwing_paper.shaping_tasks import train_on_reward
from lapwing_paper.theory.claims import check_claims

DEFINITION = successor(0.9)
EPISODE_LENGTH = 50


def perform(specification: dict[str, Any]) -> Outcome:
    """Carry out a run from :meth:`StudyRun.specification`, in this process.

    Args:
        specification: of the run.

    Returns:
        The outcome of the run.
    """
    with warnings.catch_warnings():
        # Thousands of runs need not repeat them.
        warnings.simplefilter("ignore", LapwingWarning)
        return TASKS[specification["task"]](specification)


def learn_and_score(specification: dict[str, Any]) -> Outcome:
    """Learn a representation of a world and compare it with the exact one, beside counting on the same data.

    Settings: ``preset``; ``options`` of :func:`lapwing.learn`; ``transitions`` of data, or 0 for the exact operator;
    ``observation``; ``glued_every`` so many transitions, see :func:`glue_episodes`.

    Args:
        specification: of the run.

    Returns:
        Scores, eigenvalues and the configuration; the history; the components on all states.
    """
    settings, seed = specification["settings"], int(specification["seed"])
    world: Any = world_from_description(specification["world"])
    if world is None:
        raise DataError("a run needs a world to learn")
    if settings.get("observation", "xy") != "xy":
        world = world.with_options(observation=settings["observation"])
    options = dict(settings.get("options", {}))
    dim = int(options.setdefault("dim", 11))
    truth = solve(world, dim)
    data: Any = operator(world)
    if settings["transitions"]:
        data = collect(world, int(settings["transitions"]), seed=seed, episode_length=EPISODE_LENGTH)
        if every := int(settings.get("glued_every", 0)):
            data = glue_episodes(data, every)
    learner = Learner(settings["preset"], seed=seed, **options)
    started = time.perf_counter()
    try:
        model = learner.fit(data, truth=truth)
    except NetworkCollapsedError as error:
        # Not a failure of the run: that is what the method does here.
        return Outcome({"collapsed": str(error), "seconds": time.perf_counter() - started})
    numbers = {
        "seconds": time.perf_counter() - started,
        **_scores(model, truth),
        **_eigenvalues(model, truth),
        "expected_cosine": _finite(model.certificate().expected_cosine),
        "steps": model.metadata["steps"],
        "config": model.metadata["config"],
    }
    if isinstance(data, Trajectories):
        counted = solve(data, dim)
        numbers |= {f"counting_{name}": value for name, value in _scores(counted, truth).items()}
        numbers["counting_eigenvalues"] = counted.eigenvalues_in(DEFINITION).tolist()
    components = np.asarray(model.transform(np.asarray(world.field_points())), dtype=np.float32)
    return Outcome(numbers, model.metadata["history"], components)


def check_theory(specification: dict[str, Any]) -> Outcome:
    """Check the paper's lemmas, corollary and theorem on one small random graph; settings: ``size`` and ``dim``.

    Args:
        specification: of the run.

    Returns:
        The claims as dictionaries.
    """
    settings = specification["settings"]
    claims = check_claims(int(specification["seed"]), int(settings["size"]), int(settings["dim"]))
    return Outcome({"claims": [asdict(claim) for claim in claims]})


TASKS: dict[str, Callable[[dict[str, Any]], Outcome]] = {
    "learn": learn_and_score,
    "theory": check_theory,
    "distances": compare_distances,
    "hitting-times": compare_hitting_times,
    "diffusion-time": diffusion_times,
    "cover-time": cover_times,
    "diffusion-options": diffusion_option_steps,
    "shaping": train_on_reward,
    "zero-shot": reach_goals,
    "planning": plan_in_maze,
    "online-policies": follow_policy,
    "read-outs": compare_read_outs,
}


def _scores(model: LaplacianRepresentation, truth: LaplacianRepresentation) -> dict[str, Any]:
    found = score(model, truth)
    return {
        "cosine": found.cosine,
        "cosines": found.cosines.tolist(),
        "subspace_cosine": found.subspace_cosine,
        "subspace_cosines": found.subspace_cosines.tolist(),
        "eigenvalue_error": found.mean_eigenvalue_error,
    }


def _eigenvalues(model: LaplacianRepresentation, truth: LaplacianRepresentation) -> dict[str, Any]:
    """Eigenvalues in the paper's definition: true, learned, their error bars; and the objective's own estimates."""
    estimates = model.metadata["eigenvalue_estimates"]
    numbers: dict[str, Any] = {
        "true_eigenvalues": truth.eigenvalues_in(DEFINITION).tolist(),
        "eigenvalues": model.eigenvalues_in(DEFINITION).tolist(),
        "error_bars": model.error_bars_in(DEFINITION).tolist(),
        "mu": model.mu[: model.dim].tolist(),
        "true_mu": truth.mu[: model.dim].tolist(),
    }
    for name in ("dual", "multiplier"):
        if name in estimates:
            numbers[name] = [_finite(value) for value in estimates[name][: model.dim]]
    if isinstance(model.encoder, RotatedEncoder) and model.metadata["config"]["refine"] == "none":
        # Unrefined components were only scaled to mean square one; this is what they had before.
        scales = np.abs(model.encoder.matrix).max(axis=0)
        numbers["squared_norms"] = (1.0 / scales**2).tolist()
    return numbers


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
