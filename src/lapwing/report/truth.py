"""The exact answer beside a learned one: solved from the world in the run's files, turned so that pictures compare."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.encoders.lookup import LookupEncoder
from lapwing.errors import LapwingError, LapwingWarning
from lapwing.evaluation.score import score
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, group_degenerate
from lapwing.report.places import Places
from lapwing.report.sources import Run
from lapwing.solving import solve


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact answer to the same question.

    Attributes:
        values: (n, dim) exact components at the run's places, turned to the learned ones cluster by cluster.
        mu: (dim,) one-step eigenvalues.
        score: of the learned ones, as :meth:`lapwing.evaluation.score.Score.as_dict` gives it.
        clusters: component numbers from 0 that count as one eigenvalue.
    """

    values: NDArray[np.float64]
    mu: NDArray[np.float64]
    score: dict[str, Any]
    clusters: list[list[int]]


def truth_of(run: Run, places: Places | None, values: NDArray[np.float64] | None) -> tuple[Truth | None, str | None]:
    """The truth for a run that has one, or None and, where a reader may wonder, why."""
    if places is None or places.world is None or values is None:
        return None, None
    if run.method == "exact":
        return None, "These components are the exact answer itself."
    recorded = _recorded_score(run)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LapwingWarning)
            exact = run.ground_truth or solve(places.world, run.model.dim)
            found = recorded or score(run.model, exact).as_dict()
    except LapwingError as error:
        return None, f"There is no exact answer to compare with: {error}."
    everything = np.asarray(exact.transform_all(places.points), dtype=np.float64)
    width = EXACT_TOLERANCE if run.model.exact else DATA_TOLERANCE
    clusters = group_degenerate(1.0 - exact.mu, width)
    weights = exact.encoder.weights if isinstance(exact.encoder, LookupEncoder) else np.ones(len(places.points))
    turned = turned_to(values, everything, weights, clusters)
    kept = [[i for i in cluster if i < run.model.dim] for cluster in clusters if cluster.start < run.model.dim]
    return Truth(turned, exact.mu[: run.model.dim], found, kept), None


def _recorded_score(run: Run) -> dict[str, Any] | None:
    """The score that was written with the run."""
    found: dict[str, Any] | None = (run.scores or {}).get("learned")
    return found


def turned_to(
    learned: NDArray[np.float64], exact: NDArray[np.float64], weights: NDArray[np.float64], clusters: list[range]
) -> NDArray[np.float64]:
    """(n, d) exact components rotated inside each cluster to come as near to the learned ones as they can.

    The rotation is orthogonal Procrustes; for a single eigenvalue it is the sign. Pictures compare; no score changes.

    Args:
        learned: (n, d) components; NaN where unknown.
        exact: (n, m) exact ones, m >= d so that the last cluster is whole.
        weights: (n,) of the places.
        clusters: which columns of ``exact`` share an eigenvalue.
    """
    known = np.nan_to_num(learned)
    turned = np.empty_like(learned)
    for cluster in clusters:
        columns = range(cluster.start, min(cluster.stop, learned.shape[1]))
        if not columns:
            break
        basis = exact[:, cluster.start : cluster.stop]
        overlap = basis.T @ (weights[:, None] * known[:, columns.start : columns.stop])
        left, _, right = np.linalg.svd(overlap, full_matrices=False)
        turned[:, columns.start : columns.stop] = basis @ (left @ right)
    return turned
