"""``certify``: which functions of somebody else are eigenfunctions, found out from data without a ground truth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import as_whole, shown
from lapwing.data.directedness import directedness
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.certificate import (
    DEGENERATE,
    LARGEST_ANGLE,
    NOT_CONVERGED,
    TRUSTED,
    residual_angles,
    ritz_angles,
)
from lapwing.diagnostics.noise import sampling_angles
from lapwing.diagnostics.problems import RECORD, Problem, directed
from lapwing.errors import ArgumentError, DataError, LapwingError
from lapwing.operators.clusters import DATA_TOLERANCE, LEARNED_TOLERANCE, group_degenerate
from lapwing.operators.lagged import ValuesAt, consistent_estimate
from lapwing.operators.lags import LagDistribution, geometric_lags
from lapwing.operators.operator import KNOWN_ROWS, Operator, operator_and_rows
from lapwing.representation import LaplacianRepresentation
from lapwing.training.batches import rows_of
from lapwing.training.fitting import with_constant
from lapwing.training.moments import MomentEstimator, Moments, TableMoments, WalkMoments
from lapwing.training.read_out import (
    LONG_LAGS,
    SpectralEstimate,
    bootstrap_errors,
    estimates_at_lags,
    spectral_estimate,
    sums_at_lags,
    with_canonical_signs,
)

MIXED = "mixed"

# Rows that functions are called with at once, and numbers of them that are held rather than computed again.
CALLED_ROWS = 1 << 14
HELD_NUMBERS = 1 << 27
# Functions that are held cost little, so that more walks than after learning are drawn; no more than there are steps.
WALKS = 1 << 20
# An imaginary part below this share of the largest value is rounding.
IMAGINARY_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class CertifiedFunctions:
    """Which of some functions are eigenfunctions, as they are and after Rayleigh-Ritz; ``print`` shows a table.

    The verdict on a function is ``trusted``, ``degenerate`` (in the eigenspace of a repeated eigenvalue), ``mixed`` (a
    combination of several eigenfunctions that the functions span), ``too few data`` or ``not converged`` (not an
    eigenfunction, and no combination of the functions near it is one).

    Attributes:
        eigenvalues: (d,) one minus the Rayleigh quotient of each function, in the one-step definition.
        error_bars: (d,) their standard errors; 0 for exact dynamics.
        residuals: (d,) ``|f(P)u - f(mu)u|`` of each function divided by its norm, less what noise accounts for.
        norms: (d,) ``E[u^2]^(1/2)`` of each function.
        components: (d,) the component of ``model`` that each function is nearest to, counted from 0.
        angles: (d,) sine of the angle between the function and that component, or its eigenspace.
        verdicts: (d,) words.
        model: the components that Rayleigh-Ritz finds in the span of a constant and the functions, with eigenvalues,
            error bars and a certificate of its own.
    """

    eigenvalues: NDArray[np.float64]
    error_bars: NDArray[np.float64]
    residuals: NDArray[np.float64]
    norms: NDArray[np.float64]
    components: NDArray[np.int64]
    angles: NDArray[np.float64]
    verdicts: tuple[str, ...]
    model: LaplacianRepresentation

    @property
    def all_trusted(self) -> bool:
        """Whether every function is an eigenfunction, or one of a repeated eigenvalue."""
        return all(word in (TRUSTED, DEGENERATE) for word in self.verdicts)

    def rows(self) -> list[dict[str, Any]]:
        """One row per function, as JSON types; ``component`` is counted from 1."""
        return [
            {
                "function": number + 1,
                "eigenvalue": float(self.eigenvalues[number]),
                "error_bar": float(self.error_bars[number]),
                "component": int(self.components[number]) + 1,
                "angle": float(self.angles[number]),
                "residual": float(self.residuals[number]) if np.isfinite(self.residuals[number]) else None,
                "norm": float(self.norms[number]),
                "verdict": word,
            }
            for number, word in enumerate(self.verdicts)
        ]

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON types: the functions, and the components after Rayleigh-Ritz."""
        found = self.model.certificate()
        bars = self.model.error_bars_in("one_step")
        components = [
            {"component": i + 1, "eigenvalue": float(value), "error_bar": float(bars[i]), "verdict": found.verdicts[i]}
            for i, value in enumerate(found.eigenvalues)
        ]
        return {"functions": self.rows(), "components": components, "all_trusted": self.all_trusted}

    def __str__(self) -> str:
        """The functions as they are, then the certificate of the components."""
        head = f"{'':>3} {'eigenvalue':>12} {'+-':>9} {'component':>9} {'angle':>9} {'residual':>9}  verdict"
        lines = [
            f"{row['function']:>3} {row['eigenvalue']:>12.6g} {row['error_bar']:>9.1e} {row['component']:>9} "
            f"{row['angle']:>9.1e} {'-' if row['residual'] is None else format(row['residual'], '.1e'):>9}  "
            f"{row['verdict']}"
            for row in self.rows()
        ]
        return "\n".join(["as given", head, *lines, "", "after Rayleigh-Ritz", str(self.model.certificate())])


