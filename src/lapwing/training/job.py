"""One learning job: data made ready, batches and networks chosen, and the program that trains them."""

import operator
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

from lapwing.data.trajectories import Trajectories
from lapwing.encoders.networks import build_encoder, default_kind, encoder_statistics, own_encoder
from lapwing.errors import LapwingError
from lapwing.objectives import permuted
from lapwing.objectives.base import Objective
from lapwing.operators.lags import endless_gaps
from lapwing.operators.operator import Operator, operator_from_trajectories
from lapwing.training.batches import Batches
from lapwing.training.config import LearnConfig
from lapwing.training.engine import spread_over_devices
from lapwing.training.exact_batches import DENSE_STATES, dense_operator, exact_batches
from lapwing.training.health import refuse_unlearnable
from lapwing.training.sampled_batches import sampled_batches
from lapwing.training.step import Program, TrainState, make_program

Data = Trajectories | Operator
"""What can be learned from: experience, or exact dynamics."""


class Job:
    """Data made ready, batches chosen, encoders built; then a program to run.

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
        ready = encoder if hasattr(encoder, "encode") else own_encoder(encoder, self._shape())
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
        centred = self.kind != "conv" or self.config.centre_pixels
        return encoder_statistics(self.kind, observations, weights) if centred else None

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
