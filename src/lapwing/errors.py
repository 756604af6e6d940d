"""Errors written for the person who reads them: what was wrong, where, and what to do."""

import difflib
from collections.abc import Iterable

LONGEST_COMPARED = 200


class LapwingError(ValueError):
    """Bad input or a bad file. The message says what was wrong and what to do about it."""


class CannotWriteError(LapwingError):
    """A disk that is full, read-only or gone. What was there before is untouched."""


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The known names most like ``name``, best first, whatever the case.

    Example:
        >>> nearest_names("gridrom-1", ["GridRoom-1", "FourRooms"])
        ['GridRoom-1']
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    # No name of ours is that long, and comparing a book with it would take as long as reading one.
    matches = difflib.get_close_matches(name[:LONGEST_COMPARED].lower(), by_lower, n=count, cutoff=0.55)
    return [by_lower[match] for match in matches]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence fragment that offers the nearest names, or lists all when none is near."""
    known = sorted(known)
    near = nearest_names(name, known)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"known: {', '.join(known)}"


class LapwingWarning(UserWarning):
    """Something allowed that the reader should know of, such as a world in unconnected parts."""


class UntrustedWarning(LapwingWarning):
    """A result that must not be trusted; ``model.problems()`` says why."""
