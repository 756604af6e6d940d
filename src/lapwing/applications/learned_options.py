"""Eigenoptions learned off-policy from experience: no dynamics, any environment with discrete actions.

The eigenpurpose ``u_i(s') - u_i(s)`` can be computed for every transition that was recorded, whatever it was recorded
for, so all options are learned from the data that the representation was learned from (Machado et al., 2018; Klissarov
& Machado, 2023). Where observations repeat, action values are solved on counted transitions; elsewhere one network has
the action values of all options.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from lapwing.applications.options import (
    Option,
    checked_components,
    checked_discount,
    checked_seed,
    climbing_policies,
    options_of_policies,
    with_negations,
)
from lapwing.applications.recorded_transitions import RecordedTransitions, recorded_transitions
from lapwing.applications.trust import warn_of_untrusted
from lapwing.checks import as_whole, shown
from lapwing.data.trajectories import Trajectories
from lapwing.errors import ArgumentError, DataError, UnknownNameError, did_you_mean
from lapwing.representation import LaplacianRepresentation

if TYPE_CHECKING:
    import jax

# Counts are taken instead of a network where each observation and action was tried this often on average.
MIN_TRIES = 10
# The error of a network's values is taken from what the data contradict them by, and is at least this share of a usual
# step's reward: at the goal a value that is zero but for an error would keep an option going for ever.
SMALLEST_ERROR = 0.05
ERROR_SAMPLE = 1 << 14
HIDDEN = (256, 256)
BATCH = 256
LEARNING_RATE = 1e-3
# How much of the network the averaged one, which values the next states, takes over in each step.
AVERAGING = 0.05
CHUNK_ROWS = 4096


@dataclass(frozen=True, eq=False)
class LearnedOption:
    """An option whose action values are those of a network; it answers for any observation.

    The methods are those of :class:`Option`. It takes the action of the largest value and may start where that value is
    above the network's error. It ends with the probability, at most, that the value is zero but for an error of that
    size (Chebyshev): certainly below the error, hardly ever far above it.

    Args:
        name: for tables and pictures.
        values: from one observation to (actions,) values, in units of a usual step's reward.
        actions: (actions,) the environment's numbers of the actions.
        error: of the values, root mean square.
    """

    name: str
    values: Callable[["ArrayLike"], NDArray[np.float32]] = field(repr=False)
    actions: NDArray[np.int64]
    error: float

    def initiation(self, observation: "ArrayLike") -> bool:
        """Whether the option may start.

        Args:
            observation: of one state.

        Returns:
            True where an action has a value above the error.
        """
        return bool(self.values(observation).max() > self.error)

    def policy(self, observation: "ArrayLike") -> int:
        """The action that the option takes.

        Args:
            observation: of one state.

        Returns:
            The number of the action with the largest value.
        """
        return int(self.actions[self.values(observation).argmax()])

    def termination(self, observation: "ArrayLike") -> float:
        """The probability that the option ends on arrival.

        Args:
            observation: of one state.

        Returns:
            A probability: ``(error / value)^2`` of the best action, at most 1.
        """
        best = max(float(self.values(observation).max()), self.error)
        return (self.error / best) ** 2


def learn_options(
    model: LaplacianRepresentation,
    data: Trajectories,
    components: Sequence[int] | None = None,
    *,
    discount: float = 0.9,
    both_signs: bool = True,
    encoder: str = "auto",
    steps: int = 5000,
    seed: int = 0,
) -> list[Option] | list[LearnedOption]:
    """Eigenoptions by fitted Q iteration on recorded transitions, all trained together.

    Each learns the policy of :func:`eigenoptions` for the same eigenpurpose, with "end" as an alternative of value 0.
    Nothing is learned across the end of an episode, and a state in which the environment ended an episode ends the
    option.

    Args:
        model: exact or learned; it is evaluated at the observations of the data.
        data: with discrete actions: ``lw.collect(env, steps, record="actions")``.
        components: which, counted from 1; all but the constant first one unless given.
        discount: of the eigenpurpose's return.
        both_signs: whether ``-u_i`` gives an option too.
        encoder: ``table`` solves counted transitions, which is exact up to the noise of the counts and knows only
            observations of the data; the name of a network (``fourier``, ``mlp``, ``conv``) fits one. ``auto`` takes
            the table where each observation and action was tried ten times on average, else the network that suits
            the shape of observations.
        steps: of gradient descent, for a network.
        seed: of the network and its batches.

    Returns:
        The options in the order of :func:`eigenoptions`: :class:`Option` objects over the table of distinct
        observations (for a world whose states are listed, those of its own table), or :class:`LearnedOption` objects.

    Raises:
        DataError: data without actions, or a representation that is NaN there.
        ArgumentError: actions that are not discrete, a representation of one component, or arguments out of range.

    Warns:
        UntrustedWarning: where the certificate says that a component has not converged or has too few data.

    Note:
        An action that was never tried in a state is never taken there. The package's own worlds record the move that
        was made, slips included, so options learned from them are those of a world that does not slip.

    Example:
        >>> import lapwing as lw
        >>> data = lw.collect("GridMaze-7", 20_000, record="actions")
        >>> [option.name for option in learn_options(lw.solve(data, dim=3), data)]
        ['u2', '-u2', 'u3', '-u3']
    """
    chosen, gamma, root = checked_components(model, components), checked_discount(discount), checked_seed(seed)
    count = as_whole(steps)
    if count is None or count < 1:
        raise ArgumentError(f"steps must be a whole number of at least 1, got {shown(steps)}")
    transitions = recorded_transitions(data)
    kind = _checked_kind(encoder, data, transitions)
    warn_of_untrusted(model, chosen, "options of components that are not trusted may lead elsewhere")
    values, names = _component_values(model, data, transitions, chosen), [f"u{number}" for number in chosen]
    values, names = with_negations(values, names) if both_signs else (values, names)
    if kind == "table":
        actions, ending = climbing_policies(_counted_matrices(transitions, len(values)), _doubled(values), gamma, None)
        rows = slice(len(values))
        return options_of_policies(names, data.observations, transitions.labels[actions[rows]], ending[rows])
    network, errors = _fitted_values(data, transitions, values, gamma, kind, count, root)
    sizes = np.maximum(errors, SMALLEST_ERROR).tolist()
    return [
        LearnedOption(name, _ValuesOfOne(network, number), transitions.labels, size)
        for number, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]


# --- counted transitions -------------------------------------------------------------------------------------------


def _counted_matrices(transitions: RecordedTransitions, size: int) -> tuple[csr_array, ...]:
    """The matrix of each action over the states and, behind them, a copy of each in which the environment has ended.

    A pair of state and action that was never tried stays where it is, as do the copies: staying is worth less than
    what made it worth to be in a state, so it is never chosen.
    """
    here, there, actions, terminal, labels = transitions
    ends = np.where(terminal, there + size, there)
    found = []
    for number in range(len(labels)):
        tried = actions == number
        idle = np.setdiff1d(np.arange(2 * size), here[tried])
        rows, columns = np.append(here[tried], idle), np.append(ends[tried], idle)
        shares = 1.0 / np.bincount(rows, minlength=2 * size)[rows]
        found.append(csr_array((shares, (rows, columns)), shape=(2 * size, 2 * size)))
    return tuple(found)


def _doubled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([values, values])


# --- a network -----------------------------------------------------------------------------------------------------


class _Network:
    """From one observation to (options, actions) values."""

    def __init__(self, shape: tuple[int, ...], evaluate: Callable[[Any], Any]) -> None:
        self._shape, self._evaluate = shape, evaluate

    def __call__(self, observation: "ArrayLike") -> NDArray[np.float32]:
        given = np.asarray(observation)
        if given.shape != self._shape or given.dtype.kind not in "biuf" or not np.isfinite(given).all():
            raise ArgumentError(f"an observation is finite numbers of shape {self._shape}, got {shown(observation)}")
        return np.asarray(self._evaluate(given))


@dataclass(frozen=True)
class _ValuesOfOne:
    """The action values of one option, from a network that has those of all."""

    network: _Network
    number: int

    def __call__(self, observation: "ArrayLike") -> NDArray[np.float32]:
        return self.network(observation)[self.number]


def _fitted_values(
    data: Trajectories,
    transitions: RecordedTransitions,
    values: NDArray[np.float64],
    discount: float,
    kind: str,
    steps: int,
    seed: int,
) -> tuple[_Network, NDArray[np.float32]]:
    """The values of all options by fitted Q iteration, and (options,) the root mean square of their errors.

    Next states are valued by a running average of the network, which is also what is returned.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    heads, count = (values.shape[1], len(transitions.labels)), len(transitions.here)
    key, draws = jax.random.split(jax.random.key(seed))
    trained, fixed = _starting_network(data, heads[0] * heads[1], kind, key)
    # In units of a usual step's reward, so that no option outweighs another.
    units = np.sqrt(np.mean((values[transitions.there] - values[transitions.here]) ** 2, axis=0))
    scaled = (values / np.where(units > 0, units, 1.0)).astype(np.float32)
    recorded = (transitions.here, transitions.there, transitions.actions, ~transitions.terminal)
    arrays = jax.tree.map(jnp.asarray, (data.observations, scaled, *recorded))
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, steps))

    def action_values(weights: Any, batch: "jax.Array") -> "jax.Array":
        return eqx.combine(weights, fixed)(batch).reshape(len(batch), *heads)

    def errors(weights: Any, average: Any, arrays: Any, drawn: "jax.Array") -> "jax.Array":
        observations, climbed, *rest = arrays
        now, then, actions, going_on = (part[drawn] for part in rest)
        ahead = jnp.maximum(action_values(average, observations[then]).max(axis=2), 0.0)
        wanted = climbed[then] - climbed[now] + discount * going_on[:, None] * ahead
        taken = jnp.take_along_axis(action_values(weights, observations[now]), actions[:, None, None], axis=2)
        return jnp.mean((taken[:, :, 0] - wanted) ** 2, axis=0)

    @jax.jit
    def fit(start: Any, arrays: Any) -> tuple[Any, "jax.Array"]:
        def step(carry: Any, number: "jax.Array") -> tuple[Any, None]:
            weights, average, state = carry
            drawn = jax.random.randint(jax.random.fold_in(draws, number), (BATCH,), 0, count)
            slope = jax.grad(lambda new: errors(new, average, arrays, drawn).mean())(weights)
            updates, state = optimizer.update(slope, state)
            weights = optax.apply_updates(weights, updates)
            average = jax.tree.map(lambda old, new: old + AVERAGING * (new - old), average, weights)
            return (weights, average, state), None

        (_, average, _), _ = jax.lax.scan(step, (start, start, optimizer.init(start)), jnp.arange(steps))
        sample = jax.random.randint(jax.random.fold_in(draws, steps), (ERROR_SAMPLE,), 0, count)
        return average, jnp.sqrt(errors(average, average, arrays, sample))

    average, left = fit(trained, arrays)
    if not np.isfinite(left).all():
        raise DataError("the action values did not stay finite; scale the observations, or take another encoder")
    evaluate = jax.jit(lambda observation: action_values(average, observation[None])[0])
    return _Network(data.observation_shape, evaluate), np.asarray(left)


