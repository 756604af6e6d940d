"""Certificates of convergence that need no ground truth: residual, orthonormality, gap, verdict per component."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lapwing.html_tables import html_table
from lapwing.operators.clusters import group_degenerate

TRUSTED = "trusted"
DEGENERATE = "degenerate"
NOT_CONVERGED = "not converged"
TOO_FEW_DATA = "too few data"
# Text and background of each verdict: contrast at least 7 to 1 in any theme, and not red against green.
VERDICT_COLOURS = {
    TRUSTED: ("#08306b", "#cfe1f2"),
    DEGENERATE: ("#3f2a56", "#e4d9ee"),
    TOO_FEW_DATA: ("#4a3500", "#ffe5a3"),
    NOT_CONVERGED: ("#5c1a00", "#ffd3c2"),
}

# sin(angle) <= residual / gap (Davis-Kahan): a tenth is a cosine of 0.995.
LARGEST_ANGLE = 0.1
LARGEST_GRAM_ERROR = 0.05


@dataclass(frozen=True)
class Certificate:
    """Per component: one-step eigenvalue, residual ``|Lu - lambda u|``, gap to the neighbours, verdict.

    ``degenerate`` says that the eigenvalue repeats within ``tolerance``, so that only the span of its cluster has a
    meaning; the span itself is trusted. ``angle_bounds`` is an upper estimate of the sine of the angle to the true
    eigenvector (or eigenspace) of the operator that residuals and gaps were measured with: the training operator for a
    learned representation. ``data_angles`` are the sines by which noise in the data turns each component, 0 for exact
    dynamics; where they are large, ``too few data``. ``dual_gaps`` is how far the objective's own estimate of the
    eigenvalue (ALLO: its multipliers) is from the Rayleigh quotient, where there is such an estimate.
    """

    eigenvalues: NDArray[np.float64]
    residuals: NDArray[np.float64]
    gaps: NDArray[np.float64]
    angle_bounds: NDArray[np.float64]
    data_angles: NDArray[np.float64]
    orthonormality_error: float
    tolerance: float
    verdicts: tuple[str, ...]
    dual_gaps: NDArray[np.float64] | None = None

    @property
    def converged(self) -> bool:
        """Whether every component has converged."""
        return NOT_CONVERGED not in self.verdicts

    @property
    def expected_cosine(self) -> float:
        """Average cosine to the true eigenvectors that the angles predict, convergence and data together."""
        sines = [np.fmin(given, 1.0) for given in (self.angle_bounds, self.data_angles)]
        squares = sines[0] ** 2 + sines[1] ** 2
        return float(np.sqrt(np.maximum(1.0 - squares, 0.0)).mean())

    def first(self, count: int) -> "Certificate":
        """The certificate of the first components, with the verdicts that they have among all.

        Args:
            count: how many.

        Returns:
            A shorter certificate.
        """
        names = ["eigenvalues", "residuals", "gaps", "angle_bounds", "data_angles", "verdicts"]
        names += [] if self.dual_gaps is None else ["dual_gaps"]
        return replace(self, **{name: getattr(self, name)[:count] for name in names})

    def __str__(self) -> str:
        """A table, one line per component."""
        duals = np.full(len(self.eigenvalues), np.nan) if self.dual_gaps is None else self.dual_gaps
        numbers = (self.residuals, self.gaps, self.angle_bounds, self.data_angles, duals)
        titles = " ".join(f"{title:>9}" for title in ("residual", "gap", "angle", "by data", "dual off"))
        head = f"{'':>3} {'eigenvalue':>12} {titles}  verdict"
        lines = []
        for i, (value, word) in enumerate(zip(self.eigenvalues, self.verdicts, strict=True)):
            cells = " ".join(f"{'-' if np.isnan(column[i]) else f'{column[i]:.1e}':>9}" for column in numbers)
            lines.append(f"{i + 1:>3} {value:>12.6g} {cells}  {word}")
        return "\n".join([head, *lines, self._last_line()])

    def _repr_html_(self) -> str:
        """What a notebook shows of it."""
        columns = ("", "eigenvalue", "residual", "gap", "angle", "by data", "verdict")
        numbers = (self.residuals, self.gaps, self.angle_bounds, self.data_angles)
        rows = [
            [
                str(i + 1),
                f"{value:.6g}",
                *("-" if np.isnan(column[i]) else f"{column[i]:.1e}" for column in numbers),
                word,
            ]
            for i, (value, word) in enumerate(zip(self.eigenvalues, self.verdicts, strict=True))
        ]
        return html_table("Certificate", columns, rows, [self._last_line()], VERDICT_COLOURS)

    def _last_line(self) -> str:
        return f"orthonormality error {self.orthonormality_error:.1e}, expected cosine {self.expected_cosine:.4f}"


def certificate_from_residuals(
    eigenvalues: NDArray[np.float64],
    residuals: NDArray[np.float64],
    orthonormality_error: float,
    tolerance: float,
    next_eigenvalue: float | None = None,
    operator_eigenvalues: NDArray[np.float64] | None = None,
    angles: NDArray[np.float64] | None = None,
    data_angles: NDArray[np.float64] | None = None,
    dual_gaps: NDArray[np.float64] | None = None,
) -> Certificate:
    """Verdicts on components from one-step eigenvalues and residuals; one that is out of order has not converged.

    Args:
        eigenvalues: (d,) ascending, in the one-step definition.
        residuals: (d,) ``|Lu - lambda u|`` in the data's norm.
        orthonormality_error: largest entry of ``|<u_j, u_k> - delta_jk|``.
        tolerance: relative width within which eigenvalues count as one.
        next_eigenvalue: the first one that is not among the components, where known.
        operator_eigenvalues: as in :func:`residual_angles`.
        angles: (d,) sharper estimates of the sines than residual / gap, e.g. from :func:`ritz_angles`, where known.
        data_angles: (d,) sines by which noise in the data turns components; None for exact dynamics.
        dual_gaps: (d,) distances of the objective's own estimate from the Rayleigh quotient, for the record.

    Returns:
        The certificate.
    """
    noise = np.zeros(len(eigenvalues)) if data_angles is None else data_angles
    gaps, bounds, repeated = residual_angles(eigenvalues, residuals, tolerance, next_eigenvalue, operator_eigenvalues)
    bounds = bounds if angles is None else np.fmin(bounds, angles)
    # Written so that a NaN anywhere counts as not converged.
    near = np.isfinite(residuals) & (bounds <= LARGEST_ANGLE) & (orthonormality_error <= LARGEST_GRAM_ERROR)
    verdicts = tuple(
        NOT_CONVERGED if not near[i]
        else TOO_FEW_DATA if not noise[i] <= LARGEST_ANGLE
        else DEGENERATE if repeated[i] else TRUSTED
        for i in range(len(eigenvalues))
    )  # fmt: skip
    return Certificate(
        eigenvalues, residuals, gaps, bounds, noise, orthonormality_error, tolerance, verdicts, dual_gaps
    )


def residual_angles(
    eigenvalues: NDArray[np.float64],
    residuals: NDArray[np.float64],
    tolerance: float,
    next_eigenvalue: float | None = None,
    operator_eigenvalues: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Upper estimates of the sines of the angles to true eigenvectors: residual / gap (Davis and Kahan).

    Args:
        eigenvalues: (d,) in the one-step definition.
        residuals: (d,) of each.
        tolerance: relative width within which eigenvalues count as one.
        next_eigenvalue: the first one that is not among the components, where known.
        operator_eigenvalues: the same eigenvalues, the next one included, of the operator that residuals were measured
            with, where that is not the one-step operator. If the next one is not known, where the operator's spectrum
            ends may stand in its place: what is missing lies somewhere up to there.

    Returns:
        (d,) gaps to the neighbours outside the cluster; (d,) sines; (d,) whether the eigenvalue is repeated.
    """
    known = eigenvalues if next_eigenvalue is None else np.append(eigenvalues, next_eigenvalue)
    measured = known if operator_eigenvalues is None else operator_eigenvalues[: len(known)]
    end = np.inf
    if operator_eigenvalues is not None and len(operator_eigenvalues) > len(known):
        end = operator_eigenvalues[len(known)]
    around = np.concatenate([[-np.inf], measured, [end]])
    gaps, repeated = np.empty(len(known)), np.zeros(len(known), dtype=bool)
    for cluster in group_degenerate(known, tolerance):
        below, above = around[: cluster.start + 1].max(), around[cluster.stop + 1 :].min()
        for i in cluster:
            gaps[i], repeated[i] = min(measured[i] - below, above - measured[i]), len(cluster) > 1
    gaps, repeated = gaps[: len(eigenvalues)], repeated[: len(eigenvalues)]
    unknown = np.where((gaps == 0) & (residuals == 0), 0.0, np.inf)
    return gaps, np.divide(residuals, gaps, out=unknown, where=gaps > 0), repeated


