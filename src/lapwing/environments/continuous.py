"""Any layout as a continuous world: a point walks in the free cells, and a move through a wall is not made."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, shown
from lapwing.environments.layouts import Layout
from lapwing.environments.world import AGENT_COLOUR, FIELD_CELLS, FLOOR_COLOUR, WALL_COLOUR, Discretisation, World
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean

StepKind = Literal["gaussian", "uniform"]
STEP_KINDS: tuple[str, ...] = get_args(StepKind)

# The Gaussian is cut here, so that actions are bounded; the kernel of the ground truth is cut likewise.
LARGEST_DEVIATION = 4.0

MAX_STEP = 8.0
MAX_DISCRETISED_ENTRIES = 200_000_000

# Grid points per standard deviation of a step along one axis, the finest that the entries of the matrix allow: errors
# of eigenvalues are below 0.2 % with six and below 0.6 % with three (docs/worlds.md).
POINTS_PER_DEVIATION = (6, 5, 4, 3)
WANTED_ENTRIES = 12_500_000


@dataclass(frozen=True, eq=False)
class ContinuousMaze(World):
    """A point in the free cells of a layout, each of side 1, takes random steps; a step that would meet a wall fails.

    The point then stays where it is. Steps are as likely as their reverse and fail together with it, so the walk is
    reversible with respect to the uniform density. Observations are coordinates (down, across) about the middle of the
    free cells, scaled so that the longer side of their bounding box is [-0.5, 0.5].

    Args:
        layout: which cells are free.
        deviation: standard deviation of a step along each axis, in cells; None is 0.04 times the root of the free area,
            at most 0.3.
        steps: ``gaussian`` (each axis cut at four standard deviations) or ``uniform`` in a square.
        name: for tables and files; None is the layout's.

    Example:
        >>> from lapwing.environments.layouts import room
        >>> ContinuousMaze(room(3, 2)).observe(np.array([[1.0, 1.0], [4.0, 3.0]]))
        array([[-0.5       , -0.33333334],
               [ 0.5       ,  0.33333334]], dtype=float32)
    """

    layout: Layout
    deviation: float | None = None
    steps: StepKind = "gaussian"
    name: str = ""
    observation_shape: tuple[int, ...] = field(init=False, default=(2,))
    actions: tuple[int, ...] = field(init=False, default=(2,))
    observation_bounds: tuple[float, float] = field(init=False, default=(-0.5, 0.5))

    def __post_init__(self) -> None:
        """Refuse what is not a layout, and steps of no length or too long."""
        if not isinstance(self.layout, Layout):
            raise LapwingError(f"a continuous maze is made from a layout, got {shown(self.layout)}")
        if not isinstance(self.steps, str) or self.steps not in STEP_KINDS:
            named = shown(self.steps)
            raise UnknownNameError(f"unknown kind of steps {named}; {did_you_mean(named, STEP_KINDS)}")
        default = min(0.04 * math.sqrt(self.layout.num_cells), 0.3)
        deviation = default if self.deviation is None else as_real(self.deviation)
        if deviation is None or not (deviation > 0 and self._reach(deviation) <= MAX_STEP):
            raise LapwingError(
                f"the standard deviation of a step must be positive and its reach at most {MAX_STEP:g} cells, "
                f"got {shown(self.deviation)}"
            )
        object.__setattr__(self, "deviation", deviation)
        object.__setattr__(self, "name", self.name or self.layout.name)

    def _reach(self, deviation: float) -> float:
        return deviation * (LARGEST_DEVIATION if self.steps == "gaussian" else math.sqrt(3.0))

    @cached_property
    def max_step(self) -> float:
        """The largest step along one axis, in cells."""
        assert self.deviation is not None
        return self._reach(self.deviation)

    @cached_property
    def _box(self) -> tuple[NDArray[np.float64], float]:
        """The middle of the free cells' bounding box, and the length of its longer side."""
        low, high = self.layout.cells.min(axis=0), self.layout.cells.max(axis=0) + 1
        return (low + high) / 2.0, float((high - low).max())

    def blocked(self, starts: NDArray[np.float64], ends: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the straight way between two points meets a wall or leaves the layout.

        Exact: every cell that the segment enters is looked up, at the grid line where it enters.

        Args:
            starts: (n, 2) points in free cells.
            ends: (n, 2) points, at most ``max_step`` away along each axis.

        Returns:
            (n,) true where a step is not made.
        """
        border = np.array(self.layout.shape)
        first = np.floor(starts).astype(np.int64)
        last = np.clip(np.floor(ends).astype(np.int64), -1, border)
        low, high = np.minimum(first, last) + 1, np.maximum(first, last) + 2
        sums = self._wall_sums
        walls_between = sums[high[:, 0], high[:, 1]] - sums[low[:, 0], high[:, 1]]
        walls_between += sums[low[:, 0], low[:, 1]] - sums[high[:, 0], low[:, 1]]
        hit = np.zeros(len(starts), dtype=bool)
        # Most steps have no wall in the rectangle of cells that they span.
        rows = np.flatnonzero(walls_between)
        a, move, first, last = starts[rows], (ends - starts)[rows], first[rows], last[rows]
        bad = self._walls[last[:, 0] + 1, last[:, 1] + 1]
        for axis in (0, 1):
            other = 1 - axis
            direction, lines = np.sign(last[:, axis] - first[:, axis]), np.abs(last[:, axis] - first[:, axis])
            for number in range(int(lines.max(initial=0))):
                some = np.flatnonzero((lines > number) & ~bad)
                sign = direction[some]
                entered = first[some, axis] + sign * (number + 1)
                share = (entered + (sign < 0) - a[some, axis]) / move[some, axis]
                beside = np.floor(a[some, other] + share * move[some, other]).astype(np.int64)
                cell = np.empty((len(some), 2), dtype=np.int64)
                cell[:, axis], cell[:, other] = entered, np.clip(beside, -1, border[other])
                bad[some] = self._walls[cell[:, 0] + 1, cell[:, 1] + 1]
        hit[rows] = bad
        return hit

    @cached_property
    def _walls(self) -> NDArray[np.bool_]:
        """The layout with a wall around it, so that what leaves it meets a wall."""
        return np.pad(~self.layout.free, 1, constant_values=True)

    @cached_property
    def _wall_sums(self) -> NDArray[np.int64]:
        """How many walls lie above and left of each corner of the layout with its border."""
        return np.pad(self._walls.astype(np.int64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(count, 2) points uniform in the free cells: the stationary distribution.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count, 2) points.
        """
        return self.layout.cells[rng.integers(self.layout.num_cells, size=count)] + rng.random((count, 2))

    def step(
        self, states: NDArray[Any], actions: ArrayLike | None, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One step: ``actions``, cut to [-1, 1], are scaled by ``max_step`` and added, unless a wall is in the way.

        Args:
            states: (n, ...) states.
            actions: (n, 2) real numbers; None draws them from the world's own steps.
            rng: source of randomness.

        Returns:
            (n, 2) next points, and the (n, 2) actions that were made.
        """
        if actions is None:
            made = self._drawn_actions(states.shape, rng)
        else:
            given = as_reals(actions)
            if given is None or given.shape != states.shape or not np.isfinite(given).all():
                got = "something else" if given is None else str(given.shape)
                raise ArgumentError(f"the policy must give finite actions of shape {states.shape}, got {got}")
            made = np.clip(given, -1.0, 1.0)
        moved = states + self.max_step * made
        return np.where(self.blocked(states, moved)[:, None], states, moved), made

    def _drawn_actions(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        if self.steps == "uniform":
            return rng.uniform(-1.0, 1.0, shape)
        made = rng.standard_normal(shape)
        while (beyond := np.abs(made) > LARGEST_DEVIATION).any():
            made[beyond] = rng.standard_normal(int(beyond.sum()))
        return made / LARGEST_DEVIATION

    def observe(self, states: NDArray[np.float64]) -> NDArray[np.float32]:
        """(n, 2) coordinates about the middle, the longer side of the bounding box scaled to [-0.5, 0.5].

        Args:
            states: (n, ...) states.

        Returns:
            (n, 2) coordinates.
        """
        middle, side = self._box
        return ((np.asarray(states) - middle) / side).astype(np.float32)

    def discretisation(self, points_per_cell: int | None = None) -> Discretisation:
        """The walk between the points of a fine grid, under the same rule for walls.

        Args:
            points_per_cell: along each axis; None is as many as memory allows, three to six per standard deviation of
                a step, and at least four.

        Returns:
            The grid, the transition matrix between its points, and equal weights.
        """
        from scipy.sparse import coo_array, diags_array

        assert self.deviation is not None
        per_cell = points_per_cell or self._points_per_cell()
        weights = self._grid_weights(per_cell)
        reach = len(weights) // 2
        count = self.layout.num_cells * per_cell**2
        if count * len(weights) ** 2 > MAX_DISCRETISED_ENTRIES:
            raise LapwingError(
                f"{self.name} is too large beside its steps for a ground truth: {count:,} grid points with "
                f"{len(weights) ** 2:,} neighbours each; choose longer steps"
            )
        index = self._grid_index(per_cell)
        places = np.argwhere(index >= 0)
        points = (places + 0.5) / per_cell
        padded = np.pad(index, reach, constant_values=-1)
        rows, columns, entries = [], [], []
        for down in range(reach + 1):
            for across in range(-reach, reach + 1):
                if down == 0 and across <= 0:
                    continue
                there = padded[places[:, 0] + down + reach, places[:, 1] + across + reach]
                a = np.flatnonzero(there >= 0)
                b = there[a]
                # A segment through a corner may count one way and not the other; the mean of both is symmetric.
                open_share = (
                    1.0 - (self.blocked(points[a], points[b]).astype(float) + self.blocked(points[b], points[a])) / 2.0
                )
                met = open_share > 0
                rows.append(a[met])
                columns.append(b[met])
                entries.append(open_share[met] * weights[down + reach] * weights[across + reach])
        upper = coo_array(
            (np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))), shape=(count, count)
        ).tocsr()
        moving = upper + upper.T
        # What would meet a wall stays, and so does a step to the point itself.
        matrix = (moving + diags_array(1.0 - np.asarray(moving.sum(axis=1)).ravel())).tocsr()
        middle, side = self._box
        return Discretisation(
            observations=((points - middle) / side).astype(np.float32),
            matrix=matrix,
            weights=np.full(count, 1.0 / count),
            numbers=index,
            origin=(0.5 / per_cell - middle) / side,
            spacing=np.full(2, 1.0 / (per_cell * side)),
        )

    def _points_per_cell(self) -> int:
        assert self.deviation is not None
        for per_deviation in POINTS_PER_DEVIATION:
            per_cell = max(4, math.ceil(per_deviation / self.deviation))
            entries = self.layout.num_cells * per_cell**2 * len(self._grid_weights(per_cell)) ** 2
            if entries <= WANTED_ENTRIES:
                break
        return per_cell

    def _grid_index(self, per_cell: int) -> NDArray[np.int64]:
        """The number of each point of a raster with ``per_cell`` points along each side of a cell; -1 in walls."""
        free = self.layout.free.repeat(per_cell, axis=0).repeat(per_cell, axis=1)
        index = np.full(free.shape, -1, dtype=np.int64)
        index[free] = np.arange(int(free.sum()))
        return index

    def _grid_weights(self, per_cell: int) -> NDArray[np.float64]:
        """Probabilities of steps by whole numbers of grid spacings along one axis, with the right variance."""
        assert self.deviation is not None
        deviation = self.deviation * per_cell
        if self.steps == "gaussian":
            reach = int(LARGEST_DEVIATION * deviation)
            weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / deviation) ** 2)
            return weights / weights.sum()
        # The outermost weight is chosen such that the variance is that of the uniform density.
        reach = max(1, round(math.sqrt(3.0) * deviation))
        inner, square = 2 * reach - 1, deviation**2
        outer = (square * inner - reach * (reach - 1) * inner / 3.0) / (2.0 * (reach**2 - square))
        weights = np.ones(2 * reach + 1)
        weights[[0, -1]] = outer
        return weights / weights.sum()

    def describe(self) -> dict[str, Any]:
        """Layout, steps and name, as JSON types."""
        return {
            "kind": "continuous",
            "name": self.name,
            "layout": self.layout.to_text(),
            "deviation": self.deviation,
            "steps": self.steps,
        }

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        rows, columns = self.layout.shape
        return {
            "size": f"{rows} x {columns}",
            "states": None,
            "parts": self.layout.num_components,
            "description": f"continuous: {self.layout.description or 'own layout'}; {self.steps} steps, "
            f"deviation {self.deviation:.3g}",
        }

    def with_options(self, **options: Any) -> Self:
        """Itself: a continuous maze has no slip and no policy table, and its only observation is ``xy``."""
        if options.get("observation", "xy") != "xy" or options.get("slip") or options.keys() - {"observation", "slip"}:
            raise ArgumentError(f"{self.name} is continuous: no slip, no policy table, and xy its only observation")
        return self

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[np.float32]:
        """Observations on a raster over the free cells, whole numbers of points to a cell.

        Args:
            cells: resolution along each axis.

        Returns:
            (n, ...) observations; None where there is no picture.
        """
        per_cell = max(2, cells // max(self.layout.shape))
        places = np.argwhere(self._grid_index(per_cell) >= 0)
        return self.observe((places + 0.5) / per_cell)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """The raster over the whole layout, masked at walls.

        Args:
            values: (n,) one per point; NaN where it is not known.

        Returns:
            (rows, columns) values, masked at walls.
        """
        index = self._grid_index(math.isqrt(len(values) // self.layout.num_cells))
        image = np.where(index >= 0, np.asarray(values)[index], np.nan)
        return np.ma.masked_array(image, mask=index < 0)

    def field_extent(self) -> tuple[float, float, float, float]:
        """The whole layout, walls included, in cells."""
        rows, columns = self.layout.shape
        return 0.0, columns, rows, 0.0

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """The points themselves, in cells.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of the picture's extent.
        """
        middle, side = self._box
        return np.asarray(observations, dtype=np.float64) * side + middle

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float]:
        """``max_step`` in points of the raster, down and across.

        Args:
            cells: resolution along each axis.

        Returns:
            Points down and across.
        """
        reach = max(2, cells // max(self.layout.shape)) * self.max_step
        return reach, reach

    def render(self, state: Any) -> NDArray[np.uint8]:
        """The layout with a dot, enlarged to at least 256 pixels along its longer side.

        Args:
            state: one state.

        Returns:
            (height, width, 3) image.
        """
        scale = max(1, -(-256 // max(self.layout.shape)))
        free = self.layout.free.repeat(scale, axis=0).repeat(scale, axis=1)
        image = np.where(free[..., None], FLOOR_COLOUR, WALL_COLOUR).astype(np.uint8)
        radius = max(1, scale // 8)
        row, column = np.clip((np.asarray(state) * scale).astype(int), radius, np.array(free.shape) - radius - 1)
        image[row - radius : row + radius + 1, column - radius : column + radius + 1] = AGENT_COLOUR
        return image
