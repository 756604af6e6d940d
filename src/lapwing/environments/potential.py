"""Diffusions in a one-dimensional potential: metastable worlds whose rates are known from the literature."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, shown
from lapwing.environments.world import AGENT_COLOUR, FIELD_CELLS, FLOOR_COLOUR, Discretisation, World
from lapwing.errors import ArgumentError, LapwingError, UnknownNameError, did_you_mean

CELLS = 500


class Potential(NamedTuple):
    """A potential in units of kT, and the interval outside of which it is so high that nothing is lost."""

    energy: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    low: float
    high: float
    description: str


def _double_well(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return (x**2 - 1.0) ** 2


def _four_well(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The potential of Prinz et al., J. Chem. Phys. 134, 174105 (2011)."""
    bumps = 0.8 * np.exp(-80.0 * x**2) + 0.2 * np.exp(-80.0 * (x - 0.5) ** 2) + 0.5 * np.exp(-40.0 * (x + 0.5) ** 2)
    return 4.0 * (x**8 + bumps)


POTENTIALS = {
    "double_well": Potential(_double_well, -2.2, 2.2, "V = (x^2 - 1)^2"),
    "four_well": Potential(_four_well, -1.2, 1.2, "the four wells of Prinz et al. (2011)"),
}


@dataclass(frozen=True)
class PotentialWorld(World):
    """A point diffuses in a potential: dx = -V'(x) dt + sqrt(2) dW, in units of kT and of the damping.

    The line is cut into 500 cells between which the generator is a chain of detailed balance, and one step draws from
    its exact transition probabilities ``P = exp(time_step * L)``: first the next cell, then a point uniform in it. The
    matrix P is therefore the very process that is sampled, however long the step, and a rate of the diffusion is
    ``-log(mu) / time_step``, within 0.2 % of the diffusion's own. Observations never repeat.

    Args:
        potential: ``double_well`` or ``four_well``.
        time_step: the time that one step takes.
        name: for tables and files.

    Example:
        >>> world = PotentialWorld("double_well", 0.02)
        >>> world.observe(np.array([[0.0], [2.2]]))
        array([[0. ],
               [0.5]], dtype=float32)
    """

    potential: str = "double_well"
    time_step: float = 0.02
    name: str = "DoubleWell"
    observation_shape: tuple[int, ...] = field(init=False, default=(1,))
    actions: tuple[int, ...] = field(init=False, default=(1,))
    observation_bounds: tuple[float, float] = field(init=False, default=(-0.5, 0.5))

    def __post_init__(self) -> None:
        """Refuse an unknown potential and a step that takes no time."""
        if not isinstance(self.potential, str) or self.potential not in POTENTIALS:
            named = shown(self.potential)
            raise UnknownNameError(f"unknown potential {named}; {did_you_mean(named, list(POTENTIALS))}")
        step = as_real(self.time_step)
        if step is None or not 1e-4 <= step <= 1e3:
            raise LapwingError(f"a step takes a time of 0.0001 to 1000, got {shown(self.time_step)}")
        object.__setattr__(self, "time_step", step)

    @property
    def _spacing(self) -> float:
        shape = POTENTIALS[self.potential]
        return (shape.high - shape.low) / CELLS

    @cached_property
    def _kernel(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(cells, cells) transition probabilities of one step, and (cells,) stationary weights."""
        from scipy.linalg import eigh_tridiagonal

        shape = POTENTIALS[self.potential]
        energy = shape.energy(np.asarray(shape.low + self._spacing * (np.arange(CELLS) + 0.5), dtype=np.float64))
        # Jump rates exp(-(V_j - V_i)/2) / h^2 to neighbours; symmetric in the inner product of exp(-V).
        jump = 1.0 / self._spacing**2
        half = np.exp(-np.diff(energy) / 2.0)
        leaving = jump * (np.append(half, 0.0) + np.insert(1.0 / half, 0, 0.0))
        rates, vectors = eigh_tridiagonal(-leaving, np.full(CELLS - 1, jump))
        weights = np.exp(-(energy - energy.min()))
        weights /= weights.sum()
        symmetric = (vectors * np.exp(self.time_step * rates)) @ vectors.T
        # Rounding alone makes an entry negative.
        flow = np.maximum((symmetric + symmetric.T) / 2.0, 0.0) * np.sqrt(np.outer(weights, weights))
        flow[flow < 1e-13 * flow.max()] = 0.0
        stationary = flow.sum(axis=1)
        return flow / stationary[:, None], stationary / stationary.sum()

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        """(cells * (cells + 1),) cumulative probabilities of the rows, row i raised by i, so that all is one table."""
        matrix, _ = self._kernel
        sums = np.cumsum(np.pad(matrix, ((0, 0), (1, 0))), axis=1)
        sums /= sums[:, -1:]
        return (sums + np.arange(CELLS)[:, None]).ravel()

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(count, 1) points from the stationary distribution.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count, 1) points.
        """
        cells = rng.choice(CELLS, size=count, p=self._kernel[1])
        return POTENTIALS[self.potential].low + self._spacing * (cells + rng.random(count))[:, None]

    def step(
        self, states: NDArray[Any], actions: "ArrayLike | None", rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One step: ``actions``, cut to [-1, 1], are the quantile of the next point, from lowest to highest.

        Args:
            states: (n, ...) states.
            actions: (n, 1) real numbers; None draws them uniformly.
            rng: source of randomness.

        Returns:
            (n, 1) next points, and the (n, 1) actions that were made.
        """
        if actions is None:
            made = rng.uniform(-1.0, 1.0, states.shape)
        else:
            given = as_reals(actions)
            if given is None or given.shape != states.shape or not np.isfinite(given).all():
                got = "something else" if given is None else str(given.shape)
                raise ArgumentError(f"the policy must give finite actions of shape {states.shape}, got {got}")
            made = np.clip(given, -1.0, 1.0)
        low = POTENTIALS[self.potential].low
        here = np.clip(((states[:, 0] - low) / self._spacing).astype(np.int64), 0, CELLS - 1)
        quantile = here + np.clip((made[:, 0] + 1.0) / 2.0, 1e-12, 1.0 - 1e-9)
        place = np.searchsorted(self._cumulative, quantile, side="right") - 1
        below, above = self._cumulative[place], self._cumulative[place + 1]
        # The rest of the quantile is the place inside the cell.
        inside = (quantile - below) / (above - below)
        cell = place - here * (CELLS + 1)
        return low + self._spacing * (cell + inside)[:, None], made

    def observe(self, states: NDArray[np.float64]) -> NDArray[np.float32]:
        """(n, 1) positions, the interval scaled to [-0.5, 0.5].

        Args:
            states: (n, ...) states.

        Returns:
            (n, 1) observations.
        """
        shape = POTENTIALS[self.potential]
        scaled = (np.asarray(states) - (shape.low + shape.high) / 2.0) / (shape.high - shape.low)
        return scaled.astype(np.float32)

    def discretisation(self) -> Discretisation:
        """The chain that is sampled: cells, transition probabilities, and stationary weights.

        Returns:
            Cells by their middles.
        """
        from scipy.sparse import csr_array

        matrix, weights = self._kernel
        middles = (np.arange(CELLS) + 0.5) / CELLS - 0.5
        return Discretisation(
            observations=middles[:, None].astype(np.float32),
            matrix=csr_array(matrix),
            weights=weights,
            numbers=np.arange(CELLS),
            origin=middles[:1],
            spacing=np.array([1.0 / CELLS]),
        )

    def describe(self) -> dict[str, Any]:
        """Potential, time step and name, as JSON types."""
        return {"kind": "potential", "name": self.name, "potential": self.potential, "time_step": self.time_step}

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        shape = POTENTIALS[self.potential]
        text = f"diffusion in {shape.description}, time step {self.time_step:g}"
        return {"size": f"{shape.high - shape.low:g}", "states": None, "parts": 1, "description": text}

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[np.float32]:
        """Observations at equal distances along the line.

        Args:
            cells: resolution along each axis.

        Returns:
            (n, ...) observations; None where there is no picture.
        """
        return ((np.arange(cells)[:, None] + 0.5) / cells - 0.5).astype(np.float32)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """A strip.

        Args:
            values: (n,) one per point; NaN where it is not known.

        Returns:
            (rows, columns) values, masked at walls.
        """
        return np.ma.masked_array(np.asarray(values)[None, :], mask=False)

    def field_extent(self) -> tuple[float, float, float, float]:
        """A strip as long as the interval."""
        shape = POTENTIALS[self.potential]
        return shape.low, shape.high, 0.15 * (shape.high - shape.low), 0.0

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """The position along the strip.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of the picture's extent.
        """
        shape = POTENTIALS[self.potential]
        length = shape.high - shape.low
        across = shape.low + length * (np.asarray(observations, dtype=np.float64)[:, 0] + 0.5)
        return np.stack([np.full(len(across), 0.075 * length), across], axis=1)

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float]:
        """Two standard deviations of a free step, in points of the strip.

        Args:
            cells: resolution along each axis.

        Returns:
            Points down and across.
        """
        return 1.0, 2.0 * math.sqrt(2.0 * self.time_step) * cells / (CELLS * self._spacing)

    def render(self, state: Any) -> NDArray[np.uint8]:
        """The potential as a dark line, with a dot on it.

        Args:
            state: one state.

        Returns:
            (height, width, 3) image.
        """
        shape = POTENTIALS[self.potential]
        image = np.full((128, 256, 3), FLOOR_COLOUR, dtype=np.uint8)
        x = shape.low + (shape.high - shape.low) * (np.arange(256) + 0.5) / 256
        heights = np.clip(118 - 14 * shape.energy(x), 4, 123).astype(int)
        image[heights, np.arange(256)] = 0
        column = int(np.clip((float(np.ravel(state)[0]) - x[0]) / (x[1] - x[0]) + 0.5, 3, 252))
        row = int(heights[column])
        image[max(row - 3, 0) : row + 4, column - 3 : column + 4] = AGENT_COLOUR
        return image
