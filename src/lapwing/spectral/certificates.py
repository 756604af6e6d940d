"""Certificates of convergence that need no truth: residual, orthonormality, gap and verdict per component."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lapwing.spectral.clusters import group_degenerate

TRUSTED = "trusted"
DEGENERATE = "degenerate"
NOT_CONVERGED = "not converged"

# sin(angle) <= residual / gap (Davis-Kahan): a tenth is a cosine of 0.995.
LARGEST_ANGLE = 0.1
LARGEST_GRAM_ERROR = 0.05


@dataclass(frozen=True)
class Certificate:
    """Per component: one-step eigenvalue, residual ``|Lu - lambda u|``, gap to the neighbours, verdict.

    ``degenerate`` says that the eigenvalue repeats within ``tolerance``, so that only the span of its cluster has a
    meaning; the span itself is trusted. ``angle_bounds`` is residual / gap, a bound on the sine of the angle to the
    true eigenvector (or eigenspace) of the operator the residual was measured with.
    """

    eigenvalues: NDArray[np.float64]
    residuals: NDArray[np.float64]
    gaps: NDArray[np.float64]
    angle_bounds: NDArray[np.float64]
    orthonormality_error: float
    tolerance: float
    verdicts: tuple[str, ...]

    @property
    def converged(self) -> bool:
        """Whether no component is short of converged."""
        return NOT_CONVERGED not in self.verdicts

    def __str__(self) -> str:
        """A table, one line per component."""
        head = f"{'':>3} {'eigenvalue':>12} {'residual':>10} {'gap':>10}  verdict"
        rows = zip(self.eigenvalues, self.residuals, self.gaps, self.verdicts, strict=True)
        lines = [
            f"{i:>3} {value:>12.6g} {res:>10.1e} {gap:>10.2e}  {word}"
            for i, (value, res, gap, word) in enumerate(rows, 1)
        ]
        return "\n".join([head, *lines, f"orthonormality error {self.orthonormality_error:.1e}"])


def certify(
    eigenvalues: NDArray[np.float64],
    residuals: NDArray[np.float64],
    orthonormality_error: float,
    tolerance: float,
    next_eigenvalue: float | None = None,
) -> Certificate:
    """Judge components from ascending one-step eigenvalues and their residuals.

    Args:
        eigenvalues: (d,) ascending, in the one-step definition.
        residuals: (d,) ``|Lu - lambda u|`` in the data's norm.
        orthonormality_error: largest entry of ``|<u_j, u_k> - delta_jk|``.
        tolerance: relative width within which eigenvalues count as one.
        next_eigenvalue: the first one that is not among the components, where known.
    """
    known = eigenvalues if next_eigenvalue is None else np.append(eigenvalues, next_eigenvalue)
    around = np.concatenate([[-np.inf], known, [np.inf]])
    gaps = np.empty(len(eigenvalues))
    verdicts = [""] * len(eigenvalues)
    for cluster in group_degenerate(known, tolerance):
        below, above = around[cluster.start], around[cluster.stop + 1]
        for i in cluster:
            if i == len(eigenvalues):
                break
            gaps[i] = min(eigenvalues[i] - below, above - eigenvalues[i])
            # Written so that a NaN anywhere counts as not converged.
            near = np.isfinite(residuals[i]) and residuals[i] <= LARGEST_ANGLE * gaps[i]
            if near and orthonormality_error <= LARGEST_GRAM_ERROR:
                verdicts[i] = DEGENERATE if len(cluster) > 1 else TRUSTED
            else:
                verdicts[i] = NOT_CONVERGED
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = np.where(np.isinf(gaps), 0.0, residuals / gaps)
    return Certificate(eigenvalues, residuals, gaps, bounds, orthonormality_error, tolerance, tuple(verdicts))
