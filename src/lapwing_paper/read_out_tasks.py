"""What a run of the study of objectives does: train once, and read the same network out in three ways."""

import time
from typing import Any

import numpy as np

from lapwing import LaplacianRepresentation, Learner, Trajectories, collect, counting_score, rayleigh_ritz, score, solve
from lapwing.encoders import RotatedEncoder
from lapwing.operators import geometric_lags, lags_inside_episodes
from lapwing.training import LearningDivergedError, NetworkCollapsedError
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

EPISODE_LENGTH = 50
RAW, RITZ, DEFAULT = READ_OUTS = ("raw", "ritz", "default")


def compare_read_outs(specification: dict[str, Any]) -> Outcome:
    """Learn a representation and score its outputs as they are, after Rayleigh-Ritz, and by the default read-out.

    Settings: ``transitions`` of data; ``options`` of :func:`lapwing.learn`.

    Args:
        specification: of the run.

    Returns:
        Both cosines and the eigenvalue error of each read-out, and of counting where observations repeat; seconds; the
        history.
    """
    world, settings, seed = world_of_run(specification), specification["settings"], int(specification["seed"])
    options = settings["options"]
    truth = solve(world, int(options["dim"]))
    data = collect(world, int(settings["transitions"]), seed=seed, episode_length=EPISODE_LENGTH)
    learner = Learner(seed=seed, stop_when_converged=False, **options)
    started = time.perf_counter()
    try:
        model = learner.fit(data, truth=truth)
    except (NetworkCollapsedError, LearningDivergedError) as error:
        # Not a failure of the run: that is what the objective does here.
        return Outcome({"collapsed": str(error), "seconds": time.perf_counter() - started})
    numbers: dict[str, Any] = {"seconds": time.perf_counter() - started, "config": model.metadata["config"]}
    read_outs = {DEFAULT: model}
    assert isinstance(model.encoder, RotatedEncoder)
    if len(model.encoder.matrix) == model.encoder.inner.dim:
        # The outputs of a network that was refitted lack the constant component.
        read_outs |= {RAW: raw_components(model, data), RITZ: ritz_components(model, data)}
    for name, found in read_outs.items():
        numbers |= _scores(name, score(found, truth))
    if data.has_table:
        numbers |= _scores("counting", counting_score(data, truth))
    return Outcome(numbers, model.metadata["history"])


def raw_components(model: LaplacianRepresentation, data: Trajectories) -> LaplacianRepresentation:
    """The first outputs of a learned network as they are, with the objective's own estimate of their eigenvalues.

    Args:
        model: as learned.
        data: what it was learned from.

    Returns:
        A representation of the same dimension.
    """
    assert isinstance(model.encoder, RotatedEncoder)
    inner, config = model.encoder.inner, model.metadata["config"]
    lags = geometric_lags(config["discounts"])
    if model.metadata["batches"] == "sampled":
        lags = lags_inside_episodes(lags, np.asarray(data.lengths), unbiased=config["batches"] == "unbiased")
    own = np.nan_to_num(np.asarray(model.metadata["eigenvalue_estimates"]["multiplier"], dtype=np.float64))
    mu = 1.0 - lags.one_minus_mu(own[: model.dim])
    return LaplacianRepresentation(RotatedEncoder(inner, np.eye(inner.dim)[:, : model.dim]), mu, model.dim)


def ritz_components(model: LaplacianRepresentation, data: Trajectories) -> LaplacianRepresentation:
    """Plain Rayleigh-Ritz in the span of all outputs of a learned network, by single steps of the data.

    Args:
        model: as learned.
        data: what it was learned from.

    Returns:
        A representation of the same dimension.
    """
    assert isinstance(model.encoder, RotatedEncoder)
    inner = model.encoder.inner
    found = rayleigh_ritz(inner.encode, data)
    dim = min(model.dim, len(found.mu))
    return LaplacianRepresentation(RotatedEncoder(inner, found.rotation[:, :dim]), found.mu[:dim], dim)


def _scores(name: str, found: Any) -> dict[str, float]:
    return {
        f"{name}_cosine": found.cosine,
        f"{name}_subspace_cosine": found.subspace_cosine,
        f"{name}_eigenvalue_error": found.mean_eigenvalue_error,
    }
