"""The spectrum as rows: each eigenvalue as learned, exact, by counting and as the duals read it, and its verdict."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.diagnostics.certificate import (
    DEGENERATE,
    LARGEST_ANGLE,
    LARGEST_GRAM_ERROR,
    NOT_CONVERGED,
    TOO_FEW_DATA,
    TRUSTED,
    Certificate,
)
from lapwing.errors import LapwingError
from lapwing.operators.clusters import group_degenerate
from lapwing.operators.lags import GapDistribution, endless_gaps, gaps_inside_episodes
from lapwing.report.sources import Run
from lapwing.report.truth import Truth
from lapwing.storage.records import is_number

# More are not believed on the word of a file: each takes memory.
MAX_EPISODES = 10_000_000
MAX_LENGTH = 10_000_000

# A sign beside the colour, so that a verdict is told by shape as well.
SIGNS = {TRUSTED: "✓", DEGENERATE: "≡", TOO_FEW_DATA: "?", NOT_CONVERGED: "✗"}


@dataclass(frozen=True)
class Component:
    """One line of the spectrum; None is what is not known.

    Attributes:
        number: from 1.
        eigenvalue: in the run's definition.
        error: two standard errors of it.
        exact: the true eigenvalue.
        counting: the eigenvalue by counting the same data.
        dual: the objective's own reading, mapped from the training operator.
        similarity: cosine of the principal angle to the true eigenspace.
        companions: numbers of the components whose eigenvalue counts as the same, itself included.
        residual: ``|Lu - lambda u|``.
        verdict: in one or two words.
        words: what the verdict means here.
    """

    number: int
    eigenvalue: float
    error: float | None
    exact: float | None
    counting: float | None
    dual: float | None
    similarity: float | None
    companions: tuple[int, ...]
    residual: float | None
    verdict: str
    words: str

    @property
    def sign(self) -> str:
        """The verdict as one character."""
        return SIGNS.get(self.verdict, "·")

    @property
    def slug(self) -> str:
        """The verdict as a name for styles."""
        return self.verdict.replace(" ", "-")


def components_of(run: Run, truth: Truth | None) -> tuple[list[Component], list[str]]:
    """One line per component, and remarks on what is left out."""
    model = run.model
    definition, dim = model.definition, model.dim
    duals, remark = dual_reading(run)
    certificate = _certificate(run)
    columns = {
        "eigenvalue": model.eigenvalues,
        "error": None if model.mu_errors is None else 2.0 * model.error_bars_in(definition),
        "exact": None if truth is None else definition.from_mu(truth.mu),
        "counting": _counting(run),
        "dual": None if duals is None else definition.from_mu(1.0 - duals[:dim]),
        "similarity": None if truth is None else truth.score.get("subspace_cosines"),
        "residual": None if certificate is None else certificate.residuals,
    }
    clusters = truth.clusters if truth is not None else _clusters(run)
    rows = []
    for i in range(dim):
        companions = tuple(j + 1 for j in next((c for c in clusters if i in c), [i]))
        verdict, words = _verdict(certificate, i, companions)
        numbers = {name: _entry(column, i) for name, column in columns.items()}
        rows.append(Component(number=i + 1, companions=companions, verdict=verdict, words=words, **numbers))  # type: ignore[arg-type]
    return rows, [] if remark is None else [remark]


def dual_reading(run: Run) -> tuple[NDArray[np.float64] | None, str | None]:
    """One-step eigenvalues ``1 - mu`` as the duals read them, or None and why they cannot be shown.

    Raw readings are eigenvalues of the training operator; the gaps it was made of lead back to the one-step one.
    """
    readings = run.model.metadata.get("readings")
    raw = (readings.get("dual") or readings.get("multiplier")) if isinstance(readings, dict) else None
    if raw and not (isinstance(raw, list) and all(is_number(value) for value in raw)):
        return None, "The dual reading is left out: it does not consist of numbers."
    if not raw:
        return None, "No dual reading: the objective keeps none." if run.method == "learned" else None
    try:
        gaps = _training_gaps(run)
        if gaps is None:
            return None, (
                "The dual reading is left out: it belongs to an operator of sampled pairs, and this run does not keep "
                "the episode lengths that lead from it to these eigenvalues."
            )
        return gaps.slowness(np.asarray(raw, dtype=np.float64)), None
    except (LapwingError, TypeError, ValueError, KeyError) as error:
        return None, f"The dual reading is left out: the run does not say what it was trained with ({error})."


def _training_gaps(run: Run) -> GapDistribution | None:
    config = run.model.metadata["config"]
    endless = endless_gaps(config["discounts"])
    if run.model.metadata.get("batches") == "exact":
        return endless
    known = ((run.audit or {}).get("episode_lengths") or {}).get("lengths")
    if known is None:
        return None
    counts = run.audit["episode_lengths"]["counts"]  # type: ignore[index]
    if sum(counts) > MAX_EPISODES or max(known, default=0) > MAX_LENGTH:
        raise LapwingError(f"it has more than {MAX_EPISODES:,} episodes, or of more than {MAX_LENGTH:,} transitions")
    lengths = np.repeat(np.asarray(known, dtype=np.int64), counts)
    return gaps_inside_episodes(endless, lengths[lengths > 0], unbiased=config["batches"] != "sampled")


def _counting(run: Run) -> NDArray[np.float64] | None:
    found = (run.scores or {}).get("baseline_eigenvalues")
    if not found or found.get("definition") != str(run.model.definition):
        return None
    return np.asarray(found["values"], dtype=np.float64)


def _certificate(run: Run) -> Certificate | None:
    try:
        return run.model.certificate()
    except LapwingError:
        return None


def _clusters(run: Run) -> list[list[int]]:
    return [list(cluster) for cluster in group_degenerate(1.0 - run.model.mu[: run.model.dim], run.model.tolerance)]


def _verdict(certificate: Certificate | None, i: int, companions: tuple[int, ...]) -> tuple[str, str]:
    """The verdict, and what it means for this component."""
    if certificate is None:
        return "not judged", "this representation holds no residuals to judge it by"
    verdict = certificate.verdicts[i]
    angle, noise = certificate.angle_bounds[i], certificate.data_angles[i]
    if verdict == TRUSTED:
        words = f"within a sine of {angle:.1g} of an eigenvector"
        return verdict, words + (f"; noise in the data may turn it by {noise:.1g}" if noise > 0 else "")
    if verdict == DEGENERATE:
        others = ", ".join(str(number) for number in companions) if len(companions) > 1 else "its cluster"
        return verdict, f"its eigenvalue repeats: only the span of {others} means something, and that is trusted"
    if verdict == TOO_FEW_DATA:
        return verdict, f"noise in the data may turn it by a sine of {noise:.1g}: collect more"
    if not certificate.orthonormality_error <= LARGEST_GRAM_ERROR:
        return verdict, f"components are not orthonormal (off by {certificate.orthonormality_error:.1g})"
    if not angle <= LARGEST_ANGLE:
        size = f"a sine of {angle:.1g}" if angle < 1 else "anything"
        return verdict, f"may be off by {size}: train longer"
    return verdict, "out of order: train longer"


def _entry(column: Any, i: int) -> float | None:
    """One number of a column that may be missing or too short."""
    if column is None or i >= len(column) or column[i] is None or not np.isfinite(column[i]):
        return None
    return float(column[i])
