"""A directed world with a known answer: an angle that turns one way, with noise."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lapwing.checks import as_real, as_reals, as_whole, shown
from lapwing.environments.world import AGENT_COLOUR, FIELD_CELLS, FLOOR_COLOUR, WALL_COLOUR, CircleClosedForm, World
from lapwing.errors import ArgumentError, LapwingError

# One action is a standard normal number in units of this, cut at [-1, 1]: once in 1e15 steps.
LARGEST_DEVIATION = 8.0


@dataclass(frozen=True)
class NoisyRotation(World):
    """An angle grows by ``drift`` plus Gaussian noise at each step and is observed as (cos, sin).

    It goes round one way, so its dynamics are not reversible. The uniform density is stationary. The symmetrised
    operator, which is what :func:`lapwing.solve` means, has eigenfunctions cos(k theta) and sin(k theta) with
    eigenvalue ``cos(drift k) exp(-(noise k)^2 / 2)``: with k the eigenvalue may fall below zero and rise again.

    Args:
        drift: how far the angle turns in one step, in radians.
        noise: standard deviation of a step, in radians.
        name: for tables and files.

    Example:
        >>> NoisyRotation().closed_form(3).mu.round(4)
        array([1.    , 0.9133, 0.9133])
    """

    drift: float = 0.3
    noise: float = 0.3
    name: str = "NoisyRotation"
    observation_shape: tuple[int, ...] = field(init=False, default=(2,))
    actions: tuple[int, ...] = field(init=False, default=(1,))
    observation_bounds: tuple[float, float] = field(init=False, default=(-1.0, 1.0))

    def __post_init__(self) -> None:
        """Refuse a rotation without noise, whose eigenvalues do not fall, and one that is not finite."""
        drift, noise = as_real(self.drift), as_real(self.noise)
        if drift is None or not math.isfinite(drift):
            raise LapwingError(f"the drift of a rotation is a finite number, got {shown(self.drift)}")
        if noise is None or not 1e-3 <= noise < math.inf:
            raise LapwingError(f"the noise of a rotation is at least 0.001, got {shown(self.noise)}")
        object.__setattr__(self, "drift", drift)
        object.__setattr__(self, "noise", noise)

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(count, 1) angles, uniform: the stationary distribution.

        Args:
            count: how many.
            rng: source of randomness.

        Returns:
            (count, 1) angles.
        """
        return rng.uniform(0.0, 2.0 * math.pi, (count, 1))

    def step(
        self, states: NDArray[Any], actions: ArrayLike | None, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One step: the drift, and ``actions``, cut to [-1, 1], times eight standard deviations.

        Args:
            states: (n, ...) states.
            actions: (n, 1) real numbers; None draws them.
            rng: source of randomness.

        Returns:
            (n, 1) next angles, and the (n, 1) actions that were made.
        """
        if actions is None:
            made = np.clip(rng.standard_normal(states.shape) / LARGEST_DEVIATION, -1.0, 1.0)
        else:
            given = as_reals(actions)
            if given is None or given.shape != states.shape or not np.isfinite(given).all():
                got = "something else" if given is None else str(given.shape)
                raise ArgumentError(f"the policy must give finite actions of shape {states.shape}, got {got}")
            made = np.clip(given, -1.0, 1.0)
        return np.mod(states + self.drift + LARGEST_DEVIATION * self.noise * made, 2.0 * math.pi), made

    def observe(self, states: NDArray[np.float64]) -> NDArray[np.float32]:
        """(n, 2) cosine and sine of the angle.

        Args:
            states: (n, ...) states.

        Returns:
            (n, 2) observations.
        """
        angles = np.asarray(states)[:, 0]
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def closed_form(self, count: int) -> CircleClosedForm:
        """The ``count`` largest eigenvalues; each but the first belongs to a cosine (mode k) and a sine (mode -k).

        Args:
            count: how many.

        Returns:
            Modes and eigenvalues; fewer than ``count`` where no more are positive.
        """
        whole = as_whole(count)
        if whole is None or whole < 1:
            raise LapwingError(f"the number of modes must be at least 1, got {shown(count)}")
        # Beyond this number nothing is left of any mode in float64.
        last = math.ceil(9.0 / self.noise)
        numbers = np.arange(1, last + 1)
        values = np.cos(self.drift * numbers) * np.exp(-((self.noise * numbers) ** 2) / 2.0)
        order = np.argsort(-values, kind="stable")
        kept = order[values[order] > 1e-12]
        modes = np.concatenate([[0], np.stack([numbers[kept], -numbers[kept]], axis=1).ravel()])[:whole]
        mu = np.concatenate([[1.0], np.repeat(values[kept], 2)])[:whole]
        return CircleClosedForm(modes[:, None], mu)

    def describe(self) -> dict[str, Any]:
        """Drift, noise and name, as JSON types."""
        return {"kind": "rotation", "name": self.name, "drift": self.drift, "noise": self.noise}

    def summary(self) -> dict[str, Any]:
        """What ``lapwing worlds`` lists."""
        text = f"an angle turning by {self.drift:g} with noise {self.noise:g}, directed, closed form"
        return {"size": "circle", "states": None, "parts": 1, "description": text}

    def field_points(self, cells: int = FIELD_CELLS) -> NDArray[np.float32]:
        """Observations at equally spaced angles.

        Args:
            cells: resolution along each axis.

        Returns:
            (n, ...) observations; None where there is no picture.
        """
        return self.observe(2.0 * math.pi * (np.arange(cells)[:, None] + 0.5) / cells)

    def field_image(self, values: NDArray[np.float64]) -> "np.ma.MaskedArray[Any, Any]":
        """A strip: the circle cut open at angle 0.

        Args:
            values: (n,) one per point; NaN where it is not known.

        Returns:
            (rows, columns) values, masked at walls.
        """
        return np.ma.masked_array(np.asarray(values)[None, :], mask=False)

    def field_extent(self) -> tuple[float, float, float, float]:
        """A strip as long as the circle, in radians."""
        return 0.0, 2.0 * math.pi, 1.0, 0.0

    def picture_places(self, observations: NDArray[Any]) -> NDArray[np.float64]:
        """The angle along the strip.

        Args:
            observations: (n, ...) observations.

        Returns:
            (n, 2) places, down and across, in the units of the picture's extent.
        """
        points = np.asarray(observations, dtype=np.float64)
        angles = np.mod(np.arctan2(points[:, 1], points[:, 0]), 2.0 * math.pi)
        return np.stack([np.full(len(points), 0.5), angles], axis=1)

    def field_reach(self, cells: int = FIELD_CELLS) -> tuple[float, float]:
        """Drift and noise together, in points of the strip.

        Args:
            cells: resolution along each axis.

        Returns:
            Points down and across.
        """
        return 1.0, cells * (abs(self.drift) + 2.0 * self.noise) / (2.0 * math.pi)

    def render(self, state: Any) -> NDArray[np.uint8]:
        """A circle with a dot at the angle.

        Args:
            state: one state.

        Returns:
            (height, width, 3) image.
        """
        image = np.full((128, 128, 3), FLOOR_COLOUR, dtype=np.uint8)
        down, across = np.indices((128, 128)) - 63.5
        image[np.abs(np.hypot(down, across) - 50.0) < 1.0] = WALL_COLOUR
        angle = float(np.ravel(state)[0])
        image[np.hypot(down + 50.0 * math.sin(angle), across - 50.0 * math.cos(angle)) < 4.0] = AGENT_COLOUR
        return image


def circle_eigenfunctions(modes: NDArray[np.int64], observations: ArrayLike) -> NDArray[np.float64]:
    """(n, d) values of cos(k theta) and sin(k theta) at points (cos, sin) of a circle, each with mean square one.

    Args:
        modes: (d, 1) numbers: k > 0 is the cosine of k, k < 0 the sine of -k, 0 the constant.
        observations: (n, 2) points; only their directions count.

    Returns:
        (n, d) values.

    Example:
        >>> circle_eigenfunctions(np.array([[0], [1], [-1]]), [[0.0, 1.0]]).round(3)
        array([[1.   , 0.   , 1.414]])
    """
    points = np.asarray(observations, dtype=np.float64)
    angles = np.arctan2(points[:, 1], points[:, 0])[:, None]
    numbers = modes[:, 0]
    phases = np.where(numbers < 0, math.pi / 2.0, 0.0)
    return np.cos(angles * np.abs(numbers) - phases) * np.where(numbers == 0, 1.0, math.sqrt(2.0))
