"""From the state of a program to representations: what each seed has learned so far, and the finished models."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.noise import sampling_angles
from lapwing.diagnostics.problems import RECORD, ProblemError
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.networks import RotatedEncoder
from lapwing.objectives import Details
from lapwing.operators.clusters import DATA_TOLERANCE, LEARNED_TOLERANCE
from lapwing.operators.operator import Operator
from lapwing.representation import LaplacianRepresentation
from lapwing.training.answer import Reading, bootstrap_errors, read_forms, unresolved_angles, with_canonical_signs
from lapwing.training.engine import Inspect, NetworkCollapsedError, UnreadableSeedError
from lapwing.training.forms import Forms, Judge, PairJudge, TableJudge
from lapwing.training.health import collapsed, training_problems
from lapwing.training.job import Job
from lapwing.training.step import Program, TrainState

Watch = Callable[[LaplacianRepresentation], dict[str, float]]
"""Numbers to report of an unfinished model, such as its cosine to a truth; they never influence learning."""

# Early stopping asks for more than trust: a sine of 0.01 is a cosine of 0.99995.
CONVERGED_ANGLE = 0.01


class Reader:
    """Reads what a job's networks have learned: how far they are after each chunk, and representations at the end."""

    def __init__(self, job: Job) -> None:
        """Make ready what judges outputs on the job's data."""
        self.job = job
        self.judge: Judge = _judge_of(job)
        # Whether the outputs are as many as there are states, so that no component is missing.
        self.complete = job.operator is not None and job.width >= job.operator.num_states

    def inspector(self, program: Program, watch: Watch | None) -> Inspect:
        """What is looked at after each chunk: how far every seed has converged, and what ``watch`` says of it."""

        def inspect(state: TrainState) -> tuple[list[dict[str, float]], bool]:
            if not (self.job.config.stop_when_converged or watch is not None):
                return [], False
            by_seed: list[dict[str, float]] = []
            for number in range(len(self.job.seeds)):
                own = self.job.one_seed(state, number)
                encoder = program.encoder(own)
                try:
                    reading = self._read(*self._forms(encoder, own, quick=True))
                except ProblemError as error:
                    raise UnreadableSeedError(error.problem, number) from error
                by_seed.append({"angle": self._worst_angle(reading)})
                if watch is not None and len(reading.mu) >= self.job.config.dim:
                    by_seed[-1] |= watch(self._bare_model(encoder, reading))
            converged = max(seen["angle"] for seen in by_seed) < CONVERGED_ANGLE
            return by_seed, self.job.config.stop_when_converged and converged

        return inspect

    def model(
        self, encoder: Any, state: TrainState, metadata: dict[str, Any], multipliers: NDArray[Any] | None = None
    ) -> LaplacianRepresentation:
        """The finished representation of one seed; ``multipliers`` are the objective's own reading of eigenvalues."""
        forms, order = self._forms(encoder, state)
        sample = self.judge.sample(self._encode(encoder))
        reading = with_canonical_signs(self._read(forms, order), sample)
        dim = min(len(reading.mu), self.job.config.dim)
        history = metadata.get("history", ())
        job = self.job
        problems = training_problems(forms, sample, self._details(state), job.config, history, multipliers)
        health: dict[str, Any] = {}
        errors, noise = None, None
        if isinstance(self.job.data, Trajectories):
            health["transitions"] = self.job.data.num_transitions
            noise = self._sampling_angles(encoder, reading)[:dim]
            if self.judge.walks is not None:
                unseen = unresolved_angles(reading, self.judge.walks, self._tolerance())[:dim]
                health["unseen"] = np.fmin(unseen, 1.0).tolist()
                noise = np.hypot(noise, unseen)
            kept, mu = reading.matrix[:, :dim], reading.mu[:dim]
            errors = bootstrap_errors(self._encode(encoder), kept, mu, self.job.data, metadata["seed"])
        exact = isinstance(self.job.data, Operator) and self.job.data.exact
        config = {**self.job.config.as_dict(), "seed": metadata["seed"]}
        lost = collapsed(dim, self.job.config.dim) if dim < self.job.config.dim else None
        known = [lost, *(one for one in problems if one.name != lost.name)] if lost else problems
        health["problems"] = [one.as_dict() for one in known]
        model = LaplacianRepresentation(
            encoder=self._final_encoder(encoder, reading.matrix[:, :dim]),
            mu=reading.mu[:dim],
            dim=dim,
            exact=exact,
            residuals=reading.residuals[:dim],
            operator_values=self._operator_values(reading, dim),
            angles=reading.angles[:dim],
            data_angles=noise,
            dual_gaps=None if multipliers is None else self._dual_gaps(forms, multipliers)[:dim],
            mu_errors=errors,
            orthonormality_error=reading.orthonormality_error,
            next_mu=float(reading.mu[dim]) if len(reading.mu) > dim else None,
            metadata={
                **(self.job.operator.metadata if self.job.operator is not None else self.job.data.metadata),
                "method": "learn",
                "config": config,
                "objective": "given" if self.job.custom else self.job.config.objective,
                "batches": self.job.batches.kind,
                "encoder": encoder.kind,
                "readings": self._readings(state, multipliers),
                RECORD: health,
                **metadata,
            },
        )
        if lost:
            raise NetworkCollapsedError(lost, model)
        return model

    def _forms(self, encoder: Any, state: TrainState, quick: bool = False) -> tuple[Forms, NDArray[np.float64]]:
        """Forms of the outputs in the objective's order, that of eigenvalues, and the matrix that orders them."""
        given = self._details(state).order
        order = np.eye(self.job.width)
        order = order if given is None else order[:, np.asarray(given)]
        with np.errstate(over="ignore", invalid="ignore"):
            # What is not finite is refused by whoever reads the forms.
            return self.judge.forms(self._encode(encoder), quick).rotated(order), order

    def _read(self, forms: Forms, order: NDArray[np.float64]) -> Reading:
        refine = self.job.config.refine == "ritz"
        reading = read_forms(forms, self.judge.gaps, refine, self._tolerance(), complete=self.complete)
        return reading._replace(matrix=order @ reading.matrix)

    def _operator_values(self, reading: Reading, dim: int) -> NDArray[np.float64]:
        """Those of the components, and the next one or, where that is not known, how far it may be."""
        known = reading.operator_values
        if len(known) == dim and not self.complete:
            known = np.append(known, self.judge.gaps.end_of_spectrum)
        return known[: dim + 1]

    def _dual_gaps(self, forms: Forms, multipliers: NDArray[Any]) -> NDArray[np.float64]:
        """How far the objective's reading is from the Rayleigh quotient of the same output, as one-step eigenvalues."""
        plain = read_forms(forms, self.judge.gaps, False, self._tolerance())
        known = np.isfinite(multipliers)
        gaps = np.abs(self.job.batches.gaps.slowness(np.where(known, multipliers, 0.0)) - (1.0 - plain.mu))
        return np.where(known, gaps, np.nan)

    def _tolerance(self) -> float:
        return LEARNED_TOLERANCE if isinstance(self.job.data, Operator) and self.job.data.exact else DATA_TOLERANCE

    def _sampling_angles(self, encoder: Any, reading: Reading) -> NDArray[np.float64]:
        assert isinstance(self.job.data, Trajectories)
        encode, observations = self._encode(encoder), self.job.data.observations
        if self.job.data.has_table:
            table = np.asarray(encode(np.asarray(observations)), dtype=np.float64) @ reading.matrix
            return sampling_angles(lambda rows: table[rows], 1.0 - reading.mu, self.job.data, self._tolerance())
        return sampling_angles(
            lambda rows: np.asarray(encode(np.asarray(observations[rows])), dtype=np.float64) @ reading.matrix,
            1.0 - reading.mu,
            self.job.data,
            self._tolerance(),
        )

    def _worst_angle(self, reading: Reading) -> float:
        """Sine of the largest angle that any wanted component may be off by; 1 where it may be anything."""
        dim = self.job.config.dim
        if len(reading.mu) < dim:
            return 1.0
        worst = float(np.max(reading.angles[:dim]))
        return min(worst, 1.0) if np.isfinite(worst) else 1.0

    def _bare_model(self, encoder: Any, reading: Reading) -> LaplacianRepresentation:
        dim = self.job.config.dim
        return LaplacianRepresentation(self._final_encoder(encoder, reading.matrix[:, :dim]), reading.mu[:dim], dim)

    def _final_encoder(self, encoder: Any, matrix: NDArray[np.float64]) -> Any:
        if self.job.kind != "table" or self.job.given is not None:
            return RotatedEncoder(encoder, matrix)
        assert self.job.operator is not None
        values = np.asarray(encoder.module.values, dtype=np.float64) @ matrix
        return LookupEncoder(self.job.operator.observations, values, self.job.operator.rho)

    def _encode(self, encoder: Any) -> Any:
        """From observations to the network's outputs; a table gives 0 for states that were never visited."""
        if self.job.kind != "table" or self.job.given is not None:
            return encoder.encode
        assert self.job.operator is not None
        values = np.asarray(encoder.module.values, dtype=np.float64)
        lookup = LookupEncoder(self.job.operator.observations, values, self.job.operator.rho)

        def encode(observations: NDArray[Any]) -> NDArray[np.float64]:
            numbers = lookup.numbers_of(observations)
            return np.where(numbers[:, None] >= 0, values[numbers], 0.0)

        return encode

    def _readings(self, state: TrainState, multipliers: NDArray[Any] | None = None) -> dict[str, list[float]]:
        """Eigenvalues of the training operator as the objective reads them: its raw duals, and without their lag."""
        found: dict[str, Any] = {} if multipliers is None else {"multiplier": multipliers}
        found |= self._details(state).eigenvalues
        return {name: np.asarray(values).astype(float).tolist() for name, values in found.items()}

    def _details(self, state: TrainState) -> Details:
        return self.job.objective.details(state.objective)


def _judge_of(job: Job) -> Judge:
    if job.operator is not None:
        return TableJudge(job.operator, job.gaps, job.matrix)
    assert isinstance(job.data, Trajectories)
    return PairJudge(job.data, job.gaps)
