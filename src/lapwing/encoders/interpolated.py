"""An encoder that interpolates between the points of a regular grid: what a discretised solution is."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.errors import ArgumentError, DamagedFileError

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

ARRAYS = ("values", "weights", "index", "origin", "spacing")
MAX_AXES = 2


class InterpolatedEncoder:
    """Values of each component at the points of a grid with holes, and linear interpolation between them.

    Only points that see each other are mixed: beside a hole (a wall) values are extrapolated from the near side, and
    nothing is taken from behind it. The error is of second order in the spacing.

    Args:
        values: (n, dim) the components at the points.
        weights: (n,) rho, summing to one.
        index: (rows,) or (rows, columns) number of each point, -1 where there is none.
        origin: (axes,) coordinates of the first place of ``index``.
        spacing: (axes,) distances between neighbours.
    """

    kind: ClassVar[str] = "interpolated"

    def __init__(
        self,
        values: NDArray[np.float64],
        weights: NDArray[np.float64],
        index: NDArray[np.int64],
        origin: NDArray[np.float64],
        spacing: NDArray[np.float64],
    ) -> None:
        """Keep the grid."""
        self.values = values
        self.weights = weights
        self.index = index
        self.origin = origin
        self.spacing = spacing

    @property
    def dim(self) -> int:
        """How many components there are."""
        return int(self.values.shape[1])

    def encode(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Interpolated values; an error where an observation lies inside a wall or outside.

        Args:
            observations: (n, axes) coordinates.

        Returns:
            (n, dim) values.
        """
        points = np.asarray(observations, dtype=np.float64)
        axes = self.index.ndim
        if points.ndim != 2 or points.shape[1] != axes:
            raise ArgumentError(f"observations must have shape (n, {axes}), got {points.shape}")
        places = (points - self.origin) / self.spacing
        own = self._nearest(places)
        shift = places - own
        side = np.where(shift < 0, -1, 1)
        share = np.abs(shift)
        here = self.values[self._numbers(own)]
        steps = [np.where(np.arange(axes) == axis, side, 0) for axis in range(axes)]
        slopes, seen = zip(*(self._slope(own, step, here) for step in steps), strict=True)
        found = here + sum(share[:, axis : axis + 1] * slopes[axis] for axis in range(axes))
        if axes == MAX_AXES:
            # The product term of the bilinear form, where the square is complete.
            corner = self._numbers(own + side)
            whole = seen[0] & seen[1] & (corner >= 0)
            twist = self.values[corner[whole]] - here[whole] - slopes[0][whole] - slopes[1][whole]
            found[whole] += share[whole, :1] * share[whole, 1:] * twist
        return found

    def _slope(
        self, own: NDArray[np.int64], step: NDArray[np.int64], here: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Differences to the neighbours in one direction, and where there are any; else those from the other side."""
        ahead, behind = self._numbers(own + step), self._numbers(own - step)
        forward, backward = self.values[ahead] - here, here - self.values[behind]
        seen = ahead >= 0
        return np.where(seen[:, None], forward, np.where((behind >= 0)[:, None], backward, 0.0)), seen

    def _numbers(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) numbers of the points at places of the grid, -1 outside."""
        return np.asarray(self._padded[tuple(np.clip(places + 1, 0, np.array(self._padded.shape) - 1).T)])

    @cached_property
    def _padded(self) -> NDArray[np.int64]:
        return np.pad(self.index, 1, constant_values=-1)

    def _nearest(self, places: NDArray[np.float64]) -> NDArray[np.int64]:
        """The nearest grid point of each place; rounding may have put one just inside a wall."""
        with np.errstate(invalid="ignore"):
            own = np.rint(np.clip(places, -2, np.array(self.index.shape) + 1)).astype(np.int64)
        lost = np.flatnonzero(self._numbers(own) < 0)
        if len(lost):
            finite = np.nan_to_num(places[lost], nan=np.inf)
            distance, number = self._tree.query(np.clip(finite, -1e6, 1e6))
            if distance.max() > 1.0:
                row = int(lost[np.argmax(distance)])
                raise ArgumentError(f"observation {row} lies in a wall or outside, where there is no value")
            own[lost] = self._tree.data[number].astype(np.int64)
        return own

    @cached_property
    def _tree(self) -> "cKDTree":
        from scipy.spatial import cKDTree

        return cKDTree(np.argwhere(self.index >= 0))

    def support(self) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """What a score sums over: the grid points.

        Returns:
            (n, axes) observations and (n,) weights.
        """
        points = np.empty((len(self.values), self.index.ndim), dtype=np.float32)
        places = np.argwhere(self.index >= 0)
        points[self.index[self.index >= 0]] = self.origin + places * self.spacing
        return points, self.weights

    def config(self) -> dict[str, Any]:
        """Nothing besides the arrays.

        Returns:
            An empty dictionary.
        """
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The grid.

        Returns:
            Arrays by name.
        """
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        """The encoder that was saved.

        Args:
            arrays: what :meth:`arrays` gave, from a file.

        Returns:
            The encoder.
        """
        if missing := set(ARRAYS) - set(arrays):
            raise DamagedFileError(f"the grid lacks its {min(missing)}; the file is damaged")
        values, weights, index, origin, spacing = (arrays[name] for name in ARRAYS)
        if any(array.dtype != np.float64 for array in (values, weights, origin, spacing)) or index.dtype != np.int64:
            raise DamagedFileError("the arrays of this grid are of another type; the file is damaged")
        count = len(values) if values.ndim == 2 else 0
        fits = values.ndim == 2 and values.shape[1] > 0 and weights.shape == (count,)
        if not fits or not 1 <= index.ndim <= MAX_AXES or not origin.shape == spacing.shape == (index.ndim,):
            raise DamagedFileError("the arrays of this grid do not fit together; the file is damaged")
        if not np.array_equal(np.sort(index[index >= 0]), np.arange(count)) or index.min() < -1 or count == 0:
            raise DamagedFileError("the numbers of this grid's points are not 0, 1, ...; the file is damaged")
        if not (spacing > 0).all() or (weights < 0).any() or not abs(weights.sum() - 1.0) < 1e-6:
            raise DamagedFileError("the weights or the spacing of this grid are impossible; the file is damaged")
        return cls(values, weights, index, origin, spacing)
