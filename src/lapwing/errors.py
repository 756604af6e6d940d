"""Errors and warnings of the package. Every message says what was wrong, where, and what to do."""

import difflib
from collections.abc import Iterable

__all__ = [
    "ArgumentError",
    "CannotWriteError",
    "ConvergenceWarning",
    "DamagedFileError",
    "DataError",
    "LapwingError",
    "LapwingWarning",
    "MissingExtraError",
    "UnknownNameError",
    "UntrustedWarning",
    "did_you_mean",
]

LONGEST_COMPARED = 200


class LapwingError(ValueError):
    """Bad input or a bad file; the base of all errors that the package raises on purpose."""


class ArgumentError(LapwingError):
    """A value passed by the caller that cannot be used: wrong type, range or combination."""


class UnknownNameError(ArgumentError):
    """A name that is not known: a world, preset, objective, option or study; the message offers the nearest."""


class DataError(LapwingError):
    """Experience or dynamics that nothing can be learned from: empty, inconsistent or not finite."""


class DamagedFileError(LapwingError):
    """A file that is torn, changed, of another format, or not written by this package."""


class CannotWriteError(LapwingError):
    """A disk that is full, read-only or gone. What was there before is untouched."""


class MissingExtraError(LapwingError):
    """An optional dependency that is not installed; the message has the pip command."""


class LapwingWarning(UserWarning):
    """Something allowed that the reader should know of, such as a world in unconnected parts."""


class ConvergenceWarning(LapwingWarning):
    """A result of too few steps; ``model.problems()`` says which components, and how far off they may be."""


class UntrustedWarning(LapwingWarning):
    """A result that must not be trusted; ``model.problems()`` says why."""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like ``name``, best first, whatever the case.

    Args:
        name: what was given.
        known: all valid names.
        count: how many to return at most.

    Returns:
        The nearest names; empty where none is near.

    Example:
        >>> nearest_names("gridrom-1", ["GridRoom-1", "FourRooms"])
        ['GridRoom-1']
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    # No name of ours is that long, and comparing a very long one takes quadratic time.
    matches = difflib.get_close_matches(name[:LONGEST_COMPARED].lower(), by_lower, n=count, cutoff=0.55)
    return [by_lower[match] for match in matches]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence fragment that offers the nearest names, or lists all when none is near.

    Args:
        name: what was given.
        known: all valid names.

    Returns:
        Text to append to an error message.
    """
    known = sorted(known)
    near = nearest_names(name, known)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known)}"
