"""A continuous world with a known answer: a reflecting random walk in a box (paper, Appendix "Abstract setting")."""

import heapq
import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.environments.world import AGENT_COLOUR, FIELD_CELLS, ClosedForm, World
from lapwing.errors import ArgumentError, LapwingError

# Above this mode number the search gives up: only steps absurdly short or long beside the box get there.
_MAX_MODE = 1 << 20

MAX_MODES = 10_000
MAX_DIMENSION = 32

# Below it more products are equal to 2e-12 than can be looked through.
_SMALLEST_PRODUCT = 1e-6

# More products beside the wanted ones than any box whose modes can be told apart has: a cube of 32 sides needs 36,000.
_MOST_EQUAL = 40_000


@dataclass(frozen=True)
class BoxWorld(World):
    """A point in a box takes steps uniform in [-max_step, max_step] along each axis and is reflected at the walls.

    The walk is reversible with respect to the uniform density, and folding the line into the box maps cosines to
    cosines: the eigenfunctions are products of ``cos(pi k_i x_i / side_i)`` with eigenvalue the product of
    ``sinc(k_i max_step / side_i)``.

    Args:
        sides: length of the box along each axis; as many as there are dimensions.
        max_step: the largest step along one axis.
        name: for tables and files.

    Example:
        >>> BoxWorld((1.0, 1.0)).dimension
        2
    """

    sides: tuple[float, ...] = (1.0, 1.0)
    max_step: float = 0.1
    name: str = "Box"
    observation_shape: tuple[int, ...] = field(init=False)
    actions: tuple[int, ...] = field(init=False)
    observation_bounds: tuple[float, float] = field(init=False, default=(-0.5, 0.5))

    def __post_init__(self) -> None:
        """Refuse an empty or flat box and a walk that never moves."""
        sides, step = as_reals(self.sides), as_real(self.max_step)
        if sides is None or sides.ndim > 1 or not sides.size or not (np.isfinite(sides) & (sides > 0)).all():
            raise LapwingError(f"a box needs at least one side, each positive and finite, got {shown(self.sides)}")
        if sides.size > MAX_DIMENSION:
            raise LapwingError(f"a box has at most {MAX_DIMENSION} sides, got {sides.size}")
        if step is None or not (np.isfinite(step) and step > 0):
            raise LapwingError(f"the step of a box walk must be positive and finite, got {shown(self.max_step)}")
        with np.errstate(over="ignore"):
            if not np.isfinite(step / sides).all():
                raise LapwingError(f"a step of {step:g} is too large for a box of sides {shown(self.sides)}")
        object.__setattr__(self, "sides", tuple(np.atleast_1d(sides).tolist()))
        object.__setattr__(self, "max_step", step)
        object.__setattr__(self, "observation_shape", (self.dimension,))
        object.__setattr__(self, "actions", (self.dimension,))

    @property
    def dimension(self) -> int:
        """How many axes the box has."""
        return len(self.sides)

    def reflect(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fold points outside the box back into it, as often as it takes.

        Args:
            points: (n, dimension) in the box's own units.

        Returns:
            (n, dimension) points inside the box.
        """
        sides = np.array(self.sides)
        folded = np.mod(points, 2.0 * sides)
        return np.minimum(folded, 2.0 * sides - folded)

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(count, dimension) points uniform in the box: its stationary distribution.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count, dimension) points in the box's own units.
        """
        return rng.random((count, self.dimension)) * np.array(self.sides)

    def step(
        self, states: NDArray[Any], actions: "ArrayLike | None", rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One step: ``actions``, cut to [-1, 1], are scaled by ``max_step``, added and reflected.

        Args:
            states: (n, dimension) points.
            actions: (n, dimension) real numbers; None draws them uniformly from [-1, 1].
            rng: source of randomness.

        Returns:
            (n, dimension) next points, and the (n, dimension) actions that were made.
        """
        if actions is None:
            made = rng.uniform(-1.0, 1.0, states.shape)
        else:
            given = as_reals(actions)
            if given is None or given.shape != states.shape or not np.isfinite(given).all():
                got = "something else" if given is None else str(given.shape)
                raise ArgumentError(f"the policy must give finite actions of shape {states.shape}, got {got}")
            made = np.clip(given, -1.0, 1.0)
        return self.reflect(states + self.max_step * made), made

    def observe(self, states: NDArray[np.float64]) -> NDArray[np.float32]:
        """Coordinates scaled to [-0.5, 0.5] along each axis.

        Args:
            states: (n, dimension) points.

        Returns:
            (n, dimension) scaled coordinates.
        """
        return (states / np.array(self.sides) - 0.5).astype(np.float32)

    def describe(self) -> dict[str, Any]:
        """Sides, largest step and name, as JSON types."""
        return {"kind": "box", "name": self.name, "sides": list(self.sides), "step": self.max_step}

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        return {
            "size": " x ".join(f"{side:g}" for side in self.sides),
            "states": None,
            "parts": 1,
            "description": "continuous box, reflecting walk, closed form",
            "axes": self.dimension,
        }

    def with_options(self, **options: Any) -> Self:
        """Itself: a box has no slip and no policy table, and its only observation is ``xy``."""
        if options.get("observation", "xy") != "xy" or options.get("slip") or options.keys() - {"observation", "slip"}:
            raise ArgumentError(
                f"{self.name} is a continuous box: no slip, no policy table, and xy its only observation"
            )
        return self

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[np.float32]:
        """Observations on a raster over the first two axes, the others at a quarter of their side.

        Not in the middle: there every cosine with an odd mode number vanishes.

        Args:
            cells: points along each axis of the raster.

        Returns:
            (cells^2, dimension) observations, first axis slowest; (cells, 1) where there is one axis only.
        """
        ticks = (np.arange(cells) + 0.5) / cells - 0.5
        axes = [ticks] * min(self.dimension, 2) + [np.array([-0.25])] * max(self.dimension - 2, 0)
        mesh = np.meshgrid(*axes, indexing="ij")
        return np.stack([coordinate.ravel() for coordinate in mesh], axis=1).astype(np.float32)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """The raster, first axis downwards.

        Args:
            values: (n,) one per point of :meth:`field_points`.

        Returns:
            (cells, cells) values without a mask; (cells, 1) where there is one axis only.
        """
        rows = math.isqrt(len(values)) if self.dimension > 1 else len(values)
        return np.ma.masked_array(np.reshape(values, (rows, -1)), mask=False)

    def field_extent(self) -> tuple[float, float, float, float]:
        """The first two sides; a box of one axis is drawn as a narrow strip."""
        width = self.sides[1] if self.dimension > 1 else 0.15 * self.sides[0]
        return 0.0, width, self.sides[0], 0.0

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """The first two coordinates; a box of one axis has its points in the middle of the strip.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of the picture's extent.
        """
        scaled = np.asarray(observations, dtype=np.float64)[:, :2] + 0.5
        if self.dimension == 1:
            scaled = np.stack([scaled[:, 0], np.full(len(scaled), 0.5)], axis=1)
        _, right, bottom, _ = self.field_extent()
        return scaled * np.array([bottom, right])

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float]:
        """``max_step`` in cells, down and across.

        Args:
            cells: points along each axis of the raster.

        Returns:
            Cells down and cells across.
        """
        down, across = (cells * self.max_step / side for side in (*self.sides, *self.sides)[:2])
        return down, across

    def render(self, state: Any) -> NDArray[np.uint8]:
        """A square with a dot at the first two coordinates (the middle where there is one only).

        Args:
            state: (dimension,) a point.

        Returns:
            (128, 128, 3) red, green and blue.
        """
        image = np.full((128, 128, 3), 236, dtype=np.uint8)
        scaled = np.append(self.observe(state), [0.0])[:2] + 0.5
        row, column = np.clip((scaled * 127).astype(int), 2, 125)
        image[row - 2 : row + 3, column - 2 : column + 3] = AGENT_COLOUR
        return image

    def closed_form(self, count: int) -> ClosedForm:
        """The ``count`` modes with the largest one-step eigenvalues, from the closed form.

        Args:
            count: how many, the constant mode included.

        Returns:
            (count, dimension) mode numbers and (count,) eigenvalues, largest first.
        """
        whole = as_whole(count)
        if whole is None or not 1 <= whole <= MAX_MODES:
            raise LapwingError(f"the number of modes must be at least 1 and at most {MAX_MODES:,}, got {shown(count)}")
        count = whole
        if count > 1 and all(_is_whole(self.max_step / side) for side in self.sides):
            raise LapwingError(
                f"a step of {self.max_step:g} forgets everything in a box of sides {self.sides}: all eigenvalues but "
                f"one are zero, so {count} modes cannot be told apart; choose another step"
            )
        highest = 4 * count + 64
        while highest <= _MAX_MODE:
            found = self._largest_modes(count, highest)
            if found is not None:
                return found
            highest *= 2
        raise self._too_close(count)

    def _too_close(self, count: int) -> LapwingError:
        return LapwingError(
            f"{count} mode(s) of a box of sides {self.sides} with step {self.max_step:g} lie too close together, or "
            "too close to zero, to be told apart; choose a shorter or a longer step beside the sides, or fewer modes"
        )

    def _largest_modes(self, count: int, highest: int) -> ClosedForm | None:
        """Products in order of falling magnitude, positive ones kept; None if modes above ``highest`` could matter."""
        reaches = [self.max_step / side for side in self.sides]
        axes = [_axis_modes(reach, highest) for reach in reaches]
        if not all(len(numbers) for numbers, _ in axes):
            return None
        start = (0,) * self.dimension
        heap = [(-1.0, start)]
        seen = {start}
        looked_through = 0
        kept: list[tuple[float, tuple[int, ...]]] = []
        # Past ``count`` as long as products equal the last one, so that the sort below can choose among all of them.
        while len(kept) < count or (heap and -heap[0][0] > kept[count - 1][0] - 2e-12):
            if not heap:
                return None
            magnitude, ranks = heapq.heappop(heap)
            looked_through += 1
            if -magnitude < _SMALLEST_PRODUCT or looked_through > 8 * count + _MOST_EQUAL:
                raise self._too_close(count)
            value = float(np.prod([axes[i][1][rank] for i, rank in enumerate(ranks)]))
            if value > 0:
                kept.append((value, tuple(int(axes[i][0][rank]) for i, rank in enumerate(ranks))))
            for axis in range(self.dimension):
                child = (*ranks[:axis], ranks[axis] + 1, *ranks[axis + 1 :])
                if child[axis] >= len(axes[axis][0]):
                    if _is_whole(reaches[axis]):
                        continue
                    return None
                if child not in seen:
                    seen.add(child)
                    ratio = axes[axis][1][child[axis]] / axes[axis][1][ranks[axis]]
                    heapq.heappush(heap, (magnitude * abs(ratio), child))
        # Equal products in the order of their mode numbers, so that the answer does not hang on rounding.
        kept = sorted(kept, key=lambda pair: (-round(pair[0], 12), pair[1]))[:count]
        return ClosedForm(np.array([modes for _, modes in kept]), np.array([value for value, _ in kept]))


def box_eigenfunctions(modes: NDArray[np.int64], observations: "ArrayLike") -> NDArray[np.float64]:
    """(n, d) values of the eigenfunctions ``modes`` at scaled observations, each with mean square one.

    Args:
        modes: (d, dimension) mode numbers, 0 for a function that is constant along an axis.
        observations: (n, dimension) coordinates scaled to [-0.5, 0.5].

    Returns:
        (n, d) products of cosines.

    Example:
        >>> box_eigenfunctions(np.array([[0], [1]]), [[-0.5], [0.0]]).round(3)
        array([[1.   , 1.414],
               [1.   , 0.   ]])
    """
    scaled = np.asarray(observations, dtype=np.float64) + 0.5
    values = np.ones((scaled.shape[0], modes.shape[0]))
    for axis in range(modes.shape[1]):
        numbers = modes[:, axis]
        values *= np.cos(np.pi * scaled[:, axis : axis + 1] * numbers) * np.where(numbers > 0, np.sqrt(2.0), 1.0)
    return values


def _axis_modes(reach: float, highest: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Mode numbers and eigenvalues along one axis by falling magnitude, as far as ``highest`` can tell."""
    numbers = np.arange(1 if _is_whole(reach) else highest + 1)
    values = np.sinc(numbers * reach)
    # No mode above ``highest`` exceeds this: |sinc| falls up to its first zero and is at most 0.2173 beyond.
    envelope = min(1.0 / (np.pi * highest * reach), max(float(np.sinc(min(highest * reach, 1.0))), 0.2173))
    order = np.lexsort((numbers, -np.abs(values)))
    keep = order[np.abs(values[order]) > max(envelope, 1e-300)]
    return numbers[keep], values[keep]


def _is_whole(reach: float) -> bool:
    """Whether a step covers the side a whole number of times: then every mode but the constant has eigenvalue zero."""
    return round(reach) >= 1 and abs(reach - round(reach)) < 1e-12 * reach
