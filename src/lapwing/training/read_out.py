"""The read-out: from trained networks to representations, with eigenvalues, residuals, error bars and problems."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.certificate import LARGEST_ANGLE, residual_angles, ritz_angles
from lapwing.diagnostics.noise import sampling_angles, step_angles, step_variances
from lapwing.diagnostics.problems import (
    RECORD,
    Problem,
    ProblemError,
    collapsed,
    directed,
    objective_problems,
    output_problems,
    unreadable,
)
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.networks import RotatedEncoder
from lapwing.operators.clusters import DATA_TOLERANCE, LEARNED_TOLERANCE, column_signs
from lapwing.operators.eigensolver import smallest_eigenpairs
from lapwing.operators.lagged import (
    EigenvalueEstimate,
    LaggedMoments,
    LaggedSums,
    ValuesAt,
    consistent_estimate,
    estimate_eigenvalues,
    lag_pair,
    lagged_sums,
)
from lapwing.operators.lags import LagDistribution
from lapwing.operators.operator import KNOWN_ROWS, Operator, operator_from_trajectories
from lapwing.operators.ritz import ritz_from_forms
from lapwing.representation import LaplacianRepresentation
from lapwing.training.batches import rows_of
from lapwing.training.fitting import Targets, with_constant
from lapwing.training.loop import UnreadableSeedError
from lapwing.training.moments import QUICK_WALKS, MomentEstimator, Moments, TableMoments, WalkMoments
from lapwing.training.smooth_functions import AnyTargets, SmoothTargets
from lapwing.training.state import TrainState, one_seed
from lapwing.training.task import Task

# States at which components are fitted to what was solved, at the end and after each chunk of steps.
FITTED_ROWS = 1 << 18
QUICK_ROWS = 1 << 15

# Bytes that one number of a component at each state takes of the memory for observations, that of its copies included.
BYTES_PER_NUMBER = 8
# Encoding images takes long: after each chunk of steps fewer are looked at.
IMAGE_SHARE = 8

JACKKNIFE_BLOCKS = 40
# Standard errors beyond which two estimates of an eigenvalue are not the same.
APART = 3.0
RESAMPLES = 200
BOOTSTRAP_TRANSITIONS = 1 << 20
BOOTSTRAP_CHUNK = (1 << 15) - 1
RESAMPLE_BLOCK = 20
FEWEST_PARTS = 50

# Early stopping asks for more than trust: a sine of 0.01 is a cosine of 0.99995.
CONVERGED_ANGLE = 0.01

# Above this discount lags are long enough for rotating components to cancel.
LONG_LAGS = 0.5

Monitor = Callable[[LaplacianRepresentation], dict[str, float]]
"""Numbers to report of an unfinished model, such as its cosine to a ground truth; they never influence learning."""


class NetworkCollapsedError(ProblemError):
    """The network's outputs depend on each other: they span fewer directions than components were asked for.

    ``models`` holds the representation of as many components as there are, one per seed.
    """

    def __init__(self, problem: Problem, model: Any) -> None:
        """Keep what is left."""
        super().__init__(problem)
        self.models = [model]


class SpectralEstimate(NamedTuple):
    """Estimates from the moments of components ``u @ matrix``.

    Attributes:
        matrix: (d, m) from the network's outputs to components of mean square one.
        mu: (m,) eigenvalues of the one-step operator.
        operator_values: (m,) ``1 - f(mu)``, the scale on which residuals and gaps are measured.
        residuals: (m,) ``|f(P)u - f(mu)u|``.
        angles: (m,) estimated sines of the angles to true eigenvectors.
        orthonormality_error: largest ``|<u_j, u_k> - delta_jk|``.
    """

    matrix: NDArray[np.float64]
    mu: NDArray[np.float64]
    operator_values: NDArray[np.float64]
    residuals: NDArray[np.float64]
    angles: NDArray[np.float64]
    orthonormality_error: float


class ReadOut:
    """Reads what the networks of a task have learned: how far they are after each chunk, and models at the end.

    Args:
        task: what is learned.
    """

    def __init__(self, task: Task) -> None:
        """Prepare the moment estimator of the task's data."""
        self.task = task
        self.estimator: MomentEstimator
        if task.operator is not None:
            self.estimator = TableMoments(task.operator, task.lags, task.matrix)
        else:
            assert isinstance(task.data, Trajectories)
            self.estimator = WalkMoments(task.data, task.lags, quick_walks=QUICK_WALKS // self._share)
        # What the network of each seed was fitted to last; empty where it was trained by the objective alone.
        self.targets: list[AnyTargets] = [] if task.targets is None else [task.targets] * len(task.seeds)
        # Whether the outputs are as many as there are states, so that no component is missing.
        self.complete = task.operator is not None and task.width >= task.operator.num_states
        exact = isinstance(task.data, Operator) and task.data.exact
        self.exact, self.tolerance = exact, LEARNED_TOLERANCE if exact else DATA_TOLERANCE

    def inspect(self, state: TrainState, monitor: Monitor | None) -> tuple[list[dict[str, float]], bool]:
        """How far every seed has converged after a chunk of steps.

        Args:
            state: of one seed or several.
            monitor: adds numbers of its own.

        Returns:
            For each seed the largest ``angle`` and the monitor's numbers; whether learning may stop.
        """
        config, seeds = self.task.config, len(self.task.seeds)
        if self.task.targets is not None:
            own = [one_seed(state, number, seeds) for number in range(seeds)]
            return [self.fitted(one, self.task.targets, monitor)[0] for one in own], False
        # Where rounds of refitting follow, there is no early stop.
        if monitor is None and (self.task.round_steps or not config.stop_when_converged):
            return [], False
        by_seed: list[dict[str, float]] = []
        for number in range(seeds):
            own = one_seed(state, number, seeds)
            encoder = own.encoder
            try:
                estimate = self._estimate(*self._moments(self._outputs_at(encoder), own, quick=True))
            except ProblemError as error:
                raise UnreadableSeedError(error.problem, number) from error
            enough = len(estimate.mu) >= config.dim
            worst = float(np.max(estimate.angles[: config.dim])) if enough else 1.0
            by_seed.append({"angle": min(worst, 1.0) if np.isfinite(worst) else 1.0})
            if monitor is not None and enough:
                components = self._final_encoder(encoder, estimate.matrix[:, : config.dim])
                by_seed[-1] |= monitor(LaplacianRepresentation(components, estimate.mu[: config.dim], config.dim))
        converged = max(seen["angle"] for seen in by_seed) < CONVERGED_ANGLE
        return by_seed, config.stop_when_converged and converged and not self.task.round_steps

    def fitted(self, state: TrainState, targets: AnyTargets, monitor: Monitor | None) -> list[dict[str, float]]:
        """How far the network of one seed is from what it is fitted to.

        Args:
            state: of that seed.
            targets: what it is fitted to.
            monitor: adds numbers of its own.

        Returns:
            For the one seed the largest ``angle`` and the monitor's numbers.
        """
        dim = self.task.config.dim
        matrix, sines = self._fit(self._outputs_at(state.encoder), targets, QUICK_ROWS // self._share)
        numbers = {"angle": float(sines[:dim].max())}
        if monitor is not None:
            mu = np.append(1.0, targets.mu)[:dim]
            numbers |= monitor(LaplacianRepresentation(self._final_encoder(state.encoder, matrix[:, :dim]), mu, dim))
        return [numbers]

    def model(
        self, state: TrainState, eigenvalues: NDArray[Any], metadata: dict[str, Any], number: int = 0
    ) -> LaplacianRepresentation:
        """The finished representation of one seed.

        Args:
            state: of that seed.
            eigenvalues: (d,) the objective's own estimate, of the training operator.
            metadata: ``seed``, ``history`` and the like.
            number: of the seed among all, counted from 0.

        Returns:
            The model.

        Raises:
            NetworkCollapsedError: if there are fewer independent outputs than components asked for.
        """
        task, config, encoder = self.task, self.task.config, state.encoder
        # All that follows looks at the same outputs, which are computed once.
        outputs_at = self._outputs_at(encoder, at_all_rows=True)
        details = state.objective.details(state.objective_state)
        targets = self.targets[number] if self.targets else None
        # What was fitted is compared with what it was fitted to; moments only say whether the outputs are sound.
        moments, order = self._moments(outputs_at, state, quick=targets is not None)
        sample = self.estimator.sample(outputs_at)
        found = (
            self._estimate(moments, order) if targets is None else self._fitted_estimate(outputs_at, moments, targets)
        )
        estimate = with_canonical_signs(found, sample)
        dim = min(len(estimate.mu), config.dim)
        health: dict[str, Any] = {}
        errors, noise = None, None
        if isinstance(task.data, Trajectories):
            health["transitions"] = task.data.num_transitions
            values_at = self._values_at(encoder, outputs_at, estimate.matrix)
            estimate, errors = self._with_eigenvalues(values_at, estimate, targets, sample, metadata["seed"])
            dim = min(len(estimate.mu), config.dim)
            errors, noise = errors[:dim], self._noise(values_at, estimate, targets)[:dim]
            if self.estimator.walks is not None and targets is None:
                unseen = unresolved_angles(estimate, self.estimator.walks, self.tolerance)[:dim]
                health["unseen"] = np.fmin(unseen, 1.0).tolist()
                noise = np.hypot(noise, unseen)
        options = {**config.objective_options, "learning_rate": config.learning_rate}
        settings = {name: value for name, value in options.items() if isinstance(value, (int, float))}
        problems = objective_problems(eigenvalues, details.at_bounds, config.dim, settings)
        refined = config.refine == "ritz"
        problems += output_problems(moments.gram, sample, config.dim, refined, metadata.get("history", ()), settings)
        # What was solved comes from single steps, and is right whatever the lags were.
        flow = task.directedness if targets is None else None
        if flow is not None and flow.is_directed and max(config.discounts) > LONG_LAGS:
            problems.append(directed(flow.share, config.discounts))
        lost = collapsed(dim, config.dim) if dim < config.dim else None
        known = [lost, *(one for one in problems if one.name != lost.name)] if lost else problems
        health["problems"] = [one.as_dict() for one in known]
        estimates = {"multiplier": eigenvalues, **details.eigenvalues}
        model = LaplacianRepresentation(
            encoder=self._final_encoder(encoder, estimate.matrix[:, :dim]),
            mu=estimate.mu[:dim],
            dim=dim,
            exact=self.exact,
            residuals=estimate.residuals[:dim],
            operator_values=self._operator_values(estimate, dim),
            angles=estimate.angles[:dim],
            data_angles=noise,
            dual_gaps=self._distances(moments, eigenvalues)[:dim],
            mu_errors=errors,
            orthonormality_error=estimate.orthonormality_error,
            next_mu=float(estimate.mu[dim]) if len(estimate.mu) > dim else None,
            metadata={
                **(task.operator or task.data).metadata,
                "method": "learn",
                "config": {**config.as_dict(), "seed": metadata["seed"]},
                "objective": config.objective,
                "batches": task.source.kind,
                "encoder": encoder.kind,
                "eigenvalue_estimates": {name: np.asarray(x).astype(float).tolist() for name, x in estimates.items()},
                RECORD: health,
                **metadata,
            },
        )
        if lost:
            raise NetworkCollapsedError(lost, model)
        return model

    @property
    def _share(self) -> int:
        """By how many fewer states are looked at after each chunk of steps, because they are images."""
        return IMAGE_SHARE if self.task.sees_images else 1

    def _moments(
        self, outputs_at: ValuesAt, state: TrainState, quick: bool = False
    ) -> tuple[Moments, NDArray[np.float64]]:
        """Moments of the outputs in the objective's order, that of eigenvalues, and the matrix that orders them."""
        given = state.objective.details(state.objective_state).order
        order = np.eye(self.task.width + self._constant)
        order = order if given is None else order[:, np.asarray(given)]
        with np.errstate(over="ignore", invalid="ignore"):
            # What is not finite is refused where the moments are read out.
            return self.estimator.moments(outputs_at, quick).rotated(order), order

    def _estimate(self, moments: Moments, order: NDArray[np.float64]) -> SpectralEstimate:
        refine = self.task.config.refine == "ritz"
        found = spectral_estimate(moments, self.estimator.lags, refine, self.tolerance, complete=self.complete)
        return found._replace(matrix=order @ found.matrix)

    @property
    def _constant(self) -> int:
        """How many constant functions stand before the network's outputs."""
        return int(bool(self.targets))

    def _fit(
        self, outputs_at: ValuesAt, targets: AnyTargets, most: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(1 + d, 1 + m) from a constant and the outputs to components nearest to the targets; (1 + m,) their sines."""
        rho = None if self.task.operator is None else self.task.operator.rho
        count = targets.num_rows
        rows = np.arange(count) if rho is not None else np.arange(0, count, -(-count // most))
        outputs, wanted = outputs_at(rows), targets.at(rows)
        outputs = outputs if self._constant else with_constant(outputs)
        return fitted_matrix(
            outputs, with_constant(wanted), np.full(len(rows), 1.0 / len(rows)) if rho is None else rho
        )

    def _fitted_estimate(self, outputs_at: ValuesAt, moments: Moments, targets: AnyTargets) -> SpectralEstimate:
        matrix, sines = self._fit(outputs_at, targets, FITTED_ROWS)
        found = spectral_estimate(moments.rotated(matrix), self.estimator.lags, False, self.tolerance)
        mu = np.minimum.accumulate(np.append(1.0, targets.mu))
        return found._replace(matrix=matrix @ found.matrix, mu=mu, angles=sines)

    def _solved_at(self, targets: AnyTargets) -> ValuesAt:
        """A constant and what was solved, by row of the data's observations; 0 at states without a transition."""
        assert isinstance(self.task.data, Trajectories)
        if self.task.operator is None:
            return lambda rows: with_constant(targets.at(rows))
        assert isinstance(targets, Targets)
        table = with_constant(targets.tables[0])
        numbers = self._lookup(table).numbers_of(np.asarray(self.task.data.observations))
        return lambda rows: np.where(numbers[rows, None] >= 0, table[numbers[rows]], 0.0)

    def _with_eigenvalues(
        self,
        values_at: ValuesAt,
        estimate: SpectralEstimate,
        targets: AnyTargets | None,
        sample: NDArray[np.float64],
        seed: int,
    ) -> tuple[SpectralEstimate, NDArray[np.float64]]:
        """The estimate with eigenvalues from all the data, where that is better, and their standard errors."""
        data, operator = self.task.data, self.task.operator
        assert isinstance(data, Trajectories)
        solved_at = values_at if targets is None else self._solved_at(targets)
        # Smooth functions say more of eigenvalues than the network that is fitted to them: it is never as smooth.
        lagged = self._lagged_sums(solved_at if isinstance(targets, SmoothTargets) else values_at)
        if lagged is not None:
            several = self._eigenvalue_estimates(*lagged, None if targets is None else solved_at)
            if targets is not None and disagree(several[0], several[1], self.task.config.dim):
                # Noise in the observations changes what single steps say of each component, and so their order.
                estimate = with_canonical_signs(lag_rotated(estimate, lagged[0].moments()), sample)
            found = consistent_estimate(several)
            count = min(len(estimate.mu), self.task.config.dim)
            if np.isfinite(found.mu[:count]).all():
                # What is lost in noise lies beyond the last that is not.
                mu = np.minimum.accumulate(np.where(np.isfinite(found.mu), found.mu, -1.0))[: len(estimate.mu)]
                values = estimate.operator_values
                values = values if targets is None else self.estimator.lags.eigenvalues(1.0 - mu)
                return estimate._replace(mu=mu, operator_values=values), found.errors
        if operator is not None and operator.metadata.get(KNOWN_ROWS):
            return estimate, np.zeros(len(estimate.mu))
        if operator is not None and operator.visits is not None and data.num_episodes >= FEWEST_PARTS:
            variances = np.diag(step_variances(operator, self._at_states(solved_at)))
            return estimate, np.hypot(np.sqrt(variances), self._half_sample_change(estimate))
        return estimate, bootstrap_errors(solved_at, estimate.mu, data, seed)

    def _half_sample_change(self, estimate: SpectralEstimate) -> NDArray[np.float64]:
        """(m,) how far eigenvalues move from half of the data to all: noisy flows lower them, by a share like 1/N."""
        data, count = self.task.data, len(estimate.mu)
        assert isinstance(data, Trajectories)
        halves = [data.take(np.arange(first, data.num_episodes, 2)) for first in (0, 1)]
        operators = [operator_from_trajectories(half, self.task.config.rho) for half in halves]
        found = [smallest_eigenpairs(one.symmetrised(), min(count, one.num_states)).values for one in operators]
        mean = np.mean([np.pad(values, (0, count - len(values)), mode="edge") for values in found], axis=0)
        return np.asarray(mean - (1.0 - estimate.mu))

    def _noise(
        self, values_at: ValuesAt, estimate: SpectralEstimate, targets: AnyTargets | None
    ) -> NDArray[np.float64]:
        """Sines by which noise in the data turns components: of what was solved, where something was."""
        data, operator = self.task.data, self.task.operator
        assert isinstance(data, Trajectories)
        if operator is not None and operator.metadata.get(KNOWN_ROWS):
            return np.zeros(len(estimate.mu))
        # The network's own roughness would count as noise.
        solved_at = values_at if targets is None else self._solved_at(targets)
        eigenvalues = 1.0 - (estimate.mu if targets is None else np.append(1.0, targets.mu))
        if operator is not None and operator.visits is not None:
            return step_angles(operator, self._at_states(solved_at), eigenvalues, self.tolerance)
        return sampling_angles(solved_at, eigenvalues, data, self.tolerance)

    def _at_states(self, values_at: ValuesAt) -> NDArray[np.float64]:
        """(n, m) values at the operator's states, in its order."""
        assert isinstance(self.task.data, Trajectories)
        assert self.task.operator is not None
        numbers = self._lookup(self.task.operator.rho[:, None]).numbers_of(np.asarray(self.task.data.observations))
        rows = np.empty(self.task.operator.num_states, dtype=np.int64)
        rows[numbers[numbers >= 0]] = np.flatnonzero(numbers >= 0)
        return values_at(rows)

    def _lagged_sums(self, values_at: ValuesAt) -> tuple[LaggedSums, list[int]] | None:
        """Sums at lags 1, 2, 4, ... over all the data, where nothing repeats and steps reverse; None elsewhere."""
        task, config = self.task, self.task.config
        if task.directedness is None or not config.lagged_eigenvalues or config.refine != "ritz":
            return None
        assert isinstance(task.data, Trajectories)
        return None if task.directedness.is_directed else sums_at_lags(values_at, task.data)

    def _eigenvalue_estimates(
        self, sums: LaggedSums, lags: list[int], solved_at: ValuesAt | None
    ) -> list[EigenvalueEstimate]:
        """Eigenvalues at one step from what was solved, where something was, and from components at pairs of lags."""
        assert isinstance(self.task.data, Trajectories)
        constant = bool(self._constant)
        several = estimates_at_lags(sums, lags, constant)
        if solved_at is not None:
            one_step = lagged_sums(solved_at, self.task.data, (1,), JACKKNIFE_BLOCKS)
            several.insert(0, estimate_eigenvalues(one_step, (0, 1), constant))
        return several

    def _operator_values(self, estimate: SpectralEstimate, dim: int) -> NDArray[np.float64]:
        """Those of the components, and the next one or, where that is not known, the largest that it may be."""
        known = estimate.operator_values
        if len(known) == dim and not self.complete:
            known = np.append(known, self.estimator.lags.largest_eigenvalue)
        return known[: dim + 1]

    def _distances(self, moments: Moments, eigenvalues: NDArray[Any]) -> NDArray[np.float64]:
        """Distance of the objective's own estimates from the Rayleigh quotients of the outputs, as one-step values."""
        plain = spectral_estimate(moments, self.estimator.lags, False, self.tolerance)
        if self._constant:
            # The objective's estimates are of other outputs than these, unless it is the fit's own.
            return np.full(len(plain.mu), np.nan)
        known = np.isfinite(eigenvalues)
        own = self.task.training_lags.one_minus_mu(np.where(known, eigenvalues, 0.0))
        return np.where(known, np.abs(own - (1.0 - plain.mu)), np.nan)

    def _final_encoder(self, encoder: Any, matrix: NDArray[np.float64]) -> Any:
        if not self.task.is_table:
            return RotatedEncoder(encoder, matrix)
        return self._lookup(np.asarray(encoder.module.values, dtype=np.float64) @ matrix)

    def _outputs_at(self, encoder: Any, at_all_rows: bool = False) -> ValuesAt:
        """The network's outputs by row of the observations, behind a constant if there is one.

        Those at all rows are computed once, if that is asked for and they are not too many to hold.
        """
        if self.task.is_table:
            values = np.asarray(encoder.module.values, dtype=np.float64)
            return lambda rows: values[rows]
        observations = (self.task.operator or self.task.data).observations
        constant = with_constant if self._constant else lambda values: np.asarray(values, dtype=np.float64)
        held = int(self.task.config.memory * (1 << 30)) // BYTES_PER_NUMBER
        if at_all_rows and len(observations) * self.task.width <= held:
            outputs = encoder.encode(observations)
            return lambda rows: constant(outputs[rows])
        return lambda rows: constant(encoder.encode(rows_of(observations, rows)))

    def _values_at(self, encoder: Any, outputs_at: ValuesAt, matrix: NDArray[np.float64]) -> ValuesAt:
        """Components by row of the data's observations; 0 at those that a table's operator does not have."""
        assert isinstance(self.task.data, Trajectories)
        if self.task.operator is None:
            return lambda rows: outputs_at(rows) @ matrix
        observations = np.asarray(self.task.data.observations)
        if self.task.is_table:
            numbers = self._lookup(matrix).numbers_of(observations)
            table = np.where(numbers[:, None] >= 0, outputs_at(numbers) @ matrix, 0.0)
        else:
            outputs = encoder.encode(observations)
            table = (with_constant(outputs) if self._constant else outputs) @ matrix
        return lambda rows: table[rows]

    def _lookup(self, values: NDArray[np.float64]) -> LookupEncoder:
        assert self.task.operator is not None
        return LookupEncoder(self.task.operator.observations, values, self.task.operator.rho)


def sums_at_lags(values_at: ValuesAt, data: Trajectories) -> tuple[LaggedSums, list[int]] | None:
    """Sums at lags 1, 2, 4, ... over all the data.

    Args:
        values_at: from rows of ``data.observations`` to (n, m) values.
        data: the experience, of dynamics that are not directed.

    Returns:
        The sums and their lags; None where episodes are too short for two lags.
    """
    longest = lag_pair(data.lengths)[0]
    if not longest:
        return None
    lags = [1 << power for power in range(longest.bit_length() + 1)]
    return lagged_sums(values_at, data, lags, JACKKNIFE_BLOCKS), lags


def estimates_at_lags(sums: LaggedSums, lags: list[int], constant: bool) -> list[EigenvalueEstimate]:
    """Eigenvalues at each pair of neighbouring lags.

    Args:
        sums: from :func:`sums_at_lags`.
        lags: theirs.
        constant: whether the first function is 1.

    Returns:
        Estimates, from the shortest lags to the longest.
    """
    pairs = [(number, number + 1) for number in range(len(lags) - 1)]
    return [estimate_eigenvalues(sums.only(pair), (lags[pair[0]], lags[pair[1]]), constant) for pair in pairs]


def spectral_estimate(
    moments: Moments, lags: LagDistribution, refine: bool, tolerance: float, *, complete: bool = False
) -> SpectralEstimate:
    """Eigenvalues by the Rayleigh quotient of the training operator, mapped back to mu.

    Args:
        moments: of the network's outputs.
        lags: of the operator that the moments were measured with.
        refine: rotate inside the span (Rayleigh-Ritz); else only scale each component to mean square one.
        tolerance: relative width within which eigenvalues count as one.
        complete: whether there are no more components than these, so that none can be missing.

    Returns:
        The estimate.

    Raises:
        ProblemError: if the moments are not finite, or the outputs are zero.
    """
    if (problem := unreadable(moments.gram, moments.cross)) is not None:
        raise ProblemError(problem)
    norms = np.diag(moments.gram)
    if refine:
        matrix = ritz_from_forms(moments.gram, moments.cross).rotation
    else:
        matrix = np.diag(1.0 / np.sqrt(np.where(norms > 0, norms, 1.0)))
    turned = moments.rotated(matrix)
    quotients = np.diag(turned.cross)
    squares = np.diag(turned.square) - 2.0 * quotients**2 + quotients**2 * np.diag(turned.middle)
    error = float(np.abs(turned.gram - np.eye(len(quotients))).max())
    residuals = np.sqrt(np.maximum(squares, 0.0))
    values = merge_inseparable(1.0 - quotients, residuals) if refine else 1.0 - quotients
    mu = 1.0 - lags.one_minus_mu(values)
    known = values if complete else np.append(values, lags.largest_eigenvalue)
    angles = residual_angles(1.0 - mu, residuals, tolerance, operator_eigenvalues=known)[1]
    angles = np.fmin(angles, ritz_angles(values, residuals, tolerance)) if refine else angles
    return SpectralEstimate(matrix, mu, values, residuals, angles, error)


def fitted_matrix(
    values: NDArray[np.float64], wanted: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The combinations of functions that are nearest to wanted ones, of mean square one.

    Args:
        values: (n, d) of the functions.
        wanted: (n, m).
        weights: (n,) of the rows, with sum 1.

    Returns:
        (d, m) matrix, and the (m,) sines of the angles between ``values @ matrix`` and ``wanted``.
    """
    weighted = values.T * weights
    gram, cross = weighted @ values, weighted @ wanted
    matrix = np.linalg.lstsq(gram, cross, rcond=1e-12)[0]
    norms = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", matrix, gram, matrix), 1e-300))
    wanted_norms = np.sqrt(np.maximum(weights @ wanted**2, 1e-300))
    cosines = np.einsum("ij,ij->j", matrix, cross) / (norms * wanted_norms)
    return matrix / norms, np.sqrt(np.clip(1.0 - cosines**2, 0.0, 1.0))


def disagree(first: EigenvalueEstimate, second: EigenvalueEstimate, dim: int) -> bool:
    """Whether two estimates of the first eigenvalues differ by more than noise.

    Args:
        first: one.
        second: another, of the same components.
        dim: how many to compare.

    Returns:
        True if any two are more than :data:`APART` standard errors apart.
    """
    distances = np.abs(first.mu - second.mu)[:dim]
    return bool((distances > APART * np.hypot(first.errors, second.errors)[:dim]).any())


def lag_rotated(estimate: SpectralEstimate, moments: LaggedMoments) -> SpectralEstimate:
    """Components rotated by ``C(2) v = w C(1) v``, which noise that is new at every step does not enter.

    Args:
        estimate: components of which the first is constant.
        moments: of theirs, at the lags 1 and 2 first of all.

    Returns:
        The estimate with another matrix, of the components that are not lost in noise first.
    """
    centred = moments.without_constant()
    found = ritz_from_forms(centred.products[0], centred.products[1], cut=1e-3)
    kept = found.rotation / np.sqrt(np.diag(found.rotation.T @ centred.grams[0] @ found.rotation))
    means = ((moments.products[0] + moments.products[0].T) / 2.0)[0, 1:]
    turned = estimate.matrix[:, 1:] @ kept
    turned[0] -= (means @ kept) * estimate.matrix[0, 0]
    count = kept.shape[1]
    shares = kept**2 / (kept**2).sum(axis=0)
    angles = np.append(estimate.angles[0], np.sqrt(estimate.angles[1:] ** 2 @ shares))
    return estimate._replace(
        matrix=np.column_stack([estimate.matrix[:, 0], turned]),
        mu=estimate.mu[: 1 + count],
        operator_values=estimate.operator_values[: 1 + count],
        residuals=estimate.residuals[: 1 + count],
        angles=angles,
    )


def merge_inseparable(values: NDArray[np.float64], residuals: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ascending Ritz values, those of neighbours closer than their own errors replaced by their mean.

    Repeated eigenvalues come out of training slightly apart. A Ritz value is off by at most about residual x sine of
    the angle; where two are no further apart than that, they may be one, and count as one. Components that have not
    converged themselves stay as they are.

    Args:
        values: (m,) ascending eigenvalues ``1 - f(mu)`` of the whole span, oversampling included.
        residuals: (m,) of each.

    Returns:
        (m,) values.
    """
    distance = values[-1] - values
    sines = np.divide(residuals, distance, out=np.full_like(values, np.inf), where=distance > 0)
    settled = sines <= LARGEST_ANGLE
    errors = np.multiply(sines, residuals, out=np.zeros_like(values), where=settled)
    joined = settled[:-1] & settled[1:] & (np.diff(values) <= errors[:-1] + errors[1:])
    group = np.concatenate([[0], np.cumsum(~joined)])
    return (np.bincount(group, weights=values) / np.bincount(group))[group]


def unresolved_angles(estimate: SpectralEstimate, walks: int, tolerance: float) -> NDArray[np.float64]:
    """Sines that residuals averaged over finitely many walks cannot resolve.

    A residual's square is a mean of products of two deviations, each of variance ``1 - c^2`` for a quotient c; two
    standard errors of it may be hidden, however small the estimate came out.

    Args:
        estimate: from the walks.
        walks: how many.
        tolerance: relative width within which eigenvalues count as one.

    Returns:
        (m,) sines.
    """
    quotients = 1.0 - estimate.operator_values
    hidden = np.sqrt(2.0 * np.maximum(1.0 - quotients**2, 0.0) / np.sqrt(walks))
    return ritz_angles(estimate.operator_values, hidden, tolerance)


def with_canonical_signs(estimate: SpectralEstimate, sample: NDArray[np.float64]) -> SpectralEstimate:
    """The same components, each turned so that its entry of largest magnitude in the sample is positive.

    Args:
        estimate: of the components.
        sample: (n, d) the network's outputs.

    Returns:
        The estimate with columns of the matrix negated where needed.
    """
    return estimate._replace(matrix=estimate.matrix * column_signs(sample @ estimate.matrix))


def bootstrap_errors(
    values_at: ValuesAt, mu: NDArray[np.float64], data: Trajectories, seed: int
) -> NDArray[np.float64]:
    """Standard errors of mu from resampling whole episodes, or long parts of them where there are few.

    To first order a change of the data moves an eigenvalue by its own quadratic form, so the components are held fixed
    and their one-step energies per episode resampled; the relative error carries over to ``1 - mu``.

    Args:
        values_at: from rows of ``data.observations`` to (n, m) components.
        mu: (m,) their eigenvalues.
        data: the experience.
        seed: of the resampling.

    Returns:
        (m,) standard errors.
    """
    energies, norms, transitions = _sums_over_parts(values_at, data)
    rng = np.random.default_rng(seed)
    samples = []
    for _ in range(0, RESAMPLES, RESAMPLE_BLOCK):
        weights = rng.poisson(1.0, size=(RESAMPLE_BLOCK, len(energies))).astype(np.float64)
        samples.append((weights @ energies) / np.maximum(weights @ norms, 1e-300))
    spread = np.concatenate(samples).std(axis=0, ddof=1)
    # Fewer steps were looked at than there are: their noise shrinks with the square root of the number.
    spread *= np.sqrt(transitions / data.num_transitions)
    centre = energies.sum(axis=0) / np.maximum(norms.sum(axis=0), 1e-300)
    one_minus_mu = np.maximum(1.0 - mu, 0.0)
    return np.where(centre > 1e-12, spread * one_minus_mu / np.maximum(centre, 1e-12), 0.0)


def _sums_over_parts(values_at: ValuesAt, data: Trajectories) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """(parts, m) one-step energies and squared norms of each episode, up to about a million steps; how many those are.

    Where there are few episodes, long ones are cut into parts: one alone could not be resampled.
    """
    count = min(int(np.searchsorted(data.offsets[1:], BOOTSTRAP_TRANSITIONS)) + 1, data.num_episodes)
    offsets = np.array(data.offsets[: count + 1])
    # Of a very long last episode no more than the rest may have.
    offsets[-1] = min(offsets[-1], offsets[-2] + BOOTSTRAP_TRANSITIONS)
    parts = offsets[:-1]
    if count < FEWEST_PARTS:
        parts = np.union1d(parts, np.arange(0, offsets[-1], max(1, offsets[-1] // FEWEST_PARTS)))
    bounds = np.append(parts, offsets[-1])
    sums: list[NDArray[np.float64]] = []
    first = 0
    while first < len(parts):
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + BOOTSTRAP_CHUNK, side="right")) - 1)
        sums.append(_sums_of(lambda positions: values_at(data.rows(positions)), offsets, bounds[first : last + 1]))
        first = last
    energies, norms = np.concatenate(sums, axis=1)
    return energies, norms, int(offsets[-1]) - count


def _sums_of(values_at: ValuesAt, offsets: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.float64]:
    """(2, parts, m) energies and squared norms of the parts between the bounds."""
    begin, end = int(bounds[0]), int(bounds[-1])
    # One state more than the parts have: a step leads out of a part that is cut inside an episode.
    values = values_at(np.minimum(np.arange(begin, end + 1), offsets[-1] - 1))
    before, after = values[:-1], values[1:]
    steps = 0.5 * (after - before) ** 2
    squares = 0.5 * (after**2 + before**2)
    # The last state of each episode stands for no step, but keeps its row.
    ends = offsets[1:] - 1
    closing = ends[np.searchsorted(ends, begin) : np.searchsorted(ends, end)] - begin
    steps[closing] = 0.0
    squares[closing] = 0.0
    starts = bounds[:-1] - begin
    return np.stack([np.add.reduceat(steps, starts), np.add.reduceat(squares, starts)])