def certify(
    functions: Any,
    data: "Trajectories | Operator",
    *,
    discounts: "Sequence[float]" = (0.9, 0.99, 0.999),
    seed: int = 0,
) -> CertifiedFunctions:
    """Find out which functions are eigenfunctions of the Laplacian, and what eigenfunctions they span.

    They may come from any package: the eigenvalues, error bars and verdicts are computed from the data alone, in the
    way in which :func:`lapwing.learn` certifies its own. Give data that the functions were not fitted to. A constant
    is added to the functions, since it is always an eigenfunction. That none is missing between those that were found
    cannot be seen from a span; compare with more functions, or with :func:`lapwing.solve`.

    Args:
        functions: from observations (n, ...) to (n, d) real values, or an object with such a method ``transform``: a
            model of deeptime, a transformer of scikit-learn, a representation of this package; or a fitted estimator of
            kooplearn, whose right eigenfunctions (``eig``) are taken. Observations of several keys are given as a
            dictionary.
        data: experience, or an exact operator.
        discounts: of the mixture of geometric lags with which residuals are measured, as for :func:`lapwing.learn`;
            of directed dynamics only short ones, such as ``(0.1,)``, are right.
        seed: of the pairs of states that are drawn where observations do not repeat, and of the error bars.

    Returns:
        Verdicts on each function, and the representation that Rayleigh-Ritz makes of them.

    Raises:
        DataError: functions that are zero, not finite or of another shape on the data; the message names them.

    Example:
        >>> import lapwing as lw
        >>> truth, operator = lw.solve("FourRooms", dim=5), lw.operator("FourRooms")
        >>> rotated = lambda x: truth.transform(x)[:, 1:3] @ np.array([[0.8, 0.6], [-0.6, 0.8]])
        >>> lw.certify(lambda x: truth.transform(x)[:, 1:3], operator).verdicts
        ('trusted', 'trusted')
        >>> certify(rotated, operator).verdicts, certify(rotated, operator).model.certificate().verdicts
        (('mixed', 'mixed'), ('trusted', 'trusted', 'trusted'))
    """
    if not isinstance(data, (Trajectories, Operator)):
        raise ArgumentError(f"the data must be Trajectories or an Operator, got {shown(data)}")
    whole_seed = as_whole(seed)
    if whole_seed is None or whole_seed < 0:
        raise ArgumentError(f"seed must be a whole number of at least 0, got {shown(seed)}")
    lags = geometric_lags(discounts)
    data = data.packed() if isinstance(data, Trajectories) else data
    given = _Functions(functions, data.metadata)
    values_at = given.values_by_row(data.observations)
    estimator, outputs_at = _estimator(values_at, data, lags, whole_seed)
    exact = isinstance(data, Operator) and data.exact
    tolerance = LEARNED_TOLERANCE if exact else DATA_TOLERANCE
    moments = estimator.moments(lambda rows: with_constant(outputs_at(rows)))
    _refuse_zero(moments)
    unseen = _unseen_squares(values_at, estimator, moments, data)
    # What noise accounts for says nothing about the functions.
    moments = moments._replace(square=moments.square - unseen)
    complete = isinstance(estimator, TableMoments) and given.dim + 1 >= estimator.operator.num_states
    found = spectral_estimate(moments, estimator.lags, True, tolerance, complete=complete)
    estimate = with_canonical_signs(found, with_constant(estimator.sample(outputs_at)))
    # Where eigenfunctions may be missing, the next eigenvalue may lie anywhere up to the largest.
    end = [] if complete else [estimator.lags.largest_eigenvalue]
    known = np.append(estimate.operator_values, end)
    norms, mu, residuals = _as_given(moments, estimator.lags)
    record: dict[str, Any] = {"problems": []}
    errors = noise = None
    own_errors, turned = np.zeros(len(mu)), np.zeros(len(estimate.mu))
    if isinstance(data, Trajectories):
        record["transitions"] = data.num_transitions
        if not _rows_are_known(estimator):
            estimate, errors, problems = _with_eigenvalues(values_at, estimate, data, discounts, whole_seed)
            record["problems"] = [problem.as_dict() for problem in problems]
            turned = sampling_angles(_components(values_at, estimate), 1.0 - estimate.mu, data, tolerance)
            own_errors = bootstrap_errors(lambda rows: values_at(rows) / norms, mu, data, whole_seed)
        hidden = _hidden_angles(estimate, unseen, known, tolerance)
        record["unseen"] = np.fmin(hidden, 1.0).tolist()
        noise = np.hypot(turned, hidden)
    model = LaplacianRepresentation(
        encoder=FunctionsEncoder(given, estimate.matrix),
        mu=estimate.mu,
        dim=len(estimate.mu),
        exact=exact,
        residuals=estimate.residuals,
        operator_values=known,
        angles=estimate.angles,
        data_angles=noise,
        mu_errors=errors,
        orthonormality_error=estimate.orthonormality_error,
        metadata={**data.metadata, "method": "certify", RECORD: record},
    )
    components, angles = _nearest(moments, estimate, norms, tolerance)
    words = model.certificate().verdicts
    # What noise in the data may have turned is not mixed.
    mixed = angles > np.maximum(LARGEST_ANGLE, 2.0 * turned[components])
    verdicts = tuple(MIXED if mixed[j] and words[k] != NOT_CONVERGED else words[k] for j, k in enumerate(components))
    return CertifiedFunctions(1.0 - mu, own_errors, residuals, norms, components, angles, verdicts, model)


