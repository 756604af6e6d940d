"""An encoder that looks observations up in a table: what an exact solution is."""

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.data.trajectories import equal_by_bytes, row_blocks, row_hashes
from lapwing.errors import ArgumentError, DamagedFileError


class LookupEncoder:
    """Values of each component at known observations, and the weight of each observation in the inner product.

    Args:
        observations: (n, ...) the known observations.
        values: (n, dim) the components there.
        weights: (n,) rho, summing to one.
    """

    kind: ClassVar[str] = "lookup"

    def __init__(self, observations: NDArray[Any], values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Keep the table."""
        self.observations = observations
        self.values = values
        self.weights = weights

    @property
    def dim(self) -> int:
        """How many components the table has."""
        return int(self.values.shape[1])

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """Shape of one observation."""
        return tuple(self.observations.shape[1:])

    def encode(self, observations: "ArrayLike") -> NDArray[np.float64]:
        """Values at known observations; an error that names the first unknown one.

        Args:
            observations: (n, ...) of any numeric type.

        Returns:
            (n, dim) values.
        """
        numbers = self.numbers_of(observations)
        unknown = np.flatnonzero(numbers < 0)
        if len(unknown):
            raise ArgumentError(
                f"{len(unknown)} of {len(numbers)} observations are not in the table of {len(self.values):,} that "
                f"this representation knows (the first is row {unknown[0]}); an exact or counted solution does not "
                "generalise"
            )
        return self.values[numbers]

    def numbers_of(self, observations: "ArrayLike") -> NDArray[np.int64]:
        """The row of the table that holds each observation.

        Args:
            observations: (n, ...) of any numeric type.

        Returns:
            (n,) row numbers, -1 where an observation is not in the table.
        """
        rows = np.asarray(observations)
        shape = self.observations.shape[1:]
        if shape == (1,) and rows.ndim == 1:
            rows = rows[:, None]
        if rows.shape[1:] != shape or rows.ndim != len(shape) + 1:
            raise ArgumentError(f"observations must have shape (n, {', '.join(map(str, shape))}), got {rows.shape}")
        try:
            with np.errstate(invalid="ignore", over="ignore"):
                cast = rows.astype(self.observations.dtype)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"observations must be numbers, got {rows.dtype}") from error
        numbers = self._found(equal_by_bytes(cast))
        if np.issubdtype(cast.dtype, np.integer) and cast.dtype != rows.dtype:
            # 1.7 is not state 1, nor 256 the colour 0: a cast that changed a number found another observation.
            numbers[(cast != rows).any(axis=tuple(range(1, rows.ndim)))] = -1
        return numbers

    def _found(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """(n,) where each row stands in the table, -1 where it does not; hashes find it, and then it is compared."""
        hashes, order = self._index
        inside = tuple(range(1, rows.ndim))
        numbers = np.full(len(rows), -1, dtype=np.int64)
        wanted = row_hashes(rows)
        places = np.searchsorted(hashes, wanted)
        left = np.flatnonzero(places < len(hashes))
        while len(left):
            left = left[hashes[places[left]] == wanted[left]]
            for block in row_blocks((len(left), *rows.shape[1:]), rows.itemsize):
                some = left[block]
                known = equal_by_bytes(self.observations[order[places[some]]])
                same = (known == rows[some]).all(axis=inside)
                numbers[some[same]] = order[places[some[same]]]
            # Two observations may share a hash by chance: the other one stands beside.
            left = left[numbers[left] < 0]
            places[left] += 1
            left = left[places[left] < len(hashes)]
        return numbers

    @cached_property
    def _index(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The hashes of the table's rows in ascending order, and the row of each."""
        hashes = np.concatenate(
            [
                row_hashes(equal_by_bytes(self.observations[block]))
                for block in row_blocks(self.observations.shape, self.observations.itemsize)
            ]
        )
        order = np.argsort(hashes, kind="stable")
        hashes = hashes[order]
        beside = np.flatnonzero(hashes[1:] == hashes[:-1])
        alike = self.observations[order[beside]] == self.observations[order[beside + 1]]
        if alike.all(axis=tuple(range(1, alike.ndim))).any():
            raise ArgumentError("two states of this table have the same observation, so it cannot tell them apart")
        return hashes, order

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over.

        Returns:
            (n, ...) observations and (n,) weights.
        """
        return self.observations, self.weights

    def config(self) -> dict[str, Any]:
        """Nothing besides the arrays.

        Returns:
            An empty dictionary.
        """
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Observations, values and weights.

        Returns:
            Arrays by name.
        """
        return {"observations": self.observations, "values": self.values, "weights": self.weights}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The table that was saved.

        Args:
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        if missing := {"observations", "values", "weights"} - set(arrays):
            raise DamagedFileError(f"the table lacks its {min(missing)}; the file is damaged")
        observations, values, weights = (arrays[name] for name in ("observations", "values", "weights"))
        fits = values.ndim == 2 and observations.ndim >= 2 and weights.shape == (len(values),)
        if not fits or not len(observations) == len(values) > 0 or values.shape[1] == 0:
            raise DamagedFileError("the arrays of this table do not fit together; the file is damaged")
        if values.dtype != np.float64 or weights.dtype != np.float64:
            raise DamagedFileError(f"a table holds float64, got {values.dtype}, {weights.dtype}; the file is damaged")
        if (weights < 0).any() or not abs(weights.sum() - 1.0) < 1e-6:
            raise DamagedFileError("the weights of this table are not a distribution; the file is damaged")
        return cls(observations, values, weights)
