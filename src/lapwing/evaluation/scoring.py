"""Scores against the ground truth: similarities, eigenvalue errors, and how they were measured."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, shown
from lapwing.data.trajectories import Trajectories
from lapwing.definitions import Definition, as_definition, successor
from lapwing.encoders.lookup import LookupEncoder
from lapwing.errors import ArgumentError, DataError, LapwingWarning
from lapwing.evaluation.similarity import paper_cosines, subspace_cosines
from lapwing.html_tables import html_table
from lapwing.operators import Operator
from lapwing.operators.clusters import DATA_TOLERANCE, EXACT_TOLERANCE, group_degenerate
from lapwing.representation import LaplacianRepresentation
from lapwing.solving import solve
from lapwing.storage.schemas import world_name

ZERO_EIGENVALUE = 1e-9


@dataclass(frozen=True)
class Score:
    """How close a representation is to the ground truth.

    Attributes:
        cosine: the paper's average cosine similarity, component by component.
        subspace_cosine: the average over principal angles within clusters of eigenvalues (ours).
        cosines: (d,) what ``cosine`` averages.
        subspace_cosines: (d,) what ``subspace_cosine`` averages.
        clusters: the clusters, as lists of component numbers from 0.
        tolerance: relative width of those clusters.
        eigenvalue_errors: (d,) relative errors; NaN where the true eigenvalue is 0.
        definition: of the eigenvalues compared.
    """

    cosine: float
    subspace_cosine: float
    cosines: NDArray[np.float64]
    subspace_cosines: NDArray[np.float64]
    clusters: list[list[int]]
    tolerance: float
    eigenvalue_errors: NDArray[np.float64]
    definition: Definition

    @property
    def mean_eigenvalue_error(self) -> float:
        """The average relative error over eigenvalues that are not 0."""
        known = self.eigenvalue_errors[~np.isnan(self.eigenvalue_errors)]
        return float(known.mean()) if len(known) else 0.0

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON types; an error that is not defined is None."""
        plain = {name: one.tolist() if isinstance(one, np.ndarray) else one for name, one in vars(self).items()}
        errors = [None if np.isnan(error) else error for error in plain["eigenvalue_errors"]]
        changed = {"eigenvalue_errors": errors, "definition": str(self.definition)}
        return plain | changed | {"mean_eigenvalue_error": self.mean_eigenvalue_error}

    def __str__(self) -> str:
        """Three lines."""
        return (
            f"cosine {self.cosine:.4f} (the paper's)\n"
            f"subspace cosine {self.subspace_cosine:.4f} (clusters within {self.tolerance:g})\n"
            f"mean relative eigenvalue error {self.mean_eigenvalue_error:.2%} in {self.definition}"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        columns = ("", "cosine", "subspace cosine", "eigenvalue off by")
        rows = [
            [str(i + 1), f"{plain:.4f}", f"{subspace:.4f}", "-" if np.isnan(error) else f"{error:.2%}"]
            for i, (plain, subspace, error) in enumerate(
                zip(self.cosines, self.subspace_cosines, self.eigenvalue_errors, strict=True)
            )
        ]
        return html_table("Score against the ground truth", columns, rows, str(self).splitlines())


def score(
    model: LaplacianRepresentation,
    truth: LaplacianRepresentation,
    *,
    tolerance: float | None = None,
    definition: "Definition | str | None" = None,
    observations: "ArrayLike | None" = None,
    weights: "ArrayLike | None" = None,
) -> Score:
    """Compare a representation with the ground truth, on the states of the ground truth.

    Args:
        model: what was learned or estimated.
        truth: the ground truth, usually from :func:`lapwing.solve`.
        tolerance: relative width within which true eigenvalues count as one for ``subspace_cosine``;
            1e-6 if both are exact, else 1 %.
        definition: in which to compare eigenvalues; the paper's ``successor(0.9)`` unless given.
        observations: where to compare; all states of the ground truth unless given.
        weights: of those observations; equal unless given.

    Returns:
        The score; ``print`` shows it in three lines.

    Example:
        >>> truth = solve("GridRoom-1", dim=5)
        >>> round(score(truth, truth).cosine, 6)
        1.0
    """
    for label, given in (("model", model), ("truth", truth)):
        if not isinstance(given, LaplacianRepresentation):
            raise ArgumentError(
                f"the {label} must be a representation from lw.learn, lw.solve or lw.load, got {given!r}"
            )
    usual = EXACT_TOLERANCE if model.exact and truth.exact else DATA_TOLERANCE
    width = usual if tolerance is None else as_real(tolerance)
    if width is None or not width >= 0:
        raise ArgumentError(f"tolerance must be a number of at least 0, got {shown(tolerance)}")
    _warn_if_worlds_differ(model, truth)
    chosen = successor(0.9) if definition is None else as_definition(definition)
    points, rho = _support(truth, observations, weights)
    dim = min(model.dim, truth.dim)
    learned = _values_on(model, points)[:, :dim]
    true_values = np.asarray(truth.transform_all(points), dtype=np.float64)
    true_eigenvalues = 1.0 - truth.mu
    by_component = paper_cosines(learned, true_values, rho, group_degenerate(true_eigenvalues, EXACT_TOLERANCE))
    clusters = group_degenerate(true_eigenvalues, width)
    by_angle = subspace_cosines(learned, true_values, rho, clusters)
    return Score(
        cosine=float(by_component.mean()),
        subspace_cosine=float(by_angle.mean()),
        cosines=by_component,
        subspace_cosines=by_angle,
        clusters=[[i for i in cluster if i < dim] for cluster in clusters if cluster.start < dim],
        tolerance=width,
        eigenvalue_errors=relative_errors(model.eigenvalues_in(chosen)[:dim], truth.eigenvalues_in(chosen)[:dim]),
        definition=chosen,
    )


def relative_errors(estimates: "ArrayLike", truth: "ArrayLike") -> NDArray[np.float64]:
    """``|estimate - true| / true`` (paper, Figure 4B), NaN where the true value is 0.

    Args:
        estimates: (..., d) eigenvalues.
        truth: (d,) true eigenvalues in the same definition.

    Returns:
        (..., d) relative errors.

    Example:
        >>> relative_errors([0.0, 1.1], [0.0, 1.0]).round(3)
        array([nan, 0.1])
    """
    guesses, exact = np.asarray(estimates, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    nonzero = np.abs(exact) > ZERO_EIGENVALUE
    return np.where(nonzero, np.abs(guesses - exact) / np.where(nonzero, np.abs(exact), 1.0), np.nan)


def counting_score(
    data: "Trajectories | Operator | LaplacianRepresentation",
    truth: LaplacianRepresentation,
    *,
    tolerance: float | None = None,
    definition: "Definition | str | None" = None,
) -> Score:
    """The score of the baseline: the tabular (counting) estimate from the same data.

    Args:
        data: the experience; or the operator counted from it, or the baseline itself, where it has been solved.
        truth: the ground truth, from :func:`lapwing.solve`.
        tolerance: see :func:`score`.
        definition: see :func:`score`.

    Returns:
        The baseline's score.

    Example:
        >>> from lapwing.data import collect
        >>> counting_score(collect("GridMaze-7", 20_000), solve("GridMaze-7", dim=3)).cosine > 0.99
        True
    """
    if not isinstance(truth, LaplacianRepresentation):
        raise ArgumentError(f"the ground truth must be a representation from lw.solve, got {shown(truth)}")
    baseline = data if isinstance(data, LaplacianRepresentation) else solve(data, truth.dim)
    return score(baseline, truth, tolerance=tolerance, definition=definition)


def _warn_if_worlds_differ(model: LaplacianRepresentation, truth: LaplacianRepresentation) -> None:
    worlds = [given.metadata.get("world") for given in (model, truth)]
    layouts = [world.get("layout") if isinstance(world, dict) else None for world in worlds]
    if None not in layouts and layouts[0] != layouts[1]:
        names = [world_name(given.metadata, "?") for given in (model, truth)]
        warnings.warn(
            f"the model belongs to {names[0]} and the ground truth to {names[1]}: the score compares different worlds",
            LapwingWarning,
            stacklevel=3,
        )


def _support(
    truth: LaplacianRepresentation, observations: ArrayLike | None, weights: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    if observations is None:
        support = getattr(truth.encoder, "support", None)
        if support is None:
            raise ArgumentError("this ground truth has no states of its own; give observations to compare on")
        return support()
    points = np.asarray(observations)
    rho = np.ones(len(points)) if weights is None else np.asarray(weights, dtype=np.float64)
    if rho.shape != (len(points),) or (rho < 0).any() or not 0 < rho.sum() < np.inf:
        raise ArgumentError(f"weights must be {len(points)} numbers of at least 0, one per observation")
    return points, rho / rho.sum()


def _values_on(model: LaplacianRepresentation, points: NDArray[Any]) -> NDArray[np.float64]:
    if not isinstance(model.encoder, LookupEncoder):
        values = np.asarray(model.transform(points), dtype=np.float64)
    else:
        # A table knows nothing of states it never saw: its value there is 0, which lowers the score.
        numbers = model.encoder.numbers_of(points)
        values = np.where(numbers[:, None] >= 0, model.encoder.values[numbers, : model.dim], 0.0)
    if not (np.isfinite(values).all() and np.isfinite(model.mu).all()):
        raise DataError("the representation gives NaN or infinity on some states or as eigenvalue; it has diverged")
    return values
