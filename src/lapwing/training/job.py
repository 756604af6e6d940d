"""One learning job: from data and configuration to a program, and from its final state to representations."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from numpy.typing import NDArray

from lapwing.batches.base import Batches
from lapwing.batches.exact import DENSE_STATES, dense_operator, exact_batches
from lapwing.batches.gaps import endless_gaps
from lapwing.batches.sampled import sampled_batches
from lapwing.encoders.lookup import LookupEncoder
from lapwing.encoders.own import OwnEncoder
from lapwing.encoders.registry import build_encoder, default_kind
from lapwing.encoders.rotated import RotatedEncoder
from lapwing.encoders.statistics import image_statistics, range_statistics
from lapwing.errors import LapwingError
from lapwing.health import RECORD, ProblemError
from lapwing.objectives import AlloState, dual_eigenvalues, output_order, permuted
from lapwing.objectives.base import Objective
from lapwing.representation import LaplacianRepresentation
from lapwing.spectral.clusters import DATA_TOLERANCE, LEARNED_TOLERANCE
from lapwing.spectral.noise import sampling_angles
from lapwing.spectral.operators import Operator, operator_from_trajectories
from lapwing.training.answer import Reading, bootstrap_errors, read_forms, unresolved_angles, with_canonical_signs
from lapwing.training.config import LearnConfig
from lapwing.training.engine import Inspect, NetworkCollapsedError, UnreadableSeedError, spread_over_devices
from lapwing.training.forms import Forms, Judge, PairJudge, TableJudge
from lapwing.training.health import collapsed, refuse_unlearnable, training_problems
from lapwing.training.step import Program, TrainState, make_program
from lapwing.trajectories.container import Trajectories

Data = Trajectories | Operator
"""What can be learned from: experience, or exact dynamics."""

Watch = Callable[[LaplacianRepresentation], dict[str, float]]
"""Numbers to report of an unfinished model, such as its cosine to a truth; they never influence learning."""

# Early stopping asks for more than trust: a sine of 0.01 is a cosine of 0.99995.
CONVERGED_ANGLE = 0.01


class Job:
    """Data made ready, batches chosen, encoders built; then a program to run and models to read from its end.

    Args:
        config: all hyper-parameters.
        data: experience, or exact dynamics.
        seeds: one or several, in one program.
        objective: in place of the one that the configuration describes.
        encoder: in place of one built.
    """

    def __init__(
        self, config: LearnConfig, data: Data, seeds: Sequence[int], objective: Objective | None, encoder: Any
    ) -> None:
        """Prepare everything but the compilation."""
        if not isinstance(data, (Trajectories, Operator)):
            raise LapwingError(
                f"cannot learn from {type(data).__name__}; "
                "give lw.collect(...) for experience or lw.operator(...) for exact dynamics"
            )
        self.config, self.seeds, self.data = config, _checked_seeds(seeds), data
        self.operator = _operator_of(data)
        refuse_unlearnable(data, self.operator, config.dim)
        self.width = self.config.dim + self._spare()
        self.kind = default_kind(self._shape()) if self.config.encoder == "auto" else self.config.encoder
        self.given = None if encoder is None else self._checked_encoder(encoder)
        self.custom = objective is not None
        self.base = objective if objective is not None else self.config.make_objective()
        self.objective = permuted(self.base, self.config.permute_every) if self.config.permute_every else self.base
        self.gaps = endless_gaps(config.discounts)
        small = self.operator is not None and self.operator.num_states <= DENSE_STATES
        self.matrix = dense_operator(self.operator, self.gaps) if self.operator is not None and small else None
        self.batches = self._batches()
        self.judge: Judge = self._judge()

    def program(self) -> tuple[Program, TrainState]:
        """The compiled program and its first state; with one seed there is no leading axis."""
        config = self.config
        rate = config.learning_rate
        schedule = optax.cosine_decay_schedule(rate, config.steps) if config.schedule == "cosine" else rate
        keys = [jax.random.split(jax.random.key(seed)) for seed in self.seeds]
        encoders = [self._encoder(key[0]) for key in keys]
        many = len(self.seeds) if len(self.seeds) > 1 else None
        program = make_program(encoders[0], self.batches, self.objective, optax.adam(schedule), many)
        if many is None:
            return program, program.init(encoders[0], keys[0][1])
        arrays = [eqx.filter(encoder, eqx.is_array) for encoder in encoders]
        stacked = jax.tree.map(lambda *leaves: jax.numpy.stack(leaves), *arrays)
        state = program.init(stacked, jax.numpy.stack([key[1] for key in keys]))
        return program, spread_over_devices(state, many)

    def one_seed(self, state: TrainState, number: int) -> TrainState:
        """The state of one seed."""
        if len(self.seeds) == 1:
            return state
        picked: TrainState = jax.tree.map(lambda leaf: leaf[number], state)
        return picked

    def inspector(self, program: Program, watch: Watch | None) -> Inspect:
        """What is looked at after each chunk: how far every seed has converged, and what ``watch`` says of it."""

        def inspect(state: TrainState) -> tuple[list[dict[str, float]], bool]:
            if not (self.config.stop_when_converged or watch is not None):
                return [], False
            by_seed: list[dict[str, float]] = []
            for number in range(len(self.seeds)):
                own = self.one_seed(state, number)
                encoder = program.encoder(own)
                try:
                    reading = self._read(*self._forms(encoder, own, quick=True))
                except ProblemError as error:
                    raise UnreadableSeedError(error.problem, number) from error
                by_seed.append({"angle": self._worst_angle(reading)})
                if watch is not None and len(reading.mu) >= self.config.dim:
                    by_seed[-1] |= watch(self._bare_model(encoder, reading))
            converged = max(seen["angle"] for seen in by_seed) < CONVERGED_ANGLE
            return by_seed, self.config.stop_when_converged and converged

        return inspect

    def model(
        self, encoder: Any, state: TrainState, metadata: dict[str, Any], multipliers: NDArray[Any] | None = None
    ) -> LaplacianRepresentation:
        """The finished representation of one seed; ``multipliers`` are the objective's own reading of eigenvalues."""
        forms, order = self._forms(encoder, state)
        sample = self.judge.sample(self._encode(encoder))
        reading = with_canonical_signs(self._read(forms, order), sample)
        dim = min(len(reading.mu), self.config.dim)
        history = metadata.get("history", ())
        problems = training_problems(forms, sample, state.objective, self.base, self.config, history, multipliers)
        health: dict[str, Any] = {}
        errors, noise = None, None
        if isinstance(self.data, Trajectories):
            health["transitions"] = self.data.num_transitions
            noise = self._sampling_angles(encoder, reading)[:dim]
            if self.judge.walks is not None:
                unseen = unresolved_angles(reading, self.judge.walks, self._tolerance())[:dim]
                health["unseen"] = np.fmin(unseen, 1.0).tolist()
                noise = np.hypot(noise, unseen)
            kept, mu = reading.matrix[:, :dim], reading.mu[:dim]
            errors = bootstrap_errors(self._encode(encoder), kept, mu, self.data, metadata["seed"])
        exact = isinstance(self.data, Operator) and self.data.exact
        config = {**self.config.as_dict(), "seed": metadata["seed"]}
        lost = collapsed(dim, self.config.dim) if dim < self.config.dim else None
        known = [lost, *(one for one in problems if one.name != lost.name)] if lost else problems
        health["problems"] = [one.as_dict() for one in known]
        model = LaplacianRepresentation(
            encoder=self._final_encoder(encoder, reading.matrix[:, :dim]),
            mu=reading.mu[:dim],
            dim=dim,
            exact=exact,
            residuals=reading.residuals[:dim],
            operator_values=reading.operator_values[: dim + 1],
            angles=reading.angles[:dim],
            data_angles=noise,
            dual_gaps=None if multipliers is None else self._dual_gaps(forms, multipliers)[:dim],
            mu_errors=errors,
            orthonormality_error=reading.orthonormality_error,
            next_mu=float(reading.mu[dim]) if len(reading.mu) > dim else None,
            metadata={
                **(self.operator.metadata if self.operator is not None else self.data.metadata),
                "method": "learn",
                "config": config,
                "objective": "given" if self.custom else self.config.objective,
                "batches": self.batches.kind,
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
        order = np.eye(self.width)[:, np.asarray(output_order(state.objective, self.width))]
        with np.errstate(over="ignore", invalid="ignore"):
            # What is not finite is refused by whoever reads the forms.
            return self.judge.forms(self._encode(encoder), quick).rotated(order), order

    def _read(self, forms: Forms, order: NDArray[np.float64]) -> Reading:
        reading = read_forms(forms, self.judge.gaps, self.config.refine == "ritz", self._tolerance())
        return reading._replace(matrix=order @ reading.matrix)

    def _dual_gaps(self, forms: Forms, multipliers: NDArray[Any]) -> NDArray[np.float64]:
        """How far the objective's reading is from the Rayleigh quotient of the same output, as one-step eigenvalues."""
        plain = read_forms(forms, self.judge.gaps, False, self._tolerance())
        known = np.isfinite(multipliers)
        gaps = np.abs(self.batches.gaps.slowness(np.where(known, multipliers, 0.0)) - (1.0 - plain.mu))
        return np.where(known, gaps, np.nan)

    def _tolerance(self) -> float:
        return LEARNED_TOLERANCE if isinstance(self.data, Operator) and self.data.exact else DATA_TOLERANCE

    def _sampling_angles(self, encoder: Any, reading: Reading) -> NDArray[np.float64]:
        assert isinstance(self.data, Trajectories)
        encode, observations = self._encode(encoder), self.data.observations
        if self.data.has_table:
            table = np.asarray(encode(np.asarray(observations)), dtype=np.float64) @ reading.matrix
            return sampling_angles(lambda rows: table[rows], 1.0 - reading.mu, self.data, self._tolerance())
        return sampling_angles(
            lambda rows: np.asarray(encode(np.asarray(observations[rows])), dtype=np.float64) @ reading.matrix,
            1.0 - reading.mu,
            self.data,
            self._tolerance(),
        )

    def _worst_angle(self, reading: Reading) -> float:
        """Sine of the largest angle that any wanted component may be off by; 1 where it may be anything."""
        dim = self.config.dim
        if len(reading.mu) < dim:
            return 1.0
        worst = float(np.max(reading.angles[:dim]))
        return min(worst, 1.0) if np.isfinite(worst) else 1.0

    def _bare_model(self, encoder: Any, reading: Reading) -> LaplacianRepresentation:
        dim = self.config.dim
        return LaplacianRepresentation(self._final_encoder(encoder, reading.matrix[:, :dim]), reading.mu[:dim], dim)

    def _final_encoder(self, encoder: Any, matrix: NDArray[np.float64]) -> Any:
        if self.kind != "table" or self.given is not None:
            return RotatedEncoder(encoder, matrix)
        assert self.operator is not None
        values = np.asarray(encoder.values, dtype=np.float64) @ matrix
        return LookupEncoder(self.operator.observations, values, self.operator.rho)

    def _encode(self, encoder: Any) -> Any:
        """From observations to the network's outputs; a table gives 0 for states that were never visited."""
        if self.kind != "table" or self.given is not None:
            return encoder.encode
        assert self.operator is not None
        values = np.asarray(encoder.values, dtype=np.float64)
        lookup = LookupEncoder(self.operator.observations, values, self.operator.rho)

        def encode(observations: NDArray[Any]) -> NDArray[np.float64]:
            numbers = lookup.numbers_of(observations)
            return np.where(numbers[:, None] >= 0, values[numbers], 0.0)

        return encode

    def _readings(self, state: TrainState, multipliers: NDArray[Any] | None = None) -> dict[str, list[float]]:
        """Eigenvalues of the training operator as the objective reads them: its raw duals, and without their lag."""
        objective = getattr(state.objective, "inner", state.objective)
        found = {} if multipliers is None else {"multiplier": np.asarray(multipliers, dtype=float).tolist()}
        if isinstance(objective, AlloState):
            # An objective of the user's own is taken to have the stop-gradient; it does not tell.
            raw = dual_eigenvalues(objective, self.custom or self.config.stop_gradient)
            found["dual"] = np.asarray(raw).astype(float).tolist()
        return found

    def _encoder(self, key: jax.Array) -> Any:
        if self.given is not None:
            return self.given
        if self.kind == "table":
            assert self.operator is not None
            return build_encoder("table", (), self.width, key, states=self.operator.num_states)
        options = {"hidden": self.config.hidden, "statistics": self._statistics()}
        return build_encoder(self.kind, self._shape(), self.width, key, **options)

    def _checked_encoder(self, encoder: Any) -> Any:
        """The user's own network as an encoder, tried on the shape of these observations."""
        ready = encoder if hasattr(encoder, "encode") else OwnEncoder.create(encoder, self._shape())
        if tuple(ready.observation_shape) != self._shape():
            raise LapwingError(
                f"your encoder takes observations of shape {tuple(ready.observation_shape)}, these are {self._shape()}"
            )
        if ready.dim != self.width:
            raise LapwingError(
                f"your encoder gives {ready.dim} components, but dim + spare is {self.width}; "
                "give it that many outputs, or pass spare=0"
            )
        return ready

    def _statistics(self) -> Any:
        observations = np.asarray((self.operator or self.data).observations)
        weights = None if self.operator is None else self.operator.rho
        if self.kind == "conv" and self.config.centre_pixels:
            return image_statistics(observations, weights)
        if self.kind == "fourier" and (observations.min() < -0.51 or observations.max() > 0.51):
            return range_statistics(observations)
        return None

    def _shape(self) -> tuple[int, ...]:
        return tuple((self.operator or self.data).observations.shape[1:])

    def _spare(self) -> int:
        if self.operator is None:
            return self.config.spare
        return min(self.config.spare, self.operator.num_states - self.config.dim)

    def _batches(self) -> Batches:
        config, gaps, wanted = self.config, self.gaps, self.config.batches
        if wanted == "auto":
            wanted = "exact" if self.matrix is not None or isinstance(self.data, Operator) else "unbiased"
        if wanted == "exact":
            if self.operator is None:
                raise LapwingError(
                    "exact batches need observations that repeat; these hardly do: use batches='unbiased'"
                )
            return exact_batches(self._with_ids(self.operator), gaps, self.matrix)
        if not isinstance(self.data, Trajectories):
            raise LapwingError("sampled batches need experience; collect some, or use batches='exact'")
        if self.kind == "table":
            raise LapwingError("a table is learned with exact batches; choose another encoder to sample")
        return sampled_batches(self.data, gaps, config.batch_size, unbiased=wanted == "unbiased")

    def _with_ids(self, operator: Operator) -> Operator:
        """A table encoder's observations are the states' numbers."""
        if self.kind != "table" or self.given is not None:
            return operator
        numbers = np.arange(operator.num_states, dtype=np.int32)
        return Operator(operator.matrix, operator.rho, numbers, operator.exact, operator.metadata)

    def _judge(self) -> Judge:
        if self.operator is not None:
            return TableJudge(self.operator, self.gaps, self.matrix)
        assert isinstance(self.data, Trajectories)
        return PairJudge(self.data, self.gaps)


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    try:
        numbers = [operator.index(seed) for seed in seeds]
    except TypeError:
        raise LapwingError(f"seeds must be a list of whole numbers, got {seeds!r}") from None
    if not numbers or min(numbers) < 0 or max(numbers) >= 1 << 32:
        raise LapwingError(f"give at least one seed, each from 0 to 2**32 - 1; got {numbers}")
    return numbers


def _operator_of(data: Data) -> Operator | None:
    if isinstance(data, Operator):
        return data
    return operator_from_trajectories(data) if data.has_table else None
