"""Learning while experience comes in: bounded memory, a policy that changes, and how far the components have turned."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_path, as_whole, shown
from lapwing.data.buffer import ExperienceBuffer
from lapwing.data.packing import RowFormat
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.problems import Problem, objective_problems, output_problems, unlearnable
from lapwing.encoders.layers import Standardise, Statistics
from lapwing.encoders.networks import NetworkEncoder, RotatedEncoder, encoder_statistics, packed_statistics
from lapwing.errors import ArgumentError, DamagedFileError, DataError
from lapwing.evaluation.similarity import subspace_cosines
from lapwing.objectives import Objective
from lapwing.operators.clusters import DATA_TOLERANCE, group_degenerate
from lapwing.operators.lags import geometric_lags, lags_inside_episodes
from lapwing.operators.operator import operator_from_trajectories
from lapwing.operators.ritz import ritz_from_forms
from lapwing.representation import LaplacianRepresentation
from lapwing.storage.checkpoints import (
    Arrays,
    checkpoint_folder,
    filled_tree,
    newest_checkpoint,
    tree_arrays,
    write_checkpoint,
)
from lapwing.training.batches import PairPool, Source
from lapwing.training.config import GIVEN, LearnConfig, make_config
from lapwing.training.fitting import (
    REGRESSION,
    Targets,
    cell_targets,
    fit_source,
    of_neighbours,
    table_targets,
    with_constant,
)
from lapwing.training.loop import LearningDivergedError
from lapwing.training.moments import draw_walks
from lapwing.training.read_out import ReadOut, fitted_matrix
from lapwing.training.refit import encoded, with_solved_last_layer
from lapwing.training.state import StepInfo, TrainState, init, run_steps
from lapwing.training.task import CONTINUOUS_SCALES, checked_network, network_kind, network_of, new_network, prepare

# States that the steps of an update draw from: a fixed number, so that nothing is compiled as data grow.
POOL_STATES = 1 << 13
# Distinct observations for which the program of a table is compiled at least.
LEAST_DISTINCT = 64
# Numbers of steps for which a program is compiled; the steps of an update are made up of these.
PROGRAMS = (64, 8, 1)
# Where observations hardly repeat, this share of ``config.steps`` trains by the objective before cells are solved.
OBJECTIVE_SHARE = 0.25
# Inputs are scaled anew when their centre moves, or half their extent grows, by this share of the scale.
OUTGROWN = 0.25
# Standard errors from which new steps are surprising.
SURPRISING = 10.0
STEPS_COMPARED = 1 << 12
# Options of learning from data at hand that have no meaning for a stream.
OF_DATA_AT_HAND = (
    "batches", "separate_constraints", "permute_every", "schedule", "refit", "stop_when_converged", "log_every",
    "memory",
)  # fmt: skip
MOST_MARKS = 16
MOST_REPORTS = 1000


class OnlineReport(NamedTuple):
    """What an update reports.

    Attributes:
        step: gradient steps made so far.
        seen: states added so far.
        held: states that the learner holds.
        loss: of the last step.
        eigenvalues: (dim,) one-step eigenvalues of the present components, ascending.
        turned: (dim,) sines of the angles by which the components turned since the update before; NaN at the first.
        surprise: by how many standard errors the components change more over the steps that are new since the update
            before than over those held then; a few while nothing changes, tens where a new way opens. NaN at the first.
        problems: what is wrong with the network or the objective; empty where nothing is.
    """

    step: int
    seen: int
    held: int
    loss: float
    eigenvalues: NDArray[np.float64]
    turned: NDArray[np.float64]
    surprise: float
    problems: tuple[Problem, ...]


class Drift(NamedTuple):
    """How far the components have turned.

    Attributes:
        since: states that had been added at the earlier time.
        seen: states that have been added now.
        sines: (dim,) of the angles between components then and now, whole eigenspaces where eigenvalues repeat;
            measured on the observations held now.
        moments: states that had been added at the updates since then whose new steps were surprising.
    """

    since: int
    seen: int
    sines: NDArray[np.float64]
    moments: tuple[int, ...]


class Mark(NamedTuple):
    """The components at some time."""

    seen: int
    encoder: RotatedEncoder


class Solved(NamedTuple):
    """Eigenvectors of what is held, without the constant one.

    Attributes:
        observations: (n, ...) distinct ones, or one for each state.
        weights: (n,) how often each occurs; None where all occur alike.
        targets: the eigenvectors at these rows.
    """

    observations: NDArray[Any]
    weights: NDArray[np.float64] | None
    targets: Targets


class Update(NamedTuple):
    """What the steps of an update led to.

    Attributes:
        state: of the training.
        info: of the last step.
        matrix: from the network's outputs, behind a constant where it was fitted, to components.
        mu: (dim,) their eigenvalues.
        observations: what is held.
        rows: (n,) of them, on which components can be compared with others.
        outputs: (n, width) of the network there.
    """

    state: TrainState
    info: StepInfo
    matrix: NDArray[np.float64]
    mu: NDArray[np.float64]
    observations: NDArray[Any]
    rows: NDArray[np.int64]
    outputs: NDArray[np.float64]


class StepSizes(NamedTuple):
    """How much components change over a step of what is held.

    Attributes:
        energies: (dim,) ``1/2 E (u(s) - u(s'))^2``.
        deviation: of the mean over components of a step's own energies, each over its mean.
    """

    energies: NDArray[np.float64]
    deviation: float


class OnlineLearner:
    """Learns from a stream: ``add`` observations, ``update`` the network, take a ``model`` at any time.

    It holds the last ``capacity`` states, or a uniform sample of all, and knows nothing else of the past: what a window
    has dropped is forgotten. Each update solves for the eigenvectors of what is held (distinct observations counted, or
    cells of the representation where they hardly repeat), fits the network to them from where it stands, and solves
    its last layer. With ``fit=False`` the objective alone trains it, on pairs of what is held.

    Args:
        dim: how many components.
        capacity: how many states to hold.
        keep: ``window`` for the last ones, ``reservoir`` for a uniform sample of all.
        fit: whether to fit the network to eigenvectors solved on what is held.
        start: a learned model to begin with, of the same kind of observations.
        objective: as for :func:`lapwing.learn`.
        encoder: as for :func:`lapwing.learn`.
        seed: the same seed and the same calls give the same bits.
        options: any other option of :func:`lapwing.learn` that concerns the network, the batches or the objective.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-7", 4000, seed=0)
        >>> learner = OnlineLearner(dim=3, capacity=3000)
        >>> learner.add(data.states(), data.last_states())
        >>> report = learner.update(20)
        >>> learner.model().eigenvalues_in("successor(0.9)").round(1)
        array([0. , 0.2, 0.5])
    """

    def __init__(
        self,
        dim: int = 11,
        *,
        capacity: int = 100_000,
        keep: str = "window",
        fit: bool = True,
        start: LaplacianRepresentation | None = None,
        objective: "Objective | str | Mapping[str, Any] | None" = None,
        encoder: Any = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        """Nothing is built before the first update."""
        for name in OF_DATA_AT_HAND:
            if name in options:
                raise ArgumentError(
                    f"{name} is an option of lw.learn that an online learner does not have; leave it out"
                )
        options = {"learning_rate": 1e-3, **options}
        self.config: LearnConfig = make_config(objective=objective, encoder=encoder, dim=dim, seed=seed, **options)
        self.fit = bool(fit)
        self._objective = objective if isinstance(objective, Objective) else self.config.make_objective()
        self._encoder = None if isinstance(encoder, (str, Mapping)) else encoder
        self._optimiser = optax.adam(self.config.learning_rate)
        self._lags = geometric_lags(self.config.discounts)
        self._buffer = ExperienceBuffer(capacity, keep, seed)
        if self._buffer.capacity <= self.config.dim:
            raise ArgumentError(
                f"capacity must be more than dim, better a thousand times as much: {self._buffer.capacity} states "
                f"cannot tell {self.config.dim} components apart"
            )
        # The states since the last update.
        self._fresh = ExperienceBuffer(STEPS_COMPARED)
        self._step_sizes: StepSizes | None = None
        self._start = None if start is None else network_of(start, self.width)
        # Whether there were components to make cells of from the beginning.
        self._begun = start is not None
        self._state: TrainState | None = None
        self._eigenvalues: NDArray[np.float32] = np.zeros(self.width, dtype=np.float32)
        self._check_inputs_at = 0
        self._marks: list[Mark] = []
        self._seconds = 0.0
        self.reports: list[OnlineReport] = []
        # A function of its own, so that what is compiled is forgotten with the learner.
        self._run: Any = jax.jit(lambda state, source, count: run_steps(state, source, count), static_argnums=2)

    @property
    def width(self) -> int:
        """Outputs of the network: components and oversampling."""
        return self.config.dim + self.config.oversampling

    @property
    def seen(self) -> int:
        """How many states have been added."""
        return self._buffer.seen

    def add(
        self,
        observations: "ArrayLike | Mapping[str, ArrayLike]",
        episode_ends: "ArrayLike | None" = None,
        *,
        terminated: "ArrayLike | None" = None,
        actions: "ArrayLike | None" = None,
        stream: int = 0,
    ) -> None:
        """Add states in order of time; they continue what was added to the same stream before.

        Args:
            observations: (n, ...) of any numeric type, or a dictionary of such arrays.
            episode_ends: (n,) true at the last state of an episode, so that no pair crosses it; none unless given.
            terminated: (n,) true where the environment itself ended the episode; for options learned from the data.
            actions: (n, ...) the action taken in each state, without a meaning at the last one of an episode.
            stream: which of several environments this is, a whole number from 0.

        Raises:
            DataError: observations of another shape than before, NaN or infinity; the learner is as before.
        """
        self._buffer.add(observations, episode_ends, terminated=terminated, actions=actions, stream=stream)
        self._fresh.add(observations, episode_ends, terminated=terminated, actions=actions, stream=stream)

    def data(self) -> Trajectories:
        """What is held, as experience: ``lw.solve(learner.data(), dim)`` counts with the same forgetting.

        Returns:
            A copy.
        """
        return self._buffer.data()

    def update(self, steps: int = 64) -> OnlineReport:
        """Train on what is held; either all of it happens or, with an error, nothing.

        Args:
            steps: gradient steps.

        Returns:
            Loss, eigenvalues, how far the components turned, and problems.

        Raises:
            DataError: before there is a transition, or as many different observations as components.
            LearningDivergedError: if the loss or a weight is no longer finite.
        """
        started = time.perf_counter()
        count = as_whole(steps)
        if count is None or count < 1:
            raise ArgumentError(f"steps must be a whole number of at least 1, got {shown(steps)}")
        data = self._learnable_data()
        state = self._first_state(data) if self._state is None else self._state
        state, check_inputs_at = self._with_inputs(state, data)
        train = self._fitted if self._fits(data, state) else self._optimised
        trained = train(state, data, count)
        mark = Mark(self.seen, RotatedEncoder(trained.state.encoder, trained.matrix))
        report = self._report(trained)
        self._step_sizes = _step_sizes(mark.encoder, data, self._rng(trained.state))
        self._fresh = ExperienceBuffer(STEPS_COMPARED)
        self._state, self._eigenvalues = trained.state, np.asarray(trained.info.eigenvalues)
        self._check_inputs_at = check_inputs_at
        self._marks = _thinned([*self._marks, mark])
        self.reports = [*self.reports, report][-MOST_REPORTS:]
        self._seconds += time.perf_counter() - started
        return report

    def model(self, certified: bool = True) -> LaplacianRepresentation:
        """The representation now; later updates do not change it.

        Args:
            certified: read it out on all that is held now, with certificate and error bars, like that of
                :func:`lapwing.learn`. False gives the components of the last update at once, for an agent that acts by
                them between updates.

        Returns:
            A model.
        """
        if self._state is None:
            raise DataError("there is no model before the first update(); add observations and update first")
        state, dim = self._state, self.config.dim
        if not certified:
            metadata = {"method": "learn", "seed": self.config.seed, "steps": int(state.step)}
            mu = 1.0 - self.reports[-1].eigenvalues
            return LaplacianRepresentation(self._marks[-1].encoder, mu, dim, metadata=metadata)
        data = self._learnable_data()
        task = replace(prepare(self.config, data, [self.config.seed], self._objective, None), width=self.width)
        read_out, eigenvalues = ReadOut(task), np.asarray(self._eigenvalues, dtype=np.float64)
        if self._fits(data, state):
            read_out.targets = [task.targets or self._solved(state, data).targets]
            eigenvalues = self._lags.eigenvalues(1.0 - read_out.targets[0].mu)
        else:
            read_out.targets = []
        metadata = {
            "preset": "default",
            "seed": self.config.seed,
            "seconds": self._seconds,
            "steps": int(state.step),
            "history": [{"step": float(one.step), "loss": one.loss} for one in self.reports],
            "online": {"seen": self.seen, "held": data.num_states, "keep": self._buffer.keep},
        }
        return read_out.model(state, eigenvalues, metadata)

    def drift(self, since: int | None = None) -> Drift:
        """How far the components have turned since an earlier time, of which some are remembered.

        Args:
            since: in states added; the last remembered time before it is taken, the first one unless given.

        Returns:
            The angles, and the times.
        """
        if self._state is None:
            raise DataError("there is nothing to compare before the first update(); add observations and update first")
        times = [mark.seen for mark in self._marks]
        number = 0 if since is None else max(0, int(np.searchsorted(times, since, side="right")) - 1)
        data = self._learnable_data()
        rows = data.rows(self._rng(self._state).integers(0, data.num_states, POOL_STATES))
        before, now = (_encoded(self._marks[place].encoder, data.observations, rows) for place in (number, -1))
        later = (report for report in self.reports if report.seen > times[number])
        moments = tuple(report.seen for report in later if report.surprise > SURPRISING)
        return Drift(times[number], self.seen, _sines(before, now, self.reports[-1].eigenvalues), moments)

    def save(self, path: str | Path) -> Path:
        """Write everything that later calls depend on; the folder keeps the last two states that were saved.

        Args:
            path: a folder of its own, created if need be.

        Returns:
            The folder.
        """
        folder = as_path(path, "the folder to save to")
        arrays = {f"buffer.{name}": array for name, array in self._buffer.arrays().items()}
        arrays |= {f"fresh.{name}": array for name, array in self._fresh.arrays().items()}
        record: dict[str, Any] = {
            "config": self.config.as_dict(),
            "fit": self.fit,
            "begun": self._begun,
            "buffer": self._buffer.record(),
            "fresh": self._fresh.record(),
            "check_inputs_at": self._check_inputs_at,
            "seconds": self._seconds,
            "marks": [mark.seen for mark in self._marks],
            "reports": [_as_json(report) for report in self.reports],
        }
        if self._state is not None:
            encoder = self._state.encoder
            record["encoder"] = {"kind": encoder.kind, "config": encoder.config()}
            arrays |= {f"encoder.{name}": array for name, array in encoder.arrays().items()}
            arrays |= {f"state{name}": array for name, array in tree_arrays(self._state).items()}
            arrays["eigenvalues"] = self._eigenvalues
            assert self._step_sizes is not None
            arrays["energies"], record["deviation"] = self._step_sizes
            for number, mark in enumerate(self._marks):
                arrays |= {f"marks.{number}.{name}": array for name, array in mark.encoder.arrays().items()}
        step = self.seen + (0 if self._state is None else int(self._state.step))
        with checkpoint_folder(folder):
            write_checkpoint(folder, step, {name: np.asarray(array) for name, array in arrays.items()}, record)
        return folder

    @classmethod
    def load(cls, path: str | Path, *, objective: Objective | None = None, encoder: Any = None) -> Self:
        """The learner that was saved last; it goes on as that one would have, to the same bits.

        Args:
            path: the folder.
            objective: the one that it was made with, if that was an object of your own.
            encoder: a network of the structure that it was made with, if that was your own; its arrays are replaced.

        Returns:
            A learner.
        """
        folder = as_path(path, "the folder of an online learner")
        found = newest_checkpoint(
            folder, lambda file, arrays, record: cls._restored(file, arrays, record, objective, encoder)
        )
        if found is None:
            raise ArgumentError(f"{folder} holds no online learner; save one there first")
        return found

    @classmethod
    def _restored(cls, path: Path, arrays: Arrays, record: dict[str, Any], objective: Any, encoder: Any) -> Self:
        try:
            config = {name: value for name, value in record["config"].items() if name not in OF_DATA_AT_HAND}
            for name, given in (("objective", objective), ("encoder", encoder)):
                options, kind = config.pop(f"{name}_options"), config.pop(name)
                if (kind == GIVEN) != (given is not None):
                    advice = "pass the same again" if kind == GIVEN else "leave it out"
                    raise ArgumentError(f"the {name} of the learner in {path.parent} is {shown(kind)}; {advice}")
                config[name] = given if kind == GIVEN else {"name": kind, **options}
            held = record["buffer"]
            learner = cls(capacity=held["capacity"], keep=held["keep"], fit=record["fit"], **config)
            learner._buffer = ExperienceBuffer.restored(held, _inside(arrays, "buffer."))
            learner._fresh = ExperienceBuffer.restored(record["fresh"], _inside(arrays, "fresh."))
            learner._begun, learner._check_inputs_at = record["begun"], record["check_inputs_at"]
            learner._seconds = record["seconds"]
            learner.reports = [_from_json(report) for report in record["reports"]]
            if "encoder" in record:
                parts = record["encoder"]
                network = NetworkEncoder.from_parts(
                    parts["kind"], parts["config"], _inside(arrays, "encoder."), encoder
                )
                learner._state = filled_tree(learner._initial_state(network), _inside(arrays, "state"))
                learner._eigenvalues = arrays["eigenvalues"]
                learner._step_sizes = StepSizes(arrays["energies"], float(record["deviation"]))
                learner._marks = [
                    Mark(
                        seen, RotatedEncoder.from_parts({"inner": parts}, _inside(arrays, f"marks.{number}."), encoder)
                    )
                    for number, seen in enumerate(record["marks"])
                ]
            return learner
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            if isinstance(error, ArgumentError):
                raise
            raise DamagedFileError(f"{path} does not hold an online learner ({error})") from error

    def _learnable_data(self) -> Trajectories:
        """What is held; an error where so many components cannot be told apart yet."""
        data = self._buffer.data()
        if (problem := unlearnable(data.observations, None, self.config.dim)) is not None:
            raise DataError(f"after {self.seen:,} states {problem}; add more before an update")
        return data

    def _fits(self, data: Trajectories, state: TrainState) -> bool:
        """Whether the network is fitted to what was solved; cells of it need components to begin with."""
        begun = self._begun or int(state.step) >= OBJECTIVE_SHARE * self.config.steps
        return self.fit and (data.has_table or begun)

    def _rng(self, state: TrainState) -> np.random.Generator:
        return np.random.default_rng([self.config.seed, self.seen, int(state.step)])

    # --- the network -----------------------------------------------------------------------------------------------

    def _first_state(self, data: Trajectories) -> TrainState:
        shape, layout = data.observation_shape, RowFormat.from_metadata(data.metadata)
        given = self._start or self._encoder
        if given is not None:
            return self._initial_state(checked_network(given, shape, self.width))
        kind = network_kind(self.config.encoder, layout, shape)
        if kind == "table":
            raise ArgumentError("a table has a row for each observation and cannot grow; choose another encoder")
        suited = {"activation": "silu", "scales": CONTINUOUS_SCALES} if self.fit and not data.has_table else {}
        key = jax.random.split(jax.random.key(self.config.seed))[0]
        statistics = self._statistics(kind, data)
        return self._initial_state(new_network(self.config, kind, shape, self.width, key, statistics, layout, suited))

    def _initial_state(self, encoder: NetworkEncoder) -> TrainState:
        key = jax.random.split(jax.random.key(self.config.seed))[1]
        return init(encoder, self._objective, self._optimiser, key)

    def _statistics(self, kind: str, data: Trajectories) -> Statistics | None:
        """Of the inputs, always of the same shapes; None where they are left raw."""
        if not (self.config.scale_inputs or kind == "fourier"):
            return encoder_statistics(kind, data.observations, raw=True)
        weights, layout = data.visits() if data.has_table else None, RowFormat.from_metadata(data.metadata)
        if layout is not None:
            return packed_statistics(data.observations, weights, layout)
        shape = data.observation_shape
        raw = Statistics(np.zeros(shape, np.float32), np.ones(shape, np.float32))
        return encoder_statistics(kind, data.observations, weights) or raw

    def _with_inputs(self, state: TrainState, data: Trajectories) -> tuple[TrainState, int]:
        """The state with inputs scaled anew where observations have outgrown their scale; when to look again."""
        encoder = state.encoder
        inputs = getattr(encoder.module, "inputs", None)
        if self.seen < self._check_inputs_at or not isinstance(inputs, Standardise):
            return state, self._check_inputs_at
        following = self.seen + min(self.seen, self._buffer.capacity)
        found = self._statistics(encoder.kind, data)
        centre, scale = np.asarray(inputs.centre.array), np.asarray(inputs.scale.array)
        if found is None or np.shape(found.scale) != scale.shape:
            return state, following
        moved = np.abs(found.centre - centre) / scale + np.maximum(found.scale / scale - 1.0, 0.0) / 2.0
        if not (moved > OUTGROWN).any():
            return state, following

        def arrays_of(tree: Any) -> list[Any]:
            return [tree.module.inputs.centre.array, tree.module.inputs.scale.array]

        fixed = eqx.tree_at(arrays_of, state.fixed, [jnp.asarray(part) for part in found])
        return replace(state, fixed=fixed), following

    # --- training --------------------------------------------------------------------------------------------------

    def _optimised(self, state: TrainState, data: Trajectories, count: int) -> Update:
        """Steps of the objective on pairs of states with the configuration's lags."""
        lags = lags_inside_episodes(self._lags, data.lengths, unbiased=True)
        size = max(POOL_STATES, self.config.batch_size)
        starts, ends = draw_walks(data, lags, size, 1, self._rng(state))
        rows = np.concatenate([starts, ends])
        state, info = self._steps(state, _pair_pool(data, rows, self.config.batch_size), count)
        values = _encoded(state.encoder, data.observations, rows)
        here, there = values[:size], values[size:]
        gram, cross = values.T @ values / (2 * size), (here.T @ there + there.T @ here) / (2 * size)
        if self.config.refine == "ritz":
            quotients, matrix = ritz_from_forms(gram, cross)
        else:
            matrix = np.diag(1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300)))
            quotients = np.diag(matrix @ cross @ matrix)
        matrix, quotients = matrix[:, : self.config.dim], quotients[: self.config.dim]
        mu = 1.0 - lags.one_minus_mu(1.0 - quotients)
        return Update(state, info, matrix, mu, data.observations, starts, here)

    def _fitted(self, state: TrainState, data: Trajectories, count: int) -> Update:
        """Steps towards what was solved, turned towards what the network is; then its last layer, solved."""
        solved, rng = self._solved(state, data), self._rng(state)
        targets = solved.targets if data.has_table else of_neighbours(solved.targets, data)
        rows = rng.choice(len(solved.observations), POOL_STATES, p=solved.weights)
        observations, wanted = np.asarray(solved.observations[rows]), targets.at(rows)
        left, _, right = np.linalg.svd(wanted.T @ _encoded(state.encoder, solved.observations, rows))
        turned = (wanted @ (left @ right)).astype(np.float32)
        pool = Targets(np.arange(POOL_STATES, dtype=np.int32)[None], turned[None], targets.mu)
        fitting = replace(state, objective=REGRESSION, objective_state=jnp.zeros(self.width))
        fitting, info = self._steps(fitting, fit_source(observations, pool, self.config.batch_size), count)
        if self.config.solve_last_layer:
            distinct, first, counts = np.unique(rows, return_index=True, return_counts=True)
            wanted_once = pool._replace(labels=pool.labels[:, first])
            fitting = with_solved_last_layer(fitting, solved.observations[distinct], wanted_once, counts)
        state = replace(fitting, objective=state.objective, objective_state=state.objective_state)
        outputs = _encoded(state.encoder, solved.observations, rows)
        ordered, weights = with_constant(wanted)[:, : self.config.dim], np.full(POOL_STATES, 1.0 / POOL_STATES)
        matrix, _ = fitted_matrix(with_constant(outputs), ordered, weights)
        mu = np.append(1.0, targets.mu)[: self.config.dim]
        return Update(state, info, matrix, mu, solved.observations, rows, outputs)

    def _solved(self, state: TrainState, data: Trajectories) -> Solved:
        """Eigenvectors of counted transitions, between observations or between cells of the representation."""
        if not data.has_table:
            values = encoded(state.encoder, data)
            targets = cell_targets(values, data, self.config.dim, self.width, 1, self._rng(state))
            return Solved(data.observations, None, targets)
        operator = operator_from_trajectories(data, None if self.config.rho == "visits" else self.config.rho)
        targets = table_targets(operator, min(self.width, operator.num_states - 1))
        missing = self.width - len(targets.mu)
        tables = np.pad(targets.tables, ((0, 0), (0, 0), (0, missing)))
        padded = targets._replace(tables=tables, mu=np.pad(targets.mu, (0, missing)))
        return Solved(operator.observations, operator.rho, padded)

    def _steps(self, state: TrainState, source: Source, count: int) -> tuple[TrainState, StepInfo]:
        """So many steps, or an error that leaves everything as it was."""
        try:
            for size in PROGRAMS:
                for _ in range(count // size):
                    state, info = self._run(state, source, size)
                count %= size
        except (TypeError, ValueError) as error:  # from inside an objective or a network of the caller's own
            reason = str(error).splitlines()[0]
            raise ArgumentError(f"a training step failed, and the learner is as before: {reason}") from error
        info = jax.device_get(info)
        sound = [np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves((info.loss, state.trained))]
        if not all(sound):
            message = "the loss or the weights are no longer finite; lower learning_rate. The learner is as before"
            raise LearningDivergedError(message, self._state or state, [], [0])
        return state, info

    def _report(self, trained: Update) -> OnlineReport:
        state, outputs, dim = trained.state, trained.outputs, self.config.dim
        values = 1.0 - trained.mu
        turned = np.full(dim, np.nan)
        if self._marks:
            behind = outputs if len(trained.matrix) == self.width else with_constant(outputs)
            before = _encoded(self._marks[-1].encoder, trained.observations, trained.rows)
            turned = _sines(before, behind @ trained.matrix, values)
        options = {**self.config.objective_options, "learning_rate": self.config.learning_rate}
        settings = {name: value for name, value in options.items() if isinstance(value, (int, float))}
        at_bounds = state.objective.details(state.objective_state).at_bounds
        problems = objective_problems(np.asarray(trained.info.eigenvalues), at_bounds, dim, settings)
        gram, history = outputs.T @ outputs / len(outputs), [{"step": float(state.step)}]
        problems += output_problems(gram, outputs, dim, self.config.refine == "ritz", history, settings)
        return OnlineReport(
            step=int(state.step),
            seen=self.seen,
            held=self._buffer.num_states,
            loss=float(trained.info.loss),
            eigenvalues=values,
            turned=turned,
            surprise=self._surprise(),
            problems=tuple(problems),
        )

    def _surprise(self) -> float:
        """How much longer new steps are than those held at the last update, in standard errors."""
        if self._step_sizes is None or not self._fresh.num_states:
            return float("nan")
        try:
            data = self._fresh.data()
        except DataError:  # no transition is new
            return float("nan")
        energies = _energies_of_steps(self._marks[-1].encoder, data, np.concatenate(list(data.pair_positions(1))))
        sizes = (energies / self._step_sizes.energies)[:, 1:].mean(axis=1)
        return float((sizes.mean() - 1.0) / (self._step_sizes.deviation / np.sqrt(len(sizes))))


def _pair_pool(data: Trajectories, rows: NDArray[np.int64], batch_size: int) -> PairPool:
    """Pairs at rows of the observations, starts before ends; of few distinct ones each is encoded once per step.

    Those are padded to a power of two, so that one program serves until there are twice as many.
    """
    size = len(rows) // 2
    distinct, places = np.unique(rows, return_inverse=True)
    padded = 1 << max(len(distinct) - 1, LEAST_DISTINCT - 1).bit_length()
    if padded > 2 * batch_size:
        return PairPool(jnp.asarray(np.asarray(data.observations[rows])), size, batch_size)
    table = np.asarray(data.observations[np.resize(distinct, padded)])
    return PairPool(jnp.asarray(table), size, batch_size, jnp.asarray(places.astype(np.int32)))


def _encoded(
    encoder: NetworkEncoder | RotatedEncoder, observations: NDArray[Any], rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(n, d) values at rows of observations; where rows repeat, each is encoded once."""
    distinct, places = np.unique(rows, return_inverse=True)
    return np.asarray(encoder.encode(np.asarray(observations[distinct])), dtype=np.float64)[places]


def _energies_of_steps(
    encoder: RotatedEncoder, data: Trajectories, positions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(n, dim) half the squared change of each component over steps that begin at positions."""
    rows = np.concatenate([data.rows(positions), data.rows(positions + 1)])
    here, there = np.split(_encoded(encoder, data.observations, rows), 2)
    return (here - there) ** 2 / 2.0


def _step_sizes(encoder: RotatedEncoder, data: Trajectories, rng: np.random.Generator) -> StepSizes:
    positions = np.concatenate(list(data.pair_positions(1)))
    energies = _energies_of_steps(
        encoder, data, rng.choice(positions, min(STEPS_COMPARED, len(positions)), replace=False)
    )
    # A component that never changes, as the constant one, has no step to compare with.
    means = np.maximum(energies.mean(axis=0), 1e-12)
    sizes = (energies / means)[:, 1:].mean(axis=1) if energies.shape[1] > 1 else np.ones(len(energies))
    return StepSizes(means, max(float(sizes.std()), 1e-6))


def _sines(
    before: NDArray[np.float64], now: NDArray[np.float64], eigenvalues: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(dim,) of the angles between components at two times, by their (n, dim) values at the same states."""
    weights = np.full(len(now), 1.0 / len(now))
    cosines = subspace_cosines(before, now, weights, group_degenerate(eigenvalues, DATA_TOLERANCE))
    return np.sqrt(np.maximum(1.0 - cosines**2, 0.0))


def _thinned(marks: list[Mark]) -> list[Mark]:
    """At most so many: of old ones every other is dropped, so that they lie further apart the older they are."""
    if len(marks) <= MOST_MARKS:
        return marks
    half = len(marks) // 2
    return [*marks[:half:2], *marks[half:]]


def _inside(arrays: Arrays, beginning: str) -> Arrays:
    """Arrays whose names begin alike, without that beginning."""
    return {name.removeprefix(beginning): array for name, array in arrays.items() if name.startswith(beginning)}


def _as_json(report: OnlineReport) -> dict[str, Any]:
    plain = {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in report._asdict().items()
    }
    return {**plain, "problems": [problem.as_dict() for problem in report.problems]}


def _from_json(content: dict[str, Any]) -> OnlineReport:
    arrays = {name: np.array(content[name], dtype=np.float64) for name in ("eigenvalues", "turned")}
    problems = tuple(Problem(**{**one, "components": tuple(one["components"])}) for one in content["problems"])
    return OnlineReport(**{**content, **arrays, "problems": problems})
