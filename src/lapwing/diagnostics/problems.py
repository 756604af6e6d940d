"""Whether a result may be trusted: what can be wrong with it, by name, with what was seen and what to do."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lapwing.checks import shown
from lapwing.diagnostics.certificate import LARGEST_ANGLE, LARGEST_GRAM_ERROR, NOT_CONVERGED, TOO_FEW_DATA, Certificate
from lapwing.errors import LapwingError

DIVERGED = "diverged"
NOT_FINITE = "not finite"
COLLAPSED = "collapsed"
DEAD = "dead components"
DUALS = "duals at their bounds"
ONE_STATE = "one state"
ABOVE_RANK = "above the rank"

# Most serious first, and printed in this order.
NAMES = (NOT_FINITE, DIVERGED, COLLAPSED, DEAD, DUALS, ONE_STATE, ABOVE_RANK, TOO_FEW_DATA, NOT_CONVERGED)

# Where a model keeps what was seen while it was made.
RECORD = "health"


@dataclass(frozen=True)
class Problem:
    """One reason not to trust a result.

    Attributes:
        name: one of :data:`NAMES`.
        components: which ones, counted from 1; none where it is about all of them.
        words: what was seen, with numbers.
        advice: what to do about it.

    Example:
        >>> str(Problem("one state", (), "all observations are the same", "collect where something changes"))
        'one state: all observations are the same; collect where something changes'
    """

    name: str
    components: tuple[int, ...]
    words: str
    advice: str

    def __post_init__(self) -> None:
        """Refuse a name outside the vocabulary."""
        if self.name not in NAMES:
            raise LapwingError(f"no problem is called {self.name!r}; known: {', '.join(NAMES)}")

    @property
    def untrusted(self) -> bool:
        """Whether the result must not be trusted; one that has not converged is only what few steps give."""
        return self.name != NOT_CONVERGED

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON types."""
        return {**asdict(self), "components": list(self.components)}

    def __str__(self) -> str:
        """One line."""
        return f"{self.name}: {self.words}; {self.advice}"


class ProblemError(LapwingError):
    """A problem that leaves no result at all; ``problem`` is the same in parts."""

    def __init__(self, problem: Problem) -> None:
        """Keep the problem; its line is the message."""
        super().__init__(str(problem))
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        """Its words alone travel between processes."""
        return LapwingError, (str(self),)


def above_the_rank(dim: int, rank: int, what: str) -> Problem:
    """More components asked for than there are directions."""
    return Problem(
        ABOVE_RANK, (), f"dim={shown(dim)} is larger than the number of {what}, {rank}", f"ask for at most {rank}"
    )


def one_state() -> Problem:
    """Data in which nothing ever changes."""
    return Problem(
        ONE_STATE,
        (),
        "all observations of this data set are the same, so there is nothing to tell apart",
        "collect where something changes, or look at how observations were recorded",
    )


def find_problems(
    mu: NDArray[np.float64],
    arrays: Iterable[NDArray[Any]],
    certificate: Certificate | None,
    metadata: dict[str, Any],
) -> list[Problem]:
    """Everything that speaks against a result, most serious first.

    Args:
        mu: its eigenvalues.
        arrays: what its components are computed from.
        certificate: where it can be judged.
        metadata: of the result; :data:`RECORD` holds what was seen while it was made.
    """
    found = recorded_problems(metadata)
    unknown = np.flatnonzero(~np.isfinite(mu)) + 1
    spoilt = sum(not np.isfinite(array).all() for array in arrays if np.issubdtype(array.dtype, np.inexact))
    if len(unknown) or spoilt:
        what = f"eigenvalues of {numbered(unknown)}" if len(unknown) else f"{spoilt} of the arrays it is computed from"
        words = f"{what} hold NaN or infinity"
        found.append(Problem(NOT_FINITE, tuple(unknown.tolist()), words, "make it again with a lower learning rate"))
    if certificate is not None:
        found += [one for one in (_too_few_data(certificate, metadata), _not_converged(certificate, metadata)) if one]
    return sorted(found, key=lambda problem: NAMES.index(problem.name))


