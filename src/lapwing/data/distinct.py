"""How many different observations there are, as far as anybody needs to know."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_BLOCK = 256
LARGEST_BLOCK = 1 << 16


def distinct_rows(observations: NDArray[Any], enough: int) -> int:
    """The number of different rows, or ``enough`` as soon as so many have been seen.

    Almost always the first rows suffice; only data that hardly change are read to their end.

    Example:
        >>> distinct_rows(np.array([[1.0], [2.0], [1.0]]), enough=10)
        2
    """
    seen: set[bytes] = set()
    begin, size = 0, FIRST_BLOCK
    while begin < len(observations) and len(seen) < enough:
        # Adding nothing makes one of the two zeros.
        block = np.asarray(observations[begin : begin + size]) + 0
        seen.update(row.tobytes() for row in np.unique(block.reshape(len(block), -1), axis=0))
        begin, size = begin + size, min(2 * size, LARGEST_BLOCK)
    return min(len(seen), enough)
