"""Single values from the caller: numbers and paths as plain Python types, and how to show a wrong one in a message."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.errors import ArgumentError

LONGEST_SHOWN = 120
LONGEST_NAME = 255
LONGEST_PATH = 4096


def shown(value: Any) -> str:
    """A value as it stands in a message: its repr on one line, cut where it is long, and never an error of its own.

    Args:
        value: anything.

    Returns:
        Text of bounded length.

    Example:
        >>> shown("room:2x2"), len(shown("x" * 10**6)) < 200
        ("'room:2x2'", True)
    """
    try:
        text = repr(value)
    except Exception:  # a number of more than 4,300 digits has no text, and a repr may do anything
        return f"a {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}... ({len(text):,} characters)"


def as_whole(value: Any) -> int | None:
    """Any kind of whole number as a plain int, 1e6 included.

    Args:
        value: anything.

    Returns:
        The number; None for anything else, booleans included.

    Example:
        >>> as_whole(np.int64(3)), as_whole(1e6), as_whole(2.5), as_whole(True)
        (3, 1000000, None, None)
    """
    if _is_not_a_number(value):
        return None
    try:
        whole = int(value)
        return whole if bool(whole == value) else None
    except (TypeError, ValueError, OverflowError):
        return None


def as_real(value: Any) -> float | None:
    """Any kind of real number as a plain float, infinity and NaN included.

    Args:
        value: anything.

    Returns:
        The number; None for anything else.

    Example:
        >>> as_real(np.float32(0.5)), as_real("0.5"), as_real(1j)
        (0.5, None, None)
    """
    if _is_not_a_number(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def as_reals(values: "ArrayLike") -> NDArray[np.float64] | None:
    """Real numbers as an array.

    Args:
        values: of any shape.

    Returns:
        A float64 array; None where something else is among them.
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "biufO" or isinstance(values, np.ma.MaskedArray):
            return None
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_not_a_number(value: Any) -> bool:
    """Whether Python or NumPy would turn it into a number although it is not meant as one."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 or value.dtype.kind not in "iuf"
    return isinstance(value, (bool, np.bool_, str, bytes, complex, np.complexfloating))


def as_path(value: Any, what: str) -> Path:
    """A path from text or a path.

    Args:
        value: anything.
        what: what it is used for, for the message.

    Returns:
        The path, which need not exist.
    """
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentError(f"{what} must be a path, got {shown(value)}")
    path = Path(value)
    if "\0" in str(path):
        raise ArgumentError(f"{what} must be a path without NUL characters, got {shown(str(path))}")
    if len(str(path)) > LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
        raise ArgumentError(f"{what} must be a path, and this name is too long for any system: {shown(str(path))}")
    return path