class _Functions:
    """Somebody else's functions, called with few rows at a time and checked; complex ones of real values are real."""

    def __init__(self, functions: Any, metadata: Mapping[str, Any]) -> None:
        call = getattr(functions, "transform", functions)
        if not callable(call) and callable(getattr(functions, "eig", None)):
            call = lambda rows: functions.eig(eval_right_on=rows)[1]  # noqa: E731
        if isinstance(functions, type) or not callable(call):
            raise ArgumentError(
                "functions are a function from observations to (n, d) values, or an object with a method transform or "
                f"eig; got {shown(functions)}"
            )
        self._call: Callable[[Any], Any] = call
        self._layout = RowFormat.from_metadata(metadata)
        self.dim = 0

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """(n, d) values."""
        blocks = [observations[begin : begin + CALLED_ROWS] for begin in range(0, len(observations), CALLED_ROWS)]
        return np.concatenate([self._checked(block) for block in blocks]) if blocks else np.zeros((0, self.dim))

    def _checked(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        try:
            given = np.asarray(self._call(rows if self._layout is None else self._layout.unpack(rows)))
        except LapwingError:
            raise
        except Exception as error:  # code of somebody else raises anything
            raise DataError(f"the functions fail on observations of shape {rows.shape}: {shown(error)}") from error
        given = given[:, None] if given.ndim == 1 and len(given) == len(rows) else given
        if given.ndim != 2 or len(given) != len(rows) or not given.shape[1] or given.dtype.kind not in "biufc":
            raise DataError(
                f"the functions must give numbers of shape ({len(rows)}, d) for so many observations, got "
                f"{given.dtype} of shape {given.shape}"
            )
        if self.dim and given.shape[1] != self.dim:
            raise DataError(
                f"the functions give {self.dim} values for some observations and {given.shape[1]} for others"
            )
        self.dim = given.shape[1]
        if np.iscomplexobj(given):
            rotating = np.flatnonzero(np.abs(given.imag).max(axis=0) > IMAGINARY_SHARE * np.abs(given).max(axis=0)) + 1
            if len(rotating):
                raise DataError(
                    f"function {', '.join(map(str, rotating))} of {self.dim} is complex: what rotates has no real "
                    "eigenvalue; give real and imaginary parts, or ask a reversible estimator for fewer components"
                )
            given = given.real
        values = given.astype(np.float64)
        finite = np.isfinite(values).all(axis=0)
        if not finite.all():
            raise DataError(f"function {int(np.argmin(finite)) + 1} gives NaN or infinity on some observations")
        return values

    def values_by_row(self, observations: NDArray[Any]) -> ValuesAt:
        """Values by row of the observations: computed once where they can be held."""
        self(np.asarray(observations[:1]))
        if len(observations) * self.dim > HELD_NUMBERS:
            return lambda rows: self(rows_of(observations, rows))
        held = np.empty((len(observations), self.dim))
        for begin in range(0, len(observations), CALLED_ROWS):
            held[begin : begin + CALLED_ROWS] = self(np.asarray(observations[begin : begin + CALLED_ROWS]))
        return lambda rows: held[rows]


class FunctionsEncoder:
    """A constant and somebody else's functions, times a matrix; it cannot be saved, because code cannot.

    Args:
        functions: from observations (n, ...) to (n, d) values.
        matrix: (1 + d, dim), with a first row for the constant function 1.
    """

    kind: ClassVar[str] = "functions"

    def __init__(self, functions: Callable[[NDArray[Any]], NDArray[np.float64]], matrix: NDArray[np.float64]) -> None:
        """Keep both."""
        self.functions, self.matrix = functions, matrix

    @property
    def dim(self) -> int:
        """How many components the matrix leaves."""
        return int(self.matrix.shape[1])

    def encode(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """Components.

        Args:
            observations: (n, ...) as the functions take them.

        Returns:
            (n, dim) values.
        """
        return with_constant(self.functions(observations)) @ self.matrix

    def config(self) -> dict[str, Any]:
        """Refuse to be saved.

        Returns:
            Nothing: there is always an error.
        """
        raise ArgumentError(
            "functions of somebody else cannot be saved with a representation; save them in their own way, and certify "
            "them again"
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The matrix.

        Returns:
            Arrays by name.
        """
        return {"matrix": self.matrix}


def _estimator(
    values_at: ValuesAt, data: Trajectories | Operator, lags: LagDistribution, seed: int
) -> tuple[MomentEstimator, ValuesAt]:
    """The moment estimator of the data, and the functions by the rows that it asks for."""
    if isinstance(data, Operator):
        return TableMoments(data, lags), values_at
    if not data.has_table:
        return WalkMoments(data, lags, min(WALKS, data.num_transitions), seed=seed), values_at
    operator, states = operator_and_rows(data)
    return TableMoments(operator, lags), lambda rows: values_at(states[rows])


def _rows_are_known(estimator: MomentEstimator) -> bool:
    return isinstance(estimator, TableMoments) and bool(estimator.operator.metadata.get(KNOWN_ROWS))


def _unseen_squares(
    values_at: ValuesAt, estimator: MomentEstimator, moments: Moments, data: Trajectories | Operator
) -> NDArray[np.float64]:
    """(1 + d, 1 + d) noise in ``<f(P)u_j, f(P)u_k>``: residuals whose squares are no larger go unseen.

    Of counts it is a quarter of that of half the data less the other half, since both are noisy, each twice as much as
    all. Of walks it is two standard errors of a mean of products of deviations, as in :func:`unresolved_angles`.
    """
    nothing = np.zeros_like(moments.gram)
    if estimator.walks is not None:
        deviations = moments.gram - moments.cross @ np.linalg.pinv(moments.gram) @ moments.cross
        return 2.0 * (deviations + deviations.T) / 2.0 / np.sqrt(estimator.walks)
    if isinstance(data, Operator) or _rows_are_known(estimator) or data.num_episodes < 2:
        return nothing
    assert isinstance(estimator, TableMoments)
    moved, seen = [], np.ones(len(data.observations), dtype=bool)
    for first in (0, 1):
        half, rows = operator_and_rows(data.take(np.arange(first, data.num_episodes, 2)))
        moved.append(np.zeros((len(seen), len(nothing))))
        moved[-1][rows] = TableMoments(half, estimator.lags).apply(with_constant(values_at(rows)))
        seen &= np.isin(np.arange(len(seen)), rows)
    # The operator's states are the rows of the table that have a transition, in their order.
    states = np.flatnonzero(np.bincount(np.asarray(data.ids), minlength=len(seen)) > 0)
    change = (moved[0] - moved[1])[states] * seen[states, None]
    return np.asarray(change.T @ (estimator.operator.rho[:, None] * change) / 4.0)


def _hidden_angles(
    estimate: SpectralEstimate, unseen: NDArray[np.float64], known: NDArray[np.float64], tolerance: float
) -> NDArray[np.float64]:
    """(m,) sines of the angles that residuals that go unseen would be."""
    hidden = np.sqrt(np.maximum(np.diag(estimate.matrix.T @ unseen @ estimate.matrix), 0.0))
    if not hidden.any():
        return hidden
    outside = residual_angles(1.0 - estimate.mu, hidden, tolerance, operator_eigenvalues=known)[1]
    return np.fmin(outside, ritz_angles(estimate.operator_values, hidden, tolerance))


def _refuse_zero(moments: Moments) -> None:
    zero = np.flatnonzero(~(np.diag(moments.gram)[1:] > 0))
    if len(zero):
        raise DataError(f"function {zero[0] + 1} is zero on all the data; leave it out")


def _as_given(
    moments: Moments, lags: LagDistribution
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """(d,) norms, one-step eigenvalues mu and residuals of the functions themselves."""
    gram, cross, square, middle = (np.diag(moment)[1:] for moment in moments)
    quotients = cross / gram
    residuals = np.sqrt(np.maximum((square - 2.0 * quotients * cross + quotients**2 * middle) / gram, 0.0))
    return np.sqrt(gram), 1.0 - lags.one_minus_mu(1.0 - quotients), residuals


def _components(values_at: ValuesAt, estimate: SpectralEstimate) -> ValuesAt:
    return lambda rows: with_constant(values_at(rows)) @ estimate.matrix


def _with_eigenvalues(
    values_at: ValuesAt, estimate: SpectralEstimate, data: Trajectories, discounts: Sequence[float], seed: int
) -> tuple[SpectralEstimate, NDArray[np.float64], list[Problem]]:
    """The components with eigenvalues from all the data, where that is better, their standard errors, and problems."""
    components_at, problems = _components(values_at, estimate), []
    if not data.has_table:
        flow = directedness(data)
        lagged = None if flow.is_directed else sums_at_lags(components_at, data)
        best = None if lagged is None else consistent_estimate(estimates_at_lags(*lagged, True))
        if best is not None and np.isfinite(best.mu).all():
            return estimate._replace(mu=np.minimum.accumulate(best.mu)), best.errors, []
        if flow.is_directed and max(discounts) > LONG_LAGS:
            problems.append(directed(flow.share, discounts))
    return estimate, bootstrap_errors(components_at, estimate.mu, data, seed), problems


def _nearest(
    moments: Moments, estimate: SpectralEstimate, norms: NDArray[np.float64], tolerance: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(d,) the component that each function is nearest to, and the sine of its angle to that one's eigenspace."""
    shares = ((estimate.matrix.T @ moments.gram)[:, 1:] / norms) ** 2
    clusters = group_degenerate(1.0 - estimate.mu, tolerance)
    by_cluster = np.array([shares[list(cluster)].sum(axis=0) for cluster in clusters])
    best = np.argmax(by_cluster, axis=0)
    inside = np.array([[k in clusters[number] for number in best] for k in range(len(shares))])
    components = np.argmax(np.where(inside, shares, -1.0), axis=0)
    return components, np.sqrt(np.clip(1.0 - by_cluster.max(axis=0), 0.0, 1.0))