def recorded_problems(metadata: dict[str, Any]) -> list[Problem]:
    """What was seen while a result was made; an error where the record is damaged."""
    record = metadata.get(RECORD)
    if record is None:
        return []
    try:
        return [
            Problem(str(one["name"]), tuple(int(i) for i in one["components"]), str(one["words"]), str(one["advice"]))
            for one in record["problems"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise LapwingError(
            f"the record of problems lacks or garbles a field ({error}); model.json is damaged"
        ) from None


def numbered(components: Sequence[int] | NDArray[Any]) -> str:
    """Component numbers to read, runs of neighbours shortened.

    Example:
        >>> numbered([2, 3, 4, 7])
        'components 2-4 and 7'
    """
    parts: list[list[int]] = []
    for number in (int(one) for one in components):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = [str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts]
    listed = " and ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)
    return f"component{'s' if len(components) != 1 else ''} {listed}"


def _too_few_data(certificate: Certificate, metadata: dict[str, Any]) -> Problem | None:
    flagged = _having(certificate, TOO_FEW_DATA)
    if not flagged:
        return None
    sines = certificate.data_angles
    words = (
        f"noise in the data may turn {numbered(flagged)} by a sine of up to {max(sines[i - 1] for i in flagged):.2g}, "
        f"and more than {LARGEST_ANGLE:g} is not trusted"
    )
    record = metadata.get(RECORD) or {}
    unseen = _numbers(record.get("unseen"), len(sines))
    transitions = record.get("transitions") or metadata.get("transitions")
    # What the judge could not see does not shrink with more data; the rest does, with the square root of their number.
    most = max(math.sqrt(max(sines[i - 1] ** 2 - unseen[i - 1] ** 2, 0.0)) for i in flagged)
    room = LARGEST_ANGLE**2 - max(unseen[i - 1] for i in flagged) ** 2
    fewer = f"ask for at most {flagged[0] - 1} component{'s' if flagged[0] > 2 else ''}" if flagged[0] > 1 else ""
    more = "collect more data"
    if room <= 0:
        more = "" if fewer else more
    elif type(transitions) is int and transitions > 0 and most < 1.0:
        wanted = _two_digits(transitions * max(most**2 / room, 1.0))
        more = f"collect about {wanted:,} transitions in place of {transitions:,}"
    return Problem(TOO_FEW_DATA, flagged, words, ", or ".join(part for part in (more, fewer) if part))


def _not_converged(certificate: Certificate, metadata: dict[str, Any]) -> Problem | None:
    flagged = _having(certificate, NOT_CONVERGED)
    if not flagged:
        return None
    steps = metadata.get("steps")
    made = f"; {steps:,} were made" if isinstance(steps, int) else ""
    advice = f"give more steps{made}" if metadata.get("method") == "learn" else "ask for fewer components"
    angles = [certificate.angle_bounds[i - 1] for i in flagged]
    if not np.isfinite([certificate.residuals[i - 1] for i in flagged]).all():
        words = f"{numbered(flagged)} cannot be judged, for no episode has two transitions"
        return Problem(NOT_CONVERGED, flagged, words, "collect longer episodes")
    if not certificate.orthonormality_error <= LARGEST_GRAM_ERROR:
        words = f"components are not orthonormal (off by {certificate.orthonormality_error:.2g})"
        return Problem(NOT_CONVERGED, flagged, words, f"{advice}, or refine the span (refine='ritz')")
    worst = max(angles)
    size = f"by a sine of up to {worst:.2g}" if worst < 1 else "by anything"
    words = (
        f"{numbered(flagged)} may be off {size}" if worst > LARGEST_ANGLE else f"{numbered(flagged)} are out of order"
    )
    return Problem(NOT_CONVERGED, flagged, words, advice)


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
