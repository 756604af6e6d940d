"""Problems of data, of training and of results: pure functions of numbers that name what is wrong and what to do."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.data import distinct_rows
from lapwing.data.trajectories import all_finite
from lapwing.diagnostics.certificate import LARGEST_ANGLE, LARGEST_GRAM_ERROR, NOT_CONVERGED, TOO_FEW_DATA, Certificate
from lapwing.errors import ArgumentError, DamagedFileError, LapwingError

DIVERGED = "diverged"
NOT_FINITE = "not finite"
COLLAPSED = "collapsed"
DEAD = "dead components"
DUALS = "duals at their bounds"
ONE_STATE = "one state"
DIRECTED = "directed dynamics"
ABOVE_RANK = "above the rank"
PRECISION = "lost precision"

# Most serious first, and printed in this order.
NAMES = (
    NOT_FINITE, DIVERGED, COLLAPSED, DEAD, DUALS, ONE_STATE, ABOVE_RANK, PRECISION, DIRECTED, TOO_FEW_DATA,
    NOT_CONVERGED,
)  # fmt: skip

# The key of a model's metadata that holds what was found while it was made.
RECORD = "health"

# Smallest mean square relative to the largest, largest cosine, and the share of the outputs that varies. Slow networks
# were seen at 0.02 (after 2,000 steps), 0.999 and 0.003; those that had died out below 1e-3, above 0.9999, below 6e-4.
DEAD_SQUARE = 1e-3
COPY_COSINE = 0.9999
CONSTANT_SHARE = 1e-3

# Before so many steps outputs are still near their initial values: nearly constant, and for longer small and alike.
EARLIEST_COLLAPSE = 200
EARLIEST_DEATH = 1000

# Changes of observations below which squares of single precision vanish.
SMALLEST_EXTENT = 1e-18

# Mean squares should be 1. Training does not recover from an error of LOST_SQUARE, nor from one of WORSE_SQUARE where
# the error has been WORSE_TIMES smaller before.
LOST_SQUARE = 1e6
WORSE_SQUARE = 10.0
WORSE_TIMES = 100.0


@dataclass(frozen=True)
class Problem:
    """One reason not to trust a result.

    Attributes:
        name: one of :data:`NAMES`.
        components: which ones, counted from 1; none where it is about all of them.
        message: what was seen, with numbers.
        advice: what to do about it.

    Example:
        >>> str(Problem("one state", (), "all observations are the same", "collect where something changes"))
        'one state: all observations are the same; collect where something changes'
    """

    name: str
    components: tuple[int, ...]
    message: str
    advice: str

    def __post_init__(self) -> None:
        """Refuse an unknown name."""
        if self.name not in NAMES:
            raise ArgumentError(f"no problem is called {self.name!r}; known: {', '.join(NAMES)}")

    @property
    def untrusted(self) -> bool:
        """Whether the result must not be trusted; one that has not converged is only the result of few steps."""
        return self.name != NOT_CONVERGED

    def as_dict(self) -> dict[str, Any]:
        """The problem as JSON types.

        Returns:
            Its fields.
        """
        return {**asdict(self), "components": list(self.components)}

    def __str__(self) -> str:
        """One line."""
        return f"{self.name}: {self.message}; {self.advice}"


class ProblemError(LapwingError):
    """A problem that leaves no result at all; ``problem`` is the same in parts."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem; its line is the message."""
        super().__init__(str(problem))
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the message travels between processes."""
        return LapwingError, (str(self),)


def above_the_rank(dim: int, rank: int, what: str) -> Problem:
    """More components asked for than there are directions.

    Args:
        dim: asked for.
        rank: how many there are.
        what: is counted, in the plural.

    Returns:
        The problem.
    """
    message = f"dim={shown(dim)} is larger than the number of {what}, {rank}"
    return Problem(ABOVE_RANK, (), message, f"ask for at most {rank}")


def one_state() -> Problem:
    """Data in which nothing ever changes.

    Returns:
        The problem.
    """
    message = "all observations of this data set are the same, so there is nothing to tell apart"
    return Problem(ONE_STATE, (), message, "collect where something changes, or look at how observations were recorded")


def directed(share: float, discounts: Sequence[float]) -> Problem:
    """Directed dynamics learned with lags of many steps, over which rotating components cancel.

    Args:
        share: of the asymmetry, from :func:`lapwing.data.directedness.directedness`.
        discounts: of the lags.

    Returns:
        The problem.
    """
    return Problem(
        DIRECTED,
        (),
        f"steps are not matched by their reverse (asymmetry {share:.2g}), and over the lags of discounts "
        f"{', '.join(f'{discount:g}' for discount in discounts)} what rotates cancels",
        "learn with discounts=(0.1,), whose lags are hardly longer than one step",
    )


def unlearnable(observations: NDArray[Any], num_states: int | None, dim: int) -> Problem | None:
    """What makes it impossible to learn so many components, found before any work.

    Args:
        observations: (n, ...) of all states.
        num_states: how many different states there are, where that is known.
        dim: components asked for.

    Returns:
        The problem, or None.
    """
    if num_states is not None and dim > num_states:
        return above_the_rank(dim, num_states, "states")
    if not all_finite(observations):
        row = int(np.argmax(~np.isfinite(np.asarray(observations)).reshape(len(observations), -1).all(axis=1)))
        message = f"the observation of state {row} holds NaN or infinity"
        return Problem(NOT_FINITE, (), message, "remove or repair it before learning")
    distinct = distinct_rows(observations, max(dim, 2))
    if distinct < 2:
        return one_state()
    if np.issubdtype(observations.dtype, np.inexact) and _lost_in_single_precision(observations):
        message = "the observations change by less than networks resolve, which compute with seven digits"
        return Problem(PRECISION, (), message, "subtract the mean of each entry, and divide by its standard deviation")
    return above_the_rank(dim, distinct, "different observations") if distinct < dim else None


def _lost_in_single_precision(observations: NDArray[Any]) -> bool:
    """Whether every entry that changes does so by a hundred-thousandth of its size, or by less than can be squared."""
    low, high = observations.min(axis=0).astype(np.float64), observations.max(axis=0).astype(np.float64)
    extent, size = high - low, np.maximum(np.abs(low), np.abs(high))
    lost = (extent < 1e-5 * size) | (extent < SMALLEST_EXTENT)
    return bool(lost[extent > 0].all())


def unreadable(gram: NDArray[np.float64], cross: NDArray[np.float64]) -> Problem | None:
    """Outputs that are NaN or infinite somewhere on the data, or zero everywhere.

    Args:
        gram: (d, d) ``<u_j, u_k>``.
        cross: (d, d) ``<u_j, f(P) u_k>``.

    Returns:
        The problem, or None.
    """
    if not (np.isfinite(gram).all() and np.isfinite(cross).all()):
        message = "the network's outputs are NaN or infinite on some of the data: it has diverged"
        return Problem(NOT_FINITE, (), message, "lower the learning rate, or look at your own network")
    if not (np.diag(gram) > 0).any():
        message = "the network's outputs are zero on all of the data"
        return Problem(COLLAPSED, (), message, "strengthen the constraints, or look at your own network")
    return None


def output_problems(
    gram: NDArray[np.float64],
    sample: NDArray[np.float64],
    dim: int,
    refined: bool,
    history: Sequence[Mapping[str, float]],
    settings: Mapping[str, float],
) -> list[Problem]:
    """Outputs of a network that exploded, are constant, vanished or copy each other.

    Args:
        gram: (m, m) inner products of the outputs before refinement, in the order of components.
        sample: (n, m) outputs on the data.
        dim: components asked for.
        refined: whether components are rotations of the outputs.
        history: rows of progress, with ``step`` and ``error``.
        settings: hyper-parameters by name, for the advice.

    Returns:
        Problems.
    """
    steps = history[-1]["step"] if history else 0
    constant = _constant(sample, dim, settings) if steps >= EARLIEST_COLLAPSE else None
    dead = _dead(gram, dim, refined, settings) if constant is None and steps >= EARLIEST_DEATH else None
    return [one for one in (_exploded(gram, history), constant, dead) if one is not None]


def objective_problems(
    eigenvalues: NDArray[Any] | None, at_bounds: Mapping[str, Any], dim: int, settings: Mapping[str, float]
) -> list[Problem]:
    """Eigenvalues of an objective that are not finite, and quantities of it that have stopped at a bound.

    Args:
        eigenvalues: (d,) the objective's own estimate, if any.
        at_bounds: by name, booleans that say where it stopped: (d,) or scalar.
        dim: components asked for.
        settings: hyper-parameters by name, for the advice.

    Returns:
        Problems.
    """
    found = []
    unknown = np.flatnonzero(~np.isfinite([] if eigenvalues is None else eigenvalues[:dim])) + 1
    if len(unknown):
        message = f"the objective gives NaN or infinity as eigenvalue of {numbered(unknown)}"
        advice = "look at your own objective's eigenvalues"
        found.append(Problem(NOT_FINITE, tuple(unknown.tolist()), message, advice))
    seen: list[str] = []
    stopped: set[int] = set()
    for name, reached in ((name, np.asarray(flags)) for name, flags in at_bounds.items()):
        components = np.flatnonzero(reached[:dim]) + 1 if reached.ndim else np.empty(0, dtype=int)
        stopped |= set(components.tolist())
        if len(components):
            seen.append(f"{name} of {numbered(components)} stopped at their bound")
        elif not reached.ndim and reached:
            seen.append(f"the {name} stopped growing at its maximum")
    if seen:
        rates = ["dual_rate", "learning_rate"] if stopped else ["learning_rate"]
        advice = f"lower {_named(rates, settings)}"
        found.append(Problem(DUALS, tuple(sorted(stopped)), " and ".join(seen), advice))
    return found


def diverged(steps: int) -> Problem:
    """Learning that met NaN or infinity; what is left is from before.

    Args:
        steps: after which it was still good.

    Returns:
        The problem.
    """
    message = (
        f"the loss or the weights were no longer finite after step {steps:,}, and this is what was learned until then"
    )
    return Problem(DIVERGED, (), message, "lower learning_rate or barrier_rate")


def collapsed(found: int, dim: int) -> Problem:
    """Fewer independent outputs than components.

    Args:
        found: independent ones.
        dim: asked for.

    Returns:
        The problem.
    """
    message = f"the network collapsed to {found} independent components of the {dim} asked for"
    advice = "lower learning_rate or dual_rate, raise barrier, or ask for fewer components"
    return Problem(COLLAPSED, tuple(range(found + 1, dim + 1)), message, advice)


def find_problems(
    mu: NDArray[np.float64], arrays: Iterable[NDArray[Any]], certificate: Certificate | None, metadata: dict[str, Any]
) -> list[Problem]:
    """Everything that is wrong with a result, most serious first.

    Args:
        mu: (d,) its eigenvalues.
        arrays: what its components are computed from.
        certificate: where there is one.
        metadata: of the result; :data:`RECORD` holds what was found while it was made.

    Returns:
        Problems, sorted.
    """
    found = recorded_problems(metadata)
    unknown = np.flatnonzero(~np.isfinite(mu)) + 1
    spoilt = sum(not np.isfinite(array).all() for array in arrays if np.issubdtype(array.dtype, np.inexact))
    if len(unknown) or spoilt:
        what = f"eigenvalues of {numbered(unknown)}" if len(unknown) else f"{spoilt} of the arrays it is computed from"
        message = f"{what} hold NaN or infinity"
        found.append(Problem(NOT_FINITE, tuple(unknown.tolist()), message, "make it again with a lower learning rate"))
    if certificate is not None:
        found += [one for one in (_too_few_data(certificate, metadata), _not_converged(certificate, metadata)) if one]
    return sorted(found, key=lambda problem: NAMES.index(problem.name))


def recorded_problems(metadata: dict[str, Any]) -> list[Problem]:
    """What was found while a result was made.

    Args:
        metadata: of the result.

    Returns:
        Problems; an error where the record is damaged.
    """
    record = metadata.get(RECORD)
    if record is None:
        return []
    try:
        # Version 0.1 wrote the message as "words".
        known = [{"message" if key == "words" else key: one[key] for key in one} for one in record["problems"]]
        return msgspec.convert(known, list[Problem])
    except (KeyError, TypeError, msgspec.ValidationError) as error:
        raise DamagedFileError(
            f"a field of the record of problems is missing or invalid ({error}); model.json is damaged"
        ) from None


def numbered(components: Sequence[int] | NDArray[Any]) -> str:
    """Component numbers as text, runs of neighbours shortened.

    Args:
        components: counted from 1, ascending.

    Returns:
        The text.

    Example:
        >>> numbered([2, 3, 4, 7])
        'components 2-4 and 7'
    """
    # Neighbours are equally far ahead of their places in the list.
    runs = [[one for _, one in run] for _, run in groupby(enumerate(components), lambda pair: pair[1] - pair[0])]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    listed = " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
    return f"component{'s' if len(components) != 1 else ''} {listed}"


def _exploded(gram: NDArray[np.float64], history: Sequence[Mapping[str, float]]) -> Problem | None:
    worst = float(np.abs(gram - np.eye(len(gram))).max())
    best = min((row["error"] for row in history if "error" in row), default=worst)
    if not (worst > LOST_SQUARE or (worst > WORSE_SQUARE and worst > WORSE_TIMES * best)):
        return None
    before = f"; they were off by {best:.2g} before" if worst > WORSE_TIMES * best else ""
    message = f"outputs grew to a mean square of {float(np.diag(gram).max()):.2g}, where it should be 1{before}"
    return Problem(DIVERGED, (), message, "lower learning_rate")


def _constant(sample: NDArray[np.float64], dim: int, settings: Mapping[str, float]) -> Problem | None:
    squares, varying = (sample**2).mean(axis=0).sum(), sample.var(axis=0).sum()
    if dim < 2 or varying >= CONSTANT_SHARE * squares:
        return None
    message = f"the outputs are constant over the data: {varying / squares:.1g} of their mean square varies"
    return Problem(COLLAPSED, tuple(range(2, dim + 1)), message, _stronger(settings))


def _dead(gram: NDArray[np.float64], dim: int, refined: bool, settings: Mapping[str, float]) -> Problem | None:
    norms = np.diag(gram)
    sizes = np.sqrt(np.maximum(norms, 1e-300))
    cosines = np.abs(gram) / np.outer(sizes, sizes)
    vanished = norms < DEAD_SQUARE * norms.max()
    copies = (np.tril(cosines, -1) > COPY_COSINE).any(axis=1) & ~vanished
    # Rotated inside the span, a component is no longer one output: what counts is whether enough of them live.
    alive = int((~(vanished | copies)).sum())
    lost = np.flatnonzero(vanished | copies)[: len(norms)] + 1
    numbers = tuple(range(alive + 1, dim + 1)) if refined else tuple(int(i) for i in lost if i <= dim)
    if not numbers:
        return None
    kinds = [f"{vanished.sum()} vanished (mean square below {DEAD_SQUARE:g} of the largest)"] if vanished.any() else []
    kinds += [f"{copies.sum()} copied another"] if copies.any() else []
    message = f"of {len(norms)} outputs {' and '.join(kinds)}, which leaves {numbered(numbers)} undetermined"
    return Problem(DEAD, numbers, message, f"{_stronger(settings)}, or ask for at most {max(numbers[0] - 1, 1)}")


def _stronger(settings: Mapping[str, float]) -> str:
    raised = f"raise {_named(['barrier'], settings)} or " if "barrier" in settings else ""
    return f"{raised}lower {_named(['learning_rate'], settings)}"


def _named(names: Sequence[str], settings: Mapping[str, float]) -> str:
    """Hyper-parameters with their present values, as far as they are known."""
    return " or ".join(f"{name} ({settings[name]:g})" if name in settings else name for name in names)


def _too_few_data(certificate: Certificate, metadata: dict[str, Any]) -> Problem | None:
    flagged = _having(certificate, TOO_FEW_DATA)
    if not flagged:
        return None
    sines = certificate.data_angles
    message = (
        f"noise in the data may turn {numbered(flagged)} by a sine of up to {max(sines[i - 1] for i in flagged):.2g}, "
        f"and more than {LARGEST_ANGLE:g} is not trusted"
    )
    record = metadata.get(RECORD) or {}
    unseen = _numbers(record.get("unseen"), len(sines))
    transitions = record.get("transitions") or metadata.get("transitions")
    # What the moments could not resolve does not shrink with more data; the rest does, with their square root.
    most = max(math.sqrt(max(sines[i - 1] ** 2 - unseen[i - 1] ** 2, 0.0)) for i in flagged)
    allowed = LARGEST_ANGLE**2 - max(unseen[i - 1] for i in flagged) ** 2
    fewer = f"ask for at most {flagged[0] - 1} component{'s' if flagged[0] > 2 else ''}" if flagged[0] > 1 else ""
    more = "collect more data"
    if allowed <= 0:
        more = "" if fewer else more
    elif type(transitions) is int and transitions > 0 and most < 1.0:
        wanted = _two_digits(transitions * max(most**2 / allowed, 1.0))
        more = f"collect about {wanted:,} transitions in place of {transitions:,}"
    return Problem(TOO_FEW_DATA, flagged, message, ", or ".join(part for part in (more, fewer) if part))


def _not_converged(certificate: Certificate, metadata: dict[str, Any]) -> Problem | None:
    flagged = _having(certificate, NOT_CONVERGED)
    if not flagged:
        return None
    steps = metadata.get("steps")
    made = f"; {steps:,} were made" if isinstance(steps, int) else ""
    advice = f"give more steps{made}" if metadata.get("method") == "learn" else "ask for fewer components"
    angles = [certificate.angle_bounds[i - 1] for i in flagged]
    if not np.isfinite([certificate.residuals[i - 1] for i in flagged]).all():
        message = f"{numbered(flagged)} cannot be assessed, because no episode has two transitions"
        return Problem(NOT_CONVERGED, flagged, message, "collect longer episodes")
    if not certificate.orthonormality_error <= LARGEST_GRAM_ERROR:
        message = f"components are not orthonormal (off by {certificate.orthonormality_error:.2g})"
        config = metadata.get("config")
        refined = isinstance(config, dict) and config.get("refine") == "ritz"
        also = "" if refined else ", or refine the span (refine='ritz')"
        return Problem(NOT_CONVERGED, flagged, message, advice + also)
    worst = max(angles)
    size = f"by a sine of up to {worst:.2g}" if worst < 1 else "by anything"
    message = (
        f"{numbered(flagged)} may be off {size}" if worst > LARGEST_ANGLE else f"{numbered(flagged)} are out of order"
    )
    return Problem(NOT_CONVERGED, flagged, message, advice)


def _having(certificate: Certificate, verdict: str) -> tuple[int, ...]:
    return tuple(number for number, word in enumerate(certificate.verdicts, start=1) if word == verdict)


def _numbers(given: Any, count: int) -> list[float]:
    """So many sines from a file, zeros where there are none."""
    usable = isinstance(given, list) and len(given) >= count and all(isinstance(one, (int, float)) for one in given)
    return [min(max(float(one), 0.0), 1.0) for one in given[:count]] if usable else [0.0] * count


def _two_digits(number: float) -> int:
    """Rounded up to two significant digits.

    Example:
        >>> _two_digits(12345.0)
        13000
    """
    unit = 10 ** max(math.floor(math.log10(number)) - 1, 0)
    return int(math.ceil(number / unit) * unit)
