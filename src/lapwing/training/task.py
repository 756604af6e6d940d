"""One call of ``learn`` made ready: data looked at, batches chosen, networks built."""

import hashlib
import math
import operator as operators
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray
from scipy.sparse import csr_array

from lapwing.checks import shown
from lapwing.data.directedness import Directedness, directedness
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.problems import ProblemError, unlearnable
from lapwing.encoders.convolution import patch_side
from lapwing.encoders.layers import Statistics
from lapwing.encoders.networks import (
    NetworkEncoder,
    build_encoder,
    default_kind,
    encoder_options,
    encoder_statistics,
    kinds_of_entries,
    own_encoder,
    packed_statistics,
)
from lapwing.errors import ArgumentError
from lapwing.objectives import Objective, permuted
from lapwing.operators.lags import LagDistribution, geometric_lags, lags_inside_episodes
from lapwing.operators.operator import Operator, operator_from_trajectories
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.reading import forget_pages
from lapwing.training.batches import (
    DENSE_STATES,
    Source,
    Streamed,
    dense_operator,
    exact_table,
    pair_sampler,
    streamed_pairs,
)
from lapwing.training.config import LearnConfig
from lapwing.training.fitting import REGRESSION, Targets, fit_source, table_draws, table_targets
from lapwing.training.state import TrainState, init, stacked

Data = Trajectories | Operator
"""What can be learned from: experience, or exact dynamics."""

BLOCK_BYTES = 64 << 20

# Standard deviations of Fourier frequencies, for inputs in [-0.5, 0.5], where observations never repeat; and of tables,
# as far as a wave of that many radians per unit is longer than the distance between states.
CONTINUOUS_SCALES = (3.0, 10.0, 20.0)
TABLE_SCALES = (3.0, 10.0, 30.0, 60.0, 120.0, 240.0)
SCALE_PER_STATE = 0.8
# Least squares towards a table allow larger steps than an objective does.
TABLE_FIT_RATE = 2.0
# A part of streamed observations is on its way through the host, on the device, and there once more as the next one.
SHARE_OF_A_PART = 4


