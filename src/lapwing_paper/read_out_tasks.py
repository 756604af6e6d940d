"""What runs of the study of objectives do: train once and read the same network out in three ways, or count cells."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing import (
    LaplacianRepresentation,
    Learner,
    Trajectories,
    collect,
    counting_score,
    from_arrays,
    rayleigh_ritz,
    score,
    solve,
)
from lapwing.data import k_means_centres, nearest_cells
from lapwing.encoders import RotatedEncoder
from lapwing.operators import geometric_lags, lags_inside_episodes
from lapwing.training import LearningDivergedError, NetworkCollapsedError
from lapwing_paper.run_store import Outcome
from lapwing_paper.study_worlds import world_of_run

EPISODE_LENGTH = 50
RAW, RITZ, DEFAULT = READ_OUTS = ("raw", "ritz", "default")


def compare_read_outs(specification: dict[str, Any]) -> Outcome:
    """Learn a representation and score its outputs as they are, after Rayleigh-Ritz, and by the default read-out.

    Settings: ``transitions`` of data; ``options`` of :func:`lapwing.learn`. With ``cells`` nothing is learned: see
    :func:`cell_components`.

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
    if "cells" in settings:
        started = time.perf_counter()
        counted = cell_components(data, int(options["dim"]), int(settings["cells"]), seed)
        seconds = time.perf_counter() - started
        return Outcome({"seconds": seconds, **_scores(DEFAULT, score(counted, truth))})
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


class CellEncoder:
    """The components of the cell that an observation lies in."""

    kind = "cells"

    def __init__(self, centres: NDArray[np.float32], counted: LaplacianRepresentation) -> None:
        """Cells around centres.

        Args:
            centres: (m, k) of the cells.
            counted: components of the cells' numbers.
        """
        self.centres, self.counted, self.dim = centres, counted, counted.dim

    def encode(self, observations: NDArray[Any]) -> NDArray[np.floating[Any]]:
        """Components of observations.

        Args:
            observations: (n, k) of numbers.

        Returns:
            (n, dim) values.
        """
        return self.counted.transform(nearest_cells(observations, self.centres)[:, None])

    def config(self) -> dict[str, Any]:
        """Nothing: it is not saved."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Nothing: it is not saved."""
        return {}


def cell_components(data: Trajectories, dim: int, cells: int, seed: int) -> LaplacianRepresentation:
    """The baseline where observations do not repeat: k-means, transitions between cells counted and diagonalised.

    Args:
        data: observations of a few numbers on comparable scales.
        dim: how many components.
        cells: how many cells.
        seed: of k-means.

    Returns:
        A representation that is constant in each cell.
    """
    centres = k_means_centres(data.observations, cells, np.random.default_rng(seed))
    labels = nearest_cells(data.observations, centres)
    counted = solve(from_arrays(labels[:, None], lengths=np.diff(data.offsets)), dim)
    return LaplacianRepresentation(CellEncoder(centres, counted), counted.mu, counted.dim)


def _scores(name: str, found: Any) -> dict[str, float]:
    return {
        f"{name}_cosine": found.cosine,
        f"{name}_subspace_cosine": found.subspace_cosine,
        f"{name}_eigenvalue_error": found.mean_eigenvalue_error,
    }