def ritz_angles(values: NDArray[np.float64], residuals: NDArray[np.float64], tolerance: float) -> NDArray[np.float64]:
    """Estimated sines of the angles of Ritz vectors to true eigenvectors, from the whole span they come from.

    Inside the span Ritz vectors do not couple, so an error can only come from outside, where eigenvalues lie beyond the
    largest Ritz value: residual / distance to it. Through the outside two of them couple to second order. Sharper than
    residual / gap, which assumes that all of the residual lies in the nearest neighbour. Neither detects an eigenvector
    that the span misses altogether.

    Args:
        values: (m,) ascending eigenvalues ``1 - f(mu)`` of the whole span, oversampling included.
        residuals: (m,) of each.
        tolerance: relative width within which eigenvalues count as one and need not be told apart.

    Returns:
        (m,) sines.
    """
    distance = values[-1] - values
    with np.errstate(divide="ignore", invalid="ignore"):
        direct = np.where(distance > 0, residuals / distance, np.inf)
        apart = np.abs(values[:, None] - values[None, :])
        same = apart <= tolerance * np.maximum(values[:, None], values[None, :])
        coupled = np.where(same, 0.0, direct[:, None] * residuals[None, :] / apart)
    return np.sqrt(direct**2 + (np.nan_to_num(coupled, nan=0.0, posinf=np.inf) ** 2).sum(axis=1))
