"""What is seen while learning that speaks against its result: data not to be learned from, outputs gone wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.data.distinct import distinct_rows
from lapwing.data.trajectories import Trajectories
from lapwing.diagnostics.problems import (
    COLLAPSED,
    DEAD,
    DIVERGED,
    DUALS,
    NOT_FINITE,
    Problem,
    ProblemError,
    above_the_rank,
    numbered,
    one_state,
)
from lapwing.objectives import Details
from lapwing.operators.operator import Operator
from lapwing.training.config import LearnConfig
from lapwing.training.forms import Forms

# Smallest mean square relative to the largest, largest cosine, and the share of the outputs that varies. Slow networks
# were seen at 0.02 (after 2,000 steps), 0.999 and 0.003; those that had died out below 1e-3, above 0.9999, below 6e-4.
DEAD_SQUARE = 1e-3
COPY_COSINE = 0.9999
CONSTANT_SHARE = 1e-3

# Before so many steps outputs are still what they were born as: nearly constant, and for longer small and all alike.
EARLIEST_COLLAPSE = 200
EARLIEST_DEATH = 1000

# Mean squares should be 1. Off by this much there is no way back; nor by less, if they were a hundred times better.
LOST_SQUARE = 1e6
WORSE_SQUARE = 10.0
WORSE_TIMES = 100.0


def refuse_unlearnable(data: Trajectories | Operator, operator: Operator | None, dim: int) -> None:
    """An error that names the problem, before any work, where the data cannot give ``dim`` components."""
    observations = (operator or data).observations
    if operator is not None and dim > operator.num_states:
        raise ProblemError(above_the_rank(dim, operator.num_states, "states"))
    if np.issubdtype(observations.dtype, np.inexact) and not np.isfinite(observations).all():
        row = int(np.argmax(~np.isfinite(np.asarray(observations)).reshape(len(observations), -1).all(axis=1)))
        words = f"the observation of state {row} holds NaN or infinity"
        raise ProblemError(Problem(NOT_FINITE, (), words, "remove or repair it before learning"))
    distinct = distinct_rows(observations, max(dim, 2))
    if distinct < 2:
        raise ProblemError(one_state())
    if distinct < dim:
        raise ProblemError(above_the_rank(dim, distinct, "different observations"))


def refuse_unreadable(forms: Forms) -> None:
    """An error where the outputs are NaN or infinite somewhere on the data, or zero everywhere."""
    if not all(np.isfinite(form).all() for form in forms[:2]):
        words = "the network's outputs are NaN or infinite on some of the data: it has diverged"
        raise ProblemError(Problem(NOT_FINITE, (), words, "lower the learning rate, or look at your own network"))
    if not (np.diag(forms.gram) > 0).any():
        words = "the network's outputs are zero on all of the data"
        raise ProblemError(Problem(COLLAPSED, (), words, "raise barrier, or look at your own network"))


def training_problems(
    forms: Forms,
    sample: NDArray[np.float64],
    details: Details,
    config: LearnConfig,
    history: Sequence[dict[str, float]] = (),
    readings: NDArray[Any] | None = None,
) -> list[Problem]:
    """What the outputs of a network and the state of its objective say against the representation read from them.

    Args:
        forms: of the outputs before refinement, in the order of components.
        sample: (n, d) outputs on the data.
        details: of the objective's last state.
        config: what it was trained with.
        history: rows of reports.
        readings: the objective's own of the eigenvalues.
    """
    found = [_unread(readings, config.dim), _exploded(forms, history)]
    steps = history[-1]["step"] if history else 0
    constant = _constant(sample, config) if steps >= EARLIEST_COLLAPSE else None
    found.append(_dead(forms, config) if constant is None and steps >= EARLIEST_DEATH else constant)
    return [one for one in (*found, _at_bounds(details, config)) if one is not None]


def diverged(steps: int) -> Problem:
    """Learning that met NaN or infinity; what is left is from before."""
    words = (
        f"the loss or the weights were no longer finite after step {steps:,}, and this is what was learned until then"
    )
    return Problem(DIVERGED, (), words, "lower learning_rate or barrier_rate")


def collapsed(found: int, dim: int) -> Problem:
    """Fewer independent outputs than components."""
    words = f"the network collapsed to {found} independent components of the {dim} asked for"
    advice = "lower learning_rate or dual_rate, raise barrier, or ask for fewer components"
    return Problem(COLLAPSED, tuple(range(found + 1, dim + 1)), words, advice)


def _unread(readings: NDArray[Any] | None, dim: int) -> Problem | None:
    unknown = np.flatnonzero(~np.isfinite([] if readings is None else readings[:dim])) + 1
    if not len(unknown):
        return None
    words = f"the objective reads NaN or infinity as eigenvalue of {numbered(unknown)}"
    return Problem(NOT_FINITE, tuple(int(i) for i in unknown), words, "look at your own objective's eigenvalues")


def _exploded(forms: Forms, history: Sequence[dict[str, float]]) -> Problem | None:
    errors = np.abs(forms.gram - np.eye(len(forms.gram))).max(axis=0)
    worst = float(errors.max())
    best = min((row["error"] for row in history if "error" in row), default=worst)
    if not (worst > LOST_SQUARE or (worst > WORSE_SQUARE and worst > WORSE_TIMES * best)):
        return None
    before = f"; they were off by {best:.2g} before" if worst > WORSE_TIMES * best else ""
    words = f"outputs grew to a mean square of {float(np.diag(forms.gram).max()):.2g}, where it should be 1{before}"
    return Problem(DIVERGED, (), words, "lower learning_rate")


def _constant(sample: NDArray[np.float64], config: LearnConfig) -> Problem | None:
    squares, varying = (sample**2).mean(axis=0).sum(), sample.var(axis=0).sum()
    if config.dim < 2 or varying >= CONSTANT_SHARE * squares:
        return None
    words = f"the outputs are constant over the data: {varying / squares:.1g} of their mean square varies"
    return Problem(COLLAPSED, tuple(range(2, config.dim + 1)), words, _stronger(config))


def _dead(forms: Forms, config: LearnConfig) -> Problem | None:
    norms = np.diag(forms.gram)
    sizes = np.sqrt(np.maximum(norms, 1e-300))
    cosines = np.abs(forms.gram) / np.outer(sizes, sizes)
    vanished = norms < DEAD_SQUARE * norms.max()
    copies = (np.tril(cosines, -1) > COPY_COSINE).any(axis=1) & ~vanished
    alive = int((~(vanished | copies)).sum())
    if config.refine == "ritz":
        # Rotated inside the span, a component is no longer one output: what counts is whether enough of them live.
        numbers = range(alive + 1, config.dim + 1)
    else:
        numbers = [int(i) + 1 for i in np.flatnonzero(vanished | copies) if i < config.dim]  # type: ignore[assignment]
    if not len(numbers):
        return None
    kinds = [f"{vanished.sum()} vanished (mean square below {DEAD_SQUARE:g} of the largest)"] if vanished.any() else []
    kinds += [f"{copies.sum()} copied another"] if copies.any() else []
    words = f"of {len(norms)} outputs {' and '.join(kinds)}, so nothing stands behind {numbered(list(numbers))}"
    return Problem(DEAD, tuple(numbers), words, f"{_stronger(config)}, or ask for at most {max(numbers[0] - 1, 1)}")


def _at_bounds(details: Details, config: LearnConfig) -> Problem | None:
    """Quantities of the objective that have stopped at a bound; those without components are about all of them."""
    seen, numbers = [], set()
    for name, flags in details.at_bounds.items():
        reached = np.asarray(flags)
        if reached.ndim:
            components = np.flatnonzero(reached[: config.dim]) + 1
            numbers |= set(components.tolist())
            seen += [f"{name} of {numbered(components)} stopped at their bound"] if len(components) else []
        elif reached:
            seen.append(f"the {name} stopped growing at its maximum")
    if not seen:
        return None
    rates = ["dual_rate"] if numbers else []
    advice = f"lower {' or '.join([*rates, f'learning_rate ({config.learning_rate:g})'])}"
    return Problem(DUALS, tuple(sorted(numbers)), " and ".join(seen), advice)


def _stronger(config: LearnConfig) -> str:
    return f"raise barrier ({config.barrier:g}) or lower learning_rate ({config.learning_rate:g})"