@dataclass(frozen=True)
class Task:
    """What is learned from, with what, made ready.

    Attributes:
        config: all hyper-parameters.
        data: experience, or exact dynamics.
        seeds: one or several.
        operator: the one-step operator, where observations repeat.
        objective: permuted, if the configuration wants it.
        encoder: the caller's own; None where one is built.
        kind: of the encoder.
        width: outputs of the network: components and oversampling.
        lags: the wanted ones, with an infinite horizon.
        matrix: f(P) as a dense matrix, where the operator is small.
        source: of batches.
        training_lags: those that the batches really have.
        directedness: of experience without a table; None for a table, whose operator is symmetrised step by step.
        targets: what the network is fitted to from the start: solved eigenvectors of a large table.
        start: the network of an earlier model, with whose weights to begin; None for random ones.
    """

    config: LearnConfig
    data: Data
    seeds: list[int]
    operator: Operator | None
    objective: Objective
    encoder: Any
    kind: str
    width: int
    lags: LagDistribution
    matrix: NDArray[np.float64] | None
    source: Source | Streamed
    training_lags: LagDistribution
    directedness: Directedness | None = None
    targets: Targets | None = None
    start: NetworkEncoder | None = None

    @property
    def round_steps(self) -> list[int]:
        """Steps of each round of refitting after the objective's: where nothing repeats; half of all in the last."""
        steps, others = self.config.steps, self.config.refit - 1
        if self.operator is not None or not _may_fit(self.config):
            return []
        return [count for count in [*[steps // (4 * others)] * others, steps // 2] if count] if others else [steps // 2]

    @property
    def objective_steps(self) -> int:
        """Steps before the first round."""
        return self.config.steps - sum(self.round_steps)

    @property
    def sees_images(self) -> bool:
        """Whether observations are images, or have one among several entries: each takes longer to encode."""
        return self.kind == "conv" or (self.layout is not None and "conv" in kinds_of_entries(self.layout))

    @property
    def fitted_rows(self) -> int:
        """States per step of a round: as many as the objective encodes; of images half."""
        return self.config.batch_size * (1 if self.sees_images else 2)

    @cached_property
    def layout(self) -> RowFormat | None:
        """Of observations with several entries, which are packed; None where they are one array."""
        return RowFormat.from_metadata(self.data.metadata)

    @property
    def held_bytes(self) -> int | None:
        """Bytes of observations that a part may have; None where all of them are held."""
        limit = int(self.config.memory * (1 << 30))
        return None if _observations(self.data, self.operator).nbytes <= limit else limit // SHARE_OF_A_PART

    @property
    def is_table(self) -> bool:
        """Whether the encoder is a table of one row per state, built here."""
        return self.kind == "table" and self.encoder is None

    def initial_state(self) -> TrainState:
        """The first state; with several seeds, every array has a leading axis for them.

        Returns:
            A state.
        """
        optimiser = self.optimiser(self.objective_steps)
        keys = [jax.random.split(jax.random.key(seed)) for seed in self.seeds]
        states = [init(self._encoder(key[0]), self.objective, optimiser, key[1]) for key in keys]
        return stacked(states)

    def optimiser(self, steps: int) -> optax.GradientTransformation:
        """The optimiser of so many steps.

        Args:
            steps: over which the learning rate decays, if it does.

        Returns:
            Adam with the configuration's schedule.
        """
        rate = self.config.learning_rate * (1.0 if self.targets is None else TABLE_FIT_RATE)
        return optax.adam(optax.cosine_decay_schedule(rate, steps) if self.config.schedule == "cosine" else rate)

    def identity(self) -> dict[str, Any]:
        """What two runs must share for one to continue from the other's checkpoint.

        Options at their default are left out: one that is added later then changes nothing for earlier checkpoints.

        Returns:
            JSON types.
        """
        defaults = LearnConfig().as_dict()
        config = {
            name: value
            for name, value in self.config.as_dict().items()
            if name not in ("seed", "objective", "encoder") and value != defaults[name]
        }
        known = {
            "config": config,
            "seeds": self.seeds,
            "data": self._data_digest,
            "objective": self.config.objective,
            "encoder": self.config.encoder if self.encoder is not None else self.kind,
        }
        return (
            known
            if self.start is None
            else {**known, "start": _arrays_digest(np.atleast_1d(array) for array in self.start.arrays().values())}
        )

    @cached_property
    def _data_digest(self) -> str:
        return data_digest(self.data)

    def _encoder(self, key: jax.Array) -> Any:
        if self.start is not None or self.encoder is not None:
            return self.start or self.encoder
        if self.is_table:
            assert self.operator is not None
            return build_encoder("table", (), self.width, key, states=self.operator.num_states)
        shape = tuple(_observations(self.data, self.operator).shape[1:])
        return new_network(
            self.config, self.kind, shape, self.width, key, self._statistics, self.layout, self._smooth_options
        )

    @property
    def _smooth_options(self) -> dict[str, Any]:
        """Options of networks that are fitted: no kinks, and waves no shorter than what the states resolve."""
        if not self.round_steps and self.targets is None:
            return {}
        if self.operator is None:
            return {"activation": "silu", "scales": CONTINUOUS_SCALES}
        inputs = math.prod(self.operator.observations.shape[1:])
        finest = SCALE_PER_STATE * self.operator.num_states ** (1.0 / max(inputs, 1))
        return {"scales": tuple(scale for scale in TABLE_SCALES if scale <= max(finest, TABLE_SCALES[0]))}

    @cached_property
    def _statistics(self) -> Any:
        observations = np.asarray(_observations(self.data, self.operator))
        weights = None if self.operator is None else self.operator.rho
        # Fourier features need inputs of a known range, whatever the configuration.
        scaled = self.kind == "fourier" or self.config.scale_inputs
        if scaled and self.kind == "several" and self.layout is not None:
            return packed_statistics(observations, weights, self.layout)
        return encoder_statistics(self.kind, observations, weights, raw=not scaled)


def prepare(
    config: LearnConfig,
    data: Data,
    seeds: Sequence[int],
    objective: Objective | None,
    encoder: Any,
    start: LaplacianRepresentation | None = None,
) -> Task:
    """Everything but the compilation.

    Args:
        config: all hyper-parameters.
        data: experience, or exact dynamics.
        seeds: one or several, in one program.
        objective: in place of the one that the configuration describes.
        encoder: in place of one built.
        start: a learned model, with whose network to begin.

    Returns:
        The task.
    """
    if not isinstance(data, (Trajectories, Operator)):
        raise ArgumentError(
            f"cannot learn from {type(data).__name__}; "
            "give lw.collect(...) for experience or lw.operator(...) for exact dynamics"
        )
    if isinstance(data, Trajectories) and data.keys:
        if encoder is not None:
            raise ArgumentError(
                f"a network of your own takes one array, these observations have the keys {', '.join(data.keys)}: "
                "choose one, data.select(key), or learn from data.packed() and unpack its rows "
                "(lapwing.encoders.unpack_entries)"
            )
        data = data.packed()
    numbers = _checked_seeds(seeds)
    operator = _operator_of(data, config.rho)
    observations = _observations(data, operator)
    states = None if operator is None else operator.num_states
    problem = unlearnable(observations, states, config.dim)
    if problem is not None:
        raise ProblemError(problem)
    width = config.dim + (config.oversampling if states is None else min(config.oversampling, states - config.dim))
    shape = tuple(observations.shape[1:])
    given = None if encoder is None else checked_network(encoder, shape, width)
    begin = None if start is None else checked_network(network_of(start, width), shape, width)
    if begin is not None and (given is not None or config.encoder not in ("auto", begin.kind)):
        raise ArgumentError("start brings its own network; leave the encoder out")
    if begin is not None:
        kind = begin.kind
    else:
        kind = (
            "own" if given is not None else network_kind(config.encoder, RowFormat.from_metadata(data.metadata), shape)
        )
    chosen = config.make_objective() if objective is None else objective
    chosen = permuted(chosen, config.permute_every) if config.permute_every else chosen
    lags = geometric_lags(config.discounts)
    matrix, targets = None, None
    source: Source | Streamed
    if operator is not None and operator.num_states <= DENSE_STATES:
        matrix = dense_operator(operator, lags)
    if operator is not None and matrix is None and kind != "table" and _may_fit(config):
        targets = table_targets(operator, width)
        eigenvalues = jnp.asarray(lags.eigenvalues(1.0 - targets.mu), dtype=jnp.float32)
        chosen = REGRESSION._replace(init=lambda dim: eigenvalues)
        rows = table_draws(operator.rho)
        source, training_lags = fit_source(operator.observations, targets, 4 * config.batch_size, rows), lags
    else:
        source, training_lags = _source(config, data, operator, kind, lags, matrix)
    return Task(
        config=config,
        data=data,
        seeds=numbers,
        operator=operator,
        objective=chosen,
        encoder=given,
        kind=kind,
        width=width,
        lags=lags,
        matrix=matrix,
        source=source,
        training_lags=training_lags,
        directedness=directedness(data) if isinstance(data, Trajectories) and not data.has_table else None,
        targets=targets,
        start=begin,
    )


def new_network(
    config: LearnConfig,
    kind: str,
    shape: tuple[int, ...],
    width: int,
    key: jax.Array,
    statistics: Statistics | None,
    layout: RowFormat | None,
    suited: dict[str, Any],
) -> NetworkEncoder:
    """A network with random weights, by the configuration.

    Args:
        config: all hyper-parameters.
        kind: of network.
        shape: of one observation.
        width: outputs.
        key: the source of weights.
        statistics: of the inputs.
        layout: of packed observations; None where they are one array.
        suited: options that suit the data, as far as the kind has them; those of the configuration come first.

    Returns:
        The encoder.
    """
    chosen = {"hidden": config.hidden, "patch": patch_side(shape), **suited}
    known = {name: value for name, value in chosen.items() if name in encoder_options(kind)}
    options = {**known, "statistics": statistics, **config.encoder_options}
    if kind == "several" and layout is not None:
        options |= {**layout.as_metadata(), "kinds": kinds_of_entries(layout)}
    return build_encoder(kind, shape, width, key, **options)


def network_kind(wanted: str, layout: RowFormat | None, shape: tuple[int, ...]) -> str:
    """The kind of network: the one asked for, else what suits the observations.

    Args:
        wanted: a name, or ``auto``.
        layout: of packed observations; None where they are one array.
        shape: of one observation.

    Returns:
        The name of a kind.
    """
    if wanted == "auto":
        return default_kind(shape) if layout is None else "several"
    if (wanted == "several") != (layout is not None) and wanted != "table":
        fits = "'several' or 'auto'" if layout is not None else "a network of one input"
        raise ArgumentError(f"encoder {wanted!r} does not fit these observations; use {fits}")
    return wanted


def _operator_of(data: Data, rho: str) -> Operator | None:
    """The one-step operator, where observations repeat."""
    if isinstance(data, Operator):
        if rho != "visits":
            raise ArgumentError(f"an operator has its own weights; rho={rho!r} is for experience")
        return data
    known = None if rho == "visits" else rho
    return operator_from_trajectories(data, known) if data.has_table or known else None


def _may_fit(config: LearnConfig) -> bool:
    """Whether the network may be fitted to what was solved: not where batches of the objective's own are asked for."""
    return config.refit > 0 and config.batches == "auto" and not config.permute_every


def _source(
    config: LearnConfig,
    data: Data,
    operator: Operator | None,
    kind: str,
    lags: LagDistribution,
    matrix: NDArray[np.float64] | None,
) -> tuple[Source | Streamed, LagDistribution]:
    """Exact batches where that is wanted or best, else sampled ones; and the lags that they really have."""
    wanted = config.batches
    if wanted == "auto":
        wanted = "exact" if matrix is not None or isinstance(data, Operator) else "unbiased"
    if wanted == "exact":
        if operator is None:
            raise ArgumentError("exact batches need observations that repeat; these hardly do: use batches='unbiased'")
        if kind == "table":
            # A table encoder's observations are the states' numbers.
            operator = replace(operator, observations=np.arange(operator.num_states, dtype=np.int32))
        return exact_table(operator, lags, matrix)
    if not isinstance(data, Trajectories):
        raise ArgumentError("sampled batches need experience; collect some, or use batches='exact'")
    if kind == "table":
        raise ArgumentError("a table is learned with exact batches; choose another encoder to sample")
    unbiased = wanted == "unbiased"
    limit = int(config.memory * (1 << 30))
    held = data.has_table or data.observations.nbytes <= limit
    sampler = pair_sampler(data, lags, config.batch_size, unbiased, separate=config.separate_constraints, held=held)
    source = sampler if held else streamed_pairs(sampler, data.observations, limit // SHARE_OF_A_PART)
    return source, lags_inside_episodes(lags, np.asarray(data.lengths), unbiased)


def data_digest(data: Data) -> str:
    """A digest of experience or exact dynamics: the same data give the same, other data another.

    Args:
        data: what is learned from.

    Returns:
        32 hexadecimal digits.
    """
    return _arrays_digest(_arrays_of(data))


def _arrays_digest(arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        # In blocks, because what lies on a disk may be larger than memory.
        rows = max(1, BLOCK_BYTES * len(array) // max(array.nbytes, 1))
        for begin in range(0, len(array), rows):
            digest.update(np.ascontiguousarray(array[begin : begin + rows]).reshape(-1).view(np.uint8).data)
            forget_pages(array)
    return digest.hexdigest()[:32]


def _arrays_of(data: Data) -> list[NDArray[Any]]:
    if isinstance(data, Trajectories):
        ids = [] if data.ids is None else [data.ids]
        return [data.observations, data.offsets, data.terminated, data.truncated, *ids]
    matrix = csr_array(data.matrix)
    return [matrix.data, matrix.indices, matrix.indptr, data.rho, data.observations]


def _observations(data: Data, operator: Operator | None) -> NDArray[Any]:
    observations: NDArray[Any] = (operator or data).observations
    return observations


def checked_network(encoder: Any, shape: tuple[int, ...], width: int) -> Any:
    """A network that was given, as an encoder, tried on the shape of these observations.

    Args:
        encoder: an encoder, or a network of the user's own.
        shape: of one observation.
        width: outputs that it must have.

    Returns:
        The encoder.
    """
    ready = encoder if hasattr(encoder, "encode") else own_encoder(encoder, shape)
    if tuple(ready.observation_shape) != shape:
        raise ArgumentError(
            f"your encoder takes observations of shape {tuple(ready.observation_shape)}, these are {shape}"
        )
    if ready.dim != width:
        raise ArgumentError(
            f"your encoder gives {ready.dim} components, but dim + oversampling is {width}; "
            "give it that many outputs, or pass oversampling=0"
        )
    return ready


def network_of(model: LaplacianRepresentation, width: int) -> NetworkEncoder:
    """The network of a learned model, to start another one with.

    Args:
        model: learned, with so many outputs before refinement.
        width: components and oversampling of what is to be learned.

    Returns:
        The network; training does not change the model's own.
    """
    if not isinstance(model, LaplacianRepresentation):
        raise ArgumentError(f"start must be a learned model, such as lw.learn and lw.load give, got {shown(model)}")
    inner = getattr(model.encoder, "inner", None)
    if not isinstance(inner, NetworkEncoder):
        raise ArgumentError(
            f"start must be a model with a network; this one has an encoder of kind {model.encoder.kind!r}"
        )
    if inner.dim != width:
        raise ArgumentError(
            f"the network of start has {inner.dim} outputs, but dim + oversampling is {width}; "
            f"choose dim and oversampling with the sum {inner.dim}"
        )
    return inner


def _checked_seeds(seeds: Sequence[int]) -> list[int]:
    try:
        numbers = [operators.index(seed) for seed in seeds]
    except TypeError:
        raise ArgumentError(f"seeds must be a list of whole numbers, got {seeds!r}") from None
    if not numbers or min(numbers) < 0 or max(numbers) >= 1 << 32:
        raise ArgumentError(f"give at least one seed, each from 0 to 2**32 - 1; got {numbers}")
    return numbers