def _starting_network(data: Trajectories, outputs: int, kind: str, key: Any) -> tuple[Any, Any]:
    """The trained and the fixed part of a network that is zero everywhere.

    Zero is the value of the goal, and what a random network has there is slow to vanish.
    """
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from lapwing.encoders import build_encoder, encoder_statistics, trainable_filter

    statistics = encoder_statistics(kind, data.observations, data.visits() if data.has_table else None)
    module = build_encoder(kind, data.observation_shape, outputs, key, statistics=statistics, hidden=HIDDEN).module
    zeros = jax.tree.map(jnp.zeros_like, module.network.layers[-1])
    module = eqx.tree_at(lambda one: one.network.layers[-1], module, zeros)
    trained, fixed = eqx.partition(module, trainable_filter(module))
    return trained, fixed


# --- checks at the border ------------------------------------------------------------------------------------------


def _checked_kind(encoder: str, data: Trajectories, transitions: RecordedTransitions) -> str:
    from lapwing.encoders import ENCODERS, default_kind

    if encoder not in (known := ("auto", *ENCODERS)):
        raise UnknownNameError(f"no encoder {shown(encoder)}; {did_you_mean(str(encoder), known)}")
    if encoder == "table" and not data.has_table:
        raise DataError("these observations hardly repeat, so they make no table; take encoder='auto' for a network")
    if encoder != "auto":
        return encoder
    pairs = len(data.observations) * len(transitions.labels)
    counted = data.has_table and len(transitions.here) >= MIN_TRIES * pairs
    return "table" if counted else default_kind(data.observation_shape)


def _component_values(
    model: LaplacianRepresentation, data: Trajectories, transitions: RecordedTransitions, chosen: list[int]
) -> NDArray[np.float64]:
    """(rows, k) the chosen components at the observations of the data; 0 where the table has rows of no transition."""
    seen = np.unique(np.append(transitions.here, transitions.there))
    blocks = np.array_split(seen, -(-len(seen) // CHUNK_ROWS))
    values = np.zeros((len(data.observations), len(chosen)))
    values[seen] = np.concatenate([model.transform(data.observations[rows]) for rows in blocks])[
        :, np.subtract(chosen, 1)
    ]
    if bad := int((~np.isfinite(values)).any(axis=1).sum()):
        raise DataError(f"the representation is not finite at {bad:,} of {len(seen):,} observations; learn it again")
    return values
